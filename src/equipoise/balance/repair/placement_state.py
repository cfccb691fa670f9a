"""The placement state of a repair search: the host of every VM and the open problems.

A search applies moves to it and undoes them. It tracks every open problem: a VM that must leave its
host, VMs that must not share or must share a host, a host with more committed than it has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from equipoise.balance.rules import FT_PAIR_RULE, HostBan, PlacementRules, RuleGroup, pinned_vms
from equipoise.capacity.ledger import (
    Claim,
    CommittedCapacity,
    Shortage,
    actions_by_vm,
    holding,
    vm_claim,
)
from equipoise.capacity.overload import DEMANDED, demand_per_vm
from equipoise.model.host import HostState
from equipoise.model.policy.balance import HostOverride
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState


class ProblemKind:
    """The kinds of problems; each is the code of the fault if the problem cannot be repaired.

    They are plain strings and no enum, because a search hashes problems very often.
    """

    MUST_MOVE: Final = "no-target-host"
    """A VM has no host, or must leave its host."""
    KEEP_APART: Final = "keep-apart"
    """VMs of a group share a host."""
    KEEP_TOGETHER: Final = "keep-together"
    """VMs of a group are on different hosts."""
    FT_INCOMPATIBLE: Final = "ft-incompatible"
    """A fault-tolerant pair is on hosts that are not compatible."""
    OVER_RESERVED: Final = "over-reserved"
    """The reservations or the sizes of the VMs on a host exceed its capacity."""


class PlacementProblem(NamedTuple):
    """Something that a move has to repair."""

    kind: str
    """One of ``ProblemKind``."""
    subject: str
    """The VM or the host, or the number of the group."""


class _Claims(dict[VmId, Claim]):
    """The claim of each VM, computed when it is first read: a search touches few of the VMs."""

    def __init__(self, snapshot: Snapshot, vms: Mapping[VmId, Vm]) -> None:
        self._vms, self._running = vms, actions_by_vm(snapshot)

    def __missing__(self, vm: VmId) -> Claim:
        running = self._running.get(vm)
        claim = self[vm] = (
            holding(self._vms[vm], running).claim if running else vm_claim(self._vms[vm])
        )
        return claim


class PlacementState:
    """The host of each VM and the free capacity; ``place`` keeps the open problems up to date."""

    def __init__(
        self, snapshot: Snapshot, rules: PlacementRules, new_vms: Iterable[Vm] = ()
    ) -> None:
        self.snapshot, self.rules = snapshot, rules
        self.vms: dict[VmId, Vm] = {
            vm.id: vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING
        }
        new = {vm.id: vm for vm in new_vms}
        self.host_of: dict[VmId, HostId | None] = {vm.id: vm.host for vm in self.vms.values()}
        self.vms |= new
        self.host_of |= dict.fromkeys(new)
        self.pinned = pinned_vms(snapshot).keys() - new.keys()
        self.claims: Mapping[VmId, Claim] = _Claims(snapshot, self.vms)
        self.capacity = CommittedCapacity.of(snapshot)
        self._demand: dict[HostId, list[int]] | None = None
        self.residents: dict[HostId, dict[VmId, None]] = {host: {} for host in snapshot.hosts}
        self.closed = _closed_hosts(snapshot)
        self._bans: dict[VmId, list[HostBan]] = defaultdict(list)
        for ban in rules.bans:
            for vm in ban.vms:
                self._bans[vm].append(ban)
        self._apart = _groups_by_vm(rules.apart)
        self._together = _groups_by_vm(rules.together)
        for vm, host in self.host_of.items():
            if host is not None:
                self.residents[host][vm] = None
        self.problems: dict[PlacementProblem, list[VmId]] = {}
        """The open problems, each with the VMs of which one must move."""
        self.abandoned: set[PlacementProblem] = set()

    def open_hosts(self) -> list[HostId]:
        """Return the hosts that accept VMs."""
        return [host for host in self.snapshot.hosts if host not in self.closed]

    def banning_rules(self, vm: VmId, host: HostId) -> list[RuleId]:
        """Return the rules that ban a VM from a host."""
        return [ban.rule for ban in self._bans.get(vm, ()) if host in ban.hosts]

    def fits(self, vm: VmId, host: HostId) -> bool:
        """Return whether a host has the capacity for a VM."""
        return self.capacity.fits(self.claims[vm], host)

    def shortages(self, vm: VmId, host: HostId) -> list[Shortage]:
        """Return the resources that a host lacks for a VM."""
        return self.capacity.shortages(self.claims[vm], host)

    def conflicts(self, vm: VmId, host: HostId) -> list[tuple[RuleId, VmId]]:
        """Return the VMs on a host that a VM must be apart from, each with the rule."""
        residents = self.residents[host]
        return [
            (self.rules.apart[number].rule, other)
            for number in self._apart.get(vm, ())
            for other in self.rules.apart[number].vms
            if other != vm and other in residents
        ]

    def is_ft_mismatch(self, vm: VmId, host: HostId) -> bool:
        """Return whether a host is not compatible with the host of the FT partner."""
        pair = self.vms[vm].ft_pair
        pair_host = None if pair is None else self.host_of.get(pair)
        if pair_host is None or not self.rules.ft_labels:
            return False
        return self._labels(pair_host) != self._labels(host)

    def separated(self, vm: VmId, host: HostId) -> list[tuple[RuleId, VmId]]:
        """Return the VMs elsewhere that must be together with a VM on a host, with the rule."""
        return [
            (self.rules.together[number].rule, other)
            for number in self._together.get(vm, ())
            for other in self.rules.together[number].vms
            if other != vm and self.host_of.get(other) not in (None, host)
        ]

    def oversized_resource(self, vm: VmId, host: HostId) -> str:
        """Return a resource of which a VM needs more than a host has; empty if there is none."""
        limits = self.capacity.limits[host]
        short = (name for name, need in self.claims[vm].items() if need > limits.get(name, 0))
        return next(short, "")

    def has_obstacle(self, vm: VmId, host: HostId) -> bool:
        """Return whether anything prevents a VM from being on a host now."""
        return bool(
            self.vms[vm].vcpus > self.snapshot.hosts[host].cores
            or self.banning_rules(vm, host)
            or not self.fits(vm, host)
            or self.conflicts(vm, host)
            or self.separated(vm, host)
            or self.is_ft_mismatch(vm, host)
        )

    def worsens_abandoned(self, vm: VmId, host: HostId) -> bool:
        """Return whether a VM on a host would make a problem worse that the search has given up.

        The gate refuses that, so such a move repairs nothing.
        """
        if not self.abandoned:
            return False
        full = PlacementProblem(ProblemKind.OVER_RESERVED, host)
        if full in self.abandoned and full in self.problems and not self.fits(vm, host):
            return True
        residents = self.residents[host]
        for number in self._apart.get(vm, ()):
            known = PlacementProblem(ProblemKind.KEEP_APART, str(number))
            if known in self.abandoned and known in self.problems:
                others = self.rules.apart[number].vms
                if any(other != vm and other in residents for other in others):
                    return True
        return False

    def place(self, vm: VmId, host: HostId | None) -> HostId | None:
        """Place a VM on a host or on none; return its host before."""
        before = self.host_of[vm]
        if before is not None:
            self.release(vm, before)
        if host is not None:
            self.commit(vm, host)
        self.host_of[vm] = host
        for problem in self._problems_touching(vm, before, host):
            self.refresh_problem(problem)
        return before

    def members(self, problem: PlacementProblem) -> list[VmId]:
        """Return the VMs of which one must move to repair a problem."""
        known = self.problems.get(problem)
        return self._members(problem) if known is None else known

    def _members(self, problem: PlacementProblem) -> list[VmId]:
        match problem.kind:
            case ProblemKind.MUST_MOVE:
                return [VmId(problem.subject)]
            case ProblemKind.OVER_RESERVED:
                return list(self.residents[HostId(problem.subject)])
            case ProblemKind.KEEP_APART:
                return self._vms_sharing_hosts(self.rules.apart[int(problem.subject)])
            case ProblemKind.KEEP_TOGETHER:
                group = self.rules.together[int(problem.subject)]
                return [vm for vm in group.vms if self.host_of.get(vm) is not None]
            case _:
                vm = VmId(problem.subject)
                pair = self.vms[vm].ft_pair
                return [vm] if pair is None else [vm, pair]

    def min_moves(self) -> int:
        """Return a lower bound of the moves that repair all open problems.

        Problems are counted only if they share no VM: one move could repair two that do.
        """
        counted: set[VmId] = set()
        moves = 0
        for problem in self.problems:
            if problem.kind == ProblemKind.MUST_MOVE and problem not in self.abandoned:
                counted.add(VmId(problem.subject))
                moves += self.host_of[VmId(problem.subject)] is not None
        for problem, vms in self.problems.items():
            if problem.kind == ProblemKind.MUST_MOVE or problem in self.abandoned:
                continue
            if counted.isdisjoint(vms):
                counted.update(vms)
                moves += self._min_moves_for(problem, vms)
        return moves

    def _min_moves_for(self, problem: PlacementProblem, vms: list[VmId]) -> int:
        """Return a lower bound of the moves that repair one problem."""
        if problem.kind == ProblemKind.KEEP_APART:
            return len(vms) - len({self.host_of[vm] for vm in vms})
        if problem.kind == ProblemKind.KEEP_TOGETHER:
            hosts = [self.host_of[vm] for vm in vms]
            return len(hosts) - max(map(hosts.count, hosts))
        return 1

    def _vms_sharing_hosts(self, group: RuleGroup) -> list[VmId]:
        """Return the VMs of a group that are not alone on their host."""
        by_host: dict[HostId, list[VmId]] = defaultdict(list)
        for vm in group.vms:
            host = self.host_of.get(vm)
            if host is not None:
                by_host[host].append(vm)
        return [vm for vms in by_host.values() if len(vms) > 1 for vm in vms]

    def _labels(self, host: HostId) -> tuple[str, ...]:
        labels = self.snapshot.hosts[host].labels
        return tuple(labels.get(key, "") for key in self.rules.ft_labels)

    def commit(self, vm: VmId, host: HostId) -> None:
        """Take capacity on a host for a VM."""
        self.capacity.commit(self.claims[vm], host)
        self.residents[host][vm] = None
        self._add_demand(vm, host, 1)

    def release(self, vm: VmId, host: HostId) -> None:
        """Give back the capacity of a VM on a host."""
        self.capacity.release(self.claims[vm], host)
        del self.residents[host][vm]
        self._add_demand(vm, host, -1)

    @property
    def demand(self) -> Mapping[HostId, Sequence[int]]:
        """The demand on each host that limits let VMs use: MHz and MiB."""
        if self._demand is None:
            self._demand = {host: [0] * len(DEMANDED) for host in self.residents}
            for host, vms in self.residents.items():
                for vm in vms:
                    self._add_demand(vm, host, 1)
        return self._demand

    @cached_property
    def _demand_of(self) -> Mapping[VmId, tuple[int, int]]:
        return demand_per_vm(self.snapshot, list(self.vms.values()))

    def _add_demand(self, vm: VmId, host: HostId, sign: int) -> None:
        demanded = None if self._demand is None else self._demand_of.get(vm)
        if demanded is not None and self._demand is not None:
            amounts = self._demand[host]
            for column, amount in enumerate(demanded):
                amounts[column] += sign * amount

    def pressure(self, host: HostId) -> float:
        """Return the demand on a host as a part of its capacity, CPU plus memory."""
        limits = [max(1, resource.of_host(self.snapshot.hosts[host])) for resource in DEMANDED]
        return sum(amount / limit for amount, limit in zip(self.demand[host], limits, strict=True))

    def overloads(self, vm: VmId, host: HostId) -> bool:
        """Return whether the demand on a host exceeds its capacity with a VM that comes to it."""
        known = self.snapshot.hosts[host]
        return any(
            amount > 0 and self.demand[host][column] + amount > resource.of_host(known)
            for column, (resource, amount) in enumerate(
                zip(DEMANDED, self._demand_of.get(vm, ()), strict=False)
            )
        )

    def excess_demand(self) -> dict[tuple[HostId, int], int]:
        """Return by how much the demand on a host exceeds its capacity, of CPU and of memory."""
        hosts = self.snapshot.hosts
        return {
            (host, column): amount - resource.of_host(hosts[host])
            for host, amounts in self.demand.items()
            for column, (resource, amount) in enumerate(zip(DEMANDED, amounts, strict=True))
            if amount > resource.of_host(hosts[host])
        }

    def find_problems(self) -> None:
        """Find all problems.

        VMs with large reservations come first, because they fit on the fewest hosts.
        """
        nowhere = [vm for vm, host in self.host_of.items() if host is None]
        leaving = [
            vm
            for host in self.snapshot.hosts.values()
            if host.requested is not None
            for vm in self.residents[host.id]
        ]
        for vm in sorted(
            {*nowhere, *leaving, *(vm for vm in self._bans if vm in self.host_of)},
            key=lambda vm: (-sum(self.claims[vm].values()), vm),
        ):
            self.refresh_problem(PlacementProblem(ProblemKind.MUST_MOVE, vm))
        for paired in self.vms.values() if self.rules.ft_labels else ():
            if paired.ft_pair is not None:
                self.refresh_problem(_ft_mismatch(paired.id, paired.ft_pair))
        for number in range(len(self.rules.apart)):
            self.refresh_problem(PlacementProblem(ProblemKind.KEEP_APART, str(number)))
        for number in range(len(self.rules.together)):
            self.refresh_problem(PlacementProblem(ProblemKind.KEEP_TOGETHER, str(number)))
        for host in self.snapshot.hosts:
            self.refresh_problem(PlacementProblem(ProblemKind.OVER_RESERVED, host))

    def _problems_touching(
        self, vm: VmId, before: HostId | None, after: HostId | None
    ) -> Iterator[PlacementProblem]:
        """Yield the problems that a move of a VM can create or repair."""
        yield PlacementProblem(ProblemKind.MUST_MOVE, vm)
        pair = self.vms[vm].ft_pair
        if pair is not None:
            yield _ft_mismatch(vm, pair)
        yield from (
            PlacementProblem(ProblemKind.KEEP_APART, str(number))
            for number in self._apart.get(vm, ())
        )
        yield from (
            PlacementProblem(ProblemKind.KEEP_TOGETHER, str(number))
            for number in self._together.get(vm, ())
        )
        yield from (
            PlacementProblem(ProblemKind.OVER_RESERVED, host)
            for host in (before, after)
            if host is not None
        )

    def refresh_problem(self, problem: PlacementProblem) -> None:
        """Add or remove a problem, depending on whether it exists."""
        if self._exists(problem):
            self.problems[problem] = self._members(problem)
        else:
            self.problems.pop(problem, None)

    def _exists(self, problem: PlacementProblem) -> bool:
        match problem.kind:
            case ProblemKind.MUST_MOVE:
                vm = VmId(problem.subject)
                host = self.host_of[vm]
                return host is None or not self._may_stay(vm, host)
            case ProblemKind.OVER_RESERVED:
                return self.capacity.is_overcommitted(HostId(problem.subject))
            case ProblemKind.KEEP_APART:
                return bool(self._vms_sharing_hosts(self.rules.apart[int(problem.subject)]))
            case ProblemKind.KEEP_TOGETHER:
                group = self.rules.together[int(problem.subject)]
                hosts = {self.host_of.get(vm) for vm in group.vms} - {None}
                return len(hosts) > 1
            case _:
                vm = VmId(problem.subject)
                host = self.host_of.get(vm)
                return vm in self.vms and host is not None and self.is_ft_mismatch(vm, host)

    def _may_stay(self, vm: VmId, host: HostId) -> bool:
        current = self.snapshot.hosts[host]
        leaves = current.state is HostState.ON and current.requested is not None
        return (self.vms[vm].agent or not leaves) and not self.banning_rules(vm, host)


def _ft_mismatch(vm: VmId, pair: VmId) -> PlacementProblem:
    """Return the problem of a pair; it is the same for both VMs."""
    return PlacementProblem(ProblemKind.FT_INCOMPATIBLE, min(vm, pair))


def _closed_hosts(snapshot: Snapshot) -> dict[HostId, str]:
    """Return the hosts that accept no VMs, each with the reason."""
    overrides = snapshot.settings.balance.hosts
    closed = {}
    for host in snapshot.hosts.values():
        if host.state is not HostState.ON:
            closed[host.id] = f"it is {_state_phrase(host.state)}"
        elif host.requested is not None:
            closed[host.id] = f"it goes into {host.requested}"
        elif min(host.usable_cpu_mhz, host.usable_memory_mib) <= 0:
            closed[host.id] = "it has no capacity"
        elif host.id in overrides:
            verb = "excludes" if overrides[host.id] is HostOverride.OFF else "closes"
            closed[host.id] = f"the balance policy {verb} it"
    return closed


def _state_phrase(state: HostState) -> str:
    return "failed" if state is HostState.FAILED else f"in {state}"


def _groups_by_vm(groups: tuple[RuleGroup, ...]) -> dict[VmId, list[int]]:
    """Return the numbers of the groups of each VM."""
    groups_of: dict[VmId, list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        for vm in group.vms:
            groups_of[vm].append(number)
    return groups_of


def problem_rules(placement_state: PlacementState, problem: PlacementProblem) -> list[RuleId]:
    """Return the rules that a problem breaks."""
    match problem.kind:
        case ProblemKind.KEEP_APART:
            rule = placement_state.rules.apart[int(problem.subject)].rule
            return [rule, *placement_state.rules.ft_apart_rules] if rule == FT_PAIR_RULE else [rule]
        case ProblemKind.KEEP_TOGETHER:
            return [placement_state.rules.together[int(problem.subject)].rule]
        case ProblemKind.FT_INCOMPATIBLE:
            return list(placement_state.rules.ft_compatible_rules)
        case ProblemKind.MUST_MOVE:
            vm = VmId(problem.subject)
            host = placement_state.host_of[vm]
            return [] if host is None else placement_state.banning_rules(vm, host)
        case _:
            return []
