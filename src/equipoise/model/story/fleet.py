"""Fleets: many hosts or VMs of one kind, so that a file need not list them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from equipoise.model.host import Host
from equipoise.model.quantity import Count, CountPresent
from equipoise.model.story.load import LoadName
from equipoise.model.value import Value
from equipoise.model.vm import Vm


def member_id(fleet: str, number: int, count: int) -> str:
    """The id of one of the members of a fleet, which are numbered from 1 on.

    All numbers have as many digits as the largest: of 30 the first is ``esx-01``.
    """
    return f"{fleet}-{number:0{len(str(count))}}"


class HostFleet(Value):
    """Hosts that differ in nothing but their number: ``esx`` gives ``esx-01``, ``esx-02``, ..."""

    count: Count
    like: Host


class Dealing(StrEnum):
    """How VMs are put on hosts at the start."""

    EVENLY = "evenly"
    """One after the other, round and round."""
    RANDOMLY = "randomly"
    """Each VM draws its host."""


class Start(Value):
    """Where the VMs of a fleet are at the start."""

    hosts: Annotated[tuple[str, ...], Meta(min_length=1)]
    """Hosts, or fleets of hosts, by their id."""
    first: CountPresent | None = None
    """Only so many of them, from the first on."""
    dealt: Dealing = Dealing.EVENLY


class VmFleet(Value):
    """VMs that differ in nothing but their number and what they draw."""

    count: Count
    like: Vm
    load: LoadName | None = None
    start: Start | None = None
    """Left out, the VMs are ready, not running."""


class Fleet(Value):
    """All that comes in numbers."""

    hosts: tuple[HostFleet, ...] = ()
    vms: tuple[VmFleet, ...] = ()
