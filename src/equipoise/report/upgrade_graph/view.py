"""One view of an upgrade, and the forms in which it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.graph import (
    ChangeGroupEdge,
    ControlGraph,
    Edge,
    ProtectionGroup,
    ResourceGraph,
    Vertex,
)
from equipoise.model.upgrade.work import VertexId, WorkItem
from equipoise.report.upgrade_graph.diagram import (
    VertexDecision,
    fold_boxes,
    make_diagram,
    without_vms,
)
from equipoise.report.upgrade_graph.dot import control_graph_dot, resource_graph_dot
from equipoise.report.upgrade_graph.svg import diagram_svg

SUFFIXES: Final = (".svg", ".dot", ".json")


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
        problem = InputProblem(
            key="",
            what=f"there is no picture of the kind {path.suffix or 'without an ending'}",
            cure=f"end the name of the file with {', '.join(SUFFIXES)}",
            code="unsupported-feature",
        )
        raise InvalidInput(str(path), [problem])


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
            "edges": [_edge(edge) for edge in view.resources.edges],
            "protection_groups": [
                _protection(protection) for protection in view.resources.protections
            ],
        },
        "control_graph": {
            "vertices": [_group(view, group) for group in view.control.groups],
            "edges": [_edge(edge) for edge in view.control.edges],
        },
    }


def _vertex(view: GraphView, one: ResourceId) -> dict[str, Any]:
    vertex = view.resources.vertices[one]
    return {
        "id": vertex.id,
        "kind": vertex.kind.value,
        "modification": vertex.modification.value,
        "active": vertex.active,
        "undo_units": list(vertex.undo_units),
        "levels": [
            {"unit": level.unit, "actions": [_action(work) for work in level.works]}
            for level in vertex.levels
        ],
        "failed_attempts": dict(vertex.failed_attempts),
        "related": vertex.related,
        "isolated": vertex.isolated,
        "failed": vertex.failed,
        "present": vertex.present,
        "host": vertex.host,
        "vm": vertex.vm,
        "constituents_min": vertex.constituents_min,
        "protection_groups": list(view.resources.protection_groups_of.get(one, ())),
    }


def _protection(one: ProtectionGroup) -> dict[str, Any]:
    return {
        "id": one.id,
        "kind": one.kind.value,
        "within": one.within,
        "holders": list(one.holders),
        "members": list(one.members),
        "in_service": list(one.in_service),
        "in_service_min": one.in_service_min,
        "spare": one.spare,
    }


def _action(work: WorkItem) -> dict[str, Any]:
    return {
        "set": work.set,
        "component": work.component,
        "does": work.does.value,
        "before": work.before,
        "after": work.after,
        "undoing": work.undoing,
    }


def _group(view: GraphView, one: VertexId) -> dict[str, Any]:
    group = view.control.groups[one]
    verdict = view.verdicts.get(one)
    vertices = view.resources.vertices
    there = [vertices[each] for each in group.members if each in vertices]
    return {
        "id": group.id,
        "members": list(group.members),
        "modification": group.modification.value,
        "active": group.active,
        "undo_units": list(dict.fromkeys(unit for each in there for unit in each.undo_units)),
        "levels": _merged(there),
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


def _edge(edge: Edge | ChangeGroupEdge) -> dict[str, Any]:
    return {
        "dependent": edge.dependent,
        "sponsor": edge.sponsor,
        "kind": edge.kind.value,
        "presence": edge.presence.value,
        "incompatible": edge.incompatible,
        "link": edge.link,
    }
