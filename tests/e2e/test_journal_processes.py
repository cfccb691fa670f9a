"""Several processes and one journal."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from equipoise.errors import Conflict
from equipoise.model.event import HostLeft
from equipoise.model.quantity import HostId
from equipoise.store import open_journal
from postgres import Server, fixture_postgres

__all__ = ["fixture_postgres"]

SPAWN = multiprocessing.get_context("forkserver")
SPAWN.set_forkserver_preload(["equipoise.store.database", "psycopg", "pytest"])
EACH = 60


def insist(url: str, name: str, together: Barrier) -> None:
    """Write event after event; whenever the other one was faster, look again and go on."""
    together.wait(60)
    journal = open_journal(url)
    for number in range(EACH):
        while True:
            try:
                journal.append((HostLeft(at_ms=number, host=HostId(name)),) * 2)
                break
            except Conflict:
                journal.close()
                journal = open_journal(url)
    journal.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_two_writers_get_conflicts_and_never_a_gap_or_a_double(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "sqlite":
        url = str(tmp_path / "journal.db")
    else:
        server: Server = request.getfixturevalue("postgres")
        url = server.fresh()
    together = SPAWN.Barrier(2)
    pair = [SPAWN.Process(target=insist, args=(url, name, together)) for name in ("a", "b")]
    for process in pair:
        process.start()
    for process in pair:
        process.join(120)
    assert [process.exitcode for process in pair] == [0, 0]
    with open_journal(url, create=False) as journal:
        told = [event for event in journal.events() if isinstance(event, HostLeft)]
    assert len(told) == 2 * 2 * EACH
    assert told[::2] == told[1::2], "a batch of two was split"
    for name in ("a", "b"):
        assert [event.at_ms for event in told[::2] if event.host == name] == list(range(EACH))


PROGRAM = """
import sys
from equipoise.model.event import DemandObserved, HostJoined, ProposalMade
from equipoise.model.host import Host
from equipoise.model.plan import Proposal, Purpose
from equipoise.model.vm import Demand
from equipoise.store import open_journal

names = {f"vm{n}" for n in range(50)}  # a set: its order depends on the hash seed
labels = {name: name for name in names}
host = Host(id="h", cores=1, mhz_per_core=1, memory_mib=1, labels=labels)
with open_journal(sys.argv[1]) as journal:
    journal.append([
        HostJoined(at_ms=1, host=host),
        DemandObserved(
            at_ms=2, demand={name: Demand(named={n: 1 for n in names}) for name in names}),
        ProposalMade(at_ms=3, proposal=Proposal(
            decider="d", purpose=Purpose.BALANCE, gain={name: 0.1 for name in names})),
    ])
    print(next(iter(names)), journal.sha256())
"""


def test_the_bytes_on_disk_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    orders, hashes = set(), set()
    for seed in ("1", "2", "3"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / f"{seed}.db")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        order, sha256 = done.stdout.split()
        orders.add(order)
        hashes.add(sha256)
    assert len(orders) > 1, "the seeds must make a difference for this to show anything"
    assert len(hashes) == 1
