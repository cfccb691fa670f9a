"""Upgrade campaigns as files: round trip, and problems with code, line and key."""

from __future__ import annotations

import pytest

from builders import coded, suggested
from equipoise.errors import InvalidInput
from equipoise.files import json_schema, parse_campaign, parse_request, to_json, to_yaml
from equipoise.model.upgrade.infrastructure import Resource
from equipoise.sim.builtin import builtin_campaign, builtin_campaigns, campaign_names
from unit.files.sample_files import brief

HEAD = """
name: small
cluster:
  hosts: [{id: h1, cores: 1, mhz_per_core: 1000, memory_mib: 1024}]
  resources: [{id: s1, kind: switch, version: v1}]
  tenants: [{id: t, sla: {vms_max: 1}}]
"""


def problems(text: str) -> list[str]:
    """All problems of the head with lines added, in brief."""
    with pytest.raises(InvalidInput) as caught:
        parse_campaign((HEAD + text).encode(), "small.yaml")
    return list(map(brief, caught.value.problems))


def test_a_campaign_is_written_as_it_is_read() -> None:
    for campaign in builtin_campaigns():
        assert parse_campaign(to_yaml(campaign).encode(), "back.yaml") == campaign
        assert parse_campaign(to_json(campaign).encode(), "back.json") == campaign


def test_every_built_in_campaign_has_a_description() -> None:
    assert len(campaign_names()) >= 5
    for campaign in builtin_campaigns():
        assert campaign.about.endswith(".")


def test_the_closest_name_of_a_campaign_is_suggested() -> None:
    with pytest.raises(InvalidInput, check=coded("unknown-name")) as caught:
        builtin_campaign("nabi-failur")
    assert suggested(str(caught.value)) == "nabi-failure"


def test_the_schema_has_the_descriptions_of_the_model() -> None:
    schema = json_schema("campaign")
    assert schema["title"] == "Equipoise campaign"
    assert "max-retry" in schema["$defs"]["ChangeSet"]["properties"]["attempts_max"]["description"]


def test_a_change_of_an_unknown_resource_is_reported() -> None:
    assert problems(
        "requests: [{id: r, sets: [{id: a, changes: [{does: upgrade, resources: [s2]}]}]}]"
    ) == ['line 7: requests[0].sets[0].changes[0].resources[0]: unknown-name "s2"']


def test_a_dependency_on_an_unknown_resource_is_reported() -> None:
    wire = "{dependent: s1, sponsor: s2, kind: storage}"
    change = f"{{does: add, dependencies: [{wire}]}}"
    assert problems(f"requests: [{{id: r, sets: [{{id: a, changes: [{change}]}}]}}]") == [
        'line 7: requests[0].sets[0].changes[0].dependencies[0].sponsor: unknown-name "s2"'
    ]


def test_a_future_dependency_belongs_to_a_change() -> None:
    wire = "{dependent: s1, sponsor: s2, kind: storage, presence: future}"
    head = HEAD.replace("resources: [", "resources: [{id: s2, kind: switch, version: v1}, ")
    text = (
        f"{head}  dependencies: [{wire}]\n"
        "requests: [{id: r, sets: [{id: a, changes: [{does: remove, resources: [s1]}]}]}]"
    )
    assert only_problem(text) == "line 7: cluster.dependencies[0].presence: contradiction"


def test_set_ids_are_unique_and_windows_open_before_they_close() -> None:
    window = "windows: [{opens_s: 9, closes_s: 5}]"
    change_set = f"{{id: a, changes: [{{does: upgrade, resources: [s1]}}], {window}}}"
    found = problems(f"requests: [{{id: r, sets: [{change_set}, {change_set}]}}]")
    sets = "requests[0].sets"
    assert f'line 7: {sets}[1].id: duplicate-name "a" {sets}[0] 7' in found
    assert f"line 7: {sets}[0].windows[0].closes_s: out-of-range 9 5" in found


def test_an_event_of_the_simulation_has_one_time_and_known_subjects() -> None:
    assert problems(
        "requests: [{id: r, sets: [{id: a, changes: [{does: upgrade}]}]}]\n"
        "simulation: {events: [{scaling: [{tenant: t9, vms: 1}], host_fails: h9},"
        " {at_s: 1, iteration: 1, host_fails: h1}],"
        " failures: [{resource: s9}]}"
    ) == [
        "line 7: requests[0].sets[0].changes[0]: empty-value",
        "line 8: simulation.events[0]: missing-key",
        'line 8: simulation.events[0].scaling[0].tenant: unknown-name "t9" "t"',
        'line 8: simulation.events[0].host_fails: unknown-name "h9"',
        "line 8: simulation.events[1]: contradiction",
        'line 8: simulation.failures[0].resource: unknown-name "s9"',
    ]


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
CYCLE = """  dependencies:
    - {dependent: s1, sponsor: s2, kind: KIND, presence: current_future}
    - {dependent: s2, sponsor: s1, kind: KIND, presence: current_future}
"""


def only_problem(text: str) -> str:
    """The only problem of a campaign, in brief."""
    with pytest.raises(InvalidInput) as caught:
        parse_campaign(text.encode(), "c.yaml")
    (problem,) = caught.value.problems
    assert problem.line is not None
    assert problem.cure
    return brief(problem)


IN_SET = "requests[0].sets[0]"
IN_CHANGE = f"line 11: {IN_SET}.changes[0]"
EVENT = "simulation: {events: [{at_s: 5%s}]}\ncluster:"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (SET, SET + "        attempts: 3\n", f"line 10: {IN_SET}.attempts: unknown-key"),
        (CHANGE, "resources: [s1, s2], version: v9", f'{IN_CHANGE}.version: unknown-name "v9"'),
        (
            CHANGE,
            f"{CHANGE}, component: swich",
            f'{IN_CHANGE}.version: unknown-name "v2" "switch"',
        ),
        (CHANGE, "resources: [s1, s2]", f'{IN_CHANGE}.version: missing-key "switch"'),
        (CHANGE, f"{CHANGE}, undo_version: v0", f'{IN_CHANGE}.undo_version: unknown-name "v0"'),
        (
            CHANGE,
            "resources: [s1, s1], version: v2",
            f'{IN_CHANGE}.resources[1]: duplicate-name "s1" {IN_SET}.changes[0].resources[0] 11',
        ),
        (
            CHANGE,
            "new: [{id: s3, kind: switch, version: v2}]",
            f"{IN_CHANGE}.new: contradiction",
        ),
        (
            "duration_s: 20",
            "duration_s: -20",
            "line 5: catalog.descriptions[1].upgrade.duration_s: out-of-range -20 0 1000000000",
        ),
        (
            SET,
            SET + "        windows: [{opens_s: 5, closes_s: 5}]\n",
            f"line 10: {IN_SET}.windows[0].closes_s: out-of-range 5 5",
        ),
        (
            SET,
            SET + "        windows: [{opens_s: 5, closes_s: 9, every_s: 8}]\n",
            f"line 10: {IN_SET}.windows[0].closes_s: out-of-range 8",
        ),
        (
            SET,
            SET + "        windows: [22:00-06:00 Europe/Nowhere]\n",
            f'line 10: {IN_SET}.windows[0]: syntax-error "22:00-06:00 Europe/Nowhere" 22:00 00',
        ),
        (
            SET,
            SET + "        complete_by: 2026-11-20 22:00\n",
            f'line 10: {IN_SET}.complete_by: syntax-error "2026-11-20 22:00" 2026 22:00 2026 22:00',
        ),
        (
            SET,
            SET + "        windows: [{opens_s: 5, closes_s: x}]\n",
            f'line 10: {IN_SET}.windows[0].closes_s: wrong-type "x" 1 1000000000',
        ),
        (
            SET,
            SET + "        windows: [5]\n",
            f'line 10: {IN_SET}.windows[0]: wrong-type 5 "5"',
        ),
        (
            SET,
            SET + "        canary: 0\n",
            f"line 10: {IN_SET}.canary: out-of-range 0 1 10000000",
        ),
        (
            SET,
            SET + "        checkpoints_pct: [0]\n",
            f"line 10: {IN_SET}.checkpoints_pct[0]: out-of-range 0 1 100",
        ),
        (
            SET,
            SET + "        checkpoints_pct: [50, 20]\n",
            f"line 10: {IN_SET}.checkpoints_pct[1]: out-of-range 20",
        ),
        (
            SET,
            SET + "        checkpoints_pct: [100]\n",
            f"line 10: {IN_SET}.checkpoints_pct[0]: out-of-range 100 100",
        ),
        (
            SET,
            SET + "        completion_s_max: 0\n",
            f"line 10: {IN_SET}.completion_s_max: out-of-range 0 1 1000000000",
        ),
        (
            "cluster:",
            f"{AGAIN}\ncluster:",
            'line 12: requests[1].id: duplicate-name "first" requests[0] 7',
        ),
        (
            "    - {component: switch, version: v1}\n",
            "    - {component: switch, version: v1}\n" * 2,
            'line 5: catalog.descriptions[1]: duplicate-name "v1" catalog.descriptions[0] 4',
        ),
        ("cluster:", EVENT % "", "line 12: simulation.events[0]: empty-value"),
        (
            "cluster:",
            EVENT % ", command: {order: undo, set: b}",
            'line 12: simulation.events[0].command.set: unknown-name "b"',
        ),
        (
            "cluster:",
            EVENT % ", command: {order: undo}",
            "line 12: simulation.events[0].command: missing-key",
        ),
    ],
)
def test_an_inconsistent_campaign_is_reported(old: str, new: str, expected: str) -> None:
    assert parse_campaign(GOOD.encode(), "c.yaml").name == "t"
    assert only_problem(GOOD.replace(old, new, 1)) == expected


@pytest.mark.parametrize("kind", ["container", "composition", "aggregation", "communication"])
def test_a_cycle_of_dependencies_is_reported(kind: str) -> None:
    found = only_problem(GOOD + CYCLE.replace("KIND", kind))
    assert found == "line 18: cluster.dependencies[0]: cycle s1 -> s2 -> s1"


@pytest.mark.parametrize("kind", ["peer_stateless", "vm_supporting_storage"])
def test_peers_and_storages_for_vms_may_form_a_cycle(kind: str) -> None:
    assert parse_campaign((GOOD + CYCLE.replace("KIND", kind)).encode(), "c.yaml")


def test_dependencies_of_different_times_do_not_form_a_cycle() -> None:
    apart = CYCLE.replace("KIND", "communication").replace("current_future", "current", 1)
    found = only_problem(GOOD + apart.replace("current_future", "future"))
    assert found == "line 19: cluster.dependencies[1].presence: contradiction"


def test_versions_are_not_checked_against_an_unreadable_catalog() -> None:
    found = only_problem(GOOD.replace("version: v2, upgrade", "version: 2, upgrade"))
    assert found == 'line 5: catalog.descriptions[1].version: wrong-type 2 "2"'


def test_a_request_is_checked_against_the_running_campaign() -> None:
    campaign = parse_campaign(GOOD.encode(), "c.yaml")
    known: dict[str, Resource] = {resource.id: resource for resource in campaign.cluster.resources}
    text = "id: second\nsets:\n  - {id: b, changes: [{does: upgrade, resources: [s1], version: V}]}"
    good = parse_request(text.replace("V", "v2").encode(), "r.yaml", known, campaign.catalog)
    assert good.sets[0].id == "b"
    with pytest.raises(InvalidInput) as caught:
        parse_request(text.replace("V", "v3").encode(), "r.yaml", known, campaign.catalog)
    assert caught.value.source == "r.yaml"
    (problem,) = caught.value.problems
    assert brief(problem) == 'line 3: sets[0].changes[0].version: unknown-name "v3"'
