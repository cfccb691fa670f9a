"""Formats numbers, units, times and durations for readers."""

from __future__ import annotations

from math import isfinite
from typing import Final, NamedTuple

MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86_400
NO_VALUE: Final = "-"
"""Stands for a missing figure."""

_DECIMALS: Final = ((100, 0), (10, 1), (1, 2))
_DECIMALS_SMALL: Final = 3
_SMALL_PRICE: Final = 0.1
_NEARLY_ALL_PCT, _MOST_PCT, _ALL_PCT = 99, 99.99, 100


class Unit(NamedTuple):
    """A display unit; ``size`` recorded units make one of it."""

    size: float
    name: str


_UNITS: Final[dict[str, tuple[Unit, ...]]] = {
    "mhz": (Unit(1000, "GHz"), Unit(1, "MHz")),
    "mib": (Unit(1024**2, "TiB"), Unit(1024, "GiB"), Unit(1, "MiB")),
    "watts": (Unit(1_000_000, "MW"), Unit(1000, "kW"), Unit(1, "W")),
}


def unit_for(recorded: str, largest: float) -> Unit:
    """Return the best unit for amounts up to ``largest``; unknown units stay."""
    units = _UNITS.get(recorded, (Unit(1, recorded),))
    # From two on: between one and two, the smaller unit shows more digits.
    return next((unit for unit in units if abs(largest) >= 2 * unit.size), units[-1])


def format_number(value: float | None) -> str:
    """Return a number with about three digits: ``12,345``, ``12.3``, ``0.123``."""
    if value is None or not isfinite(value):
        return NO_VALUE
    decimals = next(
        (digits for size, digits in _DECIMALS if abs(value) >= size),
        _DECIMALS_SMALL,
    )
    text = f"{value:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    # A small negative number rounds to -0.
    return "0" if text == "-0" else text


def with_unit(value: float | None, unit: str) -> str:
    """Return a number and its unit, if it has one."""
    if unit == "%":
        return format_percent(value)
    if value is None or not isfinite(value):
        return NO_VALUE
    return f"{format_number(value)} {unit}".rstrip()


def format_price(value: float, currency: str) -> str:
    """Return a price such as ``1,234.50 EUR``; a price below 0.1 has more decimals."""
    small = value and abs(value) < _SMALL_PRICE
    return f"{format_number(value) if small else f'{value:,.2f}'} {currency}".rstrip()


def format_percent(value: float | None) -> str:
    """Return a percentage; a value below 100 never reads as 100."""
    if value is None or not isfinite(value):
        return NO_VALUE
    if _NEARLY_ALL_PCT < value < _ALL_PCT:
        return f"{min(value, _MOST_PCT):.2f}".rstrip("0").rstrip(".") + " %"
    return f"{format_number(value)} %"


def format_amount(value: float, recorded: str) -> str:
    """Return an amount recorded in ``mhz``, ``mib`` or ``watts`` in the best unit."""
    unit = unit_for(recorded, value)
    return with_unit(value / unit.size, unit.name)


def format_moment(at_s: float, *, exact: bool = False) -> str:
    """Return a time of a run: ``4:05``, ``4:05:10`` or, after two days, ``3 d 4:05``.

    With ``exact`` the seconds are always there, so that a column is aligned.
    """
    whole = round(at_s)
    days = whole // DAY_S if whole >= 2 * DAY_S else 0
    hours, rest = divmod(whole - days * DAY_S, HOUR_S)
    minutes, seconds = divmod(rest, MINUTE_S)
    day = f"{days} d " if days else ""
    second = f":{seconds:02d}" if seconds or exact else ""
    return f"{day}{hours}:{minutes:02d}{second}"


def format_instant(at_ms: int) -> str:
    """Return a time of a plan to the millisecond: ``0:01:05.250``, or ``0:01:05``."""
    seconds, ms = divmod(at_ms, 1000)
    fraction = f".{ms:03d}" if ms else ""
    return f"{format_moment(seconds, exact=True)}{fraction}"


def format_duration(seconds: float | None) -> str:
    """Return a duration: ``24 h``, ``1 h 30 min``, ``3 d 4 h``, ``2.5 s``."""
    if seconds is None or not isfinite(seconds):
        return NO_VALUE
    if abs(seconds) < MINUTE_S:
        return f"{format_number(seconds)} s"
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    if seconds < 2 * HOUR_S and seconds % HOUR_S:
        return _two_units(seconds, (MINUTE_S, "min"), (1, "s"))
    if seconds <= 2 * DAY_S:
        return _two_units(seconds, (HOUR_S, "h"), (MINUTE_S, "min"))
    return _two_units(seconds, (DAY_S, "d"), (HOUR_S, "h"))


def _two_units(seconds: float, large: tuple[int, str], small: tuple[int, str]) -> str:
    count = round(seconds / small[0])
    whole, rest = divmod(count, large[0] // small[0])
    return f"{whole:,} {large[1]} {rest} {small[1]}" if rest else f"{whole:,} {large[1]}"


def shorten_middle(text: str, length: int) -> str:
    """Return a name shortened in its middle, because names differ at their ends."""
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[len(text) - tail :]}"


def shorten_end(text: str, length: int) -> str:
    """Return a sentence shortened at its end."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
