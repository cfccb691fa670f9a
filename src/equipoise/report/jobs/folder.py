"""The folder of a run of jobs: the CSV files of Batsim, the journal, the page and the summary.

``summary.json`` is written last. A folder of CSV files without one, such as real Batsim writes,
can be read, too: its hosts then have numbers for names.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from equipoise.documents.simulation import JobsDocument, JobsRunDocument
from equipoise.errors import InvalidInput, MissingExtra, WorldError
from equipoise.report.jobs.data import HOST_STATES, JobRecord, bad_file, read_record
from equipoise.report.jobs.page import jobs_page
from equipoise.report.run_folder import PAGE, SUMMARY, check_folder, write_parquet
from equipoise.sim.measure.sampling import SampleTable

KIND: Final = "jobs"
_SCHEDULE: Final = "schedule.csv"
_WHOLE: Final = frozenset({"requested_number_of_resources", "success"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedJobs:
    """A run of jobs, read from its folder."""

    name: str
    """The name of the folder."""
    workload: str
    hosts: tuple[str, ...]
    result: JobsDocument
    record: JobRecord
    stopped: str = ""
    """Why the run stopped before its end; empty if it did not."""

    @property
    def title(self) -> str:
        """The name of the workload without its folder."""
        return Path(self.workload).name or self.name


def prepare_folder(folder: Path) -> None:
    """Make the folder of a new run; reject one that is in use, or that cannot be written."""
    check_folder(folder)
    if (folder / _SCHEDULE).exists() or (folder / "jobs.csv").exists():
        what, cure = "already holds the files of another run", "name a new folder"
        raise InvalidInput.of(str(folder), what, cure=cure, code="already-exists")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PAGE).write_text("", encoding="utf-8")
    except OSError as error:
        what = f"cannot be written: {(error.strerror or '').lower()}"
        raise InvalidInput.of(
            str(folder), what, cure="name another folder", code="file-not-writable"
        ) from error


def write_jobs_folder(folder: Path, document: JobsRunDocument) -> Path:
    """Write page and summary beside the files of a run; return the page."""
    page = jobs_page(_saved_jobs(folder, document, read_record(folder)))
    try:
        (folder / PAGE).write_text(page, encoding="utf-8")
        written = json.dumps(document.to_json_object(), indent=2, ensure_ascii=False) + "\n"
        (folder / SUMMARY).write_text(written, encoding="utf-8")
    except OSError as error:
        raise WorldError(f"{folder}: cannot write the run: {error}") from error
    return folder / PAGE


def is_jobs_folder(folder: Path) -> bool:
    """Whether a folder holds a run of jobs, complete or not."""
    return (folder / "jobs.csv").is_file()


def read_jobs_folder(folder: Path) -> SavedJobs:
    """Read a folder that ``write_jobs_folder`` or Batsim wrote."""
    record = read_record(folder)
    path = folder / SUMMARY
    if path.is_file():
        try:
            document = msgspec.json.decode(path.read_bytes(), type=JobsRunDocument)
        except (OSError, msgspec.DecodeError) as error:
            raise bad_file(path, f"is no summary of a run of jobs: {error}", "not-a-run") from error
    else:
        result = _read_schedule(folder / _SCHEDULE)
        hosts = tuple(str(number) for number in range(result.nb_computing_machines))
        document = JobsRunDocument(
            kind=KIND, workload="", hosts=hosts, journal_sha256="", result=result
        )
    return _saved_jobs(folder, document, record)


def _saved_jobs(folder: Path, document: JobsRunDocument, record: JobRecord) -> SavedJobs:
    return SavedJobs(
        name=folder.resolve().name,
        workload=document.workload,
        hosts=document.hosts,
        result=document.result,
        record=record,
        stopped=document.stopped,
    )


def _read_schedule(path: Path) -> JobsDocument:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            row = next(csv.DictReader(file), {})
        known: dict[str, Any] = {
            name: row.get(name, "0") for name in JobsDocument.__struct_fields__
        }
        known |= {"policy": "", "wall_s": row.get("simulation_time", "0")}
        # Batsim writes ``nan`` where a platform measures no energy.
        known["consumed_joules"] = known["consumed_joules"].replace("nan", "0").replace("-0", "0")
        return msgspec.convert(known, JobsDocument, strict=False)
    except (OSError, UnicodeDecodeError, csv.Error, msgspec.ValidationError) as error:
        raise bad_file(path, f"cannot be read: {error}", "table-invalid") from error


def require_parquet() -> None:
    """Raise ``MissingExtra`` if Parquet files cannot be written."""
    if find_spec("pyarrow") is None:
        raise MissingExtra("parquet", "Parquet output")


def write_job_tables(
    paths: tuple[Path, Path],
    jobs: Mapping[str, Sequence[Any]],
    times: Sequence[float],
    counts: Mapping[str, Sequence[int]],
) -> None:
    """Write the jobs and the states of hosts as Parquet, with all digits."""
    columns = {
        name: np.array(values, dtype=np.int64) if name in _WHOLE
        else np.array(values, dtype=object) if values and isinstance(values[0], str)
        else np.array(values, dtype=np.float64)
        for name, values in jobs.items()
    }  # fmt: skip
    states = {
        column: np.array(counts[name], dtype=np.int64) for name, column in HOST_STATES.items()
    }
    require_parquet()
    write_parquet(paths[0], SampleTable(columns))
    write_parquet(paths[1], SampleTable({"time": np.array(times, dtype=np.float64)} | states))
