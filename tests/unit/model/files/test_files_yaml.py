"""YAML: what is read, what is refused, and on which line."""

from __future__ import annotations

import tracemalloc

import pytest
import yaml

from equipoise.errors import Problem
from equipoise.model.files import parse_inventory
from equipoise.model.files.scalar import plain_value
from equipoise.model.files.yaml_tree import read_yaml
from equipoise.model.host import HostState
from unit.model.files.file_texts import HOSTS, problems, the_problem, with_hosts


@pytest.fixture(params=["C", "pure"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here must hold for an installation without libyaml, too."""
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
    read = plain_value(text)
    assert read == value
    assert type(read) is type(value)


def test_a_host_can_be_on() -> None:
    inventory = parse_inventory(HOSTS.replace("16384}", "16384, state: on}").encode(), "f.yaml")
    assert inventory.hosts[0].state is HostState.ON


def test_an_alias_and_a_merge_key_save_typing() -> None:
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


def test_a_slip_in_a_merged_mapping_is_shown_where_it_stands() -> None:
    content = """\
hosts:
  - &big {id: h1, cores: 4, mhz_per_core: 1000,
          memory_mib: 0}
  - {<<: *big, id: h2}
"""
    told = [(problem.key, problem.line) for problem in problems(content)]
    assert told == [("hosts[0].memory_mib", 3), ("hosts[1].memory_mib", 3)]


@pytest.mark.parametrize(
    ("more", "key", "what", "line"),
    [
        ("name: a\nname: b\n", "name", "this key is given twice, on lines 4 and 5", 4),
        ("name: !!python/name:os.system x\n", "name", "the tag !!python/name:os.system is", 4),
        ("name: !mine x\n", "name", "the tag !mine is not allowed", 4),
        ("rules: !!set {}\n", "rules", "the tag !!set is not allowed", 4),
        ("name: *x\n", "name", "the alias *x has no anchor before it", 4),
        ("rules: &r\n  - *r\n", "rules[0]", "the alias *r lies within its own anchor", 5),
        ("<<: 7\n", "", "<< takes a mapping, or a list of them", 4),
        ("? [a]\n: b\n", "", "a key must be text", 4),
        ("name: .inf\n", "name", ".inf is not a finite number", 4),
        ("limits: {actions_total: %s}\n" % ("9" * 5000), "limits", "99999999999999999999 is", 4),
    ],
)  # fmt: skip
def test_what_yaml_can_do_and_we_do_not(more: str, key: str, what: str, line: int) -> None:
    problem = the_problem(with_hosts(more))
    assert problem.key.startswith(key)
    assert problem.what.startswith(what)
    assert problem.line == line
    assert problem.cure


@pytest.mark.parametrize(
    ("more", "what", "cure", "line"),
    [
        ("name: a\n---\nname: b\n", "a second document starts here", "one document", 5),
        ("limits:\n\tactions_total: 1\n", "a tab indents this line", "indent with blanks", 5),
        ("rules: [\n", "the file ends too early: what starts on line 4 is", "close the", 5),
        ("rules: ]\n", "this is not YAML", "", 4),
        ("name: a: b\n", "this is not YAML: mapping values are not allowed", "indent alike", 4),
        ("name: 'a\n", "the file ends too early: what starts on line 4 is", "close the", 5),
        ("name: a\x07b\n", "the character U+0007 is not allowed in a file", 'write "\\u0007"', 4),
    ],
)
def test_what_is_not_yaml(more: str, what: str, cure: str, line: int) -> None:
    problem = the_problem(with_hosts(more))
    assert problem.what.startswith(what)
    assert problem.cure.startswith(cure)
    assert problem.line == line
    assert problem.key == ""


def test_a_bracket_that_is_not_closed_is_shown_with_its_beginning() -> None:
    problem = the_problem("hosts: [\n  {id: h1},\n\n")
    assert problem.what == "the file ends too early: what starts on line 1 is not closed"
    problem = the_problem("hosts: [\n  {id: h1\nvms:\n")
    assert "starts on line 2" in problem.what


def test_an_empty_file() -> None:
    assert the_problem("").what == "the file is empty"
    assert the_problem(" \n\n").what == "the file is empty"
    assert the_problem("# nothing\n").what == "the file is empty but for comments"


def test_bytes_that_are_not_text() -> None:
    assert the_problem(HOSTS.encode() + b"name: \xff\n") == Problem(
        key="", what="the byte 0xff is not UTF-8", cure="save the file as UTF-8 text", line=4
    )
    assert the_problem(HOSTS.encode() + b"name: \0\n").line == 4
    assert "UTF-8" in the_problem(HOSTS.encode("utf-16")).what


def test_a_mark_of_byte_order_does_no_harm() -> None:
    assert parse_inventory(b"\xef\xbb\xbf" + HOSTS.encode(), "f.yaml").hosts


def test_half_a_character_is_refused() -> None:
    assert the_problem(with_hosts('name: "\\ud800"\n')).line == 4


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
def test_a_slip_in_what_is_thrown_away_is_found(more: str) -> None:
    assert all(problem.line in (4, 5) for problem in problems(with_hosts(more)))


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def test_a_bomb_of_aliases_is_refused_before_it_goes_off() -> None:
    tracemalloc.start()
    problem = the_problem(bomb(100))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert problem.what == "the aliases stand for more than 1000000 values"
    assert problem.line == 6, "refused where it becomes too much, not at the end"
    assert peak < 5_000_000


def test_a_bomb_of_merge_keys_stays_small() -> None:
    lines = ["m0: &m0 {a: 1}"]
    lines += [f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}], k{n}: 1}}" for n in range(1, 200)]
    tree = read_yaml("\n".join(lines), "f.yaml")
    assert len(tree.root["m199"]) == 200


def test_many_aliases_of_honest_size_are_fine() -> None:
    lines = "".join(
        f"  - {{id: v{i}, vcpus: 1, memory_mib: 64, host: h1, cpu: *c}}\n" for i in range(2000)
    )
    content = f"{HOSTS}pools: [{{id: p, cpu: &c {{shares: 5}}}}]\nvms:\n{lines}"
    assert len(parse_inventory(content.encode(), "f.yaml").vms) == 2000


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "[\n", "{a:\n"])
def test_deep_nesting_is_refused_where_it_becomes_too_deep(opening: str) -> None:
    problem = the_problem(opening * 100_000)
    assert problem.what == "nested deeper than 64 levels"
    assert problem.line == (65 if "\n" in opening else 1)
