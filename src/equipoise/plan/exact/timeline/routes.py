"""Routes: which way migrations go through a network, and how fast they are there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from equipoise.model.problem import Network
from equipoise.model.quantity import HostId

Lane = tuple[str, str]
"""What is shared: a link in one of its directions, or a switch with a limit of its own."""


class Route(NamedTuple):
    """The way from one host to another."""

    lanes: tuple[Lane, ...]
    mbps: int
    """What its narrowest part carries, and so what a migration takes of every lane on it."""


class Routes:
    """The shortest way between any two hosts; of several, the one along the links named first."""

    def __init__(self, network: Network) -> None:
        self._switches = {one.id: one.capacity_mbps for one in network.switches}
        self._steps: dict[str, list[tuple[str, Lane]]] = {}
        self.capacity: dict[Lane, int] = {}
        for link in network.links:
            one, other = _switch(link.switch), _end(link.host, link.to)
            for here, there, way in ((one, other, "down"), (other, one, "up")):
                lane = (link.id, way)
                self.capacity[lane] = link.capacity_mbps
                self._steps.setdefault(here, []).append((there, lane))
        for name, mbps in self._switches.items():
            if mbps is not None:
                self.capacity[_switch(name), "through"] = mbps
        self._found: dict[HostId, dict[str, tuple[Lane, ...]]] = {}

    def between(self, source: HostId, target: HostId) -> Route | None:
        """The way from one host to another; nothing if no links lead there."""
        if source not in self._found:
            self._found[source] = self._from(_host(source))
        lanes = self._found[source].get(_host(target))
        if lanes is None:
            return None
        return Route(lanes, min(self.capacity[lane] for lane in lanes))

    def _from(self, start: str) -> dict[str, tuple[Lane, ...]]:
        """The lanes to every place, breadth first."""
        found: dict[str, tuple[Lane, ...]] = {start: ()}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            for there, lane in self._steps.get(here, ()):
                if there not in found:
                    found[there] = (*found[here], lane, *self._through(there))
                    waiting.append(there)
        return found

    def _through(self, place: str) -> Iterator[Lane]:
        lane = (place, "through")
        if lane in self.capacity:
            yield lane


def _switch(name: str) -> str:
    return f"switch {name}"


def _host(name: str) -> str:
    return f"host {name}"


def _end(host: str | None, switch: str | None) -> str:
    assert (host is None) != (switch is None), "a link leads to a host or to a switch"
    return _switch(switch) if host is None else _host(host)  # type: ignore[arg-type]
