"""The data of a run of jobs that its page shows, read from its CSV files.

The files are those of Batsim, so the page has one source, whichever scheduler made the run.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from equipoise.errors import InvalidInput
from equipoise.report.chart.frame import Floats, TimeSpan

HOST_STATES: Final = {
    "computing": "nb_computing",
    "idle": "nb_idle",
    "switching on": "nb_switching_on",
    "switching off": "nb_switching_off",
    "sleeping": "nb_sleeping",
}
ENERGY_FILES: Final = ("consumed_energy.csv", "energy.csv")
"""The energy at each event as Batsim writes it, or our samples of it."""
SUCCEEDED: Final = "COMPLETED_SUCCESSFULLY"
REJECTED: Final = "REJECTED"
_CURE: Final = "use a folder that 'equipoise jobs --out' wrote"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """All jobs of a run, one place per job in each field; a rejected job has times NaN."""

    names: Sequence[str]
    states: Sequence[str]
    submit_s: Floats
    start_s: Floats
    end_s: Floats
    requested: Floats
    hosts: Sequence[str]
    """The hosts of each job as intervals such as ``0-3 7``."""
    host_times: Floats
    host_counts: dict[str, Floats]
    """How many hosts are in each state, from each of ``host_times`` on."""
    energy_times: Floats
    energy_j: Floats
    """The energy so far at each of ``energy_times``; empty if none was measured."""

    @property
    def ran(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which jobs have run."""
        return np.isfinite(self.end_s)

    @property
    def span(self) -> TimeSpan:
        """The time from the start of the run to its last event, never an empty span."""
        last = [times[np.isfinite(times)] for times in (self.end_s, self.submit_s)]
        high_s = float(np.concatenate([*last, self.host_times]).max(initial=0.0))
        return TimeSpan(0.0, high_s if high_s > 0 else 1.0)

    def intervals(self, place: int) -> list[tuple[int, int]]:
        """Return the first and the last host of each interval of a job."""
        pairs = []
        for part in self.hosts[place].split():
            first, _, last = part.partition("-")
            pairs.append((int(first), int(last or first)))
        return pairs


def read_record(folder: Path) -> JobRecord:
    """Read the CSV files of a run; ``InvalidInput`` names the file that is wrong."""
    jobs = _read(folder / "jobs.csv", (
        "job_id", "final_state", "submission_time", "starting_time", "finish_time",
        "requested_number_of_resources", "allocated_resources",
    ))  # fmt: skip
    state_columns = ("time", *HOST_STATES.values())
    states: dict[str, tuple[str, ...]] = dict.fromkeys(state_columns, ())
    if (folder / "machine_states.csv").exists():
        states = _read(folder / "machine_states.csv", state_columns)
    found = [folder / name for name in ENERGY_FILES if (folder / name).exists()]
    energy_file = found[0] if found else folder / ENERGY_FILES[0]
    energy = _read(energy_file, ("time", "energy")) if found else {}
    return JobRecord(
        names=jobs["job_id"],
        states=jobs["final_state"],
        submit_s=_numbers(folder, "jobs.csv", jobs["submission_time"]),
        start_s=_numbers(folder, "jobs.csv", jobs["starting_time"]),
        end_s=_numbers(folder, "jobs.csv", jobs["finish_time"]),
        requested=_numbers(folder, "jobs.csv", jobs["requested_number_of_resources"]),
        hosts=jobs["allocated_resources"],
        host_times=_numbers(folder, "machine_states.csv", states["time"]),
        host_counts={
            name: _numbers(folder, "machine_states.csv", states[column])
            for name, column in HOST_STATES.items()
        },
        energy_times=_numbers(folder, energy_file.name, energy.get("time", ())),
        energy_j=_numbers(folder, energy_file.name, energy.get("energy", ())),
    )


def _read(path: Path, needed: Sequence[str]) -> dict[str, tuple[str, ...]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise bad_file(path, f"cannot be read: {error}", "file-not-readable") from error
    head = rows[0] if rows else []
    missing = [name for name in needed if name not in head]
    if missing:
        raise bad_file(path, f"has no column {', '.join(missing)}", "table-invalid")
    wrong = next((n for n, row in enumerate(rows, 1) if len(row) != len(head)), None)
    if wrong is not None:
        raise bad_file(path, f"line {wrong} has {len(rows[wrong - 1])} cells", "table-invalid")
    columns = list(zip(*rows[1:], strict=True)) or [()] * len(head)
    return dict(zip(head, columns, strict=True))


def _numbers(folder: Path, name: str, cells: Sequence[str]) -> Floats:
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)
    except ValueError as error:
        raise bad_file(folder / name, f"has no number: {error}", "not-a-number") from error


def bad_file(path: Path, what: str, code: str) -> InvalidInput:
    """Return the error about a file of a run."""
    return InvalidInput.of(str(path), what, cure=_CURE, code=code)


def step_mean(times: Floats, values: Floats, edges: Floats) -> Floats:
    """Return the mean between neighbouring edges of a value that holds until the next time.

    Before the first time the value is 0.
    """
    if not len(times):
        return np.zeros(len(edges) - 1)
    held = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])
    place = np.searchsorted(times, edges, side="right") - 1
    known = np.maximum(place, 0)
    total = held[known] + values[known] * (edges - times[known])
    return np.diff(np.where(place >= 0, total, 0.0)) / np.diff(edges)


def count_over_time(ups: Floats, downs: Floats) -> tuple[Floats, Floats]:
    """Return times and counts of a number that rises at ``ups`` and falls at ``downs``."""
    times = np.concatenate([ups, downs])
    change = np.concatenate([np.ones(len(ups)), -np.ones(len(downs))])
    order = np.argsort(times, kind="stable")
    found, first = np.unique(times[order], return_index=True)
    counts = np.cumsum(np.add.reduceat(change[order], first)) if len(found) else change
    return found, counts


def job_widths(record: JobRecord) -> Floats:
    """Return the number of hosts of each job."""
    return np.array(
        [
            float(sum(last - first + 1 for first, last in record.intervals(place)))
            for place in range(len(record.names))
        ],
        dtype=np.float64,
    )


def used_hosts(record: JobRecord, widths: Floats) -> tuple[Floats, Floats]:
    """Return times, and how many hosts run jobs from each of them on."""
    ran = record.ran
    times = np.concatenate([record.start_s[ran], record.end_s[ran]])
    change = np.concatenate([widths[ran], -widths[ran]])
    order = np.argsort(times, kind="stable")
    found, first = np.unique(times[order], return_index=True)
    return found, np.cumsum(np.add.reduceat(change[order], first)) if len(found) else change
