"""The diagram of the graphs: boxes with resources, lines between boxes; similar boxes are folded
when there are many.

A box is a vertex of the control graph with its resources, or the VMs of one host.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from equipoise.model.quantity import ResourceId, format_count
from equipoise.model.upgrade.graph import ControlGraph, Modification, ResourceGraph, Vertex
from equipoise.model.upgrade.infrastructure import DependencyKind, DependencyPresence, ResourceKind
from equipoise.model.upgrade.work import VertexId


@dataclass(frozen=True, slots=True)
class BoxRow:
    """A resource in a box."""

    id: str
    kind: ResourceKind
    modification: Modification
    active: bool = True
    faulty: bool = False
    """Isolated or failed."""
    protection_groups_of: tuple[str, ...] = ()
    """The protection groups it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagramBox:
    """Resources that change in one iteration, or VMs of one host."""

    id: str
    title: str
    rows: tuple[BoxRow, ...]
    modification: Modification
    active: bool = True
    isolated: bool = False
    failed: bool = False
    chosen: bool = False
    """Whether the box is in the batch of the iteration."""
    note: str = ""
    """Why it is not, in short ..."""
    reason: str = ""
    """... and in a sentence."""
    protection: str = ""
    """Number of members that its protection groups can spare."""
    vms: bool = False
    count: int = 1
    """Number of boxes that this one stands for."""


@dataclass(frozen=True, slots=True)
class DiagramLine:
    """A dependency between two boxes; ``count`` is the number of its kind."""

    dependent: str
    sponsor: str
    kind: DependencyKind
    presence: DependencyPresence
    incompatible: bool
    count: int = 1


@dataclass(frozen=True, slots=True)
class Diagram:
    """The content of a diagram."""

    boxes: tuple[DiagramBox, ...]
    ties: tuple[DiagramLine, ...]


@dataclass(frozen=True, slots=True)
class VertexDecision:
    """The decision of an iteration about a vertex of the control graph."""

    chosen: bool
    note: str = ""
    reason: str = ""


def make_diagram(
    resources: ResourceGraph, control: ControlGraph, verdicts: Mapping[VertexId, VertexDecision]
) -> Diagram:
    """Return resources in the boxes of their groups, and each VM in the box of its host."""
    box_of: dict[ResourceId, str] = {
        vertex: control.group_of[vertex]
        for vertex in resources.vertices
        if vertex in control.group_of
    }
    guests = _vms_by_host(resources, box_of)
    box_of |= {member: name for name, vms in guests.items() for member in vms}
    boxes = [*_group_boxes(resources, control, verdicts), *_vm_boxes(resources, guests)]
    return Diagram(tuple(boxes), tuple(_lines(resources, box_of)))


def without_vms(diagram: Diagram) -> Diagram:
    """Return the control graph alone, which has no VMs."""
    guests = {box.id for box in diagram.boxes if box.vms}
    ties = (tie for tie in diagram.ties if not {tie.dependent, tie.sponsor} & guests)
    return Diagram(tuple(box for box in diagram.boxes if box.id not in guests), tuple(ties))


def _vms_by_host(
    resources: ResourceGraph, box_of: Mapping[ResourceId, str]
) -> dict[str, list[ResourceId]]:
    found: dict[str, list[ResourceId]] = {}
    for resource, vertex in resources.vertices.items():
        if resource not in box_of:
            name = f"VMs on {vertex.host}" if vertex.host is not None else "VMs on no host"
            found.setdefault(name, []).append(resource)
    return found


def _group_boxes(
    resources: ResourceGraph, control: ControlGraph, verdicts: Mapping[VertexId, VertexDecision]
) -> Iterator[DiagramBox]:
    unknown = VertexDecision(chosen=False)
    for id_, group in control.groups.items():
        verdict = verdicts.get(id_, unknown)
        there = [
            resources.vertices[member] for member in group.members if member in resources.vertices
        ]
        yield DiagramBox(
            id=id_,
            title=_title(id_, there),
            rows=tuple(
                _row(vertex, resources.protection_groups_of.get(vertex.id, ())) for vertex in there
            ),
            modification=group.modification,
            active=group.active,
            isolated=group.isolated,
            failed=group.failed,
            chosen=verdict.chosen,
            note=verdict.note,
            reason=verdict.reason,
            protection=_protection_text(resources, group.members),
        )


def _protection_text(resources: ResourceGraph, members: Sequence[ResourceId]) -> str:
    """Return the spare members of the protection groups as text."""
    own = {group for member in members for group in resources.protection_groups_of.get(member, ())}
    return "; ".join(
        f"protection group {protection.id}: "
        f"{protection.spare} of {len(protection.members)} can be spared"
        for protection in resources.protections
        if protection.id in own and protection.in_service_min
    )


def _title(id_: VertexId, there: Sequence[Vertex]) -> str:
    """Return the name of a box, with the host if it is one."""
    hosts = {vertex.host for vertex in there}
    host = hosts.pop() if len(hosts) == 1 else None
    return f"{id_} · {host}" if host is not None and str(host) != str(id_) else id_


def _vm_boxes(
    resources: ResourceGraph, guests: Mapping[str, list[ResourceId]]
) -> Iterator[DiagramBox]:
    for name, vms in guests.items():
        rows = tuple(_row(resources.vertices[vertex]) for vertex in vms)
        moves = any(row.modification is not Modification.NO_CHANGE for row in rows)
        change = Modification.UPGRADE if moves else Modification.NO_CHANGE
        yield DiagramBox(id=name, title=name, rows=rows, modification=change, vms=True)


def _row(vertex: Vertex, protection_groups_of: Sequence[str] = ()) -> BoxRow:
    faulty = vertex.isolated or vertex.failed
    return BoxRow(
        vertex.id,
        vertex.kind,
        vertex.modification,
        vertex.active,
        faulty,
        tuple(protection_groups_of),
    )


def _lines(resources: ResourceGraph, box_of: Mapping[ResourceId, str]) -> Iterator[DiagramLine]:
    """Return one line per kind of dependency between two boxes; peers share one line."""
    counts: dict[tuple[str, str, DependencyKind, DependencyPresence, bool], int] = {}
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
        yield DiagramLine(*key, count=count)


BOXES_MAX: Final = 60
"""More boxes cannot be read one by one."""

Likeness = Callable[[DiagramBox], Hashable]


def fold_boxes(diagram: Diagram, most: int = BOXES_MAX) -> Diagram:
    """Fold equal boxes with equal neighbours; if that is not enough, all equal boxes."""
    if len(diagram.boxes) <= most:
        return diagram
    near = _neighbours(diagram)
    careful = _fold(diagram, lambda box: (_likeness(box), near[box.id]))
    return careful if len(careful.boxes) <= most else _fold(diagram, _likeness)


def _likeness(box: DiagramBox) -> Hashable:
    kinds = frozenset(row.kind for row in box.rows)
    change = (box.modification, box.active, box.isolated, box.failed)
    return (kinds, *change, box.chosen, box.note, box.protection, box.vms)


def _neighbours(diagram: Diagram) -> dict[str, Hashable]:
    by_id = {box.id: box for box in diagram.boxes}
    found: dict[str, set[Hashable]] = {box.id: set() for box in diagram.boxes}
    for tie in diagram.ties:
        found[tie.dependent].add((tie.kind, "to", _likeness(by_id[tie.sponsor])))
        found[tie.sponsor].add((tie.kind, "from", _likeness(by_id[tie.dependent])))
    return {vertex: frozenset(neighbours) for vertex, neighbours in found.items()}


def _fold(diagram: Diagram, alike: Likeness) -> Diagram:
    classes: dict[Hashable, list[DiagramBox]] = {}
    for box in diagram.boxes:
        classes.setdefault(alike(box), []).append(box)
    boxes: list[DiagramBox] = []
    into: dict[str, str] = {}
    for folded in classes.values():
        made = folded[0] if len(folded) == 1 else _folded_box(folded)
        boxes.append(made)
        into |= {box.id: made.id for box in folded}
    ties: dict[Hashable, DiagramLine] = {}
    for tie in diagram.ties:
        ends = into[tie.dependent], into[tie.sponsor]
        # Peers have one line, whichever of the two is named first.
        pair: Hashable = frozenset(ends) if tie.kind.is_symmetrical else ends
        key = (pair, tie.kind, tie.presence, tie.incompatible)
        known = ties.get(key)
        count = tie.count + (known.count if known else 0)
        ties[key] = replace(known or tie, dependent=ends[0], sponsor=ends[1], count=count)
    return Diagram(tuple(boxes), tuple(ties.values()))


def _folded_box(boxes: list[DiagramBox]) -> DiagramBox:
    """Return a box for many: the first and the last name, and their number."""
    first, last = boxes[0], boxes[-1]
    resources = format_count(sum(len(box.rows) for box in boxes), "resource")
    note = "; ".join(part for part in (f"{len(boxes):,} alike, {resources}", first.note) if part)
    return replace(
        first, title=f"{first.title} … {last.title}", rows=(), note=note, count=len(boxes)
    )
