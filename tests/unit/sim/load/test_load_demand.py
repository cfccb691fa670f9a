"""Demands: order, windows, limits, rounding, and shared random streams."""

from __future__ import annotations

import numpy as np
import pytest

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
    SpikeLoad,
    StepLoad,
)
from equipoise.sim.load import DemandChanges, LoadDemands, TraceReader

HOUR_MS = 3_600_000
EVEN = Distribution(low=0, high=1000)
NOISE = NoiseLoad(level=EVEN, period_s=600)


def demands_of(*loads: Load, seed: int = 1) -> LoadDemands:
    demands = LoadDemands(seed, traces=TraceReader(None))
    for row, load in enumerate(loads):
        demands.add(row, a_vm(f"v{row}"), load)
    return demands


def cpu_at(at_ms: int, *parts: LoadPart) -> float:
    return float(demands_of(Load(cpu_mhz=parts)).at(at_ms)[0][0])


def memory_at(at_ms: int, *parts: LoadPart) -> float:
    return float(demands_of(Load(memory_mib=parts)).at(at_ms)[1][0])


def as_list(changes: DemandChanges) -> list[tuple[int, int, int, float]]:
    columns = (changes.at_ms, changes.row, changes.resource, changes.value)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def steps(*points: tuple[int, float]) -> StepLoad:
    return StepLoad(points=tuple(LoadPoint(at_s=at_s, level=level) for at_s, level in points))


def test_a_resource_without_a_load_is_nan() -> None:
    cpu, memory = demands_of(Load(), Load(cpu_mhz=(ConstantLoad(level=5),))).at(0)
    assert np.array_equal(cpu, [np.nan, 5], equal_nan=True)
    assert np.isnan(memory).all()


def test_a_sum_is_rounded_to_the_nearest_whole_number_and_halves_to_even() -> None:
    found = [cpu_at(0, ConstantLoad(level=level)) for level in (0.5, 1.5, 2.5, 2.4, 2.6)]
    assert found == [0, 2, 2, 2, 3]
    assert cpu_at(0, ConstantLoad(level=0.25), ConstantLoad(level=0.5)) == 1


def test_a_sum_is_never_below_zero_and_the_parts_may_be() -> None:
    assert cpu_at(0, ConstantLoad(level=-5)) == 0
    assert cpu_at(0, ConstantLoad(level=-5), ConstantLoad(level=8)) == 3
    assert not np.signbit(cpu_at(0, ConstantLoad(level=-0.0)))


def test_parts_are_added_in_the_order_of_the_list() -> None:
    levels = [ConstantLoad(level=level) for level in (0.1, 0.2, 2.2)]
    assert cpu_at(0, *levels) == 2  # 2.5
    assert cpu_at(0, *reversed(levels)) == 3  # 2.5000000000000004


def test_memory_is_never_more_than_the_vm_has_and_cpu_may_be_much() -> None:
    assert memory_at(0, ConstantLoad(level=5000)) == 1024
    assert cpu_at(0, ConstantLoad(level=5e8)) == 5e8
    assert cpu_at(0, ConstantLoad(level=5e11)) == 1e9


def test_percentages_are_of_the_memory_of_the_vm() -> None:
    demands = LoadDemands(1, traces=TraceReader(None))
    load = Load(memory_pct=(ConstantLoad(level=25), ConstantLoad(level=10)))
    for row, size in enumerate((1000, 1022, 4)):
        demands.add(row, a_vm(f"v{row}", memory_mib=size), load)
    # 50 times 10.03 would be a little less than 501.5.
    demands.add(3, a_vm("half", memory_mib=1003), Load(memory_pct=(ConstantLoad(level=50),)))
    assert demands.at(0)[1].tolist() == [350, 358, 1, 502]


def test_memory_in_mib_and_in_percent_at_once_is_a_bug() -> None:
    both = (ConstantLoad(level=5),)
    with pytest.raises(AssertionError, match="not both"):
        demands_of(Load(memory_mib=both, memory_pct=both))


def test_a_window_excludes_its_start_and_includes_its_end() -> None:
    demands = demands_of(Load(cpu_mhz=(steps((0, 1), (10, 2), (20, 3)),)))
    assert as_list(demands.changes(0, 10_000)) == [(10_000, 0, 0, 2)]
    assert as_list(demands.changes(10_000, 20_000)) == [(20_000, 0, 0, 3)]
    assert as_list(demands.changes(9_999, 9_999)) == []
    assert as_list(demands.changes(10_000, 10_000)) == []


def test_changes_come_by_time_then_row_then_cpu_before_memory() -> None:
    one = Load(cpu_mhz=(steps((2, 1)),), memory_mib=(steps((1, 7), (2, 8)),))
    two = Load(cpu_mhz=(steps((1, 5)), steps((2, 6))))
    assert as_list(demands_of(one, two).changes(0, 5_000)) == [
        (1_000, 0, 1, 7),
        (1_000, 1, 0, 5),
        (2_000, 0, 0, 1),
        (2_000, 0, 1, 8),
        (2_000, 1, 0, 11),
    ]


def test_times_without_a_change_of_the_rounded_sum_are_omitted() -> None:
    up_and_down = (steps((1, 5), (2, 0)), steps((1, -5), (2, 0.25), (3, 4)))
    assert as_list(demands_of(Load(cpu_mhz=up_and_down)).changes(0, 9_000)) == [(3_000, 0, 0, 4)]


def test_the_types_of_the_arrays_do_not_depend_on_whether_anything_changes() -> None:
    for demands in (demands_of(), demands_of(Load(cpu_mhz=(NOISE,), memory_mib=(NOISE, NOISE)))):
        changes = demands.changes(0, HOUR_MS)
        kinds = [changes.at_ms.dtype, changes.row.dtype, changes.resource.dtype]
        assert [str(kind) for kind in kinds] == ["int64", "int64", "int8"]
        assert changes.value.dtype == np.float64
        assert all(array.dtype == np.float64 for array in demands.at(0))


def test_a_phase_shifts_the_start_of_a_cycle() -> None:
    part = CyclicLoad(high=9, high_s=10, low=1, low_s=5, phase_s=12)
    found = as_list(demands_of(Load(cpu_mhz=(part,))).changes(0, 20_000))
    assert found == [(3_000, 0, 0, 9), (13_000, 0, 0, 1), (18_000, 0, 0, 9)]
    assert cpu_at(0, part) == 1


def test_a_level_is_redrawn_within_a_phase_from_its_start() -> None:
    part = CyclicLoad(high=EVEN, high_s=10, low=0, low_s=5, phase_s=0, redraw_s=4)
    found = as_list(demands_of(Load(cpu_mhz=(part,))).changes(0, 30_000))
    assert [at for at, *_ in found] == [4000, 8000, 10000, 15000, 19000, 23000, 25000, 30000]
    assert len({value for *_, value in found if value}) == 6


def test_a_spike_comes_once_or_repeats() -> None:
    once = SpikeLoad(level=5, at_s=3, for_s=2)
    assert as_list(demands_of(Load(cpu_mhz=(once,))).changes(0, 99_000)) == [
        (3_000, 0, 0, 5),
        (5_000, 0, 0, 0),
    ]
    often = once.but(every_s=10)
    found = as_list(demands_of(Load(cpu_mhz=(often,))).changes(0, 20_000))
    assert [(at, value) for at, *_, value in found] == [
        (3000, 5),
        (5000, 0),
        (13000, 5),
        (15000, 0),
    ]


def test_a_spike_longer_than_its_distance_is_always_on_with_the_latest_draw() -> None:
    part = SpikeLoad(level=EVEN, at_s=3, for_s=50, every_s=10)
    found = as_list(demands_of(Load(cpu_mhz=(part,))).changes(0, 40_000))
    assert [at for at, *_ in found] == [3_000, 13_000, 23_000, 33_000]
    assert all(value for *_, value in found)


def test_a_wave_is_highest_at_its_peak_and_holds_within_an_interval() -> None:
    part = DiurnalLoad(low=0, high=1001)
    assert [cpu_at(hour * HOUR_MS, part) for hour in (14, 2, 38)] == [1001, 0, 1001]
    assert cpu_at(14 * HOUR_MS + 599_999, part) == 1001
    assert cpu_at(14 * HOUR_MS + 3_600_000, part) < 1001


def test_the_last_bit_of_a_cosine_does_not_change_rounding() -> None:
    # A third of a day from the peak the wave is at a quarter: at exactly 250.5 and 251.5.
    assert [cpu_at(hour * HOUR_MS, DiurnalLoad(low=0, high=1002)) for hour in (6, 22)] == [250, 250]
    assert [cpu_at(hour * HOUR_MS, DiurnalLoad(low=0, high=1006)) for hour in (6, 22)] == [252, 252]


def test_vms_with_a_shared_stream_have_equal_loads() -> None:
    part = CyclicLoad(
        high=EVEN, high_s=700, low=Distribution(mean=50, sd=9), low_s=900, redraw_s=300
    )
    joined = Load(cpu_mhz=(part.but(together="web"),))
    demands = demands_of(joined, joined, Load(cpu_mhz=(part,)), Load(cpu_mhz=(part,)))
    found = as_list(demands.changes(0, HOUR_MS))
    lives = [[(at, value) for at, row, _, value in found if row == n] for n in range(4)]
    assert lives[0] == lives[1]
    assert len({tuple(life) for life in lives}) == 3


def test_resources_and_list_positions_have_their_own_streams() -> None:
    part = ConstantLoad(level=EVEN, together="web")
    load = Load(cpu_mhz=(part,), memory_mib=(part,))
    cpu, memory = demands_of(load).at(0)
    both = demands_of(Load(cpu_mhz=(part, part))).at(0)[0]
    assert cpu[0] != memory[0]
    assert both[0] not in (cpu[0], 2 * cpu[0])


def test_the_same_seed_gives_the_same_arrays_and_another_one_others() -> None:
    loads = [Load(cpu_mhz=(NOISE,), memory_pct=(ConstantLoad(level=5), NOISE))] * 5
    first, again, other = (demands_of(*loads, seed=seed).changes(0, HOUR_MS) for seed in (1, 1, 2))
    assert as_list(first) == as_list(again)
    assert as_list(first) != as_list(other)


def test_rows_may_be_sparse_and_are_used_again_after_removal() -> None:
    demands = LoadDemands(1, traces=TraceReader(None))
    demands.add(1000, a_vm("a"), Load(cpu_mhz=(ConstantLoad(level=1), ConstantLoad(level=2))))
    demands.add(7, a_vm("b"), Load(cpu_mhz=(ConstantLoad(level=4),)))
    assert demands.rows().tolist() == [7, 1000]
    assert demands.at(0)[0].tolist() == [4, 3]
    demands.remove(1000)
    demands.add(1000, a_vm("c"), Load(memory_mib=(ConstantLoad(level=8),)))
    assert np.array_equal(demands.at(0), [[4, np.nan], [np.nan, 8]], equal_nan=True)


def test_demands_come_in_the_order_of_the_query() -> None:
    demands = demands_of(*(Load(cpu_mhz=(ConstantLoad(level=level),)) for level in (1, 2, 3)))
    assert demands.at(0, np.array([2, 0, 2]))[0].tolist() == [3, 1, 3]


def test_used_rows_and_unknown_rows_are_bugs() -> None:
    demands = demands_of(Load())
    with pytest.raises(AssertionError, match="has a load already"):
        demands.add(0, a_vm(), Load())
    for row in (-1, 1, 10**6):
        with pytest.raises(AssertionError, match="every row must have been added"):
            demands.at(0, np.array([row]))
        with pytest.raises(AssertionError, match="every row must have been added"):
            demands.remove(row)


def test_an_hour_without_loads_has_no_changes() -> None:
    demands = demands_of()
    assert demands.rows().tolist() == []
    assert demands.changes(0, HOUR_MS).at_ms.size == 0
    assert demands.estimated_changes(HOUR_MS) == 0
    assert [len(array) for array in demands.at(0)] == [0, 0]


def test_the_estimate_counts_each_change_of_each_part() -> None:
    demands = demands_of(Load(cpu_mhz=(NOISE, NOISE), memory_mib=(NOISE,)), Load(cpu_mhz=(NOISE,)))
    assert demands.estimated_changes(HOUR_MS) == 4 * 6
    assert demands_of(Load(cpu_mhz=(NOISE.but(level=3),))).estimated_changes(10**15) == 0
    late = SpikeLoad(level=1, at_s=3000, for_s=1, every_s=10)
    assert demands_of(Load(cpu_mhz=(late,))).estimated_changes(3_000_000) == 1


def test_points_are_sorted_and_the_later_of_two_wins() -> None:
    part = steps((20, 3), (10, 2), (10, 1))
    found = as_list(demands_of(Load(cpu_mhz=(part,))).changes(0, 30_000))
    assert [(at, value) for at, *_, value in found] == [(10_000, 1), (20_000, 3)]
