"""``equipoise roles`` as a user or a program calls it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from builders import suggested
from command import answer, call_here, located, refusals
from equipoise.cli.roles.check import find_defects, read_layout_file

EXAMPLES = Path(__file__).parents[2] / "examples" / "roles"
PAIR = str(EXAMPLES / "mated-pair.yaml")
DEFECTS = EXAMPLES / "defects.yaml"
SOUND = sorted(path.name for path in EXAMPLES.glob("*.yaml") if path != DEFECTS)


def test_every_defect_is_named_with_its_line_and_its_cure() -> None:
    found = answer("roles", "check", str(DEFECTS), code=1)
    assert not found["clean"]
    assert {defect["code"] for defect in found["defects"]} == {
        "application-in-two-roles",
        "contradiction",
        "coverage-lost-by-joining",
        "duplicate-definition",
        "duplicate-pair",
        "list-can-be-empty",
        "reserved-slot-name",
        "single-role-twice",
        "unclear-element",
        "uncovered-role",
        "unknown-name",
    }
    lines = DEFECTS.read_text().splitlines()
    for defect in found["defects"]:
        assert defect["cure"], defect
        named = re.findall(r'"([^"]+)"', defect["what"])
        assert not named or any(word in lines[defect["line"] - 1] for word in named), defect


def test_the_defects_are_printed_with_file_and_line() -> None:
    done = call_here("roles", "check", str(DEFECTS))
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if '"lift"' in line]
    assert line.startswith(f"{DEFECTS}: line 20: layout.groups[0].layout[0].slot: ")
    assert suggested(line) == "left"


@pytest.mark.parametrize("name", SOUND)
def test_an_example_is_sound_and_its_run_ends_well(name: str) -> None:
    path = EXAMPLES / name
    assert not list(find_defects(*read_layout_file(path)))
    told = answer("roles", "run", str(path))
    assert told["events"] > 10
    assert all(event["reason"] for event in told["story"] if event["event"] == "action_started")
    assert all(role["most_holders"] >= 1 for role in told["roles"])


def test_the_mated_pair_shows_a_failover_and_a_return_with_reasons() -> None:
    done = call_here("roles", "run", PAIR)
    assert done.returncode == 0, done.stderr
    printed = done.stdout
    failed = printed.index("host cp-1 failed: power supply")
    over = printed.index("start active of pair on cp-2", failed)
    back = printed.index("host cp-1 recovered", over)
    stopped = printed.index("stop active of pair on cp-2", back)
    again = printed.index("start active of pair on cp-1", stopped)
    returned = printed.index("start oam of pair on cp-1", again)
    for place in (over, stopped, again, returned):
        assert printed[place:].splitlines()[1].strip().startswith("because ")


def test_the_same_seed_gives_the_same_journal() -> None:
    one, two = (answer("roles", "run", PAIR, "--seed", "7") for _ in range(2))
    assert one["journal_sha256"] == two["journal_sha256"]
    assert one["seed"] == 7
    assert one["roles"][0]["most_holders"] == 1


def test_a_plan_says_what_would_be_done_and_does_nothing() -> None:
    first = answer("roles", "plan", PAIR)
    assert [action["event"] for action in first["actions"]].count("action_started") == 5
    assert first["uncovered"] == []
    after = answer("roles", "plan", PAIR, "--fail", "cp-1")
    assert [action["what"] for action in after["actions"]] == [
        "start active of pair on cp-2",
        "start oam of pair on cp-2",
        "stop standby of pair on cp-2",
    ]
    assert "cp-1" in after["actions"][0]["reason"]


def test_who_may_leave_is_computed() -> None:
    path = str(EXAMPLES / "n-plus-m.yaml")
    asked = ("--leave", "gw-1", "--leave", "gw-2", "--leave", "gw-3")
    told = answer("roles", "plan", path, *asked, code=1)["may_leave"]
    assert told["may"] == ["gw-1", "gw-2"]
    assert set(told["stay"]) == {"gw-3"}
    assert told["codes"] == {"gw-3": "role-lost"}


def test_the_journal_can_be_printed_and_replayed(tmp_path: Path) -> None:
    journal = str(tmp_path / "roles.db")
    assert call_here("roles", "run", PAIR, "--journal", journal).returncode == 0
    told = call_here("journal", journal, "--kind", "slots_filled")
    assert "slots of pair: left cp-1, right cp-2" in told.stdout
    assert refusals("roles", "run", PAIR, "--journal", journal) == [("already-exists", "")]


@pytest.mark.parametrize(
    ("text", "code", "key", "line"),
    [
        ("hosts: [", "syntax-error", "", 2),
        (
            "hosts: [{id: h, cores: 1, mhz_per_core: 1, memory_mib: 1}]",
            "missing-key",
            "layout",
            None,
        ),
        (
            (
                "hosts: [{id: h, cores: 1, mhz_per_core: 1, memory_mib: 1}]\n"
                "layout: {roles: [{id: a}], groups: [{id: g, hosts: [h], slots: [{id: s}],\n"
                "  preferences: [{role: a, slots: [s], choose: best}]}]}"
            ),
            "invalid-value",
            "layout.groups[0].preferences[0].choose",
            3,
        ),
        (
            (
                "hosts: [{id: h, cores: 1, mhz_per_core: 1, memory_mib: 1}]\n"
                "layout: {roles: [{id: a}], groups: [{id: g, hosts: [h], slots: [s]}]}"
            ),
            "wrong-type",
            "layout.groups[0].slots[0]",
            2,
        ),
        (
            (
                "hosts: [{id: h, cores: 1, mhz_per_core: 1, memory_mib: 1}]\n"
                "layout: {roles: [{id: a}], groups: [{id: g, hosts: [h], slots: [{id: s}],\n"
                "  layout: [{if_active: 1, layout: [{on_eech: [a]}]}]}]}"
            ),
            "unknown-key",
            "layout.groups[0].layout[0].layout[0].on_eech",
            3,
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(
    tmp_path: Path, text: str, code: str, key: str, line: int | None
) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    assert located("roles", "check", str(path)) == [(code, key, line)]


def test_other_commands_refuse_a_layout_without_meaning(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(
        "hosts: [{id: h, cores: 1, mhz_per_core: 1, memory_mib: 1}]\n"
        "layout:\n  roles: [{id: a}]\n  groups:\n"
        "    - {id: g, hosts: [h], slots: [{id: s}], layout: [{slot: t, roles: [a]}]}\n"
    )
    place = "layout.groups[0].layout[0].slot"
    assert located("show", str(path)) == [("unknown-name", place, 5)]
