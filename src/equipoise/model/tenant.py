"""A tenant and what was promised to it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import Count, CountPresent, GroupKey, Seconds, TenantKey, VmKey
from equipoise.model.value import Value


class AntiAffinityGroup(Value):
    """VMs of one service that protect each other: few of them may be disturbed at a time."""

    id: GroupKey
    vms: Annotated[tuple[VmKey, ...], Meta(min_length=1)]
    disturbed_max: CountPresent = 1


class Sla(Value):
    """How many VMs a tenant may have, and how fast the number may change."""

    vms_min: Count = 0
    vms_max: Count
    scaling_vms: CountPresent = 1
    """How many VMs one scaling step adds or removes."""
    cooldown_s: Seconds = 0
    """How long after one scaling step the next may follow."""


class Tenant(Value):
    """Somebody who owns VMs and was promised something about them."""

    id: TenantKey
    sla: Sla
    anti_affinity: tuple[AntiAffinityGroup, ...] = ()
