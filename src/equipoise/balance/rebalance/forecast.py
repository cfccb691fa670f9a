"""Demand forecast: the demand each VM is about to have, from the same time on earlier days.

The period (a day) is divided into slots. The habit of a VM in a slot is a mean over the days, with
more weight on recent days; an outlier counts little unless the next day is like it.

A forecast is used only where it is credible. Its squared error is compared with two naive
forecasts: demand stays as it is now, and demand is the recent average. To be credible, a forecast

- was usually clearly better than both, counted over about a day, and
- was not wrong lately, counted over about an hour: a habit that ends is dropped at once.

A VM without a credible forecast is predicted to stay as it is. All arrays have CPU in MHz in the
first column and memory in MiB in the second.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.model.quantity import VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Records = NDArray[np.void]
A = TypeVar("A", bound=np.generic)

NEW_DAY_WEIGHT: Final = 0.3
"""The weight of a new day in a habit, once there are a few days."""
OUTLIER_DAYS_MIN: Final = 3
"""Outliers are limited from this number of days on."""
OUTLIER_SPREADS: Final = 3.0
"""A day counts as at most this many spreads away from the habit."""
ERROR_RATIO_MAX: Final = 0.75
"""A credible forecast has at most this part of the squared error of the naive ones."""
RECENT_HALF_LIFE_S: Final = 3600
"""Half-life of the recent errors. The usual errors have a half-life of one period."""
SCORED_SHARE_MIN: Final = 1 / 3
"""The part of a period for which forecasts must have been scored to be credible."""
FORGET_AFTER_PERIODS: Final = 3
"""A VM that is absent for this many periods is forgotten."""

HABIT_DTYPE: Final = np.dtype([("days", "f4"), ("mean", "f4", (2,)), ("spread", "f4", (2,))])
"""The habit of a VM in one slot. The spread is the mean distance from the mean."""

TRUST_DTYPE: Final = np.dtype(
    [
        ("scored", "f4"),  # how many slots were compared
        ("usual", "f4", (3, 2)),  # squared errors: of the forecast, of "as now", of "as on average"
        ("lately", "f4", (2, 2)),  # the same, of the first two
        ("slots", "f4"),  # how many slots the average is of,
        ("average", "f4", (2,)),  # over about the last period
    ]
)
"""The errors of the forecasts for a VM."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemandForecast:
    """The predicted demand; one row per VM of a snapshot, in its order."""

    vm_ids: tuple[VmId, ...]
    credible: Bools
    """Whether there is a forecast; if not, the figures are the current demand, the spread 0."""
    most: Floats
    """The maximum until the slot in which the lead ends; never below the current demand."""
    then: Floats
    """The demand at the end of the lead."""
    spread: Floats
    """The mean distance of earlier days from the maximum; 0 if the maximum is now."""


@dataclass(frozen=True, slots=True, eq=False)
class _Slot:
    """The observations in one slot of one day, as sums."""

    number: int
    looks: Floats
    sums: Floats

    def mean(self) -> Floats:
        """Return the mean demand per VM."""
        mean: Floats = self.sums / np.maximum(self.looks, 1.0)[:, None]
        return mean


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LearntDemand:
    """The learnt state. Arrays have a row per VM; rows of new VMs may be missing at the end."""

    at_ms: int = -1
    row_of: dict[VmId, int] = field(default_factory=dict)
    last_seen: Ints
    """The last slot in which each VM existed."""
    slots: tuple[_Slot, ...]
    """The latest slots, enough to look back by the lead; the last one is still open."""
    habits: tuple[Records, ...]
    trust: Records


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemandForecaster:
    """Learns the daily habits of VMs. It is immutable: ``learn`` returns the next one."""

    period_s: int = 86_400
    slot_s: int = 900
    lead_s: int = 1800
    """The lead with which forecasts are scored.

    The error of a habit does not depend on the lead. The error of "demand stays" grows with it, so
    for longer leads the comparison is on the safe side.
    """
    _past: _LearntDemand | None = None

    def __post_init__(self) -> None:
        assert self.period_s % self.slot_s == 0, "a period is a whole number of slots"
        assert 0 < self.lead_s < self.period_s, "a lead is shorter than a period"

    def learn(self, snapshot: Snapshot) -> Self:
        """Return a forecaster that knows the snapshot; an older snapshot changes nothing."""
        past = self._past or self._nothing_learnt()
        if snapshot.at_ms <= past.at_ms:
            return self
        # A demand at the very end of a slot was measured within that slot.
        number = (snapshot.at_ms - 1) // (1000 * self.slot_s)
        if not past.slots or number > past.slots[-1].number:
            past = self._open_slot(past, number)
        return replace(self, _past=_with_observation(past, snapshot))

    def ahead(self, snapshot: Snapshot, lead_s: int) -> DemandForecast:
        """Return the predicted demand of the VMs of a snapshot within the next ``lead_s``."""
        past = self._past or self._nothing_learnt()
        demand, running = _demands(snapshot)
        # An unknown VM gets the row after the last one, which is all zeros.
        unknown = len(past.row_of)
        # Zero rows have no days and no score, so an unknown VM is never credible.
        rows = np.array([past.row_of.get(vm, unknown) for vm in snapshot.vms], dtype=np.int64)
        credible = self._credible(_padded(past.trust, unknown + 1))[rows] & running[:, None]
        most, then, spread = demand, demand, np.zeros_like(demand)
        slot_ms, end_ms = 1000 * self.slot_s, snapshot.at_ms + 1000 * lead_s
        first, last = snapshot.at_ms // slot_ms, end_ms // slot_ms
        # A lead longer than a period sees each slot of the day once.
        for number in range(max(first, last + 1 - self._slots), last + 1):
            habit = _padded(past.habits[number % self._slots], unknown + 1)[rows]
            credible &= (habit["days"] > 0)[:, None]
            mean = habit["mean"].astype(np.float64)
            spread = np.where(mean > most, habit["spread"], spread)
            most = np.maximum(most, mean)
            # A slot that begins when the lead ends counts for the maximum, but not for ``then``.
            if number * slot_ms < end_ms or number == first:
                then = mean
        return DemandForecast(
            vm_ids=tuple(snapshot.vms),
            credible=credible,
            most=np.where(credible, most, demand),
            then=np.where(credible, then, demand),
            spread=np.where(credible, spread, 0.0),
        )

    @property
    def _slots(self) -> int:
        return self.period_s // self.slot_s

    @property
    def _lead(self) -> int:
        """The lead in slots."""
        return -(-self.lead_s // self.slot_s)

    def _nothing_learnt(self) -> _LearntDemand:
        return _LearntDemand(
            last_seen=np.zeros(0, dtype=np.int64),
            slots=(),
            habits=(np.zeros(0, dtype=HABIT_DTYPE),) * self._slots,
            trust=np.zeros(0, dtype=TRUST_DTYPE),
        )

    def _open_slot(self, past: _LearntDemand, number: int) -> _LearntDemand:
        """Close the last slot, and open the slot with this number."""
        if past.slots:
            past = self._close_slot(past, number)
            # Once per period is enough, because dropping rows copies every array.
            if number // self._slots > past.slots[-1].number // self._slots:
                past = _without_vms(
                    past, past.last_seen < number - FORGET_AFTER_PERIODS * self._slots
                )
        # Scoring compares the last slot with the one a lead before; older slots are never read
        # again.
        kept = tuple(slot for slot in past.slots if slot.number >= number - self._lead)
        new = _Slot(number, np.zeros(0), np.zeros((0, 2)))
        return replace(past, slots=(*kept, new))

    def _close_slot(self, past: _LearntDemand, number: int) -> _LearntDemand:
        """Score the forecasts of the last slot, and add it to the habits."""
        count = len(past.row_of)
        over = past.slots[-1]
        place = over.number % self._slots
        habit = _padded(past.habits[place], count)
        trust = self._score_forecasts(past, habit)
        # Errors fade also while there are no snapshots: after a long gap, trust is earned again.
        away = number - over.number
        trust["scored"] *= 0.5 ** (away / self._slots)
        trust["usual"] *= 0.5 ** (away / self._slots)
        trust["lately"] *= self._fading**away
        habits = list(past.habits)
        habits[place] = _updated_habit(habit, over)
        return replace(past, habits=tuple(habits), trust=trust)

    @property
    def _fading(self) -> float:
        """The part of a recent error that remains after one slot."""
        return float(0.5 ** (self.slot_s / RECENT_HALF_LIFE_S))

    def _score_forecasts(self, past: _LearntDemand, habit: Records) -> Records:
        """Return the errors, with those of the last slot added."""
        over, trust = past.slots[-1], _padded(past.trust, len(past.row_of)).copy()
        seen, mean = over.looks > 0, over.mean()
        before = next(
            (slot for slot in past.slots if slot.number == over.number - self._lead), None
        )
        if before is not None:
            looks = _padded(before.looks, len(trust))
            known = (looks > 0) & seen & (habit["days"] > 0)
            naive = _padded(before.mean(), len(trust))
            # ``habit`` is the one before this slot is learnt, so the forecast is scored on data it
            # has not seen.
            others = np.stack([habit["mean"], naive, trust["average"]], axis=1)
            errors = np.where(known[:, None, None], (others - mean[:, None]) ** 2, 0.0)
            trust["scored"] += known
            trust["usual"] += errors
            trust["lately"] += errors[:, :2]
        trust["slots"] = np.minimum(trust["slots"] + seen, self._slots)
        weight = np.where(seen, 1 / np.maximum(trust["slots"], 1), 0.0)
        trust["average"] += weight[:, None] * (mean - trust["average"])
        return trust

    def _credible(self, trust: Records) -> Bools:
        """Return per VM and resource whether its forecast is credible."""
        usual, scored = trust["usual"], trust["scored"]
        enough = scored >= SCORED_SHARE_MIN * self._slots
        better = usual[:, 0] < ERROR_RATIO_MAX * usual[:, 1:].min(axis=1)
        lately = (1 - self._fading) * trust["lately"]
        # In a quiet hour "as now" has almost no error, and any forecast would look wrong. So an
        # error up to the usual error of "as now" is always allowed.
        bearable = np.maximum(lately[:, 1], usual[:, 1] / np.maximum(scored, 1)[:, None])
        credible: Bools = enough[:, None] & better & (lately[:, 0] <= bearable)
        return credible


def _demands(snapshot: Snapshot) -> tuple[Floats, Bools]:
    """Return the demand of all VMs, and which of them run; only their demand means anything."""
    vms = snapshot.vms.values()
    demand = np.empty((len(vms), 2))
    demand[:, 0] = [vm.demand.cpu_mhz for vm in vms]
    demand[:, 1] = [vm.demand.memory_mib for vm in vms]
    return demand, np.array([vm.state is VmState.RUNNING for vm in vms], dtype=np.bool_)


def _padded(array: NDArray[A], count: int) -> NDArray[A]:
    """Return the array with rows of zeros for VMs that are new."""
    if len(array) == count:
        return array
    longer = np.zeros((count, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def _with_observation(past: _LearntDemand, snapshot: Snapshot) -> _LearntDemand:
    """Return the state with the demands of a snapshot added to the open slot."""
    row_of, now = past.row_of, past.slots[-1]
    new = [vm for vm in snapshot.vms if vm not in row_of]
    if new:
        row_of = row_of | {vm: row for row, vm in enumerate(new, start=len(row_of))}
    rows = np.array([row_of[vm] for vm in snapshot.vms], dtype=np.int64)
    demand, running = _demands(snapshot)
    last_seen = _padded(past.last_seen, len(row_of)).copy()
    looks, sums = _padded(now.looks, len(row_of)).copy(), _padded(now.sums, len(row_of)).copy()
    last_seen[rows] = now.number
    looks[rows] += running
    sums[rows] += np.where(running[:, None], demand, 0.0)
    slots = (*past.slots[:-1], _Slot(now.number, looks, sums))
    return replace(past, at_ms=snapshot.at_ms, row_of=row_of, last_seen=last_seen, slots=slots)


def _updated_habit(habit: Records, over: _Slot) -> Records:
    """Return the habit with one more day."""
    habit, seen = habit.copy(), over.looks > 0
    days, spread = habit["days"], habit["spread"]
    # The first days have equal weight: a plain mean until there are enough days to forget.
    weight = np.where(seen, np.maximum(1 / (days + 1), NEW_DAY_WEIGHT), 0.0)[:, None]
    off = over.mean() - habit["mean"]
    bound = np.where((days < OUTLIER_DAYS_MIN)[:, None], np.inf, OUTLIER_SPREADS * spread)
    habit["mean"] += weight * np.clip(off, -bound, bound)
    # The spread grows by the full distance, so that a second such day is no outlier.
    habit["spread"] += np.where((days > 0)[:, None], weight * (np.abs(off) - spread), 0.0)
    habit["days"] += seen
    return habit


def _without_vms(past: _LearntDemand, gone: Bools) -> _LearntDemand:
    """Return the state without some VMs."""
    if not gone.any():
        return past
    names = [vm for vm, row in past.row_of.items() if not gone[row]]

    def kept(array: NDArray[A]) -> NDArray[A]:
        return array[~gone[: len(array)]]

    return replace(
        past,
        row_of={vm: row for row, vm in enumerate(names)},
        last_seen=kept(past.last_seen),
        slots=tuple(_Slot(slot.number, kept(slot.looks), kept(slot.sums)) for slot in past.slots),
        habits=tuple(map(kept, past.habits)),
        trust=kept(past.trust),
    )


def with_forecast_demand(snapshot: Snapshot, forecast: DemandForecast) -> tuple[Snapshot, int]:
    """Return the snapshot with the predicted maximum as demand, and how many VMs changed.

    The demand of a VM never falls: capacity is not given away before it is free.
    """
    rows = np.nonzero(forecast.credible.any(axis=1))[0]
    changed = {}
    for row in rows.tolist():
        vm = snapshot.vms[forecast.vm_ids[row]]
        cpu_mhz, memory_mib = (round(figure) for figure in forecast.most[row].tolist())
        demand = vm.demand.but(cpu_mhz=cpu_mhz, memory_mib=min(memory_mib, vm.memory_mib))
        if demand != vm.demand:
            changed[vm.id] = vm.but(demand=demand)
    if not changed:
        return snapshot, 0
    return replace(snapshot, vms=snapshot.vms.but(changed)), len(changed)
