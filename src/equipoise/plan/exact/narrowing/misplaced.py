"""The VMs that may be misplaced: a condition that does not hold depends on them."""

from __future__ import annotations

from equipoise.model.host import HostState
from equipoise.model.quantity import VmId
from equipoise.model.state.draft import TouchedEntities
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.requirement_parts import relevant_vms
from equipoise.plan.exact.task import PlanningTask, RuleCondition
from equipoise.spec.evaluate.cells import TrackingView
from equipoise.spec.evaluate.view import EvaluationContext, StateView
from equipoise.spec.requirement import Requirement


def misplaced_vms(task: PlanningTask, desired: Snapshot) -> frozenset[VmId]:
    """Return the running VMs that a condition depends on which does not hold."""
    vms: set[VmId] = set()
    for host in desired.hosts.values():
        if host.state is not HostState.ON:
            vms.update(desired.residents[host.id])
    changed = _ChangedParts(task, desired)
    for condition in task.conditions:
        if isinstance(condition, RuleCondition):
            vms |= changed.involved(condition.requirement)
    return frozenset(vm for vm in vms if task.snapshot.vms[vm].state is VmState.RUNNING)


def as_desired(task: PlanningTask) -> Snapshot:
    """Return the current state, with every desired state that needs no new host reached."""
    snapshot = task.snapshot
    hosts = {
        name: snapshot.hosts[name].but(state=conditions[0].state)
        for name, conditions in task.host_conditions.items()
        if conditions[0].state is not snapshot.hosts[name].state
    }
    touched = task.vm_conditions.keys() | task.amounts.keys()
    vms = {name: _desired_vm(task, snapshot.vms[name]) for name in touched}
    return Snapshot(
        version=snapshot.version,
        at_ms=snapshot.at_ms,
        hosts=snapshot.hosts.but(hosts),
        vms=FrozenMap({**snapshot.vms, **vms}),
        settings=snapshot.settings,
    )


def _desired_vm(task: PlanningTask, vm: Vm) -> Vm:
    conditions = task.vm_conditions.get(vm.id)
    state = conditions[0].state if conditions else vm.state
    if state is not VmState.RUNNING and vm.state is VmState.RUNNING:
        host = vm.host if state.has_host else None
        return vm.but(state=state, host=host)
    amounts = task.amounts.get(vm.id)
    return vm.but(consumption={**vm.consumption, **amounts}) if amounts else vm


class _ChangedParts:
    """Evaluates again the parts of requirements that the desired states change."""

    def __init__(self, task: PlanningTask, desired: Snapshot) -> None:
        self._task = task
        self._desired = desired
        before = task.snapshot
        self._vms = {vm for vm in desired.vms if desired.vms[vm] is not before.vms[vm]}
        hosts = desired.hosts
        self._hosts = {host for host in hosts if hosts[host] is not before.hosts[host]}
        current_hosts = (before.placement.get(vm) for vm in self._vms)
        self._hosts |= {host for host in current_hosts if host is not None}
        self._touched = TouchedEntities(tuple(self._vms), tuple(self._hosts))
        view = TrackingView(StateView.of(desired).state)
        self._context = EvaluationContext(view, StateView.of(before), view)

    def involved(self, requirement: Requirement) -> set[VmId]:
        """Return the VMs that a requirement reads, if it does not hold."""
        vms: set[VmId] = set()
        for part in self._task.parts.of(requirement):
            if part.cell is None or part.reads is None:
                vms |= self._named(requirement)
                continue
            evaluations, holds = [part.reads], part.holds
            if part.is_touched(self._vms, self._hosts):
                part.cell.collections.touch(
                    self._touched
                )  # its sums are those of the current state
                evaluations.append(part.cell.judge(self._context))
                holds = part.cell.holds
            for reads in () if holds else evaluations:
                vms |= reads.vms
                for host in reads.hosts:
                    vms.update(self._desired.residents.get(host, ()))
        return vms

    def _named(self, requirement: Requirement) -> set[VmId]:
        """Return the VMs that a formula about the plan names, if the empty plan violates it."""
        if requirement.failure(self._context) is None:
            return set()
        return set(relevant_vms(requirement) or self._desired.vms)
