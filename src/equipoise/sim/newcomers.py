"""Newcomers: hosts and VMs that join during the run, and tenants that scale out and in."""

from __future__ import annotations

from functools import partial

from equipoise.model.event import Event, VmArrived, VmLeft
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import TenantId, VmId
from equipoise.model.story.unrest import Scaling
from equipoise.model.tenant import Sla
from equipoise.model.vm import Vm, VmState
from equipoise.sim.calendar import Rank
from equipoise.sim.stage import Stage
from equipoise.sim.unfold import Cast, numbered_host, numbered_vm


class Newcomers:
    """Gives newcomers a name, and lets tenants ask for them."""

    def __init__(self, stage: Stage, cast: Cast) -> None:
        self._stage = stage
        self._cast = cast
        self._host_numbers = {name: fleet.count for name, fleet in cast.host_fleets.items()}
        self._vm_numbers = {name: fleet.count for name, fleet in cast.vm_fleets.items()}
        self._scaled_ms: dict[TenantId, int] = {}
        self._slas = {tenant.id: tenant.sla for tenant in cast.inventory.tenants}
        for scaling in stage.scenario.unrest.scaling:
            self._look_later(scaling)

    def next_host(self, fleet: str) -> Host:
        """The next host of a fleet."""
        self._host_numbers[fleet] += 1
        return numbered_host(self._cast.host_fleets[fleet], self._host_numbers[fleet])

    def arrive_next(self, fleet: str, tenant: TenantId | None = None) -> VmArrived:
        """The next VM of a fleet arrives, ready to be started."""
        self._vm_numbers[fleet] += 1
        kind = self._cast.vm_fleets[fleet]
        vm = numbered_vm(kind, self._vm_numbers[fleet], None)
        return self.arrive(vm.but(tenant=tenant) if tenant else vm, kind.load)

    def arrive(self, vm: Vm, load: str | None) -> VmArrived:
        """A VM arrives; from now on it is meant to run."""
        stage = self._stage
        host = None if vm.host is None else stage.truth.state.hosts.get(vm.host)
        if vm.state is VmState.RUNNING and (host is None or host.state is not HostState.ON):
            sleeps = vm.agent and host is not None  # as agents do with their hosts
            state = VmState.SLEEPING if sleeps else VmState.READY
            vm = vm.but(state=state, host=vm.host if sleeps else None)
        event = VmArrived(at_ms=stage.now_ms, vm=vm)
        stage.happen(event)
        if vm.state is VmState.READY:
            stage.truth.fluid.miss(vm.id)
        if load is not None:
            stage.truth.drive({vm.id: stage.scenario.loads[load]})
        return event

    def _look_later(self, scaling: Scaling) -> None:
        at_ms = self._stage.now_ms + 1000 * scaling.every_s
        self._stage.later(at_ms, Rank.CHANGE, partial(self._look, scaling))

    def _look(self, scaling: Scaling) -> Event | None:
        """A tenant looks at how busy its VMs are, and scales by a step if its SLA lets it."""
        self._look_later(scaling)
        sla, now_ms = self._slas[scaling.tenant], self._stage.now_ms
        rested_ms = now_ms - self._scaled_ms.get(scaling.tenant, -(10**15))
        if rested_ms < 1000 * sla.cooldown_s:
            return None
        own = [vm for vm in self._stage.truth.state.vms.values() if vm.tenant == scaling.tenant]
        step = self._wanted_step(scaling, sla, own)
        if step:
            self._scaled_ms[scaling.tenant] = now_ms
        if step > 0:
            for _ in range(step):
                self._stage.later(now_ms, Rank.CHANGE, partial(self._scale_out, scaling, sla))
        else:
            for vm in [vm.id for vm in own][len(own) + step :]:  # the youngest go first
                self._stage.later(now_ms, Rank.CHANGE, partial(self.leave, vm))
        return None

    def _scale_out(self, scaling: Scaling, sla: Sla) -> Event | None:
        """One more, unless another of the tenant's ways to scale has been quicker."""
        vms = self._stage.truth.state.vms.values()
        own = sum(vm.tenant == scaling.tenant for vm in vms)
        return None if own >= sla.vms_max else self.arrive_next(scaling.fleet, scaling.tenant)

    def _wanted_step(self, scaling: Scaling, sla: Sla, own: list[Vm]) -> int:
        """How many VMs more or fewer the tenant wants."""
        running = [vm for vm in own if vm.state is VmState.RUNNING]
        if not running:
            return 0
        busy_pct = self._busy_pct(running)
        if busy_pct > scaling.out_above_pct:
            return max(0, min(sla.scaling_vms, sla.vms_max - len(own)))
        if busy_pct < scaling.in_below_pct:
            return -max(0, min(sla.scaling_vms, len(own) - sla.vms_min))
        return 0

    def _busy_pct(self, vms: list[Vm]) -> float:
        """What VMs ask for, of what their CPUs could do where they are."""
        truth = self._stage.truth
        rows = truth.fluid.rows_of(vm.id for vm in vms)
        could = sum(
            vm.vcpus * truth.state.hosts[vm.host].mhz_per_core for vm in vms if vm.host is not None
        )
        return 100 * float(truth.fluid.vms["cpu_want"][rows].sum()) / could

    def leave(self, vm: VmId) -> Event | None:
        """A VM leaves, if it is still there."""
        if vm not in self._stage.truth.state.vms:
            return None
        return self._stage.happen(VmLeft(at_ms=self._stage.now_ms, vm=vm))
