"""The states of a timeline: before it, after it, and at the moments in between."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any

from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import VmState
from equipoise.plan.exact.formula.values import (
    maybe,
    maybe_list,
    one_of,
    options_of,
)
from equipoise.plan.exact.solver.circuit import NO, YES, Truth, total
from equipoise.plan.exact.solver.number import Number
from equipoise.plan.exact.timeline.course import Course, Leg
from equipoise.plan.exact.timeline.timeline import Timeline
from equipoise.spec.view import CPU, MEMORY, consumption_of

Members = Mapping[VmId, Truth]


class Moment(ABC):
    """A state at one moment; ``reached`` says which legs have ended by then."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._circuit = timeline.circuit
        self.snapshot = timeline.snapshot
        self._hosts: dict[VmId, Any] = {}
        self._vm_states: dict[VmId, Any] = {}

    # When it is: what the kinds of moment answer differently

    known: Hashable = None
    """What it is the same by as another moment, if that can be told before anything is decided."""

    @abstractmethod
    def ended(self, leg: Leg) -> Truth:
        """Whether an action has ended by then."""

    @abstractmethod
    def underway(self, leg: Leg) -> Truth:
        """Whether an action is under way then."""

    # What a formula may ask

    def names(self, kind: str) -> frozenset[Any]:
        """The names of all VMs or of all hosts."""
        return self._timeline.names(kind)

    def vm_state(self, vm: VmId) -> Any:
        """The state of a VM."""
        if vm not in self._vm_states:
            self._vm_states[vm] = self._vm_state(vm)
        return self._vm_states[vm]

    def _vm_state(self, vm: VmId) -> Any:
        course = self._timeline.courses.get(vm)
        if course is None:
            return self.snapshot.vms[vm].state.value
        found: dict[Any, list[Truth]] = {}
        for station, here in zip(course.stations, self._stops(course), strict=True):
            found.setdefault(station.state.value, []).append(here)
        return one_of({state: self._circuit.any(some) for state, some in found.items()})

    def vm_host(self, vm: VmId) -> Any:
        """Where a VM lies."""
        if vm not in self._hosts:
            self._hosts[vm] = self._vm_host(vm)
        return self._hosts[vm]

    def _vm_host(self, vm: VmId) -> Any:
        course = self._timeline.courses.get(vm)
        if course is None:
            return self.snapshot.vms[vm].host
        found: dict[Any, list[Truth]] = {}
        for station, here in zip(course.stations, self._stops(course), strict=True):
            for host, chosen in options_of(station.host).items():
                found.setdefault(host, []).append(self._circuit.all((here, chosen)))
        return one_of({host: self._circuit.any(some) for host, some in found.items()})

    def host_state(self, host: HostId) -> Any:
        """The state of a host."""
        course = self._timeline.switches.get(host)
        if course is None:
            return self.snapshot.hosts[host].state.value
        switched = self._circuit.all((course.leg.there, self.ended(course.leg)))
        return one_of({course.after.value: switched, course.before.value: -switched})

    def running(self, host: HostId) -> Any:
        """The VMs that run on a host."""
        return maybe(self._runners.get(host, {}))

    def hosted(self, host: HostId) -> Any:
        """The VMs that lie on a host, and those on their way to it."""
        found = {vm: [truth] for vm, truth in self._residents.get(host, {}).items()}
        for leg in self._timeline.arrivals.get(host, ()):
            assert leg.vm is not None
            coming = self._circuit.all((options_of(leg.target)[host], self._goes(leg)))
            found.setdefault(leg.vm, []).append(coming)
        return maybe({vm: self._circuit.any(truths) for vm, truths in found.items()})

    def consumption(self, vm: VmId, resource: str) -> Number:
        """What a VM takes of a resource."""
        course = self._timeline.courses.get(vm)
        if course is None or resource in (CPU, MEMORY):
            return consumption_of(self.snapshot.vms[vm], resource)
        name = ResourceName(resource)
        return total(
            (station.amounts.get(name, 0), here)
            for station, here in zip(course.stations, self._stops(course), strict=True)
        )

    def underway_on(self, vm: VmId) -> Any:
        """The actions under way on a VM."""
        course = self._timeline.courses.get(vm)
        legs = () if course is None else course.legs
        return maybe({leg: self._goes(leg) for leg in legs if leg.by_host is None})

    def underway_at(self, host: HostId) -> Any:
        """The actions under way that touch a host."""
        return maybe(
            {
                leg: self._circuit.all((self._goes(leg), touches))
                for leg, touches in self._timeline.touching(host)
            }
        )

    def actions_on(self, vm: VmId) -> Any:
        """The actions of the plan on a VM, whenever."""
        course = self._timeline.courses.get(vm)
        legs = () if course is None else course.legs
        return maybe_list((leg, leg.there) for leg in legs if leg.by_host is None)

    def actions_at(self, host: HostId) -> Any:
        """The actions of the plan that touch a host, whenever."""
        return maybe_list(
            (leg, self._circuit.all((leg.there, touches)))
            for leg, touches in self._timeline.touching(host)
        )

    # From courses to sets

    def _goes(self, leg: Leg) -> Truth:
        return self._circuit.all((leg.there, self.underway(leg)))

    def _stops(self, course: Course) -> list[Truth]:
        """Of each station, whether the VM is at it."""
        reached = [YES, *(self.ended(leg.by_host or leg) for leg in course.legs)]
        if course.legs and course.legs[0].by_host is not None:
            reached[1] = self._circuit.all((course.legs[0].there, reached[1]))
        return [
            self._circuit.all((now, -later))
            for now, later in zip(reached, [*reached[1:], NO], strict=True)
        ]

    @cached_property
    def _runners(self) -> Mapping[HostId, Members]:
        return self._by_host(lambda state: state is VmState.RUNNING)

    @cached_property
    def _residents(self) -> Mapping[HostId, Members]:
        return self._by_host(lambda _state: True)

    def _by_host(self, counts: Any) -> Mapping[HostId, Members]:
        found: dict[HostId, dict[VmId, list[Truth]]] = {}
        for vm in self.snapshot.vms.values():
            course = self._timeline.courses.get(vm.id)
            if course is None:
                if vm.host is not None and counts(vm.state):
                    found.setdefault(vm.host, {})[vm.id] = [YES]
                continue
            for station, here in zip(course.stations, self._stops(course), strict=True):
                if here == NO or not counts(station.state):
                    continue
                for host, chosen in options_of(station.host).items():
                    if host is not None:
                        truth = self._circuit.all((here, chosen))
                        found.setdefault(host, {}).setdefault(vm.id, []).append(truth)
        return {
            host: {vm: self._circuit.any(truths) for vm, truths in members.items()}
            for host, members in found.items()
        }


class Initial(Moment):
    """Before anything has happened."""

    def ended(self, leg: Leg) -> Truth:
        """Nothing has."""
        return NO

    def underway(self, leg: Leg) -> Truth:
        """Nothing is."""
        return NO


class Final(Moment):
    """After everything has happened."""

    def ended(self, leg: Leg) -> Truth:
        """Everything has."""
        return YES

    def underway(self, leg: Leg) -> Truth:
        """Nothing is any more."""
        return NO


class AfterEnds(Moment):
    """When a leg has ended, with all that end at the same time."""

    def __init__(self, timeline: Timeline, leg: Leg) -> None:
        super().__init__(timeline)
        self._at = leg.end
        self.known = ("ends", leg.end) if isinstance(leg.end, int) else None

    def ended(self, leg: Leg) -> Truth:
        """Whether an action has ended by then."""
        return self._circuit.at_most(leg.end - self._at, 0)

    def underway(self, leg: Leg) -> Truth:
        """Whether it has begun earlier, and goes on."""
        begun = self._circuit.at_most(leg.start - self._at, -1)
        return self._circuit.all((begun, -self.ended(leg)))


class AfterStarts(Moment):
    """When a leg has started, with all that start at the same time."""

    def __init__(self, timeline: Timeline, leg: Leg) -> None:
        super().__init__(timeline)
        self._at = leg.start
        self.known = ("starts", leg.start) if isinstance(leg.start, int) else None

    def ended(self, leg: Leg) -> Truth:
        """Whether an action has ended by then."""
        return self._circuit.at_most(leg.end - self._at, 0)

    def underway(self, leg: Leg) -> Truth:
        """Whether it has begun, and goes on."""
        begun = self._circuit.at_most(leg.start - self._at, 0)
        return self._circuit.all((begun, -self.ended(leg)))


def moments_of(timeline: Timeline, leg: Leg, *, starts: bool) -> Iterator[tuple[Moment, Truth]]:
    """The moments that a leg makes, with the truth that there are such moments."""
    yield AfterEnds(timeline, leg), leg.there
    if starts:
        yield AfterStarts(timeline, leg), leg.there
