"""A layout that is written to a file and read back is equal."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.cli.roles.check import read_layout_file
from equipoise.files import parse_inventory, parse_scenario, to_json, to_yaml
from equipoise.model.inventory import Inventory
from equipoise.model.roles.layout import (
    LayoutElement,
    ProtectedWorkload,
    RedundancyLayout,
    RedundancyModel,
    RolePreference,
)
from equipoise.model.scenario.scenario import Scenario
from role_harness import a_layout_of, a_team, an_inventory_for, any_layouts, preferences

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "roles").glob("*.yaml"))


@given(any_layouts(), preferences(), st.booleans(), st.sampled_from(RedundancyModel))
@settings(max_examples=60)
def test_a_written_layout_is_read_back(
    layout: tuple[LayoutElement, ...],
    preferred: tuple[RolePreference, ...],
    packed: bool,
    model: RedundancyModel,
) -> None:
    work = (ProtectedWorkload(active=preferred[0].role, standby=preferred[1].role),)
    redundancy = RedundancyLayout(model=model, workloads=work)
    team = a_team(layout, preferred, packed=packed, redundancy=redundancy, grace_s=3)
    inventory = an_inventory_for(a_layout_of(team).but(hold_s=5))
    assert parse_inventory(to_yaml(inventory).encode(), "a.yaml") == inventory
    assert parse_inventory(to_json(inventory).encode(), "a.json") == inventory


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_written_example_is_read_back(path: Path) -> None:
    document, _ = read_layout_file(path)
    parse = parse_inventory if isinstance(document, Inventory) else parse_scenario
    assert isinstance(document, Inventory | Scenario)
    assert parse(to_yaml(document).encode(), "again.yaml") == document
