"""Routes: the path of a migration through a network, and its bandwidth.

This is the planner's code. The judge (``plan/network.py``) finds paths with its own code; the two
share nothing on purpose, so that an error in one of them shows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from equipoise.model.problem import Network
from equipoise.model.quantity import HostId

Lane = tuple[str, str]
"""A shared resource: a link in one of its directions, or a switch with a limit of its own."""


class Route(NamedTuple):
    """The path from one host to another."""

    lanes: tuple[Lane, ...]
    mbps: int
    """Bandwidth of its narrowest part, which a migration uses on every lane."""


class Routes:
    """The shortest path between any two hosts; of several, the one along the links named first."""

    def __init__(self, network: Network) -> None:
        self._switches = {switch.id: switch.capacity_mbps for switch in network.switches}
        self._steps: dict[str, list[tuple[str, Lane]]] = {}
        self.capacity: dict[Lane, int] = {}
        for link in network.links:
            near, far = _switch(link.switch), _end(link.host, link.to)
            for here, there, way in ((near, far, "down"), (far, near, "up")):
                lane = (link.id, way)
                self.capacity[lane] = link.capacity_mbps
                self._steps.setdefault(here, []).append((there, lane))
        for name, mbps in self._switches.items():
            if mbps is not None:
                self.capacity[_switch(name), "through"] = mbps
        self._known: dict[HostId, dict[str, tuple[Lane, ...]]] = {}

    def between(self, source: HostId, target: HostId) -> Route | None:
        """Return the path from one host to another; ``None`` if no links lead there."""
        if source not in self._known:
            self._known[source] = self._from(_host(source))
        lanes = self._known[source].get(_host(target))
        if lanes is None:
            return None
        return Route(lanes, min(self.capacity[lane] for lane in lanes))

    def _from(self, start: str) -> dict[str, tuple[Lane, ...]]:
        """Return the lanes to every node, breadth first."""
        paths: dict[str, tuple[Lane, ...]] = {start: ()}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            for there, lane in self._steps.get(here, ()):
                if there not in paths:
                    paths[there] = (*paths[here], lane, *self._through(there))
                    waiting.append(there)
        return paths

    def _through(self, node: str) -> Iterator[Lane]:
        lane = (node, "through")
        if lane in self.capacity:
            yield lane


def _switch(name: str) -> str:
    return f"switch {name}"


def _host(name: str) -> str:
    return f"host {name}"


def _end(host: str | None, switch: str | None) -> str:
    assert (host is None) != (switch is None), "a link leads to a host or to a switch"
    return _switch(switch) if host is None else _host(host)  # type: ignore[arg-type]
