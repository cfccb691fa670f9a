"""All benchmark suites by name, and those of the model, the gate, the journal and files."""

from __future__ import annotations

import copy
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

from equipoise import files
from equipoise.bench import balance as bench_balance
from equipoise.bench import fuzz as bench_fuzz
from equipoise.bench import jobs as bench_jobs
from equipoise.bench import power as bench_power
from equipoise.bench import roles as bench_roles
from equipoise.bench import sim as bench_sim
from equipoise.bench import spec as bench_spec
from equipoise.bench import upgrade as bench_upgrade
from equipoise.bench.kubernetes.api import api_rows
from equipoise.bench.kubernetes.runs import run_rows
from equipoise.bench.measure import BenchmarkRow, best_time_s, even_cluster
from equipoise.bench.plan import btrplace_comparison as bench_plan
from equipoise.capacity.ledger import CapacityLedger
from equipoise.model.action import Migrate
from equipoise.model.event import ActionFinished, Event, VmCrashed, encode_event
from equipoise.model.plan import Intent, Plan
from equipoise.model.quantity import PlanId, StepId, VmId
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import VerifiedPlan, order, verify
from equipoise.store import open_journal


def _model_rows() -> Iterator[BenchmarkRow]:
    snapshot = Snapshot.of(even_cluster(300, 10_000))
    event = VmCrashed(at_ms=1, vm=VmId("vm-000007"))
    yield BenchmarkRow(
        "one change to a snapshot of 10,000 VMs",
        best_time_s(lambda: transition.apply(snapshot, event), tries=50),
        "deep copy",
        best_time_s(lambda: copy.deepcopy(dict(snapshot.vms)), tries=3),
    )


def _gate_rows() -> Iterator[BenchmarkRow]:
    snapshot = Snapshot.of(even_cluster(5000, 30_000))
    names = list(snapshot.hosts)
    intents = [
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
    plan = order(snapshot, intents, PlanId("bench"))
    yield BenchmarkRow(
        "order 3,000 moves on 5,000 hosts, 30,000 VMs", perf_counter() - began, "", None
    )
    assert isinstance(plan, Plan)
    assert isinstance(verify(snapshot, plan), VerifiedPlan)
    # A plan has two moments per step: its start and its end.
    rebuild = best_time_s(lambda: CapacityLedger(snapshot), tries=3) * 2 * len(plan.steps)
    yield BenchmarkRow(
        "verify the plan at every moment",
        best_time_s(lambda: verify(snapshot, plan), tries=3),
        "a new ledger at each moment",
        rebuild,
    )


def _journal_rows() -> Iterator[BenchmarkRow]:
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
            yield BenchmarkRow(
                "append 20,000 events in batches of 1,000, durable",
                ours,
                "bare sqlite3",
                _plain_sqlite_s(path / "bare.db", events),
            )
            read = best_time_s(lambda: sum(1 for _ in journal.events()), tries=3)
            yield BenchmarkRow("read 20,000 events back as values", read, "", None)
            began = perf_counter()
            for event in events[:200]:
                journal.append([event])
            yield BenchmarkRow(
                "append 200 events one by one, each durable", perf_counter() - began, "", None
            )


def _plain_sqlite_s(path: Path, events: list[Event]) -> float:
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


def _files_rows() -> Iterator[BenchmarkRow]:
    inventory = even_cluster(1000, 20_000)
    as_yaml = files.to_yaml(inventory).encode()
    as_json = files.to_json(inventory).encode()
    from_yaml = best_time_s(lambda: files.parse_inventory(as_yaml, "big.yaml"), tries=1)
    yield BenchmarkRow("read 1,000 hosts, 20,000 VMs from YAML", from_yaml, "", None)
    from_json = best_time_s(lambda: files.parse_inventory(as_json, "big.json"), tries=3)
    yield BenchmarkRow("read the same from JSON", from_json, "our YAML", from_yaml)


def _kubernetes_rows() -> Iterator[BenchmarkRow]:
    """Yield the API alone, then runs under kube-scheduler."""
    yield from api_rows()
    yield from run_rows()


SUITES: dict[str, Callable[[], Iterator[BenchmarkRow]]] = {
    "model": _model_rows,
    "gate": _gate_rows,
    "spec": bench_spec.rows,
    "fuzz": bench_fuzz.rows,
    "journal": _journal_rows,
    "files": _files_rows,
    "sim": bench_sim.rows,
    "jobs": bench_jobs.rows,
    "kube": _kubernetes_rows,
    "balance": bench_balance.rows,
    "power": bench_power.rows,
    "plan": bench_plan.rows,
    "roles": bench_roles.rows,
    "upgrade": bench_upgrade.rows,
}
