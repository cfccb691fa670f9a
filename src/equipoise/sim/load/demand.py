"""Demands: what each VM demands at a time, and when that changes.

The demand of a VM for a resource is the sum of its load parts, in the order of the list, clipped to
0 and to what the VM can use, and rounded to a whole number. VMs are rows of the caller's arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.model.scenario.load import Load, LoadPart
from equipoise.model.vm import Vm
from equipoise.sim.load.levels import DemandTable, Floats, Integers
from equipoise.sim.load.parts import LoadParts, PartOwner
from equipoise.sim.load.trace_reader import TraceReader

CPU: Final = 0
MEMORY: Final = 1
_CPU_MHZ_MAX: Final = 10**9


@dataclass(frozen=True, slots=True)
class DemandChanges:
    """Changes of demands, in the order of time, row and resource."""

    at_ms: Integers
    row: Integers
    resource: NDArray[np.int8]
    """0 for CPU, 1 for memory."""
    value: Floats
    """The demand from then on."""


class _FoundChanges(NamedTuple):
    slot: Integers
    at_ms: Integers
    value: Floats


class LoadDemands:
    """The demands of all VMs that have a load."""

    def __init__(self, seed: int, *, traces: TraceReader) -> None:
        self._parts = LoadParts(seed, traces)
        self._rows = DemandTable(known=np.bool_)
        # Two slots per row: CPU and memory. A slot holds the first part of its list.
        self._slots = DemandTable(head=np.int64, maximum=np.float64)

    def add(self, row: int, vm: Vm, load: Load) -> None:
        """Add the load of a VM; raise ``InvalidInput`` for a trace that cannot be used."""
        assert row >= 0, "rows are counted from 0"
        assert not (load.memory_mib and load.memory_pct), "memory in MiB or in percent, not both"
        self._rows.reserve_rows(row + 1)
        assert not self._rows["known"][row], f"row {row} has a load already"
        # All traces are read before anything is written, so that a bad one leaves the demands as
        # they were.
        for part in (*load.cpu_mhz, *load.memory_mib, *load.memory_pct):
            self._parts.register(part)
        self._slots.reserve_rows(2 * row + 2)
        self._rows["known"][row] = True
        self._slots["maximum"][2 * row] = _CPU_MHZ_MAX
        self._slots["maximum"][2 * row + 1] = vm.memory_mib
        size = vm.memory_mib if load.memory_pct else 0
        self._chain(2 * row, vm, load.cpu_mhz, 0)
        self._chain(2 * row + 1, vm, load.memory_pct or load.memory_mib, size)

    def _chain(self, slot: int, vm: Vm, parts: tuple[LoadPart, ...], size_mib: int) -> None:
        resource = "memory" if slot % 2 else "cpu"
        head = 0
        # Backwards, because each part points to the one after it.
        for position in reversed(range(len(parts))):
            owner = PartOwner(vm.id, resource, position, size_mib)
            head = self._parts.add(parts[position], owner, head)
        self._slots["head"][slot] = head

    def remove(self, row: int) -> None:
        """Remove the load of a VM."""
        self._check(np.array([row]))
        for slot in (2 * row, 2 * row + 1):
            self._parts.free(int(self._slots["head"][slot]))
            self._slots["head"][slot] = 0
        self._rows["known"][row] = False

    def rows(self) -> Integers:
        """Return the rows that have a load, in ascending order."""
        return np.flatnonzero(self._rows["known"])

    def at(self, at_ms: int, rows: Integers | None = None) -> tuple[Floats, Floats]:
        """Return the demands for CPU and memory at a time, one of each per row.

        A demand is NaN where the load has no part; the figure of the inventory then holds.
        """
        assert at_ms >= 0, "a run begins at 0"
        chosen = self.rows() if rows is None else self._check(rows)
        self._parts.write()
        slots = np.concatenate((2 * chosen, 2 * chosen + 1))
        demands = np.full(len(slots), np.nan)
        with_parts = np.flatnonzero(self._slots["head"][slots])
        demands[with_parts] = self._totals(slots[with_parts], np.full(len(with_parts), at_ms))
        return demands[: len(chosen)], demands[len(chosen) :]

    def changes(self, from_ms: int, until_ms: int, rows: Integers | None = None) -> DemandChanges:
        """Return all changes after ``from_ms``, up to and including ``until_ms``."""
        assert 0 <= from_ms <= until_ms, f"{from_ms} to {until_ms} is not a period of a run"
        self._parts.write()
        slots = self._slots_with_parts(None if rows is None else np.unique(self._check(rows)))
        is_single = self._parts.following(self._slots["head"][slots]) == 0
        # Most VMs have one part per resource; these need no sums.
        groups = [
            compute(chosen, from_ms, until_ms)
            for compute, chosen in (
                (self._single, slots[is_single]),
                (self._sums, slots[~is_single]),
            )
            if chosen.size
        ]
        empty = np.zeros(0, dtype=np.int64)
        slot = np.concatenate([empty, *(group.slot for group in groups)])
        at_ms = np.concatenate([empty, *(group.at_ms for group in groups)])
        value = np.concatenate([np.zeros(0), *(group.value for group in groups)])
        order = np.lexsort((slot, at_ms))
        slot = slot[order]
        return DemandChanges(at_ms[order], slot >> 1, (slot & 1).astype(np.int8), value[order])

    def estimated_changes(self, duration_ms: int) -> int:
        """Return an upper bound of the number of changes in a run."""
        self._parts.write()
        _, parts = self._expanded(self._slots_with_parts(None))
        return self._parts.changes(parts, 0, duration_ms)

    def _check(self, rows: Integers) -> Integers:
        assert _all_known(rows, self._rows["known"]), "every row must have been added"
        return rows

    def _slots_with_parts(self, rows: Integers | None) -> Integers:
        """Return the slots of the rows that have parts, in ascending order."""
        if rows is None:
            return np.flatnonzero(self._slots["head"])
        slots: Integers = (2 * rows[:, None] + np.array([CPU, MEMORY])).ravel()
        return slots[self._slots["head"][slots] > 0]

    def _single(self, slots: Integers, from_ms: int, until_ms: int) -> _FoundChanges:
        """Return the changes of slots with one part, which are the changes of that part."""
        parts = self._slots["head"][slots]
        segments = self._parts.segments(parts, from_ms, until_ms)
        owner = segments.owner
        value = self._limited(slots[owner], self._parts.values(parts[owner], segments.number))
        firsts = _firsts(owner)
        before = self._parts.values(parts[owner[firsts]], segments.number[firsts] - 1)
        before = self._limited(slots[owner[firsts]], before)
        return _actual_changes(_FoundChanges(slots[owner], segments.at_ms, value), firsts, before)

    def _sums(self, slots: Integers, from_ms: int, until_ms: int) -> _FoundChanges:
        """Return the changes of slots with several parts: all are added when one changes."""
        slot_of, parts = self._expanded(slots)
        segments = self._parts.segments(parts, from_ms, until_ms)
        slot, at_ms = slot_of[segments.owner], segments.at_ms
        order = np.lexsort((at_ms, slot))
        slot, at_ms = slot[order], at_ms[order]
        # Several parts of a slot can change at one instant: the slot changes once.
        is_new = np.ones(len(slot), dtype=np.bool_)
        is_new[1:] = (slot[1:] != slot[:-1]) | (at_ms[1:] != at_ms[:-1])
        slot, at_ms = slot[is_new], at_ms[is_new]
        firsts = _firsts(slot)
        before = self._totals(slot[firsts], np.full(len(firsts), from_ms))
        return _actual_changes(
            _FoundChanges(slot, at_ms, self._totals(slot, at_ms)), firsts, before
        )

    def _expanded(self, slots: Integers) -> tuple[Integers, Integers]:
        """Return the slot of each part and the parts of the slots, as two parallel arrays."""
        owners, chains = [slots], [self._slots["head"][slots]]
        while chains[-1].size:
            following = self._parts.following(chains[-1])
            owners.append(owners[-1][following > 0])
            chains.append(following[following > 0])
        return np.concatenate(owners), np.concatenate(chains)

    def _totals(self, slots: Integers, at_ms: Integers) -> Floats:
        """Return the demand of each slot at the time beside it."""
        total = np.zeros(len(slots))
        chosen = np.arange(len(slots))
        parts = self._slots["head"][slots]
        # Parts are added in the order of the list: floating-point sums depend on the order, and
        # equal loads must have equal bits.
        while chosen.size:
            total[chosen] += self._parts.values(parts, self._parts.segment_at(parts, at_ms[chosen]))
            following = self._parts.following(parts)
            chosen, parts = chosen[following > 0], following[following > 0]
        return self._limited(slots, total)

    def _limited(self, slots: Integers, total: Floats) -> Floats:
        limited: Floats = np.rint(np.clip(total, 0.0, self._slots["maximum"][slots]))
        return limited + 0.0  # turns -0.0 into 0.0


def _all_known(rows: Integers, known: NDArray[np.bool_]) -> bool:
    inside = bool(((rows >= 0) & (rows < len(known))).all())
    return inside and bool(known[rows].all())


def _firsts(owners: Integers) -> Integers:
    """Return the indexes at which another owner begins."""
    is_first = np.ones(len(owners), dtype=np.bool_)
    is_first[1:] = owners[1:] != owners[:-1]
    return np.flatnonzero(is_first)


def _actual_changes(changes: _FoundChanges, firsts: Integers, before: Floats) -> _FoundChanges:
    """Return the changes at which the demand differs from the one before."""
    previous = np.empty_like(changes.value)
    previous[1:] = changes.value[:-1]
    previous[firsts] = before
    kept = np.flatnonzero(changes.value != previous)
    return _FoundChanges(changes.slot[kept], changes.at_ms[kept], changes.value[kept])
