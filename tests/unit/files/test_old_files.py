"""Files and journals that an earlier version wrote can still be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.files import (
    override_scenario,
    parse_campaign,
    parse_case,
    parse_plan,
    parse_scenario,
    parse_scenario_or_inventory,
    to_json,
    to_yaml,
)
from equipoise.model.event import decode_event, encode_event
from equipoise.model.scenario import old_keys
from equipoise.model.scenario.old_keys import EACH, rename_old_keys, replace_old_steps
from equipoise.model.upgrade.event import CampaignStarted
from equipoise.sim.builtin import builtin_campaign, builtin_scenario
from unit.files.sample_files import SCENARIO, check_problem

OLD_FILES = Path(__file__).parents[2] / "data" / "old_files"
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["broken-drain", "chaos"])
def test_an_old_scenario_equals_the_built_in_one(name: str) -> None:
    content = (OLD_FILES / f"{name}.yaml").read_bytes()
    assert b"happenings:" in content
    scenario = parse_scenario(content, f"{name}.yaml")
    built_in = builtin_scenario(name)
    assert scenario == built_in.but(about=scenario.about), "only the sentence may differ"
    assert "happenings" not in to_yaml(scenario)


def test_an_old_scenario_in_json_equals_the_one_in_yaml() -> None:
    text = to_json(builtin_scenario("chaos"))
    old = text.replace('"events":', '"happenings":').replace('"faults":', '"unrest":')
    assert old != text
    assert parse_scenario(old.encode(), "chaos.json") == builtin_scenario("chaos")


def test_an_old_role_scenario_equals_the_example() -> None:
    old, line_of = parse_scenario_or_inventory((OLD_FILES / "2n.yaml").read_bytes(), "2n.yaml")
    new, new_line_of = parse_scenario_or_inventory(
        (ROOT / "examples" / "roles" / "2n.yaml").read_bytes(), "2n.yaml"
    )
    assert old == new
    assert line_of(("events", 0)) == new_line_of(("events", 0)), "lines follow the keys of the file"


@pytest.mark.parametrize("name", ["nabi-failure", "nabi-new-request"])
def test_an_old_campaign_equals_the_built_in_one(name: str) -> None:
    content = (OLD_FILES / f"{name}.yaml").read_bytes()
    assert b"\nstory:" in content
    campaign = parse_campaign(content, f"{name}.yaml")
    built_in = builtin_campaign(name)
    assert campaign == built_in.but(about=campaign.about), "only the sentence may differ"


def test_an_old_journal_entry_with_a_campaign_is_read() -> None:
    line = (OLD_FILES / "campaign-began.json").read_bytes()
    assert b'"story":' in line
    event = decode_event(line)
    assert isinstance(event, CampaignStarted)
    assert (
        event.campaign.simulation.failures == builtin_campaign("nabi-failure").simulation.failures
    )
    assert decode_event(encode_event(event)) == event


def test_old_kinds_and_keys_of_events_are_read() -> None:
    old = """\
happenings:
  - {event: host_requested, at_ms: 1, host: h1, wish: maintenance}
  - {event: role_move_asked, at_ms: 2, group: g, role: r, slot: s1}
fleet: {vms: [{count: 2, like: {id: w, vcpus: 1, memory_mib: 1},
                start: {hosts: [h1], dealt: randomly}}]}
"""
    new = old.replace("happenings", "events").replace("wish", "requested")
    new = new.replace("role_move_asked", "role_move_requested").replace("dealt", "assigned")
    assert parse_scenario((SCENARIO + old).encode(), "f.yaml") == parse_scenario(
        (SCENARIO + new).encode(), "f.yaml"
    )


def test_the_repaired_rules_of_an_old_plan_are_read() -> None:
    old = "id: p\nsteps: []\nmends: [r1]\n"
    assert parse_plan(old.encode(), "p.yaml").repairs == ("r1",)
    case = "cluster: {hosts: [{id: h, cores: 1, mhz_per_core: 1000, memory_mib: 1024}]}\n"
    case += "plan: {id: p, steps: [], mends: [r1]}\n"
    plan = parse_case(case.encode(), "c.yaml").plan
    assert plan is not None
    assert plan.repairs == ("r1",)


def test_an_override_accepts_an_old_key() -> None:
    scenario = builtin_scenario("chaos")
    old = override_scenario(scenario, ["unrest.vm_crashes.per_vm_day=2"], "chaos")
    assert old.faults.vm_crashes is not None
    assert old.faults.vm_crashes.per_vm_day == 2
    assert old == override_scenario(scenario, ["faults.vm_crashes.per_vm_day=2"], "chaos")


def test_a_problem_below_an_old_key_has_the_new_key_and_the_line_of_the_file() -> None:
    check_problem(
        SCENARIO + "happenings:\n  - {event: vm_left, at_ms: 1, vm: v9}\n",
        'line 11: events[0].vm: unknown-name "v9"',
        kind="scenario",
    )


def test_an_old_key_beside_the_new_one_is_an_unknown_key() -> None:
    check_problem(
        SCENARIO + "faults: {}\nunrest: {}\n", "line 11: unrest: unknown-key", kind="scenario"
    )


def test_a_rename_reaches_every_entry_of_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    renames = ((("steps", EACH, "old"), "new"),)
    monkeypatch.setattr(old_keys, "OLD_KEYS", {"plan": renames})
    document = {"steps": [{"old": 1}, {"new": 2}, {"old": 3, "new": 4}, 5]}
    assert rename_old_keys(document, "plan") == (
        {"steps": [{"new": 1}, {"new": 2}, {"old": 3, "new": 4}, 5]},
        {("steps", 0, "new"): "old"},
    )
    assert replace_old_steps("plan", ["steps", "7", "old", "x"]) == ("steps", "7", "new", "x")


def test_an_unknown_kind_of_document_keeps_its_keys() -> None:
    assert rename_old_keys({"story": 1}, "inventory") == ({"story": 1}, {})
