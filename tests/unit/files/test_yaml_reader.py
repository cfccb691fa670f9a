"""The YAML reader: valid files, and problems with code, line and key."""

from __future__ import annotations

import tracemalloc

import pytest
import yaml

from equipoise.files import parse_inventory
from equipoise.files.yaml_reader import parse_scalar, read_yaml
from equipoise.model.host import HostState
from unit.files.sample_files import (
    HOSTS,
    brief,
    check_problem,
    only_problem,
    problems,
    with_hosts,
)


@pytest.fixture(params=["C", "pure"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with libyaml and with the pure Python loader."""
    if request.param == "pure":
        monkeypatch.delattr(yaml, "CSafeLoader")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("y", "y"),
        ("True", True),
        ("false", False),
        ("", None),
        ("~", None),
        ("Null", None),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("0123", 123),
        ("0o17", 15),
        ("0x1f", 31),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        ("+", "+"),
        ("-", "-"),
        (".", "."),
        ("=", "="),
    ],
)
def test_words_and_numbers_are_those_of_yaml_1_2(text: str, value: object) -> None:
    read = parse_scalar(text)
    assert read == value
    assert type(read) is type(value)


def test_a_host_can_be_on() -> None:
    inventory = parse_inventory(HOSTS.replace("16384}", "16384, state: on}").encode(), "f.yaml")
    assert inventory.hosts[0].state is HostState.ON


def test_aliases_and_merge_keys_are_expanded() -> None:
    content = """\
hosts:
  - &big {id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 16384, labels: &where {rack: a}}
  - {<<: *big, id: h2, cores: 8}
  - {id: h3, <<: [*big, {cores: 1}], labels: *where}
"""
    hosts = parse_inventory(content.encode(), "f.yaml").hosts
    assert [(host.id, host.cores, host.memory_mib) for host in hosts] == [
        ("h1", 4, 16384),
        ("h2", 8, 16384),
        ("h3", 4, 16384),
    ]
    assert hosts[2].labels == {"rack": "a"}


def test_a_problem_in_a_merged_mapping_has_the_line_of_its_value() -> None:
    content = """\
hosts:
  - &big {id: h1, cores: 4, mhz_per_core: 1000,
          memory_mib: 0}
  - {<<: *big, id: h2}
"""
    found = [(problem.key, problem.line) for problem in problems(content)]
    assert found == [("hosts[0].memory_mib", 3), ("hosts[1].memory_mib", 3)]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("name: a\nname: b\n", "line 4: name: duplicate-key 4 5"),
        (
            "name: !!python/name:os.system x\n",
            "line 4: name: unsupported-feature !!python/name:os.system",
        ),
        ("name: !mine x\n", "line 4: name: unsupported-feature !mine"),
        ("rules: !!set {}\n", "line 4: rules: unsupported-feature !!set"),
        ("name: *x\n", "line 4: name: unknown-name *x &x"),
        ("rules: &r\n  - *r\n", "line 5: rules[0]: cycle *r"),
        ("<<: 7\n", "line 4: wrong-type"),
        ("? [a]\n: b\n", "line 4: wrong-type"),
        ("name: .inf\n", "line 4: name: out-of-range"),
        (
            f"limits: {{actions_total: {'9' * 5000}}}\n",
            "line 4: limits.actions_total: out-of-range 99999999999999999999",
        ),
    ],
)
def test_a_feature_of_yaml_that_is_not_allowed_is_reported(more: str, expected: str) -> None:
    check_problem(with_hosts(more), expected)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("name: a\n---\nname: b\n", "line 5: syntax-error"),
        ("limits:\n\tactions_total: 1\n", "line 5: syntax-error"),
        ("rules: [\n", "line 5: syntax-error 4"),
        ("rules: ]\n", "line 4: syntax-error"),
        ("name: a: b\n", "line 4: syntax-error"),
        ("name: 'a\n", "line 5: syntax-error 4"),
        ("name: a\x07b\n", 'line 4: unreadable-file 0007 "\\u0007"'),
    ],
)
def test_text_that_is_not_yaml_is_rejected(more: str, expected: str) -> None:
    check_problem(with_hosts(more), expected)


def test_a_tab_gets_a_cure_of_its_own() -> None:
    problem = only_problem(with_hosts("limits:\n\tactions_total: 1\n"))
    assert problem.cure == "indent with blanks"


def test_an_unclosed_bracket_is_reported_with_the_line_of_its_start() -> None:
    check_problem("hosts: [\n  {id: h1},\n\n", "line 4: syntax-error 1")
    assert "starts on line 2" in only_problem("hosts: [\n  {id: h1\nvms:\n").what


def test_an_empty_file_is_rejected() -> None:
    check_problem("", "line 1: empty-value")
    check_problem(" \n\n", "line 1: empty-value")
    check_problem("# nothing\n", "line 1: empty-value")


def test_bytes_that_are_not_text_are_rejected() -> None:
    check_problem(HOSTS.encode() + b"name: \xff\n", "line 4: unreadable-file")
    assert "0xff" in only_problem(HOSTS.encode() + b"name: \xff\n").what
    check_problem(HOSTS.encode() + b"name: \0\n", "line 4: unreadable-file")
    assert only_problem(HOSTS.encode("utf-16")).code == "unreadable-file"


def test_a_byte_order_mark_is_ignored() -> None:
    assert parse_inventory(b"\xef\xbb\xbf" + HOSTS.encode(), "f.yaml").hosts


def test_a_lone_surrogate_is_rejected() -> None:
    problem = only_problem(with_hosts('name: "\\ud800"\n'))
    # libyaml rejects the escape while it parses; the pure Python loader lets it pass.
    assert (problem.line, problem.code) in {(4, "syntax-error"), (4, "unreadable-file")}


@pytest.mark.parametrize(
    "more",
    [
        "<<: [!mine 1]\n",
        "<<: *nothing\n",
        "name: a\nname: {x: [!mine 1]}\n",
        "? {a: [!mine 1]}\n: [!mine 2]\n",
        "vms: []\nvms: [[], !mine 1]\n",
        "rules: !mine [!mine 1]\n",
    ],
)
def test_a_problem_in_a_dropped_value_is_reported(more: str) -> None:
    assert all(problem.line in (4, 5) for problem in problems(with_hosts(more)))


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def test_an_alias_bomb_is_rejected_before_it_is_expanded() -> None:
    tracemalloc.start()
    problem = only_problem(bomb(100))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The file is rejected at the line where the limit is exceeded, not at its end.
    assert brief(problem) == "line 6: too-large 1000000"
    assert peak < 5_000_000


def test_a_bomb_of_merge_keys_stays_small() -> None:
    lines = ["m0: &m0 {a: 1}"]
    lines += [f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}], k{n}: 1}}" for n in range(1, 200)]
    tree = read_yaml("\n".join(lines), "f.yaml")
    assert len(tree.root["m199"]) == 200


def test_many_small_aliases_are_accepted() -> None:
    lines = "".join(
        f"  - {{id: v{i}, vcpus: 1, memory_mib: 64, host: h1, cpu: *c}}\n" for i in range(2000)
    )
    content = f"{HOSTS}pools: [{{id: p, cpu: &c {{shares: 5}}}}]\nvms:\n{lines}"
    assert len(parse_inventory(content.encode(), "f.yaml").vms) == 2000


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "[\n", "{a:\n"])
def test_deep_nesting_is_rejected_at_the_line_of_the_limit(opening: str) -> None:
    line = 65 if "\n" in opening else 1
    check_problem(opening * 100_000, f"line {line}: too-large 64")
