"""The courses that VMs and hosts may take: which actions, in which order, from where to where.

A VM goes the shortest way to the state it is to end in; where it runs before and after, or is to
sleep, it may move on the way. It is never stopped in order to be moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from equipoise.model.host import HostState
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import VmState
from equipoise.plan.exact.solver.circuit import YES, Truth
from equipoise.plan.exact.solver.number import Number

MOVES: Final = frozenset({ActionKind.MIGRATE, ActionKind.REINSTANTIATE})
"""The kinds of action that lead a running VM to another host, and that it may also do without."""


@dataclass(slots=True, eq=False)
class Leg:
    """An action that may be part of the plan."""

    number: int
    """Its place among all legs, so that sets of them have an order."""
    kind: ActionKind
    vm: VmId | None = None
    switched: HostId | None = None
    there: Truth = YES
    """Whether it is part of the plan."""
    source: Any = None
    """The host it frees, as far as it is decided."""
    target: Any = None
    """The host it fills, as far as it is decided."""
    start: Number = 0
    """In units of the timeline; of a leg that is not in the plan, the end of the one before."""
    size: Number = 0
    """How long it takes if it happens."""
    end: Number = 0
    unit_ms: int = 1
    resource: ResourceName | None = None
    amount: int = 0
    shrinks: bool = False
    """Whether it leaves its VM with no more of the resource than before."""
    by_host: Leg | None = None
    """For agents, which do nothing themselves: the leg of their host that changes them."""

    def __lt__(self, other: Leg) -> bool:
        return self.number < other.number

    @property
    def begin_ms(self) -> Number:
        """When it begins."""
        return self.start * self.unit_ms

    @property
    def end_ms(self) -> Number:
        """When it ends."""
        return self.end * self.unit_ms


@dataclass(slots=True, eq=False)
class Station:
    """Where and how a VM is between two legs."""

    state: VmState
    host: Any
    """As far as it is decided; nowhere if it has none."""
    amounts: Mapping[ResourceName, int]


@dataclass(slots=True, eq=False)
class Course:
    """What may become of one VM: ``legs[k]`` leads from ``stations[k]`` to the next."""

    vm: VmId
    stations: list[Station]
    legs: list[Leg] = field(default_factory=list)

    @property
    def last(self) -> Station:
        """Where it ends."""
        return self.stations[-1]


@dataclass(slots=True, eq=False)
class HostCourse:
    """What may become of one host: it is switched once at the most."""

    host: HostId
    before: HostState
    after: HostState
    leg: Leg


def ways(
    before: VmState, after: VmState, moves: Sequence[ActionKind]
) -> tuple[ActionKind, ...] | None:
    """The kinds of action that lead from one state to another; nothing if none do.

    ``moves`` are those that may come first, while the VM runs.
    """
    if after is VmState.TERMINATED:
        return () if before is after else (ActionKind.KILL,)
    match before, after:
        case (VmState.RUNNING, VmState.RUNNING):
            return (*moves,)
        case (VmState.RUNNING, VmState.SLEEPING):
            return (*moves, ActionKind.SUSPEND)
        case (VmState.RUNNING, VmState.READY):
            return (ActionKind.SHUTDOWN,)
        case (VmState.SLEEPING, VmState.RUNNING):
            return (ActionKind.RESUME,)
        case (VmState.READY, VmState.RUNNING):
            return (ActionKind.BOOT,)
        case (VmState.INIT, VmState.RUNNING):
            return (ActionKind.FORGE, ActionKind.BOOT)
        case (VmState.INIT, VmState.READY):
            return (ActionKind.FORGE,)
        case _:
            return () if before is after else None


def switch(before: HostState, after: HostState) -> ActionKind | None:
    """The action that leads a host from one state to another; nothing if none does."""
    match before, after:
        case (HostState.STANDBY, HostState.ON):
            return ActionKind.POWER_ON
        case (HostState.ON, HostState.STANDBY):
            return ActionKind.POWER_OFF
        case (HostState.ON, HostState.MAINTENANCE):
            return ActionKind.ENTER_MAINTENANCE
        case (HostState.MAINTENANCE, HostState.ON):
            return ActionKind.LEAVE_MAINTENANCE
        case _:
            return None
