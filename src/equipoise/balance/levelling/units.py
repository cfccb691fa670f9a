"""Units: VMs that move as one, and figures of VMs put together for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.balance.rules import Rules
from equipoise.model.action import Boot, Migrate, Resume
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm
from equipoise.place.water import Floats, Ints


def members_of(vms: Sequence[Vm], rules: Rules) -> tuple[tuple[VmId, ...], ...]:
    """VMs that a rule keeps together and that are together now move as one."""
    if not rules.together:
        return tuple((vm.id,) for vm in vms)
    host_of = {vm.id: vm.host for vm in vms}
    together = {vm.id: [vm.id] for vm in vms}
    for group in rules.together:
        here: dict[HostId | None, VmId] = {}
        for name in filter(host_of.__contains__, group.vms):
            first = together[here.setdefault(host_of[name], name)]
            if together[name] is not first:
                first += together[name]
                together |= dict.fromkeys(together[name], first)
    # Each list stands under all its members; the first of them stands for it.
    return tuple(tuple(names) for vm, names in together.items() if names[0] == vm)


def arriving_at(snapshot: Snapshot) -> list[tuple[VmId, HostId]]:
    """Those that are on their way to a host: until they are there, they count on both."""
    found = []
    for running in snapshot.in_flight.values():
        action = running.step.action
        if isinstance(action, Migrate | Boot | Resume):
            vm = snapshot.vms.get(action.vm)
            if vm is not None and vm.host != action.target:
                found.append((vm.id, action.target))
    return found


def largest(
    figures: NDArray[Any], unit_of: Ints, units: int, guests: NDArray[Any] | list[int]
) -> NDArray[Any]:
    """The largest figure of the VMs of each unit, then those of VMs that are on their way."""
    most = figures
    if units < len(figures):
        most = np.zeros(units, dtype=figures.dtype)
        np.maximum.at(most, unit_of, figures)
    return np.concatenate([most, np.asarray(guests, dtype=figures.dtype)])


def grouped(figures: Floats, unit_of: Ints, units: int, guests: list[int]) -> Floats:
    """The figures of VMs added up for their units, then those of VMs that are on their way."""
    sums = figures if units == len(figures) else added(figures, unit_of, units)
    return np.ascontiguousarray(np.concatenate([sums, figures[guests]]))


def added(figures: Floats, place: Ints, count: int) -> Floats:
    """Figures added up by the place that each belongs to."""
    columns = [
        np.bincount(place, weights=figures[:, column], minlength=count)
        for column in range(figures.shape[1])
    ]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def flat(lists: Iterable[Sequence[int]]) -> tuple[Ints, Ints]:
    """Lists one after the other, and where each begins."""
    some = list(lists)
    first = np.concatenate([[0], np.cumsum([len(one) for one in some])]).astype(np.int64)
    return np.array([each for one in some for each in one], dtype=np.int64), first
