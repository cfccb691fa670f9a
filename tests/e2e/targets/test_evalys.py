"""evalys reads the files of our runs as they are, and computes the same figures."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from command import call
from equipoise.adapters.targets.environment import PYTHON_TARGETS, find_environment

JOBS = Path(__file__).parents[3] / "examples" / "jobs"

PROGRAM = """
import json, sys
import matplotlib
matplotlib.use("Agg")
from evalys.jobset import JobSet
from evalys.mstates import MachineStatesChanges
folder = sys.argv[1]
jobs = JobSet.from_csv(folder + "/jobs.csv", resource_bounds=(0, 15))
states = MachineStatesChanges(folder + "/machine_states.csv")
found = {
    "makespan": jobs.df.finish_time.max(),
    "waiting": jobs.df.waiting_time.sum(),
    "turnaround": jobs.df.turnaround_time.sum(),
    "stretch": jobs.df.stretch.sum(),
    "hosts": sorted({int(n) for n in states.df.total}),
    "host_time": float((jobs.df.proc_alloc * jobs.df.execution_time).sum()),
    "rejected": int((jobs.df.final_state == "REJECTED").sum()),
}
jobs.gantt()
if len(sys.argv) > 2:
    from evalys.pstates import PowerStatesChanges
    found["pstates"] = len(PowerStatesChanges(folder + "/pstate_changes.csv").pseudo_jobs)
print(json.dumps({key: value if isinstance(value, (int, list)) else float(value)
                  for key, value in found.items()}))
"""


def read_by_evalys(folder: Path, *more: str) -> dict[str, Any]:
    python = find_environment("evalys")
    if python is None:
        target = PYTHON_TARGETS["evalys"]
        pytest.skip(f"{target.about} is not in {target.folder}: '{target.command}' puts it there")
    done = subprocess.run(
        [str(python), "-c", PROGRAM, str(folder), *more],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(found: dict[str, Any], figures: dict[str, float]) -> None:
    assert found["makespan"] == pytest.approx(figures["makespan"])
    count = figures["nb_jobs"]
    assert found["waiting"] / count == pytest.approx(figures["mean_waiting_time"])
    assert found["turnaround"] / count == pytest.approx(figures["mean_turnaround_time"])
    assert found["stretch"] / count == pytest.approx(figures["mean_slowdown"])
    assert found["host_time"] == pytest.approx(figures["time_computing"])
    assert found["rejected"] == figures["nb_jobs_rejected"] == 1
    assert found["hosts"] == [16]


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_evalys_computes_our_figures(tmp_path: Path, policy: str) -> None:
    inputs = ("-p", str(JOBS / "platform.xml"), "-w", str(JOBS / "workload.json"))
    out = tmp_path / "run"
    done = call("jobs", *inputs, "--policy", policy, "--out", str(out), "--json")
    check(read_by_evalys(out), json.loads(done.stdout))


def test_evalys_reads_the_files_of_a_run_of_the_protocol(tmp_path: Path) -> None:
    workload = json.loads((JOBS / "workload.json").read_text())
    workload["jobs"] = [job for job in workload["jobs"] if job["res"] <= 16]
    (tmp_path / "w.json").write_text(json.dumps(workload))
    inputs = ("-p", str(JOBS / "platform.xml"), "-w", str(tmp_path / "w.json"))
    out = tmp_path / "run"
    done = call("batsim", *inputs, "--no-sched", "-E", "--out", str(out), "--json")
    figures = json.loads(done.stdout)
    found = read_by_evalys(out, "power")
    assert found["pstates"] > 0
    assert found["makespan"] == pytest.approx(figures["makespan"])
    assert found["turnaround"] / figures["nb_jobs"] == pytest.approx(
        figures["mean_turnaround_time"]
    )
