"""Numbers with units, as SimGrid platforms write them: ``100Mf``, ``125MBps``, ``50us``."""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

_NUMBER: Final = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z]*)\s*")
_PREFIXES: Final = {
    "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
}  # fmt: skip
_SECONDS: Final = {
    "": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12,
    "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
}  # fmt: skip


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
