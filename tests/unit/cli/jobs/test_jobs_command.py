"""``equipoise jobs``: its files, its document, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import call_here

PLATFORM = """<?xml version='1.0'?>
<platform version="4.1"><zone id="z" routing="Full">
<host id="master_host" speed="1Gf"/>
<host id="h10" speed="100Mf"/><host id="h2" speed="100Mf"/>
<link id="l" bandwidth="10MBps" latency="0us"/>
<route src="h2" dst="h10"><link_ctn id="l"/></route>
</zone></platform>
"""
WORKLOAD = {
    "nb_res": 2,
    "jobs": [
        {"id": 1, "subtime": 0, "res": 2, "profile": "seq", "walltime": 100},
        {"id": 2, "subtime": 1, "res": 1, "profile": "wait", "walltime": 2},
        {"id": 3, "subtime": 1, "res": 3, "profile": "wait"},
    ],
    "profiles": {
        "wait": {"type": "delay", "delay": 5},
        "move": {"type": "parallel_homogeneous", "cpu": 1e8, "com": 1e7},
        "seq": {"type": "composed", "repeat": 2, "seq": ["wait", "move"]},
    },
}
JOBS = """\
job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,\
final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,\
allocated_resources,consumed_energy,metadata
3,w0,wait,1.000000,3,-1.000000,0,REJECTED,,,,,,,,,""
1,w0,seq,0.000000,2,100.000000,1,COMPLETED_SUCCESSFULLY,0.000000,14.000000,14.000000,0.000000,\
14.000000,1.000000,0-1,-1.000000,""
2,w0,wait,1.000000,1,2.000000,0,COMPLETED_WALLTIME_REACHED,14.000000,2.000000,16.000000,13.000000,\
15.000000,7.500000,0,-1.000000,""
"""


def write_inputs(folder: Path) -> list[str]:
    (folder / "p.xml").write_text(PLATFORM)
    (folder / "w.json").write_text(json.dumps(WORKLOAD))
    return ["jobs", "-p", str(folder / "p.xml"), "-w", str(folder / "w.json"), "--json"]


def test_the_files_are_those_of_batsim(tmp_path: Path) -> None:
    result = call_here(*write_inputs(tmp_path), "-e", str(tmp_path / "out"))
    assert result.returncode == 0
    document = json.loads(result.stdout)
    assert document["makespan"] == 16
    assert document["nb_jobs_rejected"] == 1
    assert document["time_computing"] == 30
    assert (tmp_path / "out_jobs.csv").read_text() == JOBS
    header, row = (tmp_path / "out_schedule.csv").read_text().splitlines()
    assert header.split(",") == sorted(header.split(","))
    assert row.startswith("v4.2.0,0.000000,16.000000,")
    states = (tmp_path / "out_machine_states.csv").read_text().splitlines()
    assert states[1:] == ["0,0,0,0,0,2", "14,0,0,0,2,0", "14,0,0,0,1,1", "16,0,0,0,2,0"]


def test_an_swf_file_needs_no_platform(tmp_path: Path) -> None:
    lines = ["; MaxProcs: 4", "1 0 -1 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1"]
    lines.append("2 5 -1 10 2 -1 -1 2 10 -1 1 1 1 1 1 1 -1 -1")
    lines.append("3 6 -1 -1 2 -1 -1 2 10 -1 5 1 1 1 1 1 -1 -1")
    (tmp_path / "a.swf").write_text("\n".join(lines))
    result = call_here("jobs", "-w", str(tmp_path / "a.swf"), "--json")
    document = json.loads(result.stdout)
    assert (document["makespan"], document["nb_jobs_success"]) == (110, 2)


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("w.json", "{", ""),
        ("w.json", '{"jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "x"}]}', "jobs[0]"),
        ("p.xml", "<platform>", ""),
        ("p.xml", PLATFORM.replace("100Mf", "100 parsecs"), "host h10"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, text: str, key: str) -> None:
    arguments = write_inputs(tmp_path)
    (tmp_path / name).write_text(text)
    result = call_here(*arguments)
    assert result.returncode == 2
    problem = json.loads(result.stdout)["problems"][0]
    assert problem["file"] == str(tmp_path / name)
    assert problem["key"] == key
