"""The example in docs/files.md is valid, and the page names every key of a scenario."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct, structs

from equipoise.files import parse_scenario, to_yaml
from equipoise.model.action_durations import Estimates
from equipoise.model.scenario import faults, load, physics, scenario

DOCUMENT = (Path(__file__).parents[3] / "docs" / "files.md").read_text()
SECTION = DOCUMENT.partition("## Scenario\n")[2].partition("## Case\n")[0]


def test_the_scenario_in_the_document_can_be_read() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", SECTION, re.S)
    example = parse_scenario(block.encode(), "docs/files.md")
    assert example.about.endswith(".")
    assert parse_scenario(to_yaml(example).encode(), "again.yaml") == example


def test_the_document_names_every_key_of_a_scenario() -> None:
    records = {
        record
        for module in (load, physics, scenario, faults)
        for record in vars(module).values()
        if isinstance(record, type)
        and issubclass(record, Struct)
        and record.__module__ == module.__name__
        and not record.__name__.startswith("_")
    }
    assert len(records) > 30
    for record in records:
        tag = record.__struct_config__.tag
        for name in (*record.__struct_fields__, *([tag] if isinstance(tag, str) else [])):
            assert re.search(rf"\b{name}\b", SECTION), f"{record.__name__}.{name}"


def test_the_document_has_the_defaults_of_figures() -> None:
    for record in (
        physics.MigrationPhysics, physics.PowerPhysics, physics.MemoryPhysics, Estimates,
    ):  # fmt: skip
        for field in structs.fields(record):
            default = re.search(rf"`{field.name}` \(([0-9.]+)", SECTION)
            assert default, field.name
            assert float(default[1]) == field.default, field.name
