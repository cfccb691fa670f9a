"""How figures are written for people: numbers, units, moments and durations."""

from __future__ import annotations

from math import isfinite
from typing import Final, NamedTuple

MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86_400
NONE: Final = "-"
"""What stands where there is no figure."""

_DECIMALS: Final = ((100, 0), (10, 1), (1, 2))
_DECIMALS_SMALL: Final = 3
_SMALL_PRICE: Final = 0.1
_NEARLY_ALL_PCT, _MOST_PCT, _ALL_PCT = 99, 99.99, 100


class Unit(NamedTuple):
    """A unit to show an amount in: so many of the recorded one make one of it."""

    size: float
    name: str


_UNITS: Final[dict[str, tuple[Unit, ...]]] = {
    "mhz": (Unit(1000, "GHz"), Unit(1, "MHz")),
    "mib": (Unit(1024**2, "TiB"), Unit(1024, "GiB"), Unit(1, "MiB")),
    "watts": (Unit(1_000_000, "MW"), Unit(1000, "kW"), Unit(1, "W")),
}


def unit_for(recorded: str, largest: float) -> Unit:
    """Choose the unit in which amounts up to ``largest`` read best; unknown units stay."""
    units = _UNITS.get(recorded, (Unit(1, recorded),))
    return next((unit for unit in units if abs(largest) >= 2 * unit.size), units[-1])


def number(value: float | None) -> str:
    """Write a number with three digits or so: ``12,345``, ``12.3``, ``0.123``."""
    if value is None or not isfinite(value):
        return NONE
    decimals = next(
        (digits for size, digits in _DECIMALS if abs(value) >= size),
        _DECIMALS_SMALL,
    )
    text = f"{value:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def with_unit(value: float | None, unit: str) -> str:
    """Write a number and its unit, if it has one."""
    if unit == "%":
        return percent(value)
    if value is None or not isfinite(value):
        return NONE
    return f"{number(value)} {unit}".rstrip()


def money(value: float, currency: str) -> str:
    """Write a price: ``1,234.50 EUR``; what is less than a tenth has as many digits as it takes."""
    small = value and abs(value) < _SMALL_PRICE
    return f"{number(value) if small else f'{value:,.2f}'} {currency}".rstrip()


def percent(value: float | None) -> str:
    """Write a percentage; what is not quite 100 never reads as if it were."""
    if value is None or not isfinite(value):
        return NONE
    if _NEARLY_ALL_PCT < value < _ALL_PCT:
        return f"{min(value, _MOST_PCT):.2f}".rstrip("0").rstrip(".") + " %"
    return f"{number(value)} %"


def amount(value: float, recorded: str) -> str:
    """Write an amount recorded in ``mhz``, ``mib`` or ``watts`` in the unit that reads best."""
    unit = unit_for(recorded, value)
    return with_unit(value / unit.size, unit.name)


def moment(at_s: float, *, exact: bool = False) -> str:
    """Write a moment of a run: ``4:05``, ``4:05:10`` or, after two days, ``3 d 4:05``.

    With ``exact`` the seconds are there even if they are zero, so that a column lines up.
    """
    whole = round(at_s)
    days = whole // DAY_S if whole >= 2 * DAY_S else 0
    hours, rest = divmod(whole - days * DAY_S, HOUR_S)
    minutes, seconds = divmod(rest, MINUTE_S)
    day = f"{days} d " if days else ""
    second = f":{seconds:02d}" if seconds or exact else ""
    return f"{day}{hours}:{minutes:02d}{second}"


def instant(at_ms: int) -> str:
    """Write a moment of a plan to the millisecond: ``0:01:05.250``, or ``0:01:05``."""
    seconds, ms = divmod(at_ms, 1000)
    fraction = f".{ms:03d}" if ms else ""
    return f"{moment(seconds, exact=True)}{fraction}"


def duration(seconds: float | None) -> str:
    """Write how long something took: ``24 h``, ``1 h 30 min``, ``3 d 4 h``, ``2.5 s``."""
    if seconds is None or not isfinite(seconds):
        return NONE
    if abs(seconds) < MINUTE_S:
        return f"{number(seconds)} s"
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 2 * HOUR_S and seconds % HOUR_S:
        return _two(seconds, (MINUTE_S, "min"), (1, "s"))
    if seconds <= 2 * DAY_S:
        return _two(seconds, (HOUR_S, "h"), (MINUTE_S, "min"))
    return _two(seconds, (DAY_S, "d"), (HOUR_S, "h"))


def _two(seconds: float, large: tuple[int, str], small: tuple[int, str]) -> str:
    count = round(seconds / small[0])
    whole, rest = divmod(count, large[0] // small[0])
    return f"{whole:,} {large[1]} {rest} {small[1]}" if rest else f"{whole:,} {large[1]}"


def cut(text: str, length: int) -> str:
    """Shorten a name in its middle: what tells names apart is at their ends."""
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[len(text) - tail :]}"


def shortened(text: str, length: int) -> str:
    """Shorten a sentence at its end."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
