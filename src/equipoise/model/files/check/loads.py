"""Loads: parts that make sense by themselves, who has which, and how often they all change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from equipoise.model.event import VmArrived
from equipoise.model.files.check.roster import Elements, Roster
from equipoise.model.files.check.spread import check_level, check_order, most
from equipoise.model.files.findings import Findings
from equipoise.model.files.tree import Gaps
from equipoise.model.files.words import Path, quoted
from equipoise.model.story.load import (
    Constant,
    Diurnal,
    Level,
    Load,
    Noise,
    Part,
    Pattern,
    Spike,
    Spread,
    Steps,
    Trace,
)
from equipoise.model.story.scenario import Scenario

CHANGES_MAX: Final = 10**9
"""So many changes of demand a run can live through, within hours."""

_RESOURCES: Final = ("cpu_mhz", "memory_mib", "memory_pct")


def check_loads(scenario: Scenario, roster: Roster, found: Findings, gaps: Gaps) -> None:
    """Find loads that make no sense, that nobody can have, or that never end."""
    for name, load in scenario.loads.items():
        _check_load(load, ("loads", name), found, gaps)
    _check_owners(scenario, roster, found)
    for place, fleet in Elements(scenario.fleet.vms, gaps.get(("fleet", "vms"))):
        if fleet.load is not None:
            _check_name(fleet.load, scenario, ("fleet", "vms", place, "load"), found)
    _check_changes(scenario, found, gaps)


def _check_load(load: Load, path: Path, found: Findings, gaps: Gaps) -> None:
    if load.memory_mib and load.memory_pct:
        what = "memory_mib is given as well"
        found.add((*path, "memory_pct"), what, "keep one of the two")
    for key in _RESOURCES:
        parts = Elements[Part](getattr(load, key), gaps.get((*path, key)))
        for place, part in parts:
            _check_part(part, (*path, key, place), found)
        if parts.is_whole:
            _check_positive(parts.items, (*path, key), found)


def _check_positive(parts: Sequence[Part], path: Path, found: Findings) -> None:
    """Find a demand that is always below zero. What changes in time may be meant to cancel out."""
    levels = [most(part.level) for part in parts if isinstance(part, Constant)]
    if parts and len(levels) == len(parts) and sum(levels) < 0:
        found.add(path, "all parts together are always below zero", "a level of zero or more")


def _check_part(part: Part, path: Path, found: Findings) -> None:
    match part:
        case Constant() | Noise():
            check_level(part.level, (*path, "level"), found)
        case Pattern():
            check_level(part.high, (*path, "high"), found)
            check_level(part.low, (*path, "low"), found)
        case Steps():
            _check_steps(part, (*path, "points"), found)
        case Diurnal():
            check_order(part.low, part.high, path, found)
        case Spike():
            check_level(part.level, (*path, "level"), found)
            if part.every_s is not None and part.for_s > part.every_s:
                what = f"{part.for_s} is longer than every_s {part.every_s}"
                cure = f"at most {part.every_s}, or raise every_s"
                found.add((*path, "for_s"), what, cure)
        case Trace():
            pass  # what is in its file is seen when it is opened


def _check_steps(steps: Steps, path: Path, found: Findings) -> None:
    for place, point in enumerate(steps.points):
        check_level(point.level, (*path, place, "level"), found)
    for place, (before, point) in enumerate(pairwise(steps.points), start=1):
        if point.at_s <= before.at_s:
            what = f"{point.at_s} is not after the point before it, {before.at_s}"
            found.add((*path, place, "at_s"), what, f"more than {before.at_s}")


def _check_owners(scenario: Scenario, roster: Roster, found: Findings) -> None:
    """Find loads that are given to a VM that is not there, or to one of many alike."""
    arriving = {one.vm.id for one in scenario.happenings if isinstance(one, VmArrived)}
    for vm, load in scenario.vm_loads.items():
        path: Path = ("vm_loads", vm)
        fellows = roster.vms.crowd.fellows(vm)
        if fellows is not None and vm not in roster.vms.by_id:
            what = f"{quoted(vm)} is one of the fleet {quoted(fellows.like.id)}"
            found.add(path, what, "give the load to the fleet, or list the VM in the cluster")
        elif vm not in arriving:
            roster.vms.check(vm, path, found)
        _check_name(load, scenario, path, found)


def _check_name(name: str, scenario: Scenario, path: Path, found: Findings) -> None:
    if name not in scenario.loads:
        found.add_unknown(path, "load", name, scenario.loads.keys())


class _Restless(NamedTuple):
    """A part that changes again and again, and how often in all."""

    changes: int
    path: Path
    key: str
    """Which of its numbers to raise."""


def _check_changes(scenario: Scenario, found: Findings, gaps: Gaps) -> None:
    """Find those parts that change so often that the run would never end."""
    restless = sorted(_restless(scenario, gaps), key=lambda one: one.changes)
    total = sum(one.changes for one in restless)
    while total > CHANGES_MAX:
        worst = restless.pop()
        total -= worst.changes
        what = f"a load that never ends: {worst.changes} changes over the whole run"
        found.add((*worst.path, worst.key), what, f"a longer {worst.key}")


def _restless(scenario: Scenario, gaps: Gaps) -> Iterator[_Restless]:
    owners = dict.fromkeys(scenario.loads, 0)
    for name in scenario.vm_loads.values():
        owners[name] = owners.get(name, 0) + 1
    for fleet in scenario.fleet.vms:
        if fleet.load is not None:
            owners[fleet.load] = owners.get(fleet.load, 0) + fleet.count
    for name, load in scenario.loads.items():
        for resource in _RESOURCES:
            path: Path = ("loads", name, resource)
            for place, part in Elements[Part](getattr(load, resource), gaps.get(path)):
                changes, period, key = _rhythm(part)
                times = owners[name] * changes * scenario.duration_s // period
                yield _Restless(times, (*path, place), key)


def _rhythm(part: Part) -> tuple[int, int, str]:
    """How many changes a part makes in how many seconds, and which number says so."""
    match part:
        case Pattern():
            draws = [_draws(part, part.high, part.high_s), _draws(part, part.low, part.low_s)]
            key = "high_s" if max(draws) == 1 else "redraw_s"
            return sum(draws), part.high_s + part.low_s, key
        case Noise(level=Spread()):
            return 1, part.period_s, "period_s"
        case Diurnal():
            return 1, part.every_s, "every_s"
        case Spike(every_s=int() as every):
            return 2, every, "every_s"
        case _:
            return 0, 1, ""


def _draws(pattern: Pattern, level: Level, lasts_s: int) -> int:
    """How many levels one phase of a pattern has."""
    if pattern.redraw_s is None or not isinstance(level, Spread):
        return 1
    return -(-lasts_s // pattern.redraw_s)
