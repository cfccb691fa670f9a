"""Who may be misplaced: the VMs that have to do with something that does not hold as it is."""

from __future__ import annotations

from equipoise.model.change.draft import Touched
from equipoise.model.host import HostState
from equipoise.model.quantity import VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.subjects import subjects
from equipoise.plan.exact.task import RuleClaim, Task
from equipoise.spec.cells import WatchedView
from equipoise.spec.demand import Demand
from equipoise.spec.view import Frame, View


def misplaced(task: Task, wished: Snapshot) -> frozenset[VmId]:
    """The running VMs without which some claim cannot come true."""
    found: set[VmId] = set()
    for host in wished.hosts.values():
        if host.state is not HostState.ON:
            found.update(wished.residents[host.id])
    changed = _Changed(task, wished)
    for claim in task.claims:
        if isinstance(claim, RuleClaim):
            found |= changed.involved(claim.demand)
    return frozenset(vm for vm in found if task.snapshot.vms[vm].state is VmState.RUNNING)


def as_wished(task: Task) -> Snapshot:
    """The present, as if every wish that needs no place had come true already."""
    snapshot = task.snapshot
    hosts = {
        name: snapshot.hosts[name].but(state=claims[0].state)
        for name, claims in task.host_goals.items()
        if claims[0].state is not snapshot.hosts[name].state
    }
    touched = task.vm_goals.keys() | task.amounts.keys()
    vms = {name: _as_wished(task, snapshot.vms[name]) for name in touched}
    return Snapshot(
        version=snapshot.version,
        at_ms=snapshot.at_ms,
        hosts=snapshot.hosts.but(hosts),
        vms=FrozenMap({**snapshot.vms, **vms}),
        settings=snapshot.settings,
    )


def _as_wished(task: Task, vm: Vm) -> Vm:
    claims = task.vm_goals.get(vm.id)
    state = claims[0].state if claims else vm.state
    if state is not VmState.RUNNING and vm.state is VmState.RUNNING:
        host = vm.host if state.has_host else None
        return vm.but(state=state, host=host)
    amounts = task.amounts.get(vm.id)
    return vm.but(consumption={**vm.consumption, **amounts}) if amounts else vm


class _Changed:
    """Looks again at what has to do with wishes, and at nothing else."""

    def __init__(self, task: Task, wished: Snapshot) -> None:
        self._task = task
        self._wished = wished
        before = task.snapshot
        self._vms = {vm for vm in wished.vms if wished.vms[vm] is not before.vms[vm]}
        hosts = wished.hosts
        self._hosts = {host for host in hosts if hosts[host] is not before.hosts[host]}
        lie = (before.placement.get(vm) for vm in self._vms)
        self._hosts |= {host for host in lie if host is not None}
        self._touched = Touched(tuple(self._vms), tuple(self._hosts))
        view = WatchedView(View.of(wished).state)
        self._frame = Frame(view, View.of(before), view)

    def involved(self, demand: Demand) -> set[VmId]:
        """The VMs that a demand has looked at, if it does not hold as it is."""
        found: set[VmId] = set()
        for part in self._task.parts.of(demand):
            if part.cell is None or part.reads is None:
                found |= self._named(demand)
                continue
            looks, holds = [part.reads], part.holds
            if part.is_touched(self._vms, self._hosts):
                part.cell.memory.touch(self._touched)  # its sums are of the present
                looks.append(part.cell.judge(self._frame))  # at what has changed only
                holds = part.cell.holds
            for reads in () if holds else looks:
                found |= reads.vms
                for host in reads.hosts:
                    found.update(self._wished.residents.get(host, ()))
        return found

    def _named(self, demand: Demand) -> set[VmId]:
        """Of a formula about the plan itself: whom it names, if it does not hold for no plan."""
        if demand.fault(self._frame) is None:
            return set()
        return set(subjects(demand) or self._wished.vms)
