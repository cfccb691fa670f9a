"""Forecast: what each VM is about to ask for, from what it asked for at that time on other days.

The day is cut into slots. A VM's habit in a slot is a mean over the days, in which recent ones
count more; a day that is far off counts little, unless the next one is like it.

A forecast is told only where it is credible. Its squared error is compared with those of two others
who know no time of day: that all stays as it is now, and that all is as it was on average of late.
The second one is there because of noise: a mean over some days foretells noise better than the
last look does, but no better than the mean over all hours. It takes two things to be credible:

- To have *usually* been clearly better than both. That is counted over about a day, because a VM
  that works at eight gives nobody a chance to be better than anybody during the night before.
- Not to have been wrong *lately*, which is about an hour: no worse than what was believed to stay
  as it is, or than such a belief usually is. So a habit that ends is given up when it first misses.

Who is not credible is foretold to stay as it is, so whoever reads the figures need not ask. All
arrays have CPU in MHz in the first column and memory in MiB in the second one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.model.quantity import VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]
Ints = NDArray[np.int64]
Records = NDArray[np.void]
A = TypeVar("A", bound=np.generic)

NEWEST_DAY: Final = 0.3
"""The weight of a new day in a habit, once there are a few days."""
DAYS_TO_TRIM: Final = 3
"""From so many days on it is known which day would be far off."""
FAR_OFF: Final = 3.0
"""A day counts as being at most so many times the spread away from the habit."""
BETTER: Final = 0.75
"""A forecast must have had at most this part of the others' squared error."""
LATELY_S: Final = 3600
"""After so long, an error counts half for how it was lately. For the usual it takes a period."""
SCORED: Final = 1 / 3
"""For what part of a period forecasts must have been compared before one is believed."""
FORGOTTEN: Final = 3
"""After how many periods somebody who is not there is forgotten."""

HABIT: Final = np.dtype([("days", "f4"), ("mean", "f4", (2,)), ("spread", "f4", (2,))])
"""What is known of a VM in one slot. The spread is the mean distance from the mean."""

TRUST: Final = np.dtype(
    [
        ("scored", "f4"),  # how many slots were compared
        ("usual", "f4", (3, 2)),  # squared errors: of the forecast, of "as now", of "as on average"
        ("lately", "f4", (2, 2)),  # the same, of the first two
        ("slots", "f4"),  # how many slots the average is of,
        ("average", "f4", (2,)),  # over about the last period
    ]
)
"""What is known of the forecasts for a VM."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ahead:
    """What VMs will ask for, one row for each VM of a snapshot, in its order."""

    vm_ids: tuple[VmId, ...]
    credible: Truths
    """Whether there is a forecast; if not, the figures are those of now, and the spread is 0."""
    most: Floats
    """The most from now until the slot that the lead ends in; never less than now."""
    then: Floats
    """What is expected at the end of the lead."""
    spread: Floats
    """How far from the most the days were, on average; 0 if the most is now."""


@dataclass(frozen=True, slots=True, eq=False)
class _Slot:
    """What was seen in one slot of one day: the sums of so many looks."""

    number: int
    looks: Floats
    sums: Floats

    def mean(self) -> Floats:
        mean: Floats = self.sums / np.maximum(self.looks, 1.0)[:, None]
        return mean


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Past:
    """All that is remembered. Every array has a row for each VM, or for the first ones only."""

    at_ms: int = -1
    row_of: dict[VmId, int] = field(default_factory=dict)
    there: Ints
    """The slot in which each VM was last there."""
    slots: tuple[_Slot, ...]
    """The latest slots, as many as it takes to look back by the lead; the last one is not over."""
    habits: tuple[Records, ...]
    trust: Records


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forecast:
    """What is known about the days of VMs. It never changes: ``learnt`` gives the next one."""

    period_s: int = 86_400
    slot_s: int = 900
    lead_s: int = 1800
    """Forecasts are compared with what was known so long before. A habit is as good for any lead,
    and the belief that all stays mostly gets worse with a longer one: then this is cautious."""
    _past: _Past | None = None

    def __post_init__(self) -> None:
        assert self.period_s % self.slot_s == 0, "a period is a whole number of slots"
        assert 0 < self.lead_s < self.period_s, "a lead is shorter than a period"

    def learnt(self, snapshot: Snapshot) -> Self:
        """Take in a snapshot; one that is no newer than the last changes nothing."""
        past = self._past or self._nothing()
        if snapshot.at_ms <= past.at_ms:
            return self
        # A demand is measured before it is told: at the end of a slot it is that slot's.
        number = (snapshot.at_ms - 1) // (1000 * self.slot_s)
        if not past.slots or number > past.slots[-1].number:
            past = self._opened(past, number)
        return replace(self, _past=_looked(past, snapshot))

    def ahead(self, snapshot: Snapshot, lead_s: int) -> Ahead:
        """Foretell what the VMs of a snapshot will ask for within the time to come."""
        past = self._past or self._nothing()
        demand, running = _demands(snapshot)
        # Who is not known has the row behind the last one, in which nothing is known.
        nobody = len(past.row_of)
        rows = np.array([past.row_of.get(vm, nobody) for vm in snapshot.vms], dtype=np.int64)
        credible = self._credible(_for(past.trust, nobody + 1))[rows] & running[:, None]
        most, then, spread = demand, demand, np.zeros_like(demand)
        slot_ms, end_ms = 1000 * self.slot_s, snapshot.at_ms + 1000 * lead_s
        first, last = snapshot.at_ms // slot_ms, end_ms // slot_ms
        for number in range(max(first, last + 1 - self._slots), last + 1):
            habit = _for(past.habits[number % self._slots], nobody + 1)[rows]
            credible &= (habit["days"] > 0)[:, None]
            mean = habit["mean"].astype(np.float64)
            spread = np.where(mean > most, habit["spread"], spread)
            most = np.maximum(most, mean)
            # What begins when the lead ends is already to be prepared for, but not yet there.
            if number * slot_ms < end_ms or number == first:
                then = mean
        return Ahead(
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

    def _nothing(self) -> _Past:
        return _Past(
            there=np.zeros(0, dtype=np.int64),
            slots=(),
            habits=(np.zeros(0, dtype=HABIT),) * self._slots,
            trust=np.zeros(0, dtype=TRUST),
        )

    def _opened(self, past: _Past, number: int) -> _Past:
        """Learn from the slot that is over, and begin one."""
        if past.slots:
            past = self._closed(past, number)
            if number // self._slots > past.slots[-1].number // self._slots:
                past = _without(past, past.there < number - FORGOTTEN * self._slots)
        kept = tuple(slot for slot in past.slots if slot.number >= number - self._lead)
        new = _Slot(number, np.zeros(0), np.zeros((0, 2)))
        return replace(past, slots=(*kept, new))

    def _closed(self, past: _Past, number: int) -> _Past:
        count = len(past.row_of)
        over = past.slots[-1]
        place = over.number % self._slots
        habit = _for(past.habits[place], count)
        trust = self._judged(past, habit)
        # What nobody looks at fades as well: who was away for long has to prove itself again.
        away = number - over.number
        trust["scored"] *= 0.5 ** (away / self._slots)
        trust["usual"] *= 0.5 ** (away / self._slots)
        trust["lately"] *= self._fading**away
        habits = list(past.habits)
        habits[place] = _folded(habit, over)
        return replace(past, habits=tuple(habits), trust=trust)

    @property
    def _fading(self) -> float:
        """What is left of an error of late after one slot."""
        return float(0.5 ** (self.slot_s / LATELY_S))

    def _judged(self, past: _Past, habit: Records) -> Records:
        """Compare what was foretold for the slot that is over with what came."""
        over, trust = past.slots[-1], _for(past.trust, len(past.row_of)).copy()
        seen, mean = over.looks > 0, over.mean()
        before = next((it for it in past.slots if it.number == over.number - self._lead), None)
        if before is not None:
            looks = _for(before.looks, len(trust))
            known = (looks > 0) & seen & (habit["days"] > 0)
            naive = _for(before.mean(), len(trust))
            others = np.stack([habit["mean"], naive, trust["average"]], axis=1)
            errors = np.where(known[:, None, None], (others - mean[:, None]) ** 2, 0.0)
            trust["scored"] += known
            trust["usual"] += errors
            trust["lately"] += errors[:, :2]
        trust["slots"] = np.minimum(trust["slots"] + seen, self._slots)
        weight = np.where(seen, 1 / np.maximum(trust["slots"], 1), 0.0)
        trust["average"] += weight[:, None] * (mean - trust["average"])
        return trust

    def _credible(self, trust: Records) -> Truths:
        usual, scored = trust["usual"], trust["scored"]
        enough = scored >= SCORED * self._slots
        better = usual[:, 0] < BETTER * usual[:, 1:].min(axis=1)
        lately = (1 - self._fading) * trust["lately"]
        bearable = np.maximum(lately[:, 1], usual[:, 1] / np.maximum(scored, 1)[:, None])
        found: Truths = enough[:, None] & better & (lately[:, 0] <= bearable)
        return found


def _demands(snapshot: Snapshot) -> tuple[Floats, Truths]:
    """What VMs ask for, and who runs: the others ask for nothing that means anything."""
    vms = snapshot.vms.values()
    demand = np.empty((len(vms), 2))
    demand[:, 0] = [vm.demand.cpu_mhz for vm in vms]
    demand[:, 1] = [vm.demand.memory_mib for vm in vms]
    return demand, np.array([vm.state is VmState.RUNNING for vm in vms], dtype=np.bool_)


def _for(array: NDArray[A], count: int) -> NDArray[A]:
    """An array with rows of zeros for those who have come since."""
    if len(array) == count:
        return array
    longer = np.zeros((count, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


def _looked(past: _Past, snapshot: Snapshot) -> _Past:
    """Add what a snapshot shows to the slot that is not over."""
    row_of, now = past.row_of, past.slots[-1]
    new = [vm for vm in snapshot.vms if vm not in row_of]
    if new:
        row_of = row_of | {vm: row for row, vm in enumerate(new, start=len(row_of))}
    rows = np.array([row_of[vm] for vm in snapshot.vms], dtype=np.int64)
    demand, running = _demands(snapshot)
    there = _for(past.there, len(row_of)).copy()
    looks, sums = _for(now.looks, len(row_of)).copy(), _for(now.sums, len(row_of)).copy()
    there[rows] = now.number
    looks[rows] += running
    sums[rows] += np.where(running[:, None], demand, 0.0)
    slots = (*past.slots[:-1], _Slot(now.number, looks, sums))
    return replace(past, at_ms=snapshot.at_ms, row_of=row_of, there=there, slots=slots)


def _folded(habit: Records, over: _Slot) -> Records:
    """Let a day change a habit."""
    habit, seen = habit.copy(), over.looks > 0
    days, spread = habit["days"], habit["spread"]
    weight = np.where(seen, np.maximum(1 / (days + 1), NEWEST_DAY), 0.0)[:, None]
    off = over.mean() - habit["mean"]
    bound = np.where((days < DAYS_TO_TRIM)[:, None], np.inf, FAR_OFF * spread)
    habit["mean"] += weight * np.clip(off, -bound, bound)
    # The spread follows the full distance, so that a second such day is believed.
    habit["spread"] += np.where((days > 0)[:, None], weight * (np.abs(off) - spread), 0.0)
    habit["days"] += seen
    return habit


def _without(past: _Past, gone: Truths) -> _Past:
    """Forget some VMs."""
    if not gone.any():
        return past
    names = [vm for vm, row in past.row_of.items() if not gone[row]]

    def kept(array: NDArray[A]) -> NDArray[A]:
        return array[~gone[: len(array)]]

    return replace(
        past,
        row_of={vm: row for row, vm in enumerate(names)},
        there=kept(past.there),
        slots=tuple(_Slot(it.number, kept(it.looks), kept(it.sums)) for it in past.slots),
        habits=tuple(map(kept, past.habits)),
        trust=kept(past.trust),
    )
