"""Role layouts: which applications belong together, and which processors run them.

A group has slots in order and processors that may fill them. Its layout says what a filled slot
runs, its preferences where a role should run. A redundancy model is short for such preferences;
``expand_redundancy`` writes them out. The package ``roles`` decides; here are only the types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import (
    ApplicationKey,
    Count,
    HostKey,
    PositiveCount,
    ProcessorId,
    RoleGroupKey,
    RoleId,
    RoleKey,
    Seconds,
    SlotId,
    SlotKey,
    VmKey,
)
from equipoise.model.value import Value

LoadPercent = Annotated[float, Meta(ge=0, le=10_000)]
ActionMilliseconds = Annotated[int, Meta(ge=1, le=10**9)]


class Role(Value):
    """Applications that are started and stopped together."""

    id: RoleKey
    applications: tuple[ApplicationKey, ...] = ()
    single: bool | None = None
    """Whether a group never runs the role twice, at any moment. By default: if a preference of the
    group has the count 1."""
    optional: bool = False
    """Whether the role may be missing, as a standby may."""
    weight_pct: LoadPercent = 1
    """Load of the role in percent of its processor."""
    start_ms: ActionMilliseconds = 5000
    """Expected duration of a start."""
    stop_ms: ActionMilliseconds = 2000
    """Expected duration of a stop."""


class Slot(Value):
    """A place in a group that one processor fills."""

    id: SlotKey
    needs: Mapping[str, str] = {}
    """Labels that a processor needs to fill the slot."""


class LayoutElement(Value):
    """One part of a layout: ``on_each``, ``slot`` with ``roles``, or a condition with ``layout``.

    A file gives exactly one of ``on_each``, ``slot``, ``if_active``, ``at_least`` and ``at_most``.
    """

    on_each: tuple[RoleKey, ...] | None = None
    """Roles of every filled slot."""
    slot: SlotKey | None = None
    roles: tuple[RoleKey, ...] = ()
    """Roles of ``slot`` if it is filled."""
    if_active: Count | None = None
    """Exact number of filled slots at which ``layout`` applies."""
    at_least: Count | None = None
    at_most: Count | None = None
    layout: tuple[LayoutElement, ...] = ()


class SlotChoice(StrEnum):
    """How a role chooses among the filled slots of its list."""

    PRIORITY = "priority"
    """The first slot."""
    ANY = "any"
    """The slot that needs the fewest moves; then the one with the lowest imbalance."""
    LEAST_LOADED = "least_loaded"
    """The slot whose processor has the lowest load at the time of the choice."""


class RolePreference(Value):
    """The slots in which a role should run."""

    role: RoleKey
    slots: tuple[SlotKey, ...]
    """Allowed slots, the preferred ones first."""
    choose: SlotChoice = SlotChoice.PRIORITY
    count: PositiveCount = 1
    """Number of processors that run the role."""
    preempt: bool = False
    """Whether the role returns to an earlier slot when that slot is filled again."""
    promotes: RoleKey | None = None
    """The standby role: a processor that runs it takes over first, because it is warm."""
    threshold_pct: LoadPercent = 20
    """With ``least_loaded``, the difference in load at which the role moves."""


class RedundancyModel(StrEnum):
    """The redundancy models of the Availability Management Framework."""

    TWO_N = "2n"
    """One active and one standby processor for all workloads together."""
    N_PLUS_M = "n+m"
    """N active and M standby processors; no processor is both."""
    N_WAY = "n-way"
    """One active processor and some standbys per workload. A processor may be both, for different
    workloads."""
    N_WAY_ACTIVE = "n-way-active"
    """Several active processors per workload; no standbys."""
    NONE = "no-redundancy"
    """A processor per workload; no standbys."""


class ProtectedWorkload(Value):
    """A workload that a redundancy model protects: its active role and its standby role."""

    active: RoleKey
    standby: RoleKey | None = None


class RedundancyLayout(Value):
    """A redundancy model with its workloads, short for a list of preferences."""

    model: RedundancyModel
    workloads: Annotated[tuple[ProtectedWorkload, ...], Meta(min_length=1)]
    actives: PositiveCount = 1
    """Number of active processors, where the model leaves it open."""
    standbys: PositiveCount = 1
    """Number of standby processors, where the model leaves it open."""
    return_to_first: bool = False
    """Whether an active role returns to an earlier slot when that slot is filled again."""


class RoleGroup(Value):
    """A group of processors that fill slots and run roles."""

    id: RoleGroupKey
    hosts: tuple[HostKey, ...] = ()
    """The hosts that may fill a slot, the preferred ones first."""
    vms: tuple[VmKey, ...] = ()
    """The VMs that may fill a slot; a group has either hosts or VMs."""
    slots: Annotated[tuple[Slot, ...], Meta(min_length=1)]
    packed: bool = False
    """Whether the filled slots are always the first ones: the last processor closes a gap."""
    layout: tuple[LayoutElement, ...] = ()
    preferences: tuple[RolePreference, ...] = ()
    redundancy: RedundancyLayout | None = None
    """A redundancy model, in addition to ``layout`` and ``preferences``."""
    together: tuple[tuple[RoleKey, ...], ...] = ()
    """Sets of roles that run on the same processor."""
    apart: tuple[tuple[RoleKey, ...], ...] = ()
    """Sets of roles of which no two run on the same processor."""
    priority: Count = 0
    """Of two groups that need the same processor, the one with the lower number gets it."""
    grace_s: Seconds = 0
    """Time for which a slot is kept for a failed processor."""
    suspect_s: Seconds = 30
    """Time for which a suspected processor keeps its slots and roles."""
    probation_s: Seconds = 0
    """Time for which a processor must be up before roles move to it as an improvement."""
    auto_adjust: bool = False
    """Whether earlier processors of the list take their slots back, after probation."""
    attempts_max: PositiveCount = 3
    """Number of failures after which a role is not started again on a processor."""
    retry_s: Seconds = 10
    """Time between a failure and the next attempt."""
    isolation_s: Seconds = 600
    """Time after the last failure until the processor may be tried again; a restart ends it."""

    @property
    def processors(self) -> tuple[ProcessorId, ...]:
        """The hosts or VMs that may fill a slot."""
        return tuple(ProcessorId(name) for name in (*self.hosts, *self.vms))


class RoleLayout(Value):
    """All roles, and the groups that run them."""

    roles: tuple[Role, ...] = ()
    groups: tuple[RoleGroup, ...] = ()
    hold_s: Seconds | None = None
    """Time after the last contact with the controller at which single roles stop; without it,
    they never stop by themselves."""


def roles_in_layout(layout: Sequence[LayoutElement]) -> Iterator[RoleId]:
    """Yield every role that a layout names, also repeatedly."""
    for element in layout:
        yield from element.on_each or ()
        yield from element.roles
        yield from roles_in_layout(element.layout)


def expand_redundancy(group: RoleGroup) -> RoleGroup:
    """Return the group with its redundancy model replaced by preferences."""
    redundancy = group.redundancy
    if redundancy is None:
        return group
    slots = tuple(slot.id for slot in group.slots)
    return group.but(
        preferences=(*group.preferences, *_redundancy_preferences(redundancy, slots)),
        together=(*group.together, *_redundancy_together(redundancy)),
        apart=(*group.apart, *_redundancy_apart(redundancy)),
        redundancy=None,
    )


def _redundancy_preferences(
    redundancy: RedundancyLayout, slots: tuple[SlotId, ...]
) -> Iterator[RolePreference]:
    # These models have an active role per workload, which should not all share the first slot.
    is_spread = redundancy.model in (RedundancyModel.N_WAY, RedundancyModel.NONE)
    choose = SlotChoice.ANY if is_spread else SlotChoice.PRIORITY
    for workload in redundancy.workloads:
        yield RolePreference(
            role=workload.active,
            slots=slots,
            choose=choose,
            count=_active_count(redundancy),
            # With a free choice of slots, no slot is the first one.
            preempt=redundancy.return_to_first and not is_spread,
            promotes=workload.standby,
        )
    for workload in _with_standby(redundancy):
        assert workload.standby is not None
        count = 1 if redundancy.model is RedundancyModel.TWO_N else redundancy.standbys
        yield RolePreference(role=workload.standby, slots=slots, choose=choose, count=count)


def _active_count(redundancy: RedundancyLayout) -> int:
    has_many = redundancy.model in (RedundancyModel.N_PLUS_M, RedundancyModel.N_WAY_ACTIVE)
    return redundancy.actives if has_many else 1


def _with_standby(redundancy: RedundancyLayout) -> list[ProtectedWorkload]:
    if redundancy.model in (RedundancyModel.N_WAY_ACTIVE, RedundancyModel.NONE):
        return []
    return [workload for workload in redundancy.workloads if workload.standby is not None]


def _redundancy_together(redundancy: RedundancyLayout) -> Iterator[tuple[RoleId, ...]]:
    """Yield the roles that share a processor: with 2N all active ones, and all standby ones."""
    workloads = redundancy.workloads
    if redundancy.model is RedundancyModel.TWO_N and len(workloads) > 1:
        yield tuple(workload.active for workload in workloads)
        standbys = tuple(workload.standby for workload in workloads if workload.standby is not None)
        if len(standbys) > 1:
            yield standbys


def _redundancy_apart(redundancy: RedundancyLayout) -> Iterator[tuple[RoleId, ...]]:
    """Yield the roles that never share a processor."""
    workloads = redundancy.workloads
    if redundancy.model is RedundancyModel.NONE and len(workloads) > 1:
        yield tuple(workload.active for workload in workloads)
    for workload in _with_standby(redundancy):
        assert workload.standby is not None
        if redundancy.model is RedundancyModel.N_WAY:
            yield (workload.active, workload.standby)
        else:  # a processor is either active or standby, also for different workloads
            yield from ((other.active, workload.standby) for other in workloads)
