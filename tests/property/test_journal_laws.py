"""A journal returns the bytes, the events and the state that were appended."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_host, a_step, a_vm
from equipoise.model.action import Migrate
from equipoise.model.event import (
    ActionFinished,
    ActionStarted,
    DemandObserved,
    Event,
    HostFailed,
    HostJoined,
    VmArrived,
    decode_event,
    encode_event,
)
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import replay
from equipoise.model.vm import Demand
from equipoise.store import Journal, MemoryJournal, open_journal
from postgres import Server, fixture_postgres

__all__ = ["fixture_postgres"]

# Small and quick to draw: test_transition_oracle.py covers all kinds of events.
HOSTS, VMS = (HostId("h1"), HostId("h2")), (VmId("v1"), VmId("v2"), VmId("v3"))
STEPS = tuple(
    a_step(f"s{n}", Migrate(vm=vm, source=source, target=target))
    for n, (vm, (source, target)) in enumerate(
        itertools.product(VMS, itertools.permutations(HOSTS))
    )
)
times, attempts = st.integers(0, 10**15), st.integers(1, 2)
demands = st.builds(Demand, cpu_mhz=st.integers(0, 10**9), memory_mib=st.integers(0, 10**12))
any_events: st.SearchStrategy[Any] = st.one_of(
    st.builds(HostJoined, at_ms=times, host=st.sampled_from(HOSTS).map(a_host)),
    st.builds(HostFailed, at_ms=times, host=st.sampled_from(HOSTS), reason=st.text(max_size=9)),
    st.builds(
        VmArrived, at_ms=times, vm=st.builds(a_vm, st.sampled_from(VMS), st.sampled_from(HOSTS))
    ),
    st.builds(DemandObserved, at_ms=times, demand=st.dictionaries(st.sampled_from(VMS), demands)),
    st.builds(ActionStarted, at_ms=times, step=st.sampled_from(STEPS), attempt=attempts),
    st.builds(
        ActionFinished,
        at_ms=times,
        step=st.sampled_from([step.id for step in STEPS]),
        attempt=attempts,
    ),
)
event_lists: st.SearchStrategy[list[Event]] = st.lists(any_events, max_size=12)
# Every example waits for the disk, so there are only a quarter of the usual examples.
fewer = settings(max_examples=settings().max_examples // 4)
_NAMES = itertools.count()


class JournalFactory:
    """Opens a new journal per example, all in the same database."""

    def __init__(self, url: str | None) -> None:
        self._url = url

    def new(self) -> Journal:
        if self._url is None:
            return MemoryJournal()
        return open_journal(self._url, journal=f"example-{next(_NAMES)}")


@pytest.fixture(name="factory", scope="module", params=["memory", "sqlite", "postgresql"])
def fixture_factory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> JournalFactory:
    if request.param == "memory":
        return JournalFactory(None)
    if request.param == "sqlite":
        place: Path = tmp_path_factory.mktemp("laws")
        return JournalFactory(str(place / "journal.db"))
    server: Server = request.getfixturevalue("postgres")
    return JournalFactory(server.fresh())


def batches(events: list[Event], cuts: list[int]) -> list[list[Event]]:
    """The events in batches, some of which may be empty."""
    edges = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    return [events[a:b] for a, b in itertools.pairwise(edges)]


@fewer
@given(events=event_lists)
def test_replaying_a_journal_gives_the_same_snapshot(
    factory: JournalFactory, events: list[Event]
) -> None:
    with factory.new() as journal:
        journal.append(events)
        snapshot = journal.snapshot()
    assert snapshot == replay(Snapshot(), events)
    assert snapshot.version == len(events)


@fewer
@given(events=event_lists, cuts=st.lists(st.integers(0, 12), max_size=5))
def test_the_hash_does_not_depend_on_the_batches(
    factory: JournalFactory, events: list[Event], cuts: list[int]
) -> None:
    at_once = MemoryJournal()
    at_once.append(events)
    with factory.new() as journal:
        lengths = [journal.append(batch) for batch in batches(events, cuts)]
        assert lengths == sorted(lengths)
        assert lengths[-1] == len(journal) == len(events)
        assert journal.sha256() == at_once.sha256()


@fewer
@given(events=event_lists, start=st.integers(0, 14))
def test_lines_decode_to_the_events(
    factory: JournalFactory, events: list[Event], start: int
) -> None:
    with factory.new() as journal:
        journal.append(events)
        lines = list(journal.lines(start))
        assert list(journal.events(start)) == events[start:]
    assert lines == [encode_event(event) for event in events[start:]]
    assert [decode_event(line) for line in lines] == events[start:]
    assert not any(b"\n" in line for line in lines)
