"""A value that is written and read back is the same value."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from equipoise.files import (
    find_problems,
    parse_inventory,
    parse_plan,
    parse_scenario,
    to_json,
    to_yaml,
)
from equipoise.files.write import format_scalar, to_plain
from equipoise.files.yaml_reader import parse_scalar
from equipoise.model.event import Event, decode_event, encode_event
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.scenario.scenario import Scenario
from scenario_strategies import scenarios
from strategies import events, inventories, plans, texts

ANY_PLAN = inventories().flatmap(plans)


@given(inventories(), st.sampled_from((0, 2, 4)))
def test_an_inventory_is_read_back_unchanged(inventory: Inventory, indent: int) -> None:
    assert find_problems(inventory) == []
    assert parse_inventory(to_yaml(inventory).encode(), "x.yaml") == inventory
    assert parse_inventory(to_json(inventory, indent).encode(), "x.json") == inventory


@given(ANY_PLAN)
def test_a_plan_is_read_back_unchanged(plan: Plan) -> None:
    assert find_problems(plan) == []
    assert parse_plan(to_yaml(plan).encode(), "x.yaml") == plan
    assert parse_plan(to_json(plan).encode(), "x.json") == plan


@given(scenarios())
def test_a_scenario_is_read_back_unchanged(scenario: Scenario) -> None:
    assert find_problems(scenario) == []
    assert parse_scenario(to_yaml(scenario).encode(), "x.yaml") == scenario
    assert parse_scenario(to_json(scenario).encode(), "x.json") == scenario


@given(inventories() | scenarios())
def test_a_yaml_1_1_reader_reads_the_same(value: Inventory | Scenario) -> None:
    assert yaml.load(to_yaml(value), Loader=yaml.CSafeLoader) == to_plain(value)


@given(inventories())
def test_equal_values_give_equal_text(inventory: Inventory) -> None:
    copy = msgspec.convert(json.loads(to_json(inventory)), Inventory)
    assert to_yaml(copy) == to_yaml(inventory)
    assert to_json(copy) == to_json(inventory)


@given(inventories().flatmap(events))
def test_events_are_decoded_unchanged(recorded: list[Event]) -> None:
    assert [decode_event(encode_event(event)) for event in recorded] == recorded


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts | st.text()


@pytest.mark.parametrize("loader", [yaml.CSafeLoader, yaml.SafeLoader])
@given(value=SCALARS)
def test_a_scalar_is_read_back_by_every_yaml(loader: Any, value: Any) -> None:
    text = format_scalar(value)
    assert yaml.load(f"- {text}\n", Loader=loader) == [value]
    if not text.startswith('"'):
        again = parse_scalar(text)
        assert again == value
        assert type(again) is type(value)
