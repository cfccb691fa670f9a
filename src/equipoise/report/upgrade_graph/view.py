"""One view of an upgrade, and the forms in which it is written: SVG, DOT for Graphviz, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from equipoise.documents.json_document import to_plain
from equipoise.errors import InvalidInput
from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.graph import (
    ChangeGroupEdge,
    ControlGraph,
    Edge,
    ProtectionGroup,
    ResourceGraph,
    Vertex,
)
from equipoise.model.upgrade.infrastructure import DependencyPresence
from equipoise.model.upgrade.work import VertexId, WorkItem
from equipoise.report.upgrade_graph.diagram import (
    VertexDecision,
    fold_boxes,
    make_diagram,
    without_vms,
)
from equipoise.report.upgrade_graph.svg import diagram_svg

SUFFIXES: Final = (".svg", ".dot", ".json")
_DOT_COLOURS: Final = {
    "add": "#dcf3e6",
    "remove": "#fbe3e1",
    "upgrade": "#e1eefb",
    "no_change": "#f3f5f7",
}
_DOT_LINES: Final = {
    DependencyPresence.CURRENT: "dotted",
    DependencyPresence.FUTURE: "dashed",
    DependencyPresence.CURRENT_FUTURE: "solid",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphView:
    """The two graphs of one iteration, and its decisions."""

    title: str
    iteration: int
    resources: ResourceGraph
    control: ControlGraph
    verdicts: Mapping[VertexId, VertexDecision] = field(default_factory=dict)


def check_graph_file(path: Path) -> None:
    """Reject a file name whose ending is no graph format."""
    if path.suffix not in SUFFIXES:
        raise InvalidInput.of(
            str(path),
            f"there is no picture of the kind {path.suffix or 'without an ending'}",
            cure=f"end the name of the file with {', '.join(SUFFIXES)}",
            code="unsupported-feature",
        )


def write_graph_view(view: GraphView, suffix: str, *, groups_only: bool) -> str:
    """Write the view as SVG, DOT or JSON; ``groups_only`` is the control graph alone."""
    if suffix == ".svg":
        whole = make_diagram(view.resources, view.control, view.verdicts)
        shown = without_vms(whole) if groups_only else whole
        return diagram_svg(fold_boxes(shown), view.title, with_rows=not groups_only)
    if suffix == ".dot":
        if groups_only:
            return control_graph_dot(view.control, view.title)
        return resource_graph_dot(view.resources, view.control, view.title)
    return json.dumps(graph_document(view), indent=2, ensure_ascii=False) + "\n"


def graph_document(view: GraphView) -> dict[str, Any]:
    """Return both graphs with all their attributes."""
    return {
        "iteration": view.iteration,
        "resource_graph": {
            "vertices": [_vertex(view, vertex) for vertex in view.resources.vertices],
            "edges": to_plain(view.resources.edges),
            "protection_groups": [
                _protection(protection) for protection in view.resources.protections
            ],
        },
        "control_graph": {
            "vertices": [_group(view, group) for group in view.control.groups],
            "edges": to_plain(view.control.edges),
        },
    }


def _vertex(view: GraphView, resource_id: ResourceId) -> dict[str, Any]:
    vertex = view.resources.vertices[resource_id]
    levels = [
        {"unit": level.unit, "actions": [_action(work) for work in level.works]}
        for level in vertex.levels
    ]
    groups = view.resources.protection_groups_of.get(resource_id, ())
    plain: dict[str, Any] = to_plain(vertex)
    return plain | {"levels": levels, "protection_groups": list(groups)}


def _protection(group: ProtectionGroup) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(group)
    return plain | {"spare": group.spare}


def _action(work: WorkItem) -> dict[str, Any]:
    return {
        "set": work.set,
        "component": work.component,
        "does": work.does.value,
        "before": work.before,
        "after": work.after,
        "undoing": work.undoing,
    }


def _group(view: GraphView, vertex: VertexId) -> dict[str, Any]:
    group = view.control.groups[vertex]
    verdict = view.verdicts.get(vertex)
    vertices = view.resources.vertices
    member_vertices = [vertices[member] for member in group.members if member in vertices]
    return {
        "id": group.id,
        "members": list(group.members),
        "modification": group.modification.value,
        "active": group.active,
        "undo_units": list(
            dict.fromkeys(
                unit for member_vertex in member_vertices for unit in member_vertex.undo_units
            )
        ),
        "levels": _merged(member_vertices),
        "hosts": list(group.hosts),
        "isolated": group.isolated,
        "failed": group.failed,
        "in_batch": verdict.chosen if verdict else None,
        "reason": verdict.reason if verdict else None,
    }


def _merged(members: list[Vertex]) -> list[dict[str, Any]]:
    """Return the actions of all members level by level, the oldest request first."""
    levels: dict[int, list[dict[str, Any]]] = {}
    for member in members:
        for level in member.levels:
            actions = [{"resource": member.id} | _action(work) for work in level.works]
            levels.setdefault(level.order, []).extend(actions)
    return [{"order": order, "actions": levels[order]} for order in sorted(levels)]


def resource_graph_dot(resources: ResourceGraph, control: ControlGraph, title: str) -> str:
    """Return the resource graph, with the groups of the control graph as clusters."""
    return _digraph(title, [*_dot_clusters(resources, control), *_dot_edges(resources.edges)])


def control_graph_dot(control: ControlGraph, title: str) -> str:
    """Return the control graph."""
    lines = [
        _dot_node(
            vertex, f"{vertex}\\n{len(group.members)}", group.modification, active=group.active
        )
        for vertex, group in control.groups.items()
    ]
    return _digraph(title, [*lines, *_dot_edges(control.edges)])


def _digraph(title: str, lines: list[str]) -> str:
    head = f'digraph {_dot_quoted(title)} {{\n  node [shape=box, style="rounded,filled"];\n'
    return head + "".join(f"  {line}\n" for line in lines) + "}\n"


def _dot_clusters(resources: ResourceGraph, control: ControlGraph) -> Iterator[str]:
    grouped: set[str] = set()
    for place, (id_, group) in enumerate(control.groups.items()):
        there = [member for member in group.members if member in resources.vertices]
        grouped.update(there)
        nodes = [_dot_vertex(resources, member) for member in there]
        if len(nodes) == 1:
            yield nodes[0]
        elif nodes:
            yield f"subgraph cluster_{place} {{ label={_dot_quoted(id_)}; {' '.join(nodes)} }}"
    for vertex in resources.vertices:
        if vertex not in grouped:
            yield _dot_vertex(resources, vertex)


def _dot_vertex(resources: ResourceGraph, resource_id: ResourceId) -> str:
    vertex = resources.vertices[resource_id]
    label = "\\n".join(
        (resource_id, vertex.kind, *resources.protection_groups_of.get(resource_id, ()))
    )
    return _dot_node(resource_id, label, vertex.modification, active=vertex.active)


def _dot_node(id_: str, label: str, modification: str, *, active: bool) -> str:
    look = "" if active else ', style="rounded,filled,dashed"'
    colour = _DOT_COLOURS[modification]
    return f'{_dot_quoted(id_)} [label={_dot_quoted(label)}, fillcolor="{colour}"{look}];'


def _dot_edges(edges: tuple[Edge, ...] | tuple[ChangeGroupEdge, ...]) -> Iterator[str]:
    seen: set[tuple[str, str, str, str]] = set()
    for edge in edges:
        key = edge.dependent, edge.sponsor, edge.kind.value, edge.presence.value
        if key in seen or (edge.kind.is_symmetrical and (key[1], key[0], *key[2:]) in seen):
            continue
        seen.add(key)
        looks = [f'label="{edge.kind}"', f"style={_DOT_LINES[edge.presence]}"]
        looks += ["dir=both", "constraint=false"] if edge.kind.is_symmetrical else []
        looks += ["color=red", "penwidth=2"] if edge.incompatible else []
        yield f"{_dot_quoted(edge.dependent)} -> {_dot_quoted(edge.sponsor)} [{', '.join(looks)}];"


def _dot_quoted(words: str) -> str:
    escaped = words.replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
