"""The course of a plan: what holds before it, between any two of its instants, and after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.spec.moment import Phase, moments


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

    def period_at(self, at_ms: int | None) -> int:
        """The number of the period that an instant begins; without one, of the first."""
        if at_ms is None:
            return 0
        return sum(instant <= at_ms for instant in self.instants_ms)

    @cached_property
    def stays(self) -> tuple[Stay, ...]:
        """All stays, by VM and then by time; of those at one time, first where it is."""
        found = [stay for vm in self._vms() for stay in self._stays(vm)]
        return tuple(found)

    def services(self, host: HostId) -> Iterator[Service]:
        """What a host is, one after the other."""
        begun: Service | None = None
        for number, state in enumerate(self.states):
            step = _switching(state, host)
            now = state.hosts[host].state
            if begun is not None and (begun.state, begun.step) == (now, step):
                begun = begun._replace(last=number)
                continue
            if begun is not None:
                yield begun
            begun = Service(now, step, number, number)
        if begun is not None:
            yield begun

    def _vms(self) -> Iterable[VmId]:
        return self.states[0].vms

    def _stays(self, vm: VmId) -> Iterator[Stay]:
        """In the order in which they begin."""
        found: dict[Presence, Stay] = {}
        ended: list[Stay] = []
        for number, state in enumerate(self.states):
            seen = list(_presences(state, vm))
            ended += [stay for one, stay in found.items() if one not in seen]
            found = {one: found.get(one, Stay(one, number, number)) for one in seen}
            found = {one: stay._replace(last=number) for one, stay in found.items()}
        return iter(sorted([*ended, *found.values()], key=_order))


def course_of(initial: Snapshot, steps: Iterable[Step]) -> Course:
    """Follow a plan."""
    instants: list[int] = []
    states = [initial]
    for moment in moments(initial, tuple(steps)):
        if moment.phase is Phase.STARTS:
            instants.append(moment.at_ms)
            states.append(moment.state.freeze())
    return Course(tuple(instants), tuple(states))


def _order(stay: Stay) -> tuple[int, bool]:
    return stay.first, stay.presence.arriving


def _presences(state: Snapshot, name: VmId) -> Iterator[Presence]:
    vm = state.vms[name]
    steps = [one.step for one in state.in_flight.values() if one.step.footprint.vm == name]
    yield Presence(name, vm.host, vm.state, steps[0] if steps else None)
    for step in steps:
        target = step.footprint.target
        if target is not None and target != vm.host:
            yield Presence(name, target, vm.state, step, arriving=True)


def _switching(state: Snapshot, host: HostId) -> Step | None:
    steps = (one.step for one in state.in_flight.values())
    return next((step for step in steps if step.footprint.switched == host), None)
