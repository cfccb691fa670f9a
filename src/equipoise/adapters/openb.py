"""Reads the openb trace: CSV lists of the nodes and of the pods of a GPU cluster.

Times are seconds from the start of the trace. A share of a GPU is in thousandths (``gpu_milli``).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.work import DelayWork, Job

R = TypeVar("R")

_NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS: Final = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
_AMOUNT_MAX: Final = 10**15
_MILLI: Final = 1000
FAILED: Final = "Failed"
"""The phase of a pod whose containers ended with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenbNode:
    """A row of a list of nodes."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_model: str
    """Empty for a node without GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenbPod:
    """A row of a list of pods."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    """The share of each of its GPUs."""
    gpu_models: tuple[str, ...]
    """The models that it accepts; empty for any."""
    qos: str
    phase: str
    created_s: int
    deleted_s: int | None
    """None if the pod still existed at the end of the trace."""
    scheduled_s: int | None
    """None if the pod was never scheduled."""

    def run_s(self, trace_end_s: int) -> int:
        """Return how long it runs: until its deletion, or else until the end of the trace.

        A pod that was never scheduled in the recorded cluster runs as long as it existed there.
        """
        begin_s = self.created_s if self.scheduled_s is None else self.scheduled_s
        return (trace_end_s if self.deleted_s is None else self.deleted_s) - begin_s


def is_openb(path: Path) -> bool:
    """True if the name is that of a CSV file."""
    return path.name.lower().endswith(".csv")


def read_openb_nodes(path: Path) -> list[OpenbNode]:
    """Read a list of nodes."""
    return _read(path, _NODE_COLUMNS, _node, lambda node: node.name)


def read_openb_pods(path: Path) -> list[OpenbPod]:
    """Read a list of pods, in the order of the file."""
    return _read(path, _POD_COLUMNS, _pod, lambda pod: pod.name)


def trace_end_s(pods: Sequence[OpenbPod]) -> int:
    """Return the last time that a list of pods names."""
    times = (
        time_s
        for pod in pods
        for time_s in (pod.created_s, pod.deleted_s, pod.scheduled_s)
        if time_s is not None
    )
    return max(times, default=0)


def read_openb_jobs(path: Path, workload: str = "w0") -> list[Job]:
    """Return the pods of a list as batch jobs, in the order of their creation.

    A job requests a host for every processor or part of one. A pod that took no time did not run
    and is left out, as in the Standard Workload Format. A pod that failed returns 1.
    """
    pods = read_openb_pods(path)
    end_s = trace_end_s(pods)
    works: dict[tuple[int, int], DelayWork] = {}
    jobs = []
    for pod in sorted(pods, key=lambda pod: pod.created_s):
        run_s, code = pod.run_s(end_s), int(pod.phase == FAILED)
        if run_s <= 0:
            continue
        work = works.get((run_s, code))
        if work is None:
            work = DelayWork(name=str(run_s), return_code=code, seconds=float(run_s))
            works[run_s, code] = work
        processors = max(1, -(-pod.cpu_milli // _MILLI))
        jobs.append(Job(workload, pod.name, float(pod.created_s), processors, work))
    return jobs


def _read(
    path: Path,
    columns: Sequence[str],
    make: Callable[[Mapping[str, str]], R],
    name_of: Callable[[R], str],
) -> list[R]:
    found: dict[str, R] = {}
    for line, row in _rows(path, columns):
        try:
            record = make(row)
        except ValueError as error:
            raise _problem(path, str(error), "correct the row", line) from None
        name = name_of(record)
        if name in found:
            raise _problem(path, f"names {name!r:.60} again", "give it another name", line)
        found[name] = record
    return list(found.values())


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield each row with its line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, restval="", restkey="")
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                cure = f"write a list with the columns {','.join(columns)}"
                raise _problem(path, f"has no column {missing[0]}", cure, 1)
            for row in reader:
                if "" in row:
                    raise _problem(
                        path, "has more cells than the header", "correct the row", reader.line_num
                    )
                yield reader.line_num, row
    except OSError as error:
        what = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise _problem(path, what, "name a file") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise _problem(path, f"is no CSV: {error}", "save it as CSV in UTF-8") from None


def _problem(path: Path, what: str, cure: str, line: int | None = None) -> InvalidInput:
    return InvalidInput(str(path), [InputProblem(key="", what=what, cure=cure, line=line)])


def _node(row: Mapping[str, str]) -> OpenbNode:
    return OpenbNode(
        name=_text(row, "sn"),
        cpu_milli=_whole(row, "cpu_milli"),
        memory_mib=_whole(row, "memory_mib"),
        gpus=_whole(row, "gpu"),
        gpu_model=row["model"].strip(),
    )


def _pod(row: Mapping[str, str]) -> OpenbPod:
    return OpenbPod(
        name=_text(row, "name"),
        cpu_milli=_whole(row, "cpu_milli"),
        memory_mib=_whole(row, "memory_mib"),
        gpus=_whole(row, "num_gpu"),
        gpu_milli=_whole(row, "gpu_milli"),
        gpu_models=tuple(name for name in row["gpu_spec"].strip().split("|") if name),
        qos=row["qos"].strip(),
        phase=row["pod_phase"].strip(),
        created_s=_whole(row, "creation_time"),
        deleted_s=_whole_or_none(row, "deletion_time"),
        scheduled_s=_whole_or_none(row, "scheduled_time"),
    )


def _text(row: Mapping[str, str], column: str) -> str:
    text = row[column].strip()
    if not text:
        raise ValueError(f"has no {column}")
    return text


def _whole_or_none(row: Mapping[str, str], column: str) -> int | None:
    return _whole(row, column) if row[column].strip() else None


def _whole(row: Mapping[str, str], column: str) -> int:
    text = row[column].strip()
    # Decimal digits only: ``int`` also reads signs, underscores and spaces.
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(_AMOUNT_MAX)):
        raise ValueError(f"has {column} {text!r:.40}, which is no whole number from 0 on")
    return int(text)
