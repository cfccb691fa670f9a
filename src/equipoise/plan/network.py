"""Whether a network can carry out the migrations of a plan.

The planner has routes of its own, which its judge must not read. Here the way of a migration is
found from its end, by what it is: the shortest there is, and wherever several are, along the link
that is named first. A migration takes all that the narrowest part of its way can carry, from its
start to its end, and its memory goes over that part once at least. Nothing else needs a network.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from equipoise.model.action import Migrate
from equipoise.model.plan import Step, Violation
from equipoise.model.problem.network import Network
from equipoise.model.quantity import HostId, StepId
from equipoise.spec.moment import Moment, Phase

OVERLOADED: Final = "network"
"""What is broken if no way leads there, or a part of the way has to carry too much."""
HURRIED: Final = "copying"
"""What is broken if a migration ends before its memory can be there."""
_BITS_PER_MIB: Final = 8 * 1024 * 1024
_BITS_PER_MS: Final = 1_000
"""Of one Mbit/s."""

_Place = tuple[str, str]
"""A host or a switch, and its name."""


class Way(NamedTuple):
    """The way of migrations from one host to another."""

    lanes: tuple[str, ...]
    """All that it shares with others: links, each in one direction, and switches with a limit."""
    mbps: int
    """What its narrowest part carries."""


class _Hop(NamedTuple):
    to: _Place
    lane: str


class Ways:
    """The ways through a network."""

    def __init__(self, network: Network) -> None:
        self.capacity: dict[str, int] = {}
        """What each lane carries, in Mbit/s."""
        self._hops: dict[_Place, list[_Hop]] = {}
        self._left: dict[_Place, dict[_Place, int]] = {}
        """How many links are left to a place from wherever one can get there."""
        for switch in network.switches:
            if switch.capacity_mbps is not None:
                self.capacity[_lane_through(switch.id)] = switch.capacity_mbps
        for link in network.links:
            one = ("switch", str(link.switch))
            other = ("host", link.host) if link.host is not None else ("switch", str(link.to))
            for here, there in ((one, other), (other, one)):
                hop = _Hop(there, f"link {link.id} towards {there[1]}")
                self.capacity[hop.lane] = link.capacity_mbps
                self._hops.setdefault(here, []).append(hop)

    def between(self, source: HostId, target: HostId) -> Way | None:
        """The way from one host to another one; nothing if no links lead there."""
        here, end = ("host", str(source)), ("host", str(target))
        left = self._left.get(end)
        if left is None:
            left = self._left[end] = self._links_left(end)
        if here not in left or here == end:
            return None
        lanes: list[str] = []
        while here != end:
            here, lane = next(hop for hop in self._hops[here] if left[hop.to] < left[here])
            lanes.append(lane)
            if here[0] == "switch" and _lane_through(here[1]) in self.capacity:
                lanes.append(_lane_through(here[1]))
        return Way(tuple(lanes), min(self.capacity[lane] for lane in lanes))

    def _links_left(self, end: _Place) -> dict[_Place, int]:
        left, edge = {end: 0}, [end]
        while edge:
            far = 1 + left[edge[0]]
            near = dict.fromkeys(hop.to for here in edge for hop in self._hops.get(here, ()))
            edge = [place for place in near if place not in left]
            left.update(dict.fromkeys(edge, far))
        return left


class NetworkJudge:
    """Judges a plan by the ways that its migrations take through a network.

    Of VMs that are ``timed`` somebody has said how long they take, however much is copied.
    """

    def __init__(self, ways: Ways, timed: Collection[str] = ()) -> None:
        self._ways = ways
        self._timed = timed
        self._known: set[StepId] = set()
        """What has been looked at by itself, or was under way before the plan."""

    def __call__(self, moment: Moment) -> Iterable[Violation]:
        """Look whenever something has started."""
        underway = moment.state.in_flight
        if moment.phase is Phase.INITIAL:
            self._known.update(underway)
        if moment.phase is not Phase.STARTS:
            return
        carried: dict[str, int] = {}
        for running in underway.values():
            action = running.step.action
            if not isinstance(action, Migrate):
                continue
            way = self._ways.between(action.source, action.target)
            if running.step.id not in self._known:
                self._known.add(running.step.id)
                yield from self._look_at(moment, running.step, action, way)
            if way is not None:
                for lane in way.lanes:
                    carried[lane] = carried.get(lane, 0) + way.mbps
        for lane, mbps in carried.items():
            if mbps > self._ways.capacity[lane]:
                detail = f"{lane} carries {mbps} of {self._ways.capacity[lane]} Mbit/s"
                yield Violation(constraint=OVERLOADED, at_ms=moment.at_ms, detail=detail)

    def _look_at(
        self, moment: Moment, step: Step, action: Migrate, way: Way | None
    ) -> Iterator[Violation]:
        if way is None:
            detail = f"no links lead from {action.source} to {action.target}"
            yield Violation(constraint=OVERLOADED, at_ms=moment.at_ms, step=step.id, detail=detail)
            return
        memory_mib = moment.state.vms[action.vm].memory_mib
        carried = step.duration_ms * way.mbps * _BITS_PER_MS
        if action.vm not in self._timed and carried < memory_mib * _BITS_PER_MIB:
            detail = (
                f"of the {memory_mib} MiB of {action.vm}, {carried // _BITS_PER_MIB} are copied "
                f"in {step.duration_ms} ms at {way.mbps} Mbit/s"
            )
            yield Violation(constraint=HURRIED, at_ms=moment.at_ms, step=step.id, detail=detail)


def _lane_through(switch: str) -> str:
    return f"switch {switch}"
