"""Tables as files: CSV that everybody reads, Parquet where it is installed."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Final

import numpy as np

from equipoise.errors import InvalidInput, Problem
from equipoise.report.material import coded, rows_of
from equipoise.sim.measure.record import Column, Table

_DIGITS: Final = 3
"""After the point: a thousandth of a MHz is noise already ..."""
_DIGITS_OF: Final = {"imbalance": 6}
"""... but not of what is small by nature."""
_BLOCK: Final = 50_000
_WORDS: Final = frozenset({"host", "state", "pool"})
"""The columns that hold names; all others hold numbers."""
_SPECIAL: Final = frozenset(',"\r\n')
_CURE: Final = "take the folder as 'equipoise simulate --out' wrote it"


def write_csv(path: Path, table: Table) -> None:
    """Write a table with a line of names above it; a figure that is not known is left empty."""
    with path.open("w", encoding="utf-8", newline="") as out:
        out.write(",".join(table.columns) + "\n")
        for start in range(0, rows_of(table), _BLOCK):
            # Cells take far more room as text than as numbers, hence a block at a time.
            cells = [
                _cells(column[start : start + _BLOCK], _DIGITS_OF.get(name, _DIGITS))
                for name, column in table.columns.items()
            ]
            out.writelines(",".join(row) + "\n" for row in zip(*cells, strict=True))


def _cells(column: Column, digits: int) -> Sequence[str]:
    kind = column.dtype.kind
    if kind in "iub":
        return [str(value) for value in column.astype(np.int64).tolist()]
    if kind == "f":
        # Adding zero makes a negative zero a plain one.
        rounded = np.round(column.astype(np.float64), digits) + 0.0
        return [_short(repr(value)) for value in rounded.tolist()]
    listed = column.tolist()
    quoted = {name: _quoted(str(name)) for name in dict.fromkeys(listed)}
    return [quoted[name] for name in listed]


def _short(written: str) -> str:
    if written.endswith(".0"):
        return written[:-2]
    return "" if written == "nan" else written


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if _SPECIAL.intersection(name) else name


def write_parquet(path: Path, table: Table) -> bool:
    """Write a table as Parquet, with all its digits; say whether that was possible."""
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        return False
    columns = {}
    for name, column in table.columns.items():
        if column.dtype.kind in "iubf":
            columns[name] = arrow.array(column)
            continue
        names, codes = coded(column)
        columns[name] = arrow.DictionaryArray.from_arrays(
            arrow.array(codes.astype(np.int32)), arrow.array(names, type=arrow.string())
        )
    parquet.write_table(arrow.table(columns), str(path), compression="zstd")
    return True


def read_csv(path: Path, needed: Sequence[str]) -> Table:
    """Read back what ``write_csv`` wrote, and refuse what lacks a column that is needed."""
    try:
        written = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(
            path, Problem(key="", what=f"cannot be read: {error}", cure=_CURE)
        ) from error
    rows = csv.reader(StringIO(written, newline=""))
    names = next(rows, [])
    missing = [name for name in needed if name not in names]
    if missing:
        what = f"has no column {', '.join(missing)}"
        raise _refused(path, Problem(key="", what=what, cure=_CURE, line=1))
    cells = list(_checked(path, rows, len(names)))
    columns = list(zip(*cells, strict=True)) if cells else [()] * len(names)
    return Table({
        name: _column(path, name, column) for name, column in zip(names, columns, strict=True)
    })  # fmt: skip


def _checked(path: Path, rows: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    for line, row in enumerate(rows, start=2):
        if len(row) != width:
            what = f"has {len(row)} cells, the first line has {width}"
            raise _refused(path, Problem(key="", what=what, cure=_CURE, line=line))
        yield row


def _column(path: Path, name: str, cells: Sequence[str]) -> Column:
    if name in _WORDS:
        return np.array(cells, dtype=object)
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)
    except ValueError as error:
        problem = Problem(key=name, what=f"holds something else: {error}", cure=_CURE)
        raise _refused(path, problem) from error


def _refused(path: Path, problem: Problem) -> InvalidInput:
    return InvalidInput(str(path), [problem])
