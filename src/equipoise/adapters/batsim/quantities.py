"""Numbers of the files of Batsim, checked.

Workloads have JSON numbers: Python's ``float`` and ``int`` accept text, NaN and more. SimGrid
platforms have numbers with units: ``100Mf``, ``125MBps``, ``50us``.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

_SECONDS_MAX: Final = 1e300
"""Sums of larger times overflow."""
_NUMBER: Final = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z]*)\s*")
_PREFIXES: Final = {
    "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip
_SECONDS: Final = {
    "": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12,
    "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
}  # fmt: skip


def read_number(value: object, name: str) -> float:
    """Return a finite number; ``ValueError`` names the field."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {value!r:.40}, not a number")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise ValueError(f"{name} is not finite")
    return number


def read_amount(value: object, name: str) -> float:
    """Return a number from 0 on, of operations or bytes."""
    number = read_number(value, name)
    if number < 0:
        raise ValueError(f"{name} is {number:g}, below 0")
    return number


def read_seconds(value: object, name: str) -> float:
    """Return a time."""
    number = read_number(value, name)
    if abs(number) > _SECONDS_MAX:
        raise ValueError(f"{name} is {number:g}, beyond {_SECONDS_MAX:g} s")
    return number


def read_whole(value: object, name: str) -> int:
    """Return a whole number; ``4.0`` is one."""
    number = read_number(value, name)
    if not number.is_integer():
        raise ValueError(f"{name} is {number:g}, not a whole number")
    return int(number)


def parse_speed(text: str) -> float:
    """Return operations per second of ``100Mf``."""
    number, unit = _split(text)
    return number * _factor(text, unit.removesuffix("f") if unit.endswith("f") else unit)


def parse_bandwidth(text: str) -> float:
    """Return bytes per second of ``125MBps`` or ``1Gbps``."""
    number, unit = _split(text)
    if unit.endswith("Bps"):
        return number * _factor(text, unit.removesuffix("Bps"))
    if unit.endswith("bps"):
        return number * _factor(text, unit.removesuffix("bps")) / 8
    return number * _factor(text, unit)


def parse_seconds(text: str) -> float:
    """Return seconds of ``50us``."""
    number, unit = _split(text)
    if unit not in _SECONDS:
        raise ValueError(f"{text!r} has no unit of time")
    return number * _SECONDS[unit]


def _split(text: str) -> tuple[float, str]:
    found = _NUMBER.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no number with a unit")
    number = float(found.group(1))
    if not (isfinite(number) and number >= 0):
        raise ValueError(f"{text!r} is not finite or below 0")
    return number, found.group(2)


def _factor(text: str, prefix: str) -> float:
    if prefix not in _PREFIXES:
        raise ValueError(f"{text!r} has an unknown unit")
    return _PREFIXES[prefix]
