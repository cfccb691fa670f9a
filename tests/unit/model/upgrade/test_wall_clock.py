"""Windows and dates on the wall clock, above all where the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.model.upgrade.wall_clock import (
    RecurringWindow,
    earliest_fit,
    instant_text,
    parse_instant,
    parse_window,
)

HOUR_MS = 3_600_000


def utc(text: str) -> int:
    return round(1000 * datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def first(window: str, since: str, longest_ms: int = 0) -> str | None:
    found = earliest_fit((window,), utc(since), longest_ms)
    return None if found is None else instant_text(found)


def occurrence(window: str, since: str) -> tuple[str, str]:
    opens_ms, closes_ms = next(parse_window(window).occurrences(utc(since)))
    return instant_text(opens_ms)[11:16], instant_text(closes_ms)[11:16]


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("2026-11-19T12:00", "2026-11-19 21:00 UTC"),
        ("2026-11-19T23:00", "2026-11-19 23:00 UTC"),  # past midnight, still open
        ("2026-11-20T04:59", "2026-11-20 04:59 UTC"),
        ("2026-11-20T05:00", "2026-11-20 21:00 UTC"),
        ("2026-07-01T12:00", "2026-07-01 20:00 UTC"),  # summer time
    ],
)
def test_a_nightly_window_opens_on_the_wall_clock_of_its_zone(since: str, expected: str) -> None:
    assert first("22:00-06:00 Europe/Berlin", since) == expected


def test_work_starts_only_if_it_ends_inside_the_window() -> None:
    night = "22:00-06:00 Europe/Berlin"
    assert first(night, "2026-11-20T04:30", HOUR_MS // 2) == "2026-11-20 04:30 UTC"
    assert first(night, "2026-11-20T04:31", HOUR_MS // 2) == "2026-11-20 21:00 UTC"


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ("weekdays", "2026-11-20 22:00 UTC"),
        ("Mon-Thu", "2026-11-23 22:00 UTC"),
        ("Sat,Sun", "2026-11-21 22:00 UTC"),
        ("weekends", "2026-11-21 22:00 UTC"),
        ("Sun-Tue", "2026-11-22 22:00 UTC"),
        ("daily", "2026-11-20 22:00 UTC"),
    ],
)
def test_a_window_opens_on_its_weekdays(days: str, expected: str) -> None:
    assert first(f"{days} 22:00-23:00 UTC", "2026-11-20T12:00") == expected  # a Friday


def test_the_night_after_the_last_weekday_belongs_to_it() -> None:
    assert first("weekdays 22:00-06:00 UTC", "2026-11-21T03:00") == "2026-11-21 03:00 UTC"
    assert first("weekdays 22:00-06:00 UTC", "2026-11-23T03:00") == "2026-11-23 22:00 UTC"


@pytest.mark.parametrize(
    ("window", "since", "expected"),
    [
        # On 29 March 2026 the clocks in Berlin go from 02:00 to 03:00 at 01:00 UTC.
        ("22:00-06:00 Europe/Berlin", "2026-03-28T12:00", ("21:00", "04:00")),
        ("02:30-05:00 Europe/Berlin", "2026-03-28T12:00", ("01:00", "03:00")),
        ("01:00-02:30 Europe/Berlin", "2026-03-28T12:00", ("00:00", "01:00")),
        # On 25 October 2026 they go from 03:00 back to 02:00 at 01:00 UTC.
        ("22:00-06:00 Europe/Berlin", "2026-10-24T12:00", ("20:00", "05:00")),
        ("02:30-05:00 Europe/Berlin", "2026-10-24T12:00", ("01:30", "04:00")),
        ("01:00-02:30 Europe/Berlin", "2026-10-24T12:00", ("23:00", "00:30")),
        ("02:15-02:45 Europe/Berlin", "2026-10-24T12:00", ("00:15", "00:45")),
        # Half an hour in Lord Howe: 4 October 2026, 02:00 to 02:30 at 15:30 UTC of the 3rd.
        ("02:10-05:00 Australia/Lord_Howe", "2026-10-03T02:00", ("15:30", "18:00")),
    ],
)
def test_windows_where_the_clocks_change(
    window: str, since: str, expected: tuple[str, str]
) -> None:
    assert occurrence(window, since) == expected


def test_a_window_inside_a_skipped_hour_does_not_open() -> None:
    inside = "02:10-02:50 Europe/Berlin"
    assert first(inside, "2026-03-28T12:00") == "2026-03-30 00:10 UTC"


def test_a_short_night_does_not_take_work_of_eight_hours() -> None:
    night = "22:00-06:00 Europe/Berlin"
    assert first(night, "2026-03-28T12:00", 8 * HOUR_MS) == "2026-03-29 20:00 UTC"
    assert first(night, "2026-03-28T12:00", 7 * HOUR_MS) == "2026-03-28 21:00 UTC"


def test_a_window_of_dates_opens_once() -> None:
    window = "2026-11-20 22:00 to 2026-11-21 06:00 Europe/Berlin"
    assert first(window, "2026-11-19T00:00") == "2026-11-20 21:00 UTC"
    assert first(window, "2026-11-21T05:00") is None


def test_midnight_may_close_a_window() -> None:
    assert occurrence("22:00-24:00 UTC", "2026-11-19T00:00") == ("22:00", "00:00")
    assert occurrence("00:00-24:00 UTC", "2026-11-19T12:00") == ("00:00", "00:00")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("22:00-06:00", "ZONE"),
        ("22:00-06:00 Europe/Nowhere", "Europe/Nowhere"),
        ("22:00-06:00 ../../etc/passwd", "passwd"),
        ("25:00-06:00 UTC", "25:00"),
        ("22:60-06:00 UTC", "22:60"),
        ("24:00-06:00 UTC", "24:00"),
        ("Mo-Fr 22:00-06:00 UTC", "mo-fr"),
        ("2026-02-30 22:00 to 2026-03-01 06:00 UTC", "2026-02-30"),
        ("2026-03-01 22:00 to 2026-03-01 06:00 UTC", "before"),
    ],
)
def test_a_wrong_window_has_a_reason(text: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        parse_window(text)


def test_an_instant_has_a_zone() -> None:
    assert parse_instant("2026-11-20 22:00 Europe/Berlin") == utc("2026-11-20T21:00")
    assert parse_instant("2026-03-29 02:30 Europe/Berlin") == utc("2026-03-29T01:00"), "skipped"
    with pytest.raises(ValueError, match="ZONE"):
        parse_instant("2026-11-20 22:00")


ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")


@given(
    zone=st.sampled_from(ZONES),
    opens=st.integers(0, 1439),
    length=st.integers(1, 1440),
    at_minute=st.integers(0, 366 * 24 * 60),
)
def test_the_wall_clock_agrees_inside_and_outside(
    zone: str, opens: int, length: int, at_minute: int
) -> None:
    """Inside an occurrence the wall clock shows a time of the window, by either reading."""
    text = f"{opens // 60:02}:{opens % 60:02}-{(opens + length) % 1440 // 60:02}"
    window = parse_window(f"{text}:{(opens + length) % 60:02} {zone}")
    assert isinstance(window, RecurringWindow)
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=at_minute)
    at_ms = round(1000 * at.timestamp())
    found = next(window.occurrences(at_ms))
    local = at.astimezone(ZoneInfo(zone))
    since_opening = (60 * local.hour + local.minute - opens) % 1440
    if found[0] <= at_ms:
        assert since_opening < length
    # Away from a change of the clocks the converse holds as well.
    steady = {
        (at + timedelta(hours=hours)).astimezone(ZoneInfo(zone)).utcoffset()
        for hours in range(-49, 50)
    }
    if len(steady) == 1:
        assert (found[0] <= at_ms) is (since_opening < length)
