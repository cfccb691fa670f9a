"""The JSON reader: valid files, and problems with code, line and key."""

from __future__ import annotations

import json

import pytest

from equipoise.errors import InvalidInput
from equipoise.files import check_size, parse_inventory, parse_plan
from equipoise.files.json_reader import read_json
from unit.files.sample_files import check_problem, only_problem, problems

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


def test_a_valid_file_is_read_under_any_name() -> None:
    expected = parse_inventory(GOOD.encode(), "f.json")
    for source in ("-", "f.yaml", "F.JSON", "f"):
        assert parse_inventory(GOOD.encode(), source) == expected
    assert parse_inventory(b"\xef\xbb\xbf" + GOOD.encode(), "f.json") == expected


def test_a_flow_mapping_is_yaml_even_with_quoted_keys() -> None:
    expected = parse_inventory(GOOD.encode(), "f.json")
    for content in (GOOD.replace('"hosts"', "hosts"), GOOD.replace('"id"', "id")):
        assert parse_inventory(content.encode(), "-") == expected
        assert only_problem(content, "f.json").code == "syntax-error"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"shares": 7', '"shares": -7', "line 7: vms[0].cpu.shares: out-of-range -7 1 10000000"),
        ('"shares": 7', '"shares": 7.0', "line 7: vms[0].cpu.shares: wrong-type 7.0 7"),
        ('"shares": 7', '"shares": 7.5', "line 7: vms[0].cpu.shares: wrong-type 7.5 1 10000000"),
        ('"shares": 7', '"shares": NaN', "line 7: vms[0].cpu.shares: out-of-range NaN 1 10000000"),
        (
            '"shares": 7',
            '"shares": -Infinity',
            "line 7: vms[0].cpu.shares: out-of-range -infinity 1 10000000",
        ),
        (
            '"shares": 7',
            '"shares": 1e999',
            "line 7: vms[0].cpu.shares: out-of-range infinity 1 10000000",
        ),
        (
            '"shares": 7',
            f'"shares": {"9" * 5000}',
            "line 7: vms[0].cpu.shares: out-of-range infinity 1 10000000",
        ),
        (
            '"shares": 7',
            f'"shares": {"9" * 500}',
            "line 7: vms[0].cpu.shares: out-of-range 1 10000000",
        ),
        ('"host": "h1"', '"host": "h2"', 'line 6: vms[0].host: unknown-name "h2"'),
        ('"host": "h1"', '"host":\n\n"h2"', 'line 6: vms[0].host: unknown-name "h2"'),
        ('"b"', '"\\ud800"', "line 7: vms[0].labels.a: unreadable-file"),
        ('"a"', '"\\ud800"', 'line 7: vms[0].labels["\\ud800"]: unreadable-file'),
        ('"b"}', '"b", "a": "c"}', "line 7: vms[0].labels.a: duplicate-key 7"),
        (
            '"vms"',
            '"hosts": [],\n"vms"',
            "line 2: hosts: duplicate-key 2 5",
        ),
    ],
)
def test_a_problem_has_its_line(old: str, new: str, expected: str) -> None:
    check_problem(GOOD.replace(old, new, 1), expected, "f.json")


def test_a_duplicate_key_is_reported_in_a_file_that_decodes() -> None:
    content = GOOD.replace('"cores": 4', '"cores": 4, "cores": 8')
    check_problem(content, "line 3: hosts[0].cores: duplicate-key 3", "f.json")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "line 1: syntax-error"),
        (GOOD[:-3], "line 8: syntax-error"),
        ('{"hosts": [],}', "line 1: syntax-error 14"),
        ("{\n'hosts': []}", "line 2: syntax-error 1"),
        ('{"a": "x\ny"}', "line 1: syntax-error 9"),
        ('{"a": tru}', "line 1: syntax-error 7"),
        (GOOD + "{}", "line 10: syntax-error"),
        ("hosts: []", "line 1: syntax-error 1"),
        ("", "line 1: empty-value"),
    ],
)
def test_text_that_is_not_json_is_rejected(content: str, expected: str) -> None:
    check_problem(content, expected, "f.json")


@pytest.mark.parametrize("opening", ["[", '{"a": ', '{"hosts": [[', "[\n"])
def test_deep_nesting_is_rejected(opening: str) -> None:
    for content in (opening * 100_000, "[" * 100_000 + "]" * 100_000, "[" * 80 + "]" * 80):
        problem = only_problem(content, "f.json")
        assert problem.code == "too-large" or content.count("]") == 0
    assert only_problem('{"hosts": ' + "[\n" * 500 + "]" * 500 + "}", "f.json").line == 64


def test_every_value_has_its_line() -> None:
    document = {"a": [1, {"b": []}, [[], "]"]], "\\": {"}": "{", "é\n": None}}
    text = json.dumps(document, indent=1)
    tree = read_json(text, "f.json")
    assert tree.root == document
    lines = text.split("\n")
    assert '"b"' in lines[(tree.line_of(("a", 1, "b")) or 0) - 1]
    assert '"]"' in lines[(tree.line_of(("a", 2, 1)) or 0) - 1]
    assert '"\\u00e9' in lines[(tree.line_of(("\\", "é\n")) or 0) - 1]
    # A value that does not exist has the line of the container around it.
    assert tree.line_of(("a", 1, "nothing", 5)) == tree.line_of(("a", 1))
    assert tree.line_of(("a", 99)) == tree.line_of(("a",))


def test_all_problems_of_a_large_file_are_found() -> None:
    vms = [{"id": f"v{i}", "vcpus": 1, "memory_mib": 1, "host": "h1"} for i in range(5000)]
    vms[3] |= {"vcpus": 0}
    vms[4000] |= {"host": "h9"}
    hosts = [{"id": "h1", "cores": 1, "mhz_per_core": 1, "memory_mib": 1}]
    text = json.dumps({"hosts": hosts, "vms": vms}).replace('{"id"', '\n{"id"')
    found = [(problem.line, problem.key) for problem in problems(text, "f.json")]
    assert found == [(6, "vms[3].vcpus"), (4003, "vms[4000].host")]


def test_a_plan_in_json_is_read() -> None:
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
def test_a_file_that_is_too_large_is_rejected_before_it_is_read(
    size: int, source: str, cure: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_size(size, source)
    (problem,) = caught.value.problems
    assert (problem.code, problem.cure) == ("too-large", cure)


def test_a_file_of_the_largest_size_is_accepted() -> None:
    check_size(128 * MIB, "x.json")
    check_size(32 * MIB, "x.yaml")
    check_size(100 * MIB, "-")


def test_the_size_of_the_content_is_checked_too() -> None:
    check_problem(b"#" * (33 * MIB), "too-large 33.0 32 128", "-")
    check_problem(b" " * (129 * MIB), "too-large 129.0 128", "x.json")
