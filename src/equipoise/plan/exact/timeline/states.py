"""The states of a timeline: the initial one, the final one, and those at the moments in between."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any

from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import VmState
from equipoise.plan.exact.solver import FALSE, TRUE, IntExpression, Literal, weighted_sum
from equipoise.plan.exact.timeline.schedules import CandidateAction, VmSchedule
from equipoise.plan.exact.timeline.timeline import Timeline
from equipoise.plan.exact.values import one_of, options_of, symbolic_list, symbolic_set
from equipoise.spec.evaluate.view import HOST_RESOURCES, consumption_of

Members = Mapping[VmId, Literal]


class TimelineState(ABC):
    """A state at one moment; the subclasses define which candidates have ended by then."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._builder = timeline.builder
        self.snapshot = timeline.snapshot
        self._hosts: dict[VmId, Any] = {}
        self._vm_states: dict[VmId, Any] = {}

    # What the kinds of moments define differently.

    known: Hashable = None
    """A key that is equal for equal moments, if the time is known before the search."""

    @abstractmethod
    def ended(self, candidate: CandidateAction) -> Literal:
        """Return whether an action has ended by then."""

    @abstractmethod
    def underway(self, candidate: CandidateAction) -> Literal:
        """Return whether an action is under way then."""

    # What a formula may read.

    def names(self, kind: str) -> frozenset[Any]:
        """Return the names of all VMs or of all hosts."""
        return self._timeline.names(kind)

    def vm_state(self, vm: VmId) -> Any:
        """Return the state of a VM."""
        if vm not in self._vm_states:
            self._vm_states[vm] = self._vm_state(vm)
        return self._vm_states[vm]

    def _vm_state(self, vm: VmId) -> Any:
        schedule = self._timeline.schedules.get(vm)
        if schedule is None:
            return self.snapshot.vms[vm].state.value
        states: dict[Any, list[Literal]] = {}
        for segment, here in zip(schedule.segments, self._segment_literals(schedule), strict=True):
            states.setdefault(segment.state.value, []).append(here)
        return one_of({state: self._builder.any(literals) for state, literals in states.items()})

    def vm_host(self, vm: VmId) -> Any:
        """Return the host of a VM."""
        if vm not in self._hosts:
            self._hosts[vm] = self._vm_host(vm)
        return self._hosts[vm]

    def _vm_host(self, vm: VmId) -> Any:
        schedule = self._timeline.schedules.get(vm)
        if schedule is None:
            return self.snapshot.vms[vm].host
        hosts: dict[Any, list[Literal]] = {}
        for segment, here in zip(schedule.segments, self._segment_literals(schedule), strict=True):
            for host, chosen in options_of(segment.host).items():
                hosts.setdefault(host, []).append(self._builder.all((here, chosen)))
        return one_of({host: self._builder.any(literals) for host, literals in hosts.items()})

    def host_state(self, host: HostId) -> Any:
        """Return the state of a host."""
        schedule = self._timeline.host_schedules.get(host)
        if schedule is None:
            return self.snapshot.hosts[host].state.value
        switched = self._builder.all((schedule.candidate.present, self.ended(schedule.candidate)))
        return one_of({schedule.after.value: switched, schedule.before.value: -switched})

    def running(self, host: HostId) -> Any:
        """Return the VMs that run on a host."""
        return symbolic_set(self._runners.get(host, {}))

    def hosted(self, host: HostId) -> Any:
        """Return the VMs that run or sleep on a host, and those on their way to it."""
        members = {vm: [literal] for vm, literal in self._residents.get(host, {}).items()}
        for candidate in self._timeline.arrivals.get(host, ()):
            assert candidate.vm is not None
            coming = self._builder.all(
                (options_of(candidate.target)[host], self._is_underway(candidate))
            )
            members.setdefault(candidate.vm, []).append(coming)
        return symbolic_set({vm: self._builder.any(literals) for vm, literals in members.items()})

    def consumption(self, vm: VmId, resource: str) -> IntExpression:
        """Return the amount of a resource that a VM takes."""
        schedule = self._timeline.schedules.get(vm)
        if schedule is None or resource in HOST_RESOURCES:
            return consumption_of(self.snapshot.vms[vm], resource)
        name = ResourceName(resource)
        return weighted_sum(
            (segment.amounts.get(name, 0), here)
            for segment, here in zip(
                schedule.segments, self._segment_literals(schedule), strict=True
            )
        )

    def underway_on(self, vm: VmId) -> Any:
        """Return the actions under way on a VM."""
        schedule = self._timeline.schedules.get(vm)
        candidates = () if schedule is None else schedule.candidates
        return symbolic_set(
            {
                candidate: self._is_underway(candidate)
                for candidate in candidates
                if candidate.by_host is None
            }
        )

    def underway_at(self, host: HostId) -> Any:
        """Return the actions under way that touch a host."""
        return symbolic_set(
            {
                candidate: self._builder.all((self._is_underway(candidate), touches))
                for candidate, touches in self._timeline.touching(host)
            }
        )

    def actions_on(self, vm: VmId) -> Any:
        """Return the actions of the plan on a VM, at any time."""
        schedule = self._timeline.schedules.get(vm)
        candidates = () if schedule is None else schedule.candidates
        return symbolic_list(
            (candidate, candidate.present) for candidate in candidates if candidate.by_host is None
        )

    def actions_at(self, host: HostId) -> Any:
        """Return the actions of the plan that touch a host, at any time."""
        return symbolic_list(
            (candidate, self._builder.all((candidate.present, touches)))
            for candidate, touches in self._timeline.touching(host)
        )

    # From schedules to sets.

    def _is_underway(self, candidate: CandidateAction) -> Literal:
        return self._builder.all((candidate.present, self.underway(candidate)))

    def _segment_literals(self, schedule: VmSchedule) -> list[Literal]:
        """Return for each segment whether the VM is in it."""
        # Segment k is reached when candidate k - 1 has ended; the VM is in the last reached one.
        reached = [
            TRUE,
            *(self.ended(candidate.by_host or candidate) for candidate in schedule.candidates),
        ]
        # A candidate of a VM that is outside the plan leads to an equal segment, so its presence
        # does not matter. An agent changes only if its host is really switched.
        if schedule.candidates and schedule.candidates[0].by_host is not None:
            reached[1] = self._builder.all((schedule.candidates[0].present, reached[1]))
        return [
            self._builder.all((now, -later))
            for now, later in zip(reached, [*reached[1:], FALSE], strict=True)
        ]

    @cached_property
    def _runners(self) -> Mapping[HostId, Members]:
        return self._by_host(lambda state: state is VmState.RUNNING)

    @cached_property
    def _residents(self) -> Mapping[HostId, Members]:
        return self._by_host(lambda _state: True)

    # One pass over all VMs serves every host; a pass for each host would be quadratic.
    def _by_host(self, counts: Any) -> Mapping[HostId, Members]:
        by_host: dict[HostId, dict[VmId, list[Literal]]] = {}
        for vm in self.snapshot.vms.values():
            schedule = self._timeline.schedules.get(vm.id)
            if schedule is None:
                if vm.host is not None and counts(vm.state):
                    by_host.setdefault(vm.host, {})[vm.id] = [TRUE]
                continue
            for segment, here in zip(
                schedule.segments, self._segment_literals(schedule), strict=True
            ):
                if here == FALSE or not counts(segment.state):
                    continue
                for host, chosen in options_of(segment.host).items():
                    if host is not None:
                        literal = self._builder.all((here, chosen))
                        by_host.setdefault(host, {}).setdefault(vm.id, []).append(literal)
        return {
            host: {vm: self._builder.any(literals) for vm, literals in members.items()}
            for host, members in by_host.items()
        }


class InitialState(TimelineState):
    """The state before the first action."""

    def ended(self, candidate: CandidateAction) -> Literal:
        """Return false: no action has ended."""
        return FALSE

    def underway(self, candidate: CandidateAction) -> Literal:
        """Return false: no action is under way."""
        return FALSE


class FinalState(TimelineState):
    """The state after the last action."""

    def ended(self, candidate: CandidateAction) -> Literal:
        """Return true: every action has ended."""
        return TRUE

    def underway(self, candidate: CandidateAction) -> Literal:
        """Return false: no action is under way."""
        return FALSE


class _StateInBetween(TimelineState):
    """The state after the ends or after the starts of one instant."""

    def __init__(self, timeline: Timeline, phase: str, at: IntExpression) -> None:
        super().__init__(timeline)
        self._at = at
        # The ends of an instant come before its starts: after the ends, an action that starts at
        # the same time has not begun.
        self._starts_before = -1 if phase == "ends" else 0
        self.known = (phase, at) if isinstance(at, int) else None

    def ended(self, candidate: CandidateAction) -> Literal:
        """Return whether an action has ended by then."""
        return self._builder.at_most(candidate.end - self._at, 0)

    def underway(self, candidate: CandidateAction) -> Literal:
        """Return whether an action has begun and not ended."""
        begun = self._builder.at_most(candidate.start - self._at, self._starts_before)
        return self._builder.all((begun, -self.ended(candidate)))


class StateAfterEnds(_StateInBetween):
    """The state after an action has ended, with all that end at the same time."""

    def __init__(self, timeline: Timeline, candidate: CandidateAction) -> None:
        super().__init__(timeline, "ends", candidate.end)


class StateAfterStarts(_StateInBetween):
    """The state after an action has started, with all that start at the same time."""

    def __init__(self, timeline: Timeline, candidate: CandidateAction) -> None:
        super().__init__(timeline, "starts", candidate.start)


def states_of(
    timeline: Timeline, candidate: CandidateAction, *, starts: bool
) -> Iterator[tuple[TimelineState, Literal]]:
    """Yield the moments that an action makes, with the literal that they exist."""
    yield StateAfterEnds(timeline, candidate), candidate.present
    if starts:
        yield StateAfterStarts(timeline, candidate), candidate.present
