"""What hosts and links allow: capacity, host switching, fault-tolerant pairs, limits and traffic.

A running VM holds its size, its reservation and its resources on the target from the start of its
arrival, and on the source until it has left. Migrations share what links and switches carry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from equipoise.capacity.ledger import NO_LIMIT, RESOURCES, Claim, host_limits, vm_claim
from equipoise.model.host import Host, HostState
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.solver import (
    FALSE,
    Interval,
    IntExpression,
    Literal,
    OptionalUse,
    weighted_sum,
)
from equipoise.plan.exact.timeline.schedules import (
    MOVE_KINDS,
    CandidateAction,
    HostSchedule,
    Lane,
    Route,
    Routes,
    VmSchedule,
    VmSegment,
)
from equipoise.plan.exact.timeline.timeline import Timeline, possible_hosts
from equipoise.plan.exact.values import options_of


@dataclass(slots=True, eq=False)
class Occupancy:
    """A VM on a host: from the start of its arrival to the end of its leaving."""

    vm: VmId
    needs: Mapping[str, int]
    start: IntExpression
    end: IntExpression
    arrival: CandidateAction | None
    """The action by which it arrives; ``None`` for a VM that is there from the beginning."""
    last: bool
    """Whether it stays until the end of the plan."""
    shape: Interval | None = None
    """Its start, size and end, computed once."""

    def arrival_of(self, resource: str | None = None) -> CandidateAction | None:
        """Return the action by which it needs a resource; an allocation needs only its own one."""
        candidate = self.arrival
        if candidate is None or candidate.kind is not ActionKind.ALLOCATE:
            return candidate
        return candidate if candidate.resource == resource and not candidate.shrinks else None


class HostConstraints:
    """Adds the constraints of hosts: capacity, switching, fault-tolerant pairs and limits."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._builder = timeline.builder
        self._snapshot = timeline.snapshot
        self._occupancies: dict[HostId, list[tuple[Occupancy, Literal]]] = {}
        self._resident_until: dict[HostId, list[tuple[IntExpression | None, Literal]]] = {}
        self._fixed: dict[HostId, list[Vm]] = {}
        self._permanent: dict[HostId, list[Claim]] = {}
        for vm in self._snapshot.vms.values():
            schedule = timeline.schedules.get(vm.id)
            # An agent follows its host and never moves: it counts among the fixed VMs.
            if schedule is not None and schedule.candidates[0].by_host is None:
                self._note(vm, schedule)
            elif vm.host is not None:
                self._fixed.setdefault(vm.host, []).append(vm)

    def require(self, *, with_capacity: bool = True) -> None:
        """Add all constraints."""
        self._require_sources()
        for host in self._snapshot.hosts.values() if with_capacity else ():
            limits = host_limits(host)
            for resource in self._resources(host.id):
                limit = limits.get(resource, 0)
                if limit < NO_LIMIT:
                    self._require_capacity(host, resource, limit)
        for schedule in self._timeline.host_schedules.values():
            self._require_switch(schedule)
        self._require_pairs_apart()
        self._require_limits()

    # Occupancies

    def _note(self, vm: Vm, schedule: VmSchedule) -> None:
        for index, segment in enumerate(schedule.segments):
            comes = schedule.candidates[index - 1] if index else None
            leaves = schedule.candidates[index] if index < len(schedule.candidates) else None
            resident_until = None if leaves is None else leaves.end
            for host, literal in possible_hosts(segment):
                self._resident_until.setdefault(host, []).append((resident_until, literal))
            if segment.state is VmState.RUNNING:
                occupancy = self._occupancy(vm, segment, comes, leaves)
                for host, literal in possible_hosts(segment):
                    self._occupancies.setdefault(host, []).append((occupancy, literal))

    def _occupancy(
        self,
        vm: Vm,
        segment: VmSegment,
        comes: CandidateAction | None,
        leaves: CandidateAction | None,
    ) -> Occupancy:
        # A migrating VM holds its claim on both hosts: on the target from the start of the
        # migration, on the source until its end. A shrinking VM frees its amount at the end.
        start: IntExpression = 0
        if comes is not None:
            start = comes.end if comes.shrinks else comes.start
        end: IntExpression = self._timeline.horizon
        if leaves is not None:  # a growing VM holds its new amount from the start of the action
            grows = leaves.kind is ActionKind.ALLOCATE and not leaves.shrinks
            end = leaves.start if grows else leaves.end
        needs = {resource.label: resource.of_vm(vm) for resource in RESOURCES}
        needs.update((str(name), amount) for name, amount in segment.amounts.items())
        return Occupancy(vm.id, needs, start, end, comes, leaves is None)

    def _resources(self, host: HostId) -> Iterable[str]:
        resources: dict[str, None] = {}
        for occupancy, _ in self._occupancies.get(host, ()):
            resources.update((name, None) for name, need in occupancy.needs.items() if need)
        return resources

    def _permanent_use(self, host: HostId, resource: str) -> int:
        """Return the use of VMs that neither arrive nor leave; a sleeping agent keeps its share."""
        claims = self._permanent.get(host)
        if claims is None:
            fixed = self._fixed.get(host, ())
            claims = [vm_claim(vm) for vm in fixed if _holds_capacity(vm)]
            self._permanent[host] = claims
        return sum(claim.get(resource, 0) for claim in claims)

    # Capacity

    def _require_capacity(self, host: Host, resource: str, limit: int) -> None:
        occupancies = [
            (occupancy, literal)
            for occupancy, literal in self._occupancies[host.id]
            if occupancy.needs.get(resource)
        ]
        # VMs that stay for the whole plan reduce the capacity; they need no interval.
        free = limit - self._permanent_use(host.id, resource)
        if all(occupancy.arrival_of(resource) is None for occupancy, _ in occupancies):
            return  # a host that VMs only leave needs no constraint
        at_first = sum(
            occupancy.needs[resource] for occupancy, _ in occupancies if occupancy.arrival is None
        )
        fits_from: IntExpression | None = None
        if at_first > free:  # overfull now: no VM arrives before enough VMs have left
            fits_from = self._builder.number(0, self._timeline.horizon)
        elif sum(occupancy.needs[resource] for occupancy, _ in occupancies) <= free:
            return
        else:
            # The final state must fit in any case; this linear bound helps the solver.
            final = weighted_sum(
                (occupancy.needs[resource], literal)
                for occupancy, literal in occupancies
                if occupancy.last
            )
            self._builder.require_at_most(final, free)
        # One optional interval for each possible stay; the capacity holds at every time.
        spans: list[OptionalUse] = []
        for occupancy, literal in occupancies:
            need = occupancy.needs[resource]
            comes = occupancy.arrival_of(resource)
            if fits_from is not None and comes is not None:
                given = (literal, comes.present)
                self._builder.require_at_most(fits_from - occupancy.start, 0, given)
            if need > free:
                self._leave_alone(fits_from, occupancy, literal, comes)
                continue
            shape = (
                self._shape(occupancy) if fits_from is None else self._clipped(occupancy, fits_from)
            )
            spans.append((shape, literal, need))
        self._builder.require_cumulative(spans, max(0, free))

    def _leave_alone(
        self,
        fits_from: IntExpression | None,
        occupancy: Occupancy,
        literal: Literal,
        comes: CandidateAction | None,
    ) -> None:
        """Exclude the arrival of a VM that never fits, and require its leaving before arrivals."""
        if comes is not None:
            self._builder.require(FALSE, (literal, comes.present))
        if fits_from is not None:
            self._builder.require_at_most(occupancy.end - fits_from, 0, (literal,))

    def _shape(self, occupancy: Occupancy) -> Interval:
        if occupancy.shape is None:
            builder = self._builder
            size = occupancy.end - occupancy.start
            if not isinstance(size, int):
                size = builder.number(0, self._timeline.horizon)
                builder.require_equal(size, occupancy.end - occupancy.start)
            occupancy.shape = (occupancy.start, size, occupancy.end)
        return occupancy.shape

    def _clipped(self, occupancy: Occupancy, fits_from: IntExpression) -> Interval:
        """Return the part of an occupancy after the host is no longer overfull."""
        builder = self._builder
        # The interval must cover that part and may be longer. A longer one only takes capacity, so
        # no plan is lost.
        start, size, end = (builder.number(0, self._timeline.horizon) for _ in range(3))
        later = builder.literal()  # whether the occupancy starts later than the host fits
        builder.require_at_most(start - fits_from, 0, (-later,))
        builder.require_at_most(start - occupancy.start, 0, (later,))
        builder.require_at_most(occupancy.end - end, 0)
        builder.require_equal(end, start + size)
        return start, size, end

    # Switching hosts

    def _require_sources(self) -> None:
        """Exclude actions whose source is not on and is never switched on."""
        for candidate in self._timeline.candidates():
            if candidate.kind in MOVE_KINDS or candidate.kind is ActionKind.RESUME:
                for host, literal in options_of(candidate.source).items():
                    off = self._snapshot.hosts[host].state is not HostState.ON
                    if off and host not in self._timeline.host_schedules:
                        self._builder.require(FALSE, (candidate.present, literal))

    def _require_switch(self, schedule: HostSchedule) -> None:
        candidate = schedule.candidate
        if schedule.after is HostState.ON:
            self._require_powered_on(schedule)
            return
        for vm in self._fixed.get(schedule.host, ()):
            if not vm.agent:
                self._builder.require(-candidate.present)
        for leaves, literal in self._resident_until.get(schedule.host, ()):
            if leaves is None:
                self._builder.require(FALSE, (candidate.present, literal))
            else:
                self._builder.require_at_most(
                    leaves - candidate.start, 0, (candidate.present, literal)
                )

    def _require_powered_on(self, schedule: HostSchedule) -> None:
        candidate = schedule.candidate
        for other, touches in self._timeline.touching(schedule.host):
            if other is not candidate:
                self._builder.require(candidate.present, (other.present, touches))
                self._builder.require_at_most(
                    candidate.end - other.start, 0, (other.present, touches)
                )
        for vm in self._sleeping_vms(schedule.host):  # a kill names no host, but must not overlap
            for other in self._timeline.schedules[vm.id].candidates:
                if other.kind is ActionKind.KILL:
                    before = self._builder.at_most(other.end - candidate.start, 0)
                    after = self._builder.at_most(candidate.end - other.start, 0)
                    self._builder.require(self._builder.any((before, after)), (candidate.present,))

    def _sleeping_vms(self, host: HostId) -> Iterator[Vm]:
        for vm in self._snapshot.residents[host]:
            if vm in self._timeline.schedules and not self._snapshot.vms[vm].agent:
                yield self._snapshot.vms[vm]

    # Pairs and limits

    def _require_pairs_apart(self) -> None:
        """Keep the two VMs of a fault-tolerant pair on different hosts at every moment."""
        for host, occupancies in self._occupancies.items():
            by_vm: dict[VmId, list[tuple[Occupancy, Literal]]] = {}
            for occupancy, literal in occupancies:
                by_vm.setdefault(occupancy.vm, []).append((occupancy, literal))
            fixed = {vm.id for vm in self._fixed.get(host, ()) if _holds_capacity(vm)}
            for vm, own in by_vm.items():
                other = self._snapshot.vms[vm].ft_pair
                if other is None:
                    continue
                if other in fixed:
                    self._keep_off(own)
                # Each pair once.
                elif vm < other:
                    self._keep_apart(own, by_vm.get(other, []))

    def _keep_off(self, occupancies: Iterable[tuple[Occupancy, Literal]]) -> None:
        for occupancy, literal in occupancies:
            self._builder.require(FALSE, (literal, _arrives(occupancy)))

    def _keep_apart(
        self, occupancies: list[tuple[Occupancy, Literal]], others: list[tuple[Occupancy, Literal]]
    ) -> None:
        for occupancy, here in occupancies:
            for other, at_other in others:
                # A pair that is together from the beginning is not the fault of the plan.
                arrives = self._builder.any((_arrives(occupancy), _arrives(other)))
                before = self._builder.at_most(occupancy.end - other.start, 0)
                after = self._builder.at_most(other.end - occupancy.start, 0)
                self._builder.require(self._builder.any((before, after)), (here, at_other, arrives))

    def _require_limits(self) -> None:
        limits = self._snapshot.settings.limits
        candidates = list(self._timeline.candidates())
        if len(candidates) > limits.actions_total:
            self._limit(
                [(candidate, candidate.present) for candidate in candidates], limits.actions_total
            )
        for host in self._snapshot.hosts:
            touching = self._timeline.touching(host)
            if len(touching) > limits.actions_per_host:
                literals = [
                    (candidate, self._builder.all((candidate.present, touches)))
                    for candidate, touches in touching
                ]
                self._limit(literals, limits.actions_per_host)

    def _limit(self, candidates: list[tuple[CandidateAction, Literal]], most: int) -> None:
        spans = [
            (self._timeline.shape(candidate), literal, 1)
            for candidate, literal in candidates
            if literal != FALSE
        ]
        self._builder.require_cumulative(spans, most)


def _holds_capacity(vm: Vm) -> bool:
    """Whether a VM holds capacity on its host: an agent does even while it sleeps."""
    return vm.state is VmState.RUNNING or vm.agent


def _arrives(occupancy: Occupancy) -> Literal:
    """Return the literal that a VM really arrives: a VM that has not moved was there already."""
    candidate = occupancy.arrival_of()
    return FALSE if candidate is None else candidate.present


class NetworkConstraints:
    """Adds the constraints of the network: no lane carries more than its bandwidth."""

    def __init__(self, timeline: Timeline, routes: Routes) -> None:
        self._timeline = timeline
        self._builder = timeline.builder
        self._routes = routes
        self._on: dict[Lane, dict[CandidateAction, dict[int, list[Literal]]]] = {}

    def require(self) -> None:
        """Add all constraints."""
        for candidate in self._timeline.candidates():
            if candidate.kind is ActionKind.MIGRATE:
                for route, literal in self._routes_of(candidate):
                    self._note(candidate, route, literal)
        for lane, candidates in self._on.items():
            self._require_lane(lane, candidates)

    def _routes_of(self, candidate: CandidateAction) -> Iterator[tuple[Route, Literal]]:
        """Yield the routes that a migration may take; exclude targets without a route."""
        for source, here in options_of(candidate.source).items():
            for target, there in options_of(candidate.target).items():
                if source == target:
                    continue
                literal = self._builder.all((candidate.present, here, there))
                route = self._routes.between(source, target)
                if route is None:
                    self._builder.require(-literal)
                elif literal != FALSE:
                    yield route, literal

    def _note(self, candidate: CandidateAction, route: Route, literal: Literal) -> None:
        for lane in route.lanes:
            self._on.setdefault(lane, {}).setdefault(candidate, {}).setdefault(
                route.mbps, []
            ).append(literal)

    def _require_lane(
        self, lane: Lane, candidates: dict[CandidateAction, dict[int, list[Literal]]]
    ) -> None:
        capacity = self._routes.capacity[lane]
        # All migrations together fit on the lane: most lanes need no constraint.
        if sum(max(by_need) for by_need in candidates.values()) <= capacity:
            return
        spans: list[OptionalUse] = []
        for candidate, by_need in candidates.items():
            shape = self._timeline.shape(candidate)
            for need, literals in by_need.items():
                spans.append((shape, self._builder.any(literals), need))
        self._builder.require_cumulative(spans, capacity)
