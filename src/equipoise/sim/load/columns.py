"""Two columns of a CSV or Parquet file as numbers, whatever the file turns out to be.

A CSV file is separated by commas, semicolons or tabs, and its first line names the columns.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from equipoise.errors import InvalidInput, MissingExtra, Problem
from equipoise.model.files.words import closest, listed, quoted, shown
from equipoise.sim.load.sheet import Floats

_DELIMITERS: Final = ";,\t"
_PARQUET: Final = b"PAR1"


@dataclass(frozen=True, slots=True)
class Measured:
    """What stands in a file, row by row. A cell that is not a number is NaN."""

    time: Floats
    value: Floats
    lines: Sequence[int] | None
    """The line of each row, where the file has lines."""
    texts: dict[tuple[int, str], str]
    """The cells that are not numbers, by row and column."""


def read_columns(path: Path, time: str, value: str) -> Measured:
    """Read the two columns of these names."""
    try:
        if path.is_dir():
            raise refused(path, "is a directory", "name a CSV or Parquet file")
        if not path.exists():
            raise refused(path, "is not there", "check the path; it is seen from the scenario")
        if not path.is_file():
            raise refused(path, "is not a regular file", "name a CSV or Parquet file")
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # a path with a NUL in it is a ValueError
        what = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise refused(path, what, "check the path") from None
    if path.suffix.lower() == ".parquet" or content.startswith(_PARQUET):
        return _from_parquet(path, time, value)
    return _from_csv(path, content, time, value)


def refused(path: Path, what: str, cure: str = "") -> InvalidInput:
    """Say what is wrong with a file as a whole."""
    return InvalidInput(source(path), [Problem(key="", what=what, cure=cure)])


def source(path: Path) -> str:
    """Say which file, without a character that could upset a terminal."""
    return str(path) if str(path).isprintable() else quoted(str(path))


def _from_csv(path: Path, content: bytes, time: str, value: str) -> Measured:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refused(path, "is not text", "write a CSV file in UTF-8, or Parquet") from None
    try:
        lines, rows = _rows(text, _delimiter(text, time, value))
    except csv.Error as error:
        raise refused(path, f"is not a CSV file: {error}", "check the quotes") from None
    if not rows:
        raise refused(path, "is empty", "the first line names the columns, the others are rows")
    names = [_bare(name) for name in rows[0]]
    places = _places(path, names, (time, value), lines[0])
    texts: dict[tuple[int, str], str] = {}
    columns = [
        _numbers([row[place] if place < len(row) else "" for row in rows[1:]], name, texts)
        for place, name in zip(places, (time, value), strict=True)
    ]
    return Measured(columns[0], columns[1], lines[1:], texts)


@lru_cache(maxsize=1)  # the CPU of a VM is mostly followed by its memory, from the same file
def _rows(text: str, delimiter: str) -> tuple[list[int], list[list[str]]]:
    """The rows that are not blank, and their lines."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    lines, rows = [], []
    for row in reader:
        if any(map(str.strip, row)):
            lines.append(reader.line_num)
            rows.append(row)
    return lines, rows


def _delimiter(text: str, time: str, value: str) -> str:
    """The one that gives the names asked for; else the most frequent one in the first line."""
    header = next((line for line in StringIO(text, newline="") if line.strip()), "")
    for delimiter in _DELIMITERS:
        names = {_bare(name) for name in next(csv.reader([header], delimiter=delimiter), ())}
        if time in names and value in names:
            return delimiter
    return max(_DELIMITERS, key=header.count)


def _bare(name: str) -> str:
    return name.strip().strip("\"'").strip()


def _places(path: Path, names: list[str], asked: tuple[str, ...], line: int | None) -> list[int]:
    """Where the columns are; all that are not there, or twice, are complained about at once."""
    problems = []
    for name in dict.fromkeys(asked):
        if names.count(name) == 1:
            continue
        if name in names:
            what, cure = f"{quoted(name)} names {names.count(name)} columns", "rename the others"
        else:
            near = closest(name, names)
            cure = f"did you mean {quoted(near)}?" if near else f"there are {listed(names)}"
            what = f"no column is named {quoted(name)}"
        problems.append(Problem(key="", what=what, cure=cure, line=line))
    if problems:
        raise InvalidInput(source(path), problems)
    return [names.index(name) for name in asked]


def _numbers(cells: list[str], name: str, texts: dict[tuple[int, str], str]) -> Floats:
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:  # seldom: one by one takes longer
        numbers = np.full(len(cells), np.nan)
        for row, cell in enumerate(cells):
            try:
                numbers[row] = float(_bare(cell))
            except ValueError:
                texts[row, name] = cell
        return numbers


def _from_parquet(path: Path, time: str, value: str) -> Measured:
    try:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra("parquet", "a trace in a Parquet file") from error
    try:
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            _places(path, names, (time, value), None)
            table = file.read(columns=list(dict.fromkeys((time, value))))
    except (arrow.ArrowException, OSError, ValueError) as error:
        what = f"is not a Parquet file that can be read: {shown(str(error))}"
        raise refused(path, what, "write it anew") from None
    for name in (time, value):
        kind = table.schema.field(name).type
        if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind)):
            what = f"column {quoted(name)} holds {kind}"
            raise refused(path, what, "write numbers; a time in units of time_per_s")
    columns = [
        table.column(name).cast("float64", safe=False).to_numpy().astype(np.float64)
        for name in (time, value)
    ]
    return Measured(columns[0], columns[1], None, {})
