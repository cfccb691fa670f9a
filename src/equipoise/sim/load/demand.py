"""Demands: what each VM asks for at a time, and when that changes.

A VM's demand for a resource is the sum of its parts in the order of its list, at least nothing and
at most what the VM can use, rounded to a whole number. Here, VMs are rows of somebody's arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.model.story.load import Load, Part
from equipoise.model.vm import Vm
from equipoise.sim.load.parts import Parts, Place
from equipoise.sim.load.sheet import Floats, Integers, Sheet
from equipoise.sim.load.trace import TraceReader

CPU: Final = 0
MEMORY: Final = 1
_CPU_MHZ_MAX: Final = 10**9


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of demands, in the order of time, row and resource."""

    at_ms: Integers
    row: Integers
    resource: NDArray[np.int8]
    """0 for CPU, 1 for memory."""
    value: Floats
    """The demand from then on."""

    def __len__(self) -> int:
        return len(self.at_ms)


class _Found(NamedTuple):
    slot: Integers
    at_ms: Integers
    value: Floats


class Demands:
    """The demands of all VMs that have a load."""

    def __init__(self, seed: int, *, traces: TraceReader) -> None:
        self._parts = Parts(seed, traces)
        self._rows = Sheet(known=np.bool_)
        # Two slots per row: CPU and memory. A slot has the first part of its list.
        self._slots = Sheet(head=np.int64, most=np.float64)

    def add(self, row: int, vm: Vm, load: Load) -> None:
        """Take up the load of a VM. A trace that cannot be used is refused here."""
        assert row >= 0, "rows are counted from 0"
        assert not (load.memory_mib and load.memory_pct), "memory in MiB or in percent, not both"
        self._rows.make_room(row + 1)
        assert not self._rows["known"][row], f"row {row} is taken"
        for part in (*load.cpu_mhz, *load.memory_mib, *load.memory_pct):
            self._parts.learn(part)
        self._slots.make_room(2 * row + 2)
        self._rows["known"][row] = True
        self._slots["most"][2 * row] = _CPU_MHZ_MAX
        self._slots["most"][2 * row + 1] = vm.memory_mib
        size = vm.memory_mib if load.memory_pct else 0
        self._chain(2 * row, vm, load.cpu_mhz, 0)
        self._chain(2 * row + 1, vm, load.memory_pct or load.memory_mib, size)

    def _chain(self, slot: int, vm: Vm, parts: tuple[Part, ...], size_mib: int) -> None:
        resource = "memory" if slot % 2 else "cpu"
        head = 0
        for position in reversed(range(len(parts))):
            place = Place(vm.id, resource, position, size_mib)
            head = self._parts.add(parts[position], place, head)
        self._slots["head"][slot] = head

    def remove(self, row: int) -> None:
        """Forget the load of a VM."""
        self._check(np.array([row]))
        for slot in (2 * row, 2 * row + 1):
            self._parts.free(int(self._slots["head"][slot]))
            self._slots["head"][slot] = 0
        self._rows["known"][row] = False

    def rows(self) -> Integers:
        """The rows that have a load, in ascending order."""
        return np.flatnonzero(self._rows["known"])

    def at(self, at_ms: int, rows: Integers | None = None) -> tuple[Floats, Floats]:
        """The demands for CPU and memory at a time, one of each per row.

        They are NaN where the load says nothing, so that what the inventory says holds.
        """
        assert at_ms >= 0, "a run begins at 0"
        asked = self.rows() if rows is None else self._check(rows)
        self._parts.write()
        slots = np.concatenate((2 * asked, 2 * asked + 1))
        out = np.full(len(slots), np.nan)
        told = np.flatnonzero(self._slots["head"][slots])
        out[told] = self._totals(slots[told], np.full(len(told), at_ms))
        return out[: len(asked)], out[len(asked) :]

    def changes(self, from_ms: int, until_ms: int, rows: Integers | None = None) -> Changes:
        """All changes after ``from_ms`` and not after ``until_ms``."""
        assert 0 <= from_ms <= until_ms, f"{from_ms} to {until_ms} is no time of a run"
        self._parts.write()
        slots = self._told(None if rows is None else np.unique(self._check(rows)))
        is_single = self._parts.following(self._slots["head"][slots]) == 0
        found = [
            how(chosen, from_ms, until_ms)
            for how, chosen in ((self._single, slots[is_single]), (self._sums, slots[~is_single]))
            if chosen.size
        ]
        empty = np.zeros(0, dtype=np.int64)
        slot = np.concatenate([empty, *(some.slot for some in found)])
        at_ms = np.concatenate([empty, *(some.at_ms for some in found)])
        value = np.concatenate([np.zeros(0), *(some.value for some in found)])
        order = np.lexsort((slot, at_ms))
        slot = slot[order]
        return Changes(at_ms[order], slot >> 1, (slot & 1).astype(np.int8), value[order])

    def estimated_changes(self, duration_ms: int) -> int:
        """At most how many changes there are from the start of a run, without counting them out."""
        self._parts.write()
        _, parts = self._expanded(self._told(None))
        return self._parts.changes(parts, 0, duration_ms)

    def _check(self, rows: Integers) -> Integers:
        assert _all_known(rows, self._rows["known"]), "only rows that were added can be asked for"
        return rows

    def _told(self, rows: Integers | None) -> Integers:
        """The slots of the rows that have parts, in ascending order."""
        if rows is None:
            return np.flatnonzero(self._slots["head"])
        slots: Integers = (2 * rows[:, None] + np.array([CPU, MEMORY])).ravel()
        return slots[self._slots["head"][slots] > 0]

    def _single(self, slots: Integers, from_ms: int, until_ms: int) -> _Found:
        """The changes of slots with one part, which are the changes of that part."""
        parts = self._slots["head"][slots]
        found = self._parts.stretches(parts, from_ms, until_ms)
        asked = found.asked
        value = self._limited(slots[asked], self._parts.values(parts[asked], found.number))
        firsts = _firsts(asked)
        before = self._parts.values(parts[asked[firsts]], found.number[firsts] - 1)
        before = self._limited(slots[asked[firsts]], before)
        return _real(_Found(slots[asked], found.at_ms, value), firsts, before)

    def _sums(self, slots: Integers, from_ms: int, until_ms: int) -> _Found:
        """The changes of slots with several parts: whenever one changes, all are added up."""
        owner, parts = self._expanded(slots)
        found = self._parts.stretches(parts, from_ms, until_ms)
        slot, at_ms = owner[found.asked], found.at_ms
        order = np.lexsort((at_ms, slot))
        slot, at_ms = slot[order], at_ms[order]
        is_new = np.ones(len(slot), dtype=np.bool_)
        is_new[1:] = (slot[1:] != slot[:-1]) | (at_ms[1:] != at_ms[:-1])
        slot, at_ms = slot[is_new], at_ms[is_new]
        firsts = _firsts(slot)
        before = self._totals(slot[firsts], np.full(len(firsts), from_ms))
        return _real(_Found(slot, at_ms, self._totals(slot, at_ms)), firsts, before)

    def _expanded(self, slots: Integers) -> tuple[Integers, Integers]:
        """All parts of the slots, and beside each its slot."""
        owners, chains = [slots], [self._slots["head"][slots]]
        while chains[-1].size:
            following = self._parts.following(chains[-1])
            owners.append(owners[-1][following > 0])
            chains.append(following[following > 0])
        return np.concatenate(owners), np.concatenate(chains)

    def _totals(self, slots: Integers, at_ms: Integers) -> Floats:
        """The demand of each slot at the time beside it."""
        total = np.zeros(len(slots))
        chosen = np.arange(len(slots))
        parts = self._slots["head"][slots]
        while chosen.size:  # added in the order of the list, for the last bit depends on it
            total[chosen] += self._parts.values(parts, self._parts.stretch_at(parts, at_ms[chosen]))
            following = self._parts.following(parts)
            chosen, parts = chosen[following > 0], following[following > 0]
        return self._limited(slots, total)

    def _limited(self, slots: Integers, total: Floats) -> Floats:
        limited: Floats = np.rint(np.clip(total, 0.0, self._slots["most"][slots]))
        return limited + 0.0  # no negative zero


def _all_known(rows: Integers, known: NDArray[np.bool_]) -> bool:
    inside = bool(((rows >= 0) & (rows < len(known))).all())
    return inside and bool(known[rows].all())


def _firsts(owners: Integers) -> Integers:
    """Where another owner begins."""
    is_first = np.ones(len(owners), dtype=np.bool_)
    is_first[1:] = owners[1:] != owners[:-1]
    return np.flatnonzero(is_first)


def _real(found: _Found, firsts: Integers, before: Floats) -> _Found:
    """Only those at which the demand is another one than before."""
    last = np.empty_like(found.value)
    last[1:] = found.value[:-1]
    last[firsts] = before
    kept = np.flatnonzero(found.value != last)
    return _Found(found.slot[kept], found.at_ms[kept], found.value[kept])
