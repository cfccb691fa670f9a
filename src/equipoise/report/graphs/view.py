"""One view of an upgrade, and the forms in which it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from equipoise.errors import InvalidInput, Problem
from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.graph import (
    ControlGraph,
    Edge,
    GroupEdge,
    Protection,
    ResourceGraph,
    Vertex,
)
from equipoise.model.upgrade.work import VertexId, Work
from equipoise.report.graphs.dot import dot_of_groups, dot_of_resources
from equipoise.report.graphs.fold import folded
from equipoise.report.graphs.sketch import Verdict, sketched, without_vms
from equipoise.report.graphs.svg import svg_of

FORMS: Final = (".svg", ".dot", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The two graphs as they are in one iteration, and what it decided."""

    title: str
    iteration: int
    resources: ResourceGraph
    control: ControlGraph
    verdicts: Mapping[VertexId, Verdict] = field(default_factory=dict)


def check_form(path: Path) -> None:
    """Refuse a file whose name does not say in which form it is wanted."""
    if path.suffix not in FORMS:
        problem = Problem(
            key="",
            what=f"there is no picture of the kind {path.suffix or 'without an ending'}",
            cure=f"end the name of the file with {', '.join(FORMS)}",
        )
        raise InvalidInput(str(path), [problem])


def written(view: View, suffix: str, *, groups_only: bool) -> str:
    """Write the view as SVG, DOT or JSON; ``groups_only`` is the control graph alone."""
    if suffix == ".svg":
        whole = sketched(view.resources, view.control, view.verdicts)
        shown = without_vms(whole) if groups_only else whole
        return svg_of(folded(shown), view.title, with_rows=not groups_only)
    if suffix == ".dot":
        if groups_only:
            return dot_of_groups(view.control, view.title)
        return dot_of_resources(view.resources, view.control, view.title)
    return json.dumps(document_of(view), indent=2, ensure_ascii=False) + "\n"


def document_of(view: View) -> dict[str, Any]:
    """Both graphs with all their attributes."""
    return {
        "iteration": view.iteration,
        "resource_graph": {
            "vertices": [_vertex(view, one) for one in view.resources.vertices],
            "edges": [_edge(edge) for edge in view.resources.edges],
            "protection_groups": [_protection(one) for one in view.resources.protections],
        },
        "control_graph": {
            "vertices": [_group(view, one) for one in view.control.groups],
            "edges": [_edge(edge) for edge in view.control.edges],
        },
    }


def _vertex(view: View, one: ResourceId) -> dict[str, Any]:
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
        "protection_groups": list(view.resources.guards.get(one, ())),
    }


def _protection(one: Protection) -> dict[str, Any]:
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


def _action(work: Work) -> dict[str, Any]:
    return {
        "set": work.set,
        "component": work.component,
        "does": work.does.value,
        "before": work.before,
        "after": work.after,
        "undoing": work.undoing,
    }


def _group(view: View, one: VertexId) -> dict[str, Any]:
    group = view.control.groups[one]
    verdict = view.verdicts.get(one)
    vertices = view.resources.vertices
    there = [vertices[each] for each in group.members if each in vertices]
    return {
        "id": group.id,
        "members": list(group.members),
        "modification": group.modification.value,
        "active": group.active,
        "undo_units": list(dict.fromkeys(one for each in there for one in each.undo_units)),
        "levels": _merged(there),
        "hosts": list(group.hosts),
        "isolated": group.isolated,
        "failed": group.failed,
        "in_batch": verdict.chosen if verdict else None,
        "reason": verdict.reason if verdict else None,
    }


def _merged(members: list[Vertex]) -> list[dict[str, Any]]:
    """The actions of all members, put together level by level, the oldest request first."""
    levels: dict[int, list[dict[str, Any]]] = {}
    for one in members:
        for level in one.levels:
            actions = [{"resource": one.id} | _action(work) for work in level.works]
            levels.setdefault(level.order, []).extend(actions)
    return [{"order": order, "actions": levels[order]} for order in sorted(levels)]


def _edge(edge: Edge | GroupEdge) -> dict[str, Any]:
    return {
        "dependent": edge.dependent,
        "sponsor": edge.sponsor,
        "kind": edge.kind.value,
        "presence": edge.presence.value,
        "incompatible": edge.incompatible,
        "link": edge.link,
    }
