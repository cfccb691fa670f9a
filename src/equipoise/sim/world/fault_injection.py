"""Injects faults and changes: those that a scenario schedules, and random ones at its rates.

Random faults are Poisson processes. Each kind has a random stream of its own, so one kind does not
change when another is switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Final

from equipoise.model.event import (
    Event,
    HostChanged,
    HostFailed,
    HostJoined,
    HostLeft,
    HostRecovered,
    RolesFound,
    VmArrived,
    VmCrashed,
)
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ProcessorId, VmId
from equipoise.model.roles.state import layout_index
from equipoise.model.scenario.faults import (
    ControllerLost,
    HostChurn,
    HostCrashes,
    HostRequested,
    MigrationsSlowed,
    MonitoringGaps,
    MonitoringLost,
    PowerOnStuck,
    RoleStartsFail,
    ScheduledEvent,
    VmChurn,
)
from equipoise.model.scenario.load import NumberSpec
from equipoise.model.vm import VmState
from equipoise.sim.random_streams import RandomStream
from equipoise.sim.world.arrivals import Arrivals
from equipoise.sim.world.context import SimulationContext
from equipoise.sim.world.event_queue import Callback, EventPriority

HOUR_MS: Final = 3600 * 1000
DAY_MS: Final = 24 * HOUR_MS
NEVER_MS: Final = 10**14
"""A time after the end of any run."""


@dataclass(frozen=True, slots=True)
class _RandomFault:
    """A fault that recurs at random times."""

    rng: RandomStream
    rate: float
    """The mean number of faults per millisecond and target."""
    inject: Callable[[RandomStream], Event | None]
    targets: Callable[[], int] | None = None
    """Returns the number of possible targets; ``None`` for a fault of the cluster as a whole."""


class FaultInjector:
    """Schedules all faults and changes of a scenario, and injects them when they are due."""

    def __init__(self, context: SimulationContext, arrivals: Arrivals) -> None:
        self._context = context
        self._arrivals = arrivals
        self._failed_ms: dict[HostId, int] = {}
        """The time of the last failure of each host."""
        for scheduled in context.scenario.events:
            context.schedule(
                scheduled.at_ms, EventPriority.FAULT, partial(self._inject_scheduled, scheduled)
            )
        for fault in self._random_faults():
            self._schedule_next(fault)

    def _inject_scheduled(self, scheduled: ScheduledEvent) -> Event | None:
        context = self._context
        match scheduled:
            case MonitoringLost():
                context.start_monitoring_gap(scheduled.for_ms)
            case MigrationsSlowed():
                context.slow_links(scheduled.speed_pct / 100, scheduled.for_ms)
            case PowerOnStuck():
                context.action_runner.hang_next_power_on(scheduled.host)
            case VmArrived():
                load = context.scenario.vm_loads.get(scheduled.vm.id)
                return self._arrivals.arrive(scheduled.vm, load)
            case RoleStartsFail():
                context.action_runner.schedule_role_start_faults(scheduled)
            case ControllerLost():
                self._lose_controller(scheduled)
            case HostRequested():
                return self._request(scheduled)
            case HostFailed():
                # The end of an earlier random outage must not recover the host from this failure.
                self._failed_ms[scheduled.host] = context.now_ms
                return context.apply_event(scheduled)
            case _:
                return context.apply_event(scheduled)
        return None

    def _request(self, request: HostRequested) -> Event | None:
        host = self._context.truth.state.hosts.get(request.host)
        if host is None:
            return None
        changed = host.but(requested=request.requested)
        return self._context.apply_event(HostChanged(at_ms=self._context.now_ms, host=changed))

    def _lose_controller(self, lost: ControllerLost) -> None:
        """Let processors stop their single roles when the controller is away too long.

        Other roles continue. After ``hold_s`` a new controller may start a single role elsewhere,
        and a single role must never run twice.
        """
        layout = self._context.truth.state.settings.layout
        if layout is None or layout.hold_s is None or 1000 * layout.hold_s >= lost.for_ms:
            return
        for processor in layout_index(layout).groups_of:
            stop_roles = partial(self._stop_single_roles, processor)
            self._context.schedule(
                self._context.now_ms + 1000 * layout.hold_s, EventPriority.FAULT, stop_roles
            )

    def _stop_single_roles(self, processor: ProcessorId) -> Event | None:
        """Stop the single roles of a processor: another processor may hold them by now."""
        state, layout = self._context.truth.state, self._context.truth.state.settings.layout
        if layout is None:
            return None
        held, single = state.role_state.held.get(processor, ()), layout_index(layout).single
        kept = tuple(group_role for group_role in held if group_role not in single)
        if kept == held:
            return None
        reason = f"no controller for {layout.hold_s} s: the processor stopped its single roles"
        return self._context.apply_event(
            RolesFound(at_ms=self._context.now_ms, processor=processor, held=kept, reason=reason)
        )

    def _random_faults(self) -> Iterator[_RandomFault]:
        faults = self._context.scenario.faults
        if (outages := faults.host_crashes) is not None:
            inject = partial(self._crash_host, outages)
            rate = outages.per_host_day / DAY_MS
            yield _RandomFault(self._rng("hosts"), rate, inject, lambda: len(self._hosts_on()))
        if (crashes := faults.vm_crashes) is not None:
            rate = crashes.per_vm_day / DAY_MS
            yield _RandomFault(
                self._rng("vms"), rate, self._crash_vm, lambda: len(self._running_vms())
            )
        if (gaps := faults.monitoring_gaps) is not None:
            gap = partial(self._start_monitoring_gap, gaps)
            yield _RandomFault(self._rng("gaps"), gaps.per_day / DAY_MS, gap)
        for number, hosts in enumerate(faults.hosts):
            rng = self._rng("joins", hosts.fleet, str(number))
            yield _RandomFault(rng, hosts.per_day / DAY_MS, partial(self._add_host, hosts))
        for number, vms in enumerate(faults.vms):
            rng = self._rng("arrives", vms.fleet, str(number))
            yield _RandomFault(rng, vms.per_hour / HOUR_MS, partial(self._add_vm, vms))

    def _rng(self, *words: str) -> RandomStream:
        # The word "unrest" is part of the stream's name: another word would change every figure.
        return RandomStream(self._context.scenario.seed, "unrest", *words)

    def _schedule_next(self, fault: _RandomFault) -> None:
        # Thinning of a Poisson process: the number of targets can change before the next fault. The
        # time is drawn for an upper bound of targets, and ``_inject_random`` rejects a fault with
        # the probability of the missing ones. The rate is exact up to the bound.
        targets_bound = 1 if fault.targets is None else 2 * fault.targets() + 8
        wait_ms = float(NEVER_MS)
        if fault.rate > 0:
            wait_ms = min(-log(1 - fault.rng.uniform()) / (fault.rate * targets_bound), NEVER_MS)
        at_ms = self._context.now_ms + max(1, round(wait_ms))
        self._context.schedule(
            at_ms, EventPriority.FAULT, partial(self._inject_random, fault, targets_bound)
        )

    def _inject_random(self, fault: _RandomFault, targets_bound: int) -> Event | None:
        hits = fault.targets is None or fault.rng.uniform() * targets_bound < fault.targets()
        event = fault.inject(fault.rng) if hits else None
        self._schedule_next(fault)
        return event

    def _hosts_on(self) -> list[HostId]:
        hosts = self._context.truth.state.hosts.values()
        return [host.id for host in hosts if host.state is HostState.ON]

    def _running_vms(self) -> list[VmId]:
        vms = self._context.truth.state.vms.values()
        return [vm.id for vm in vms if vm.state is VmState.RUNNING]

    def _crash_host(self, outages: HostCrashes, rng: RandomStream) -> Event | None:
        targets, context = self._hosts_on(), self._context
        target = targets[rng.randrange(len(targets))]
        self._failed_ms[target] = context.now_ms
        recover = partial(self._recover_host, target, context.now_ms)
        self._after(outages.back_after_s, rng, recover)
        return context.apply_event(
            HostFailed(at_ms=context.now_ms, host=target, reason="random crash")
        )

    def _recover_host(self, host: HostId, failed_ms: int) -> Event | None:
        """Recover a host, unless it left, recovered or failed again after this outage began."""
        current = self._context.truth.state.hosts.get(host)
        if current is None or current.state is not HostState.FAILED:
            return None
        if self._failed_ms[host] != failed_ms:  # a later outage has an end of its own
            return None
        return self._context.apply_event(HostRecovered(at_ms=self._context.now_ms, host=host))

    def _crash_vm(self, rng: RandomStream) -> Event | None:
        targets = self._running_vms()
        target, context = targets[rng.randrange(len(targets))], self._context
        crash = VmCrashed(at_ms=context.now_ms, vm=target, reason="random crash")
        return context.apply_event(crash)

    def _start_monitoring_gap(self, gaps: MonitoringGaps, rng: RandomStream) -> None:
        self._context.start_monitoring_gap(max(1, round(1000 * rng.sample(gaps.for_s))))

    def _add_host(self, churn: HostChurn, rng: RandomStream) -> Event | None:
        host = self._arrivals.next_host(churn.fleet)
        if churn.stay_s is not None:
            self._after(churn.stay_s, rng, partial(self._remove_host, host.id))
        return self._context.apply_event(HostJoined(at_ms=self._context.now_ms, host=host))

    def _remove_host(self, host: HostId) -> Event | None:
        if host not in self._context.truth.state.hosts:
            return None
        return self._context.apply_event(HostLeft(at_ms=self._context.now_ms, host=host))

    def _add_vm(self, churn: VmChurn, rng: RandomStream) -> Event | None:
        event = self._arrivals.arrive_next(churn.fleet)
        self._after(churn.stay_s, rng, partial(self._arrivals.depart, event.vm.id))
        return event

    def _after(self, seconds: NumberSpec, rng: RandomStream, callback: Callback) -> None:
        wait_ms = max(1, round(1000 * rng.sample(seconds)))
        self._context.schedule(self._context.now_ms + wait_ms, EventPriority.FAULT, callback)
