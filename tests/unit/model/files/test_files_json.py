"""JSON: what is read, what is refused, and on which line."""

from __future__ import annotations

import json

import pytest

from equipoise.errors import InvalidInput, Problem
from equipoise.model.files import check_size, parse_inventory, parse_plan
from equipoise.model.files.json_tree import read_json
from unit.model.files.file_texts import problems, the_problem

GOOD = """\
{
  "hosts": [
    {"id": "h1", "cores": 4, "mhz_per_core": 1000, "memory_mib": 16384}
  ],
  "vms": [
    {"id": "v1", "vcpus": 1, "memory_mib": 1024, "host": "h1",
     "cpu": {"shares": 7}, "labels": {"a": "b"}}
  ]
}
"""


def test_a_good_file_is_read_by_any_name() -> None:
    expected = parse_inventory(GOOD.encode(), "f.json")
    for source in ("-", "f.yaml", "F.JSON", "f"):
        assert parse_inventory(GOOD.encode(), source) == expected
    assert parse_inventory(b"\xef\xbb\xbf" + GOOD.encode(), "f.json") == expected


def test_a_flow_mapping_is_yaml_even_with_quoted_keys() -> None:
    expected = parse_inventory(GOOD.encode(), "f.json")
    for content in (GOOD.replace('"hosts"', "hosts"), GOOD.replace('"id"', "id")):
        assert parse_inventory(content.encode(), "-") == expected
        assert the_problem(content, "f.json").what.startswith("this is not JSON")


@pytest.mark.parametrize(
    ("old", "new", "key", "what", "line"),
    [
        ('"shares": 7', '"shares": -7', "vms[0].cpu.shares", "-7 is below the allowed range", 7),
        ('"shares": 7', '"shares": 7.0', "vms[0].cpu.shares", "7.0 is not written as a whole", 7),
        ('"shares": 7', '"shares": 7.5', "vms[0].cpu.shares", "7.5 is not a whole number", 7),
        ('"shares": 7', '"shares": NaN', "vms[0].cpu.shares", "NaN is not a finite number", 7),
        ('"shares": 7', '"shares": -Infinity', "vms[0].cpu.shares", "-infinity is not a fin", 7),
        ('"shares": 7', '"shares": 1e999', "vms[0].cpu.shares", "infinity is not a finite", 7),
        ('"shares": 7', f'"shares": {"9" * 5000}', "vms[0].cpu.shares", "infinity is not", 7),
        ('"shares": 7', f'"shares": {"9" * 500}', "vms[0].cpu.shares", "a number of many", 7),
        ('"host": "h1"', '"host": "h2"', "vms[0].host", 'there is no host "h2"', 6),
        ('"host": "h1"', '"host":\n\n"h2"', "vms[0].host", 'there is no host "h2"', 6),
        ('"b"', '"\\ud800"', "vms[0].labels.a", "the text has half a character in it", 7),
        ('"a"', '"\\ud800"', 'vms[0].labels["\\ud800"]', "the text has half a character", 7),
        ('"b"}', '"b", "a": "c"}', "vms[0].labels.a", "this key is given twice, on line 7", 7),
        (
            '"vms"',
            '"hosts": [],\n"vms"',
            "hosts",
            "this key is given twice, on lines 2 and 5",
            2,
        ),
    ],
)
def test_a_slip_is_found_on_its_line(old: str, new: str, key: str, what: str, line: int) -> None:
    problem = the_problem(GOOD.replace(old, new, 1), "f.json")
    assert problem.key == key
    assert problem.what.startswith(what)
    assert problem.line == line


def test_a_key_given_twice_is_found_in_a_file_that_decodes() -> None:
    content = GOOD.replace('"cores": 4', '"cores": 4, "cores": 8')
    assert the_problem(content, "f.json") == Problem(
        key="hosts[0].cores", what="this key is given twice, on line 3", cure="keep one", line=3
    )


@pytest.mark.parametrize(
    ("content", "what", "line"),
    [
        ("{", "the file ends too early", 1),
        (GOOD[:-3], "the file ends too early", 8),
        ('{"hosts": [],}', "this is not JSON: ", 1),
        ("{\n'hosts': []}", "this is not JSON: expecting property name", 2),
        ('{"a": "x\ny"}', "this is not JSON: invalid control character", 1),
        ('{"a": tru}', "this is not JSON: expecting value, at column 7", 1),
        (GOOD + "{}", "something follows the end of the document", 10),
        ("hosts: []", "this is not JSON: expecting value, at column 1", 1),
        ("", "the file is empty", 1),
    ],
)
def test_what_is_not_json(content: str, what: str, line: int) -> None:
    problem = the_problem(content, "f.json")
    assert problem.what.startswith(what)
    assert problem.line == line
    assert problem.cure


@pytest.mark.parametrize("opening", ["[", '{"a": ', '{"hosts": [[', "[\n"])
def test_deep_nesting_is_refused(opening: str) -> None:
    for content in (opening * 100_000, "[" * 100_000 + "]" * 100_000, "[" * 80 + "]" * 80):
        problem = the_problem(content, "f.json")
        assert problem.what == "nested deeper than 64 levels" or content.count("]") == 0
    assert the_problem('{"hosts": ' + "[\n" * 500 + "]" * 500 + "}", "f.json").line == 64


def test_lines_are_right_for_every_value() -> None:
    document = {"a": [1, {"b": []}, [[], "]"]], "\\": {"}": "{", "é\n": None}}
    text = json.dumps(document, indent=1)
    tree = read_json(text, "f.json")
    assert tree.root == document
    lines = text.split("\n")
    assert '"b"' in lines[(tree.line_of(("a", 1, "b")) or 0) - 1]
    assert '"]"' in lines[(tree.line_of(("a", 2, 1)) or 0) - 1]
    assert '"\\u00e9' in lines[(tree.line_of(("\\", "é\n")) or 0) - 1]
    # What is not there is shown at what would hold it.
    assert tree.line_of(("a", 1, "nothing", 5)) == tree.line_of(("a", 1))
    assert tree.line_of(("a", 99)) == tree.line_of(("a",))


def test_all_slips_of_a_large_file_are_found() -> None:
    vms = [{"id": f"v{i}", "vcpus": 1, "memory_mib": 1, "host": "h1"} for i in range(5000)]
    vms[3] |= {"vcpus": 0}
    vms[4000] |= {"host": "h9"}
    hosts = [{"id": "h1", "cores": 1, "mhz_per_core": 1, "memory_mib": 1}]
    text = json.dumps({"hosts": hosts, "vms": vms}).replace('{"id"', '\n{"id"')
    told = [(problem.line, problem.key) for problem in problems(text, "f.json")]
    assert told == [(6, "vms[3].vcpus"), (4003, "vms[4000].host")]


def test_a_plan_in_json() -> None:
    plan = parse_plan(
        b'{"id": "p", "steps": [{"action": {"vm": "v", "do": "kill"}, "id": "s", "end_ms": 1}]}',
        "p.json",
    )
    assert plan.steps[0].id == "s"


MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("size", "source", "cure"),
    [
        (200_000_000, "big.json", "at most 128 MiB"),
        (200_000_000, "big", "at most 128 MiB"),
        (33 * MIB, "big.yaml", "at most 32 MiB; write it as JSON, which may have 128 MiB"),
        (33 * MIB, "BIG.YML", "at most 32 MiB; write it as JSON, which may have 128 MiB"),
    ],
)
def test_a_monster_is_refused_unread(size: int, source: str, cure: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_size(size, source)
    assert caught.value.problems[0].cure == cure
    assert "MiB" in caught.value.problems[0].what


def test_a_file_of_allowed_size_is_not_refused() -> None:
    check_size(128 * MIB, "x.json")
    check_size(32 * MIB, "x.yaml")
    check_size(100 * MIB, "-")


def test_the_content_is_held_to_the_size_as_well() -> None:
    assert "too large for YAML" in the_problem(b"#" * (33 * MIB), "-").what
    assert "too large for JSON" in the_problem(b" " * (129 * MIB), "x.json").what
