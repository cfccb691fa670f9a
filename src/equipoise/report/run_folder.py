"""The folder of a run: writes and reads its document, journal and tables (CSV, Parquet).

``summary.json`` is written last, so a folder that has one is complete.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from equipoise.documents.simulation import SimulationDocument, read_simulation_document
from equipoise.errors import InputProblem, InvalidInput, WorldError
from equipoise.model.event import EVENT_KINDS
from equipoise.report.run.data import RunData, encode_names, row_count
from equipoise.report.run.page import run_page
from equipoise.sim.measure.sampling import Column, RunRecord, SampleTable
from equipoise.store import Journal

_DIGITS: Final = 3
"""Decimals of a figure; a thousandth of a MHz is noise already."""
_DIGITS_OF: Final = {"imbalance": 6}
"""Columns with small values need more decimals."""
_BLOCK: Final = 50_000
_TEXT_COLUMNS: Final = frozenset({"host", "state", "pool"})
"""The columns that hold names; all others hold numbers."""
_SPECIAL: Final = frozenset(',"\r\n')
_FOLDER_CURE: Final = "use a folder that 'equipoise simulate --out' wrote"


def write_csv(path: Path, table: SampleTable) -> None:
    """Write a table with a header line; the cell of an unknown figure is empty."""
    with path.open("w", encoding="utf-8", newline="") as out:
        out.write(",".join(table.columns) + "\n")
        for start in range(0, row_count(table), _BLOCK):
            # Text takes far more memory than numbers, so one block at a time is text.
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
        return [_short_number(repr(value)) for value in rounded.tolist()]
    listed = column.tolist()
    quoted = {name: _quoted_cell(str(name)) for name in dict.fromkeys(listed)}
    return [quoted[name] for name in listed]


def _short_number(written: str) -> str:
    if written.endswith(".0"):
        return written[:-2]
    return "" if written == "nan" else written


def _quoted_cell(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if _SPECIAL.intersection(name) else name


def write_parquet(path: Path, table: SampleTable) -> bool:
    """Write a table as Parquet with all digits; return False if pyarrow is not installed."""
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        return False
    columns = {}
    for name, column in table.columns.items():
        if column.dtype.kind in "iubf":
            columns[name] = arrow.array(column)
            continue
        names, codes = encode_names(column)
        columns[name] = arrow.DictionaryArray.from_arrays(
            arrow.array(codes.astype(np.int32)), arrow.array(names, type=arrow.string())
        )
    parquet.write_table(arrow.table(columns), str(path), compression="zstd")
    return True


def read_csv(path: Path, needed: Sequence[str]) -> SampleTable:
    """Read a table that ``write_csv`` wrote; reject a file without a column of ``needed``."""
    try:
        written = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid_table(
            path,
            InputProblem(
                key="",
                what=f"cannot be read: {error}",
                cure=_FOLDER_CURE,
                code=_read_error_code(error),
            ),
        ) from error
    rows = csv.reader(StringIO(written, newline=""))
    names = next(rows, [])
    missing = [name for name in needed if name not in names]
    if missing:
        what = f"has no column {', '.join(missing)}"
        raise _invalid_table(
            path, InputProblem(key="", what=what, cure=_FOLDER_CURE, line=1, code="table-invalid")
        )
    cells = list(_checked_rows(path, rows, len(names)))
    columns = list(zip(*cells, strict=True)) if cells else [()] * len(names)
    return SampleTable({
        name: _column(path, name, column) for name, column in zip(names, columns, strict=True)
    })  # fmt: skip


def _checked_rows(path: Path, rows: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    for line, row in enumerate(rows, start=2):
        if len(row) != width:
            what = f"has {len(row)} cells, the first line has {width}"
            raise _invalid_table(
                path,
                InputProblem(key="", what=what, cure=_FOLDER_CURE, line=line, code="table-invalid"),
            )
        yield row


def _column(path: Path, name: str, cells: Sequence[str]) -> Column:
    if name in _TEXT_COLUMNS:
        return np.array(cells, dtype=object)
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells], dtype=np.float64)
    except ValueError as error:
        problem = InputProblem(
            key=name,
            what=f"has a cell that is no number: {error}",
            cure=_FOLDER_CURE,
            code="not-a-number",
        )
        raise _invalid_table(path, problem) from error


def _invalid_table(path: Path, problem: InputProblem) -> InvalidInput:
    return InvalidInput(str(path), [problem])


SUMMARY: Final = "summary.json"
JOURNAL: Final = "journal.jsonl"
PAGE: Final = "report.html"
_CLUSTER: Final = "cluster"
_POOLS: Final = "pools"
_LONG_KINDS: Final = frozenset(
    {"cluster_loaded", "demand_observed", "plan_accepted", "settings_changed"}
)
_PAGE_KINDS: Final = tuple(kind for kind in EVENT_KINDS if kind not in _LONG_KINDS)
"""Events that the page shows; the others are long and would only cost time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRun:
    """The files that ``write_run`` wrote."""

    folder: Path
    files: tuple[str, ...]
    page: Path
    parquet: bool
    """False if there are CSV files only, because the extra ``parquet`` is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRun:
    """A run read from its folder, without the large tables and the events."""

    folder: Path
    document: SimulationDocument
    extra: Mapping[str, Any]
    """Keys of ``summary.json`` that only another version knows."""
    cluster: SampleTable
    pools: SampleTable

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.resolve().name


def write_run(
    folder: Path, document: SimulationDocument, record: RunRecord, journal: Journal
) -> WrittenRun:
    """Write page, document, journal and tables of a run to a folder; create the folder."""
    check_folder(folder)
    tables = {_CLUSTER: record.cluster, "hosts": record.hosts, _POOLS: record.pools}
    names = [PAGE, JOURNAL]
    with _as_world_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / JOURNAL).open("wb") as out:
            out.writelines(line + b"\n" for line in journal.lines())
        parquet = True
        for name, table in tables.items():
            write_csv(folder / f"{name}.csv", table)
            parquet = write_parquet(folder / f"{name}.parquet", table)
            names += [f"{name}.csv", *([f"{name}.parquet"] if parquet else [])]
        events = tuple(journal.events(kinds=_PAGE_KINDS))
        page = run_page(RunData(document=document, record=record, events=events))
        (folder / PAGE).write_text(page, encoding="utf-8")
        written = json.dumps(document.to_json_object(), indent=2, ensure_ascii=False) + "\n"
        (folder / SUMMARY).write_text(written, encoding="utf-8")
    return WrittenRun(folder=folder, files=(SUMMARY, *names), page=folder / PAGE, parquet=parquet)


def read_run(folder: Path) -> SavedRun:
    """Read a folder that ``write_run`` wrote."""
    path = folder / SUMMARY
    if not path.is_file():
        what = f"is not the folder of a run: there is no {SUMMARY}"
        raise InvalidInput.of(str(folder), what, cure=_FOLDER_CURE, code="not-a-run")
    document, extra = read_simulation_document(_read_summary(path))
    return SavedRun(
        folder=folder,
        document=document,
        extra=extra,
        cluster=read_csv(folder / f"{_CLUSTER}.csv", ("at_s",)),
        pools=read_csv(folder / f"{_POOLS}.csv", ("at_s", "pool")),
    )


def _read_summary(path: Path) -> dict[str, Any]:
    try:
        summary: Any = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        problem = InputProblem(
            key="",
            what=f"is not JSON: {error.msg}",
            cure=_FOLDER_CURE,
            line=error.lineno,
            column=error.colno,
            code="syntax-error",
        )
        raise InvalidInput(str(path), [problem]) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput.of(
            str(path), f"cannot be read: {error}", cure=_FOLDER_CURE, code=_read_error_code(error)
        ) from error
    if not isinstance(summary, dict):
        raise InvalidInput.of(
            str(path), "is not the summary of a run", cure=_FOLDER_CURE, code="not-a-run"
        )
    return summary


def check_folder(folder: Path) -> None:
    """Reject a folder that ``write_run`` cannot use, before a long run and not after it."""
    if (folder / SUMMARY).exists():
        what, cure = "already holds another run", "name a new folder, or remove this one"
        code = "already-exists"
    elif folder.exists() and not folder.is_dir():
        what, cure, code = "is a file, not a folder", "name a new folder", "not-a-folder"
    else:
        return
    raise InvalidInput.of(str(folder), what, cure=cure, code=code)


def _read_error_code(error: OSError | UnicodeDecodeError) -> str:
    return "file-not-readable" if isinstance(error, OSError) else "unreadable-file"


@contextmanager
def _as_world_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorldError(f"{folder}: cannot write the run: {error}") from error
