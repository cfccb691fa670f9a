"""Loads against an oracle that computes one VM, one part and one time at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_vm
from equipoise.model.scenario.load import (
    ConstantLoad,
    CyclicLoad,
    Distribution,
    DiurnalLoad,
    Load,
    LoadPart,
    LoadPoint,
    NoiseLoad,
    NumberSpec,
    SpikeLoad,
    StepLoad,
    TraceLoad,
)
from equipoise.model.vm import Vm
from equipoise.sim.load import DemandChanges, LoadDemands, TraceReader
from equipoise.sim.random_streams import stream_key

END_MS: Final = 30_000
MASK: Final = 2**64 - 1
GOLDEN: Final = 0x9E3779B97F4A7C15
TRACES: Final = {
    "one.csv": [(7.0, 12.5)],
    "two.csv": [(100.0, 3.0), (102.5, 9.0)],
    "many.csv": [(0.0, 1.0), (1.0, 4.0), (1.25, 0.0), (6.0, 4.0), (9.0, 2.5), (9.5, 8.0)],
}


# The plain meaning.


def mixed(number: int) -> int:
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


def chance(who: int, place: int) -> float:
    first = mixed((who + (place + 1) * GOLDEN) & MASK)
    return (mixed(first ^ GOLDEN) >> 11) * 2.0**-53


def drawn(level: NumberSpec, who: int, place: int) -> float:
    if not isinstance(level, Distribution):
        return float(level)
    one = chance(who, place)
    if level.one_of:
        return level.one_of[int(one * len(level.one_of))]
    if level.mean is not None and level.sd is not None:
        angle = 2 * math.pi * chance(who, place + 2**60)
        return level.mean + level.sd * (math.sqrt(-2 * math.log1p(-one)) * math.cos(angle))
    assert level.low is not None
    assert level.high is not None
    return level.low + (level.high - level.low) * one


class Owner(NamedTuple):
    seed: int
    name: str
    resource: str
    position: int

    def stream(self, *words: str) -> int:
        return stream_key(self.seed, self.name, self.resource, str(self.position), *words)

    def phase_ms(self, given_s: int | None, cycle_ms: int) -> int:
        if given_s is not None:
            return given_s * 1000 % cycle_ms
        return int(chance(self.stream("phase"), 0) * cycle_ms)


def of_pattern(part: CyclicLoad, owner: Owner, at_ms: int) -> float:
    high_ms, low_ms = part.high_s * 1000, part.low_s * 1000
    since = at_ms + owner.phase_ms(part.phase_s, high_ms + low_ms)
    cycle, inside = divmod(since, high_ms + low_ms)
    word, level, lasts = "high", part.high, high_ms
    if inside >= high_ms:
        word, level, lasts, inside = "low", part.low, low_ms, inside - high_ms
    redraw_ms = lasts if part.redraw_s is None else part.redraw_s * 1000
    draws_per_phase = math.ceil(lasts / redraw_ms)
    return drawn(level, owner.stream(word), cycle * draws_per_phase + inside // redraw_ms)


def of_steps(part: StepLoad, owner: Owner, at_ms: int) -> float:
    level: float = 0.0
    for place, point in enumerate(part.points):
        if point.at_s * 1000 <= at_ms:
            level = drawn(point.level, owner.stream(), place)
    return level


def of_spike(part: SpikeLoad, owner: Owner, at_ms: int) -> float:
    since = at_ms - part.at_s * 1000
    if since < 0:
        return 0.0
    time, inside = (0, since) if part.every_s is None else divmod(since, part.every_s * 1000)
    return drawn(part.level, owner.stream(), time) if inside < part.for_s * 1000 else 0.0


def of_diurnal(part: DiurnalLoad, at_ms: int) -> float:
    start_s = at_ms // (part.every_s * 1000) * part.every_s
    turn = ((start_s - part.peak_s) % part.period_s) / part.period_s
    cosine = round(math.cos(2 * math.pi * turn), 12)
    return part.low + (part.high - part.low) * ((1 + cosine) / 2)


def of_trace(part: TraceLoad, at_ms: int) -> float:
    rows = [(round((time - TRACES[part.file][0][0]) * 1000), level)
            for time, level in TRACES[part.file]]  # fmt: skip
    if part.repeat and len(rows) > 1:
        steps = sorted(b - a for (a, _), (b, _) in pairwise(rows))
        middle = (steps[(len(steps) - 1) // 2] + steps[len(steps) // 2]) // 2
        at_ms %= rows[-1][0] + middle
    return [level for time, level in rows if time <= at_ms][-1] * part.scale


def level_of(part: LoadPart, owner: Owner, at_ms: int) -> float:
    match part:
        case ConstantLoad():
            return drawn(part.level, owner.stream(), 0)
        case NoiseLoad():
            phase_ms = owner.phase_ms(part.phase_s, part.period_s * 1000)
            return drawn(part.level, owner.stream(), (at_ms + phase_ms) // (part.period_s * 1000))
        case CyclicLoad():
            return of_pattern(part, owner, at_ms)
        case StepLoad():
            return of_steps(part, owner, at_ms)
        case SpikeLoad():
            return of_spike(part, owner, at_ms)
        case DiurnalLoad():
            return of_diurnal(part, at_ms)
        case TraceLoad():
            return of_trace(part, at_ms)


def demand_of(seed: int, vm: Vm, load: Load, resource: str, at_ms: int) -> float:
    """What a VM asks for; NaN if its load does not say."""
    parts = load.cpu_mhz if resource == "cpu" else load.memory_mib or load.memory_pct
    if not parts:
        return math.nan
    total = 0.0
    for position, part in enumerate(parts):
        level = level_of(part, Owner(seed, part.together or vm.id, resource, position), at_ms)
        total += level * vm.memory_mib / 100 if parts is load.memory_pct else level
    most = 10**9 if resource == "cpu" else vm.memory_mib
    return round(min(most, max(0.0, total)))


# Everything that a load can be queried for.

numbers = st.sampled_from((0.0, 0.5, 1.0, 2.5, 17.0, -3.0, 40.0)) | st.floats(-20, 120)
few = st.integers(0, 9)
periods = st.integers(1, 7)
words = st.sampled_from((None, None, "a", "b"))
spreads = st.one_of(
    st.lists(numbers, min_size=1, max_size=4).map(lambda some: Distribution(one_of=tuple(some))),
    st.builds(Distribution, low=numbers, high=numbers),
    st.builds(Distribution, mean=numbers, sd=st.floats(0, 30)),
)
levels: st.SearchStrategy[NumberSpec] = numbers | spreads
points = st.lists(
    st.builds(LoadPoint, at_s=st.integers(0, 25), level=levels),
    min_size=1, max_size=5, unique_by=lambda point: point.at_s,
).map(lambda some: tuple(sorted(some, key=lambda point: point.at_s)))  # fmt: skip
parts: st.SearchStrategy[LoadPart] = st.one_of(
    st.builds(ConstantLoad, level=levels, together=words),
    st.builds(NoiseLoad, level=levels, period_s=periods, phase_s=st.none() | few, together=words),
    st.builds(
        CyclicLoad,
        high=levels,
        high_s=periods,
        low=levels,
        low_s=periods,
        together=words,
        phase_s=st.none() | st.integers(0, 20),
        redraw_s=st.none() | periods,
    ),
    st.builds(StepLoad, points=points, together=words),
    st.builds(
        DiurnalLoad,
        low=numbers,
        high=numbers,
        peak_s=few,
        period_s=st.integers(1, 30),
        every_s=periods,
    ),
    st.builds(
        SpikeLoad,
        level=levels,
        at_s=st.integers(0, 20),
        for_s=periods,
        every_s=st.none() | periods,
        together=words,
    ),
    st.builds(
        TraceLoad,
        file=st.sampled_from(sorted(TRACES)),
        scale=st.sampled_from((1.0, 2.5)),
        repeat=st.booleans(),
    ),
)
lists = st.lists(parts, max_size=3).map(tuple)
loads = st.builds(Load, cpu_mhz=lists, memory_mib=lists) | st.builds(
    Load, cpu_mhz=lists, memory_pct=lists
)
several_loads = st.lists(loads, min_size=1, max_size=3)
seeds = st.integers(0, 3)
moments = st.lists(st.integers(0, END_MS), max_size=6)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> TraceReader:
    folder: Path = tmp_path_factory.mktemp("traces")
    for name, rows in TRACES.items():
        lines = ["at_s,value", *(f"{time},{level}" for time, level in rows)]
        (folder / name).write_text("\n".join(lines))
    return TraceReader(folder)


def vms_with(some: list[Load]) -> Iterator[tuple[int, Vm, Load]]:
    """Rows with gaps, and VMs of different sizes."""
    for place, load in enumerate(some):
        yield 3 * place + 1, a_vm(f"v{place}", memory_mib=50 + 37 * place), load


def demands_of(seed: int, some: list[Load], traces: TraceReader) -> LoadDemands:
    demands = LoadDemands(seed, traces=traces)
    for row, vm, load in vms_with(some):
        demands.add(row, vm, load)
    return demands


def as_list(changes: DemandChanges) -> list[tuple[int, int, int, float]]:
    columns = (changes.at_ms, changes.row, changes.resource, changes.value)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@given(seeds, several_loads, moments)
def test_the_demand_at_a_time_is_the_sum_of_the_parts(
    traces: TraceReader, seed: int, some: list[Load], at: list[int]
) -> None:
    demands = demands_of(seed, some, traces)
    for at_ms in (0, *at, END_MS):
        cpu, memory = demands.at(at_ms)
        for place, (_, vm, load) in enumerate(vms_with(some)):
            assert same(cpu[place], demand_of(seed, vm, load, "cpu", at_ms))
            assert same(memory[place], demand_of(seed, vm, load, "memory", at_ms))


@given(seeds, several_loads)
def test_applied_changes_give_the_demand_at_every_time(
    traces: TraceReader, seed: int, some: list[Load]
) -> None:
    demands = demands_of(seed, some, traces)
    found = as_list(demands.changes(0, END_MS))
    assert found == sorted(found)
    assert len(found) <= demands.estimated_changes(END_MS)
    for row, vm, load in vms_with(some):
        for number, resource in enumerate(("cpu", "memory")):
            now = demand_of(seed, vm, load, resource, 0)
            changes = [(at, value) for at, *key, value in found if key == [row, number]]
            probes = {*range(0, END_MS, 500), *(at + d for at, _ in changes for d in (-1, 0))}
            for at_ms in sorted(probes):
                if changes and changes[0][0] == at_ms:
                    assert changes[0][1] != now, "a change that changes nothing"
                    now = changes.pop(0)[1]
                assert same(now, demand_of(seed, vm, load, resource, at_ms))


@given(seeds, several_loads, moments)
def test_the_split_of_time_into_windows_does_not_matter(
    traces: TraceReader, seed: int, some: list[Load], cuts: list[int]
) -> None:
    whole = as_list(demands_of(seed, some, traces).changes(0, END_MS))
    edges = [0, *sorted(cuts), END_MS]
    demands = demands_of(seed, some, traces)
    pieces = [
        change
        for first, last in reversed(list(pairwise(edges)))
        for change in reversed(as_list(demands.changes(first, last)))
    ]
    assert pieces[::-1] == whole


@given(seeds, several_loads, moments, st.data())
def test_a_query_for_some_rows_equals_the_query_for_all(
    traces: TraceReader, seed: int, some: list[Load], at: list[int], data: st.DataObject
) -> None:
    demands = demands_of(seed, some, traces)
    chosen = data.draw(st.lists(st.sampled_from(demands.rows().tolist()), max_size=4))
    rows = np.array(chosen, dtype=np.int64)
    all_of_them = as_list(demands.changes(0, END_MS))
    assert as_list(demands.changes(0, END_MS, rows)) == [c for c in all_of_them if c[1] in chosen]
    for at_ms in at:
        for part, whole in zip(demands.at(at_ms, rows), demands.at(at_ms), strict=True):
            wanted = whole[np.searchsorted(demands.rows(), rows)]
            assert np.array_equal(part, wanted, equal_nan=True)


@given(seeds, several_loads, st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=12))
def test_adding_and_removing_loads_does_not_change_the_others(
    traces: TraceReader, seed: int, some: list[Load], deeds: list[tuple[bool, int]]
) -> None:
    demands = LoadDemands(seed, traces=traces)
    held: dict[int, Load] = {}
    for place, (asks, row) in enumerate(deeds):
        if row in held:
            demands.remove(row)
            del held[row]
        else:
            held[row] = some[place % len(some)]
            demands.add(row, a_vm(f"v{row}"), held[row])
        if asks:
            demands.at(place)
    alone = LoadDemands(seed, traces=traces)
    for row, load in sorted(held.items()):
        alone.add(row, a_vm(f"v{row}"), load)
    assert demands.rows().tolist() == sorted(held)
    assert as_list(demands.changes(0, END_MS)) == as_list(alone.changes(0, END_MS))
    assert demands.estimated_changes(END_MS) == alone.estimated_changes(END_MS)
