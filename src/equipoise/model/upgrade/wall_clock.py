"""Dates, times and recurring windows on the wall clock of a time zone.

Instants are milliseconds since 1970 in UTC. A local time that a change of the clocks skips is the
instant of that change. Of a local time that occurs twice, a window opens at the second one and
closes at the first one, so that no work runs outside the window by either reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

WINDOW_EXAMPLE: Final = "22:00-06:00 Europe/Berlin"
INSTANT_EXAMPLE: Final = "2026-11-20 22:00 Europe/Berlin"
SEARCH_DAYS: Final = 400
"""A recurring window of one weekday opens within eight days; this allows for very long work."""

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NAMED_DAYS: Final = {
    "daily": frozenset(range(7)),
    "weekdays": frozenset(range(5)),
    "weekends": frozenset((5, 6)),
}
_RECURRING: Final = re.compile(r"(?:(\S+) )?(\d\d:\d\d)-(\d\d:\d\d) (\S+)")
_DATE_TIME: Final = r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)"
_ONCE: Final = re.compile(rf"{_DATE_TIME} to {_DATE_TIME} (\S+)")
_INSTANT: Final = re.compile(rf"{_DATE_TIME} (\S+)")
_DAY: Final = timedelta(days=1)
_DAY_MINUTES: Final = 24 * 60
_SECOND_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class RecurringWindow:
    """A window on some weekdays, each from a local time to a later one, perhaps past midnight."""

    weekdays: frozenset[int]
    """The days on which the window opens; Monday is 0."""
    opens_minute: int
    closes_minute: int
    """Counted from the midnight before the opening; so it may be past 24 hours."""
    zone: ZoneInfo

    @property
    def longest_s(self) -> int:
        """The length of the window on a day without a change of the clocks."""
        return 60 * (self.closes_minute - self.opens_minute)

    def occurrences(self, from_ms: int) -> Iterator[tuple[int, int]]:
        """Yield opening and closing of each occurrence that ends after an instant, in order."""
        # A window of yesterday may still be open.
        day = local_time(from_ms, self.zone).date() - _DAY
        for _ in range(SEARCH_DAYS):
            if day.weekday() in self.weekdays:
                opens_ms, closes_ms = self._on(day)
                if closes_ms > max(from_ms, opens_ms):
                    yield opens_ms, closes_ms
            day += _DAY

    def _on(self, day: date) -> tuple[int, int]:
        opens = _at_minute(day, self.opens_minute)
        closes = _at_minute(day, self.closes_minute)
        late_ms, early_ms = (
            instant_ms(opens, self.zone, second=True),
            instant_ms(closes, self.zone),
        )
        # A window inside the repeated hour: it holds the first time.
        return (late_ms if late_ms < early_ms else instant_ms(opens, self.zone)), early_ms


@dataclass(frozen=True, slots=True)
class OnceWindow:
    """A window that opens once."""

    opens_ms: int
    closes_ms: int

    @property
    def longest_s(self) -> int:
        """The length of the window."""
        return (self.closes_ms - self.opens_ms) // 1000

    def occurrences(self, from_ms: int) -> Iterator[tuple[int, int]]:
        """Yield the window unless it has closed."""
        if self.closes_ms > from_ms:
            yield self.opens_ms, self.closes_ms


WallClockWindow = RecurringWindow | OnceWindow


@lru_cache(maxsize=1024)
def parse_window(text: str) -> WallClockWindow:
    """Read a window; raise ``ValueError`` with the reason."""
    once = _ONCE.fullmatch(text)
    if once is not None:
        zone = _zone(once[5])
        opens_ms = instant_ms(_date_time(once[1], once[2]), zone, second=True)
        closes_ms = instant_ms(_date_time(once[3], once[4]), zone)
        if closes_ms <= opens_ms:
            raise ValueError("it closes before it opens")
        return OnceWindow(opens_ms, closes_ms)
    recurring = _RECURRING.fullmatch(text)
    if recurring is None:
        raise ValueError(f"write [DAYS] HH:MM-HH:MM ZONE, such as {WINDOW_EXAMPLE}")
    opens_minute, closes_minute = _minute(recurring[2]), _minute(recurring[3])
    if opens_minute == _DAY_MINUTES:
        raise ValueError("24:00 can only close a window")
    if closes_minute <= opens_minute:
        closes_minute += _DAY_MINUTES
    zone = _zone(recurring[4])
    return RecurringWindow(_weekdays(recurring[1] or "daily"), opens_minute, closes_minute, zone)


@lru_cache(maxsize=1024)
def parse_instant(text: str) -> int:
    """Read a date and time with its zone; raise ``ValueError`` with the reason."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise ValueError(f"write YYYY-MM-DD HH:MM ZONE, such as {INSTANT_EXAMPLE}")
    return instant_ms(_date_time(found[1], found[2]), _zone(found[3]))


def earliest_fit(windows: tuple[str, ...], from_ms: int, longest_ms: int) -> int | None:
    """Return the earliest instant at which work ends before a window closes; None if never."""
    starts = (_fit(parse_window(text), from_ms, longest_ms) for text in windows)
    return min((start for start in starts if start is not None), default=None)


def _fit(window: WallClockWindow, from_ms: int, longest_ms: int) -> int | None:
    for opens_ms, closes_ms in window.occurrences(from_ms):
        start_ms = max(opens_ms, from_ms)
        if start_ms + longest_ms <= closes_ms:
            return start_ms
    return None


def instant_ms(local: datetime, zone: ZoneInfo, *, second: bool = False) -> int:
    """Return the instant of a local time; of two, the first one unless ``second``."""
    before, after = (
        round(1000 * local.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1)
    )
    if before <= after:
        return after if second else before
    # The clocks skip this time: the offset changes between the two readings.
    low, high = after, before
    offset = local_time(high, zone).utcoffset()
    while high - low > _SECOND_MS:
        middle = (low + high) // (2 * _SECOND_MS) * _SECOND_MS
        if local_time(middle, zone).utcoffset() == offset:
            high = middle
        else:
            low = middle
    return high


def local_time(at_ms: int, zone: ZoneInfo) -> datetime:
    """Return an instant on the wall clock of a zone."""
    return datetime.fromtimestamp(at_ms / 1000, zone)


def instant_text(at_ms: int, zone: ZoneInfo | None = None) -> str:
    """Return an instant as ``2026-11-20 22:00 Europe/Berlin``; in UTC without a zone."""
    if zone is None:
        return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    return f"{local_time(at_ms, zone):%Y-%m-%d %H:%M} {zone.key}"


def zone_of(window: str) -> ZoneInfo:
    """Return the zone of a valid window."""
    return _zone(window.rpartition(" ")[2])


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name}") from None


def _weekdays(text: str) -> frozenset[int]:
    if text.lower() in _NAMED_DAYS:
        return _NAMED_DAYS[text.lower()]
    days: set[int] = set()
    for part in text.lower().split(","):
        first, dash, last = part.partition("-")
        if first not in _DAYS or (dash and last not in _DAYS):
            raise ValueError(f"{part} is no weekday: write Mon-Fri, or Sat,Sun, or weekdays")
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        # Fri-Mon wraps around the end of the week.
        days |= {day % 7 for day in range(begin, (end if end >= begin else end + 7) + 1)}
    return frozenset(days)


def _minute(text: str) -> int:
    hours, minutes = int(text[:2]), int(text[3:])
    total = 60 * hours + minutes
    if total > _DAY_MINUTES or minutes >= 60:  # noqa: PLR2004  (minutes of an hour)
        raise ValueError(f"{text} is no time of day")
    return total


def _at_minute(day: date, minute: int) -> datetime:
    # Days and minutes separately: 22:00 plus eight hours is not 06:00 when the clocks change.
    return datetime.combine(day + minute // _DAY_MINUTES * _DAY, time()) + timedelta(
        minutes=minute % _DAY_MINUTES
    )


def _date_time(day: str, clock: str) -> datetime:
    try:
        return datetime.fromisoformat(f"{day}T{clock}")
    except ValueError:
        raise ValueError(f"{day} {clock} is no date and time") from None
