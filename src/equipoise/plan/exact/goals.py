"""What is to be as small as possible, as a number of the timeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from equipoise.model.problem import Measure
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId
from equipoise.plan.exact.formula.values import elements_of, options_of
from equipoise.plan.exact.solver.circuit import NO, YES, Truth, as_number, total
from equipoise.plan.exact.solver.number import Number
from equipoise.plan.exact.timeline.course import MOVES
from equipoise.plan.exact.timeline.states import Final as End
from equipoise.plan.exact.timeline.timeline import Timeline
from equipoise.spec.view import CPU, MEMORY, capacity_of

SCALE: Final = 1000
"""Shares are counted in thousandths: the solver knows whole numbers only."""


def measured(timeline: Timeline, weights: Mapping[Measure, int]) -> Number:
    """The weighted sum of some measures."""
    found: Number = 0
    for measure, weight in weights.items():
        found = found + _MEASURES[measure](timeline) * weight
    return found


def _mttr(timeline: Timeline) -> Number:
    """The sum of all ends; one who does nothing has no end."""
    found: Number = 0
    for leg in timeline.legs():
        found = found + _end_if_there(timeline, leg.end, leg.there)
    return found * timeline.unit_ms


def _end_if_there(timeline: Timeline, end: Number, there: Truth) -> Number:
    least, _ = timeline.circuit.bounds(as_number(there))
    if least == 1:
        return end
    counted = timeline.circuit.number(0, timeline.horizon)
    timeline.circuit.require_at_most(end - counted, 0, (there,))
    return counted


def _migrations(timeline: Timeline) -> Number:
    return total((1, leg.there) for leg in timeline.legs() if leg.kind in MOVES)


def _moved_memory(timeline: Timeline) -> Number:
    vms = timeline.snapshot.vms
    return total(
        (vms[leg.vm].memory_mib, leg.there)
        for leg in timeline.legs()
        if leg.kind is ActionKind.MIGRATE and leg.vm is not None
    )


def _makespan(timeline: Timeline) -> Number:
    latest = timeline.circuit.number(0, timeline.horizon)
    for leg in timeline.legs():
        timeline.circuit.require_at_most(leg.end - latest, 0, (leg.there,))
    return latest * timeline.unit_ms


def _hosts_used(timeline: Timeline) -> Number:
    end = End(timeline)
    running = (
        [truth for _, truth in elements_of(end.running(one))] for one in timeline.snapshot.hosts
    )
    return total((1, timeline.circuit.any(truths)) for truths in running)


def _energy(timeline: Timeline) -> Number:
    """Milliwatts: those of hosts that are on, and more the more CPU is reserved on them."""
    end = End(timeline)
    found: Number = 0
    for host in timeline.snapshot.hosts.values():
        is_on = options_of(end.host_state(host.id)).get("on", NO)
        power = host.power
        standby = power.standby_watts * SCALE
        found = found + standby + as_number(is_on) * (power.curve[0] * SCALE - standby)
        span = (power.curve[-1] - power.curve[0]) * SCALE
        whole = max(1, host.usable_cpu_mhz)
        found = found + total(
            (span * timeline.snapshot.vms[vm].cpu.reservation_mhz // whole, truth)
            for vm, truth in elements_of(end.running(host.id))
        )
    return found


def _imbalance(timeline: Timeline) -> Number:
    """The largest share of its CPU, memory or another resource that is taken of a host."""
    end, circuit = End(timeline), timeline.circuit
    named = {name for vm in timeline.snapshot.vms.values() for name in vm.consumption}
    named |= {name for amounts in timeline.task.amounts.values() for name in amounts}
    taken = [
        (SCALE * _taken(end, host.id, resource), capacity_of(host, resource))
        for host in timeline.snapshot.hosts.values()
        for resource in (CPU, MEMORY, *sorted(named))
    ]
    shares = [(amount, whole) for amount, whole in taken if whole > 0]
    most = max((-(-circuit.bounds(amount)[1] // whole) for amount, whole in shares), default=0)
    fullest = circuit.number(0, most)
    for amount, whole in shares:
        circuit.require_at_most(amount - fullest * whole, 0)
    return fullest


def _taken(end: End, host: HostId, resource: str) -> Number:
    """What is taken of a resource of a host in the end; an agent has its share while it sleeps."""
    vms = end.snapshot.vms
    members = dict(elements_of(end.running(host)))
    members.update((vm, YES) for vm in end.snapshot.residents[host] if vms[vm].agent)
    found: Number = 0
    for vm, truth in members.items():
        amount = end.consumption(vm, resource)
        assert isinstance(amount, int), "what a VM has in the end is known"
        found = found + as_number(truth) * amount
    return found


_MEASURES: Final[Mapping[Measure, Callable[[Timeline], Number]]] = {
    Measure.MTTR: _mttr,
    Measure.MIGRATIONS: _migrations,
    Measure.MOVED_MEMORY: _moved_memory,
    Measure.MAKESPAN: _makespan,
    Measure.HOSTS_USED: _hosts_used,
    Measure.ENERGY: _energy,
    Measure.IMBALANCE: _imbalance,
}
