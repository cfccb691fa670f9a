"""Numbers that are drawn: one way to draw them, and a range that is none the wrong way round."""

from __future__ import annotations

import math
from typing import Final

from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path, figure
from equipoise.model.story.load import Level, Spread

_CURE: Final = "give one_of, or low and high, or mean and sd"


def check_level(level: Level, path: Path, found: Findings) -> None:
    """Find a level that cannot be drawn."""
    if isinstance(level, Spread):
        _check_spread(level, path, found)


def check_time(level: Level, path: Path, found: Findings) -> None:
    """Find a time that cannot be drawn, or is always before it began."""
    check_level(level, path, found)
    if most(level) < 0:
        found.add(path, "a time is never below zero", "zero or more")


def most(level: Level) -> float:
    """The highest that may be drawn; infinite if there is none, or if it cannot be told."""
    if not isinstance(level, Spread):
        return level
    highest = [*level.one_of, *(() if level.high is None else (level.high,))]
    return max(highest, default=math.inf) if level.mean is None else math.inf


def _check_spread(spread: Spread, path: Path, found: Findings) -> None:
    ways = {
        "one_of": ["one_of"] if spread.one_of else [],
        "low and high": [key for key in ("low", "high") if getattr(spread, key) is not None],
        "mean and sd": [key for key in ("mean", "sd") if getattr(spread, key) is not None],
    }
    given = [way for way, keys in ways.items() if keys]
    if not given:
        found.add(path, "says nothing to draw from", _CURE)
        return
    if len(given) > 1:
        keys = [key for way in given for key in ways[way]]
        what = f"{', '.join(keys[:-1])} and {keys[-1]} do not go together"
        found.add(path, what, _CURE)
        return
    (way,) = given
    for key in way.split(" and "):
        if key not in ways[way]:
            found.add((*path, key), f"is missing beside {ways[way][0]}", "a number")
    if spread.low is not None and spread.high is not None:
        check_order(spread.low, spread.high, path, found)


def check_order(low: float, high: float, path: Path, found: Findings) -> None:
    """Find a range that is the wrong way round."""
    if low > high:
        what = f"{figure(low)} is above high {figure(high)}"
        found.add((*path, "low"), what, f"at most {figure(high)}")
