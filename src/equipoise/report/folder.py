"""The folder of a run: what is written there, and reading it back.

``summary.json`` is written last, so a folder that has one is whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from equipoise.errors import InvalidInput, Problem, WorldError
from equipoise.model.event import KINDS
from equipoise.report.material import Material, Summary, Tell
from equipoise.report.page import page_of
from equipoise.report.tables import read_csv, write_csv, write_parquet
from equipoise.sim.measure.record import Record, Table
from equipoise.store import Journal

SUMMARY: Final = "summary.json"
JOURNAL: Final = "journal.jsonl"
PAGE: Final = "report.html"
_CLUSTER: Final = "cluster"
_POOLS: Final = "pools"
_LONG: Final = frozenset({"cluster_loaded", "demand_observed", "plan_accepted", "settings_changed"})
_READ: Final = tuple(kind for kind in KINDS if kind not in _LONG)
"""What the page is made from; the others are long, and it shows nothing of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What ``write_run`` left behind."""

    folder: Path
    files: tuple[str, ...]
    page: Path
    parquet: bool
    """False if there are CSV files only, because the extra ``parquet`` is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as its folder tells it, without the tables and events that are large."""

    folder: Path
    summary: Summary
    cluster: Table
    pools: Table

    @property
    def name(self) -> str:
        """What to call it: the name of its folder."""
        return self.folder.resolve().name


def write_run(
    folder: Path, summary: Summary, record: Record, journal: Journal, tell: Tell
) -> Written:
    """Write all there is to know about a run into a folder, which is made if need be."""
    check_folder(folder)
    tables = {_CLUSTER: record.cluster, "hosts": record.hosts, _POOLS: record.pools}
    names = [PAGE, JOURNAL]
    with _explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / JOURNAL).open("wb") as out:
            out.writelines(line + b"\n" for line in journal.lines())
        parquet = True
        for name, table in tables.items():
            write_csv(folder / f"{name}.csv", table)
            parquet = write_parquet(folder / f"{name}.parquet", table)
            names += [f"{name}.csv", *([f"{name}.parquet"] if parquet else [])]
        events = tuple(journal.events(kinds=_READ))
        page = page_of(Material(summary=summary, record=record, events=events, tell=tell))
        (folder / PAGE).write_text(page, encoding="utf-8")
        written = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
        (folder / SUMMARY).write_text(written, encoding="utf-8")
    return Written(folder=folder, files=(SUMMARY, *names), page=folder / PAGE, parquet=parquet)


def read_run(folder: Path) -> Run:
    """Read a folder that ``write_run`` wrote."""
    path = folder / SUMMARY
    if not path.is_file():
        cure = "name a folder that 'equipoise simulate --out' made"
        what = f"is not the folder of a run: there is no {SUMMARY}"
        raise InvalidInput(str(folder), [Problem(key="", what=what, cure=cure)])
    return Run(
        folder=folder,
        summary=_summary(path),
        cluster=read_csv(folder / f"{_CLUSTER}.csv", ("at_s",)),
        pools=read_csv(folder / f"{_POOLS}.csv", ("at_s", "pool")),
    )


def _summary(path: Path) -> Summary:
    cure = "take the folder as 'equipoise simulate --out' wrote it"
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        problem = Problem(
            key="",
            what=f"is not JSON: {error.msg}",
            cure=cure,
            line=error.lineno,
            column=error.colno,
        )
        raise InvalidInput(str(path), [problem]) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            str(path), [Problem(key="", what=f"cannot be read: {error}", cure=cure)]
        ) from error
    if not isinstance(found, dict):
        raise InvalidInput(str(path), [Problem(key="", what="is no summary of a run", cure=cure)])
    return found


def check_folder(folder: Path) -> None:
    """Refuse a folder that ``write_run`` would refuse, before a long run rather than after it."""
    if (folder / SUMMARY).exists():
        what, cure = "already holds another run", "name a new folder, or remove this one"
    elif folder.exists() and not folder.is_dir():
        what, cure = "is a file, not a folder", "name a new folder"
    else:
        return
    raise InvalidInput(str(folder), [Problem(key="", what=what, cure=cure)])


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorldError(f"{folder}: the run cannot be written there: {error}") from error
