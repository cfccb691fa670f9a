from __future__ import annotations

import pytest
from sqlalchemy import Engine, create_engine, insert, inspect, text
from sqlalchemy import table as some_table
from sqlalchemy.sql import column

from equipoise.errors import InvalidInput
from equipoise.model.event import Event, HostLeft, VmLeft, encode_event
from equipoise.model.quantity import HostId, VmId
from equipoise.store import open_journal
from equipoise.store.address import Address
from equipoise.store.schema import EVENTS, MIGRATIONS

STORY: list[Event] = [
    HostLeft(at_ms=n, host=HostId("h" * 100)) if n % 3 else VmLeft(at_ms=n, vm=VmId("v"))
    for n in range(2500)
]


def engine_of(url: str) -> Engine:
    return create_engine(Address.of(url).url)


def do(url: str, *statements: str) -> None:
    engine = engine_of(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def make_version_1(url: str, journals: dict[str, list[bytes]]) -> None:
    """Write a database as the first Equipoise would have left it."""
    engine = engine_of(url)
    events = some_table("events", *map(column, ("journal", "sequence", "at_ms", "payload")))
    with engine.begin() as connection:
        MIGRATIONS[0](connection)
        connection.execute(text("UPDATE equipoise_schema SET version = 1"))
        rows = [
            {"journal": name, "sequence": number, "at_ms": number, "payload": line}
            for name, lines in journals.items()
            for number, line in enumerate(lines, start=1)
        ]
        connection.execute(insert(events), rows)
        columns = {each["name"] for each in inspect(connection).get_columns("events")}
        assert columns == {"journal", "sequence", "at_ms", "payload"}
    engine.dispose()


def test_an_old_database_is_upgraded_when_it_is_opened(url: str) -> None:
    lines = [encode_event(event) for event in STORY]
    make_version_1(url, {"main": lines, "other": lines[:2]})
    with open_journal(url, create=False) as journal:
        assert list(journal.events()) == STORY
        assert list(journal.events(kinds=("vm_left",))) == STORY[::3]
        assert journal.append(STORY[:1]) == len(STORY) + 1
    with open_journal(url, journal="other", create=False) as journal:
        assert list(journal.events(kinds=("host_left",))) == STORY[1:2]


def test_a_damaged_line_does_not_stop_the_upgrade(url: str) -> None:
    make_version_1(url, {"main": [encode_event(STORY[0]), b"\xff\x00", encode_event(STORY[1])]})
    with open_journal(url) as journal:
        assert list(journal.events(kinds=("host_left",))) == [STORY[1]]
        with pytest.raises(InvalidInput, match="event 2"):
            list(journal.events())


def test_an_upgraded_database_is_like_a_new_one(url: str) -> None:
    make_version_1(url, {"main": [encode_event(STORY[0])]})
    open_journal(url).close()
    engine = engine_of(url)
    with engine.connect() as connection:
        schema = inspect(connection)
        assert {each["name"] for each in schema.get_columns("events")} == set(EVENTS.c.keys())
        assert [each["column_names"] for each in schema.get_indexes("events")] == [
            ["journal", "kind", "sequence"]
        ]
        assert schema.get_pk_constraint("events")["constrained_columns"] == ["journal", "sequence"]
        version = connection.execute(text("SELECT version FROM equipoise_schema")).all()
        assert version == [(len(MIGRATIONS),)]
    engine.dispose()


def test_a_migration_that_fails_leaves_the_last_good_version(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_version_1(url, {"main": [encode_event(STORY[0])]})

    def broken(line: bytes) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("equipoise.store.schema._kind_in", broken)
        with pytest.raises(KeyboardInterrupt):
            open_journal(url)
    engine = engine_of(url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT version FROM equipoise_schema")) == 1
        assert "kind" not in {each["name"] for each in inspect(connection).get_columns("events")}
    engine.dispose()
    with open_journal(url) as journal:
        assert list(journal.events()) == STORY[:1]


def test_a_database_of_the_future_is_refused(url: str) -> None:
    open_journal(url).close()
    do(url, "UPDATE equipoise_schema SET version = 99")
    with pytest.raises(InvalidInput, match=r"made by a newer Equipoise.*\(upgrade Equipoise\)"):
        open_journal(url)


def test_somebody_elses_table_is_left_alone(url: str) -> None:
    do(url, "CREATE TABLE events (title TEXT)", "INSERT INTO events VALUES ('concert')")
    with pytest.raises(InvalidInput, match="'events' that is not Equipoise's"):
        open_journal(url)
    engine = engine_of(url)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["events"]
        assert connection.scalar(text("SELECT title FROM events")) == "concert"
    engine.dispose()
