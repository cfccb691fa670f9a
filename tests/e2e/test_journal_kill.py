"""``kill -9`` at any moment loses no acknowledged event.

A writer in a process of its own appends batches and says through a pipe what it is about to write
and what was acknowledged; it is killed at a chosen moment, and the next writer goes on from there.
What belongs at each place of the journal follows from its number, so every byte can be checked.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import psycopg

from equipoise.model.event import DemandObserved, Event, HostFailed, VmLeft
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Demand
from equipoise.store import open_journal
from postgres import Server, fixture_postgres

__all__ = ["fixture_postgres"]

WAIT_S = 60
# Forked from a process that has imported everything: a writer starts in milliseconds.
SPAWN = multiprocessing.get_context("forkserver")
SPAWN.set_forkserver_preload(["equipoise.store.database", "psycopg", "pytest"])


class Report(NamedTuple):
    """What a writer says: the length it is about to reach, or has reached for certain."""

    acknowledged: bool
    length: int


class Death(NamedTuple):
    """What is known of a writer when it is dead."""

    acknowledged: int
    attempted: int

    @property
    def in_the_act(self) -> bool:
        """Whether it was killed between asking for a batch and having it acknowledged."""
        return self.attempted > self.acknowledged


def event_at(number: int) -> Event:
    """The event that belongs at a place of the journal."""
    match number % 3:
        case 0:
            return HostFailed(at_ms=number, host=HostId(f"h{number}"), reason="x" * (number % 200))
        case 1:
            return VmLeft(at_ms=number, vm=VmId(f"v{number}"))
        case _:
            demand = {VmId(f"v{n}"): Demand(cpu_mhz=number) for n in range(number % 9)}
            return DemandObserved(at_ms=number, demand=demand)


def lengths_from(length: int) -> Iterator[int]:
    """The lengths at which a writer that found this many events will end its batches."""
    chance = random.Random(length)
    while True:
        length += chance.choice((1, 1, 1, 7, 40, 300))
        yield length


def write_until_killed(url: str, reports: Connection) -> None:
    """The writer."""
    with open_journal(url) as journal:
        length = len(journal)
        for goal in lengths_from(length):
            batch = [event_at(number) for number in range(length + 1, goal + 1)]
            reports.send(Report(acknowledged=False, length=goal))
            length = journal.append(batch)
            reports.send(Report(acknowledged=True, length=length))


def kill_a_writer(url: str, chance: random.Random) -> Death:
    """Start a writer, let it have a few batches acknowledged, and kill it a moment later."""
    reports, end = SPAWN.Pipe(duplex=False)
    writer = SPAWN.Process(target=write_until_killed, args=(url, end))
    writer.start()
    end.close()
    received: list[Report] = []
    acknowledgements = chance.randint(1, 6)
    while sum(report.acknowledged for report in received) < acknowledgements:
        assert reports.poll(WAIT_S), "the writer does not write"
        received.append(reports.recv())
    time.sleep(chance.uniform(0, 0.005))
    assert writer.is_alive(), "the writer must not die by itself"
    writer.kill()
    writer.join(WAIT_S)
    assert writer.exitcode == -signal.SIGKILL
    received += rest_of(reports)
    return Death(
        acknowledged=max(report.length for report in received if report.acknowledged),
        attempted=max(report.length for report in received),
    )


def rest_of(reports: Connection) -> Iterator[Report]:
    """What was still in the pipe; its last message may be incomplete."""
    try:
        while True:
            yield reports.recv()
    except (EOFError, OSError):
        reports.close()


def check(url: str, before: int, death: Death) -> int:
    """Look at what a dead writer left, and return how much it is."""
    with open_journal(url, create=False) as journal:
        after = len(journal)
        assert death.acknowledged <= after <= death.attempted
        whole = next(length for length in lengths_from(before) if length >= after)
        assert after == whole, "half of a batch is there"
        written = list(journal.events(start=before))
    assert written == [event_at(number) for number in range(before + 1, after + 1)]
    return after


def check_all(url: str, lengths: list[int], deaths: list[Death]) -> None:
    """Look at the whole journal once more, and that the killing was no idle threat."""
    with open_journal(url, create=False) as journal:
        assert [event.at_ms for event in journal.events()] == list(range(1, lengths[-1] + 1))
        assert journal.snapshot().version == len(journal) == lengths[-1]
    assert all(before < after for before, after in pairwise([0, *lengths]))
    # Most of a writer's time is spent in ``append``; one in five is a cautious floor.
    assert sum(death.in_the_act for death in deaths) >= len(deaths) // 5


def test_a_hundred_kills_lose_nothing_in_sqlite(tmp_path: Path) -> None:
    url, chance = str(tmp_path / "journal.db"), random.Random(20)
    lengths, deaths = [0], list[Death]()
    for _ in range(100):
        deaths.append(kill_a_writer(url, chance))
        lengths.append(check(url, lengths[-1], deaths[-1]))
    check_all(url, lengths[1:], deaths)


def test_ten_kills_lose_nothing_in_postgresql(postgres: Server) -> None:
    url, chance = postgres.fresh(), random.Random(21)
    lengths, deaths = [0], list[Death]()
    for _ in range(10):
        deaths.append(kill_a_writer(f"{url}&application_name=writer", chance))
        await_the_server(url)
        lengths.append(check(url, lengths[-1], deaths[-1]))
    check_all(url, lengths[1:], deaths)


def await_the_server(url: str) -> None:
    """Wait until the server has noticed; it may still be carrying out the last request."""
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'writer'"
        for _ in range(WAIT_S * 100):
            if connection.execute(query).fetchone() is None:
                return
            time.sleep(0.01)
    raise AssertionError("the server keeps the connection of a dead process")
