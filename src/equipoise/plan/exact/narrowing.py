"""The scopes of a search, the narrowest first, and the VMs and hosts that belong to them.

The last scope is the whole problem, if it fits into one model. A region is a scope for problems in
which well-placed VMs must make way: some hosts and all VMs on them, each region larger than the one
before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import Final

from equipoise.capacity import ledger
from equipoise.capacity.ledger import (
    Claim,
    CommittedCapacity,
    claimed_resources,
    host_limits,
    vm_claim,
)
from equipoise.capacity.overload import DEMANDED
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.draft import TouchedEntities
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.task import PlanningTask, RuleCondition, SearchScope, relevant_vms
from equipoise.spec.evaluate.cells import TrackingView
from equipoise.spec.evaluate.view import (
    CONFIGURED_MEMORY,
    CPU,
    MEMORY,
    VCPUS,
    EvaluationContext,
    StateView,
)
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
        vms=snapshot.vms.but(vms),
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


class AllowedHosts:
    """The hosts that the simplest rules allow for each VM."""

    def __init__(self, task: PlanningTask) -> None:
        self._snapshot = task.snapshot
        self._rules: dict[VmId, list[RuleCondition]] = {}
        for condition in task.hard:
            if (
                isinstance(condition, RuleCondition)
                and condition.requirement.library_name in _PLACEMENT_CONSTRAINTS
            ):
                for vm in condition.named_vms:
                    self._rules.setdefault(vm, []).append(condition)

    def hosts(self, vm: VmId) -> Collection[HostId] | None:
        """Return the hosts that the rules about a VM allow; ``None`` if there is no such rule."""
        allowed: frozenset[HostId] | None = None
        for condition in self._rules.get(vm, ()):
            by_rule = frozenset(self._by(condition, vm))
            allowed = by_rule if allowed is None else allowed & by_rule
        return allowed

    def _by(self, condition: RuleCondition, vm: VmId) -> Iterable[HostId]:
        arguments = condition.requirement.arguments
        if "parts" in arguments:
            return self._among(arguments["parts"], arguments["vs"] - {vm})
        named: frozenset[HostId] = arguments["ns"]
        inside = condition.requirement.name in ("Fence", "MustRunOn")
        return named if inside else self._snapshot.hosts.keys() - named

    def _among(
        self, parts: Collection[frozenset[HostId]], others: Collection[VmId]
    ) -> Iterator[HostId]:
        """Yield the hosts of the groups that the other VMs use already, or of all groups."""
        used = {self._snapshot.placement.get(vm) for vm in others} - {None}
        for part in [part for part in parts if used & part] or parts:
            yield from part


_PLACEMENT_CONSTRAINTS = frozenset({"Fence", "Ban", "MustRunOn", "MustNotRunOn", "Among"})


class CandidateFinder:
    """Chooses candidate hosts by the free capacity of each host, which it updates."""

    def __init__(self, task: PlanningTask, desired: Snapshot) -> None:
        self._task = task
        self._desired = desired
        limits = {host.id: host_limits(host) for host in desired.hosts.values()}
        for host, resource, most in _rule_limits(task):
            limits[host][resource] = min(most, limits[host].get(resource, 0))
        self._capacity = CommittedCapacity(limits)
        self._capacity.commit_snapshot(desired)
        # A resource that no VM claims says nothing about how full a host is.
        claimed = {resource for vm in desired.vms.values() for resource in vm_claim(vm)}
        self._claimed = [name for name in claimed_resources(desired) if name in claimed]
        self._demand = {host: [0] * len(DEMANDED) for host in desired.hosts}
        for vm in desired.vms.values() if task.demands else ():
            if vm.state is VmState.RUNNING and vm.host is not None:
                self._add_demand(vm.id, vm.host)
        usable = [host for host in desired.hosts.values() if self._is_usable(host)]
        # Hosts that are on come first, and among them the emptiest.
        usable.sort(key=self._fullness)
        self._hosts = [host.id for host in usable]
        self._turn = 0
        self._allowed = AllowedHosts(task)

    def evicted(self, misplaced: Iterable[VmId]) -> list[VmId]:
        """Return the misplaced VMs that must leave their host.

        On an overfull host, only as many leave as capacity requires. Elsewhere all of them leave.
        """
        by_host: dict[HostId, list[VmId]] = {}
        for vm in sorted(misplaced):
            host = self._desired.vms[vm].host
            if host is not None:
                by_host.setdefault(host, []).append(vm)
        leaving: list[VmId] = []
        for host, vms in by_host.items():
            is_on = self._desired.hosts[host].state is HostState.ON
            leaving += (
                self._shed(host, vms) if is_on and self._capacity.is_overcommitted(host) else vms
            )
        return leaving

    def find_hosts(self, movers: Sequence[VmId], count: int) -> dict[VmId, list[HostId]]:
        """Return candidate hosts for some VMs, the largest VM first.

        The first host of each VM is the guess; its capacity is taken.
        """
        hosts: dict[VmId, list[HostId]] = {}
        # The largest first, as in first-fit decreasing: small VMs fill the gaps that remain.
        for vm in sorted(movers, key=lambda mover: (-sum(self._claim(mover).values()), mover)):
            hosts[vm] = self._candidates(vm, count)
            if hosts[vm]:
                self._capacity.commit(self._claim(vm), hosts[vm][0])
                self._add_demand(vm, hosts[vm][0])
        return hosts

    def _add_demand(self, vm: VmId, host: HostId) -> None:
        for column, amount in enumerate(self._task.demands.get(vm, ())):
            self._demand[host][column] += amount

    def _overloads(self, vm: VmId, host: HostId) -> bool:
        """Return whether the demand on a host exceeds its capacity with a VM that comes to it."""
        known = self._desired.hosts[host]
        return any(
            amount > 0 and self._demand[host][column] + amount > DEMANDED[column].of_host(known)
            for column, amount in enumerate(self._task.demands.get(vm, ()))
        )

    def closest_fit(self, vm: VmId, count: int) -> list[HostId]:
        """Return the hosts that could hold a VM and lack the least capacity for it."""
        claim, allowed = self._claim(vm), self._allowed.hosts(vm)
        short = [
            (self._shortfall(host, claim), host)
            for host in self._hosts
            if (allowed is None or host in allowed) and self._could_hold(host, claim)
        ]
        return [host for _, host in nsmallest(count, short)]

    def _could_hold(self, host: HostId, claim: Claim) -> bool:
        limits = self._capacity.limits[host]
        return all(need <= limits.get(resource, 0) for resource, need in claim.items())

    def _shortfall(self, host: HostId, claim: Claim) -> float:
        """Return the part of a claim that a host lacks, of the scarcest resource."""
        shortages = self._capacity.shortages(claim, host)
        return max(((short.need - short.free) / short.need for short in shortages), default=0.0)

    def _claim(self, name: VmId) -> Claim:
        vm = self._desired.vms[name]
        wanted = self._task.amounts.get(name)
        if wanted and vm.state is not VmState.RUNNING:
            vm = vm.but(consumption={**vm.consumption, **wanted})
        return vm_claim(vm)

    def _shed(self, host: HostId, vms: list[VmId]) -> Iterator[VmId]:
        """Yield few VMs whose leaving makes a host fit: the smallest that suffices, or largest."""
        staying = list(vms)
        while staying and self._capacity.is_overcommitted(host):
            # Relieve the resource that lacks most.
            worst = min(self._claimed, key=lambda resource: self._capacity.free(host, resource))
            missing = -self._capacity.free(host, worst)
            staying.sort(key=lambda vm: (self._claim(vm).get(worst, 0), vm))
            enough = (vm for vm in staying if self._claim(vm).get(worst, 0) >= missing)
            leaver = next(enough, staying[-1])
            staying.remove(leaver)
            self._capacity.release(self._claim(leaver), host)
            yield leaver

    def _candidates(self, vm: VmId, count: int) -> list[HostId]:
        claim, allowed = self._claim(vm), self._allowed.hosts(vm)
        now, chosen = self._desired.vms[vm].host, list[HostId]()
        overloaded: list[HostId] = []  # taken only if there are too few others
        for offset in range(len(self._hosts)):
            host = self._hosts[(self._turn + offset) % len(self._hosts)]
            if host == now or (allowed is not None and host not in allowed):
                continue
            if not self._capacity.fits(claim, host):
                continue
            if self._overloads(vm, host):
                overloaded.append(host)
                continue
            chosen.append(host)
            if len(chosen) == count:
                break
        self._turn += 1  # the next VM begins with another host, so that they do not all share one
        return (chosen + overloaded)[:count]

    def _is_usable(self, host: Host) -> bool:
        conditions = self._task.host_conditions.get(host.id)
        return host.state is HostState.ON or (host.state is HostState.STANDBY and not conditions)

    def _fullness(self, host: Host) -> tuple[bool, float]:
        limits = self._capacity.limits[host.id]
        shares = [
            self._capacity.free(host.id, resource) / limits[resource]
            for resource in self._claimed
            if limits.get(resource, 0) > 0
        ]
        if self._task.demands:
            shares += [
                1 - amount / max(1, resource.of_host(host))
                for amount, resource in zip(self._demand[host.id], DEMANDED, strict=True)
            ]
        return host.state is not HostState.ON, -min(shares, default=0.0)


def _rule_limits(task: PlanningTask) -> Iterator[tuple[HostId, str, int]]:
    """Yield the limits that rules set on a resource of single hosts."""
    for condition in task.hard:
        if isinstance(condition, RuleCondition):
            arguments = condition.requirement.arguments
            is_capacity = condition.requirement.library_name == "ResourceCapacity"
            if is_capacity and len(arguments["ns"]) == 1:
                (host,), resource = arguments["ns"], arguments["id"]
                yield host, _LABELS.get(resource, resource), arguments["qty"]


_LABELS: Final = {
    CPU: ledger.CPU.label,
    MEMORY: ledger.MEMORY.label,
    CONFIGURED_MEMORY: ledger.CONFIGURED_MEMORY.label,
    VCPUS: ledger.VCPUS.label,
}
"""The resources of the specification language that the ledger names differently."""


REGION_HOSTS: Final = (16, 64, 256)
"""Hosts in a region, besides those that VMs have to leave."""


def regions(
    task: PlanningTask, desired: Snapshot, vms: Sequence[VmId], most: int
) -> Iterator[SearchScope]:
    """Yield scopes in which some VMs find a host, and the VMs of these hosts may move as well.

    None of them has more than ``most`` placements.
    """
    finder = CandidateFinder(task, desired)
    source_hosts = {host for vm in vms if (host := task.snapshot.vms[vm].host) is not None}
    for size in REGION_HOSTS:
        if len(vms) > size:
            continue
        hosts = sorted(source_hosts | set(_nearest(finder, vms, size)))
        movable_vms = sorted({*vms, *_movable(task, hosts)})
        if len(movable_vms) * len(hosts) > most:
            return
        yield SearchScope(
            moves=task.problem.moves_max,
            movable=frozenset(movable_vms),
            hosts=dict.fromkeys(movable_vms, hosts),
        )


def _nearest(finder: CandidateFinder, vms: Sequence[VmId], size: int) -> Iterator[HostId]:
    """Yield for each VM its share of the hosts that lack the least capacity for it."""
    # Rounded up, so that the shares together fill the region.
    share = -(-size // max(1, len(vms)))
    for vm in vms:
        yield from finder.closest_fit(vm, share)


def _movable(task: PlanningTask, hosts: Sequence[HostId]) -> Iterator[VmId]:
    for host in hosts:
        for name in task.snapshot.residents[host]:
            vm = task.snapshot.vms[name]
            if vm.state is VmState.RUNNING and not vm.agent:
                yield name


SMALL_MAX: Final = 2_000
"""Placements, VMs times hosts, up to which the whole problem is searched at once."""
TINY_MAX: Final = 50
"""Placements up to which an optimising search takes the whole problem at once."""
WHOLE_MAX: Final = 500_000
"""Placements up to which the whole problem is searched if no narrower scope has a plan."""
CANDIDATES_MAX: Final = 4_000
"""Placements to which a large problem is narrowed at first."""


def search_scopes(task: PlanningTask, *, repair: bool, optimise: bool) -> Iterator[SearchScope]:
    """Yield the scopes to search, one after the other."""
    most = task.problem.moves_max
    is_small = len(task.snapshot.vms) * len(task.snapshot.hosts) <= SMALL_MAX
    if repair or not is_small:
        desired = as_desired(task)
        movers = misplaced_vms(task, desired)
        if is_small:
            yield SearchScope(moves=most, movable=movers)
        else:
            yield from _narrow_scopes(task, desired, movers)
    # From here on the scopes have all VMs. A tiny problem is solved in the largest scope at once
    # when the optimum is wanted: smaller scopes could not prove it.
    if is_too_large(task):
        return
    if not task.problem.network and not (optimise and is_tiny(task)):
        yield SearchScope(moves=1, in_parallel=True)
    if most > 1 and not (optimise and is_tiny(task)):
        yield SearchScope(moves=1)
    yield SearchScope(moves=most)


def is_tiny(task: PlanningTask) -> bool:
    """Whether the whole is searched faster than a narrow scope and then the whole."""
    return len(task.snapshot.vms) * len(task.snapshot.hosts) <= TINY_MAX


def is_too_large(task: PlanningTask) -> bool:
    """Whether the whole problem is too large for one model."""
    return len(task.snapshot.vms) * len(task.snapshot.hosts) > WHOLE_MAX


def _narrow_scopes(
    task: PlanningTask, desired: Snapshot, movers: frozenset[VmId]
) -> Iterator[SearchScope]:
    """Yield narrow scopes: first the VMs of the greedy guess, then all that may be misplaced.

    Wider regions follow only for a problem that is too large to be searched as a whole.
    """
    # Without optimisation a wider scope is searched only if the ones before have no plan. So a
    # large problem costs a small model, and a wrong guess costs time but never a plan.
    arriving = [vm for vm in task.vm_conditions if _is_to_start(task, vm)]
    most = task.problem.moves_max
    finder = CandidateFinder(task, desired)
    few = [*finder.evicted(movers), *arriving]
    count = _count(len(few))
    hosts = finder.find_hosts(few, count)
    # On shared links migrations wait for each other, so nothing ends as early as in parallel.
    for parallel in (False,) if task.problem.network else (True, False):
        yield SearchScope(moves=1, movable=frozenset(few), hosts=hosts, in_parallel=parallel)
    every = [*sorted(movers), *arriving]
    # Each scope has four times the hosts: failed ones cost little beside the next.
    for factor in (1, 4, 16):
        hosts = CandidateFinder(task, desired).find_hosts(every, factor * _count(len(every)))
        yield SearchScope(moves=most, movable=movers, hosts=hosts)
    if is_too_large(task):
        yield from regions(task, desired, every, WHOLE_MAX)


def _count(movers: int) -> int:
    # At least three hosts, so that the solver can correct the guess; at most 16, for a small model.
    return max(3, min(16, CANDIDATES_MAX // max(1, movers)))


def _is_to_start(task: PlanningTask, vm: VmId) -> bool:
    """Whether a VM does not run and a condition starts it."""
    runs = task.snapshot.vms[vm].state is VmState.RUNNING
    return not runs and task.vm_conditions[vm][0].state is VmState.RUNNING
