"""Failover reserves: spare VMs that hold the room in which lost ones could start again.

Where a rule says that so many hosts may be lost, the VMs with reservations on the hosts whose loss
would be the worst are put elsewhere once more, in mind. Room that is in pieces holds none of them.
"""

from __future__ import annotations

from typing import Final

from equipoise.balance.rules import Bar, Rules
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm, VmState

SPARE: Final = "spare:"


def spares(snapshot: Snapshot, rules: Rules) -> tuple[list[Vm], list[Bar]]:
    """The spare VMs that the rules ask for, and where they must not be."""
    if not rules.failures:
        return [], []
    # A spare VM holds room of every kind, so the rule that asks for most speaks for all of them.
    rule, count = max(rules.failures, key=lambda one: one[1])
    hosts = _worst(snapshot, count)
    lost = [vm for host in hosts for vm in _guests(snapshot, host)]
    made = {vm: _spare(snapshot.vms[vm], rule) for vm in lost}
    bars = [Bar(rule, frozenset(one.id for one in made.values()), frozenset(hosts))]
    bars += _same_bars(rules, made)
    return list(made.values()), bars if made else []


def _same_bars(rules: Rules, made: dict[VmId, Vm]) -> list[Bar]:
    """Spare VMs may be where the lost ones may; also on hosts that are kept free for them."""
    found = []
    for bar in rules.bars:
        some = frozenset(made[vm].id for vm in made if vm in bar.vms)
        if some and bar.rule not in rules.failover_hosts:
            found.append(Bar(bar.rule, some, bar.hosts))
    return found


def is_spare(vm: VmId) -> bool:
    """Whether a VM is only there in mind."""
    return vm.startswith(SPARE)


def original(spare: VmId) -> str:
    """The VM that a spare one stands for."""
    return spare.removeprefix(SPARE).partition(":")[2]


def _worst(snapshot: Snapshot, count: int) -> list[HostId]:
    """The hosts whose loss would be the worst: those with the most memory reserved."""

    def held(host: HostId) -> tuple[int, int]:
        vms = [snapshot.vms[vm] for vm in _guests(snapshot, host)]
        memory_mib = sum(vm.memory.reservation_mib for vm in vms)
        return memory_mib, sum(vm.cpu.reservation_mhz for vm in vms)

    # Those of a host that is to be switched have to find another place anyway.
    on = [
        host.id
        for host in snapshot.hosts.values()
        if host.state is HostState.ON and host.requested is None
    ]
    return sorted(on, key=held, reverse=True)[:count]


def _guests(snapshot: Snapshot, host: HostId) -> list[VmId]:
    """Those with a reservation, which would have to find it elsewhere."""
    vms = (snapshot.vms[vm] for vm in snapshot.residents[host])
    return [
        vm.id
        for vm in vms
        if vm.state is VmState.RUNNING
        and not vm.agent
        and (vm.cpu.reservation_mhz or vm.memory.reservation_mib)
    ]


def _spare(vm: Vm, rule: RuleId) -> Vm:
    return vm.but(id=VmId(f"{SPARE}{rule}:{vm.id}"), host=None, demand=Demand(), ft_pair=None)
