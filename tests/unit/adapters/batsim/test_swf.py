"""SWF records: what a line means, what is left out, and what is wrong with a file."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.adapters.batsim.swf import (
    SeenNumbers,
    SwfChoices,
    read_swf,
    read_swf_header,
    read_swf_size,
)
from equipoise.errors import InvalidInput
from equipoise.sim.jobs.work import UNLIMITED, DelayWork

HEADER = "; Version: 2.2\n; MaxNodes: 3\n; MaxProcs: 64 (4 a node)\n; UnixStartTime: 749458803\n"
LINES = (
    "1 0 5 100 8 -1 -1 16 200 -1 1 1 1 1 1 1 -1 -1\n"
    "2 10.5 5 2.25 -1 -1 -1 4 -1 -1 0 1 1 1 1 1 -1 -1\n"
    "3 11 5 0 4 -1 -1 4 10 -1 5 1 1 1 1 1 -1 -1\n"
    "4 9 5 7 2 -1 -1 -1 7 -1 5 1 1 1 1 1 -1 -1\n"
    "5 12 5 7 0 -1 -1 -1 7 -1 1 1 1 1 1 1 -1 -1\n"
)


def write(folder: Path, text: str, name: str = "a.swf") -> Path:
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    elif name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("folder/a.swf", text)
    else:
        path.write_bytes(text.encode())
    return path


def jobs(
    path: Path, choices: SwfChoices | None = None
) -> list[tuple[str, float, int, float, float]]:
    found = []
    for job in read_swf(path, choices=choices):
        assert isinstance(job.work, DelayWork)
        found.append(
            (job.name, job.submit_s, job.hosts_requested, job.work.seconds, job.walltime_s)
        )
    return found


@pytest.mark.parametrize("name", ["a.swf", "a.swf.gz", "a.swf.zip", "A.SWF"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_job_keeps_its_time_and_its_processors(tmp_path: Path, name: str, ends: str) -> None:
    path = write(tmp_path, (HEADER + LINES).replace("\n", ends), name)
    assert read_swf_size(path) == 64
    assert read_swf_header(path)["UnixStartTime"] == "749458803"
    assert jobs(path) == [
        ("1", 0, 8, 100, 200),
        ("2", 10.5, 4, 2.25, UNLIMITED),
        ("4", 9, 2, 7, UNLIMITED),
    ]


def test_choices_change_processors_walltime_and_what_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + LINES)
    requested = jobs(path, SwfChoices(requested_processors=True))
    assert [job[2] for job in requested] == [16, 4, 2]
    assert {job[4] for job in jobs(path, SwfChoices(walltime=False))} == {UNLIMITED}
    assert [job[0] for job in jobs(path, SwfChoices(skip=frozenset({"cancelled"})))] == ["1", "2"]
    assert [job[0] for job in jobs(path, SwfChoices(skip=frozenset({"failed"})))] == ["1", "4"]


@pytest.mark.parametrize("text", ["", "\n\n", HEADER])
def test_a_record_without_jobs_is_read(tmp_path: Path, text: str) -> None:
    assert jobs(write(tmp_path, text)) == []


@pytest.mark.parametrize(
    "line",
    [
        "1 2 3",
        "9 0 5 x 8 -1 -1 16 200",
        "9 -1 5 100 8 -1 -1 16 200",
        "9 0 5 nan 8 -1 -1 16 200",
        "9 0 5 100 inf -1 -1 16 200",
        "1 0 5 100 8 -1 -1 16 200",
        "x 0 5 100 8 -1 -1 16 200",
        '{"jobs": []}',
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, HEADER + LINES + line + "\n")
    with pytest.raises(InvalidInput) as wrong:
        jobs(path)
    problem = wrong.value.problems[0]
    assert problem.line == 10
    assert wrong.value.source == str(path)


@given(st.lists(st.integers(0, 12), max_size=14))
def test_a_number_is_refused_exactly_if_an_earlier_job_has_it(numbers: list[int]) -> None:
    seen = SeenNumbers()
    assert [seen.add(n) for n in numbers] == [n not in numbers[:k] for k, n in enumerate(numbers)]


@pytest.mark.parametrize("name", ["a.swf.gz", "a.swf.zip"])
@pytest.mark.parametrize("kept", [3, 60])
def test_a_damaged_archive_is_named(tmp_path: Path, name: str, kept: int) -> None:
    path = write(tmp_path, HEADER + LINES, name)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InvalidInput):
        jobs(path)


def test_an_archive_of_two_records_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.swf.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.swf", LINES)
        archive.writestr("b.swf", LINES)
    with pytest.raises(InvalidInput):
        jobs(path)
