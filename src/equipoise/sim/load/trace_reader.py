"""Reads and checks traces: demand that was measured elsewhere, in CSV or Parquet files.

A CSV file is separated by commas, semicolons or tabs, and its first line names the columns. The
public traces of Bitbrains (GWA-T-12) are read as they are. All problems of a file are reported at
once, with their lines, before a run uses it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InputProblem, InvalidInput, MissingExtra
from equipoise.model.diagnostics import (
    closest_match,
    format_list,
    format_number,
    format_value,
    quoted,
)
from equipoise.model.scenario.load import TraceLoad
from equipoise.sim.load.levels import Floats, Integers

_DELIMITERS: Final = ";,\t"
_PARQUET: Final = b"PAR1"


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """The two columns of a trace, row by row. A cell that is not a number is NaN."""

    time: Floats
    value: Floats
    lines: Sequence[int] | None
    """The line of each row; ``None`` for a Parquet file."""
    texts: dict[tuple[int, str], str]
    """The cells that are not numbers, by row and column."""


def read_columns(path: Path, time: str, value: str) -> TraceColumns:
    """Read the columns with these names from a CSV or Parquet file."""
    try:
        if path.is_dir():
            raise invalid_file(path, "is a directory", "name a CSV or Parquet file")
        if not path.exists():
            cure = "check the path; it is relative to the scenario"
            raise invalid_file(path, "does not exist", cure)
        if not path.is_file():
            raise invalid_file(path, "is not a regular file", "name a CSV or Parquet file")
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # a path with a NUL character raises ValueError
        what = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise invalid_file(path, what, "check the path") from None
    if path.suffix.lower() == ".parquet" or content.startswith(_PARQUET):
        return _from_parquet(path, time, value)
    return _from_csv(path, content, time, value)


def invalid_file(
    path: Path, what: str, cure: str = "", code: str = "trace-unreadable"
) -> InvalidInput:
    """Return the error for a file that is wrong as a whole."""
    return InvalidInput.of(printable_path(path), what, cure=cure, code=code)


def printable_path(path: Path) -> str:
    """Return the path, quoted if it has characters that a terminal would interpret."""
    return str(path) if str(path).isprintable() else quoted(str(path))


def _from_csv(path: Path, content: bytes, time: str, value: str) -> TraceColumns:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise invalid_file(path, "is not text", "write a CSV file in UTF-8, or Parquet") from None
    try:
        lines, rows = _csv_rows(text, _delimiter(text, time, value))
    except csv.Error as error:
        raise invalid_file(path, f"is not a CSV file: {error}", "check the quotes") from None
    if not rows:
        cure = "the first line names the columns, the other lines are rows"
        raise invalid_file(path, "is empty", cure, "empty-trace")
    names = [_unquoted(name) for name in rows[0]]
    indexes = _column_indexes(path, names, (time, value), lines[0])
    texts: dict[tuple[int, str], str] = {}
    columns = [
        _to_floats([row[index] if index < len(row) else "" for row in rows[1:]], name, texts)
        for index, name in zip(indexes, (time, value), strict=True)
    ]
    return TraceColumns(columns[0], columns[1], lines[1:], texts)


@lru_cache(maxsize=1)  # CPU and memory of a VM are mostly read in a row from the same file
def _csv_rows(text: str, delimiter: str) -> tuple[list[int], list[list[str]]]:
    """Return the line numbers and the cells of the rows that are not blank."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    lines, rows = [], []
    for row in reader:
        if any(map(str.strip, row)):
            lines.append(reader.line_num)
            rows.append(row)
    return lines, rows


def _delimiter(text: str, time: str, value: str) -> str:
    """Return the delimiter that yields both names; else the most frequent one of the header."""
    header = next((line for line in StringIO(text, newline="") if line.strip()), "")
    for delimiter in _DELIMITERS:
        names = {_unquoted(name) for name in next(csv.reader([header], delimiter=delimiter), ())}
        if time in names and value in names:
            return delimiter
    return max(_DELIMITERS, key=header.count)


def _unquoted(name: str) -> str:
    return name.strip().strip("\"'").strip()


def _column_indexes(
    path: Path, names: list[str], wanted: tuple[str, ...], line: int | None
) -> list[int]:
    """Return the indexes of columns; raise ``InvalidInput`` with all missing and double ones."""
    problems = []
    for name in dict.fromkeys(wanted):
        if names.count(name) == 1:
            continue
        if name in names:
            what, cure = f"{quoted(name)} names {names.count(name)} columns", "rename the others"
        else:
            near = closest_match(name, names)
            cure = f"did you mean {quoted(near)}?" if near else f"there are {format_list(names)}"
            what = f"no column is named {quoted(name)}"
        problems.append(
            InputProblem(key="", what=what, cure=cure, line=line, code="unknown-column")
        )
    if problems:
        raise InvalidInput(printable_path(path), problems)
    return [names.index(name) for name in wanted]


def _to_floats(cells: list[str], name: str, texts: dict[tuple[int, str], str]) -> Floats:
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:  # rare, so only a bad column pays for the slower loop
        numbers = np.full(len(cells), np.nan)
        for row, cell in enumerate(cells):
            try:
                numbers[row] = float(_unquoted(cell))
            except ValueError:
                texts[row, name] = cell
        return numbers


def _from_parquet(path: Path, time: str, value: str) -> TraceColumns:
    try:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra("parquet", "a trace in a Parquet file") from error
    try:
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            _column_indexes(path, names, (time, value), None)
            table = file.read(columns=list(dict.fromkeys((time, value))))
    except (arrow.ArrowException, OSError, ValueError) as error:
        what = f"is not a Parquet file that can be read: {format_value(str(error))}"
        raise invalid_file(path, what, "write the file again") from None
    for name in (time, value):
        kind = table.schema.field(name).type
        if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind)):
            what = f"column {quoted(name)} holds {kind}"
            cure = "write numbers; a time in units of time_per_s"
            raise invalid_file(path, what, cure, "not-a-number")
    columns = [
        table.column(name).cast("float64", safe=False).to_numpy().astype(np.float64)
        for name in (time, value)
    ]
    return TraceColumns(columns[0], columns[1], None, {})


_SHOWN_MAX: Final = 20
_LEVEL_MAX: Final = 10**12
_LENGTH_MS_MAX: Final = 10**15
_NUMBERS_CURE: Final = "write plain numbers, with a dot for the fraction"


class TraceReader:
    """Reads the traces of a scenario, each file once for the same columns."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._measured: dict[tuple[str, str, str], TraceColumns] = {}

    def read(self, part: TraceLoad) -> tuple[Integers, Floats]:
        """Return the times in milliseconds, beginning with 0, and the levels from then on."""
        if self._folder is None:
            what = "the path is relative to the scenario file, and this scenario has no file"
            raise invalid_file(Path(part.file), what, "write the scenario to a file")
        path = self._folder / part.file
        key = (part.file, part.time, part.value)
        if key not in self._measured:
            self._measured[key] = read_columns(path, part.time, part.value)
        return _check(path, self._measured[key], part)


class _TraceProblem(NamedTuple):
    """One kind of problem: the rows that have it, and the message for a row."""

    rows: NDArray[np.bool_]
    key: str
    describe: Callable[[int], str]
    cure: str
    code: str


def _check(path: Path, measured: TraceColumns, part: TraceLoad) -> tuple[Integers, Floats]:
    if not len(measured.time):
        raise invalid_file(path, "has no rows", "a trace has at least one", "empty-trace")
    with np.errstate(over="ignore", invalid="ignore"):
        levels = measured.value * part.scale
        # Infinite times become NaN: differences of infinities would hide other problems.
        time = np.where(np.isfinite(measured.time), measured.time, np.nan)
        since_ms = np.rint((time - _origin(time)) * 1000 / part.time_per_s)
        trace_problems = list(_find_problems(measured, levels, since_ms, part))
    if any(trace_problem.rows.any() for trace_problem in trace_problems):
        raise InvalidInput(printable_path(path), _problems(measured, trace_problems))
    return since_ms.astype(np.int64), levels


def _origin(time: Floats) -> float:
    """Return the first time that is a number, so that the other rows can be checked."""
    finite = np.flatnonzero(np.isfinite(time))
    return float(time[finite[0]]) if finite.size else 0.0


def _find_problems(
    measured: TraceColumns, levels: Floats, since_ms: Floats, part: TraceLoad
) -> Iterator[_TraceProblem]:
    step_ms = np.diff(since_ms, prepend=since_ms[0] - 1)  # the first row has no predecessor
    text = _ProblemTexts(measured, part, step_ms)
    time, value = part.time, part.value
    no_time, is_number = ~np.isfinite(measured.time), np.isfinite(measured.value)
    yield _TraceProblem(no_time, time, text.no_time, _NUMBERS_CURE, "not-a-number")
    yield _TraceProblem(~is_number, value, text.no_value, _NUMBERS_CURE, "not-a-number")
    negative, cure = is_number & (levels < 0), "a demand is at least 0"
    yield _TraceProblem(negative, value, text.negative, cure, "negative-demand")
    too_large, cure = is_number & (levels > _LEVEL_MAX), f"at most {_LEVEL_MAX}; see scale"
    yield _TraceProblem(too_large, value, text.too_large, cure, "demand-too-large")
    cure = "sort the rows by time"
    yield _TraceProblem(step_ms < 0, time, text.goes_back, cure, "time-not-ascending")
    cure = "remove one row, or see time_per_s"
    yield _TraceProblem(step_ms == 0, time, text.not_increasing, cure, "time-not-ascending")
    gap = (step_ms > part.gap_s_max * 1000) | (since_ms > _LENGTH_MS_MAX)
    cure = f"gap_s_max is {part.gap_s_max}; see time_per_s too"
    yield _TraceProblem(gap, time, text.gap, cure, "trace-gap")


class _ProblemTexts:
    """The messages for the problems of a row."""

    def __init__(self, measured: TraceColumns, part: TraceLoad, step_ms: Floats) -> None:
        self._measured = measured
        self._part = part
        self._step_ms = step_ms

    def no_time(self, row: int) -> str:
        return self._no_number(row, self._part.time, self._measured.time)

    def no_value(self, row: int) -> str:
        return self._no_number(row, self._part.value, self._measured.value)

    def _no_number(self, row: int, name: str, column: Floats) -> str:
        text = self._measured.texts.get((row, name))
        if text is None:
            return f"{format_value(float(column[row]))} is not a finite number"
        text = text.strip()
        return f"{format_value(text)} is not a number" if text else "the number is missing"

    def negative(self, row: int) -> str:
        return f"{self._scaled(row)} is negative"

    def too_large(self, row: int) -> str:
        return f"{self._scaled(row)} is too large"

    def _scaled(self, row: int) -> str:
        scale = self._part.scale
        times = "" if scale == 1 else f" times {format_number(float(scale))}"
        return f"{format_number(float(self._measured.value[row]))}{times}"

    def goes_back(self, row: int) -> str:
        return f"the time decreases: {self._after(row)}"

    def not_increasing(self, row: int) -> str:
        return f"the time does not increase: {self._after(row)} is less than a millisecond"

    def gap(self, row: int) -> str:
        return f"a gap of {format_number(float(self._step_ms[row] / 1000))} s: {self._after(row)}"

    def _after(self, row: int) -> str:
        earlier, later = (float(self._measured.time[index]) for index in (row - 1, row))
        return f"{format_number(later)} after {format_number(earlier)}"


def _problems(measured: TraceColumns, trace_problems: list[_TraceProblem]) -> list[InputProblem]:
    """Return the first problems in the order of the rows, and the number of the others."""
    places = sorted(
        (int(row), kind)
        for kind, trace_problem in enumerate(trace_problems)
        # Only so many of each kind can be among the first of all kinds.
        for row in np.flatnonzero(trace_problem.rows)[:_SHOWN_MAX]
    )
    problems = []
    for row, kind in places[:_SHOWN_MAX]:
        trace_problem = trace_problems[kind]
        line = None if measured.lines is None else measured.lines[row]
        key = trace_problem.key if line is not None else f"row {row + 1}: {trace_problem.key}"
        problems.append(
            InputProblem(
                key=key,
                what=trace_problem.describe(row),
                cure=trace_problem.cure,
                line=line,
                code=trace_problem.code,
            )
        )
    more = sum(int(trace_problem.rows.sum()) for trace_problem in trace_problems) - len(problems)
    if more:
        problems.append(InputProblem(key="", what=f"and {more} more"))
    return problems
