"""Lanes: what is shown of a course for each host, in which rows, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from equipoise.model.quantity import HostId, VmId
from equipoise.report.placement.course import Course, Service, Stay
from equipoise.report.placement.words import NO_HOST

LANES_MAX: Final = 30
ROWS_MAX: Final = 30
"""In one lane."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One host, or those who are on none."""

    name: str
    services: tuple[Service, ...]
    """What the host is, one after the other."""
    rows: tuple[tuple[Stay, ...], ...]
    """A row for each VM that is ever here."""
    left_out: int = 0
    """How many VMs more are here."""

    @property
    def switches(self) -> tuple[Service, ...]:
        """While something is done to the host itself."""
        return tuple(one for one in self.services if one.step is not None)

    @property
    def moves(self) -> bool:
        """Whether anything happens here."""
        stays = [stay for row in self.rows for stay in row]
        return len(self.services) > 1 or any(stay.presence.step is not None for stay in stays)


def lanes_of(course: Course) -> tuple[list[Lane], int]:
    """A lane for each host in their order, then for who is on none; and how many are left out.

    If there are too many, hosts on which nothing happens are left out first, and of those the empty
    ones.
    """
    by_host: dict[HostId | None, dict[VmId, list[Stay]]] = {}
    for stay in course.stays:
        by_host.setdefault(stay.presence.host, {}).setdefault(stay.presence.vm, []).append(stay)
    hosts = [_lane(course, host, by_host.get(host, {})) for host in course.states[0].hosts]
    places = sorted(range(len(hosts)), key=lambda place: _dullness(hosts[place]))[:LANES_MAX]
    shown = [hosts[place] for place in sorted(places)]
    homeless = [_lane(course, None, by_host[None])] if None in by_host else []
    return [*shown, *homeless], len(hosts) - len(shown)


def _dullness(lane: Lane) -> int:
    return 0 if lane.moves else 1 if lane.rows else 2


def _lane(course: Course, host: HostId | None, rows: dict[VmId, list[Stay]]) -> Lane:
    services = () if host is None else tuple(course.services(host))
    busy = sorted(rows.values(), key=_is_still)
    shown = [tuple(row) for row in rows.values() if row in busy[:ROWS_MAX]]
    return Lane(NO_HOST if host is None else host, services, tuple(shown), len(rows) - len(shown))


def _is_still(row: Sequence[Stay]) -> bool:
    return all(stay.presence.step is None for stay in row)
