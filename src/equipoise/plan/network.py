"""Whether a network can carry the migrations of a plan.

This is the judge. The planner finds routes with its own code (``exact/timeline/schedules.py``). The
two share nothing on purpose, so that an error in one of them shows. A migration takes the shortest
path; of several, the one along the link that the file names first. From start to end it uses the
whole bandwidth of the narrowest part of its path. Its memory crosses that part at least once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from equipoise.model.action import Migrate
from equipoise.model.plan import Step, Violation
from equipoise.model.problem.problem import Network
from equipoise.model.quantity import HostId, StepId
from equipoise.spec.moments import MomentPhase, PlanMoment

NETWORK_OVERLOADED: Final = "network"
"""The constraint that is violated if no path exists or a part of the path is overloaded."""
COPY_TOO_FAST: Final = "copying"
"""The constraint that is violated if a migration ends before its memory is copied."""
_BITS_PER_MIB: Final = 8 * 1024 * 1024
_BITS_PER_MS: Final = 1_000
"""Bits that one Mbit/s carries in a millisecond."""

_NetworkNode = tuple[str, str]
"""The kind of a node, host or switch, and its name."""


class NetworkPath(NamedTuple):
    """The path of migrations from one host to another."""

    lanes: tuple[str, ...]
    """Everything that it shares with others: links, each in one direction, and limited switches."""
    mbps: int
    """Bandwidth of its narrowest part."""


class _Hop(NamedTuple):
    to: _NetworkNode
    lane: str


class NetworkPaths:
    """The shortest paths through a network."""

    def __init__(self, network: Network) -> None:
        self.capacity: dict[str, int] = {}
        """Bandwidth of each lane in Mbit/s."""
        self._hops: dict[_NetworkNode, list[_Hop]] = {}
        self._distances: dict[_NetworkNode, dict[_NetworkNode, int]] = {}
        """Number of links to a target from each node that can reach it."""
        for switch in network.switches:
            if switch.capacity_mbps is not None:
                self.capacity[_switch_lane(switch.id)] = switch.capacity_mbps
        for link in network.links:
            near = ("switch", str(link.switch))
            far = ("host", link.host) if link.host is not None else ("switch", str(link.to))
            for here, there in ((near, far), (far, near)):
                hop = _Hop(there, f"link {link.id} towards {there[1]}")
                self.capacity[hop.lane] = link.capacity_mbps
                self._hops.setdefault(here, []).append(hop)

    def between(self, source: HostId, target: HostId) -> NetworkPath | None:
        """Return the path from one host to another; ``None`` if no links lead there."""
        here, end = ("host", str(source)), ("host", str(target))
        distance = self._distances.get(end)
        if distance is None:
            distance = self._distances[end] = self._distances_to(end)
        if here not in distance or here == end:
            return None
        lanes: list[str] = []
        while here != end:
            # The first hop that comes closer: links are in the order of the file.
            here, lane = next(hop for hop in self._hops[here] if distance[hop.to] < distance[here])
            lanes.append(lane)
            if here[0] == "switch" and _switch_lane(here[1]) in self.capacity:
                lanes.append(_switch_lane(here[1]))
        return NetworkPath(tuple(lanes), min(self.capacity[lane] for lane in lanes))

    def _distances_to(self, end: _NetworkNode) -> dict[_NetworkNode, int]:
        distance, edge = {end: 0}, [end]
        while edge:
            far = 1 + distance[edge[0]]
            near = dict.fromkeys(hop.to for here in edge for hop in self._hops.get(here, ()))
            edge = [place for place in near if place not in distance]
            distance.update(dict.fromkeys(edge, far))
        return distance


class NetworkJudge:
    """Judges a plan by the paths of its migrations.

    The problem states the durations of the ``timed`` VMs; their copying is not checked.
    """

    def __init__(self, paths: NetworkPaths, timed: Collection[str] = ()) -> None:
        self._paths = paths
        self._timed = timed
        self._known: set[StepId] = set()
        """Steps that were checked, or were under way before the plan."""

    def __call__(self, moment: PlanMoment) -> Iterable[Violation]:
        """Check the network whenever an action has started."""
        underway = moment.state.in_flight
        if moment.phase is MomentPhase.INITIAL:
            self._known.update(underway)
        # Only a start adds load, and ends come before starts: other moments cannot be worse.
        if moment.phase is not MomentPhase.STARTS:
            return
        carried: dict[str, int] = {}
        for running in underway.values():
            action = running.step.action
            if not isinstance(action, Migrate):
                continue
            path = self._paths.between(action.source, action.target)
            if running.step.id not in self._known:
                self._known.add(running.step.id)
                yield from self._check_migration(moment, running.step, action, path)
            if path is not None:
                for lane in path.lanes:
                    carried[lane] = carried.get(lane, 0) + path.mbps
        for lane, mbps in carried.items():
            if mbps > self._paths.capacity[lane]:
                detail = f"{lane} carries {mbps} of {self._paths.capacity[lane]} Mbit/s"
                yield Violation(
                    constraint=NETWORK_OVERLOADED,
                    at_ms=moment.at_ms,
                    detail=detail,
                    code="network-overloaded",
                )

    def _check_migration(
        self, moment: PlanMoment, step: Step, action: Migrate, path: NetworkPath | None
    ) -> Iterator[Violation]:
        if path is None:
            detail = f"no links lead from {action.source} to {action.target}"
            yield Violation(
                constraint=NETWORK_OVERLOADED,
                at_ms=moment.at_ms,
                step=step.id,
                detail=detail,
                code="no-network-path",
            )
            return
        memory_mib = moment.state.vms[action.vm].memory_mib
        # In bits and whole numbers: a rounded duration must not decide.
        carried = step.duration_ms * path.mbps * _BITS_PER_MS
        if action.vm not in self._timed and carried < memory_mib * _BITS_PER_MIB:
            detail = (
                f"{action.vm} has {memory_mib} MiB; {path.mbps} Mbit/s copy "
                f"{carried // _BITS_PER_MIB} MiB in {step.duration_ms} ms"
            )
            yield Violation(
                constraint=COPY_TOO_FAST,
                at_ms=moment.at_ms,
                step=step.id,
                detail=detail,
                code="copy-too-fast",
            )


def _switch_lane(switch: str) -> str:
    return f"switch {switch}"
