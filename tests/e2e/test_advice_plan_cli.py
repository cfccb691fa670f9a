"""Advice as a plan, a script and a list, and what recommend knows of the past, by the command."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from command import answer, call, refusals
from equipoise.cli.advice import recommend as command

ROOT = Path(__file__).parent.parent.parent
SMALL = str(ROOT / "examples" / "small.yaml")
NIGHT = str(ROOT / "examples" / "night.yaml")
HEAD = "time,vm,cpu_mhz,memory_mib\n"


@pytest.mark.parametrize("name", ["plan.yaml", "plan.json", "plan.yaml.gz"])
def test_a_written_plan_is_read_by_check_and_solve(tmp_path: Path, name: str) -> None:
    """By the installed command, as an operator would."""
    plan, other = str(tmp_path / name), str(tmp_path / "other.yaml")
    done = call("recommend", NIGHT, "--with", "power", "-o", plan, "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    checked = json.loads(call("check", plan, "--instance", NIGHT, "--json").stdout)
    assert checked == {"accepted": True, "violations": [], "existing_faults": []}
    solved = call("solve", NIGHT, "--plan", plan, "-o", other, "--json")
    assert solved.returncode == 0
    assert json.loads(solved.stdout)["actions"] <= found["totals"]["actions"]
    assert call("check", other, "--instance", NIGHT).returncode == 0


def test_the_list_has_the_order_the_worth_and_the_hosts() -> None:
    found = answer("recommend", NIGHT, "--with", "power")
    actions, totals = found["actions"], found["totals"]
    starts = [action["start_s"] for action in actions]
    assert starts == sorted(starts)
    ended = {action["step"]: action["end_s"] for action in actions}
    assert all(ended[step] <= action["start_s"] for action in actions for step in action["after"])
    assert totals["actions"] == len(actions) == len(found["recommendations"])
    assert totals["moves"] == sum(action["action"] == "migrate" for action in actions)
    assert totals["ends_s"] == max(ended.values())
    offs = [action for action in actions if action["action"] == "power_off"]
    assert all(action["benefit_host_s"] > action["cost_host_s"] > 0 for action in offs)
    hosts = {row["host"]: row for row in found["hosts"]}
    for action in offs:
        assert hosts[action["from"]]["after"] == {
            "state": "standby", "vms": 0, "cpu": 0.0, "memory": 0.0,
        }  # fmt: skip
    assert sum(row["before"]["vms"] for row in hosts.values()) == sum(
        row["after"]["vms"] for row in hosts.values()
    )


def test_a_move_of_balance_has_its_evenness_as_a_part_of_its_benefit() -> None:
    for action in answer("recommend", SMALL)["actions"]:
        assert 0 < action["evenness_host_s"] <= action["benefit_host_s"] + 1e-9
        assert action["cost_host_s"] < action["benefit_host_s"]
        assert action["decider"] == "balance"


def test_the_most_useful_actions_are_the_first_ones(tmp_path: Path) -> None:
    every = answer("recommend", SMALL)
    plan = tmp_path / "plan.yaml"
    (first,) = answer("recommend", SMALL, "--top", "1", "-o", str(plan))["actions"]
    best = max(every["actions"], key=lambda action: action["benefit_host_s"])
    assert first["vm"] == best["vm"]
    assert answer("check", str(plan), "--instance", SMALL)["accepted"]
    one = answer("recommend", SMALL, "--top", "1")
    assert every["imbalance"]["after"] < one["imbalance"]["after"] < one["imbalance"]["before"]
    assert len(one["recommendations"]) == 1


def copied_s(bits_per_s: int) -> float:
    """How long build-1 and mail-1 are copied: all memory, then again what they write meanwhile.

    A VM writes 20 MiB/s per GHz; the rounds of a copy are a geometric series.
    """
    mib_per_s = bits_per_s / 8 / 1024**2
    total_s = 0.0
    for memory_mib, used_mib, ghz in ((8192, 5000, 7.1), (4096, 900, 0.3)):
        rounds = min(10.0, 1 / max(1e-9, 1 - 20 * ghz / mib_per_s))
        total_s += (memory_mib + (rounds - 1) * used_mib) / mib_per_s
    return total_s


def test_a_faster_link_and_other_estimates_change_the_durations() -> None:
    slow = answer("recommend", SMALL, "--link-mbps", "1000")["totals"]
    fast = answer("recommend", SMALL, "--link-mbps", "10000")["totals"]
    assert slow["moved_gib"] == fast["moved_gib"] == 12
    assert slow["move_s"] == pytest.approx(copied_s(10**9) + 4, abs=0.1)
    assert fast["move_s"] == pytest.approx(copied_s(10**10) + 4, abs=0.1)
    late = answer("recommend", SMALL, "--estimate", "migration_ms=5000")["totals"]
    usual = answer("recommend", SMALL)["totals"]
    assert late["move_s"] == pytest.approx(usual["move_s"] + 6)


def a_history(file: Path, minutes: int, busy_every: int = 0) -> str:
    """The demand of build-1, each minute; it pauses now and then."""
    rows = [
        f"{60 * n},build-1,{100 if busy_every and n % busy_every else 14000},7000\n"
        for n in range(minutes)
    ]
    file.write_text(HEAD + "".join(rows), encoding="utf-8")
    return str(file)


def test_unstable_demand_is_worth_fewer_moves(tmp_path: Path) -> None:
    calm = answer("recommend", SMALL, "--history", a_history(tmp_path / "calm.csv", 61))
    wild = answer("recommend", SMALL, "--history", a_history(tmp_path / "wild.csv", 61, 2))
    benefit = {
        name: sum(action["benefit_host_s"] or 0 for action in found["actions"])
        for name, found in (("calm", calm), ("wild", wild))
    }
    assert benefit["calm"] > benefit["wild"]


def test_standby_needs_the_demand_of_an_hour(tmp_path: Path) -> None:
    file = tmp_path / "observed.yaml"
    text = Path(NIGHT).read_text(encoding="utf-8")
    file.write_text(text.replace("\npower:\n", "\npower:\n  observe_s: 2400\n"), encoding="utf-8")
    rows = {}
    for minutes in (30, 50):
        lines = [f"{60 * n},web-1,300,500\n" for n in range(minutes)]
        history = tmp_path / f"{minutes}.csv"
        history.write_text(HEAD + "".join(lines), encoding="utf-8")
        found = answer("recommend", str(file), "--with", "power", "--history", str(history))
        rows[minutes] = found["power"]["sleeps"]
    assert not rows[30]
    assert rows[50]


def test_a_journal_tells_which_vm_has_just_moved(tmp_path: Path) -> None:
    journal, inventory = str(tmp_path / "run.journal"), tmp_path / "now.yaml"
    scenario = tmp_path / "run.yaml"
    cluster = "\n".join(
        f"  {line}" for line in Path(SMALL).read_text(encoding="utf-8").splitlines()
    )
    # Every move that lowers the imbalance is good enough, so that some VM moves at once.
    cluster += "\n  balance: {cost_benefit: false, goodness: 0, imbalance_target: 0.001}"
    head = "name: run\nduration_s: 120\ndeciders: [balance]\ncluster:\n"
    scenario.write_text(head + cluster + "\n", encoding="utf-8")
    answer("simulate", str(scenario), "--journal", journal)
    inventory.write_text(call("replay", journal).stdout, encoding="utf-8")
    found = answer("recommend", str(inventory), "--journal", journal, "--why", "build-1")
    (why,) = found["explanations"]
    assert why["code"] == "recently-moved"
    without = answer("recommend", str(inventory), "--why", "build-1")["explanations"]
    assert without[0]["code"] != "recently-moved"
    assert refusals("recommend", SMALL, "--journal", str(tmp_path / "absent"))
    both = ("--history", a_history(tmp_path / "h.csv", 2), "--journal", journal)
    assert refusals("recommend", SMALL, *both) == [("option-conflict", "")]


@pytest.mark.parametrize(
    ("rows", "code", "key", "line"),
    [
        ("", "empty-trace", "", None),
        ("0,web-1,1\n", "not-a-number", "memory_mib", 2),
        ("0,web-1,x,1\n", "not-a-number", "cpu_mhz", 2),
        ("0,web-1,-1,1\n", "negative-demand", "cpu_mhz", 2),
        ("0,web-1,1e300,1\n", "demand-too-large", "cpu_mhz", 2),
        ("5,web-1,1,1\n0,web-1,1,1\n", "time-not-ascending", "time", 3),
        ("noon,web-1,1,1\n", "not-a-number", "time", 2),
        ("-5,web-1,1,1\n", "out-of-range", "time", 2),
        ("5,web-1,1,1\n5,web-1,1,1\n", "duplicate-name", "vm", 3),
        ("5,,1,1\n", "empty-value", "vm", 2),
        ("5,absent,1,1\n", "unknown-name", "", None),
    ],
)
def test_a_wrong_history_is_reported_with_its_line(
    tmp_path: Path, rows: str, code: str, key: str, line: int | None
) -> None:
    file = tmp_path / "history.csv"
    file.write_text(HEAD + rows, encoding="utf-8")
    (problem,) = answer("recommend", SMALL, "--history", str(file), code=2)["problems"]
    assert (problem["code"], problem["key"], problem["line"]) == (code, key, line)
    assert problem["cure"]


def test_a_history_without_its_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "history.csv"
    file.write_text("when,vm,cpu_mhz,memory\n0,web-1,1,1\n", encoding="utf-8")
    problems = answer("recommend", SMALL, "--history", str(file), code=2)["problems"]
    assert {problem["key"] for problem in problems} == {"time", "memory_mib"}
    assert {problem["code"] for problem in problems} == {"unknown-column"}


@pytest.mark.parametrize(("date", "sleeps"), [("2026-03-04", False), ("2026-03-05", True)])
def test_dates_of_a_history_say_which_window_is_open(
    tmp_path: Path, date: str, sleeps: bool
) -> None:
    """On Wednesdays the policy is off; the clock of the test does not count."""
    window = "windows: [{start: '00:00', end: '23:59', automation: 'off', days: [wednesday]}]"
    file, history = tmp_path / "windows.yaml", tmp_path / "history.csv"
    text = Path(NIGHT).read_text(encoding="utf-8")
    file.write_text(text.replace("\npower:\n", f"\npower:\n  {window}\n"), encoding="utf-8")
    rows = [f"{date}T12:{n:02d}:00,web-1,300,500\n" for n in range(3)]
    history.write_text(HEAD + "".join(rows), encoding="utf-8")
    found = answer("recommend", str(file), "--with", "power", "--history", str(history))
    assert bool(found["power"]["sleeps"]) == sleeps


def test_what_the_cluster_lacks_is_listed(tmp_path: Path) -> None:
    file = tmp_path / "history.csv"
    file.write_text(HEAD + "0,web-1,1,1\n0,gone,1,1\n", encoding="utf-8")
    assert answer("recommend", SMALL, "--history", str(file))["unknown_vms"] == ["gone"]


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    assert refusals("recommend", SMALL, "--format", "esx") == [("unknown-name", "--format")]
    (code, key), *_ = refusals("recommend", SMALL, "--estimate", "migraton_ms=5")
    assert (code, key) == ("unknown-key", "migraton_ms")
    absent = str(tmp_path / "absent" / "plan.yaml")
    assert [code for code, _ in refusals("recommend", SMALL, "-o", absent)] == ["file-not-writable"]
    plan = str(tmp_path / "plan.yaml")
    answer("recommend", NIGHT, "--with", "power", "-o", plan)
    assert {code for code, _ in refusals("solve", SMALL, "--plan", plan)} == {"unknown-name"}


def test_a_script_is_printed_alone_and_is_part_of_the_document() -> None:
    printed = call("recommend", SMALL, "--format", "openstack")
    document = answer("recommend", SMALL, "--format", "openstack")
    assert printed.stdout.splitlines() == document["commands"]
    moves = [line for line in document["commands"] if line.startswith("openstack")]
    assert [line.split()[-1] for line in moves] == [a["vm"] for a in document["actions"]]
    assert "commands" not in answer("recommend", SMALL)


def test_a_preference_that_is_given_up_is_listed(tmp_path: Path) -> None:
    text = Path(SMALL).read_text(encoding="utf-8")
    assert text.count("\nrules:\n") == 1
    soft = "  - {kind: stay_within, id: near, vms: [mail-1], hosts: [r1], hard: false}\n"
    file = tmp_path / "soft.yaml"
    file.write_text(text.replace("\nrules:\n", f"\nrules:\n{soft}"), encoding="utf-8")
    found = answer("recommend", str(file))
    rules = {rule["rule"] for rule in found["unmet_soft_rules"]}
    moved = {action["vm"]: action["to"] for action in found["actions"]}
    assert ("near" in rules) == (moved.get("mail-1") != "r1")
    text = call("recommend", str(file)).stdout
    assert ("soft rule near" in text) == ("near" in rules)


def test_the_list_fits_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = Console(width=80, highlight=False, record=True, file=StringIO())
    monkeypatch.setattr(command, "console", lambda: narrow)
    options = command.RecommendOptions(deciders=("power",), why=("all",))
    command.run(Path(NIGHT), options, as_json=False)
    text = narrow.export_text()
    assert max(map(len, text.splitlines())) <= 80
    # No name and no figure is cut off.
    assert "old-1" in text
    assert "…" not in text
    # Each action has its reason, in the table below the list.
    steps = [step["step"] for step in answer("recommend", NIGHT, "--with", "power")["actions"]]
    assert steps
    rows = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert all(rows.count(step) == 2 for step in steps)
