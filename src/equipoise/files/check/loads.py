"""Loads: parts are consistent, distributions are complete, VMs exist, and the number of changes of
demand is one that a run can simulate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from equipoise.files.check.references import InventoryIndex, ListElements, check_at_most
from equipoise.files.document import Gaps
from equipoise.model.diagnostics import Diagnostics, KeyPath, format_number, quoted
from equipoise.model.event import VmArrived
from equipoise.model.scenario.load import (
    ConstantLoad,
    CyclicLoad,
    Distribution,
    DiurnalLoad,
    Load,
    LoadPart,
    NoiseLoad,
    NumberSpec,
    SpikeLoad,
    StepLoad,
    TraceLoad,
)
from equipoise.model.scenario.scenario import Scenario

_DISTRIBUTION_CURE: Final = "give one_of, or low and high, or mean and sd"


def check_number_spec(level: NumberSpec, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report a distribution from which no number can be drawn."""
    if isinstance(level, Distribution):
        _check_distribution(level, path, diagnostics)


def check_time_spec(level: NumberSpec, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report a duration that cannot be drawn, or that is always negative."""
    check_number_spec(level, path, diagnostics)
    if highest_value(level) < 0:
        what = "a duration cannot be negative"
        diagnostics.add(path, what, "write zero or more", code="out-of-range")


def highest_value(level: NumberSpec) -> float:
    """Return the highest number that can be drawn; infinity if there is no bound."""
    if not isinstance(level, Distribution):
        return level
    highest = [*level.one_of, *(() if level.high is None else (level.high,))]
    return max(highest, default=math.inf) if level.mean is None else math.inf


def _check_distribution(
    distribution: Distribution, path: KeyPath, diagnostics: Diagnostics
) -> None:
    bounds = [key for key in ("low", "high") if getattr(distribution, key) is not None]
    moments = [key for key in ("mean", "sd") if getattr(distribution, key) is not None]
    keys_by_kind = {
        "one_of": ["one_of"] if distribution.one_of else [],
        "low and high": bounds,
        "mean and sd": moments,
    }
    given = [kind for kind, keys in keys_by_kind.items() if keys]
    if not given:
        what = "has nothing to draw from"
        diagnostics.add(path, what, _DISTRIBUTION_CURE, code="empty-value")
        return
    if len(given) > 1:
        keys = [key for kind in given for key in keys_by_kind[kind]]
        what = f"{', '.join(keys[:-1])} and {keys[-1]} exclude each other"
        diagnostics.add(path, what, _DISTRIBUTION_CURE, code="contradiction")
        return
    (kind,) = given
    for key in kind.split(" and "):
        if key not in keys_by_kind[kind]:
            what = f"is missing beside {keys_by_kind[kind][0]}"
            diagnostics.add((*path, key), what, "a number", code="missing-key")
    if distribution.low is not None and distribution.high is not None:
        check_range(distribution.low, distribution.high, path, diagnostics)


def check_range(low: float, high: float, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report a range whose low end is above its high end."""
    if low > high:
        what = f"{format_number(low)} is above high {format_number(high)}"
        cure = f"at most {format_number(high)}"
        diagnostics.add((*path, "low"), what, cure, code="out-of-range")


CHANGES_MAX: Final = 10**9
"""The most changes of demand of one run. A run with so many takes hours."""

_LOAD_KEYS: Final = ("cpu_mhz", "memory_mib", "memory_pct")


def check_loads(
    scenario: Scenario, index: InventoryIndex, diagnostics: Diagnostics, gaps: Gaps
) -> None:
    """Report inconsistent loads, names of loads and VMs that do not exist, and too many changes."""
    for name, load in scenario.loads.items():
        _check_load(load, ("loads", name), diagnostics, gaps)
    _check_vm_loads(scenario, index, diagnostics)
    for position, fleet in ListElements(scenario.fleet.vms, gaps.get(("fleet", "vms"))):
        if fleet.load is not None:
            _check_load_name(fleet.load, scenario, ("fleet", "vms", position, "load"), diagnostics)
    _check_change_count(scenario, diagnostics, gaps)


def _check_load(load: Load, path: KeyPath, diagnostics: Diagnostics, gaps: Gaps) -> None:
    if load.memory_mib and load.memory_pct:
        what = "memory_mib is given as well"
        diagnostics.add((*path, "memory_pct"), what, "keep one of the two", code="contradiction")
    for key in _LOAD_KEYS:
        parts = ListElements[LoadPart](getattr(load, key), gaps.get((*path, key)))
        for position, part in parts:
            _check_part(part, (*path, key, position), diagnostics)
        if parts.is_whole:
            _check_not_negative(parts.items, (*path, key), diagnostics)


def _check_not_negative(parts: Sequence[LoadPart], path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report a demand that is always negative. Only constant parts count: others may cancel out."""
    levels = [highest_value(part.level) for part in parts if isinstance(part, ConstantLoad)]
    if parts and len(levels) == len(parts) and sum(levels) < 0:
        what = "the sum of all parts is always negative"
        diagnostics.add(
            path, what, "raise the levels to a sum of zero or more", code="out-of-range"
        )


def _check_part(part: LoadPart, path: KeyPath, diagnostics: Diagnostics) -> None:
    match part:
        case ConstantLoad() | NoiseLoad():
            check_number_spec(part.level, (*path, "level"), diagnostics)
        case CyclicLoad():
            check_number_spec(part.high, (*path, "high"), diagnostics)
            check_number_spec(part.low, (*path, "low"), diagnostics)
        case StepLoad():
            _check_steps(part, (*path, "points"), diagnostics)
        case DiurnalLoad():
            check_range(part.low, part.high, path, diagnostics)
        case SpikeLoad():
            check_number_spec(part.level, (*path, "level"), diagnostics)
            excess, cure = f"is longer than every_s {part.every_s}", ", or raise every_s"
            check_at_most(part.for_s, part.every_s, excess, (*path, "for_s"), diagnostics, cure)
        case TraceLoad():
            pass  # the simulation checks its file when it opens it


def _check_steps(steps: StepLoad, path: KeyPath, diagnostics: Diagnostics) -> None:
    for position, point in enumerate(steps.points):
        check_number_spec(point.level, (*path, position, "level"), diagnostics)
    for position, (before, point) in enumerate(pairwise(steps.points), start=1):
        if point.at_s <= before.at_s:
            what = f"{point.at_s} is not after the point before it, {before.at_s}"
            cure = f"more than {before.at_s}"
            diagnostics.add((*path, position, "at_s"), what, cure, code="out-of-range")


def _check_vm_loads(scenario: Scenario, index: InventoryIndex, diagnostics: Diagnostics) -> None:
    """Report loads of VMs that do not exist, or that are members of a fleet."""
    arriving = {event.vm.id for event in scenario.events if isinstance(event, VmArrived)}
    for vm, load in scenario.vm_loads.items():
        path: KeyPath = ("vm_loads", vm)
        fleet = index.vms.fleet_index.fleet_of(vm)
        if fleet is not None and vm not in index.vms.by_id:
            what = f"{quoted(vm)} is a member of the fleet {quoted(fleet.like.id)}"
            cure = "give the load to the fleet, or list the VM in the cluster"
            diagnostics.add(path, what, cure, code="contradiction")
        elif vm not in arriving:
            index.vms.check(vm, path, diagnostics)
        _check_load_name(load, scenario, path, diagnostics)


def _check_load_name(
    name: str, scenario: Scenario, path: KeyPath, diagnostics: Diagnostics
) -> None:
    if name not in scenario.loads:
        diagnostics.add_unknown(path, "load", name, scenario.loads.keys())


class _ChangingPart(NamedTuple):
    """A part of a load that changes repeatedly, and the number of its changes in the whole run."""

    changes: int
    path: KeyPath
    key: str
    """The key whose number must rise for fewer changes."""


def _check_change_count(scenario: Scenario, diagnostics: Diagnostics, gaps: Gaps) -> None:
    """Report the parts with most changes, until the rest is below the limit."""
    # The largest last: it is the first that the report asks to slow down.
    changing = sorted(_changing_parts(scenario, gaps), key=lambda part: part.changes)
    total = sum(part.changes for part in changing)
    while total > CHANGES_MAX:
        worst = changing.pop()
        total -= worst.changes
        what = f"the load changes {worst.changes} times over the whole run"
        cure = f"a longer {worst.key}: all loads together may change {CHANGES_MAX} times"
        diagnostics.add((*worst.path, worst.key), what, cure, code="too-large")


def _changing_parts(scenario: Scenario, gaps: Gaps) -> Iterator[_ChangingPart]:
    owners = dict.fromkeys(scenario.loads, 0)
    for name in scenario.vm_loads.values():
        # A name that is not known is reported elsewhere and must not end this check.
        owners[name] = owners.get(name, 0) + 1
    for fleet in scenario.fleet.vms:
        if fleet.load is not None:
            owners[fleet.load] = owners.get(fleet.load, 0) + fleet.count
    for name, load in scenario.loads.items():
        for resource in _LOAD_KEYS:
            path: KeyPath = ("loads", name, resource)
            for position, part in ListElements[LoadPart](getattr(load, resource), gaps.get(path)):
                changes, period, key = _change_rate(part)
                times = owners[name] * changes * scenario.duration_s // period
                yield _ChangingPart(times, (*path, position), key)


def _change_rate(part: LoadPart) -> tuple[int, int, str]:
    """Return the number of changes of a part, in how many seconds, and the key that sets it."""
    match part:
        case CyclicLoad():
            draws = [
                _levels_per_phase(part, part.high, part.high_s),
                _levels_per_phase(part, part.low, part.low_s),
            ]
            key = "high_s" if max(draws) == 1 else "redraw_s"
            return sum(draws), part.high_s + part.low_s, key
        case NoiseLoad(level=Distribution()):
            return 1, part.period_s, "period_s"
        case DiurnalLoad():
            return 1, part.every_s, "every_s"
        case SpikeLoad(every_s=int() as every):
            return 2, every, "every_s"
        case _:
            return 0, 1, ""


def _levels_per_phase(pattern: CyclicLoad, level: NumberSpec, phase_s: int) -> int:
    """Return the number of levels that one phase of a pattern has."""
    if pattern.redraw_s is None or not isinstance(level, Distribution):
        return 1
    # Rounded up: the last level of a phase may be cut short.
    return -(-phase_s // pattern.redraw_s)
