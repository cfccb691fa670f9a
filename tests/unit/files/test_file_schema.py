"""The JSON Schemas of the kinds of file."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings

from equipoise.files import json_schema
from equipoise.files.schema import FileKind
from equipoise.files.write import to_plain
from equipoise.model.scenario.scenario import Scenario
from scenario_strategies import scenarios

SCENARIO, INVENTORY, PLAN = json_schema("scenario"), json_schema("inventory"), json_schema("plan")
TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "null": type(None),
}


def accepts(schema: dict[str, Any], rules: dict[str, Any], value: Any) -> bool:
    """A validator with the keywords that the schemas use."""
    if "$ref" in rules:
        return accepts(schema, schema["$defs"][rules["$ref"].removeprefix("#/$defs/")], value)
    if "anyOf" in rules:
        return any(accepts(schema, branch, value) for branch in rules["anyOf"])
    if "enum" in rules:
        return value in rules["enum"]
    if not isinstance(value, TYPES[rules["type"]]):
        return False
    if isinstance(value, dict):
        return accepts_mapping(schema, rules, value)
    if isinstance(value, list):
        enough = len(value) >= rules.get("minItems", 0)
        return enough and all(accepts(schema, rules["items"], part) for part in value)
    if isinstance(value, str):
        fits = re.search(rules.get("pattern", ""), value) is not None
        return fits and len(value) >= rules.get("minLength", 0)
    if value is None or isinstance(value, bool):
        return True
    return bool(rules.get("minimum", value) <= value <= rules.get("maximum", value))


def accepts_mapping(schema: dict[str, Any], rules: dict[str, Any], value: dict[str, Any]) -> bool:
    known = rules.get("properties", {})
    others = rules.get("additionalProperties", True)
    for key, part in value.items():
        inner = known.get(key, others)
        if inner is False or (inner is not True and not accepts(schema, inner, part)):
            return False
    return all(key in value for key in rules.get("required", ()))


@given(scenarios())
@settings(max_examples=50)
def test_a_schema_accepts_valid_values(scenario: Scenario) -> None:
    assert accepts(SCENARIO, SCENARIO, to_plain(scenario))
    assert accepts(INVENTORY, INVENTORY, to_plain(scenario.cluster)) == bool(scenario.cluster.hosts)
    if scenario.plan is not None:
        assert accepts(PLAN, PLAN, to_plain(scenario.plan))


HOST = {"id": "h", "cores": 1, "mhz_per_core": 1, "memory_mib": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"hosts": []},
        {"hosts": [HOST | {"cores": 0}]},
        {"hosts": [HOST | {"cores": "1"}]},
        {"hosts": [HOST | {"colour": "red"}]},
        {"hosts": [HOST | {"id": "a b"}]},
        {"hosts": [HOST | {"state": "of"}]},
        {"hosts": [HOST], "rules": [{"kind": "keep_apart", "id": "r", "vms": ["v"]}]},
    ],
)
def test_a_schema_rejects_invalid_values(wrong: dict[str, Any]) -> None:
    assert accepts(INVENTORY, INVENTORY, {"hosts": [HOST]})
    assert not accepts(INVENTORY, INVENTORY, wrong)


def test_the_hosts_of_a_scenario_may_all_be_in_its_fleets() -> None:
    scenario = {"name": "n", "duration_s": 1, "cluster": {"hosts": []}}
    assert accepts(SCENARIO, SCENARIO, scenario)
    assert not accepts(SCENARIO, SCENARIO, scenario | {"cluster": {}})
    noise = {"kind": "noise", "period_s": 60, "level": {"low": 1, "high": 2}}
    assert accepts(SCENARIO, SCENARIO, scenario | {"loads": {"web": {"cpu_mhz": [noise]}}})
    wrong = noise | {"level": {"lo": 1}}
    assert not accepts(SCENARIO, SCENARIO, scenario | {"loads": {"web": {"cpu_mhz": [wrong]}}})


@pytest.mark.parametrize("kind", ["inventory", "scenario", "plan"])
def test_a_schema_has_a_title_and_descriptions(kind: FileKind) -> None:
    schema = json_schema(kind)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == f"Equipoise {kind}"
    for name, definition in schema["$defs"].items():
        assert definition["description"], name


def test_the_docstring_of_a_field_becomes_its_description() -> None:
    definitions = json_schema("inventory")["$defs"]
    assert definitions["Demand"]["properties"]["memory_mib"]["description"] == (
        "Active memory, at most the configured size."
    )
    assert definitions["Vm"]["properties"]["host"]["description"].startswith(
        "The host of a running"
    )
