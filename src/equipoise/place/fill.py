"""Dividing an amount by shares, as water fills vessels: exactly, not in small chunks.

Everybody gets at least a floor and at most a ceiling; in between, in proportion to the shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple


class Claim(NamedTuple):
    """What one of those who share may claim."""

    floor: float
    ceiling: float
    """Never below the floor."""
    shares: float


def fill(amount: float, claims: Sequence[Claim]) -> list[float]:
    """Divide an amount; what nobody may have is left over.

    The level of the water is the amount per share at which all of it is divided. If there is not
    even enough for the floors, each is filled to the same part.
    """
    floors = sum(claim.floor for claim in claims)
    if amount <= floors:
        part = amount / floors if floors else 0.0
        return [claim.floor * part for claim in claims]
    level = _level(amount - floors, claims)
    return [_at(level, claim) for claim in claims]


def _at(level: float, claim: Claim) -> float:
    if not claim.shares:
        return claim.floor
    return min(claim.ceiling, max(claim.floor, level * claim.shares))


def _level(more: float, claims: Sequence[Claim]) -> float:
    """The level at which so much more than the floors is divided."""
    bends = []
    for claim in claims:
        if claim.shares and claim.ceiling > claim.floor:
            shares = _exact(claim.shares)
            bends.append((claim.floor / claim.shares, shares))
            bends.append((claim.ceiling / claim.shares, -shares))
    bends.sort()
    width: int | Fraction = 0
    level = 0.0
    for at, change in bends:  # between two bends, the same vessels are being filled
        rise = (at - level) * width
        if width and rise >= more:
            return level + more / width
        more -= rise
        width, level = width + change, at
    return level


def _exact(shares: float) -> int | Fraction:
    """Shares that leave no trace when they go from a sum; in floats, 1e16 + 1 - 1e16 is 0."""
    return int(shares) if shares == int(shares) else Fraction(shares)
