"""Why there is no plan for a problem that is too large to be looked at whole.

What is left out of a problem makes it easier: claims, and VMs that take room. So a part without a
plan proves that there is none, and a part with a plan says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from equipoise.model.host import HostState
from equipoise.model.problem.durations import SWITCHING
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState
from equipoise.plan.exact.answer import Conflict
from equipoise.plan.exact.near.misplaced import as_wished, misplaced
from equipoise.plan.exact.subjects import subjects
from equipoise.plan.exact.task import Claim, HostClaim, RuleClaim, Task, VmClaim
from equipoise.spec.view import CPU, MEMORY, capacity_of, consumption_of

PLACES_MAX: Final = 500_000
"""How many places, VMs times hosts, are looked at in all parts together."""


def parts_of(task: Task) -> Iterator[Task]:
    """The parts of a task in which something has to happen, the smallest first.

    A part are VMs that hang together by rules about them and nobody else. Rules about whoever is
    somewhere are left out, and so is whoever is in no part.
    """
    if task.asked_times_ms is not None:
        return  # who waits for times may need those that others bring
    uneasy = misplaced(task, as_wished(task)) | task.vm_goals.keys()
    claims = _by_group(task)
    kinds = _kinds_of_host(task)
    parts = [one for one in claims if not one.isdisjoint(uneasy)]
    left = PLACES_MAX
    for vms in sorted(parts, key=lambda one: (len(one), sorted(one))):
        if any(task.snapshot.vms[vm].agent for vm in vms):
            continue  # what becomes of them depends on their hosts
        part = _part(task, vms, claims[vms], kinds)
        left -= len(vms) * len(part.snapshot.hosts)
        if left < 0:
            return
        yield part


def _kinds_of_host(task: Task) -> list[list[HostId]]:
    """Hosts that differ in nothing but their names, together."""
    found: dict[Any, list[HostId]] = {}
    given = task.problem.durations
    switching = [given[kind].of for kind in SWITCHING if kind in given]
    for host in task.snapshot.hosts.values():
        kind = (
            *(host.state, host.cores, host.usable_cpu_mhz, host.usable_memory_mib),
            *(frozenset(host.capacity.items()), frozenset(host.labels.items())),
            *(of.get(host.id) for of in switching),
            host.id if task.problem.network is not None else None,
        )
        found.setdefault(kind, []).append(host.id)
    return list(found.values())


def _by_group(task: Task) -> dict[frozenset[VmId], list[Claim]]:
    """The claims about VMs, by the groups that these make of them."""
    about: list[tuple[Claim, frozenset[VmId]]] = []
    for claim in task.hard:
        if isinstance(claim, VmClaim):
            about.append((claim, frozenset({claim.vm})))
        elif isinstance(claim, RuleClaim):
            vms = subjects(claim.demand)
            if vms:
                about.append((claim, vms & task.snapshot.vms.keys()))
    groups = _Groups()
    for _, vms in about:
        groups.join(vms)
    members = groups.members()
    found: dict[frozenset[VmId], list[Claim]] = {}
    for claim, vms in about:
        for vm in sorted(vms)[:1]:
            found.setdefault(members[groups.first(vm)], []).append(claim)
    return found


class _Groups:
    """Who belongs together, by way of others too."""

    def __init__(self) -> None:
        self._towards: dict[VmId, VmId] = {}

    def first(self, vm: VmId) -> VmId:
        """The one by whom a group is known."""
        towards = self._towards
        while towards.setdefault(vm, vm) != vm:
            towards[vm] = towards[towards[vm]]
            vm = towards[vm]
        return vm

    def join(self, vms: Iterable[VmId]) -> None:
        """Put all of them into one group."""
        firsts = sorted({self.first(vm) for vm in vms})
        self._towards.update(dict.fromkeys(firsts, *firsts[:1]))

    def members(self) -> dict[VmId, frozenset[VmId]]:
        """Everybody in each group, by the one it is known by."""
        found: dict[VmId, set[VmId]] = {}
        for vm in list(self._towards):
            found.setdefault(self.first(vm), set()).add(vm)
        return {vm: frozenset(some) for vm, some in found.items()}


def _part(
    task: Task, vms: frozenset[VmId], claims: Iterable[Claim], kinds: Iterable[list[HostId]]
) -> Task:
    """The task of some VMs alone; of hosts that are alike, with as many as they can ever visit."""
    whole = task.snapshot
    named = {host for claim in claims for host in _hosts_in(_arguments(claim))}
    named |= {host for vm in vms if (host := whole.vms[vm].host) is not None}
    about = [one for host in sorted(named) for one in task.host_goals.get(host, ())]
    visits = len(vms) * task.problem.moves_max
    kept = named.union(*(islice((h for h in kind if h not in named), visits) for kind in kinds))
    snapshot = Snapshot(
        version=whole.version,
        at_ms=whole.at_ms,
        hosts=FrozenMap({host: whole.hosts[host] for host in whole.hosts if host in kept}),
        vms=FrozenMap({vm: whole.vms[vm] for vm in whole.vms if vm in vms}),
        settings=whole.settings,
    )
    return replace(task, snapshot=snapshot, claims=(*claims, *about), known_parts=None)


def _arguments(claim: Claim) -> Iterable[Any]:
    return claim.demand.arguments.values() if isinstance(claim, RuleClaim) else ()


def _hosts_in(values: Iterable[Any]) -> Iterator[HostId]:
    """Every name in some arguments; those of VMs do no harm."""
    for value in values:
        if isinstance(value, str):
            yield HostId(value)
        elif isinstance(value, frozenset | tuple):
            yield from _hosts_in(value)


def lack_of_room(task: Task) -> Conflict | None:
    """The claims for which there is not enough of something, all hosts taken together."""
    names = {name for vm in task.snapshot.vms.values() for name in vm.consumption}
    for resource in (CPU, MEMORY, *sorted(names)):
        found = _lack(task, resource)
        if found is not None:
            return found
    return None


def _lack(task: Task, resource: str) -> Conflict | None:
    there, gone = _room(task, resource)
    needs, comers = 0, dict[VmId, int]()
    for vm in task.snapshot.vms.values():
        claims = task.vm_goals.get(vm.id)
        ends = claims[0].state if claims else vm.state
        if ends is VmState.RUNNING and not vm.agent:
            need = consumption_of(vm, resource)
            if vm.state is VmState.RUNNING:
                needs += need
            elif need:
                comers[vm.id] = need
    wanted: list[Claim] = [*gone]
    for name, need in sorted(comers.items(), key=lambda one: (-one[1], one[0])):
        if needs > there:
            break
        needs += need
        wanted += task.vm_goals[name]
    if needs <= there:
        return None
    why = f"{needs:,} of {resource} are needed on all hosts together, and there are {there:,}"
    return Conflict(tuple(wanted), (why,), minimal=False)


def _room(task: Task, resource: str) -> tuple[int, list[HostClaim]]:
    """What there is of a resource in the end, and the claims that take some of it away.

    A host that is too full from the beginning may stay so.
    """
    there, gone = 0, list[HostClaim]()
    loads = _loads(task, resource)
    for host in task.snapshot.hosts.values():
        claims = task.host_goals.get(host.id, [])
        ends = claims[0].state if claims else host.state
        most = max(capacity_of(host, resource), loads.get(host.id, 0))
        if ends is HostState.ON or (ends is HostState.STANDBY and not claims):
            there += most
        elif most:
            gone += claims
    return there, gone


def _loads(task: Task, resource: str) -> Mapping[HostId, int]:
    found: dict[HostId, int] = {}
    for vm in task.snapshot.vms.values():
        if vm.host is not None and vm.state is VmState.RUNNING:
            found[vm.host] = found.get(vm.host, 0) + consumption_of(vm, resource)
    return found
