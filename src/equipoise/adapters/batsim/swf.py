"""Reads the Standard Workload Format, job by job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.work import UNLIMITED, DelayWork, Job

_FIELDS_MIN = 9


def read_swf_size(path: Path) -> int:
    """Return the number of processors that the header states; 0 if it states none."""
    sizes = {"MaxProcs": 0, "MaxNodes": 0}
    with path.open(encoding="latin-1") as file:
        for line in file:
            if not line.startswith(";"):
                break
            key, _, value = line.lstrip("; ").partition(":")
            if key.strip() in sizes and value.split():
                sizes[key.strip()] = int(value.split()[0])
    return sizes["MaxProcs"] or sizes["MaxNodes"]


def read_swf(path: Path, workload: str = "w0") -> Iterator[Job]:
    """Yield the jobs that ran; a job of 100 s stays a job of 100 s.

    A job has the processors that it was given, or else those that it requested. Its walltime is
    the requested time; the run time ends a job that was recorded longer than that.
    """
    works: dict[str, DelayWork] = {}
    with path.open(encoding="latin-1") as file:
        for number, line in enumerate(file, 1):
            if line.startswith(";") or not line.strip():
                continue
            fields = line.split()
            try:
                job = _job(fields, workload, works)
            except (ValueError, IndexError):
                problem = InputProblem(
                    key="", what="is no line of a job", cure="write 18 numbers", line=number
                )
                raise InvalidInput(str(path), [problem]) from None
            if job is not None:
                yield job


def _job(fields: list[str], workload: str, works: dict[str, DelayWork]) -> Job | None:
    if len(fields) < _FIELDS_MIN:
        raise ValueError("too few fields")
    processors = int(float(fields[4]))
    if processors <= 0:
        processors = int(float(fields[7]))
    run_s = float(fields[3])
    if processors <= 0 or run_s <= 0:
        return None
    work = works.get(fields[3])
    if work is None:
        work = works[fields[3]] = DelayWork(name=fields[3], seconds=run_s)
    requested_s = float(fields[8])
    # A delay as long as its walltime would be timed out, so an exact request is no limit.
    limit_s = requested_s if requested_s > 0 and requested_s != run_s else UNLIMITED
    return Job(workload, fields[0], float(fields[1]), processors, work, limit_s)
