"""Why there is no plan for a problem that is too large to be modelled as a whole.

A part of a problem is easier than the whole: it has fewer conditions, and fewer VMs that take
capacity. A part without a plan proves that the whole has none. A part with a plan proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from equipoise.model.host import HostState
from equipoise.model.problem.durations import HOST_ACTIONS
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState
from equipoise.plan.exact.narrowing.misplaced import as_desired, misplaced_vms
from equipoise.plan.exact.requirement_parts import relevant_vms
from equipoise.plan.exact.result import ConditionConflict, ConflictReason
from equipoise.plan.exact.task import (
    HostCondition,
    PlanCondition,
    PlanningTask,
    RuleCondition,
    VmCondition,
)
from equipoise.spec.evaluate.view import CPU, MEMORY, capacity_of, consumption_of

PLACEMENTS_MAX: Final = 500_000
"""Budget of placements, VMs times hosts, over all parts together."""


def subproblems_of(task: PlanningTask) -> Iterator[PlanningTask]:
    """Yield the parts of a task in which something has to happen, the smallest first.

    A part is a set of VMs that rules about these VMs alone connect. Rules about other VMs, and VMs
    in no part, are left out.
    """
    if task.referenced_times_ms is not None:
        return  # a rule about times may need actions of other VMs
    affected = misplaced_vms(task, as_desired(task)) | task.vm_conditions.keys()
    conditions = _by_group(task)
    kinds = _kinds_of_host(task)
    parts = [vms for vms in conditions if not vms.isdisjoint(affected)]
    budget = PLACEMENTS_MAX
    for vms in sorted(parts, key=lambda part: (len(part), sorted(part))):
        if any(task.snapshot.vms[vm].agent for vm in vms):
            continue  # the state of an agent depends on its host
        part = _subproblem(task, vms, conditions[vms], kinds)
        budget -= len(vms) * len(part.snapshot.hosts)
        if budget < 0:
            return
        yield part


def _kinds_of_host(task: PlanningTask) -> list[list[HostId]]:
    """Return the hosts grouped by everything but their names."""
    groups: dict[Any, list[HostId]] = {}
    given = task.problem.durations
    switching = [given[kind].of for kind in HOST_ACTIONS if kind in given]
    for host in task.snapshot.hosts.values():
        kind = (
            *(host.state, host.cores, host.usable_cpu_mhz, host.usable_memory_mib),
            *(frozenset(host.capacity.items()), frozenset(host.labels.items())),
            *(of.get(host.id) for of in switching),
            host.id if task.problem.network is not None else None,
        )
        groups.setdefault(kind, []).append(host.id)
    return list(groups.values())


def _by_group(task: PlanningTask) -> dict[frozenset[VmId], list[PlanCondition]]:
    """Return the conditions about VMs, by the groups of VMs that they connect."""
    about: list[tuple[PlanCondition, frozenset[VmId]]] = []
    for condition in task.hard:
        if isinstance(condition, VmCondition):
            about.append((condition, frozenset({condition.vm})))
        elif isinstance(condition, RuleCondition):
            vms = relevant_vms(condition.requirement)
            if vms:
                about.append((condition, vms & task.snapshot.vms.keys()))
    groups = _VmGroups()
    for _, vms in about:
        groups.join(vms)
    members = groups.members()
    by_group: dict[frozenset[VmId], list[PlanCondition]] = {}
    for condition, vms in about:
        for vm in sorted(vms)[:1]:
            by_group.setdefault(members[groups.first(vm)], []).append(condition)
    return by_group


class _VmGroups:
    """Disjoint sets of VMs that are joined directly or through others (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[VmId, VmId] = {}

    def first(self, vm: VmId) -> VmId:
        """Return the representative of a VM's group."""
        parent = self._parent
        while parent.setdefault(vm, vm) != vm:
            parent[vm] = parent[parent[vm]]  # halve the path, so that later lookups are short
            vm = parent[vm]
        return vm

    def join(self, vms: Iterable[VmId]) -> None:
        """Join VMs to one group."""
        firsts = sorted({self.first(vm) for vm in vms})
        self._parent.update(dict.fromkeys(firsts, *firsts[:1]))

    def members(self) -> dict[VmId, frozenset[VmId]]:
        """Return the members of each group, by its representative."""
        groups: dict[VmId, set[VmId]] = {}
        for vm in list(self._parent):
            groups.setdefault(self.first(vm), set()).add(vm)
        return {vm: frozenset(members) for vm, members in groups.items()}


def _subproblem(
    task: PlanningTask,
    vms: frozenset[VmId],
    conditions: Iterable[PlanCondition],
    kinds: Iterable[list[HostId]],
) -> PlanningTask:
    """Return the task of some VMs alone, with as many equal hosts as these can ever visit."""
    whole = task.snapshot
    named = {host for condition in conditions for host in _hosts_in(_arguments(condition))}
    named |= {host for vm in vms if (host := whole.vms[vm].host) is not None}
    about = [
        condition for host in sorted(named) for condition in task.host_conditions.get(host, ())
    ]
    # Equal hosts are interchangeable: more of them than the VMs can visit change nothing.
    visits = len(vms) * task.problem.moves_max
    others = (islice((host for host in kind if host not in named), visits) for kind in kinds)
    kept = named.union(*others)
    snapshot = Snapshot(
        version=whole.version,
        at_ms=whole.at_ms,
        hosts=FrozenMap({host: whole.hosts[host] for host in whole.hosts if host in kept}),
        vms=FrozenMap({vm: whole.vms[vm] for vm in whole.vms if vm in vms}),
        settings=whole.settings,
    )
    return replace(task, snapshot=snapshot, conditions=(*conditions, *about), known_parts=None)


def _arguments(condition: PlanCondition) -> Iterable[Any]:
    return condition.requirement.arguments.values() if isinstance(condition, RuleCondition) else ()


def _hosts_in(values: Iterable[Any]) -> Iterator[HostId]:
    """Yield every name in some arguments; names of VMs do no harm."""
    for value in values:
        if isinstance(value, str):
            yield HostId(value)
        elif isinstance(value, frozenset | tuple):
            yield from _hosts_in(value)


def capacity_shortage(task: PlanningTask) -> ConditionConflict | None:
    """Return a conflict of conditions that need more of a resource than all hosts have together."""
    names = {name for vm in task.snapshot.vms.values() for name in vm.consumption}
    for resource in (CPU, MEMORY, *sorted(names)):
        conflict = _shortage_of(task, resource)
        if conflict is not None:
            return conflict
    return None


def _shortage_of(task: PlanningTask, resource: str) -> ConditionConflict | None:
    available, removing = _final_capacity(task, resource)
    needed, arriving = 0, dict[VmId, int]()
    for vm in task.snapshot.vms.values():
        conditions = task.vm_conditions.get(vm.id)
        ends = conditions[0].state if conditions else vm.state
        if ends is VmState.RUNNING and not vm.agent:
            need = consumption_of(vm, resource)
            if vm.state is VmState.RUNNING:
                needed += need
            elif need:
                arriving[vm.id] = need
    conditions_in_conflict: list[PlanCondition] = [*removing]
    # The largest arrivals first, so that few conditions show the shortage.
    for name, need in sorted(arriving.items(), key=lambda arrival: (-arrival[1], arrival[0])):
        if needed > available:
            break
        needed += need
        conditions_in_conflict += task.vm_conditions[name]
    if needed <= available:
        return None
    reason = (
        f"all VMs together need {needed:,} of {resource}; all hosts together have {available:,}"
    )
    reasons = (ConflictReason("no-capacity", reason),)
    return ConditionConflict.of(conditions_in_conflict, reasons, minimal=False)


def _final_capacity(task: PlanningTask, resource: str) -> tuple[int, list[HostCondition]]:
    """Return how much of a resource remains at the end, and the conditions that remove some of it.

    A host that is overfull from the beginning may stay so.
    """
    available, removing = 0, list[HostCondition]()
    loads = _loads(task, resource)
    for host in task.snapshot.hosts.values():
        conditions = task.host_conditions.get(host.id, [])
        ends = conditions[0].state if conditions else host.state
        # An overfull host counts with its load, so that the bound stays valid.
        most = max(capacity_of(host, resource), loads.get(host.id, 0))
        if ends is HostState.ON or (ends is HostState.STANDBY and not conditions):
            available += most
        elif most:
            removing += conditions
    return available, removing


def _loads(task: PlanningTask, resource: str) -> Mapping[HostId, int]:
    loads: dict[HostId, int] = {}
    for vm in task.snapshot.vms.values():
        if vm.host is not None and vm.state is VmState.RUNNING:
            loads[vm.host] = loads.get(vm.host, 0) + consumption_of(vm, resource)
    return loads
