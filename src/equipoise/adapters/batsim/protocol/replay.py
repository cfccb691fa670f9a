"""Replays a recorded exchange: the recorded replies go to our simulation, and every message and
output file is compared with the recorded one."""

from __future__ import annotations

import csv
import dataclasses
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from equipoise.adapters.batsim.outputs import job_line
from equipoise.adapters.batsim.protocol.messages import SchedulerError
from equipoise.adapters.batsim.protocol.options import ProtocolOptions
from equipoise.adapters.batsim.protocol.setup import BatsimSetup
from equipoise.adapters.batsim.summary import schedule_row, summary_values
from equipoise.errors import EquipoiseError
from equipoise.sim.jobs.record.replay import JobReplay
from equipoise.store import Journal, MemoryJournal

_WALL_CLOCK: Final = frozenset({"scheduling_time", "simulation_time"})
_PRINTED: Final = 1.001e-6
"""One unit of the last printed digit of a time."""
_SIGNIFICANT: Final = 1.001e-5
"""One unit of the last digit of a number with six significant digits."""
_FILES: Final = ("jobs", "schedule", "machine_states", "pstate_changes", "consumed_energy")

EXPLAINED: Final = {
    "pr_random60_share": (
        "Batsim lets a task run on for the time of one message after its walltime; that shows in "
        "three mean powers over rounding errors of time (5e-15 s), and all else is equal"
    ),
}
"""The recorded runs of Batsim 4.2.0 that differ, and why."""


@dataclass(slots=True)
class ReplayResult:
    """What a replay found."""

    name: str
    messages: int = 0
    differences: list[str] = field(default_factory=list)
    """The first difference of messages, and the first one of each file; empty if all is equal."""


def parse_command(command: str, folder: Path, export: str) -> BatsimSetup:
    """Return the setup of a command line of Batsim whose files are in a folder."""
    words = iter(shlex.split(command)[1:])
    values: dict[str, list[str]] = {}
    flags = set()
    for word in words:
        if word in {"-p", "-w", "-e", "-s", "--events"}:
            values.setdefault(word, []).append(next(words))
        else:
            flags.add(word)
    return BatsimSetup(
        platform=folder / values["-p"][0],
        workloads=[folder / name for name in values["-w"]],
        events=[folder / name for name in values.get("--events", ())],
        export=export,
        hosts_of_workload="--mmax-workload" in flags,
        host_states="--disable-machine-state-tracing" not in flags,
        options=ProtocolOptions(
            energy="-E" in flags,
            batsim_energy=True,
            compute_sharing="--enable-compute-sharing" in flags,
            dynamic_jobs="--enable-dynamic-jobs" in flags,
            acknowledge_dynamic_jobs="--acknowledge-dynamic-jobs" in flags,
            profile_reuse="--enable-profile-reuse" in flags,
            forward_profiles="--forward-profiles-on-submission" in flags,
            forward_unknown_events="--forward-unknown-events" in flags,
        ),
    )


def replay(recorded: Path, inputs: Path, out: Path) -> ReplayResult:
    """Replay the run of a folder with ``run.json``, ``messages.jsonl`` and output files."""
    result = ReplayResult(recorded.name)
    run = msgspec.json.decode((recorded / "run.json").read_bytes())
    lines = (recorded / "messages.jsonl").read_bytes().splitlines()
    exchange = [msgspec.json.decode(line) for line in lines]
    try:
        journal = MemoryJournal()
        setup = parse_command(run["batsim_cmd"], inputs, str(out / "out"))
        setup = dataclasses.replace(setup, journal=journal)
        # A scheduler that dies leaves a last message without a reply.
        aborted = run["batsim_rc"] != 0 and exchange[-1]["from"] != "batsim"
        _exchange(setup, exchange, aborted=aborted, result=result)
    except EquipoiseError as error:
        result.differences.append(str(error))
        return result
    result.differences.extend(_compare_journal(journal, out))
    if aborted:
        # Batsim loses the rows in its buffers when it aborts; ours are complete.
        return result
    for name in _FILES:
        expected, found = recorded / f"out_{name}.csv", out / f"out_{name}.csv"
        if expected.exists() and found.exists():
            result.differences.extend(_compare_files(name, expected, found))
        elif expected.exists():
            result.differences.append(f"{name}.csv is not written")
    return result


def _exchange(
    setup: BatsimSetup, exchange: list[dict[str, Any]], *, aborted: bool, result: ReplayResult
) -> None:
    simulation = setup.build()
    try:
        message = simulation.begin()
        for entry in exchange:
            if entry["from"] == "batsim":
                result.messages += 1
                if message is None:
                    result.differences.append(f"message {result.messages}: the simulation ended")
                    return
                found = first_difference(entry["msg"], message)
                if found is not None:
                    result.differences.append(f"message {result.messages}{found}")
                    return
                message = None
            else:
                message = simulation.receive(entry["msg"])
        if message is not None and exchange[-1]["from"] != "batsim":
            result.differences.append(f"one message more: {message}")
        if aborted:
            result.differences.append("Batsim refused the last reply, this simulation did not")
    except SchedulerError as error:
        # Batsim aborts at a reply that it refuses, so the record ends there: the same refusal of
        # the last reply is the expected end.
        if not aborted or entry is not exchange[-1]:
            result.differences.append(f"refused: {error}")
    finally:
        simulation.finish()


def first_difference(expected: Any, message: dict[str, Any]) -> str | None:
    """Return where a message first differs from a recorded one; None if they are equal."""
    ours = msgspec.json.decode(msgspec.json.encode(message))
    return next(_differences(expected, ours, ""), None)


def _differences(expected: Any, found: Any, place: str) -> Iterator[str]:
    """Yield what differs in two values; numbers may differ in the last printed digit."""
    if isinstance(expected, dict) and isinstance(found, dict):
        yield from _object_differences(expected, found, place)
    elif isinstance(expected, list) and isinstance(found, list):
        for index, (entry, answer) in enumerate(zip(expected, found, strict=False)):
            yield from _differences(entry, answer, f"{place}[{index}]")
        if len(expected) != len(found):
            yield f"{place}: {len(found)} entries for {len(expected)}: {found} for {expected}"
    elif isinstance(expected, float | int) and isinstance(found, float | int):
        if abs(expected - found) > _PRINTED or isinstance(expected, bool) != isinstance(
            found, bool
        ):
            yield f"{place}: {found} for {expected}"
    elif expected != found:
        yield f"{place}: {found!r} for {expected!r}"


def _object_differences(
    expected: dict[str, Any], found: dict[str, Any], place: str
) -> Iterator[str]:
    # Batsim drops profiles that no job uses, in the order of a hash table; ours are all there.
    extra = set() if ".profiles." in place else found.keys() - expected.keys()
    if extra or expected.keys() - found.keys():
        yield f"{place}: keys {sorted(expected.keys() ^ found.keys())}"
    for key in expected.keys() & found.keys():
        left, right = expected[key], found[key]
        if place.endswith(".workloads"):
            left, right = Path(left).name, Path(right).name
        yield from _differences(left, right, f"{place}.{key}")


def _compare_journal(journal: Journal, out: Path) -> Iterator[str]:
    """Yield what the journal alone does not give as the files of the same run have it."""
    rebuilt = JobReplay().replay(journal.events())
    lines = [job_line(job, job.work.name) for job in rebuilt.jobs]
    with (out / "out_jobs.csv").open(newline="", encoding="utf-8") as file:
        written = file.readlines()[1:]
    if lines != written:
        yield f"journal: {len(lines)} jobs for {len(written)}, or in another state or order"
    with (out / "out_schedule.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    values = summary_values(rebuilt)
    values["nb_grouped_switches"] = rebuilt.switches
    values["nb_machine_switches"] = rebuilt.switched_hosts
    for column, value in schedule_row(values, 0.0).items():
        if column not in _WALL_CLOCK and row[column] != value:
            yield f"journal: {column} is {value} for {row[column]}"


def _compare_files(name: str, expected: Path, found: Path) -> Iterator[str]:
    with expected.open(newline="") as left, found.open(newline="") as right:
        rows, our_rows = list(csv.DictReader(left)), list(csv.DictReader(right))
    for number, (row, ours) in enumerate(zip(rows, our_rows, strict=False), 1):
        if list(row) != list(ours):
            yield f"{name}.csv: columns {list(ours)} for {list(row)}"
            return
        for column, value in row.items():
            if column not in _WALL_CLOCK and not _equal_cells(value, ours[column]):
                yield f"{name}.csv row {number} {column}: {ours[column]} for {value}"
                return
    if len(rows) != len(our_rows):
        yield f"{name}.csv: {len(our_rows)} rows for {len(rows)}"


def _equal_cells(expected: str, found: str) -> bool:
    if expected == found:
        return True
    try:
        left, right = float(expected), float(found)
    except ValueError:
        return False
    return abs(left - right) <= max(_PRINTED, _SIGNIFICANT * abs(left) * ("." not in expected))
