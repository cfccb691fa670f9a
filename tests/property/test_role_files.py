"""A layout that is written to a file is read back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.cli.roles.check import read
from equipoise.model.files import parse_inventory, parse_scenario, to_json, to_yaml
from equipoise.model.inventory import Inventory
from equipoise.model.roles.layout import Element, Ready, Redundancy, RolePreference, Workload
from equipoise.model.story.scenario import Scenario
from role_walks import a_layout_of, a_team, an_inventory_for, any_layouts, preferences

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "roles").glob("*.yaml"))


@given(any_layouts(), preferences(), st.booleans(), st.sampled_from(Redundancy))
@settings(max_examples=60)
def test_what_is_written_is_read_back(
    layout: tuple[Element, ...],
    wanted: tuple[RolePreference, ...],
    packed: bool,
    model: Redundancy,
) -> None:
    work = (Workload(active=wanted[0].role, standby=wanted[1].role),)
    ready = Ready(model=model, workloads=work)
    team = a_team(layout, wanted, packed=packed, redundancy=ready, grace_s=3)
    inventory = an_inventory_for(a_layout_of(team).but(hold_s=5))
    assert parse_inventory(to_yaml(inventory).encode(), "a.yaml") == inventory
    assert parse_inventory(to_json(inventory).encode(), "a.json") == inventory


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_read_back_too(path: Path) -> None:
    story, _ = read(path)
    parse = parse_inventory if isinstance(story, Inventory) else parse_scenario
    assert isinstance(story, Inventory | Scenario)
    assert parse(to_yaml(story).encode(), "again.yaml") == story
