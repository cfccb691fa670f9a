"""Pictures of the graphs: everything is on them once, nothing lies on anything else."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import InvalidInput
from equipoise.model.quantity import GroupId, ResourceId
from equipoise.model.upgrade.catalog import ComponentId, ComponentOperation
from equipoise.model.upgrade.graph import Modification, ProtectionGroup
from equipoise.model.upgrade.infrastructure import (
    DependencyKind,
    DependencyPresence,
    ResourceGroupKind,
    ResourceKind,
)
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import ExecutionLevel, UnitId, VertexId, WorkItem
from equipoise.model.value import FrozenMap
from equipoise.report.upgrade_graph import GraphView, write_graph_view
from equipoise.report.upgrade_graph.diagram import (
    BOXES_MAX,
    BoxRow,
    Diagram,
    DiagramBox,
    DiagramLine,
    VertexDecision,
    fold_boxes,
    make_diagram,
)
from equipoise.report.upgrade_graph.layout import layered_layout
from equipoise.report.upgrade_graph.view import check_graph_file
from thesis_graphs import control_graph, resource_graph

SVG = "{http://www.w3.org/2000/svg}"


def view(hosts: int = 15) -> GraphView:
    resources = resource_graph(hosts)
    control = control_graph(resources, hosts)
    verdicts = {
        VertexId("R37"): VertexDecision(chosen=True),
        VertexId("R38"): VertexDecision(
            chosen=False, note="rule 6", reason="R37 <stands> in for it"
        ),
    }
    return GraphView(title="it & 1", iteration=1, resources=resources, control=control,
                verdicts=verdicts)  # fmt: skip


def words(svg: str) -> list[str]:
    return [
        "".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")
    ]


def test_the_picture_is_a_whole_svg_with_every_box_once() -> None:
    drawn = words(write_graph_view(view(), ".svg", groups_only=False))
    for label in [
        *(f"GR{n} · host{n}" for n in range(1, 16)),
        *(f"R{n}" for n in range(31, 39)),
        "R45",
    ]:
        assert drawn.count(label) == 1, label
    assert "↑ H7 hypervisor" in drawn
    assert "VMs on host7" in drawn


def test_the_control_graph_has_no_vms_and_no_rows() -> None:
    drawn = words(write_graph_view(view(), ".svg", groups_only=True))
    assert "GR7 · host7" in drawn
    assert not any("VMs" in drawing and "on host" in drawing for drawing in drawn)
    assert "↑ H7 hypervisor" not in drawn


def test_what_was_decided_can_be_read_and_cannot_break_the_page() -> None:
    svg = write_graph_view(view(), ".svg", groups_only=False)
    told = [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert any(event and "R37 <stands> in for it" in event for event in told)
    assert any(event and event.endswith("in this batch") for event in told)


def test_a_large_graph_is_folded_and_no_resource_is_lost() -> None:
    large = view(400)
    sketch = make_diagram(large.resources, large.control, large.verdicts)
    small = fold_boxes(sketch)
    assert len(small.boxes) <= BOXES_MAX < len(sketch.boxes)
    assert sum(box.count for box in small.boxes) == len(sketch.boxes)
    assert sum(tie.count for tie in small.ties) == sum(tie.count for tie in sketch.ties)


def test_dot_has_every_resource_and_every_dependency() -> None:
    given_ = view()
    dot = write_graph_view(given_, ".dot", groups_only=False)
    assert dot.startswith('digraph "it & 1" {')
    assert dot.count("{") == dot.count("}")
    nodes = re.findall(r'"([^"]+)" \[label="[^"]*", fillcolor', dot)
    assert sorted(nodes) == sorted(given_.resources.vertices)
    pairs = {frozenset((edge.dependent, edge.sponsor, edge.kind)) if edge.kind.is_symmetrical
             else (edge.dependent, edge.sponsor, edge.kind, edge.presence)
             for edge in given_.resources.edges}  # fmt: skip
    assert dot.count(" -> ") == len(pairs)
    groups = write_graph_view(given_, ".dot", groups_only=True)
    assert groups.count("[label=") >= len(given_.control.groups)


def test_json_has_both_graphs_with_all_attributes() -> None:
    given_ = view()
    document = json.loads(write_graph_view(given_, ".json", groups_only=False))
    assert document["iteration"] == 1
    both = document["resource_graph"], document["control_graph"]
    assert [len(document["vertices"]) for document in both] == [76, 25]
    assert len(both[0]["edges"]) == len(given_.resources.edges)
    (router,) = [vertex for vertex in both[1]["vertices"] if vertex["id"] == "R38"]
    assert router["in_batch"] is False
    assert router["reason"] == "R37 <stands> in for it"


def test_a_group_has_the_actions_of_its_members_level_by_level() -> None:
    works = [
        WorkItem(
            set=SetId(f"s{n}"),
            component=ComponentId("c"),
            does=ComponentOperation.UPGRADE,
            after=f"v{n}",
        )
        for n in (1, 2)
    ]
    first, second = (
        ExecutionLevel(unit=UnitId(f"{n}/x"), order=n, works=(works[n - 1],)) for n in (1, 2)
    )
    plain = view()
    vertices = dict(plain.resources.vertices)
    names = [ResourceId(name) for name in ("H7", "S7")]
    for name, levels, sets in zip(
        names, ((first, second), (second,)), (("s1", "s2"), ("s2",)), strict=True
    ):
        vertices[name] = replace(vertices[name], levels=levels, undo_units=sets)  # type: ignore[arg-type]
    given_ = replace(plain, resources=replace(plain.resources, vertices=FrozenMap(vertices)))
    document = json.loads(write_graph_view(given_, ".json", groups_only=False))["control_graph"]
    (group,) = [each for each in document["vertices"] if each["id"] == "GR7"]
    assert group["undo_units"] == ["s1", "s2"]
    told = [(level["order"], [each["resource"] for each in level["actions"]])
            for level in group["levels"]]  # fmt: skip
    assert told == [(1, ["H7"]), (2, ["H7", "S7"])]


def test_protection_groups_are_in_every_form() -> None:
    routers = (ResourceId("R37"), ResourceId("R38"))
    group = ProtectionGroup(
        GroupId("vrrp"), ResourceGroupKind.PROTECTION, None, routers, routers, routers, 1
    )
    plain = view()
    given_ = replace(plain, resources=replace(plain.resources, protections=(group,)))
    svg = write_graph_view(given_, ".svg", groups_only=False)
    assert "↑ R37 router · vrrp" in words(svg)
    told = [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert (
        sum("protection group vrrp: 1 of 2 can be spared" in (event or "") for event in told) == 2
    )
    assert r'[label="R37\nrouter\nvrrp"' in write_graph_view(given_, ".dot", groups_only=False)
    document = json.loads(write_graph_view(given_, ".json", groups_only=False))["resource_graph"]
    assert document["protection_groups"] == [
        {
            "id": "vrrp", "kind": "protection", "within": None, "holders": ["R37", "R38"],
            "members": ["R37", "R38"], "in_service": ["R37", "R38"], "in_service_min": 1,
            "spare": 1,
        }
    ]  # fmt: skip
    own = [
        vertex["id"] for vertex in document["vertices"] if vertex["protection_groups"] == ["vrrp"]
    ]
    assert own == ["R37", "R38"]


def test_a_name_without_a_known_ending_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        check_graph_file(Path("graph.png"))
    (problem,) = caught.value.problems
    assert problem.code == "unsupported-feature"
    assert ".svg" in problem.cure


@st.composite
def sketches(draw: st.DrawFn) -> Diagram:
    count = draw(st.integers(1, 30))
    rows = (BoxRow("r", ResourceKind.SERVER, Modification.UPGRADE),)
    boxes = tuple(
        DiagramBox(
            id=f"b{n}",
            title="x" * draw(st.integers(1, 40)),
            rows=rows * draw(st.integers(0, 3)),
            modification=Modification.UPGRADE,
        )
        for n in range(count)
    )
    ends = st.integers(0, count - 1)
    kinds = st.sampled_from(list(DependencyKind))
    ties = draw(st.lists(st.tuples(ends, ends, kinds), max_size=60))
    return Diagram(
        boxes,
        tuple(
            DiagramLine(f"b{a}", f"b{b}", kind, DependencyPresence.CURRENT_FUTURE, False)
            for a, b, kind in ties
            if a != b
        ),
    )


@given(sketches())
def test_no_box_lies_on_another(sketch: Diagram) -> None:
    sizes = {box.id: (20.0 + 7 * len(box.title), 30.0) for box in sketch.boxes}
    lines = layered_layout(sketch, sizes)
    assert sorted(cell.box.id for line in lines for cell in line) == sorted(sizes)
    for line in lines:
        for left, right in pairwise(line):
            assert left.x + left.wide / 2 < right.x - right.wide / 2


@given(sketches())
def test_a_sponsor_is_drawn_below_unless_they_go_in_a_circle(sketch: Diagram) -> None:
    sizes = {box.id: (50.0, 30.0) for box in sketch.boxes}
    # Without circles: only those ties that lead from a later box to an earlier one.
    onwards = [tie for tie in sketch.ties if int(tie.dependent[1:]) > int(tie.sponsor[1:])]
    line_of = {cell.box.id: cell.line
               for line in layered_layout(Diagram(sketch.boxes, tuple(onwards)), sizes)
               for cell in line}  # fmt: skip
    for tie in onwards:
        if not (tie.kind.is_symmetrical or tie.kind.is_vm_supporting):
            assert line_of[tie.dependent] < line_of[tie.sponsor]
