"""Observations for advice: the demand history of a cluster, from a file of series or a journal.

With them, stable times, windows and forecasts have the same input as in the control loop.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Final

from equipoise.api.loading import read_bytes
from equipoise.control.drift import drift
from equipoise.control.loop import ControlLoop
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.action_durations import Estimates
from equipoise.model.diagnostics import closest_match, quoted
from equipoise.model.event import ClusterLoaded, DemandObserved, Event
from equipoise.model.problem.problem import MIB_PER_S_BY_MBPS
from equipoise.model.quantity import VmId
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm
from equipoise.store import Journal, MemoryJournal, open_journal

COLUMNS: Final = ("time", "vm", "cpu_mhz", "memory_mib")
"""The columns of a history file; others are ignored."""
PROBLEMS_SHOWN: Final = 20
TIME_MS_MAX: Final = 10**15
AMOUNT_MAX: Final = 10**9
_DELIMITERS: Final = ",;\t"
_NUMBER_CURE: Final = "write a plain number that is at least 0, with a dot for the fraction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A cluster with what is known of its past."""

    snapshot: Snapshot
    """The present state, with the last hour of demand."""
    past: tuple[Snapshot, ...] = ()
    """The states after earlier observations, oldest first, for deciders that learn."""
    unknown: tuple[str, ...] = field(default=())
    """The VMs of the history file that the cluster does not have."""


def with_link_speed(estimates: Estimates, mbps: float) -> Estimates:
    """Return the estimates for migrations over links of this speed."""
    return estimates.but(migration_mib_per_s=mbps * MIB_PER_S_BY_MBPS)


def first_observation(scenario: Scenario) -> Observation:
    """Return the state that the first pass of a simulation reads."""
    from equipoise.sim.world.simulated_world import SimulatedWorld

    # The loop without deciders observes the world and decides nothing.
    loop = ControlLoop(SimulatedWorld(scenario), MemoryJournal())
    loop.run(0)
    return Observation(snapshot=loop.snapshot())


def with_journal(now: Snapshot, journal: Journal | str) -> Observation:
    """Return a cluster with the past that the journal of a control loop tells.

    The journal ends where the cluster is now. Differences count as changes from outside, as in the
    loop.
    """
    if isinstance(journal, Journal):
        return _after_events(now, journal.events(), journal.source)
    with open_journal(journal, create=False) as opened:
        return _after_events(now, opened.events(), opened.source)


def _after_events(now: Snapshot, events: Iterable[Event], source: str) -> Observation:
    """Return the state after the events, and after what has changed since the last one."""
    remaining = iter(events)
    first = next(remaining, None)
    if not isinstance(first, ClusterLoaded):
        what, cure = "is not the journal of a cluster", "name the journal of 'simulate --journal'"
        raise InvalidInput.of(source, what, cure=cure, code="wrong-type")
    state, past = transition.apply(Snapshot(), first), []
    draft = Draft(state)
    for event in remaining:
        transition.apply_to_draft(draft, event)
        if isinstance(event, DemandObserved) and _learns(now):
            past.append(draft.freeze())
    state = draft.freeze()
    # An inventory knows no roles, so those of the journal stay.
    observed = replace(now, at_ms=state.at_ms, role_state=state.role_state)
    for event in drift(state, observed):
        # The last event of a drift marks an observation; without changes it is in the journal.
        if not isinstance(event, DemandObserved) or event.demand:
            state = transition.apply(state, event)
    return Observation(snapshot=state, past=tuple(past))


def _learns(snapshot: Snapshot) -> bool:
    """Return whether a decider learns from observations that are older than an hour."""
    return bool(snapshot.settings.balance.foresight_s or snapshot.settings.power.foresight_s)


def with_history(now: Snapshot, path: Path) -> Observation:
    """Return a cluster with the demand of a history file; its last rows are the present demand."""
    rows = _HistoryReader(path, now.vms).read()
    # The clock of the file counts, also if it is behind the one of the snapshot.
    state, past, seen = replace(now, at_ms=0, history=()), [], False
    for at_ms, demand in rows.samples:
        state = transition.apply(state, DemandObserved(at_ms=at_ms, demand=demand))
        seen = seen or bool(demand)
        if _learns(now):
            past.append(state)
    if not seen:
        what, cure = "names no VM of the cluster", "check the column vm"
        raise InvalidInput.of(str(path), what, cure=cure, code="unknown-name")
    return Observation(snapshot=state, past=tuple(past[:-1]), unknown=rows.unknown)


@dataclass(frozen=True, slots=True)
class _History:
    """The samples of a file in the order of time, and the names that the cluster lacks."""

    samples: tuple[tuple[int, Mapping[VmId, Demand]], ...]
    unknown: tuple[str, ...]


class _HistoryReader:
    """Reads a history file and collects all its problems."""

    def __init__(self, path: Path, vms: Mapping[VmId, Vm]) -> None:
        self._path, self._vms = path, vms
        self._problems: list[InputProblem] = []
        self._origin: datetime | None = None
        """Monday midnight before the first row; the times of windows count from there."""
        self._unknown: dict[str, None] = {}

    def read(self) -> _History:
        """Return the samples; raise ``InvalidInput`` with every problem, its line and its cure."""
        samples: dict[int, dict[VmId, Demand]] = {}
        last_ms = -1
        for line, cells in self._rows():
            at_ms = self._time_ms(line, cells["time"])
            demand = self._demand(line, cells)
            if at_ms is None or demand is None:
                continue
            if at_ms < last_ms:
                self._add(line, "time", "the time decreases", "sort the rows", "time-not-ascending")
                continue
            last_ms, vm = at_ms, VmId(cells["vm"])
            sample = samples.setdefault(at_ms, {})
            if vm in sample:
                what = f"{quoted(vm)} has two rows for one time"
                self._add(line, "vm", what, "remove one", "duplicate-name")
            elif vm in self._vms:
                memory_mib = min(demand.memory_mib, self._vms[vm].memory_mib)
                named = self._vms[vm].demand.named
                sample[vm] = demand.but(memory_mib=memory_mib, named=named)
            else:
                self._unknown[vm] = None
        if not samples and not self._problems:
            cure = f"write a header line with {', '.join(COLUMNS)}, then rows"
            raise InvalidInput.of(str(self._path), "has no rows", cure=cure, code="empty-trace")
        if self._problems:
            raise InvalidInput(str(self._path), self._problems)
        return _History(tuple(samples.items()), tuple(self._unknown))

    def _rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield the line number and the cells of each row that is not blank."""
        try:
            text = read_bytes(self._path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            what = f"byte {error.start} is not UTF-8"
            cure = "save it as a CSV file in UTF-8"
            raise InvalidInput.of(
                str(self._path), what, cure=cure, code="unreadable-file"
            ) from None
        header = next((line for line in StringIO(text) if line.strip()), "")
        delimiter = max(_DELIMITERS, key=header.count)
        reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
        names: list[str] = []
        try:
            for row in reader:
                cells = [cell.strip() for cell in row]
                if not any(cells):
                    continue
                if not names:
                    names = self._header(cells, reader.line_num)
                    continue
                cells += [""] * (len(names) - len(cells))
                yield reader.line_num, dict(zip(names, cells, strict=False))
                if len(self._problems) >= PROBLEMS_SHOWN:
                    return
        except csv.Error as error:
            what = f"is not a CSV file: {error}"
            raise InvalidInput.of(
                str(self._path), what, cure="check the quotes", code="trace-unreadable"
            ) from None

    def _header(self, names: list[str], line: int) -> list[str]:
        missing = [name for name in COLUMNS if names.count(name) != 1]
        for name in missing:
            near = closest_match(name, names)
            cure = f"rename {quoted(near)}" if near else f"the columns are {', '.join(COLUMNS)}"
            what = f"there is no single column {name}"
            self._add(line, name, what, cure, "unknown-column")
        if missing:
            raise InvalidInput(str(self._path), self._problems)
        return names

    def _time_ms(self, line: int, text: str) -> int | None:
        """Return milliseconds: of a number of seconds, or since the Monday of the first date."""
        try:
            at_ms = round(1000 * float(text))
        except (ValueError, OverflowError):
            try:
                moment = datetime.fromisoformat(text)
            except ValueError:
                what = f"{quoted(text)} is no time"
                cure = "write seconds, or a date and time such as 2026-03-02T14:05:00"
                self._add(line, "time", what, cure, "not-a-number")
                return None
            # Windows of a policy are in local time.
            local = moment if moment.tzinfo is None else moment.astimezone().replace(tzinfo=None)
            if self._origin is None:
                midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
                self._origin = midnight - timedelta(days=local.weekday())
            at_ms = round((local - self._origin) / timedelta(milliseconds=1))
        if 0 <= at_ms <= TIME_MS_MAX:
            return at_ms
        cure = "write seconds since a Monday at midnight, at least 0"
        self._add(line, "time", f"{quoted(text)} is out of range", cure, "out-of-range")
        return None

    def _demand(self, line: int, cells: Mapping[str, str]) -> Demand | None:
        amounts = [self._amount(line, name, cells[name]) for name in COLUMNS[2:]]
        if not cells["vm"]:
            self._add(line, "vm", "the name is missing", "name the VM", "empty-value")
            return None
        cpu_mhz, memory_mib = amounts
        if cpu_mhz is None or memory_mib is None:
            return None
        return Demand(cpu_mhz=cpu_mhz, memory_mib=memory_mib)

    def _amount(self, line: int, name: str, text: str) -> int | None:
        try:
            amount = float(text)
        except ValueError:
            what = f"{quoted(text)} is not a number" if text else "the number is missing"
            self._add(line, name, what, _NUMBER_CURE, "not-a-number")
            return None
        if not isfinite(amount):
            self._add(line, name, f"{text} is not finite", _NUMBER_CURE, "not-a-number")
            return None
        if not 0 <= amount <= AMOUNT_MAX:
            code = "negative-demand" if amount < 0 else "demand-too-large"
            cure = f"write MHz and MiB, from 0 to {AMOUNT_MAX}"
            self._add(line, name, f"{text} is out of range", cure, code)
            return None
        return round(amount)

    def _add(self, line: int, key: str, what: str, cure: str, code: str) -> None:
        problem = InputProblem(key=key, what=what, cure=cure, line=line, code=code)
        self._problems.append(problem)
