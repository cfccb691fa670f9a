"""Hosts and VMs that join during the run, and tenants that scale out and in."""

from __future__ import annotations

from functools import partial

from equipoise.model.event import Event, VmArrived, VmLeft
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Sla
from equipoise.model.quantity import TenantId, VmId
from equipoise.model.scenario.faults import TenantAutoscaling
from equipoise.model.vm import Vm, VmState
from equipoise.sim.expand import ExpandedScenario, numbered_host, numbered_vm
from equipoise.sim.world.context import SimulationContext
from equipoise.sim.world.event_queue import EventPriority


class Arrivals:
    """Names the hosts and VMs that join, and scales tenants by the load of their VMs."""

    def __init__(self, context: SimulationContext, expanded: ExpandedScenario) -> None:
        self._context = context
        self._expanded = expanded
        self._host_numbers = {name: fleet.count for name, fleet in expanded.host_fleets.items()}
        self._vm_numbers = {name: fleet.count for name, fleet in expanded.vm_fleets.items()}
        self._scaled_ms: dict[TenantId, int] = {}
        self._slas = {tenant.id: tenant.sla for tenant in expanded.inventory.tenants}
        for scaling in context.scenario.faults.scaling:
            self._schedule_check(scaling)

    def next_host(self, fleet: str) -> Host:
        """Return the next host of a fleet."""
        self._host_numbers[fleet] += 1
        return numbered_host(self._expanded.host_fleets[fleet], self._host_numbers[fleet])

    def arrive_next(self, fleet: str, tenant: TenantId | None = None) -> VmArrived:
        """Add the next VM of a fleet, in the state ready."""
        self._vm_numbers[fleet] += 1
        vm_fleet = self._expanded.vm_fleets[fleet]
        vm = numbered_vm(vm_fleet, self._vm_numbers[fleet], None)
        return self.arrive(vm.but(tenant=tenant) if tenant else vm, vm_fleet.load)

    def arrive(self, vm: Vm, load: str | None) -> VmArrived:
        """Add a VM with its load. A VM whose host is not on becomes ready instead of running."""
        context = self._context
        host = None if vm.host is None else context.truth.state.hosts.get(vm.host)
        if vm.state is VmState.RUNNING and (host is None or host.state is not HostState.ON):
            sleeps = vm.agent and host is not None  # an agent VM stays with its host
            state = VmState.SLEEPING if sleeps else VmState.READY
            vm = vm.but(state=state, host=vm.host if sleeps else None)
        event = VmArrived(at_ms=context.now_ms, vm=vm)
        context.apply_event(event)
        if vm.state is VmState.READY:
            context.truth.allocator.mark_unplaced(vm.id)
        if load is not None:
            context.truth.attach_loads({vm.id: context.scenario.loads[load]})
        return event

    def _schedule_check(self, scaling: TenantAutoscaling) -> None:
        at_ms = self._context.now_ms + 1000 * scaling.every_s
        self._context.schedule(at_ms, EventPriority.CHANGE, partial(self._check_scaling, scaling))

    def _check_scaling(self, scaling: TenantAutoscaling) -> Event | None:
        """Scale a tenant by one step if the load of its VMs and its SLA call for it."""
        self._schedule_check(scaling)
        sla, now_ms = self._slas[scaling.tenant], self._context.now_ms
        elapsed_ms = now_ms - self._scaled_ms.get(scaling.tenant, -(10**15))  # never: long ago
        if elapsed_ms < 1000 * sla.cooldown_s:
            return None
        own = [vm for vm in self._context.truth.state.vms.values() if vm.tenant == scaling.tenant]
        step = self._desired_step(scaling, sla, own)
        if step:
            self._scaled_ms[scaling.tenant] = now_ms
        if step > 0:
            for _ in range(step):
                self._context.schedule(
                    now_ms, EventPriority.CHANGE, partial(self._scale_out, scaling, sla)
                )
        else:
            for vm in [vm.id for vm in own][len(own) + step :]:  # the latest VMs leave first
                self._context.schedule(now_ms, EventPriority.CHANGE, partial(self.depart, vm))
        return None

    def _scale_out(self, scaling: TenantAutoscaling, sla: Sla) -> Event | None:
        """Add one VM, unless another autoscaling of the tenant has reached the maximum first."""
        vms = self._context.truth.state.vms.values()
        own = sum(vm.tenant == scaling.tenant for vm in vms)
        return None if own >= sla.vms_max else self.arrive_next(scaling.fleet, scaling.tenant)

    def _desired_step(self, scaling: TenantAutoscaling, sla: Sla, own: list[Vm]) -> int:
        """Return how many VMs to add (positive) or remove (negative)."""
        running = [vm for vm in own if vm.state is VmState.RUNNING]
        if not running:
            return 0
        utilisation_pct = self._utilisation_pct(running)
        if utilisation_pct > scaling.out_above_pct:
            return max(0, min(sla.scaling_vms, sla.vms_max - len(own)))
        if utilisation_pct < scaling.in_below_pct:
            return -max(0, min(sla.scaling_vms, len(own) - sla.vms_min))
        return 0

    def _utilisation_pct(self, vms: list[Vm]) -> float:
        """Return the CPU demand of VMs as a percentage of the speed of their virtual CPUs."""
        truth = self._context.truth
        rows = truth.allocator.rows_of(vm.id for vm in vms)
        capacity_mhz = sum(
            vm.vcpus * truth.state.hosts[vm.host].mhz_per_core for vm in vms if vm.host is not None
        )
        return 100 * float(truth.allocator.vms["cpu_demand"][rows].sum()) / capacity_mhz

    def depart(self, vm: VmId) -> Event | None:
        """Remove a VM, if it is still there."""
        if vm not in self._context.truth.state.vms:
            return None
        return self._context.apply_event(VmLeft(at_ms=self._context.now_ms, vm=vm))
