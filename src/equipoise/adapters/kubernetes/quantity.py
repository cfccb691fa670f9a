"""Quantities of Kubernetes (``500m``, ``1.5Gi``, ``2e3``) and durations, read exactly."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Final

_QUANTITY: Final = re.compile(
    r"([+-]?)(\d{1,60}(?:\.\d{0,60})?|\.\d{1,60})"
    r"(?:([eE][+-]?\d{1,3})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?",
    re.ASCII,
)
_SUFFIXES: Final = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip
_AMOUNT_MAX: Final = 2**63 - 1
"""What Kubernetes stores; a larger amount would be another one there."""
_DURATION: Final = re.compile(r"(?:(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:ns|us|µs|ms|s|m|h))+")
_PART: Final = re.compile(r"([\d.]+)(ns|us|µs|ms|s|m|h)")
_UNITS_MS: Final = {
    "ns": Fraction(1, 10**6), "us": Fraction(1, 1000), "µs": Fraction(1, 1000), "ms": Fraction(1),
    "s": Fraction(1000), "m": Fraction(60_000), "h": Fraction(3_600_000),
}  # fmt: skip
_SECONDS: Final = re.compile(r"\d{1,18}(?:\.\d{0,18})?", re.ASCII)
_MS_PER_S: Final = 1000
_MILLI: Final = 1000


def parse_quantity(value: object) -> Fraction:
    """Return the exact amount; ``ValueError`` for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        # The shortest decimal of a number is what was written.
        value = format(Decimal(repr(value)), "f") if value == value else "NaN"  # noqa: PLR0124
    found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError(f"{value!r:.40} is no quantity")
    sign, digits, exponent, suffix = found.groups()
    amount = Fraction(digits.removesuffix("."))
    if exponent:
        amount *= Fraction(10) ** int(exponent[1:])
    elif suffix:
        amount *= _SUFFIXES[suffix]
    if amount > _AMOUNT_MAX:
        raise ValueError(f"{value!r:.40} is more than 2^63 - 1")
    return -amount if sign == "-" else amount


def parse_amount(value: object) -> int:
    """Return a quantity from 0 on in whole units, rounded up."""
    return _not_negative(value, 1)


def parse_milli(value: object) -> int:
    """Return a quantity from 0 on in thousandths, rounded up."""
    return _not_negative(value, _MILLI)


def _not_negative(value: object, factor: int) -> int:
    amount = parse_quantity(value)
    if amount < 0:
        raise ValueError(f"{value!r:.40} is below 0")
    return ceil(amount * factor)


def format_milli(milli: int) -> str:
    """Return thousandths as a quantity: ``2`` or ``1500m``."""
    whole, rest = divmod(milli, _MILLI)
    return f"{milli}m" if rest else str(whole)


def format_bytes(amount: int) -> str:
    """Return bytes as a quantity with the largest binary suffix that is exact."""
    for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        whole, rest = divmod(amount, int(_SUFFIXES[suffix]))
        if whole and not rest:
            return f"{whole}{suffix}"
    return str(amount)


def parse_duration_ms(value: object) -> int:
    """Return milliseconds, rounded up, of seconds (``90``, ``2.5``) or of ``1m30s``."""
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = format(Decimal(repr(text)), "f") if text == text else "NaN"  # noqa: PLR0124
    if isinstance(text, str) and _SECONDS.fullmatch(text):
        return ceil(Fraction(text.removesuffix(".")) * _MS_PER_S)
    if not (isinstance(text, str) and _DURATION.fullmatch(text)):
        raise ValueError(f"{value!r:.40} is no duration such as 90 or 1m30s")
    parts = _PART.findall(text)
    return ceil(sum(Fraction(number.removesuffix(".")) * _UNITS_MS[unit] for number, unit in parts))


def format_seconds(ms: int) -> str:
    """Return milliseconds as seconds: ``170`` or ``0.25``."""
    whole, rest = divmod(ms, _MS_PER_S)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)
