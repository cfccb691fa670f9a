"""The possible schedules of VMs and hosts: which actions, in which order, from where to where.

A VM takes the shortest sequence of actions to its final state. While it runs it may also move: it
migrates, or is created again on the target (reinstantiated). It is never stopped in order to move.

Also the route of a migration through the network. The judge (``plan/network.py``) finds paths with
its own code; the two share nothing on purpose, so that an error in one of them shows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any, Final, NamedTuple

from equipoise.model.action import HOST_TRANSITIONS
from equipoise.model.host import HostState
from equipoise.model.problem import Network, ObjectiveMeasure
from equipoise.model.problem.problem import HOST_ACTIONS, ActionKind, ProblemDurations
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.solver import FALSE, TRUE, CpModelBuilder, IntExpression, Literal
from equipoise.plan.exact.task import PlanningTask

Lane = tuple[str, str]
"""A shared resource: a link in one of its directions, or a switch with a limit of its own."""


class Route(NamedTuple):
    """The path from one host to another."""

    lanes: tuple[Lane, ...]
    mbps: int
    """Bandwidth of its narrowest part, which a migration uses on every lane."""


class Routes:
    """The shortest path between any two hosts; of several, the one along the links named first."""

    def __init__(self, network: Network) -> None:
        self._switches = {switch.id: switch.capacity_mbps for switch in network.switches}
        self._steps: dict[str, list[tuple[str, Lane]]] = {}
        self.capacity: dict[Lane, int] = {}
        for link in network.links:
            near, far = _switch(link.switch), _end(link.host, link.to)
            for here, there, way in ((near, far, "down"), (far, near, "up")):
                # Links are full duplex: each direction has the whole capacity.
                lane = (link.id, way)
                self.capacity[lane] = link.capacity_mbps
                self._steps.setdefault(here, []).append((there, lane))
        for name, mbps in self._switches.items():
            if mbps is not None:
                self.capacity[_switch(name), "through"] = mbps
        self._known: dict[HostId, dict[str, tuple[Lane, ...]]] = {}

    def between(self, source: HostId, target: HostId) -> Route | None:
        """Return the path from one host to another; ``None`` if no links lead there."""
        if source not in self._known:
            self._known[source] = self._from(_host(source))
        lanes = self._known[source].get(_host(target))
        if lanes is None:
            return None
        return Route(lanes, min(self.capacity[lane] for lane in lanes))

    def _from(self, start: str) -> dict[str, tuple[Lane, ...]]:
        """Return the lanes to every node, breadth first."""
        paths: dict[str, tuple[Lane, ...]] = {start: ()}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            for there, lane in self._steps.get(here, ()):
                if there not in paths:
                    paths[there] = (*paths[here], lane, *self._through(there))
                    waiting.append(there)
        return paths

    def _through(self, node: str) -> Iterator[Lane]:
        lane = (node, "through")
        if lane in self.capacity:
            yield lane


def _switch(name: str) -> str:
    return f"switch {name}"


def _host(name: str) -> str:
    return f"host {name}"


def _end(host: str | None, switch: str | None) -> str:
    assert (host is None) != (switch is None), "a link leads to a host or to a switch"
    return _switch(switch) if host is None else _host(host)  # type: ignore[arg-type]


MOVE_KINDS: Final = frozenset({ActionKind.MIGRATE, ActionKind.REINSTANTIATE})
"""The kinds of action that move a running VM to another host; a schedule may leave them out."""


@dataclass(slots=True, eq=False)
class CandidateAction:
    """An action that may be part of the plan."""

    number: int
    """Its number among all candidates, so that sets of them have an order."""
    kind: ActionKind
    vm: VmId | None = None
    switched: HostId | None = None
    present: Literal = TRUE
    """Whether it is part of the plan."""
    source: Any = None
    """The host that it frees, possibly undecided."""
    target: Any = None
    """The host that it fills, possibly undecided."""
    start: IntExpression = 0
    """In units of the timeline; outside the plan, the end of the candidate before it."""
    size: IntExpression = 0
    """Its duration, if it happens."""
    end: IntExpression = 0
    unit_ms: int = 1
    resource: ResourceName | None = None
    amount: int = 0
    shrinks: bool = False
    """Whether the VM has no more of the resource after it than before."""
    by_host: CandidateAction | None = None
    """For agents, which have no actions of their own: the candidate of the host."""

    def __lt__(self, other: CandidateAction) -> bool:
        return self.number < other.number

    @property
    def begin_ms(self) -> IntExpression:
        """The start in milliseconds."""
        return self.start * self.unit_ms

    @property
    def end_ms(self) -> IntExpression:
        """The end in milliseconds."""
        return self.end * self.unit_ms


@dataclass(slots=True, eq=False)
class VmSegment:
    """The state and the host of a VM between two candidates."""

    state: VmState
    host: Any
    """Possibly undecided; ``None`` if it has no host."""
    amounts: Mapping[ResourceName, int]


@dataclass(slots=True, eq=False)
class VmSchedule:
    """The possible actions of one VM: ``candidates[k]`` leads from ``segments[k]`` to the next."""

    vm: VmId
    segments: list[VmSegment]
    candidates: list[CandidateAction] = field(default_factory=list)

    @property
    def last(self) -> VmSegment:
        """The final segment."""
        return self.segments[-1]


@dataclass(slots=True, eq=False)
class HostSchedule:
    """The possible action of one host, which is switched once at most."""

    host: HostId
    before: HostState
    after: HostState
    candidate: CandidateAction


def vm_action_kinds(
    before: VmState, after: VmState, moves: Sequence[ActionKind]
) -> tuple[ActionKind, ...] | None:
    """Return the kinds of action that lead from one state to another; ``None`` if none do.

    ``moves`` are those that may come first, while the VM runs.
    """
    # A kill is possible in every state.
    if after is VmState.TERMINATED:
        return () if before is after else (ActionKind.KILL,)
    # A VM that is shut down is gone from its host, so a move before that gains nothing. A suspended
    # VM stays on its host, so it may have to move first.
    first = tuple(moves) if before is VmState.RUNNING and after is not VmState.READY else ()
    kinds = () if before is after else _VM_ACTION_KINDS.get((before, after))
    return None if kinds is None else (*first, *kinds)


_VM_ACTION_KINDS: Final[Mapping[tuple[VmState, VmState], tuple[ActionKind, ...]]] = {
    (VmState.RUNNING, VmState.SLEEPING): (ActionKind.SUSPEND,),
    (VmState.RUNNING, VmState.READY): (ActionKind.SHUTDOWN,),
    (VmState.SLEEPING, VmState.RUNNING): (ActionKind.RESUME,),
    (VmState.READY, VmState.RUNNING): (ActionKind.BOOT,),
    (VmState.INIT, VmState.RUNNING): (ActionKind.FORGE, ActionKind.BOOT),
    (VmState.INIT, VmState.READY): (ActionKind.FORGE,),
}
"""The shortest way from one state of a VM to another."""


HOST_ACTION_KINDS: Final = {HOST_TRANSITIONS[action]: kind for kind, action in HOST_ACTIONS.items()}
"""The action that leads a host from one state to another."""


def move_kinds_of(
    vm: Vm, task: PlanningTask, durations: ProblemDurations, *, over_links: bool
) -> tuple[ActionKind, ...]:
    """Return the ways in which a VM may move: migration, reinstantiation, or both.

    A replaceable VM may do both, unless one of them is never better. Where no links are shared and
    no rule reads actions or moved memory, they differ only in their duration; then the shorter one
    is at least as good.
    """
    if not vm.replaceable or vm.template is None:
        return (ActionKind.MIGRATE,)
    if not over_links and not task.looks_at_actions:
        migrate_ms = durations.vm_ms(ActionKind.MIGRATE, vm.id)
        create_ms = durations.vm_ms(ActionKind.REINSTANTIATE, vm.id)
        if create_ms < migrate_ms:
            return (ActionKind.REINSTANTIATE,)
        if not task.counts(ObjectiveMeasure.MOVED_MEMORY):
            return (ActionKind.MIGRATE,)
    return (ActionKind.MIGRATE, ActionKind.REINSTANTIATE)


def order_moves(schedule: VmSchedule, builder: CpModelBuilder) -> None:
    """Require that each move of a VM has one kind, and that earlier moves are used first.

    The second removes symmetric solutions: a VM that moves once uses its first move.
    """
    moves = [candidate for candidate in schedule.candidates if candidate.kind in MOVE_KINDS]
    choices = max(1, len({candidate.kind for candidate in moves}))
    literals = [candidate.present for candidate in moves]
    times = [literals[first : first + choices] for first in range(0, len(literals), choices)]
    for choice in times:
        for first, second in combinations(choice, 2):
            builder.require(FALSE, (first, second))
    for earlier, later in pairwise(times):
        for moved in later:
            builder.require(builder.any(earlier), (moved,))
