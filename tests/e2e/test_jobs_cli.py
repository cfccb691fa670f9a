"""``equipoise jobs``: folders, journals, replay, comparison and Parquet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import call_here

JOBS = Path(__file__).parents[2] / "examples" / "jobs"
INPUTS = ("-p", str(JOBS / "platform.xml"), "-w", str(JOBS / "workload.json"))


def test_a_replay_of_either_journal_has_the_figures_of_the_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    figures = json.loads(call_here("jobs", *INPUTS, "--out", str(out), "--json").stdout)
    call_here("jobs", *INPUTS, "--journal", str(tmp_path / "run.db"))
    for journal in (out / "journal.jsonl", tmp_path / "run.db"):
        replayed = json.loads(call_here("replay", str(journal)).stdout)
        assert replayed["complete"]
        assert replayed["active"] == 0
        common = {key: value for key, value in replayed.items() if key in figures}
        assert len(common) == len(figures) - 1
        assert common == {key: figures[key] for key in common}
    half = json.loads(call_here("replay", str(out / "journal.jsonl"), "--until", "40").stdout)
    assert not half["complete"]
    assert half["active"] > 0
    events = json.loads(call_here("journal", str(out / "journal.jsonl"), "--json").stdout)
    assert events["sha256"] == json.loads((out / "summary.json").read_text())["journal_sha256"]
    rejected = call_here("journal", str(out / "journal.jsonl"), "--kind", "job_rejected")
    assert rejected.stdout.count("\n") == 1


def test_several_policies_are_compared_in_one_page(tmp_path: Path) -> None:
    out = tmp_path / "both"
    done = call_here("jobs", *INPUTS, "--policy", "easy,fcfs", "--out", str(out), "--json")
    easy, fcfs = json.loads(done.stdout)["runs"]
    assert easy["mean_waiting_time"] < fcfs["mean_waiting_time"]
    assert (out / "report.html").stat().st_size > 10_000
    compared = call_here("report", str(out / "easy"), str(out / "fcfs"), "--json")
    rows = {row["measure"]: row for row in json.loads(compared.stdout)["differences"]}
    assert rows["mean waiting time"]["better"] == "A"
    page = tmp_path / "again.html"
    assert call_here("report", str(out / "easy"), "--out", str(page)).returncode == 0
    assert page.read_text() == (out / "easy" / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--policy", "easy,lucky"), "unknown-name"),
        (("--policy", "easy,easy"), "duplicate-name"),
        (("--policy", "easy,fcfs", "-e", "x"), "contradiction"),
        (("--parquet",), "contradiction"),
        (("--out", "{tmp}/file/run"), "file-not-writable"),
        (("--out", "{tmp}/file"), "not-a-folder"),
    ],
)
def test_bad_options_end_with_2_and_a_code(
    tmp_path: Path, arguments: tuple[str, ...], code: str
) -> None:
    if "--parquet" in arguments:
        pytest.importorskip("pyarrow")
    (tmp_path / "file").write_text("")
    given = [argument.format(tmp=tmp_path) for argument in arguments]
    done = call_here("jobs", *INPUTS, *given, "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["problems"][0]["code"] == code


def test_parquet_has_typed_columns_and_all_jobs(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    call_here("jobs", *INPUTS, "-e", str(tmp_path / "x"), "--parquet")
    jobs = parquet.read_table(tmp_path / "x_jobs.parquet")
    assert jobs.num_rows == 61
    kinds = {field.name: str(field.type) for field in jobs.schema}
    assert kinds["submission_time"] == kinds["waiting_time"] == "double"
    assert kinds["requested_number_of_resources"] == "int64"
    assert "string" in kinds["job_id"]
    states = parquet.read_table(tmp_path / "x_machine_states.parquet")
    assert states.column("nb_computing").to_pylist()[-1] == 0
