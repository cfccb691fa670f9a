"""What the document about files shows can be read, and it leaves nothing out."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct, structs

from equipoise.model.estimate import Estimates
from equipoise.model.files import parse_scenario, to_yaml
from equipoise.model.story import fleet, load, physics, scenario, unrest

DOCUMENT = (Path(__file__).parents[4] / "docs" / "files.md").read_text()
SECTION = DOCUMENT.partition("## Scenario\n")[2].partition("## Case\n")[0]


def test_the_scenario_in_the_document_can_be_read() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", SECTION, re.S)
    story = parse_scenario(block.encode(), "docs/files.md")
    assert story.about.endswith(".")
    assert parse_scenario(to_yaml(story).encode(), "again.yaml") == story


def test_the_document_names_every_key_of_a_scenario() -> None:
    nouns = {
        noun
        for module in (fleet, load, physics, scenario, unrest)
        for noun in vars(module).values()
        if isinstance(noun, type)
        and issubclass(noun, Struct)
        and noun.__module__ == module.__name__
        and not noun.__name__.startswith("_")
    }
    assert len(nouns) > 30
    for noun in nouns:
        tag = noun.__struct_config__.tag
        for name in (*noun.__struct_fields__, *([tag] if isinstance(tag, str) else [])):
            assert re.search(rf"\b{name}\b", SECTION), f"{noun.__name__}.{name}"


def test_the_document_says_what_is_taken_when_a_figure_is_left_out() -> None:
    for noun in (
        physics.MigrationPhysics, physics.SwitchPhysics, physics.MemoryPhysics, Estimates,
    ):  # fmt: skip
        for field in structs.fields(noun):
            said = re.search(rf"`{field.name}` \(([0-9.]+)", SECTION)
            assert said, field.name
            assert float(said[1]) == field.default, field.name
