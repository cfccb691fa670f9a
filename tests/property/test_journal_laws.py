"""A journal gives back what it was given: the same bytes, the same events, the same state."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_host, a_step, a_vm
from equipoise.model.action import Migrate
from equipoise.model.change.transition import replay
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
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Demand
from equipoise.store import Journal, MemoryJournal, open_journal
from postgres import Server, fixture_postgres

__all__ = ["fixture_postgres"]

# Small and quick to draw: what the model makes of any event at all is judged elsewhere.
HOSTS, VMS = (HostId("h1"), HostId("h2")), (VmId("v1"), VmId("v2"), VmId("v3"))
STEPS = tuple(
    a_step(f"s{n}", Migrate(vm=vm, source=source, target=target))
    for n, (vm, (source, target)) in enumerate(
        itertools.product(VMS, itertools.permutations(HOSTS))
    )
)
times, attempts = st.integers(0, 10**15), st.integers(1, 2)
demands = st.builds(Demand, cpu_mhz=st.integers(0, 10**9), memory_mib=st.integers(0, 10**12))
happenings: st.SearchStrategy[Any] = st.one_of(
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
stories: st.SearchStrategy[list[Event]] = st.lists(happenings, max_size=12)
# Every example waits for the disk, so a quarter of the usual number must do.
fewer = settings(max_examples=settings().max_examples // 4)
_NAMES = itertools.count()


class Shelf:
    """A place for journals: each example gets a new one in the same database."""

    def __init__(self, url: str | None) -> None:
        self._url = url

    def new(self) -> Journal:
        if self._url is None:
            return MemoryJournal()
        return open_journal(self._url, journal=f"example-{next(_NAMES)}")


@pytest.fixture(name="shelf", scope="module", params=["memory", "sqlite", "postgresql"])
def fixture_shelf(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Shelf:
    if request.param == "memory":
        return Shelf(None)
    if request.param == "sqlite":
        place: Path = tmp_path_factory.mktemp("laws")
        return Shelf(str(place / "journal.db"))
    server: Server = request.getfixturevalue("postgres")
    return Shelf(server.fresh())


def batches(story: list[Event], cuts: list[int]) -> list[list[Event]]:
    """The story in pieces, some of which may be empty."""
    edges = [0, *sorted(min(cut, len(story)) for cut in cuts), len(story)]
    return [story[a:b] for a, b in itertools.pairwise(edges)]


@fewer
@given(story=stories)
def test_replaying_what_was_read_back_gives_the_identical_snapshot(
    shelf: Shelf, story: list[Event]
) -> None:
    with shelf.new() as journal:
        journal.append(story)
        snapshot = journal.snapshot()
    assert snapshot == replay(Snapshot(), story)
    assert snapshot.version == len(story)


@fewer
@given(story=stories, cuts=st.lists(st.integers(0, 12), max_size=5))
def test_the_bytes_do_not_depend_on_how_the_events_came(
    shelf: Shelf, story: list[Event], cuts: list[int]
) -> None:
    at_once = MemoryJournal()
    at_once.append(story)
    with shelf.new() as journal:
        lengths = [journal.append(batch) for batch in batches(story, cuts)]
        assert lengths == sorted(lengths)
        assert lengths[-1] == len(journal) == len(story)
        assert journal.sha256() == at_once.sha256()


@fewer
@given(story=stories, start=st.integers(0, 14))
def test_lines_are_the_events(shelf: Shelf, story: list[Event], start: int) -> None:
    with shelf.new() as journal:
        journal.append(story)
        lines = list(journal.lines(start))
        assert list(journal.events(start)) == story[start:]
    assert lines == [encode_event(event) for event in story[start:]]
    assert [decode_event(line) for line in lines] == story[start:]
    assert not any(b"\n" in line for line in lines)
