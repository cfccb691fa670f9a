"""A scenario: a cluster, what happens to it and for how long, so that a run can be repeated."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from equipoise.model.event import HostFailed, HostLeft, HostRecovered, VmCrashed, VmLeft
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.value import Value

Happening = HostFailed | HostRecovered | HostLeft | VmCrashed | VmLeft
"""The facts that a file may foretell; each carries its ``at_ms``, counted from the start."""

Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Duration = Annotated[int, Meta(ge=1, le=10**9)]


class Scenario(Value):
    """A story for a simulated world: the cluster at the start, and what befalls it."""

    name: Annotated[str, Meta(min_length=1)]
    about: str = ""
    """What the scenario shows, in a sentence."""
    seed: Seed = 0
    """Where all chance comes from: the same seed gives the same run."""
    duration_s: Duration
    """How long the run lasts, in virtual seconds."""
    cluster: Inventory
    plan: Plan | None = None
    """A plan to carry out from the start, if the story has one."""
    happenings: tuple[Happening, ...] = ()
    """What goes wrong or right by itself, in any order."""
