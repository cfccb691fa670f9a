"""The installed command, as a user or a program calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command import COMMAND, answer, call, call_here, refusals

ROOT = Path(__file__).parent.parent.parent
SMALL = str(ROOT / "examples" / "small.yaml")
TOGETHER = "VM-VM anti-affinity: no two of the VMs run on one host; web-2 and web-3 are both on r3"
DRAIN = str(ROOT / "examples" / "drain.yaml")


def test_help_lists_every_command_on_one_line_each() -> None:
    text = call("--help").stdout
    for command in (
        "demo", "show", "schema", "check", "recommend", "place", "whatif", "scenarios",
        "simulate", "journal", "replay", "bench", "spec",
    ):  # fmt: skip
        assert f"\n  {command} " in text
    assert "..." not in text.split("Commands:")[1]


def test_help_imports_nothing_heavy() -> None:
    code = "import sys, equipoise.cli.main; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"lark", "numpy", "sqlalchemy", "yaml", "msgspec", "rich.console"} & set(loaded)


def test_version() -> None:
    assert call("--version").stdout.startswith("equipoise 0.")


def test_show_reads_like_a_cluster() -> None:
    done = call_here("show", SMALL, "--vms")
    assert done.returncode == 0
    assert "little rack: 4 hosts, 7 VMs" in done.stdout
    assert "r4    standby" in done.stdout
    assert "db-1" in done.stdout
    shown = answer("show", SMALL)
    assert [host["id"] for host in shown["hosts"]] == ["r1", "r2", "r3", "r4"]
    assert shown["hosts"][0]["memory_reserved_mib"] == 32768


@pytest.mark.parametrize("kind", ["inventory", "scenario", "plan", "case"])
def test_schema_is_json(kind: str) -> None:
    schema = json.loads(call_here("schema", kind).stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")


def test_another_program_reads_a_schema_from_a_pipe() -> None:
    piped = subprocess.run(
        f"'{COMMAND}' schema | '{sys.executable}' -m json.tool",
        shell=True, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(piped.stdout)


def test_check_accepts_a_good_plan() -> None:
    good = {"accepted": True, "violations": [], "existing_faults": []}
    assert answer("check", DRAIN, "--instance", SMALL) == good
    assert "accepted: 5 steps in 0:01:20" in call_here("check", DRAIN, "--instance", SMALL).stdout


def test_check_names_existing_faults_and_does_not_charge_them(tmp_path: Path) -> None:
    inventory, plan = tmp_path / "broken.yaml", tmp_path / "plan.yaml"
    inventory.write_text(BROKEN)
    plan.write_text("id: p\nsteps: []\n")
    verdict = answer("check", str(plan), "--instance", str(inventory))
    assert verdict["accepted"] is True
    (fault,) = verdict["existing_faults"]
    assert (fault["constraint"], fault["code"]) == ("rule r", "already-violated")
    assert answer("recommend", str(inventory))["existing_faults"] == [fault]
    assert "already-violated" in call_here("check", str(plan), "--instance", str(inventory)).stdout


BROKEN = """
name: broken
hosts:
  - {id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 8192}
  - {id: h2, cores: 4, mhz_per_core: 1000, memory_mib: 8192}
vms:
  - {id: a, vcpus: 1, memory_mib: 512, host: h1}
  - {id: b, vcpus: 1, memory_mib: 512, host: h1}
rules:
  - {kind: keep_apart, id: r, vms: [a, b], continuous: true}
"""


def test_check_says_where_and_when_a_bad_plan_goes_wrong(tmp_path: Path) -> None:
    hasty = tmp_path / "hasty.yaml"
    good, bad = "vm: web-2, source: r2, target: r4", "vm: web-2, source: r2, target: r3"
    hasty.write_text(Path(DRAIN).read_text().replace(good, bad))
    verdict = answer("check", str(hasty), "--instance", SMALL, code=1)
    assert verdict["accepted"] is False
    assert verdict["violations"] == [
        {
            "constraint": "rule web-apart",
            "at": 76000,
            "step": "move-web",
            "detail": TOGETHER,
            "code": "rule-violated",
        }
    ]
    assert "0:01:16" in call_here("check", str(hasty), "--instance", SMALL).stdout


def test_scenarios_are_listed_and_run() -> None:
    names = [row["name"] for row in answer("scenarios")]
    assert set(names) >= {"broken-drain", "first-steps", "drs-table1", "chaos"}
    good, broken = (answer("simulate", name) for name in ("first-steps", "broken-drain"))
    assert (good["migrations"], good["power_ons"], good["violations"]) == (3, 1, [])
    assert good["plans"][0]["outcome"] == "done"
    assert good["duration_s"] == 300
    assert broken["plans"] == [
        {"plan": "drain-r2", "outcome": "partial", "finished": 3, "failed": 1, "skipped": 1}
    ]


def test_the_same_run_has_the_same_hash_whatever_the_hash_seed() -> None:
    hashes = {
        json.loads(call("simulate", "broken-drain", "--json", PYTHONHASHSEED=seed).stdout)[
            "journal_sha256"
        ]
        for seed in ("0", "1", "2")
    }
    assert len(hashes) == 1


def test_a_journal_can_be_kept_told_and_replayed(tmp_path: Path) -> None:
    url = str(tmp_path / "run.db")
    run = answer("simulate", "broken-drain", "--journal", url)
    told = call_here("journal", url).stdout.splitlines()
    assert len(told) == run["events"]
    assert told[5].strip() == "0:00:10  host r3 failed: power supply"
    document = answer("journal", url, "--kind", "host_failed")
    assert document["sha256"] == run["journal_sha256"]
    assert [event["text"] for event in document["events"]] == ["host r3 failed: power supply"]
    lines = call_here("journal", url, "--lines").stdout.splitlines()
    assert json.loads(lines[0])["event"] == "cluster_loaded"
    again = tmp_path / "again.yaml"
    again.write_text(call_here("replay", url).stdout)
    states = {host["id"]: host["state"] for host in answer("show", str(again))["hosts"]}
    assert states == {"r1": "on", "r2": "on", "r3": "failed", "r4": "on"}


def test_a_journal_that_has_a_run_in_it_is_not_run_over_again(tmp_path: Path) -> None:
    url = str(tmp_path / "run.db")
    answer("simulate", "first-steps", "--journal", url)
    again = ("simulate", "first-steps", "--journal", url)
    assert refusals(*again) == [("already-exists", "")]


@pytest.mark.parametrize(
    ("arguments", "codes", "named"),
    [
        (["show"], [], "'INVENTORY'"),
        (["shwo", SMALL], [], "'shwo'"),
        (["show", SMALL, "--nonsense"], [], "--nonsense"),
        (["show", "nowhere.yaml"], ["file-not-readable"], "nowhere.yaml"),
        (["show", str(ROOT)], ["file-not-readable"], str(ROOT)),
        (["schema", "cluster"], ["unknown-name"], "inventory, scenario, plan"),
        (["simulate", "first-stpes"], ["unknown-name"], "first-steps?"),
        (["simulate", "first-steps", "--journal", "mysql://x/y"], ["address-invalid"], "mysql"),
        (["journal", "nowhere.db"], ["database-not-found"], "nowhere.db"),
        (["bench", "everything"], ["unknown-name"], "model"),
    ],
)
def test_bad_input_is_said_in_a_sentence_and_as_json(
    arguments: list[str], codes: list[str], named: str
) -> None:
    done = call_here(*arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    found = answer(*arguments, code=2)
    assert found["error"] == ("bad input" if codes else "usage")
    assert [problem["code"] for problem in found["problems"]] == codes
    assert found["message"] == done.stderr.rstrip("\n")


def test_an_unreachable_database_is_the_worlds_fault() -> None:
    done = call("journal", "postgresql://guest:secret@127.0.0.1:9/nothing")
    assert done.returncode == 3, done.stderr
    assert "secret" not in done.stderr


def test_all_problems_of_a_file_are_listed_with_their_lines(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(
        "hosts:\n"
        "  - {id: h1, cores: 4, mhz_per_core: 1000, memory_mib: -5}\n"
        "  - {id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 4096, colour: red}\n"
        "vms:\n"
        "  - {id: v1, vcpus: 1, memory_mib: 1024, host: h7}\n"
        "  - id: v2\n"
        "    vcpus: .nan\n"
        "    memory_mib: 1024\n"
    )
    problems = answer("show", str(bad), code=2)["problems"]
    assert {problem["line"] for problem in problems} >= {2, 3, 7}
    assert all(problem["cure"] for problem in problems)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(200_000_000)
    done = call_here("show", str(huge))
    assert done.returncode == 2
    assert "MiB" in done.stderr


def test_a_yaml_bomb_does_not_go_off(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.yaml"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    bomb.write_text("\n".join(lines))
    done = call_here("show", str(bomb))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def in_shell(command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, shell=True, executable="/bin/bash", capture_output=True, text=True, check=False,
        env=os.environ | env,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments", ["schema", "schema --json", f"show {SMALL}", "demo --out out/piped"]
)
def test_a_pipe_that_closes_early_is_no_error(arguments: str) -> None:
    done = in_shell(f"'{COMMAND}' {arguments} | true; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (0, "")


def test_bad_input_keeps_its_code_when_the_reader_has_left() -> None:
    done = in_shell(f"'{COMMAND}' show nowhere --json | true; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["", "--json"])
def test_a_full_disk_is_the_worlds_fault(option: str) -> None:
    done = in_shell(f"'{COMMAND}' show {SMALL} {option} > /dev/full")
    assert done.returncode == 3
    assert done.stderr.startswith("cannot write to standard output: ")


def test_it_works_without_an_output_and_without_our_characters() -> None:
    assert in_shell(f"'{COMMAND}' simulate first-steps >&-").returncode == 0
    done = in_shell(
        f"'{COMMAND}' show {SMALL}", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", LC_ALL="C"
    )
    assert done.returncode == 0, done.stderr


def test_names_are_printed_as_they_are_and_do_no_harm(tmp_path: Path) -> None:
    odd = tmp_path / "odd.json"
    host = {"id": "h1", "cores": 1, "mhz_per_core": 1, "memory_mib": 1}
    odd.write_text(json.dumps({"name": "[/x] [red]\x1b[31m", "hosts": [host]}))
    done = call_here("show", str(odd))
    assert done.returncode == 0, done.stderr
    assert "[/x] [red]?[31m: 1 host" in done.stdout


def test_a_terminal_of_80_columns_has_one_line_per_host() -> None:
    program = f"stty cols 80; exec '{COMMAND}' show {SMALL} --vms"
    done = in_shell(f'script -qec "{program}" /dev/null', TERM="xterm")
    if "script: command not found" in done.stderr:
        pytest.skip("script (of util-linux) is not installed")
    lines = done.stdout.replace("\r", "").splitlines()
    assert [line.split()[0] for line in lines if line.strip().startswith("r")] == [
        "r1", "r2", "r3", "r4",
    ]  # fmt: skip
    assert all(len(line) <= 80 for line in lines if "\x1b" not in line)


def test_completion_is_offered() -> None:
    done = call("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0
    assert "complete" in done.stdout


def test_demo_shows_all_its_parts(tmp_path: Path) -> None:
    done = call_here("demo", "--out", str(tmp_path / "demo"))
    assert done.returncode == 0
    assert "<svg" in (tmp_path / "demo" / "comparison.html").read_text(encoding="utf-8")
    for said in (
        "little rack: 4 hosts, 7 VMs",
        "refused: 1 violation",
        "web-2 and web-3 are both on r3",
        "plan drain-r2 ended, done: 5 finished",
        "host r3 failed: power supply",
        "its replay gives the identical cluster",
        "CPU utilisation",
        "Comparison:",
    ):
        assert said in done.stdout
