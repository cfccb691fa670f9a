"""Jobs that replay MPI traces: when each rank goes on, and which traces are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.errors import InvalidInput
from equipoise.sim.jobs.work import JobState

PLATFORM = """<platform version="4.1"><zone id="z" routing="Full">
<host id="a" speed="10f"><prop id="wattage_per_state" value="50:100:200"/></host>
<host id="b" speed="20f"><prop id="wattage_per_state" value="50:100:200"/></host>
<link id="l" bandwidth="1000kBps" latency="0.25s"/>
<link id="loop" bandwidth="4Bps" latency="0s"/>
<route src="a" dst="a"><link_ctn id="loop"/></route>
<route src="b" dst="b"><link_ctn id="loop"/></route>
<route src="a" dst="b"><link_ctn id="l"/></route>
</zone></platform>"""
END_A, END_B = 1.0, 0.25 + 4e-6
"""What the last 4 bytes of a rank take: over the loop of the first host, or over the link."""


def small(size_bytes: float) -> float:
    """Return the time of a message with its 16 bytes more."""
    return 0.25 + (size_bytes + 16) / 1e6


def run(folder: Path, *ranks: str, walltime: float = -1) -> Any:
    """Run one job with the traces of its ranks; actions are separated by semicolons."""
    names = []
    for number, text in enumerate(ranks):
        actions = ["init", *(each.strip() for each in text.split(";") if each.strip()), "finalize"]
        lines = "".join(f"{number} {action}\n" for action in actions)
        (folder / f"rank{number}.txt").write_text(lines)
        names.append(f"rank{number}.txt\n")
    (folder / "trace.txt").write_text("".join(names))
    (folder / "platform.xml").write_text(PLATFORM)
    job = {"id": 0, "subtime": 0, "res": len(ranks), "profile": "t", "walltime": walltime}
    profiles = {"t": {"type": "smpi", "trace": "trace.txt"}}
    (folder / "jobs.json").write_text(json.dumps({"jobs": [job], "profiles": profiles}))
    (found,) = eq.simulate_jobs(folder / "platform.xml", folder / "jobs.json").jobs
    return found


@pytest.mark.parametrize(
    ("first", "second", "run_s"),
    [
        # The slower rank decides, and says so to itself.
        ("compute 50", "compute 50", 5 + END_A),
        # The report of one rank follows the other, one at a time.
        ("", "", END_A + END_B),
        ("compute 10", "compute 400", 20 + END_B),
        # A small message does not let its sender wait; the transfer begins with the receiver.
        ("send 1 0 1000; compute 500", "compute 200; recv 0 0 1000", 50 + END_A),
        ("send 1 0 1000", "compute 200; recv 0 0 1000", 10 + small(1000) + END_B),
        ("send 1 0 65535; compute 10", "compute 200; recv 0 0 65535", 10 + small(65535) + END_B),
        # A long one does, so that the rest of its rank comes after the receiver.
        (
            "send 1 0 65536; compute 50",
            "compute 200; recv 0 0 65536",
            10 + small(65536) + 5 + END_A,
        ),
        # Messages of another tag do not match.
        (
            "send 1 1 100; send 1 2 1e6",
            "recv 0 2 1e6; recv 0 1 100",
            small(1e6) + END_A + END_B,  # the first report takes longer than the last message
        ),
        # Two messages of one tag come one after the other.
        (
            "send 1 0 1e6; send 1 0 1e6; compute 10",
            "recv 0 0 1e6; recv 0 0 1e6",
            2 * small(1e6) + 1 + END_A,
        ),
    ],
)
def test_ranks_compute_and_exchange_messages(
    tmp_path: Path, first: str, second: str, run_s: float
) -> None:
    job = run(tmp_path, first, second)
    assert job.state is JobState.SUCCEEDED
    assert job.run_s == pytest.approx(run_s, rel=1e-9)


def test_a_walltime_ends_all_ranks(tmp_path: Path) -> None:
    job = run(tmp_path, "send 1 0 1e6; compute 500", "recv 0 0 1e6; compute 900", walltime=8.5)
    assert (job.state, job.run_s, job.return_code) == (JobState.TIMED_OUT, 8.5, -1)
    enough = run(tmp_path, "compute 50", "compute 50", walltime=8.5)
    assert (enough.state, enough.run_s) == (JobState.SUCCEEDED, 5 + END_A)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("recv 1 0 1", "recv 0 0 1"),  # both wait for the other
        ("send 1 0 1e6", "send 0 0 1e6"),
        ("send 1 0 1e6", ""),
        ("recv 1 1 1", "send 0 2 1"),
        ("allreduce 1 1", "allreduce 1 1"),
        ("isend 1 0 5", "recv 0 0 5"),
        ("send 1 0 5 1", "recv 0 0 5 1"),  # types of data
        ("send 7 0 5", ""),
        ("send 0 0 5", ""),
        ("compute -1", ""),
        ("compute many", ""),
        ("compute", ""),
    ],
)
def test_a_trace_that_cannot_run_is_refused(tmp_path: Path, first: str, second: str) -> None:
    with pytest.raises(InvalidInput) as error:
        run(tmp_path, first, second)
    assert error.value.problems[0].key == "jobs[0]"


def test_both_sides_may_send_small_messages_first(tmp_path: Path) -> None:
    job = run(tmp_path, "send 1 0 84; recv 1 0 84", "send 0 0 84; recv 0 0 84")
    assert job.state is JobState.SUCCEEDED
