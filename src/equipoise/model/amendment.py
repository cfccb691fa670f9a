"""An amendment: what comes to a cluster, or changes in it."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.policy import BalancePolicy, PowerPolicy
from equipoise.model.pool import Pool
from equipoise.model.quantity import RuleKey, VmKey
from equipoise.model.rule import Rule
from equipoise.model.value import Value
from equipoise.model.vm import Demand, Vm, VmState


class Amendment(Value):
    """Hosts, VMs, pools and rules that come, and figures that change."""

    hosts: tuple[Host, ...] = ()
    vms: tuple[Vm, ...] = ()
    """Those without a host are ready to be started."""
    pools: tuple[Pool, ...] = ()
    rules: tuple[Rule, ...] = ()
    demand: Mapping[VmKey, Demand] = {}
    """What VMs ask for instead."""
    without_rules: tuple[RuleKey, ...] = ()
    """Rules that no longer hold."""
    balance: BalancePolicy | None = None
    """What balancing goes by instead."""
    power: PowerPolicy | None = None
    """What saving power goes by instead."""


def amended(inventory: Inventory, amendment: Amendment) -> Inventory:
    """The cluster with an amendment; what is new stands first."""
    demand = amendment.demand
    gone = set(amendment.without_rules)
    return inventory.but(
        hosts=(*amendment.hosts, *inventory.hosts),
        vms=(
            *map(_ready, amendment.vms),
            *(
                vm.but(demand=demand[vm.id]) if vm.id in demand else vm
                for vm in inventory.vms
            ),
        ),
        pools=(*amendment.pools, *inventory.pools),
        rules=(*amendment.rules, *(rule for rule in inventory.rules if rule.id not in gone)),
        balance=inventory.balance if amendment.balance is None else amendment.balance,
        power=inventory.power if amendment.power is None else amendment.power,
    )  # fmt: skip


def _ready(vm: Vm) -> Vm:
    nowhere = vm.host is None and vm.state is VmState.RUNNING
    return vm.but(state=VmState.READY) if nowhere else vm
