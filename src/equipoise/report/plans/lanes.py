"""Lanes: on which host each step of a plan happens, and in which row of it nobody is in the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, NamedTuple

from equipoise.model.action import Allocate, Forge, Kill, Shutdown
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId

HOSTS_MAX: Final = 60
NO_HOST: Final = "no host"
"""Where a VM is made, or ended that is nowhere. No host has this name: it has a space."""


class Stay(NamedTuple):
    """A step on one of the hosts that it touches, for its whole time."""

    step: Step
    host: HostId | None
    leaving: bool = False
    """Whether it goes to another host, where it is shown as well."""


@dataclass(frozen=True, slots=True)
class Lane:
    """What happens on one host."""

    name: str
    stays: tuple[Stay, ...]
    rows: tuple[int, ...]
    """The row of each stay; those in one row follow each other."""

    @property
    def height(self) -> int:
        """How many rows it has."""
        return max(self.rows) + 1


def lanes_of(steps: Sequence[Step], cluster: Inventory) -> list[Lane]:
    """A lane for each host that takes part, by name; what happens on none comes last."""
    by_host: dict[HostId | None, list[Stay]] = {}
    for stay in stays_of(steps, cluster):
        by_host.setdefault(stay.host, []).append(stay)
    homeless = by_host.pop(None, [])
    lanes = [_lane(host, found) for host, found in sorted(by_host.items()) if host is not None]
    return [*lanes, _lane(NO_HOST, homeless)] if homeless else lanes


def busiest(lanes: Sequence[Lane]) -> list[Lane]:
    """The lanes in which most is done, in their order; what happens on no host is always there."""
    hosts = [lane for lane in lanes if lane.name != NO_HOST]
    most = sorted(hosts, key=lambda lane: -len(lane.stays))[:HOSTS_MAX]
    chosen = {lane.name for lane in most} | {NO_HOST}
    return [lane for lane in lanes if lane.name in chosen]


def stays_of(steps: Iterable[Step], cluster: Inventory) -> Iterator[Stay]:
    """Say where each step happens, in the order of the starts."""
    where: dict[VmId, HostId | None] = {vm.id: vm.host for vm in cluster.vms}
    for step in sorted(steps, key=lambda one: (one.start_ms, one.end_ms)):
        seen = step.footprint
        if isinstance(step.action, Forge | Allocate | Kill):
            yield Stay(step, where.get(step.action.vm))
        for host in seen.hosts:
            yield Stay(step, host, host == seen.source and seen.target not in {None, host})
        # One thing at a time is done to a VM, so that the last that was begun says where it is.
        if seen.vm is not None and seen.target is not None:
            where[seen.vm] = seen.target
        elif isinstance(step.action, Shutdown):
            where[step.action.vm] = None


def _lane(name: str, stays: Sequence[Stay]) -> Lane:
    return Lane(name, tuple(stays), tuple(_rows(stays)))


def _rows(stays: Sequence[Stay]) -> Iterator[int]:
    """Give each stay, in the order of the starts, the first row that is free all the while."""
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    for stay in stays:
        while busy and busy[0][0] <= stay.step.start_ms:
            heappush(free, heappop(busy)[1])
        # Rows are only ever opened in turn, so that with none free all of them are busy.
        row = heappop(free) if free else len(busy)
        heappush(busy, (stay.step.end_ms, row))
        yield row
