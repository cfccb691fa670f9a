"""A scenario: a cluster with fleets, what happens to it, and for how long. Repeatable."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from equipoise.model.action_durations import Estimates
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.quantity import Count, PositiveCount, VmKey
from equipoise.model.scenario.faults import Faults, ScheduledEvent
from equipoise.model.scenario.load import Load, LoadName, PeriodSeconds
from equipoise.model.scenario.physics import Physics
from equipoise.model.value import Value
from equipoise.model.vm import Vm


def fleet_member_id(fleet: str, number: int, count: int) -> str:
    """Return the id of a member of a fleet, numbered from 1.

    All numbers have as many digits as the largest one: of 30 the first is ``esx-01``.
    """
    # Equal width: ids then sort as their numbers do.
    return f"{fleet}-{number:0{len(str(count))}}"


class HostFleet(Value):
    """Hosts that differ only in their number: ``esx`` gives ``esx-01``, ``esx-02``, ..."""

    count: Count
    like: Host


class FleetPlacementOrder(StrEnum):
    """The initial placement of the VMs of a fleet."""

    EVENLY = "evenly"
    """Round robin."""
    RANDOMLY = "randomly"
    """A random host for each VM."""


class FleetPlacement(Value):
    """The hosts on which the VMs of a fleet start."""

    hosts: Annotated[tuple[str, ...], Meta(min_length=1)]
    """Ids of hosts or of host fleets."""
    first: PositiveCount | None = None
    """Use only the first hosts of the list, this many."""
    assigned: FleetPlacementOrder = FleetPlacementOrder.EVENLY


class VmFleet(Value):
    """VMs that differ only in their number and in their random draws."""

    count: Count
    like: Vm
    load: LoadName | None = None
    start: FleetPlacement | None = None
    """The initial placement; without it, the VMs are ``ready``."""


class Fleets(Value):
    """Fleets of hosts and VMs."""

    hosts: tuple[HostFleet, ...] = ()
    vms: tuple[VmFleet, ...] = ()


Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
ScenarioSeconds = Annotated[int, Meta(ge=1, le=10**9)]
DelaySeconds = Annotated[int, Meta(ge=0, le=10**9)]


class MeasurementSettings(Value):
    """How the run is measured."""

    window_s: PeriodSeconds = 60
    """Deciders get the mean demand over at least this time, as from a monitoring system."""
    sample_s: PeriodSeconds = 300
    """Time between two points of the series in the report."""
    imbalance_target: Annotated[float, Meta(ge=0, le=100)] = 0.05


class Scenario(Value):
    """The input of a simulation: a cluster, its loads, and the events that change it."""

    name: Annotated[str, Meta(min_length=1)]
    about: str = ""
    """What the scenario shows, in a sentence."""
    seed: Seed = 0
    """The random seed: the same seed gives the same run."""
    duration_s: ScenarioSeconds
    """Length of the run in virtual seconds."""
    pass_s: PeriodSeconds = 300
    """Time between two passes of the deciders."""
    pass_delay_s: DelaySeconds = 10
    """Time from an event that needs a pass, such as the failure of a host, to that pass."""
    deciders: tuple[str, ...] = ()
    """Names of the deciders."""
    cluster: Inventory
    fleet: Fleets = Fleets()
    """Fleets of hosts and VMs, added to those of the cluster."""
    loads: Mapping[LoadName, Load] = {}
    vm_loads: Mapping[VmKey, LoadName] = {}
    """The load of a VM of the cluster or of an arriving VM; others keep their ``demand``."""
    physics: Physics = Physics()
    estimates: Estimates = Estimates()
    """Durations that the deciders expect."""
    measuring: MeasurementSettings = MeasurementSettings()
    plan: Plan | None = None
    """A plan that is executed from the start of the run."""
    events: tuple[ScheduledEvent, ...] = ()
    """Events at given times, in any order."""
    faults: Faults = Faults()
    """Random faults and changes, drawn from the seed."""
