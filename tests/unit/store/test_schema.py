"""Migrations of databases of earlier versions, and databases that are not migrated."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, create_engine, insert, inspect, text
from sqlalchemy import table as some_table
from sqlalchemy.sql import column

from equipoise.errors import InvalidInput
from equipoise.model.event import OLD_EVENT_KINDS, Event, HostLeft, VmLeft, encode_event
from equipoise.model.quantity import HostId, VmId
from equipoise.store import open_journal
from equipoise.store.address import DatabaseAddress
from equipoise.store.schema import EVENTS, MIGRATIONS

SAMPLE: list[Event] = [
    HostLeft(at_ms=n, host=HostId("h" * 100)) if n % 3 else VmLeft(at_ms=n, vm=VmId("v"))
    for n in range(2500)
]


def engine_of(url: str) -> Engine:
    return create_engine(DatabaseAddress.of(url).url)


def execute(url: str, *statements: str) -> None:
    engine = engine_of(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def make_version_1(url: str, journals: dict[str, list[bytes]]) -> None:
    """Write a database as the first version of Equipoise wrote it."""
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


def test_opening_migrates_an_old_database(url: str) -> None:
    lines = [encode_event(event) for event in SAMPLE]
    make_version_1(url, {"main": lines, "other": lines[:2]})
    with open_journal(url, create=False) as journal:
        assert list(journal.events()) == SAMPLE
        assert list(journal.events(kinds=("vm_left",))) == SAMPLE[::3]
        assert journal.append(SAMPLE[:1]) == len(SAMPLE) + 1
    with open_journal(url, journal="other", create=False) as journal:
        assert list(journal.events(kinds=("host_left",))) == SAMPLE[1:2]


def test_a_damaged_line_does_not_stop_the_migration(url: str) -> None:
    make_version_1(url, {"main": [encode_event(SAMPLE[0]), b"\xff\x00", encode_event(SAMPLE[1])]})
    with open_journal(url) as journal:
        assert list(journal.events(kinds=("host_left",))) == [SAMPLE[1]]
        with pytest.raises(InvalidInput, match="event 2"):
            list(journal.events())


def test_a_migrated_database_has_the_schema_of_a_new_one(url: str) -> None:
    make_version_1(url, {"main": [encode_event(SAMPLE[0])]})
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


def test_a_failed_migration_keeps_the_previous_version(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_version_1(url, {"main": [encode_event(SAMPLE[0])]})

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
        assert list(journal.events()) == SAMPLE[:1]


def test_migration_3_renames_the_kinds_of_old_journals(url: str) -> None:
    old = [b'{"event":"%s","at_ms":1}' % kind.encode() for kind in OLD_EVENT_KINDS]
    make_version_1(url, {"main": old})
    open_journal(url).close()
    engine = engine_of(url)
    with engine.connect() as connection:
        kinds = connection.scalars(text("SELECT kind FROM events ORDER BY sequence")).all()
        assert kinds == list(OLD_EVENT_KINDS.values())
    engine.dispose()


def test_a_database_of_a_newer_version_is_refused(url: str) -> None:
    open_journal(url).close()
    execute(url, "UPDATE equipoise_schema SET version = 99")
    with pytest.raises(InvalidInput, match="99") as caught:
        open_journal(url)
    assert caught.value.code == "database-too-new"


def test_a_table_of_another_program_is_not_changed(url: str) -> None:
    execute(url, "CREATE TABLE events (title TEXT)", "INSERT INTO events VALUES ('concert')")
    with pytest.raises(InvalidInput) as caught:
        open_journal(url)
    assert caught.value.code == "database-foreign"
    engine = engine_of(url)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["events"]
        assert connection.scalar(text("SELECT title FROM events")) == "concert"
    engine.dispose()
