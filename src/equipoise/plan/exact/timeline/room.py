"""Room: what the machines demand of a timeline besides its courses.

A VM that runs holds what is reserved for it, and what it takes of each resource: on a host it comes
to from the start of its coming on, on the one it leaves until it has left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from equipoise.model.host import Host, HostState
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.formula.values import options_of
from equipoise.plan.exact.solver.circuit import NO, Shape, Span, Truth, total
from equipoise.plan.exact.solver.number import Number
from equipoise.plan.exact.timeline.course import MOVES, Course, HostCourse, Leg, Station
from equipoise.plan.exact.timeline.timeline import Timeline, possible
from equipoise.spec.view import CPU, MEMORY, capacity_of, consumption_of


@dataclass(slots=True, eq=False)
class Stay:
    """A VM at a station: from the start of its coming to the end of its leaving."""

    vm: VmId
    needs: Mapping[str, int]
    start: Number
    end: Number
    arrives: Leg | None
    """The action by which it comes; nothing for those who were there from the beginning."""
    last: bool
    """Whether it stays for good."""
    shape: Shape | None = None
    """Its start, length and end, made once."""

    def coming(self, resource: str | None = None) -> Leg | None:
        """The action by which it comes to need a resource; who grows needs more of one only."""
        leg = self.arrives
        if leg is None or leg.kind is not ActionKind.ALLOCATE:
            return leg
        return leg if leg.resource == resource and not leg.shrinks else None


class Room:
    """Sees to it that there is room, for everybody and at all times."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._circuit = timeline.circuit
        self._snapshot = timeline.snapshot
        self._stays: dict[HostId, list[tuple[Stay, Truth]]] = {}
        self._lying: dict[HostId, list[tuple[Number | None, Truth]]] = {}
        self._fixed: dict[HostId, list[Vm]] = {}
        for vm in self._snapshot.vms.values():
            course = timeline.courses.get(vm.id)
            if course is not None and course.legs[0].by_host is None:
                self._note(vm, course)
            elif vm.host is not None:
                self._fixed.setdefault(vm.host, []).append(vm)

    def require(self, *, with_room: bool = True) -> None:
        """Say everything that must hold."""
        self._require_sources()
        for host in self._snapshot.hosts.values() if with_room else ():
            for resource in self._resources(host.id):
                self._require_room(host, resource)
        for course in self._timeline.switches.values():
            self._require_switch(course)
        self._require_pairs_apart()
        self._require_limits()

    # Stays

    def _note(self, vm: Vm, course: Course) -> None:
        for place, station in enumerate(course.stations):
            comes = course.legs[place - 1] if place else None
            leaves = course.legs[place] if place < len(course.legs) else None
            lies_until = None if leaves is None else leaves.end
            for host, truth in possible(station):
                self._lying.setdefault(host, []).append((lies_until, truth))
            if station.state is VmState.RUNNING:
                stay = self._stay(vm, station, comes, leaves)
                for host, truth in possible(station):
                    self._stays.setdefault(host, []).append((stay, truth))

    def _stay(self, vm: Vm, station: Station, comes: Leg | None, leaves: Leg | None) -> Stay:
        start: Number = 0
        if comes is not None:
            start = comes.end if comes.shrinks else comes.start
        end: Number = self._timeline.horizon
        if leaves is not None:  # one that grows has its new share from the start of that on
            grows = leaves.kind is ActionKind.ALLOCATE and not leaves.shrinks
            end = leaves.start if grows else leaves.end
        needs: dict[str, int] = {CPU: vm.cpu.reservation_mhz, MEMORY: vm.memory.reservation_mib}
        needs.update((str(name), amount) for name, amount in station.amounts.items())
        return Stay(vm.id, needs, start, end, comes, leaves is None)

    def _resources(self, host: HostId) -> Iterable[str]:
        found: dict[str, None] = {}
        for stay, _ in self._stays.get(host, ()):
            found.update((name, None) for name, need in stay.needs.items() if need)
        return found

    def _held_for_good(self, host: HostId, resource: str) -> int:
        """What those hold who neither come nor go; an agent holds its share while it sleeps."""
        fixed = self._fixed.get(host, ())
        return sum(consumption_of(vm, resource) for vm in fixed if _holds(vm))

    # Room

    def _require_room(self, host: Host, resource: str) -> None:
        stays = [one for one in self._stays[host.id] if one[0].needs.get(resource)]
        free = capacity_of(host, resource) - self._held_for_good(host.id, resource)
        if all(stay.coming(resource) is None for stay, _ in stays):
            return  # who only leaves needs none
        at_first = sum(stay.needs[resource] for stay, _ in stays if stay.arrives is None)
        fits_from: Number | None = None
        if at_first > free:  # it is too full now, and nobody comes before enough have left
            fits_from = self._circuit.number(0, self._timeline.horizon)
        elif sum(stay.needs[resource] for stay, _ in stays) <= free:
            return
        else:
            final = total((stay.needs[resource], truth) for stay, truth in stays if stay.last)
            self._circuit.require_at_most(final, free)
        spans: list[Span] = []
        for stay, truth in stays:
            need = stay.needs[resource]
            comes = stay.coming(resource)
            if fits_from is not None and comes is not None:
                given = (truth, comes.there)
                self._circuit.require_at_most(fits_from - stay.start, 0, given)
            if need > free:
                self._leave_alone(fits_from, stay, truth, comes)
                continue
            shape = self._shape(stay) if fits_from is None else self._clipped(stay, fits_from)
            spans.append((shape, truth, need))
        self._circuit.require_in_turn(spans, max(0, free))

    def _leave_alone(
        self, fits_from: Number | None, stay: Stay, truth: Truth, comes: Leg | None
    ) -> None:
        """One who is larger than what others leave cannot come, and is gone before others do."""
        if comes is not None:
            self._circuit.require(NO, (truth, comes.there))
        if fits_from is not None:
            self._circuit.require_at_most(stay.end - fits_from, 0, (truth,))

    def _shape(self, stay: Stay) -> Shape:
        if stay.shape is None:
            circuit = self._circuit
            size = stay.end - stay.start
            if not isinstance(size, int):
                size = circuit.number(0, self._timeline.horizon)
                circuit.require_equal(size, stay.end - stay.start)
            stay.shape = (stay.start, size, stay.end)
        return stay.shape

    def _clipped(self, stay: Stay, fits_from: Number) -> Shape:
        """The part of a stay from when on the host is no longer too full."""
        circuit = self._circuit
        start, size, end = (circuit.number(0, self._timeline.horizon) for _ in range(3))
        later = circuit.truth()  # from the later of the two on
        circuit.require_at_most(start - fits_from, 0, (-later,))
        circuit.require_at_most(start - stay.start, 0, (later,))
        circuit.require_at_most(stay.end - end, 0)
        circuit.require_equal(end, start + size)
        return start, size, end

    # Switching hosts

    def _require_sources(self) -> None:
        """Nobody leaves a host that is not on, and will not be."""
        for leg in self._timeline.legs():
            if leg.kind in MOVES or leg.kind is ActionKind.RESUME:
                for host, truth in options_of(leg.source).items():
                    off = self._snapshot.hosts[host].state is not HostState.ON
                    if off and host not in self._timeline.switches:
                        self._circuit.require(NO, (leg.there, truth))

    def _require_switch(self, course: HostCourse) -> None:
        leg = course.leg
        if course.after is HostState.ON:
            self._require_awake(course)
            return
        for vm in self._fixed.get(course.host, ()):
            if not vm.agent:
                self._circuit.require(-leg.there)
        for leaves, truth in self._lying.get(course.host, ()):
            if leaves is None:
                self._circuit.require(NO, (leg.there, truth))
            else:
                self._circuit.require_at_most(leaves - leg.start, 0, (leg.there, truth))

    def _require_awake(self, course: HostCourse) -> None:
        leg = course.leg
        for other, touches in self._timeline.touching(course.host):
            if other is not leg:
                self._circuit.require(leg.there, (other.there, touches))
                self._circuit.require_at_most(leg.end - other.start, 0, (other.there, touches))
        for vm in self._sleepers(course.host):  # what names no host must not coincide either
            for other in self._timeline.courses[vm.id].legs:
                if other.kind is ActionKind.KILL:
                    before = self._circuit.at_most(other.end - leg.start, 0)
                    after = self._circuit.at_most(leg.end - other.start, 0)
                    self._circuit.require(self._circuit.any((before, after)), (leg.there,))

    def _sleepers(self, host: HostId) -> Iterator[Vm]:
        for vm in self._snapshot.residents[host]:
            if vm in self._timeline.courses and not self._snapshot.vms[vm].agent:
                yield self._snapshot.vms[vm]

    # The rest

    def _require_pairs_apart(self) -> None:
        """The halves of a fault-tolerant pair are never on one host, not even for a moment."""
        for host, stays in self._stays.items():
            by_vm: dict[VmId, list[tuple[Stay, Truth]]] = {}
            for stay, truth in stays:
                by_vm.setdefault(stay.vm, []).append((stay, truth))
            fixed = {vm.id for vm in self._fixed.get(host, ()) if _holds(vm)}
            for vm, own in by_vm.items():
                other = self._snapshot.vms[vm].ft_pair
                if other is None:
                    continue
                if other in fixed:
                    self._keep_off(own)
                elif vm < other:
                    self._keep_apart(own, by_vm.get(other, []))

    def _keep_off(self, stays: Iterable[tuple[Stay, Truth]]) -> None:
        for stay, truth in stays:
            self._circuit.require(NO, (truth, _comes(stay)))

    def _keep_apart(
        self, stays: list[tuple[Stay, Truth]], others: list[tuple[Stay, Truth]]
    ) -> None:
        for one, here in stays:
            for other, there in others:
                # If they were together before, that is not the plan's doing.
                comes = self._circuit.any((_comes(one), _comes(other)))
                before = self._circuit.at_most(one.end - other.start, 0)
                after = self._circuit.at_most(other.end - one.start, 0)
                self._circuit.require(self._circuit.any((before, after)), (here, there, comes))

    def _require_limits(self) -> None:
        limits = self._snapshot.settings.limits
        legs = list(self._timeline.legs())
        if len(legs) > limits.actions_total:
            self._limit([(leg, leg.there) for leg in legs], limits.actions_total)
        for host in self._snapshot.hosts:
            touching = self._timeline.touching(host)
            if len(touching) > limits.actions_per_host:
                truths = [(leg, self._circuit.all((leg.there, one))) for leg, one in touching]
                self._limit(truths, limits.actions_per_host)

    def _limit(self, legs: list[tuple[Leg, Truth]], most: int) -> None:
        spans = [(self._timeline.shape(leg), truth, 1) for leg, truth in legs if truth != NO]
        self._circuit.require_in_turn(spans, most)


def _holds(vm: Vm) -> bool:
    """Whether a VM holds room where it is: an agent does even while it sleeps."""
    return vm.state is VmState.RUNNING or vm.agent


def _comes(stay: Stay) -> Truth:
    """Whether it really comes: one who has not moved was there already."""
    leg = stay.coming()
    return NO if leg is None else leg.there
