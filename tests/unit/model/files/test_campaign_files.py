"""Upgrade campaigns as files: there and back, and what is wrong with them."""

from __future__ import annotations

import pytest

from equipoise.errors import InvalidInput
from equipoise.model.files import parse_campaign, schema, to_json, to_yaml
from equipoise.sim.upgrading.builtin import all_campaigns, builtin_campaign, campaign_names

HEAD = """
name: small
cluster:
  hosts: [{id: h1, cores: 1, mhz_per_core: 1000, memory_mib: 1024}]
  resources: [{id: s1, kind: switch, version: v1}]
  tenants: [{id: t, sla: {vms_max: 1}}]
"""


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        parse_campaign((HEAD + text).encode(), "small.yaml")
    return [f"{one.key}: {one.what}; {one.cure}" for one in refused.value.problems]


def test_a_campaign_is_written_as_it_is_read() -> None:
    for campaign in all_campaigns():
        assert parse_campaign(to_yaml(campaign).encode(), "back.yaml") == campaign
        assert parse_campaign(to_json(campaign).encode(), "back.json") == campaign


def test_every_built_in_campaign_says_what_it_is() -> None:
    assert len(campaign_names()) >= 5
    for campaign in all_campaigns():
        assert campaign.about.endswith(".")


def test_a_name_that_is_near_is_suggested() -> None:
    with pytest.raises(InvalidInput, match="did you mean nabi-failure"):
        builtin_campaign("nabi-failur")


def test_the_schema_has_the_notes_of_the_model() -> None:
    made = schema("campaign")
    assert made["title"] == "Equipoise campaign"
    assert "max-retry" in made["$defs"]["ChangeSet"]["properties"]["attempts_max"]["description"]


def test_a_change_of_something_unknown_is_found() -> None:
    (found,) = problems(
        "requests: [{id: r, sets: [{id: a, changes: [{does: upgrade, resources: [s2]}]}]}]"
    )
    assert found.startswith("requests[0].sets[0].changes[0].resources[0]: there is no resource")
    assert '"s2"; the resources are: s1' in found


def test_so_is_a_dependency_of_it() -> None:
    wire = "{dependent: s1, sponsor: s2, kind: storage}"
    change = f"{{does: add, dependencies: [{wire}]}}"
    (found,) = problems(f"requests: [{{id: r, sets: [{{id: a, changes: [{change}]}}]}}]")
    assert found.startswith("requests[0].sets[0].changes[0].dependencies[0].sponsor: there is no")


def test_a_dependency_of_the_future_belongs_to_a_change() -> None:
    wire = "{dependent: s1, sponsor: s2, kind: storage, presence: future}"
    head = HEAD.replace("resources: [", "resources: [{id: s2, kind: switch, version: v1}, ")
    text = (
        f"{head}  dependencies: [{wire}]\n"
        "requests: [{id: r, sets: [{id: a, changes: [{does: remove, resources: [s1]}]}]}]"
    )
    with pytest.raises(InvalidInput) as refused:
        parse_campaign(text.encode(), "small.yaml")
    (one,) = refused.value.problems
    assert (one.key, one.line) == ("cluster.dependencies[0].presence", 7)
    assert one.what == "nobody says with which change it comes"


def test_sets_have_names_of_their_own_and_windows_open_before_they_close() -> None:
    window = "windows: [{opens_s: 9, closes_s: 5}]"
    one = f"{{id: a, changes: [{{does: upgrade, resources: [s1]}}], {window}}}"
    found = problems(f"requests: [{{id: r, sets: [{one}, {one}]}}]")
    assert any('the id "a" is taken by' in one for one in found)
    assert any("closes at 5 s" in one for one in found)


def test_a_moment_of_the_story_has_one_time_and_names_who_is_there() -> None:
    found = problems(
        "requests: [{id: r, sets: [{id: a, changes: [{does: upgrade}]}]}]\n"
        "story: {moments: [{scaling: [{tenant: nobody, vms: 1}], host_fails: h9}],"
        " failing: [{resource: s9}]}"
    )
    assert any("it is about nothing" in one for one in found)
    assert any("write either at_s or iteration" in one for one in found)
    assert any('there is no tenant "nobody"' in one for one in found)
    assert any('there is no host "h9"' in one for one in found)
    assert any('there is no resource "s9"' in one for one in found)
