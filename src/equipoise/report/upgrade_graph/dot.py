"""The graphs as DOT, for Graphviz and other tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.graph import ChangeGroupEdge, ControlGraph, Edge, ResourceGraph
from equipoise.model.upgrade.infrastructure import DependencyPresence

_COLOURS: Final = {
    "add": "#dcf3e6",
    "remove": "#fbe3e1",
    "upgrade": "#e1eefb",
    "no_change": "#f3f5f7",
}
_LINES: Final = {
    DependencyPresence.CURRENT: "dotted",
    DependencyPresence.FUTURE: "dashed",
    DependencyPresence.CURRENT_FUTURE: "solid",
}


def resource_graph_dot(resources: ResourceGraph, control: ControlGraph, title: str) -> str:
    """Return the resource graph, with the groups of the control graph as clusters."""
    return _digraph(title, [*_clusters(resources, control), *_edges(resources.edges)])


def control_graph_dot(control: ControlGraph, title: str) -> str:
    """Return the control graph."""
    lines = [
        _node(vertex, f"{vertex}\\n{len(group.members)}", group.modification, active=group.active)
        for vertex, group in control.groups.items()
    ]
    return _digraph(title, [*lines, *_edges(control.edges)])


def _digraph(title: str, lines: list[str]) -> str:
    head = f'digraph {_quoted(title)} {{\n  node [shape=box, style="rounded,filled"];\n'
    return head + "".join(f"  {line}\n" for line in lines) + "}\n"


def _clusters(resources: ResourceGraph, control: ControlGraph) -> Iterator[str]:
    grouped: set[str] = set()
    for place, (id_, group) in enumerate(control.groups.items()):
        there = [member for member in group.members if member in resources.vertices]
        grouped.update(there)
        nodes = [_vertex(resources, member) for member in there]
        if len(nodes) == 1:
            yield nodes[0]
        elif nodes:
            yield f"subgraph cluster_{place} {{ label={_quoted(id_)}; {' '.join(nodes)} }}"
    for vertex in resources.vertices:
        if vertex not in grouped:
            yield _vertex(resources, vertex)


def _vertex(resources: ResourceGraph, one: ResourceId) -> str:
    vertex = resources.vertices[one]
    label = "\\n".join((one, vertex.kind, *resources.protection_groups_of.get(one, ())))
    return _node(one, label, vertex.modification, active=vertex.active)


def _node(id_: str, label: str, modification: str, *, active: bool) -> str:
    look = "" if active else ', style="rounded,filled,dashed"'
    return f'{_quoted(id_)} [label={_quoted(label)}, fillcolor="{_COLOURS[modification]}"{look}];'


def _edges(edges: tuple[Edge, ...] | tuple[ChangeGroupEdge, ...]) -> Iterator[str]:
    seen: set[tuple[str, str, str, str]] = set()
    for edge in edges:
        key = edge.dependent, edge.sponsor, edge.kind.value, edge.presence.value
        if key in seen or (edge.kind.is_symmetrical and (key[1], key[0], *key[2:]) in seen):
            continue
        seen.add(key)
        looks = [f'label="{edge.kind}"', f"style={_LINES[edge.presence]}"]
        looks += ["dir=both", "constraint=false"] if edge.kind.is_symmetrical else []
        looks += ["color=red", "penwidth=2"] if edge.incompatible else []
        yield f"{_quoted(edge.dependent)} -> {_quoted(edge.sponsor)} [{', '.join(looks)}];"


def _quoted(words: str) -> str:
    escaped = words.replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
