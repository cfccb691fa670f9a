"""The folder and the page of a run of jobs: sizes, reasons of waits, odd names, bad folders."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import equipoise as eq
from equipoise.report.jobs import compare_jobs_page, jobs_page, prepare_folder, read_jobs_folder
from equipoise.report.jobs.data import count_over_time, read_record, step_mean
from equipoise.report.jobs.waiting import long_waits
from equipoise.sim.jobs.work import DelayWork, Job
from unit.report.parsed import parsed

ODD = '<b>&"é\u202e'


def jobs_of(*rows: tuple[str, float, int, float]) -> list[Job]:
    """Return jobs by name, arrival, hosts and run time."""
    return [
        Job("w0", name, at_s, width, DelayWork(name="d", seconds=seconds))
        for name, at_s, width, seconds in rows
    ]


def folder_of(out: Path, hosts: int, jobs: list[Job], policy: str = "fcfs") -> Path:
    eq.simulate_jobs(None, jobs, policy=policy, hosts=hosts, out=out, keep_jobs=False)
    return out


def test_the_folder_has_all_files_and_its_page_a_bar_per_job(tmp_path: Path) -> None:
    rows = [("a", 0.0, 2, 10.0), (ODD, 1.0, 1, 10.0), ("c", 2.0, 3, 5.0)]
    out = folder_of(tmp_path / "run", 2, jobs_of(*rows))
    names = {path.name for path in out.iterdir()}
    assert names == {
        "jobs.csv", "machine_states.csv", "schedule.csv", "journal.jsonl", "report.html",
        "summary.json",
    }  # fmt: skip
    text = (out / "report.html").read_text()
    assert "<b>" not in text
    gantt = next(f for f in parsed(text).all("figure") if "bars" in f.attributes["class"])
    bars = [
        e for e in gantt.all("rect")
        if "action" in e.attributes.get("class", "") and float(e.attributes["width"]) != 14
    ]  # fmt: skip
    assert len(bars) == 2
    summary = json.loads((out / "summary.json").read_text())
    assert summary["kind"] == "jobs"
    assert summary["result"]["nb_jobs_rejected"] == 1
    assert summary["hosts"] == ["host0", "host1"]


def test_jobs_that_share_a_host_do_not_cover_each_other(tmp_path: Path) -> None:
    rows = [("a", 0.0, 1, 10.0), ("b", 0.0, 1, 6.0), ("c", 7.0, 1, 3.0)]
    out = folder_of(tmp_path / "run", 2, jobs_of(*rows))
    lines = (out / "jobs.csv").read_text().splitlines()
    # As pods on one node: all three ran on host 0.
    shared = [lines[0], *(line.replace(",1,-1.000000", ",0,-1.000000") for line in lines[1:])]
    (out / "jobs.csv").write_text("\n".join(shared) + "\n")
    figures = parsed(jobs_page(read_jobs_folder(out))).all("figure")
    gantt = next(f for f in figures if "bars" in f.attributes["class"])
    bars = [
        tuple(float(e.attributes[key]) for key in ("x", "width", "y", "height"))
        for e in gantt.all("rect")
        if "action" in e.attributes.get("class", "") and float(e.attributes["width"]) != 14
    ]
    assert len(bars) == 3
    for number, (x, width, y, height) in enumerate(bars):
        for x2, width2, y2, height2 in bars[:number]:
            apart = x + width <= x2 or x2 + width2 <= x
            assert apart or y + height <= y2 + 0.01 or y2 + height2 <= y + 0.01
    assert len({y for _, _, y, _ in bars}) == 2


@pytest.mark.parametrize("rows", [(), (("wide", 1.0, 9, 5.0),)])
def test_a_run_without_any_start_has_a_page(
    tmp_path: Path, rows: tuple[tuple[str, float, int, float], ...]
) -> None:
    out = folder_of(tmp_path / "run", 2, jobs_of(*rows))
    page = parsed((out / "report.html").read_text())
    assert not [f for f in page.all("figure") if "bars" in f.attributes["class"]]
    assert parsed(compare_jobs_page([read_jobs_folder(out)] * 2)).all("table")


def test_a_large_run_is_a_map_of_limited_size(tmp_path: Path) -> None:
    rows = [(f"j{n}", float(n // 20), 1 + n % 7, 30.0) for n in range(4000)]
    out = folder_of(tmp_path / "run", 300, jobs_of(*rows))
    page = parsed((out / "report.html").read_text())
    kinds = [figure.attributes["class"] for figure in page.all("figure")]
    assert any("heat" in kind for kind in kinds)
    assert not any("bars" in kind for kind in kinds)
    assert (out / "report.html").stat().st_size < 1_000_000


def test_a_wait_names_the_jobs_that_held_the_hosts(tmp_path: Path) -> None:
    rows = [("long", 0.0, 2, 30.0), ("small", 0.0, 1, 10.0), ("wide", 5.0, 3, 5.0)]
    out = folder_of(tmp_path / "run", 3, jobs_of(*rows, ("late", 6.0, 1, 4.0)), "easy")
    record = read_record(out)
    wait = long_waits(record, 3)[0]
    assert record.names[wait.place] == "wide"
    assert wait.waited_s == 25
    assert wait.blocked == 1
    # From 5 to 30: long holds 2 hosts for 25 s, small 1 for 5 s, late 1 for 4 s.
    assert {record.names[n]: part for n, part in wait.holders} == pytest.approx(
        {"long": 50 / 59, "small": 5 / 59, "late": 4 / 59}
    )
    assert wait.released_by is not None
    assert record.names[wait.released_by] == "long"
    assert wait.overtaken_by == 1


def test_means_of_steps_equal_a_sum_over_small_parts() -> None:
    times, counts = count_over_time(np.array([1.0, 2.0, 2.0]), np.array([4.0, 5.5, 9.0]))
    edges = np.array([0.0, 1.5, 3.0, 10.0])
    fine = np.arange(0, 10, 0.001) + 0.0005
    held = np.array([counts[times <= at].tolist()[-1:] or [0.0] for at in fine])[:, 0]
    slow = [held[(fine > a) & (fine < b)].mean() for a, b in pairwise(edges)]
    assert step_mean(times, counts, edges) == pytest.approx(slow, abs=1e-3)


def test_files_of_batsim_without_a_summary_have_a_page(tmp_path: Path) -> None:
    out = folder_of(tmp_path / "run", 2, jobs_of(("a", 0.0, 2, 10.0)))
    (out / "summary.json").unlink()
    saved = read_jobs_folder(out)
    assert saved.hosts == ("0", "1")
    assert saved.result.makespan == 10
    assert "<svg" in jobs_page(saved)


def test_bad_folders_are_refused_with_codes(tmp_path: Path) -> None:
    out = folder_of(tmp_path / "run", 1, jobs_of(("a", 0.0, 1, 1.0)))
    with pytest.raises(eq.InvalidInput) as again:
        prepare_folder(out)
    assert again.value.problems[0].code == "already-exists"
    (out / "summary.json").unlink()
    with pytest.raises(eq.InvalidInput) as files:
        prepare_folder(out)
    assert files.value.problems[0].code == "already-exists"
    with pytest.raises(eq.InvalidInput) as file:
        prepare_folder(out / "jobs.csv")
    assert file.value.problems[0].code == "not-a-folder"
    (out / "jobs.csv").write_text("job_id\n1\n")
    with pytest.raises(eq.InvalidInput) as columns:
        read_jobs_folder(out)
    assert columns.value.problems[0].code == "table-invalid"
