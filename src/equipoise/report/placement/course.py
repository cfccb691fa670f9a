"""The course of a plan: what holds before it, between any two of its instants, and after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.problem.network import Network
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.spec.moment import Phase, moments

Underway = Mapping[tuple[VmId | None, HostId | None], Sequence[Step]]
"""What is done to each VM, and to each host that is switched; a VM may be called as a host is."""


class Presence(NamedTuple):
    """How a VM is on a host, or on none, for a while."""

    vm: VmId
    host: HostId | None
    state: VmState
    step: Step | None = None
    """What is being done to it."""
    arriving: bool = False
    """Whether it has room here already, but is not here yet."""


class Stay(NamedTuple):
    """A presence that does not change, from one period to another, both included."""

    presence: Presence
    first: int
    last: int


class Service(NamedTuple):
    """A host's state that does not change, from one period to another, both included."""

    state: HostState
    step: Step | None
    """What is being done to the host itself."""
    first: int
    last: int


@dataclass(frozen=True)
class Course:
    """The states of a cluster, and the instants that part them."""

    instants_ms: tuple[int, ...]
    """When something begins or ends, in order."""
    states: tuple[Snapshot, ...]
    """What holds in each period: before the first instant, between them, and after the last."""
    network: Network | None = None
    """What migrations go through, if that is known."""

    def period_at(self, at_ms: int | None) -> int:
        """The number of the period that an instant begins; without one, of the first."""
        if at_ms is None:
            return 0
        return sum(instant <= at_ms for instant in self.instants_ms)

    @cached_property
    def stays(self) -> tuple[Stay, ...]:
        """All stays, by VM and then by time; of those at one time, first where it is."""
        return tuple(stay for vm in self.states[0].vms for stay in self._stays(vm))

    def services(self, host: HostId) -> Iterator[Service]:
        """What a host is, one after the other."""
        seen = [
            (state.hosts[host].state, next(iter(underway.get((None, host), ())), None))
            for state, underway in zip(self.states, self._underway, strict=True)
        ]
        for (state, step), group in groupby(enumerate(seen), key=itemgetter(1)):
            places = [place for place, _ in group]
            yield Service(state, step, places[0], places[-1])

    def _stays(self, vm: VmId) -> list[Stay]:
        """In the order in which they begin."""
        found: dict[Presence, Stay] = {}
        ended: list[Stay] = []
        for place, state in enumerate(self.states):
            seen = list(_presences(state.vms[vm], self._underway[place].get((vm, None), ())))
            ended += [stay for one, stay in found.items() if one not in seen]
            begun = {one: found.get(one, Stay(one, place, place)) for one in seen}
            found = {one: stay._replace(last=place) for one, stay in begun.items()}
        return sorted([*ended, *found.values()], key=_order)

    @cached_property
    def _underway(self) -> tuple[Underway, ...]:
        """What is being done, in each period."""
        return tuple(_by_subject(state) for state in self.states)


def course_of(initial: Snapshot, steps: Iterable[Step], network: Network | None = None) -> Course:
    """Follow a plan."""
    instants: list[int] = []
    states = [initial]
    for moment in moments(initial, tuple(steps)):
        if moment.phase is Phase.STARTS:
            instants.append(moment.at_ms)
            states.append(moment.state.freeze())
    return Course(tuple(instants), tuple(states), network)


def _order(stay: Stay) -> tuple[int, bool]:
    return stay.first, stay.presence.arriving


def _by_subject(state: Snapshot) -> Underway:
    found: dict[tuple[VmId | None, HostId | None], list[Step]] = {}
    for running in state.in_flight.values():
        seen = running.step.footprint
        found.setdefault((seen.vm, seen.switched), []).append(running.step)
    return found


def _presences(vm: Vm, steps: Sequence[Step]) -> Iterator[Presence]:
    yield Presence(vm.id, vm.host, vm.state, steps[0] if steps else None)
    for step in steps:
        target = step.footprint.target
        if target is not None and target != vm.host:
            yield Presence(vm.id, target, vm.state, step, arriving=True)
