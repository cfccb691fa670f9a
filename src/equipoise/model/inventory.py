"""The cluster as a file describes it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from equipoise.model.host import Host
from equipoise.model.plan import Limits
from equipoise.model.policy import BalancePolicy, PowerPolicy
from equipoise.model.pool import Pool
from equipoise.model.resource import Dependency, Resource, ResourceGroup
from equipoise.model.roles.layout import RoleLayout
from equipoise.model.rule import Rule
from equipoise.model.tenant import Tenant
from equipoise.model.value import Value
from equipoise.model.vm import Vm


class Settings(Value):
    """Everything an operator decides, as opposed to what the machines do by themselves."""

    pools: tuple[Pool, ...] = ()
    rules: tuple[Rule, ...] = ()
    specification: str = ""
    """Constraints of one's own, in the specification language, for rules to name."""
    tenants: tuple[Tenant, ...] = ()
    resources: tuple[Resource, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    groups: tuple[ResourceGroup, ...] = ()
    limits: Limits = Limits()
    balance: BalancePolicy = BalancePolicy()
    power: PowerPolicy = PowerPolicy()
    layout: RoleLayout | None = None
    """Roles, and the groups of hosts or VMs that carry them."""


class Inventory(Settings):
    """Hosts, VMs and settings: all there is to know about a cluster at one moment."""

    name: str = "cluster"
    hosts: Annotated[tuple[Host, ...], Meta(extra_json_schema={"minItems": 1})]
    """A file has at least one; a cluster may lose its last."""
    vms: tuple[Vm, ...] = ()
