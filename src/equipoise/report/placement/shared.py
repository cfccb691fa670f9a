"""Parts of a network that several migrations share: what each carries in which period."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from equipoise.model.action import Migrate
from equipoise.model.snapshot import Snapshot
from equipoise.plan.network import Ways
from equipoise.report.placement.course import Course


class Carried(NamedTuple):
    """What a part carries, from one period to another, both included."""

    mbps: int
    first: int
    last: int


class Part(NamedTuple):
    """A link in one of its directions, or a switch."""

    lane: str
    capacity_mbps: int
    by_period: tuple[int, ...]

    @property
    def carried(self) -> Iterator[Carried]:
        """What it carries, one after the other, where it carries anything."""
        for mbps, group in groupby(enumerate(self.by_period), key=lambda one: one[1]):
            places = [place for place, _ in group]
            if mbps:
                yield Carried(mbps, places[0], places[-1])

    def told(self, mbps: int) -> str:
        """How much of it is in use."""
        return f"{mbps} of {self.capacity_mbps} Mbit/s"


def shared(course: Course) -> list[Part]:
    """The parts of its network in which several migrations ever meet, as they are met first."""
    if course.network is None:
        return []
    ways = Ways(course.network)
    taken = [_taken(state, ways) for state in course.states]
    meeting = dict.fromkeys(
        lane for one in taken for lane, speeds in one.items() if len(speeds) > 1
    )
    return [
        Part(lane, ways.capacity[lane], tuple(sum(one.get(lane, ())) for one in taken))
        for lane in meeting
    ]


def _taken(state: Snapshot, ways: Ways) -> dict[str, list[int]]:
    """What the migrations under way take of each part that they go through."""
    found: dict[str, list[int]] = {}
    for running in state.in_flight.values():
        action = running.step.action
        if isinstance(action, Migrate):
            way = ways.between(action.source, action.target)
            if way is not None:
                for lane in way.lanes:
                    found.setdefault(lane, []).append(way.mbps)
    return found
