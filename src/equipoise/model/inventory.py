"""The inventory, the cluster as a file: pools, tenants, settings, hosts, VMs; and amendments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.host import Host
from equipoise.model.plan import ConcurrencyLimits
from equipoise.model.policy.balance import BalancePolicy
from equipoise.model.policy.power import PowerPolicy
from equipoise.model.quantity import (
    Count,
    GroupKey,
    Overcommit,
    PoolKey,
    PositiveCount,
    RuleKey,
    Seconds,
    TenantKey,
    VmKey,
)
from equipoise.model.roles.layout import RoleLayout
from equipoise.model.rule import Rule
from equipoise.model.upgrade.infrastructure import Dependency, Resource, ResourceGroup
from equipoise.model.value import Value
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState


class Pool(Value):
    """A resource pool, a node of the pool tree. Without a parent it is a child of the cluster."""

    id: PoolKey
    parent: PoolKey | None = None
    cpu: CpuSettings = CpuSettings()
    memory: MemorySettings = MemorySettings()
    cpu_expandable: bool = True
    """Whether children may reserve more CPU than this pool, from the free part of its parent."""
    memory_expandable: bool = True
    scalable: bool = False
    """Whether the shares count for each VM in the pool instead of for the pool as a whole.

    1000 keeps the shares of the VMs as they are.
    """


_NEUTRAL_SHARES: Final = 1000
"""Shares of a scalable pool at which its VMs weigh as much as without the pool."""
_SHARES_MIN: Final = 1e-30
_SHARES_MAX: Final = 1e30


def scaled_shares(shares: float, inside: float) -> float:
    """Return the shares of a scalable pool among its siblings.

    ``inside`` is the sum of the shares in the pool; an empty pool has no shares. The result is
    clamped, so that deep trees of extreme shares do not overflow a float.
    """
    return min(max(shares * inside / _NEUTRAL_SHARES, _SHARES_MIN), _SHARES_MAX) if inside else 0.0


class AntiAffinityGroup(Value):
    """VMs of one service that protect each other: only a few may be disturbed at a time."""

    id: GroupKey
    vms: Annotated[tuple[VmKey, ...], Meta(min_length=1)]
    disturbed_max: PositiveCount = 1


class Sla(Value):
    """The number of VMs that a tenant may have, and how fast it may change."""

    vms_min: Count = 0
    vms_max: Count
    scaling_vms: PositiveCount = 1
    """Number of VMs that one scaling step adds or removes."""
    cooldown_s: Seconds = 0
    """Shortest time between two scaling steps."""


class Tenant(Value):
    """An owner of VMs, with its SLA."""

    id: TenantKey
    sla: Sla
    anti_affinity: tuple[AntiAffinityGroup, ...] = ()


class ClusterSettings(Value):
    """The part of the inventory that the operator decides."""

    pools: tuple[Pool, ...] = ()
    rules: tuple[Rule, ...] = ()
    specification: str = ""
    """Constraints in the specification language, which rules of kind ``satisfy`` can name."""
    tenants: tuple[Tenant, ...] = ()
    resources: tuple[Resource, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    groups: tuple[ResourceGroup, ...] = ()
    limits: ConcurrencyLimits = ConcurrencyLimits()
    balance: BalancePolicy = BalancePolicy()
    power: PowerPolicy = PowerPolicy()
    layout: RoleLayout | None = None
    """Roles, and the groups of hosts or VMs that run them."""
    memory_overcommit: Overcommit = 1.0
    """Configured memory of VMs per MiB of usable memory, on hosts that state no other factor."""
    cpu_overcommit: Overcommit | None = None
    """vCPUs of VMs per core, on hosts that state no other factor; no limit by default."""

    def overcommitted(self, host: Host) -> Host:
        """Return a host with the factors of the cluster where it states none."""
        # Hosts without a factor are not copied: 1.0 is what they mean.
        if host.memory_overcommit is None and self.memory_overcommit != 1.0:
            host = host.but(memory_overcommit=self.memory_overcommit)
        if host.cpu_overcommit is None and self.cpu_overcommit is not None:
            host = host.but(cpu_overcommit=self.cpu_overcommit)
        return host


class Inventory(ClusterSettings):
    """A complete description of a cluster: hosts, VMs and settings."""

    name: str = "cluster"
    hosts: Annotated[tuple[Host, ...], Meta(extra_json_schema={"minItems": 1})]
    """A file has at least one host; a running cluster may lose its last one."""
    vms: tuple[Vm, ...] = ()


class Amendment(Value):
    """Changes of an inventory: added hosts, VMs, pools and rules, and other demands or policies."""

    hosts: tuple[Host, ...] = ()
    vms: tuple[Vm, ...] = ()
    """New VMs. A VM without a host is ``ready``."""
    pools: tuple[Pool, ...] = ()
    rules: tuple[Rule, ...] = ()
    demand: Mapping[VmKey, Demand] = {}
    """The new demand of VMs."""
    without_rules: tuple[RuleKey, ...] = ()
    """Rules to remove."""
    balance: BalancePolicy | None = None
    """The new balance policy."""
    power: PowerPolicy | None = None
    """The new power policy."""


def amend(inventory: Inventory, amendment: Amendment) -> Inventory:
    """Return an inventory with an amendment applied. New entries come first."""
    demand = amendment.demand
    removed = set(amendment.without_rules)
    return inventory.but(
        # New entries first: their positions are those of their file, which messages name.
        hosts=(*amendment.hosts, *inventory.hosts),
        vms=(
            *map(_without_host_as_ready, amendment.vms),
            *(
                vm.but(demand=demand[vm.id]) if vm.id in demand else vm
                for vm in inventory.vms
            ),
        ),
        pools=(*amendment.pools, *inventory.pools),
        rules=(*amendment.rules, *(rule for rule in inventory.rules if rule.id not in removed)),
        balance=inventory.balance if amendment.balance is None else amendment.balance,
        power=inventory.power if amendment.power is None else amendment.power,
    )  # fmt: skip


def _without_host_as_ready(vm: Vm) -> Vm:
    # ``running`` is the default state, but a VM of an amendment need not have a host yet.
    is_unplaced = vm.host is None and vm.state is VmState.RUNNING
    return vm.but(state=VmState.READY) if is_unplaced else vm
