"""Roles: which applications belong together, and which processors carry them.

A group has slots in order and processors that may fill them. Its layout says what a filled slot
carries, its preferences where a role would like to run. What all of this means is said in the room
``roles``; here are only the nouns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import (
    ApplicationKey,
    Count,
    CountPresent,
    HostKey,
    ProcessorId,
    RoleId,
    RoleKey,
    Seconds,
    SlotKey,
    TeamKey,
    VmKey,
)
from equipoise.model.value import Value

Weight = Annotated[float, Meta(ge=0, le=10_000)]
Lasting = Annotated[int, Meta(ge=1, le=10**9)]


class Role(Value):
    """Applications that are started and stopped together."""

    id: RoleKey
    applications: tuple[ApplicationKey, ...] = ()
    single: bool | None = None
    """Whether a group never has two of it, not for a moment. Left out: if it is preferred once."""
    optional: bool = False
    """Whether nothing is wrong if nobody holds it, as with a standby."""
    weight_pct: Weight = 1
    """What it takes of its processor, in percent."""
    start_ms: Lasting = 5000
    """How long a start takes, as far as is known."""
    stop_ms: Lasting = 2000


class Slot(Value):
    """A place in a group that one processor fills."""

    id: SlotKey
    needs: Mapping[str, str] = {}
    """Labels that a processor must have to fill it."""


class Element(Value):
    """One part of a layout: ``on_each``, ``slot`` with ``roles``, or a condition with ``layout``.

    A file gives exactly one of ``on_each``, ``slot``, ``if_active``, ``at_least`` and ``at_most``.
    """

    on_each: tuple[RoleKey, ...] | None = None
    """What every filled slot carries."""
    slot: SlotKey | None = None
    roles: tuple[RoleKey, ...] = ()
    """What the slot carries, if it is filled."""
    if_active: Count | None = None
    """How many slots are filled, exactly, for ``layout`` to count."""
    at_least: Count | None = None
    at_most: Count | None = None
    layout: tuple[Element, ...] = ()


class Choose(StrEnum):
    """Which of the filled slots in its list a role takes."""

    PRIORITY = "priority"
    """The first."""
    ANY = "any"
    """Whichever moves least, and evens out best."""
    LEAST_LOADED = "least_loaded"
    """The one with the least load when it is chosen."""


class RolePreference(Value):
    """Where a role would like to run."""

    role: RoleKey
    slots: tuple[SlotKey, ...]
    """Where it may run, in order."""
    choose: Choose = Choose.PRIORITY
    count: CountPresent = 1
    """How many hold it."""
    preempt: bool = False
    """Whether it returns to an earlier slot of its list once that is filled again."""
    promotes: RoleKey | None = None
    """Who holds this role takes over first, because it is warm."""
    threshold_pct: Weight = 20
    """A least loaded role moves when its processor has so much more load than another."""


class Redundancy(StrEnum):
    """The redundancy models of the Availability Management Framework."""

    TWO_N = "2n"
    """One active, one standby, for all workloads together."""
    N_PLUS_M = "n+m"
    """So many actives, so many standbys, nobody is both."""
    N_WAY = "n-way"
    """Each workload has one active and some standbys; a processor may be both, for different ones.
    """
    N_WAY_ACTIVE = "n-way-active"
    """Each workload is active on several processors at once; no standbys."""
    NONE = "no-redundancy"
    """Each workload on a processor of its own; no standbys."""


class Workload(Value):
    """What a redundancy model protects."""

    active: RoleKey
    standby: RoleKey | None = None


class Ready(Value):
    """A ready layout."""

    model: Redundancy
    workloads: Annotated[tuple[Workload, ...], Meta(min_length=1)]
    actives: CountPresent = 1
    """How many hold an active role, where the model leaves it open."""
    standbys: CountPresent = 1
    """How many hold a standby role, where the model leaves it open."""
    return_to_first: bool = False
    """Whether an active role returns to an earlier slot once that is filled again."""


class Team(Value):
    """A group: processors that fill slots and share out roles."""

    id: TeamKey
    hosts: tuple[HostKey, ...] = ()
    """The hosts that may fill a slot, those that should do so first."""
    vms: tuple[VmKey, ...] = ()
    """The VMs that may fill a slot; a group has either hosts or VMs."""
    slots: Annotated[tuple[Slot, ...], Meta(min_length=1)]
    packed: bool = False
    """Whether the filled slots are always the first ones: who is last closes a hole."""
    layout: tuple[Element, ...] = ()
    preferences: tuple[RolePreference, ...] = ()
    redundancy: Ready | None = None
    """A ready layout, besides what the others say."""
    together: tuple[tuple[RoleKey, ...], ...] = ()
    """Roles that run on one processor, if they run."""
    apart: tuple[tuple[RoleKey, ...], ...] = ()
    """Roles of which no two run on one processor."""
    priority: Count = 0
    """When two groups want one processor, the lower number gets it."""
    grace_s: Seconds = 0
    """How long a slot is kept for a processor that was lost."""
    suspect_s: Seconds = 30
    """How long a suspected processor keeps what it has."""
    probation_s: Seconds = 0
    """How long a processor must be up before roles move to it only because it is better."""
    auto_adjust: bool = False
    """Whether earlier processors of the list take their places back, after probation."""
    attempts_max: CountPresent = 3
    """After so many failures a processor is not tried again with that role ..."""
    retry_s: Seconds = 10
    """... each so long after the last ..."""
    isolation_s: Seconds = 600
    """... until so long after, or until it has been down."""

    @property
    def processors(self) -> tuple[ProcessorId, ...]:
        """Those that may fill a slot, whatever they are."""
        return tuple(ProcessorId(one) for one in (*self.hosts, *self.vms))


class RoleLayout(Value):
    """All roles, and the groups that carry them."""

    roles: tuple[Role, ...] = ()
    groups: tuple[Team, ...] = ()
    hold_s: Seconds | None = None
    """So long after the controller was last heard, single roles stop; left out: never."""


def named_roles(layout: Sequence[Element]) -> Iterator[RoleId]:
    """Every role that a layout names, as often as it does."""
    for element in layout:
        yield from element.on_each or ()
        yield from element.roles
        yield from named_roles(element.layout)
