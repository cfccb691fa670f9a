"""Whether moves can be made one after the other, each into room that is free by then.

Two VMs on full hosts cannot change places: each waits for the other to leave. The gate refuses such
moves, so a repair that needs none of them is looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from equipoise.balance.mending.standing import Standing
from equipoise.model.quantity import HostId, VmId


class Choice(NamedTuple):
    """A VM that is put onto a host, and where it was before."""

    vm: VmId
    host: HostId
    before: HostId | None


def can_be_made(standing: Standing, choices: Sequence[Choice]) -> bool:
    """Whether choices can be carried out, each as soon as it can; they have been made in mind."""
    pending = [one for one in choices if one.before is not None]
    if len(pending) <= 1:
        return True
    course = _Course(standing, choices)
    while pending:
        waiting = [one for one in pending if not course.makes(*one)]
        if len(waiting) == len(pending):
            return False
        pending = waiting
    return True


class _Course:
    """Who is where and which room is free, beginning with how it was before the choices."""

    def __init__(self, standing: Standing, choices: Sequence[Choice]) -> None:
        self._standing = standing
        self._where = {vm: before for vm, _, before in choices}
        self._free: dict[HostId, list[float]] = {}
        for vm, host, before in choices:
            self._add(host, vm, 1)
            if before is not None:
                self._add(before, vm, -1)

    def makes(self, vm: VmId, host: HostId, before: HostId | None) -> bool:
        """Make a move if it can be made now."""
        standing, pair = self._standing, self._standing.vms[vm].ft_pair
        free, needs = self._free[host], standing.needs[vm]
        if any(need > max(0, left) for need, left in zip(needs, free, strict=True)):
            return False
        if pair is not None and self._where.get(pair, standing.where.get(pair)) == host:
            return False
        self._add(host, vm, -1)
        if before is not None:
            self._add(before, vm, 1)
        self._where[vm] = host
        return True

    def _add(self, host: HostId, vm: VmId, sign: int) -> None:
        free, needs = self._free.get(host, self._standing.free[host]), self._standing.needs[vm]
        self._free[host] = [a + sign * b for a, b in zip(free, needs, strict=True)]
