"""Step 3: how many compute hosts may be out of service (Z), and which groups make the batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from equipoise.model.quantity import HostId, TenantId
from equipoise.model.upgrade.event import Eliminated
from equipoise.model.upgrade.work import VertexId
from equipoise.model.words import counted
from equipoise.upgrade.cover import Cover
from equipoise.upgrade.room import Reserve, Seating, growth, reserve, whole_hosts
from equipoise.upgrade.rules import eliminate
from equipoise.upgrade.rules.use import IN_USE
from equipoise.upgrade.scene import Scene, affected_hosts
from equipoise.upgrade.sides import Sides, growing, old_only, unused, used, with_new
from equipoise.upgrade.state import State
from equipoise.upgrade.turns import turn_of

MOVES = "a VM, which moves in step 4"
PEERS: Final = 6
"""The rule that leaves one of those that stand in for each other."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What step 3 comes to."""

    z: int
    batch: tuple[VertexId, ...]
    eliminated: tuple[Eliminated, ...]


def select(scene: Scene) -> Selection:
    """Choose the batch: what the rules leave, as far as hosts can be spared.

    Of those that stand in for each other rule 6 leaves one, whatever its size. If that is the one
    whose host is kept, another may go in its place rather than nobody for ever.
    """
    first, passed = made, again = _selected(scene, {})
    while not made.batch and again:
        made, again = _selected(scene, passed)
        passed |= again
    return made if made.batch else first


def _selected(scene: Scene, passed: dict[VertexId, str]) -> tuple[Selection, dict[VertexId, str]]:
    """What can be selected if some are passed over, and whom else to pass over if it is nothing."""
    left, removed = eliminate(scene, passed)
    lasting_s = duration_s(scene, left)
    hosts = {one: _taken_out(scene, one) for one in left}
    ordered = in_turn(scene, list(left))
    wanted = [host for one in ordered for host in sorted(hosts[one])]
    free = dict.fromkeys(spared(scene, wanted, lasting_s))
    z = len(free)
    none = "" if free else _why_none(scene, lasting_s)
    batch, capped = _as_far_as_spared(scene, ordered, hosts, free, none)
    back, waiting = _back(scene, set(batch))
    batch += back
    made = Selection(
        z,
        tuple(sorted(batch, key=scene.place.__getitem__)),
        tuple(_told(scene, [*removed, (5, waiting), (0, passed | capped)])),
    )
    for_others = next((found for rule, found in removed if rule == PEERS), {})
    if batch or not (capped and for_others):
        return made, {}
    costs = {one: _taken_out(scene, one) for one in for_others}
    kept = {one: more for one, more in costs.items() if not _fits(scene, len(more), more, free)}
    return made, capped | {
        one: none or _why_capped(len(more), free, more) for one, more in kept.items()
    }


def _as_far_as_spared(
    scene: Scene,
    ordered: list[VertexId],
    hosts: dict[VertexId, set[HostId]],
    free: dict[HostId, None],
    none: str,
) -> tuple[list[VertexId], dict[VertexId, str]]:
    """One group after the other while their hosts can be spared, and why the others wait."""
    out: set[HostId] = set()
    batch: list[VertexId] = []
    capped: dict[VertexId, str] = {}
    cover = Cover(scene)
    for vertex in ordered:
        more = hosts[vertex]
        short = _short_of_spare(scene, vertex, len(out)) or cover.missed(vertex)
        if short:
            capped[vertex] = short
            continue
        undo_alone = scene.is_undoing(vertex) and not out
        together = len(out) + len(more - out)
        spared_for_it = not out and len(more) <= _dedicated(scene, vertex)
        if undo_alone or spared_for_it or _fits(scene, together, more, free):
            batch.append(vertex)
            cover.leaves(vertex)
            out |= more
        else:
            capped[vertex] = none or _why_capped(together, free, more)
    return batch, capped


def _why_capped(together: int, free: dict[HostId, None], hosts: set[HostId]) -> str:
    z = len(free)
    if together > z:
        return f"hosts that can be spared: {z}, and with it {together} would be out"
    kept = sorted(hosts - free.keys())
    return f"{', '.join(kept)} cannot be spared, only others ({z})"


def _why_none(scene: Scene, lasting_s: int) -> str:
    """What empty hosts are kept for, or that there are none."""
    state, sides = scene.state, scene.sides
    hosts = list(sides.old) if sides.divided else [*sides.old, *sides.new]
    empty = len(unused(state, hosts))
    told = f"no host can be spared: {empty} of {counted(len(hosts), 'host')} empty"
    tenants = old_only(state, sides) if sides.divided else growing(state)
    more = growth(state, tenants, lasting_s)
    if more:
        most = max(more, key=more.__getitem__)
        told += f", tenants may ask for {counted(sum(more.values()), 'more VM')} meanwhile"
        told += f" ({most} for {more[most]})"
    failover = state.settings.failover_hosts
    return told + (f", {counted(failover, 'host')} kept for failures" if failover else "")


def _taken_out(scene: Scene, vertex: VertexId) -> set[HostId]:
    """The hosts that a group costs: one that only returns into service costs none."""
    if not scene.control.groups[vertex].changes:
        return set()
    return affected_hosts(scene, vertex)


def _back(scene: Scene, batch: set[VertexId]) -> tuple[list[VertexId], dict[VertexId, str]]:
    """Who returns into service with this batch, and who waits for the last of their unit."""
    back: list[VertexId] = []
    waiting: dict[VertexId, str] = {}
    for one in scene.returning:
        if one.due and batch.issuperset(one.behind):
            back += one.groups
        else:
            waiting |= dict.fromkeys(one.groups, "it returns when the last of its unit leaves")
    return back, waiting


def _short_of_spare(scene: Scene, vertex: VertexId, out: int) -> str:
    """Why a unit cannot begin: hosts that it keeps off must not be missed, however long it takes.

    Only once all tenants could grow as far as they were promised are hosts spare (5.1.4.2).
    """
    unit = scene.unit(vertex) if scene.state.units else None
    if unit is None or not unit.degraded_hosts or turn_of(scene.state, unit) != 0:
        return ""
    spare = len(spared(scene, sorted(scene.control.groups[vertex].hosts), None)) - out
    if spare >= unit.degraded_hosts:
        return ""
    return f"its unit keeps {unit.degraded_hosts} hosts off, and {max(0, spare)} are spare"


def _fits(scene: Scene, together: int, hosts: set[HostId], free: dict[HostId, None]) -> bool:
    """Whether these very hosts can be spared; by whole hosts one is as good as another."""
    by_number = scene.state.settings.readings.reserve_whole_hosts
    return together <= len(free) and (by_number or hosts <= free.keys())


def _dedicated(scene: Scene, vertex: VertexId) -> int:
    """How many spare hosts there are for a unit that stays out of service after its change."""
    unit = scene.unit(vertex)
    if unit is None or len(unit.partitions) == 1:
        return 0
    asleep = sum(
        not part.active and part.present and part.resource.host in scene.state.places
        for part in scene.state.parts.values()
    )
    return max(0, scene.state.settings.spare_hosts - asleep)


def in_turn(scene: Scene, vertices: list[VertexId]) -> list[VertexId]:
    """The order in which groups are taken: taking back, then urgent sets, then the last host first.

    VMs are packed from one end of the cluster, so that hosts at the other end are free the longest.
    """

    def rank(vertex: VertexId) -> tuple[bool, int, bool, int]:
        urgent = max((scene.state.standings[one].priority for one in scene.sets(vertex)), default=0)
        has_hosts = bool(scene.control.groups[vertex].hosts)
        place = scene.place[vertex]
        return not scene.is_undoing(vertex), -urgent, has_hosts, -place if has_hosts else place

    return sorted(vertices, key=rank)


def duration_s(scene: Scene, vertices: dict[VertexId, None]) -> int:
    """T of equation 3: how long the longest of these changes takes, with its recovery."""
    return max(
        (
            sum(work.risk_s for level in scene.level(one).values() for work in level.works)
            for one in vertices
        ),
        default=0,
    )


def spared(scene: Scene, wanted: Sequence[HostId], lasting_s: int | None) -> list[HostId]:
    """The hosts that can be out of service for a time, those that are wanted first; Z is how many.

    While the cluster is divided these are hosts of the old side. Without a time: however long it
    takes, and however far tenants grow.
    """
    state, sides = scene.state, scene.sides
    hosts = list(sides.old) if sides.divided else [*sides.old, *sides.new]
    tenants = old_only(state, sides) if sides.divided else growing(state)
    alone = state.settings.readings.sides_alone or not sides.divided
    overflow = {} if alone else _overflow(state, sides, lasting_s)
    idle, busy = dict.fromkeys(unused(state, hosts)), used(state, hosts)
    if not busy and not tenants and not overflow:
        return list(idle)
    failover = state.settings.failover_hosts if busy else 0
    back = _hosts_back(scene)
    first = {one: None for one in wanted if one in idle}
    old = {one: None for one in reversed(idle) if one in sides.old}
    order = list(first | old | idle)
    literal = lasting_s is not None and state.settings.readings.reserve_whole_hosts

    def kept_of(empty: list[HostId]) -> Reserve:
        return reserve(
            state,
            Seating(state, [*hosts, *back]),
            overflow if literal else growth(state, tenants, lasting_s) | overflow,
            busy=busy,
            empty=empty,
            failover=0 if literal else failover,
        )

    made = kept_of([*order, *back])
    if literal and lasting_s is not None:
        kept = whole_hosts(state, hosts, len(tenants), lasting_s) + failover + len(made.kept)
        return order[: max(0, len(order) + len(back) - kept)]
    if len({state.places[one].places for one in (*order, *back)}) > 1:
        # Fewer are kept if they are large; but those that wait for a change are what counts.
        large = kept_of(sorted([*order, *back], key=lambda one: state.places[one].places))
        if _spares(large, first) > _spares(made, first):
            made = large
    return [] if made.short else [one for one in order if one not in made.kept]


def _spares(made: Reserve, wanted: Iterable[HostId]) -> int:
    """How many of the hosts that are wanted are not kept."""
    return 0 if made.short else sum(one not in made.kept for one in wanted)


def _overflow(state: State, sides: Sides, lasting_s: int | None) -> dict[TenantId, int]:
    """VMs that tenants of the new side may ask for, and that only the old side has places for."""
    busy, empty = used(state, sides.new), unused(state, sides.new)
    made = reserve(
        state,
        Seating(state, sides.new),
        growth(state, with_new(state, sides), lasting_s),
        busy=busy,
        empty=empty,
        failover=state.settings.failover_hosts if busy and sides.new else 0,
    )
    return made.missing


def _hosts_back(scene: Scene) -> list[HostId]:
    """Hosts that return into service in the moment in which the last of their unit leaves it."""
    due = [vertex for one in scene.returning if one.due for vertex in one.groups]
    return [host for vertex in due for host in scene.control.groups[vertex].hosts]


def _told(scene: Scene, reasons: list[tuple[int, dict[VertexId, str]]]) -> list[Eliminated]:
    """Who is not in the batch, put together by rule and reason; VMs that have to move as well."""
    told: dict[tuple[int, str], list[VertexId]] = {}
    for rule, found in reasons:
        for vertex, why in found.items():
            told.setdefault((rule, why), []).append(vertex)
    moving = _vms_to_move(scene.state, scene)
    if moving:
        told[1, MOVES] = moving
    return [
        Eliminated(rule=rule, reason=why, vertices=tuple(those))
        for (rule, why), those in sorted(told.items(), key=lambda one: one[0][0] or 8)
    ]


def _vms_to_move(state: State, scene: Scene) -> list[VertexId]:
    return [
        VertexId(seat.vm)
        for seat in state.seats.values()
        if seat.host is not None and scene.sides.must_leave(seat.host)
    ]


__all__ = ["IN_USE", "Selection", "select"]
