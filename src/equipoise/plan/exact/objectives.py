"""What the planner minimises, as expressions over the timeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from equipoise.model.problem import ObjectiveMeasure
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId
from equipoise.plan.exact.solver import (
    FALSE,
    TRUE,
    IntExpression,
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
