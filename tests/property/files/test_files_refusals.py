"""A parser returns a value or raises ``InvalidInput`` for every file; it never crashes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from equipoise.errors import CODES, InvalidInput
from equipoise.files import (
    find_problems,
    parse_inventory,
    parse_plan,
    parse_scenario,
    to_json,
    to_yaml,
)
from equipoise.model.inventory import Inventory
from equipoise.model.scenario.scenario import Scenario
from scenario_strategies import scenarios
from strategies import inventories, texts

Parser = Callable[[bytes, str], Any]
PARSERS: tuple[Parser, ...] = (parse_inventory, parse_plan, parse_scenario)
SOURCES = ("x.json", "x.yaml", "-")

wrong_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(10**20, 10**400),
    st.floats(),
    texts,
    st.lists(st.integers(), max_size=2),
    st.dictionaries(texts, st.integers(), max_size=2),
    st.recursive(st.none(), lambda inner: st.lists(inner, min_size=1, max_size=2), max_leaves=5),
)


def parse_result(parse: Parser, content: bytes, source: str) -> Any:
    """The value or the ``InvalidInput`` of a file. Any other exception fails the test."""
    try:
        value = parse(content, source)
    except InvalidInput as error:
        str(error).encode()  # the message can be printed
        problems = error.problems
        failure = error
    else:
        assert find_problems(value) == []
        return value
    assert all(problem.code in CODES for problem in problems)
    return failure


@given(st.sampled_from(PARSERS), st.binary(), st.sampled_from(SOURCES))
def test_any_bytes_give_a_result(parse: Parser, content: bytes, source: str) -> None:
    parse_result(parse, content, source)


YAML_PIECES = st.sampled_from(
    (
        "hosts:", "vms:", "rules:", "kind: ", "keep_apart", "id: ", "a", "- ", "\n", "  ", "[", "]",
        "{", "}", ",", ": ", "&a ", "*a", "<<: ", "[*a]", "? ", "!!str ", "!!python/object:os ",
        "! ", "'", '"', "|\n", ">-\n", "# ", "---\n", "...\n", "%YAML 1.1\n", "\t", "1", "on",
        "null", ".nan", "0x1F", "\\", "\ud7ff", "\u2028", "\x85", "\x00", "\x1b", "\ufeff", "\r",
    )
)  # fmt: skip


@given(st.sampled_from(PARSERS), st.lists(YAML_PIECES, max_size=30), st.sampled_from(SOURCES))
def test_any_yaml_gives_a_result(parse: Parser, pieces: list[str], source: str) -> None:
    parse_result(parse, "".join(pieces).encode(), source)


JSON_PIECES = st.sampled_from(
    (
        '"hosts"', '"vms"', '"rules"', '"kind"', '"id"', '"a"', ":", ",", "{", "}", "[", "]", " ",
        "\n", "1", "-1", "1.0", "1e999", "9" * 5000, "NaN", "Infinity", "null", "true", '"\\ud800"',
        '"', "\\", "0x1", "\ufeff", "\x7f",
    )
)  # fmt: skip


@given(st.sampled_from(PARSERS), st.lists(JSON_PIECES, max_size=30), st.sampled_from(SOURCES))
def test_any_json_gives_a_result(parse: Parser, pieces: list[str], source: str) -> None:
    parse_result(parse, "".join(pieces).encode(), source)


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("hosts", "vms", "id", "cores", "rules", "kind")), inner)
    ),
)


@given(st.sampled_from(PARSERS), documents)
def test_a_document_gives_the_same_value_in_both_languages(parse: Parser, document: Any) -> None:
    in_json = parse_result(parse, json.dumps(document, allow_nan=True).encode(), "x.json")
    in_yaml = parse_result(parse, yaml.dump(document, Dumper=yaml.CSafeDumper).encode(), "x.yaml")
    if not isinstance(in_json, InvalidInput):
        assert in_json == in_yaml


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every container of a document, with each of its keys."""
    inner = list(node.items() if isinstance(node, dict) else enumerate(node))
    entries = [(node, key) for key, _ in inner]
    for _, part in inner:
        if isinstance(part, dict | list):
            entries += places(part)
    return entries


@pytest.mark.parametrize("language", ["json", "yaml"])
@given(value=st.one_of(inventories(), scenarios()), data=st.data())
def test_a_document_with_random_errors_gives_a_result(
    language: str, value: Inventory | Scenario, data: st.DataObject
) -> None:
    parse = parse_inventory if isinstance(value, Inventory) else parse_scenario
    document = json.loads(to_json(value))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(document)))
        error = data.draw(st.sampled_from(("replace", "remove", "rename", "repeat")))
        if error == "remove":
            del container[key]
        elif error == "rename" and isinstance(container, dict):
            container[str(key)[:-1] + "x"] = container.pop(key)
        elif error == "repeat" and isinstance(container, list):
            container.append(container[key])
        else:
            container[key] = data.draw(wrong_values)
        if not places(document):
            break
    if language == "json":
        parse_result(parse, json.dumps(document).encode(), "x.json")
    else:
        dumped = yaml.dump(document, Dumper=yaml.CSafeDumper, allow_unicode=True)
        parse_result(parse, dumped.encode(), "x.yaml")


@given(st.sampled_from((to_json, to_yaml)), inventories(), st.data())
def test_a_damaged_file_gives_a_result(
    write: Callable[[Any], str], inventory: Inventory, data: st.DataObject
) -> None:
    content = bytearray(write(inventory).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        if data.draw(st.integers(0, 4)) == 0:
            del content[at : at + data.draw(st.integers(1, 1000))]
        else:
            piece = data.draw(st.one_of(YAML_PIECES, JSON_PIECES)).encode()
            content[at : at + data.draw(st.integers(0, 2))] = piece
    parse_result(parse_inventory, bytes(content), data.draw(st.sampled_from(SOURCES)))
