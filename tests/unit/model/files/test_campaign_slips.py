"""Slips in a campaign file: each is told with its place, its line and what to write instead."""

from __future__ import annotations

import pytest

from equipoise.errors import InvalidInput
from equipoise.model.files import parse_campaign, parse_request
from equipoise.model.resource import Resource

GOOD = """name: t
catalog:
  descriptions:
    - {component: switch, version: v1}
    - {component: switch, version: v2, upgrade: {duration_s: 20}}
requests:
  - id: first
    sets:
      - id: a
        changes:
          - {does: upgrade, resources: [s1, s2], version: v2}
cluster:
  hosts: [{id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 1024}]
  resources:
    - {id: s1, kind: switch, version: v1}
    - {id: s2, kind: switch, version: v1}
"""
CHANGE = "resources: [s1, s2], version: v2"
SET = "      - id: a\n"
AGAIN = "  - {id: first, sets: [{id: b, changes: [{does: remove, resources: [s1]}]}]}"
CIRCLE = """  dependencies:
    - {dependent: s1, sponsor: s2, kind: KIND, presence: current_future}
    - {dependent: s2, sponsor: s1, kind: KIND, presence: current_future}
"""


def told(text: str) -> str:
    with pytest.raises(InvalidInput) as refused:
        parse_campaign(text.encode(), "c.yaml")
    (one,) = refused.value.problems
    assert one.line is not None
    assert one.cure
    return str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (SET, SET + "        attempts: 3\n", "line 10: requests[0].sets[0].attempts: this key"),
        (CHANGE, "resources: [s1, s2], version: v9", 'switch "v9" (it describes v1, v2)'),
        (CHANGE, f"{CHANGE}, component: swich", 'swich "v2" (did you mean "switch"?'),
        (CHANGE, "resources: [s1, s2]", "line 11: requests[0].sets[0].changes[0].version: is mis"),
        (CHANGE, f"{CHANGE}, undo_version: v0", 'does not describe switch "v0"'),
        (CHANGE, "resources: [s1, s1], version: v2", '"s1" is named twice'),
        (CHANGE, "new: [{id: s3, kind: switch, version: v2}]", "write does: add"),
        ("duration_s: 20", "duration_s: -20", "-20 is below the allowed range"),
        (SET, SET + "        windows: [{opens_s: 5, closes_s: 5}]\n", "close it after it opens"),
        (SET, SET + "        checkpoints_pct: [0]\n", "0 is below the allowed range"),
        (SET, SET + "        checkpoints_pct: [50, 20]\n", "20 does not come after the share"),
        (SET, SET + "        checkpoints_pct: [100]\n", "nothing is left to hold back at 100"),
        (SET, SET + "        completion_s_max: 0\n", "0 is below the allowed range"),
        (
            "cluster:",
            f"{AGAIN}\ncluster:",
            'the id "first" is taken by requests[0] on line 7',
        ),
        (
            "    - {component: switch, version: v1}\n",
            "    - {component: switch, version: v1}\n" * 2,
            'switch "v1" is described by catalog.descriptions[0] on line 4',
        ),
        ("cluster:", "story: {moments: [{at_s: 5}]}\ncluster:", "nothing happens then"),
        (
            "cluster:",
            "story: {moments: [{at_s: 5, command: {order: undo, set: b}}]}\ncluster:",
            'there is no set "b" (the sets are: a)',
        ),
        (
            "cluster:",
            "story: {moments: [{at_s: 5, command: {order: undo}}]}\ncluster:",
            "undo is about one set (name it with set)",
        ),
    ],
)
def test_a_slip_is_told_with_its_line_and_a_cure(old: str, new: str, words: str) -> None:
    assert parse_campaign(GOOD.encode(), "c.yaml").name == "t"
    assert words in told(GOOD.replace(old, new, 1))


@pytest.mark.parametrize("kind", ["container", "composition", "aggregation", "communication"])
def test_resources_do_not_depend_on_each_other_in_a_circle(kind: str) -> None:
    found = told(GOOD + CIRCLE.replace("KIND", kind))
    assert "line 18: cluster.dependencies[0]" in found
    assert "in a circle: s1 -> s2 -> s1" in found


@pytest.mark.parametrize("kind", ["peer_stateless", "vm_supporting_storage"])
def test_equals_and_storages_for_vms_may_lean_on_each_other(kind: str) -> None:
    assert parse_campaign((GOOD + CIRCLE.replace("KIND", kind)).encode(), "c.yaml")


def test_a_circle_that_is_never_there_at_one_time_is_none() -> None:
    apart = CIRCLE.replace("KIND", "communication").replace("current_future", "current", 1)
    found = told(GOOD + apart.replace("current_future", "future"))
    assert "circle" not in found
    assert "nobody says with which change it comes" in found


def test_a_catalog_that_cannot_be_read_is_not_blamed_for_what_it_lacks() -> None:
    found = told(GOOD.replace("version: v2, upgrade", "version: 2, upgrade"))
    assert "catalog.descriptions[1].version" in found


def test_a_request_is_read_as_for_the_campaign_it_is_given_to() -> None:
    campaign = parse_campaign(GOOD.encode(), "c.yaml")
    known: dict[str, Resource] = {one.id: one for one in campaign.cluster.resources}
    text = "id: second\nsets:\n  - {id: b, changes: [{does: upgrade, resources: [s1], version: V}]}"
    good = parse_request(text.replace("V", "v2").encode(), "r.yaml", known, campaign.catalog)
    assert good.sets[0].id == "b"
    with pytest.raises(InvalidInput, match=r'r.yaml: line 3: .* does not describe switch "v3"'):
        parse_request(text.replace("V", "v3").encode(), "r.yaml", known, campaign.catalog)
