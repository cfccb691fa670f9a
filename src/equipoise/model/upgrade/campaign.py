"""A campaign: a cluster, its catalog, what is asked for, and what befalls it in a simulation."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from equipoise.model.inventory import Inventory
from equipoise.model.quantity import (
    CountPresent,
    HostKey,
    Milliseconds,
    ResourceKey,
    Seconds,
    TenantKey,
)  # fmt: skip
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.request import Command, Request
from equipoise.model.upgrade.settings import UpgradeSettings
from equipoise.model.value import Value

Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Share = Annotated[float, Meta(ge=0, le=1)]


class ScalesBy(Value):
    """A tenant asks for more VMs, or fewer."""

    tenant: TenantKey
    vms: int


class Failing(Value):
    """Attempts on a resource fail: so many of them, or all."""

    resource: ResourceKey
    times: CountPresent | None = None
    reverting: bool = False
    """Taking the attempt back fails as well."""
    unreachable: bool = False
    unhealthy: bool = False
    """The work succeeds, but the resource is not well afterwards."""


class Moment(Value):
    """Something that happens at a time, or when an iteration gets to a step, whatever the time."""

    at_s: Seconds | None = None
    iteration: CountPresent | None = None
    before_vms: bool = False
    """Of that iteration: between the batch of resources and the VMs, not at its beginning."""
    scaling: tuple[ScalesBy, ...] = ()
    request: Request | None = None
    command: Command | None = None
    host_fails: HostKey | None = None
    host_recovers: HostKey | None = None


class UpgradeStory(Value):
    """How the simulated engine behaves, and what the tenants and the administrator do."""

    moments: tuple[Moment, ...] = ()
    failing: tuple[Failing, ...] = ()
    failure_rate: Share = 0.0
    """How often an attempt fails by chance."""
    revert_failure_rate: Share = 0.0
    jitter: Share = 0.0
    """By how much durations vary, up and down."""
    scaling_ms_mean: Milliseconds = 0
    """How long after one scaling of a tenant the next comes by chance; 0: never."""


class Campaign(Value):
    """Everything there is to know before an upgrade begins."""

    name: Annotated[str, Meta(min_length=1)]
    about: str = ""
    seed: Seed = 0
    cluster: Inventory
    catalog: Catalog = Catalog()
    requests: Annotated[tuple[Request, ...], Meta(min_length=1)]
    settings: UpgradeSettings = UpgradeSettings()
    story: UpgradeStory = UpgradeStory()
