"""Numbers of workload files, checked: Python's ``float`` and ``int`` accept text, NaN and more."""

from __future__ import annotations

from math import isfinite
from typing import Final

_SECONDS_MAX: Final = 1e300
"""Sums of larger times overflow."""


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
