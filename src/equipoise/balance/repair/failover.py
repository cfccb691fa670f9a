"""Failover reserve: spare VMs that hold the capacity in which lost VMs restart.

For a rule that tolerates the loss of N hosts, the VMs with reservations on the N worst hosts are
placed a second time. Fragmented capacity cannot hold such a spare VM.
"""

from __future__ import annotations

from typing import Final

from equipoise.balance.rules import HostBan, PlacementRules
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm, VmState

SPARE_PREFIX: Final = "spare:"


def failover_spares(snapshot: Snapshot, rules: PlacementRules) -> tuple[list[Vm], list[HostBan]]:
    """Return the spare VMs that the rules require, and the hosts on which they must not be."""
    if not rules.failover_counts:
        return [], []
    # A spare holds capacity of every resource, so the rule with the largest count covers all.
    rule, count = max(rules.failover_counts, key=lambda pair: pair[1])
    hosts = _worst_hosts(snapshot, count)
    vms = [vm for host in hosts for vm in _vms_with_reservation(snapshot, host)]
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
    """Return the hosts with the most memory reserved; their loss is the worst."""

    def reserved(host: HostId) -> tuple[int, int]:
        vms = [snapshot.vms[vm] for vm in _vms_with_reservation(snapshot, host)]
        memory_mib = sum(vm.memory.reservation_mib for vm in vms)
        return memory_mib, sum(vm.cpu.reservation_mhz for vm in vms)

    # The VMs of a host that is to be switched move away in any case.
    on = [
        host.id
        for host in snapshot.hosts.values()
        if host.state is HostState.ON and host.requested is None
    ]
    return sorted(on, key=reserved, reverse=True)[:count]


def _vms_with_reservation(snapshot: Snapshot, host: HostId) -> list[VmId]:
    """Return the running VMs with a reservation, which need capacity elsewhere."""
    vms = (snapshot.vms[vm] for vm in snapshot.residents[host])
    return [
        vm.id
        for vm in vms
        if vm.state is VmState.RUNNING
        and not vm.agent
        and (vm.cpu.reservation_mhz or vm.memory.reservation_mib)
    ]


def _spare(vm: Vm, rule: RuleId) -> Vm:
    """Return the spare of a VM."""
    return vm.but(
        id=VmId(f"{SPARE_PREFIX}{rule}:{vm.id}"), host=None, demand=Demand(), ft_pair=None
    )
