"""A scenario: a cluster, what happens to it and for how long, so that a run can be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from equipoise.model.estimate import Estimates
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.quantity import VmKey
from equipoise.model.story.fleet import Fleet
from equipoise.model.story.load import Load, LoadName, Period
from equipoise.model.story.physics import Physics
from equipoise.model.story.unrest import Happening, Unrest
from equipoise.model.value import Value

Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Duration = Annotated[int, Meta(ge=1, le=10**9)]


class Measuring(Value):
    """How the run is watched."""

    window_s: Period = 60
    """Deciders are told the mean demand of at least so long, as monitoring does it."""
    sample_s: Period = 300
    """How often the series of the report have a point."""
    imbalance_target: Annotated[float, Meta(ge=0, le=100)] = 0.05


class Scenario(Value):
    """A story for a simulated world: the cluster at the start, and what befalls it."""

    name: Annotated[str, Meta(min_length=1)]
    about: str = ""
    """What the scenario shows, in a sentence."""
    seed: Seed = 0
    """Where all chance comes from: the same seed gives the same run."""
    duration_s: Duration
    """How long the run lasts, in virtual seconds."""
    pass_s: Period = 300
    """How often the deciders are asked."""
    deciders: tuple[str, ...] = ()
    """Who decides, by name."""
    cluster: Inventory
    fleet: Fleet = Fleet()
    """Hosts and VMs in numbers, added to those of the cluster."""
    loads: Mapping[LoadName, Load] = {}
    vm_loads: Mapping[VmKey, LoadName] = {}
    """Which load a VM of the cluster has, or one that arrives; others stay as ``demand`` says."""
    physics: Physics = Physics()
    estimates: Estimates = Estimates()
    """What the deciders think of the physics."""
    measuring: Measuring = Measuring()
    plan: Plan | None = None
    """A plan to carry out from the start, if the story has one."""
    happenings: tuple[Happening, ...] = ()
    """What goes wrong or right by itself at a foretold moment, in any order."""
    unrest: Unrest = Unrest()
    """What goes wrong or right at random."""
