"""``equipoise bench``: how fast it is, measured against a plain way of doing the same in one run.

These machines are noisy, so a figure alone says little; the ratio of two figures from one run says
more. Each row is the best of several tries.
"""

from __future__ import annotations

import copy
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from textwrap import wrap
from time import perf_counter
from typing import TYPE_CHECKING

from equipoise.cli.answer import console, plain, print_json, table, watched
from equipoise.cli.bench import balance as bench_balance
from equipoise.cli.bench import fuzz as bench_fuzz
from equipoise.cli.bench import plan as bench_plan
from equipoise.cli.bench import power as bench_power
from equipoise.cli.bench import roles as bench_roles
from equipoise.cli.bench import sim as bench_sim
from equipoise.cli.bench import spec as bench_spec
from equipoise.cli.bench import upgrade as bench_upgrade
from equipoise.cli.bench.row import Row, a_cluster, best
from equipoise.errors import InvalidInput, Problem
from equipoise.model import files
from equipoise.model.action import Migrate
from equipoise.model.change import transition
from equipoise.model.event import ActionFinished, Event, VmCrashed, encode_event
from equipoise.model.plan import Intent, Plan
from equipoise.model.quantity import PlanId, StepId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan import VerifiedPlan, order, verify
from equipoise.plan.ledger import Ledger
from equipoise.store import open_journal

if TYPE_CHECKING:
    from rich.table import Table

WIDTH = 110
FIRM = "\N{NO-BREAK SPACE}"


def run(name: str | None, *, as_json: bool) -> int:
    """Measure and print."""
    if name is not None and name not in SUITES:
        problem = Problem(key=name, what="there is no such benchmark", cure=", ".join(SUITES))
        raise InvalidInput("bench", [problem])
    suites = [name] if name else list(SUITES)
    rows = [row for suite in watched(suites, "measuring", len(suites)) for row in SUITES[suite]()]
    if as_json:
        print_json({"rows": [_as_json(row) for row in rows]})
        return 0
    numbers = ("time", "per second", "times faster than")
    shown = table("what", *numbers, "", right=numbers)
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:,.1f}"
        rate = "" if row.per_second is None else f"{row.per_second:,.0f}"
        shown.add_row(row.what, _duration(row.seconds), rate, ratio, row.plain)
        if row.figures:
            words = (f"{name} {value:,.4g}" for name, value in row.figures.items())
            _add_below(shown, ", ".join(one.replace("_", FIRM).replace(" ", FIRM) for one in words))
        _add_below(shown, row.note)
    console().print(shown)
    return 0


def _add_below(shown: Table, words: str) -> None:
    """Add what belongs to the last row, in lines that leave the columns beside them in sight."""
    for line in wrap(words, WIDTH):
        shown.add_row(f"  {plain(line.replace(FIRM, ' '))}")


def _as_json(row: Row) -> dict[str, object]:
    return asdict(row) | {"ratio": row.ratio, "per_second": row.per_second}


def _model() -> Iterator[Row]:
    snapshot = Snapshot.of(a_cluster(300, 10_000))
    event = VmCrashed(at_ms=1, vm=VmId("vm-000007"))
    yield Row(
        "one change to a snapshot of 10,000 VMs",
        best(lambda: transition.apply(snapshot, event), tries=50),
        "deep copy",
        best(lambda: copy.deepcopy(dict(snapshot.vms)), tries=3),
    )
    yield Row(
        "columns of 10,000 VMs",
        best(lambda: replace(snapshot).columns, tries=5),
        "",
        None,
    )


def _gate() -> Iterator[Row]:
    snapshot = Snapshot.of(a_cluster(5000, 30_000))
    names = list(snapshot.hosts)
    wanted = [
        Intent(
            id=StepId(f"s{n}"),
            action=Migrate(
                vm=VmId(f"vm-{n:06d}"), source=names[n % 5000], target=names[(n + 2500) % 5000]
            ),
            duration_ms=20_000 + n,
        )
        for n in range(3000)
    ]
    began = perf_counter()
    plan = order(snapshot, wanted, PlanId("bench"))
    yield Row("order 3,000 moves on 5,000 hosts, 30,000 VMs", perf_counter() - began, "", None)
    assert isinstance(plan, Plan)
    assert isinstance(verify(snapshot, plan), VerifiedPlan)
    rebuild = best(lambda: Ledger(snapshot), tries=3) * 2 * len(plan.steps)
    yield Row(
        "verify them, every moment of it",
        best(lambda: verify(snapshot, plan), tries=3),
        "summing up anew at each moment",
        rebuild,
    )


def _journal() -> Iterator[Row]:
    events: list[Event] = [
        ActionFinished(at_ms=n, step=StepId(f"s{n}"), attempt=1) for n in range(20_000)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with open_journal(str(path / "ours.db")) as journal:
            began = perf_counter()
            for first in range(0, len(events), 1000):
                journal.append(events[first : first + 1000])
            ours = perf_counter() - began
            yield Row(
                "append 20,000 events in batches of 1,000, safe on disk",
                ours,
                "bare sqlite3",
                _bare_sqlite(path / "bare.db", events),
            )
            read = best(lambda: sum(1 for _ in journal.events()), tries=3)
            yield Row("read 20,000 events back as values", read, "", None)
            began = perf_counter()
            for event in events[:200]:
                journal.append([event])
            yield Row("append 200 events one by one, each safe", perf_counter() - began, "", None)


def _bare_sqlite(path: Path, events: list[Event]) -> float:
    base = sqlite3.connect(path)
    base.execute("pragma journal_mode=wal")
    base.execute("pragma synchronous=full")
    base.execute("create table events (sequence integer primary key, payload blob)")
    began = perf_counter()
    for first in range(0, len(events), 1000):
        rows = [(None, encode_event(event)) for event in events[first : first + 1000]]
        base.executemany("insert into events values (?, ?)", rows)
        base.commit()
    seconds = perf_counter() - began
    base.close()
    return seconds


def _files() -> Iterator[Row]:
    inventory = a_cluster(1000, 20_000)
    as_yaml = files.to_yaml(inventory).encode()
    as_json = files.to_json(inventory).encode()
    from_yaml = best(lambda: files.parse_inventory(as_yaml, "big.yaml"), tries=1)
    yield Row("read 1,000 hosts, 20,000 VMs from YAML", from_yaml, "", None)
    from_json = best(lambda: files.parse_inventory(as_json, "big.json"), tries=3)
    yield Row("read the same from JSON", from_json, "our YAML", from_yaml)


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e6:.0f} µs"


SUITES: dict[str, Callable[[], Iterator[Row]]] = {
    "model": _model,
    "gate": _gate,
    "spec": bench_spec.rows,
    "fuzz": bench_fuzz.rows,
    "journal": _journal,
    "files": _files,
    "sim": bench_sim.rows,
    "balance": bench_balance.rows,
    "power": bench_power.rows,
    "plan": bench_plan.rows,
    "roles": bench_roles.rows,
    "upgrade": bench_upgrade.rows,
}
