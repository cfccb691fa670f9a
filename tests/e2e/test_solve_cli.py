"""``equipoise solve``, as the installed command: plans, reasons, files in and out, bad input."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from builders import figures
from command import COMMAND, answer, call, call_here, located
from equipoise.api.loading import read_problem
from equipoise.files import to_json

ROOT = Path(__file__).parent.parent.parent
SWAP = str(ROOT / "examples" / "swap.yaml")
IMPOSSIBLE = str(ROOT / "examples" / "impossible.yaml")
BTRPLACE = ROOT.parent / "shared" / "data" / "btrplace"
WEB_1 = "vms: {web-1: running}"


def test_a_plan_is_printed_with_its_goals_and_what_waits_for_what() -> None:
    found = answer("solve", SWAP, "--optimise")
    assert (found["status"], found["optimal"], found["verified"]) == ("solved", True, True)
    assert (found["actions"], found["migrations"]) == (4, 3)
    assert found["objective"] == found["goals"][0]["value"] == found["goals"][0]["bound"]
    assert found["explanation"] == []
    assert {"load_s", "build_s", "solve_s", "wall_s"} <= found.keys()
    last = found["steps"][-1]
    assert last["after"], "who comes back waits for the place to be free"
    assert "verified" in call_here("solve", SWAP, "--optimise").stdout


def test_what_is_impossible_is_explained_and_the_exit_code_says_so() -> None:
    found = answer("solve", IMPOSSIBLE, code=1)
    assert (found["status"], found["verified"], found["actions"]) == ("unsat", False, 0)
    assert figures(found["explanation"][0]) == [3, 1, 2, 3, 2, 1, 2]
    assert found["conflict"] == ["db-3 must be running", "spread-db", "db-in-rack-a"]
    assert found["explanation"][0] in call_here("solve", IMPOSSIBLE).stdout


def test_a_cluster_without_goals_is_made_to_keep_its_rules(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "hosts:\n"
        "  - {id: h1, cores: 4, mhz_per_core: 1000, memory_mib: 8192}\n"
        "  - {id: h2, cores: 4, mhz_per_core: 1000, memory_mib: 8192}\n"
        "vms:\n"
        "  - {id: v1, vcpus: 1, memory_mib: 1024, host: h1}\n"
        "rules:\n"
        "  - {kind: stay_off, id: off-h1, vms: [v1], hosts: [h1]}\n"
    )
    found = answer("solve", str(path))
    assert found["status"] == "solved"
    assert [step["action"] for step in found["steps"]] == ["migrate v1 from h1 to h2"]


@pytest.mark.parametrize("option", ["-o", "--report", "--stream"])
def test_a_file_that_cannot_be_written_is_reported(option: str, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "x"
    (problem,) = answer("solve", SWAP, option, str(path), code=2)["problems"]
    assert (problem["code"], problem["file"]) == ("file-not-writable", str(path))


def test_a_written_plan_passes_the_check(tmp_path: Path) -> None:
    plan, cluster = tmp_path / "plan.json", tmp_path / "cluster.json"
    answer("solve", SWAP, "-o", str(plan))
    cluster.write_text(to_json(read_problem(Path(SWAP)).cluster))
    assert answer("check", str(plan), "--instance", str(cluster))["accepted"] is True


def test_a_plan_is_written_as_btrplace_writes_it_in_whole_seconds(tmp_path: Path) -> None:
    path = tmp_path / "plan.json.gz"
    answer("solve", SWAP, "-o", str(path), "--btrplace")
    written = json.loads(gzip.decompress(path.read_bytes()))
    assert [action["id"] for action in written["actions"]].count("migrateVM") == 3
    assert answer("check", str(path), "--instance", SWAP)["accepted"] is True


def test_the_same_seed_gives_the_same_plan_whatever_python_hashes() -> None:
    steps = []
    for salt in ("1", "2", "3"):
        done = call("solve", SWAP, "--json", PYTHONHASHSEED=salt)
        steps.append(json.loads(done.stdout)["steps"])
    assert steps[0] == steps[1] == steps[2]


@pytest.mark.parametrize(
    ("change", "code", "key"),
    [
        ("vms: {web-1: flying}", "invalid-value", 'vms["web-1"]'),
        ("vms: {web-9: running}", "unknown-name", 'vms["web-9"]'),
        (f"{WEB_1}\ndurations: {{boot: {{ms: 0}}}}", "out-of-range", "durations.boot.ms"),
        (f"{WEB_1}\ndurations: {{boot: {{ms: -5}}}}", "out-of-range", "durations.boot.ms"),
        (f"{WEB_1}\nhorizon_s: 0", "out-of-range", "horizon_s"),
        (f"{WEB_1}\nobjective: [speed]", "invalid-value", "objective[0]"),
        (f"{WEB_1}\nweights: {{absent: 3}}", "unknown-name", "weights.absent"),
    ],
)
def test_bad_problems_are_refused_by_line(change: str, code: str, key: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    text = Path(SWAP).read_text().replace("objective: [mttr, migrations]\n", "")
    changed = text.replace(WEB_1, change)
    path.write_text(changed)
    line = 1 + changed[: changed.index(change)].count("\n") + change.count("\n")
    assert located("solve", str(path)) == [(code, key, line)]


def test_a_time_limit_is_kept_and_said() -> None:
    found = answer("solve", SWAP, "--time-limit", "0.001", code=1)
    assert (found["status"], found["explanation"]) == ("timeout", [])


def test_an_interrupt_stops_the_search_and_the_best_so_far_is_the_answer(tmp_path: Path) -> None:
    """A problem of which the best plan takes long to prove."""
    hosts = [
        {
            "id": f"h{n}",
            "cores": 64,
            "mhz_per_core": 1000,
            "memory_mib": 1000,
            "capacity": {"x": 1000},
        }
        for n in range(14)
    ]
    vms = [
        {
            "id": f"v{n}",
            "vcpus": 1,
            "memory_mib": 10,
            "host": f"h{n % 3}",
            "consumption": {"x": size},
        }
        for n, size in enumerate(61 + 37 * n % 97 for n in range(80))
    ]
    path = tmp_path / "long.json"
    document = {"cluster": {"hosts": hosts, "vms": vms}, "objective": ["imbalance", "mttr"]}
    path.write_text(json.dumps(document))
    asked = [
        str(COMMAND),
        "solve",
        str(path),
        "--optimise",
        "--stream",
        str(tmp_path / "s"),
        "--json",
    ]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as search:
        began = time.monotonic()
        while not (tmp_path / "s").exists() and time.monotonic() - began < 60:
            time.sleep(0.05)
        os.kill(search.pid, signal.SIGINT)
        out, said = search.communicate(timeout=60)
    assert search.returncode == 0, said
    found = json.loads(out)
    assert (found["status"], found["verified"]) == ("timeout", True)
    assert (tmp_path / "s").read_text().count("\n") >= 1


@pytest.mark.skipif(not BTRPLACE.is_dir(), reason="no BtrPlace instances beside the project")
def test_an_instance_of_btrplace_is_repaired_and_judged() -> None:
    found = answer("solve", str(BTRPLACE / "li3.json.gz"), "--repair")
    assert (found["status"], found["verified"]) == ("solved", True)
    assert found["migrations"] <= 4, "BtrPlace moves four VMs"
    assert found["makespan_s"] == 2


def test_check_judges_a_plan_for_a_problem_with_its_goals(tmp_path: Path) -> None:
    ours, nothing = tmp_path / "a.yaml", tmp_path / "c.yaml"
    answer("solve", SWAP, "-o", str(ours))
    nothing.write_text("id: p\nsteps: []\n")
    assert answer("check", str(ours), "--instance", SWAP)["accepted"] is True
    refused = answer("check", str(nothing), "--instance", SWAP, code=1)
    assert {violation["constraint"] for violation in refused["violations"]} == {
        "web-1 must be running",
        "db-1-on-2",
        "db-2-on-1",
    }
