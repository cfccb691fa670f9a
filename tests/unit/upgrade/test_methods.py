"""Which method a unit takes."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import ResourceKind
from equipoise.model.upgrade.graph import ResourceGraph, Vertex
from equipoise.model.upgrade.work import Method, UnitId
from equipoise.model.value import FrozenMap
from equipoise.upgrade.methods import unit_of


def test_a_resource_alone_rolls() -> None:
    one = ResourceId("r1")
    graph = ResourceGraph(FrozenMap({one: Vertex(one, ResourceKind.SWITCH)}), ())
    unit = unit_of(graph, UnitId("u1"), [one], remote_links=False)
    assert unit is not None
    assert unit.method is Method.ROLLING
    assert unit.resources == (one,)
