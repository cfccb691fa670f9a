"""Reads the Standard Workload Format, job by job, also compressed (``.gz``, ``.zip``).

A job of 100 s stays a job of 100 s. What a record leaves open is a choice of ``SwfChoices``.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from math import inf
from pathlib import Path
from typing import Final, TextIO

from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.work import UNLIMITED, DelayWork, Job

_FIELDS_MIN: Final = 9
_STATUS_FIELD: Final = 10
STATUSES: Final[Mapping[str, int]] = {
    "failed": 0,
    "completed": 1,
    "partial": 2,
    "last-partial": 3,
    "failed-partial": 4,
    "cancelled": 5,
    "unknown": -1,
}
"""The states of a job at its end, by name."""
_SIZE_KEYS: Final = ("MaxProcs", "MaxNodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwfChoices:
    """What a job takes from its record. The defaults repeat what happened."""

    requested_processors: bool = False
    """Use the processors that the job requested, not those that it was given."""
    walltime: bool = True
    """The requested time is the walltime; without it, a policy knows the true run time."""
    skip: frozenset[str] = frozenset()
    """Leave out jobs that ended so: names of ``STATUSES``."""


def is_swf(path: Path) -> bool:
    """True if the name is that of an SWF file, compressed or not."""
    return path.name.lower().endswith((".swf", ".swf.gz", ".swf.zip"))


@contextmanager
def _open_swf(path: Path) -> Iterator[TextIO]:
    """Open a record as text; a damaged archive is a problem of the file."""
    try:
        name = path.name.lower()
        if name.endswith(".gz"):
            with gzip.open(path, "rt", encoding="latin-1") as text:
                yield text
        elif name.endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                members = [name for name in archive.namelist() if name.lower().endswith(".swf")]
                if len(members) != 1:
                    what = f"holds {len(members)} files of the kind .swf"
                    raise _problem(path, what, "pack one of them")
                with archive.open(members[0]) as raw:
                    yield TextIOWrapper(raw, encoding="latin-1")
        else:
            with path.open(encoding="latin-1") as plain:
                yield plain
    except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
        what = f"is damaged: {error}"
        raise _problem(path, what, "fetch the file again") from None
    except OSError as error:
        what = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise _problem(path, what, "name a file") from None


def _problem(path: Path, what: str, cure: str, line: int | None = None) -> InvalidInput:
    return InvalidInput(str(path), [InputProblem(key="", what=what, cure=cure, line=line)])


def read_swf_header(path: Path) -> dict[str, str]:
    """Return the lines ``; Key: value`` before the first job; a repeated key keeps its first."""
    header: dict[str, str] = {}
    with _open_swf(path) as file:
        for line in file:
            if line.strip() and not line.startswith(";"):
                break
            key, colon, value = line.lstrip("; \t").partition(":")
            if colon and key.strip() and " " not in key.strip():
                header.setdefault(key.strip(), value.strip())
    return header


def read_swf_size(path: Path) -> int:
    """Return the number of processors that the header states; 0 if it states none."""
    header = read_swf_header(path)
    for key in _SIZE_KEYS:
        words = header.get(key, "").split()
        if words and words[0].isdecimal() and int(words[0]) > 0:
            return int(words[0])
    return 0


def read_swf(path: Path, workload: str = "w0", choices: SwfChoices | None = None) -> Iterator[Job]:
    """Yield the jobs that ran on at least one processor; one job is in memory at a time.

    A job whose processors are unknown in one column has those of the other. A job without run
    time did not run and is left out, as are those that ``choices`` skips.
    """
    chosen = choices or SwfChoices()
    reader = _LineReader(workload, chosen)
    with _open_swf(path) as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if not fields or fields[0].startswith(";"):
                continue
            try:
                job = reader.read(fields)
            except (ValueError, OverflowError) as error:
                what = f"is no job: {error}"
                raise _problem(path, what, "write 18 numbers, -1 if unknown", number) from None
            if job is not None:
                yield job


class SeenNumbers:
    """The numbers of the jobs so far, as runs of neighbours: a record has few."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, number: int) -> bool:
        """Add a number; return whether it is new."""
        lasts = self._lasts
        if lasts and number == lasts[-1] + 1:
            lasts[-1] = number
            return True
        place = bisect_left(lasts, number)
        if place < len(lasts) and self._firsts[place] <= number:
            return False
        if place < len(lasts) and self._firsts[place] == number + 1:
            self._firsts[place] = number
        elif place and lasts[place - 1] == number - 1:
            lasts[place - 1] = number
        else:
            self._firsts.insert(place, number)
            lasts.insert(place, number)
        return True


class _LineReader:
    """Makes jobs of the fields of lines. Equal run times share one description of work."""

    def __init__(self, workload: str, choices: SwfChoices) -> None:
        self._workload = workload
        self._works: dict[str, DelayWork] = {}
        self._skipped = {STATUSES[name] for name in choices.skip}
        self._columns = (7, 4) if choices.requested_processors else (4, 7)
        self._walltime = choices.walltime
        self._seen = SeenNumbers()

    def read(self, fields: list[str]) -> Job | None:
        """Return the job of a line; ``None`` if it is left out."""
        if len(fields) < _FIELDS_MIN:
            raise ValueError(f"it has {len(fields)} fields")
        if not self._seen.add(int(fields[0])):
            raise ValueError(f"its number is {fields[0]}, as of another job")
        first, second = self._columns
        processors = int(float(fields[first]))
        if processors <= 0:
            processors = int(float(fields[second]))
        submit_s = float(fields[1])
        if not 0 <= submit_s < inf:
            raise ValueError(f"its submit time is {fields[1]}")
        work = self._works.get(fields[3])
        if work is None:
            run_s = float(fields[3])
            if not -inf < run_s < inf:
                raise ValueError(f"its run time is {fields[3]}")
            if run_s <= 0:
                return None
            work = self._works[fields[3]] = DelayWork(name=fields[3], seconds=run_s)
        requested_s = float(fields[8])
        if processors <= 0 or (self._skipped and self._status(fields) in self._skipped):
            return None
        # A delay as long as its walltime would be timed out, so an exact request is no limit.
        limited = self._walltime and requested_s > 0 and requested_s != work.seconds
        limit_s = requested_s if limited else UNLIMITED
        return Job(self._workload, fields[0], submit_s, processors, work, limit_s)

    @staticmethod
    def _status(fields: list[str]) -> int:
        return int(float(fields[_STATUS_FIELD])) if len(fields) > _STATUS_FIELD else -1
