"""What the planner minimises, as expressions over the timeline; and the load of hosts.

The load is the demand that limits let VMs use. After all goals of a problem, first no host should
be overloaded in the final state, or all together as little as possible; then less loaded hosts are
preferred. Without any demand there is no such goal, and a model has nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from equipoise.capacity.overload import DEMANDED
from equipoise.model.action import HOST_TRANSITIONS, HostAction, Kill, RoleAction, vm_transition
from equipoise.model.host import HostState
from equipoise.model.plan import Plan
from equipoise.model.problem import ObjectiveMeasure
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.plan.exact.solver import (
    FALSE,
    TRUE,
    IntExpression,
    LinearSum,
    Literal,
    as_number,
    weighted_sum,
)
from equipoise.plan.exact.timeline.schedules import MOVE_KINDS
from equipoise.plan.exact.timeline.states import FinalState
from equipoise.plan.exact.timeline.timeline import Timeline
from equipoise.plan.exact.values import elements_of, options_of
from equipoise.spec.evaluate.view import CPU, MEMORY, capacity_of

SCALE: Final = 1000
"""Shares are counted in thousandths: the solver computes with whole numbers."""


def goal_expression(timeline: Timeline, weights: Mapping[ObjectiveMeasure, int]) -> IntExpression:
    """Return the weighted sum of some measures."""
    total: IntExpression = 0
    for measure, weight in weights.items():
        total = total + _MEASURES[measure](timeline) * weight
    return total


def _mttr(timeline: Timeline) -> IntExpression:
    """Return the sum of the ends of all actions; an action outside the plan has no end."""
    total: IntExpression = 0
    for candidate in timeline.candidates():
        total = total + _end_if_present(timeline, candidate.end, candidate.present)
    return total * timeline.unit_ms


def _end_if_present(timeline: Timeline, end: IntExpression, present: Literal) -> IntExpression:
    least, _ = timeline.builder.bounds(as_number(present))
    if least == 1:
        return end
    # A product of a literal and a number is not linear: a helper variable takes the end.
    counted = timeline.builder.number(0, timeline.horizon)
    timeline.builder.require_at_most(end - counted, 0, (present,))
    return counted


def _migrations(timeline: Timeline) -> IntExpression:
    return weighted_sum(
        (1, candidate.present)
        for candidate in timeline.candidates()
        if candidate.kind in MOVE_KINDS
    )


def _moved_memory(timeline: Timeline) -> IntExpression:
    vms = timeline.snapshot.vms
    return weighted_sum(
        (vms[candidate.vm].memory_mib, candidate.present)
        for candidate in timeline.candidates()
        if candidate.kind is ActionKind.MIGRATE and candidate.vm is not None
    )


def _makespan(timeline: Timeline) -> IntExpression:
    latest = timeline.builder.number(0, timeline.horizon)
    for candidate in timeline.candidates():
        timeline.builder.require_at_most(candidate.end - latest, 0, (candidate.present,))
    return latest * timeline.unit_ms


def _hosts_used(timeline: Timeline) -> IntExpression:
    final = FinalState(timeline)
    running = (
        [literal for _, literal in elements_of(final.running(host))]
        for host in timeline.snapshot.hosts
    )
    return weighted_sum((1, timeline.builder.any(literals)) for literals in running)


def _energy(timeline: Timeline) -> IntExpression:
    """Return milliwatts: the idle power of hosts that are on, and more for reserved CPU."""
    final = FinalState(timeline)
    total: IntExpression = 0
    for host in timeline.snapshot.hosts.values():
        is_on = options_of(final.host_state(host.id)).get("on", FALSE)
        power = host.power
        standby = power.standby_watts * SCALE
        total = total + standby + as_number(is_on) * (power.curve[0] * SCALE - standby)
        span = (power.curve[-1] - power.curve[0]) * SCALE
        usable_mhz = max(1, host.usable_cpu_mhz)
        total = total + weighted_sum(
            # Rounded down for each VM: the sum is less than a milliwatt per VM too low.
            (span * timeline.snapshot.vms[vm].cpu.reservation_mhz // usable_mhz, literal)
            for vm, literal in elements_of(final.running(host.id))
        )
    return total


def _imbalance(timeline: Timeline) -> IntExpression:
    """Return the largest used share of a resource on a host."""
    final, builder = FinalState(timeline), timeline.builder
    named = {name for vm in timeline.snapshot.vms.values() for name in vm.consumption}
    named |= {name for amounts in timeline.task.amounts.values() for name in amounts}
    uses = [
        (SCALE * _resource_use(final, host.id, resource), capacity_of(host, resource))
        for host in timeline.snapshot.hosts.values()
        for resource in (CPU, MEMORY, *sorted(named))
    ]
    shares = [(used, capacity) for used, capacity in uses if capacity > 0]
    most = max((-(-builder.bounds(used)[1] // capacity) for used, capacity in shares), default=0)
    fullest = builder.number(0, most)
    for used, capacity in shares:
        # Only a lower bound of ``fullest``; the minimisation presses it down to the largest share.
        builder.require_at_most(used - fullest * capacity, 0)
    return fullest


def _resource_use(final: FinalState, host: HostId, resource: str) -> IntExpression:
    """Return the final use of a resource on a host; a sleeping agent keeps its share."""
    vms = final.snapshot.vms
    members = dict(elements_of(final.running(host)))
    members.update((vm, TRUE) for vm in final.snapshot.residents[host] if vms[vm].agent)
    total: IntExpression = 0
    for vm, literal in members.items():
        amount = final.consumption(vm, resource)
        assert isinstance(amount, int), "the final consumption of a VM is known"
        total = total + as_number(literal) * amount
    return total


_MEASURES: Final[Mapping[ObjectiveMeasure, Callable[[Timeline], IntExpression]]] = {
    ObjectiveMeasure.MTTR: _mttr,
    ObjectiveMeasure.MIGRATIONS: _migrations,
    ObjectiveMeasure.MOVED_MEMORY: _moved_memory,
    ObjectiveMeasure.MAKESPAN: _makespan,
    ObjectiveMeasure.HOSTS_USED: _hosts_used,
    ObjectiveMeasure.ENERGY: _energy,
    ObjectiveMeasure.IMBALANCE: _imbalance,
}


# The load of hosts

TANGENTS: Final = (0, 250, 500, 700, 850, 1000)
"""The loads, in thousandths, at which tangents approximate the square of the load."""
Demands = Mapping[VmId, tuple[int, int]]


class HostDemand(NamedTuple):
    """The final demand for one resource on a host, and what the host has of it."""

    host: HostId
    column: int
    """The resource, by its place in ``DEMANDED``."""
    demand: IntExpression
    capacity: int


def host_demands(timeline: Timeline, demands: Demands) -> Iterator[HostDemand]:
    """Yield the final demand on each host that the plan can change."""
    final = FinalState(timeline)
    for host in timeline.snapshot.hosts.values():
        members = list(elements_of(final.running(host.id)))
        for column, resource in enumerate(DEMANDED):
            uses: list[tuple[int, Literal]] = [
                (demands[vm][column], literal) for vm, literal in members if vm in demands
            ]
            demand = weighted_sum(uses)
            if isinstance(demand, LinearSum):
                yield HostDemand(host.id, column, demand, max(1, resource.of_host(host)))


def overload_goal(timeline: Timeline, changing: Sequence[HostDemand]) -> IntExpression:
    """Return the overload of the hosts that the plan can change, in thousandths of a host."""
    builder = timeline.builder
    total: IntExpression = 0
    for _, _, demand, capacity in changing:
        most = builder.bounds(demand)[1]
        if most > capacity:
            # Rounded up, so that it is zero only without overload.
            excess = builder.number(0, -(-(most - capacity) * SCALE // capacity))
            builder.require_at_most((demand + -capacity) * SCALE - excess * capacity, 0)
            total = total + excess
    return total


def unevenness_goal(timeline: Timeline, changing: Sequence[HostDemand]) -> IntExpression:
    """Return the sum of the squares of the loads, from below by tangents.

    With squares, a VM goes to the less loaded of two equal hosts.
    """
    builder = timeline.builder
    total: IntExpression = 0
    for _, _, demand, capacity in changing:
        most = -(-builder.bounds(demand)[1] * SCALE // capacity)
        # In thousandths of the square of a full load.
        square = builder.number(0, 2 * most + most * most // SCALE + 1)
        for at in TANGENTS:
            tangent = demand * (2 * at) + -(at * at * capacity // SCALE)
            builder.require_at_most(tangent - square * capacity, 0)
        total = total + square
    return total


class HostLoad(NamedTuple):
    """The demand on a host before and after a plan: MHz and MiB, and what the host has."""

    host: HostId
    before: tuple[int, ...]
    after: tuple[int, ...]
    capacity: tuple[int, ...]

    @property
    def fullness(self) -> float:
        """The highest load of a resource, before or after."""
        return max(
            amount / max(1, limit)
            for amounts in (self.before, self.after)
            for amount, limit in zip(amounts, self.capacity, strict=True)
        )

    def overload(self, column: int) -> int:
        """Return the overload of a resource after the plan, in thousandths of the host."""
        limit = max(1, self.capacity[column])
        return -(-max(0, self.after[column] - limit) * SCALE // limit)


def host_loads(snapshot: Snapshot, plan: Plan, demands: Demands) -> list[HostLoad]:
    """Return the demand on each host before and after a plan; empty if no VM demands anything."""
    if not demands:
        return []
    states: dict[VmId, VmState] = {}
    places: dict[VmId, HostId | None] = {}
    on = {host.id: host.state is HostState.ON for host in snapshot.hosts.values()}
    for step in sorted(plan.steps, key=lambda step: (step.end_ms, step.start_ms)):
        action = step.action
        if isinstance(action, HostAction):
            on[action.host] = HOST_TRANSITIONS[type(action)][1] is HostState.ON
        elif isinstance(action, Kill):
            states[action.vm], places[action.vm] = VmState.TERMINATED, None
        elif not isinstance(action, RoleAction) and (change := vm_transition(action)) is not None:
            states[action.vm], places[action.vm] = change.state_after, change.host_after
    before = _sums(snapshot, _running(snapshot, {}, {}), demands)
    after_places = _running(snapshot, states, places)
    # An agent runs exactly while its host is on.
    for vm in demands:
        agent = snapshot.vms[vm]
        if agent.agent and agent.host is not None:
            after_places[vm] = agent.host if on[agent.host] else None
    after = _sums(snapshot, after_places, demands)
    return [
        HostLoad(
            host.id,
            tuple(before[host.id]),
            tuple(after[host.id]),
            tuple(resource.of_host(host) for resource in DEMANDED),
        )
        for host in snapshot.hosts.values()
    ]


def _running(
    snapshot: Snapshot,
    states: Mapping[VmId, VmState],
    places: Mapping[VmId, HostId | None],
) -> dict[VmId, HostId | None]:
    """Return the host of each VM that runs, after the given changes."""
    return {
        vm.id: places.get(vm.id, vm.host)
        for vm in snapshot.vms.values()
        if states.get(vm.id, vm.state) is VmState.RUNNING
    }


def _sums(
    snapshot: Snapshot, places: Mapping[VmId, HostId | None], demands: Demands
) -> dict[HostId, list[int]]:
    sums = {host: [0] * len(DEMANDED) for host in snapshot.hosts}
    for vm, amounts in demands.items():
        host = places.get(vm)
        if host is not None:
            for column, amount in enumerate(amounts):
                sums[host][column] += amount
    return sums


def total_overload(
    loads: Iterable[HostLoad], among: Collection[tuple[HostId, int]] | None = None
) -> int:
    """Return the overload after a plan; with ``among``, only of these resources of hosts."""
    return sum(
        load.overload(column)
        for load in loads
        for column in range(len(DEMANDED))
        if among is None or (load.host, column) in among
    )
