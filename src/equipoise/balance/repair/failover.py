"""Failover reserve: spare VMs that hold the capacity in which lost VMs restart.

For a rule that tolerates the loss of N hosts, the VMs on the N worst hosts are placed a second
time. Fragmented capacity cannot hold such a spare VM.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from math import comb
from typing import Final, NamedTuple

from equipoise.balance.repair.placement_state import PlacementState
from equipoise.balance.rules import HostBan, PlacementRules
from equipoise.capacity.ledger import host_limits, vm_claim
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm, VmState

SPARE_PREFIX: Final = "spare:"
FAILURES_TRIED_MAX: Final = 2_000
"""Up to so many combinations of failing hosts are tried; beyond, only the worst hosts fail."""
PLACEMENTS_TRIED_MAX: Final = 5_000
"""The budget of the search for a placement of the VMs of failed hosts."""


def failover_spares(snapshot: Snapshot, rules: PlacementRules) -> tuple[list[Vm], list[HostBan]]:
    """Return the spare VMs that the rules require, and the hosts on which they must not be."""
    if not rules.failover_counts:
        return [], []
    # A spare holds capacity of every resource, so the rule with the largest count covers all.
    rule, count = max(rules.failover_counts, key=lambda pair: pair[1])
    hosts = _worst_hosts(snapshot, count)
    vms = [vm for host in hosts for vm in _vms_to_restart(snapshot, host)]
    spares = {vm: _spare(snapshot.vms[vm], rule) for vm in vms}
    bans = [HostBan(rule, frozenset(spare.id for spare in spares.values()), frozenset(hosts))]
    bans += _bans_of_spares(rules, spares)
    return list(spares.values()), bans if spares else []


def _bans_of_spares(rules: PlacementRules, spares: dict[VmId, Vm]) -> list[HostBan]:
    """Return the bans of the spares: those of the originals, except bans from failover hosts."""
    bans = []
    for ban in rules.bans:
        banned = frozenset(spares[vm].id for vm in spares if vm in ban.vms)
        if banned and ban.rule not in rules.failover_host_rules:
            bans.append(HostBan(ban.rule, banned, ban.hosts))
    return bans


def is_spare(vm: VmId) -> bool:
    """Return whether a VM is a spare, which exists only in the search."""
    return vm.startswith(SPARE_PREFIX)


def original_vm(spare: VmId) -> str:
    """Return the VM that a spare stands for."""
    return spare.removeprefix(SPARE_PREFIX).partition(":")[2]


def _worst_hosts(snapshot: Snapshot, count: int) -> list[HostId]:
    """Return the hosts whose loss is the worst: their VMs claim most of what the others have."""
    # The VMs of a host that is to be switched move away in any case.
    on = [
        host
        for host in snapshot.hosts.values()
        if host.state is HostState.ON and host.requested is None
    ]
    totals = Counter[str]()
    for host in on:
        totals.update(host_limits(host))

    def share(host: Host) -> float:
        claims = Counter[str]()
        for vm in _vms_to_restart(snapshot, host.id):
            claims.update(vm_claim(snapshot.vms[vm]))
        return max((claims[name] / totals[name] for name in claims if totals[name]), default=0.0)

    return [host.id for host in sorted(on, key=share, reverse=True)[:count]]


def _vms_to_restart(snapshot: Snapshot, host: HostId) -> list[VmId]:
    """Return the running VMs of a host, which need capacity elsewhere when it fails."""
    vms = (snapshot.vms[vm] for vm in snapshot.residents[host])
    return [vm.id for vm in vms if vm.state is VmState.RUNNING and not vm.agent]


def _spare(vm: Vm, rule: RuleId) -> Vm:
    """Return the spare of a VM."""
    return vm.but(
        # No demand: a spare holds capacity and must not repel other VMs by its load.
        id=VmId(f"{SPARE_PREFIX}{rule}:{vm.id}"),
        host=None,
        demand=Demand(),
        ft_pair=None,
    )


class LostVm(NamedTuple):
    """A VM that cannot restart, and the host whose failure would stop it."""

    vm: VmId
    host: HostId


class FailoverReserve:
    """Whether all VMs with reservations could restart after the failures that rules prepare for."""

    def __init__(self, rules: PlacementRules) -> None:
        self.rules = tuple(rule for rule, count in rules.failover_counts if count)
        self._count = max((count for _, count in rules.failover_counts), default=0)
        self._failover_rules = rules.failover_host_rules

    def find_lost_vm(self, placement_state: PlacementState) -> LostVm | None:
        """Return a VM that could not restart if its host failed; ``None`` if the reserve holds."""
        if not self._count:
            return None
        for failing in self._failures(placement_state):
            lost = _lost_vms(placement_state, failing)
            unplaced = self._restart(placement_state, lost, frozenset(failing))
            if unplaced is not None:
                host = placement_state.host_of[unplaced]
                assert host is not None, "a lost VM had a host"
                return LostVm(unplaced, host)
        return None

    def _failures(self, placement_state: PlacementState) -> Iterable[tuple[HostId, ...]]:
        """Return the combinations of hosts that may fail together."""
        on = [
            host.id
            for host in placement_state.snapshot.hosts.values()
            if host.state is HostState.ON and host.requested is None
        ]
        count = min(self._count, len(on))
        if comb(len(on), count) <= FAILURES_TRIED_MAX:
            return combinations(on, count)

        def reserved(host: HostId) -> int:
            lost = _lost_vms(placement_state, [host])
            return sum(sum(placement_state.claims[vm].values()) for vm in lost)

        # The most reserved hosts, in every combination that the limit allows.
        worst = sorted(on, key=reserved, reverse=True)
        return islice(combinations(worst, count), FAILURES_TRIED_MAX)

    def _restart(
        self, placement_state: PlacementState, lost: Sequence[VmId], failing: frozenset[HostId]
    ) -> VmId | None:
        """Return the VM at which a search for hosts for all lost VMs failed, or ``None``.

        Depth first, the largest VM first. The placement state is left as it was.
        """
        hosts = [host for host in placement_state.open_hosts() if host not in failing]
        chosen: list[HostId] = []
        options: list[Iterator[HostId]] = []
        deepest, budget = 0, PLACEMENTS_TRIED_MAX + len(lost)
        while len(chosen) < len(lost):
            vm = lost[len(chosen)]
            deepest = max(deepest, len(chosen))
            if len(options) == len(chosen):
                options.append(self._options(placement_state, vm, hosts))
            budget -= 1
            host = next(options[-1], None) if budget > 0 else None
            if host is not None:
                placement_state.capacity.commit(placement_state.claims[vm], host)
                chosen.append(host)
                continue
            options.pop()
            if not chosen or budget <= 0:
                break
            last = chosen.pop()
            placement_state.capacity.release(placement_state.claims[lost[len(chosen)]], last)
        complete = len(chosen) == len(lost)
        for vm, host in zip(lost, chosen, strict=False):
            placement_state.capacity.release(placement_state.claims[vm], host)
        return None if complete else lost[deepest]

    def _options(
        self, placement_state: PlacementState, vm: VmId, hosts: Iterable[HostId]
    ) -> Iterator[HostId]:
        """Yield the hosts on which a VM could restart now."""
        known = placement_state.snapshot.hosts
        for host in hosts:
            bans = placement_state.banning_rules(vm, host)
            if (
                known[host].cores >= placement_state.vms[vm].vcpus
                and placement_state.fits(vm, host)
                and all(rule in self._failover_rules for rule in bans)
            ):
                yield host


def _lost_vms(placement_state: PlacementState, failing: Iterable[HostId]) -> list[VmId]:
    """Return the VMs on failing hosts that need capacity elsewhere, the largest first."""
    vms = [
        vm
        for host in failing
        for vm in placement_state.residents[host]
        if placement_state.claims[vm] and not placement_state.vms[vm].agent
    ]
    return sorted(vms, key=lambda vm: (-sum(placement_state.claims[vm].values()), vm))
