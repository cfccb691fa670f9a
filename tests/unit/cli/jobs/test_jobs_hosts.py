"""``equipoise jobs`` with hosts that sleep or leave, and with every kind of work."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from command import call_here

PLATFORM = """<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Full">
<host id="master_host" speed="1Gf"/>
<host id="a" speed="100Mf,1f,0.5f,0.25f" pstate="0" core="CORES">
 <prop id="wattage_per_state" value="100:100:200,9:9:9,120:120:120,150:150:150"/>
 <prop id="sleep_pstates" value="1:2:3"/></host>
<host id="b" speed="100Mf,1f,0.5f,0.25f" pstate="0" core="CORES">
 <prop id="wattage_per_state" value="100:100:200,9:9:9,120:120:120,150:150:150"/>
 <prop id="sleep_pstates" value="1:2:3"/></host>
<host id="disk" speed="1Gf"><prop id="role" value="storage"/></host>
<host id="tape" speed="1Gf"><prop id="role" value="storage"/></host>
<link id="l" bandwidth="10MBps" latency="0us"/>
<link id="k" bandwidth="10MBps" latency="0us"/>
<route src="a" dst="disk"><link_ctn id="l"/></route>
<route src="b" dst="disk"><link_ctn id="k"/></route>
<route src="disk" dst="tape"><link_ctn id="l"/></route>
</zone></platform>
"""


def run(
    folder: Path,
    jobs: list[dict[str, Any]],
    profiles: dict[str, Any],
    *options: str,
    cores: int = 1,
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    (folder / "p.xml").write_text(PLATFORM.replace("CORES", str(cores)))
    (folder / "w.json").write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    inputs = ["-p", str(folder / "p.xml"), "-w", str(folder / "w.json")]
    result = call_here("jobs", *inputs, "-e", str(folder / "out"), "--json", *options)
    assert result.returncode == 0, result.stdout
    with (folder / "out_jobs.csv").open() as file:
        return json.loads(result.stdout), list(csv.DictReader(file))


def job(name: int, at_s: float, hosts: int, profile: str, **more: float) -> dict[str, Any]:
    return {"id": name, "subtime": at_s, "res": hosts, "profile": profile, **more}


WAIT = {"wait": {"type": "delay", "delay": 10}}


def test_idle_hosts_sleep_and_a_job_waits_for_them_to_wake(tmp_path: Path) -> None:
    jobs = [job(1, 0, 1, "wait"), job(2, 100, 2, "wait")]
    figures, rows = run(tmp_path, jobs, WAIT, "--shutdown-after", "5")
    # Host b sleeps from 5 + 2 on and host a from 15 + 2 on; both need 4 s to wake.
    assert [float(row["starting_time"]) for row in rows] == [0, 104]
    assert (figures["nb_grouped_switches"], figures["nb_machine_switches"]) == (3, 4)
    assert figures["time_sleeping"] == (100 - 7) + (100 - 17)
    idle_j = 100.0 * (15 + 5 + 2 * 10)
    passing_j = 2 * (120 * 2 + 150 * 4)
    assert figures["consumed_joules"] == pytest.approx(idle_j + passing_j + 9 * (93 + 83))
    changes = (tmp_path / "out_pstate_changes.csv").read_text().splitlines()
    assert changes[1:] == [
        "0,0-1,0", "5,1,-2", "7,1,1", "15,0,-2", "17,0,1", "100,0-1,-1", "104,0-1,0",
    ]  # fmt: skip
    energy = (tmp_path / "out_consumed_energy.csv").read_text().splitlines()
    assert {line.split(",")[2] for line in energy[1:]} == {"s", "e", "p"}
    assert float(energy[-1].split(",")[1]) == pytest.approx(figures["consumed_joules"], rel=1e-5)


def test_hosts_kept_awake_start_jobs_at_once(tmp_path: Path) -> None:
    jobs = [job(1, 100, 1, "wait"), job(2, 200, 2, "wait")]
    options = ("--shutdown-after", "5", "--keep-awake", "1")
    _, rows = run(tmp_path, jobs, WAIT, *options)
    assert [float(row["starting_time"]) for row in rows] == [100, 204]


def test_hosts_leave_and_return(tmp_path: Path) -> None:
    events = [
        {"type": "machine_unavailable", "resources": "0", "timestamp": 5},
        {"type": "machine_available", "resources": "0", "timestamp": 50},
        {"type": "other", "timestamp": 7},
    ]
    (tmp_path / "e.txt").write_text("\n".join(map(json.dumps, events)))
    jobs = [job(1, 0, 1, "wait"), job(2, 1, 2, "wait"), job(3, 20, 1, "wait")]
    figures, rows = run(tmp_path, jobs, WAIT, "--events", str(tmp_path / "e.txt"))
    found = {
        row["job_id"]: (float(row["starting_time"]), row["allocated_resources"]) for row in rows
    }
    # The job on the host that leaves goes on; the wide one waits and blocks no other.
    assert found == {"1": (0, "0"), "2": (50, "0-1"), "3": (20, "1")}
    assert figures["time_unavailable"] > 0


def test_every_kind_of_work_runs_in_a_sequence_up_to_its_walltime(tmp_path: Path) -> None:
    profiles: dict[str, Any] = {
        **WAIT,
        "compute": {"type": "parallel_homogeneous", "cpu": 1e8, "com": 0},
        "total": {"type": "parallel_homogeneous_total", "cpu": 4e8, "com": 0},
        "vector": {"type": "parallel", "cpu": [1e8, 3e8], "com": [0, 0, 0, 0]},
        "read": {
            "type": "parallel_homogeneous_pfs", "bytes_to_read": 2e7, "bytes_to_write": 0,
            "storage": "disk",
        },
        "stage": {"type": "data_staging", "nb_bytes": 5e7, "from": "disk", "to": "tape"},
        "all": {
            "type": "composed", "repeat": 1,
            "seq": ["wait", "compute", "total", "vector", "read", "stage"],
        },
    }  # fmt: skip
    jobs = [job(1, 0, 2, "all"), job(2, 0, 2, "all", walltime=20)]
    _, rows = run(tmp_path, jobs, profiles)
    # 10 s, 1 s, 2 s each, 3 s on the slower host, 2 s over a link each, 5 s between storages.
    assert [float(row["execution_time"]) for row in rows] == [10 + 1 + 2 + 3 + 2 + 5, 20]
    assert [row["final_state"] for row in rows] == [
        "COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED",
    ]  # fmt: skip


def test_an_executor_uses_one_core_of_its_host(tmp_path: Path) -> None:
    profiles = {"compute": {"type": "parallel_homogeneous", "cpu": 3e8, "com": 0}}
    for cores in (1, 4):
        _, rows = run(tmp_path, [job(1, 0, 2, "compute")], profiles, cores=cores)
        assert float(rows[0]["execution_time"]) == 3


@pytest.mark.parametrize(
    ("options", "key"),
    [
        (("--shutdown-after", "-1"), "--shutdown-after"),
        (("--shutdown-after", "5"), "--shutdown-after"),
        (("--swf-skip", "lost"), "--swf-skip"),
        (("--events", "e.txt"), ""),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: tuple[str, str], key: str) -> None:
    (tmp_path / "a.swf").write_text("; MaxProcs: 2\n1 0 0 5 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n")
    (tmp_path / "e.txt").write_text(
        '{"type": "machine_available", "timestamp": 1, "resources": "7"}'
    )
    named = [str(tmp_path / each) if each == "e.txt" else each for each in options]
    result = call_here("jobs", "-w", str(tmp_path / "a.swf"), "--json", *named)
    assert result.returncode == 2
    assert json.loads(result.stdout)["problems"][0]["key"] == key
