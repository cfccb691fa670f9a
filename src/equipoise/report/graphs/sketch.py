"""A sketch of the graphs: boxes with what is in them, and ties between boxes.

A box is a vertex of the control graph with its resources, or the VMs of one host. What binds the
resources of one box to each other is told by the box itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import DependencyKind, Presence, ResourceKind
from equipoise.model.upgrade.graph import ControlGraph, Modification, ResourceGraph, Vertex
from equipoise.model.upgrade.work import VertexId


@dataclass(frozen=True, slots=True)
class Row:
    """A resource in a box."""

    id: str
    kind: ResourceKind
    modification: Modification
    active: bool = True
    troubled: bool = False
    """Isolated or failed."""
    guards: tuple[str, ...] = ()
    """The protection groups it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Resources that are changed in one iteration, or VMs of one host."""

    id: str
    title: str
    rows: tuple[Row, ...]
    modification: Modification
    active: bool = True
    isolated: bool = False
    failed: bool = False
    chosen: bool = False
    """In the batch of the iteration that is drawn."""
    note: str = ""
    """Why it is not, in a word or two ..."""
    reason: str = ""
    """... and in a sentence."""
    guarded: str = ""
    """How many its protection groups can spare."""
    vms: bool = False
    count: int = 1
    """How many boxes this one stands for."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A dependency between two boxes; ``count`` says how many of the kind there are."""

    dependent: str
    sponsor: str
    kind: DependencyKind
    presence: Presence
    incompatible: bool
    count: int = 1


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is to be drawn."""

    boxes: tuple[Box, ...]
    ties: tuple[Tie, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an iteration decided about a vertex of the control graph."""

    chosen: bool
    note: str = ""
    reason: str = ""


def sketched(
    resources: ResourceGraph, control: ControlGraph, verdicts: Mapping[VertexId, Verdict]
) -> Sketch:
    """Put the resources into the boxes of their groups, and each VM into that of its host."""
    box_of: dict[ResourceId, str] = {
        one: control.group_of[one] for one in resources.vertices if one in control.group_of
    }
    guests = _guests(resources, box_of)
    box_of |= {one: name for name, those in guests.items() for one in those}
    boxes = [*_groups(resources, control, verdicts), *_of_vms(resources, guests)]
    return Sketch(tuple(boxes), tuple(_ties(resources, box_of)))


def without_vms(sketch: Sketch) -> Sketch:
    """The control graph alone: VMs are no part of it."""
    guests = {box.id for box in sketch.boxes if box.vms}
    ties = (tie for tie in sketch.ties if not {tie.dependent, tie.sponsor} & guests)
    return Sketch(tuple(box for box in sketch.boxes if box.id not in guests), tuple(ties))


def _guests(
    resources: ResourceGraph, box_of: Mapping[ResourceId, str]
) -> dict[str, list[ResourceId]]:
    found: dict[str, list[ResourceId]] = {}
    for one, vertex in resources.vertices.items():
        if one not in box_of:
            name = f"VMs on {vertex.host}" if vertex.host is not None else "VMs on no host"
            found.setdefault(name, []).append(one)
    return found


def _groups(
    resources: ResourceGraph, control: ControlGraph, verdicts: Mapping[VertexId, Verdict]
) -> Iterator[Box]:
    unknown = Verdict(chosen=False)
    for id_, group in control.groups.items():
        verdict = verdicts.get(id_, unknown)
        there = [resources.vertices[one] for one in group.members if one in resources.vertices]
        yield Box(
            id=id_,
            title=_title(id_, there),
            rows=tuple(_row(one, resources.guards.get(one.id, ())) for one in there),
            modification=group.modification,
            active=group.active,
            isolated=group.isolated,
            failed=group.failed,
            chosen=verdict.chosen,
            note=verdict.note,
            reason=verdict.reason,
            guarded=_guarded(resources, group.members),
        )


def _guarded(resources: ResourceGraph, members: Sequence[ResourceId]) -> str:
    """What the protection groups of resources can spare, in words."""
    own = {group for one in members for group in resources.guards.get(one, ())}
    return "; ".join(
        f"protection group {one.id}: {one.spare} of {len(one.members)} can be spared"
        for one in resources.protections
        if one.id in own and one.in_service_min
    )


def _title(id_: VertexId, there: Sequence[Vertex]) -> str:
    """Its name, and the host if it is one."""
    hosts = {vertex.host for vertex in there}
    host = hosts.pop() if len(hosts) == 1 else None
    return f"{id_} · {host}" if host is not None and str(host) != str(id_) else id_


def _of_vms(resources: ResourceGraph, guests: Mapping[str, list[ResourceId]]) -> Iterator[Box]:
    for name, those in guests.items():
        rows = tuple(_row(resources.vertices[one]) for one in those)
        moves = any(row.modification is not Modification.NO_CHANGE for row in rows)
        change = Modification.UPGRADE if moves else Modification.NO_CHANGE
        yield Box(id=name, title=name, rows=rows, modification=change, vms=True)


def _row(vertex: Vertex, guards: Sequence[str] = ()) -> Row:
    troubled = vertex.isolated or vertex.failed
    return Row(vertex.id, vertex.kind, vertex.modification, vertex.active, troubled, tuple(guards))


def _ties(resources: ResourceGraph, box_of: Mapping[ResourceId, str]) -> Iterator[Tie]:
    """One for all dependencies of a kind between two boxes; peers have one for both ways."""
    counts: dict[tuple[str, str, DependencyKind, Presence, bool], int] = {}
    for edge in resources.edges:
        ends = box_of.get(edge.dependent), box_of.get(edge.sponsor)
        if None in ends or ends[0] == ends[1]:
            continue
        dependent, sponsor = str(ends[0]), str(ends[1])
        back = (sponsor, dependent, edge.kind, edge.presence, edge.incompatible)
        if edge.kind.is_symmetrical and back in counts:
            continue
        key = (dependent, sponsor, edge.kind, edge.presence, edge.incompatible)
        counts[key] = counts.get(key, 0) + 1
    for key, count in counts.items():
        yield Tie(*key, count=count)
