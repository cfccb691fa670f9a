"""The forecast predicts habits, not noise; recent errors make it lose its credibility."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from builders import a_vm
from equipoise.balance.rebalance.forecast import DemandForecast, DemandForecaster
from equipoise.model.quantity import VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Demand, VmState

HOUR = 3600
DAY = 24 * HOUR
PASS = 300
LEAD = 1800

Figures = Mapping[str, tuple[int, int]]
Load = Callable[[int], Figures]
"""What the VMs were measured to ask for at a time in seconds; who is not in it is not there."""


def seen(at_s: int, demand: Figures, state: VmState = VmState.RUNNING) -> Snapshot:
    vms = {
        VmId(name): a_vm(name, "h1", demand=Demand(cpu_mhz=mhz, memory_mib=mib), state=state)
        for name, (mhz, mib) in demand.items()
    }
    return Snapshot(at_ms=1000 * at_s, vms=FrozenMap(vms))


def after(
    load: Load, start_s: int, end_s: int, forecast: DemandForecaster | None = None
) -> DemandForecaster:
    """What is known after passes from ``start_s`` up to and including ``end_s``."""
    forecast = forecast or DemandForecaster()
    for at_s in range(start_s, end_s + 1, PASS):
        forecast = forecast.learn(seen(at_s, load(at_s)))
    return forecast


def is_spike(at_s: int) -> bool:
    """From eight to a quarter to nine; what is measured at eight was before it."""
    return 8 * HOUR < at_s % DAY <= 8 * HOUR + 2700


def spike(at_s: int) -> Figures:
    """A VM that is busy from eight o'clock on."""
    return {"a": (2300, 700) if is_spike(at_s) else (300, 200)}


def quiet(_at_s: int) -> Figures:
    return {"a": (300, 200)}


def ahead(forecast: DemandForecaster, load: Load, at_s: int, lead_s: int = LEAD) -> DemandForecast:
    return forecast.ahead(seen(at_s, load(at_s)), lead_s)


def test_constant_demand_is_predicted_to_stay() -> None:
    forecast = after(quiet, 0, 3 * DAY)
    found = ahead(forecast, quiet, 3 * DAY)
    for figures in (found.most, found.then):
        assert figures.tolist() == [[300, 200]]


def test_no_forecast_is_credible_on_the_first_day() -> None:
    forecast = DemandForecaster()
    for at_s in range(0, DAY, PASS):
        forecast = forecast.learn(seen(at_s, spike(at_s)))
        found = ahead(forecast, spike, at_s)
        assert not found.credible.any()
        assert found.most.tolist() == found.then.tolist() == [list(spike(at_s)["a"])]


def test_a_daily_spike_is_predicted_after_two_days() -> None:
    chance = np.random.default_rng(1)

    def restless(at_s: int) -> Figures:
        mhz, mib = spike(at_s)["a"]
        return {"a": (mhz + int(chance.normal(0, 30)), mib)}

    now_s = 2 * DAY + 8 * HOUR - LEAD
    found = ahead(after(restless, 0, now_s), quiet, now_s)
    assert found.vm_ids == ("a",)
    assert found.credible.all()
    assert found.most[0] == pytest.approx([2300, 700], rel=0.1)
    assert found.then[0] == pytest.approx([300, 200], rel=0.1), "at eight it has not begun"
    assert 0 < found.spread[0, 0] < 100


def test_the_end_of_a_spike_is_predicted() -> None:
    now_s = 2 * DAY + 8 * HOUR + 1800
    found = ahead(after(spike, 0, now_s), spike, now_s)
    assert found.credible.all()
    assert found.most.tolist() == [[2300, 700]], "now is part of the time to come"
    assert found.then.tolist() == [[300, 200]]


def test_the_run_may_begin_at_any_time_of_day() -> None:
    begin_s = 5 * HOUR + 7 * PASS
    now_s = begin_s + 2 * DAY + 8 * HOUR - LEAD
    found = ahead(
        after(lambda at_s: spike(at_s - begin_s), begin_s, now_s),
        lambda at_s: spike(at_s - begin_s),
        now_s,
    )
    assert found.credible.all()
    assert found.most[0, 0] > 1200, "a spike that lies across slots is smeared by part of one"


def white(chance: np.random.Generator, looks: int, vms: int) -> NDArray[np.float64]:
    return chance.normal(0, 400, (looks, vms))


def correlated(chance: np.random.Generator, looks: int, vms: int) -> NDArray[np.float64]:
    """Noise that takes an hour to forget where it was."""
    noise, stays = chance.normal(0, 400, (looks, vms)), np.exp(-1 / 12)
    for look in range(1, looks):
        noise[look] = stays * noise[look - 1] + np.sqrt(1 - stays**2) * noise[look]
    return noise


def held(chance: np.random.Generator, looks: int, vms: int) -> NDArray[np.float64]:
    """Levels that last for six hours."""
    return np.repeat(chance.normal(0, 400, (looks // 72 + 1, vms)), 72, axis=0)[:looks]


def walk(chance: np.random.Generator, looks: int, vms: int) -> NDArray[np.float64]:
    return np.cumsum(chance.normal(0, 40, (looks, vms)), axis=0)


def bursts(chance: np.random.Generator, looks: int, vms: int) -> NDArray[np.float64]:
    """An hour of work at any time, four times a day."""
    begun = chance.random((looks, vms)) < 4 / 288
    busy = np.stack([np.roll(begun, shift, axis=0) for shift in range(12)]).any(axis=0)
    return np.where(busy, 2000.0, 0.0)


@pytest.mark.parametrize("noise", [white, correlated, held, walk, bursts])
def test_noise_is_not_taken_for_a_habit(
    noise: Callable[[np.random.Generator, int, int], NDArray[np.float64]],
) -> None:
    vms, days = 50, 4
    figures = noise(np.random.default_rng(2), days * DAY // PASS, vms)
    demands = np.rint(np.abs(2000 + figures)).astype(int).tolist()
    forecast, believed = DemandForecaster(), 0
    for look, row in enumerate(demands):
        now = seen(look * PASS, {f"v{vm}": (mhz, mhz) for vm, mhz in enumerate(row)})
        forecast = forecast.learn(now)
        found = forecast.ahead(now, LEAD)
        believed += int(found.credible[:, 0].sum())
        doubted = ~found.credible[:, 0]
        assert found.most[doubted, 0].tolist() == np.array(row)[doubted].tolist()
    assert believed < 0.02 * len(demands) * vms


def test_a_habit_that_ends_is_dropped_at_the_first_miss() -> None:
    eight = 3 * DAY + 8 * HOUR
    forecast = after(spike, 0, eight)
    assert ahead(forecast, quiet, eight).credible.all()
    forecast = after(quiet, eight + PASS, eight + 1200, forecast)
    found = ahead(forecast, quiet, eight + 1200)
    assert not found.credible.any()
    assert found.most.tolist() == [[300, 200]]


def test_a_forecast_that_is_right_again_is_credible_again() -> None:
    ends, back = 4 * DAY, 6 * DAY
    forecast = after(spike, 0, ends)
    forecast = after(quiet, ends + PASS, back, forecast)
    assert not ahead(forecast, quiet, back + 8 * HOUR - LEAD).credible.any()
    now_s = back + 2 * DAY + 8 * HOUR - LEAD
    found = ahead(after(spike, back + PASS, now_s, forecast), spike, now_s)
    assert found.credible.all()
    assert found.most[0, 0] > 1500


def test_one_outlier_changes_little_and_a_second_one_more() -> None:
    forecast = after(spike, 0, 5 * DAY)
    heights = []
    for day in (5, 6):
        forecast = after(quiet, day * DAY + PASS, (day + 1) * DAY, forecast)
        place = 8 * HOUR // 900
        assert forecast._past is not None
        heights.append(float(forecast._past.habits[place]["mean"][0, 0]))
    assert heights[0] == pytest.approx(2300)
    assert 1300 < heights[1] < 2000


def test_gaps_do_no_harm() -> None:
    """There are no snapshots for two hours of the second day and in the third night."""
    forecast = after(spike, 0, DAY + 13 * HOUR)
    forecast = after(spike, DAY + 15 * HOUR, DAY + 22 * HOUR, forecast)
    now_s = 2 * DAY + 8 * HOUR - LEAD
    forecast = after(spike, now_s - 600, now_s, forecast)
    found = ahead(forecast, spike, now_s)
    assert found.credible.all()
    assert found.most.tolist() == [[2300, 700]]


def test_without_snapshots_nothing_is_predicted() -> None:
    def not_at_noon(at_s: int) -> bool:
        return not 12 * HOUR < at_s % DAY <= 13 * HOUR

    forecast = DemandForecaster()
    for at_s in filter(not_at_noon, range(0, 3 * DAY, PASS)):
        forecast = forecast.learn(seen(at_s, spike(at_s)))
    assert ahead(forecast, quiet, 3 * DAY + 10 * HOUR).credible.all()
    assert not ahead(forecast, quiet, 3 * DAY + 12 * HOUR - 900).credible.any()


def test_after_a_long_gap_trust_is_earned_again() -> None:
    forecast = after(spike, 0, 3 * DAY)
    late_s = 9 * DAY + 8 * HOUR - LEAD
    forecast = after(spike, late_s - HOUR, late_s, forecast)
    assert not ahead(forecast, spike, late_s).credible.any()


def test_a_vm_that_does_not_run_is_neither_learnt_nor_predicted() -> None:
    now_s = 2 * DAY + 8 * HOUR - LEAD
    forecast = after(spike, 0, now_s - HOUR)
    asleep = seen(now_s, {"a": (0, 0)}, VmState.SLEEPING)
    for at_s in range(now_s - HOUR + PASS, now_s, PASS):
        forecast = forecast.learn(seen(at_s, {"a": (0, 0)}, VmState.SLEEPING))
    assert not forecast.ahead(asleep, LEAD).credible.any()
    awake = ahead(forecast, spike, now_s)
    assert awake.credible.all()
    assert awake.most.tolist() == [[2300, 700]]


def test_the_same_snapshot_does_not_count_twice() -> None:
    now_s = 2 * DAY + 8 * HOUR - LEAD
    once = after(spike, 0, now_s)
    assert once.learn(seen(now_s, {"a": (9, 9)})) is once
    assert once.learn(seen(now_s - PASS, {"a": (9, 9)})) is once


def test_learning_does_not_change_the_previous_forecaster() -> None:
    now_s = 2 * DAY + 8 * HOUR - LEAD
    known = after(spike, 0, now_s)
    before = ahead(known, spike, now_s)
    after(quiet, now_s + PASS, now_s + DAY, known)
    again = ahead(known, spike, now_s)
    assert again.most.tolist() == before.most.tolist()
    assert again.credible.tolist() == before.credible.tolist()


def test_an_absent_vm_is_forgotten() -> None:
    """Every six hours a new VM replaces the old one."""

    def passers_by(at_s: int) -> Figures:
        return {"a": (300, 200), f"guest{at_s // (6 * HOUR)}": (at_s % 1000, 1)}

    forecast, names = DemandForecaster(), set[VmId]()
    for day in range(12):
        forecast = after(passers_by, day * DAY, (day + 1) * DAY - PASS, forecast)
        assert forecast._past is not None
        names = set(forecast._past.row_of)
        assert len(names) <= 1 + 4 * (3 + 2), "of three days, of today and of the day of leaving"
        assert all(len(habit) <= len(names) for habit in forecast._past.habits)
    assert VmId("a") in names
    assert VmId("guest0") not in names


def test_forgetting_a_vm_keeps_the_habits_of_the_others() -> None:
    """The first in line leaves for good; the rows behind it move up."""

    def both(at_s: int) -> Figures:
        return {"gone": (77, 7), **spike(at_s)} if at_s < DAY else spike(at_s)

    now_s = 6 * DAY + 8 * HOUR - LEAD
    found = ahead(after(both, 0, now_s), both, now_s)
    assert found.credible.all()
    assert found.most.tolist() == [[2300, 700]]


small = st.integers(0, 50)
looks = st.lists(
    st.tuples(
        st.integers(1, 25), st.dictionaries(st.sampled_from("abcd"), st.tuples(small, small))
    ),
    max_size=60,
)


def lived(steps: list[tuple[int, dict[str, tuple[int, int]]]]) -> tuple[DemandForecaster, Snapshot]:
    """A hasty life: a day has forty seconds and four slots."""
    forecast, at_s, now = DemandForecaster(period_s=40, slot_s=10, lead_s=10), 0, seen(0, {})
    for wait_s, demand in steps:
        at_s += wait_s
        now = seen(at_s, demand)
        forecast = forecast.learn(now)
    return forecast, now


@given(looks, st.integers(0, 100))
def test_a_forecast_is_at_least_the_current_demand_and_equal_to_it_if_not_credible(
    steps: list[tuple[int, dict[str, tuple[int, int]]]], lead_s: int
) -> None:
    forecast, now = lived(steps)
    found = forecast.ahead(now, lead_s)
    demand = np.array(
        [(vm.demand.cpu_mhz, vm.demand.memory_mib) for vm in now.vms.values()]
    ).reshape(-1, 2)
    assert (found.most >= demand).all()
    assert (found.most <= 50).all()
    assert (found.then <= found.most).all()
    assert (found.spread >= 0).all()
    assert (found.most == demand)[~found.credible].all()
    assert (found.then == demand)[~found.credible].all()


@given(looks, st.permutations("abcd"))
def test_names_and_order_of_vms_do_not_matter(
    steps: list[tuple[int, dict[str, tuple[int, int]]]], names: list[str]
) -> None:
    new = dict(zip("abcd", names, strict=True))
    turned = [
        (wait_s, {new[vm]: figures for vm, figures in reversed(demand.items())})
        for wait_s, demand in steps
    ]
    forecast, now = lived(steps)
    other, then = lived(turned)
    found, again = forecast.ahead(now, 20), other.ahead(then, 20)
    assert [new[vm] for vm in found.vm_ids] == list(again.vm_ids)[::-1]
    for first, second in (
        (found.credible, again.credible),
        (found.most, again.most),
        (found.then, again.then),
        (found.spread, again.spread),
    ):
        assert first.tolist() == second.tolist()[::-1]
