"""How long the actions of a problem take, where the estimates do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta

from equipoise.model.quantity import PlannedPresent
from equipoise.model.value import Value

MEMORY: Final = "memory"
PerUnit = Annotated[float, Meta(ge=0, le=10**9)]


class Duration(Value):
    """The time one kind of action takes."""

    ms: PlannedPresent = 1_000
    """What it takes at the least; a migration over a network, on top of the copying ..."""
    per_unit_ms: PerUnit = 0
    """... and on top of it for each unit that the VM takes of a resource."""
    resource: str = MEMORY
    """Which: ``memory`` is all of the VM's memory in MiB, any other what it takes of it."""
    of: Mapping[str, PlannedPresent] = {}
    """What it takes for single VMs or hosts, whatever was said above."""
