"""Zones of a SimGrid platform, and the routes that they give."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import dist
from typing import Final, NoReturn

from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.platform import HostRoute, Link

_LOOPBACK: Final = Link("__loopback__", 1e10, 0.0, shared=False)
"""What SimGrid gives a host that has no route to itself."""
_MS_PER_S: Final = 1000.0


@dataclass(slots=True, eq=False)
class Zone:
    """A zone: its routing, its hosts and routers, and the zones inside."""

    name: str
    routing: str
    parent: Zone | None = None
    routes: dict[tuple[str, str], tuple[Link, ...]] = field(default_factory=dict)
    """Between hosts or routers of this zone."""
    zone_routes: dict[tuple[str, str], tuple[str, tuple[Link, ...], str]] = field(
        default_factory=dict
    )
    """Between zones inside this one: gateway, links, gateway."""
    uplinks: dict[str, tuple[Link, Link]] = field(default_factory=dict)
    """In a cluster: the links from a host and to it."""
    loopbacks: dict[str, Link] = field(default_factory=dict)
    """In a cluster with loopback: the link of a host to itself."""
    backbone: Link | None = None
    coordinates: dict[str, tuple[float, ...]] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)

    def ancestors(self) -> list[Zone]:
        """Return this zone and those around it, the innermost first."""
        zones: list[Zone] = []
        zone: Zone | None = self
        while zone is not None:
            zones.append(zone)
            zone = zone.parent
        return zones


class RouteFinder:
    """Finds the route between two hosts."""

    def __init__(self, file: str, zone_of: dict[str, Zone]) -> None:
        self._file = file
        self._zone_of = zone_of

    def __call__(self, source: str, target: str) -> HostRoute:
        """Return the links between two hosts or routers."""
        zone = self._zone_of[source]
        if zone is self._zone_of[target] and zone.routing == "vivaldi":
            for name in (source, target):
                if source != target and name not in zone.coordinates:
                    self._fail(name, "has no coordinates, but a job sends", "write coordinates")
            return HostRoute((), _distance_s(zone, source, target))
        links = self._links(source, target)
        return HostRoute(links, sum(link.latency_s for link in links))

    def _fail(self, key: str, what: str, cure: str) -> NoReturn:
        problem = InputProblem(key=key, what=what, cure=cure, code="disconnected")
        raise InvalidInput(self._file, [problem])

    def _links(self, source: str, target: str) -> tuple[Link, ...]:
        source_zone, target_zone = self._zone_of[source], self._zone_of[target]
        if source_zone is target_zone:
            return _local_links(source_zone, source, target)
        source_path, target_path = source_zone.ancestors(), target_zone.ancestors()
        common = next(zone for zone in source_path if zone in target_path)
        from_zone = _child_below(source_path, common)
        to_zone = _child_below(target_path, common)
        route = common.zone_routes.get((from_zone, to_zone))
        if route is None:
            what = f"is missing, but a job sends from {source} to {target}"
            self._fail(f"zoneRoute {from_zone} {to_zone}", what, "add the route")
        exit_gate, links, entry_gate = route
        before = self._links(source, exit_gate) if source != exit_gate else ()
        after = self._links(entry_gate, target) if entry_gate != target else ()
        return before + links + after


def _child_below(path: list[Zone], common: Zone) -> str:
    index = path.index(common)
    return path[index - 1].name if index else common.name


def _local_links(zone: Zone, source: str, target: str) -> tuple[Link, ...]:
    if zone.routing == "cluster":
        if source == target and source in zone.loopbacks:
            return (zone.loopbacks[source],)
        links: list[Link] = []
        if source in zone.uplinks:
            links.append(zone.uplinks[source][0])
        if zone.backbone is not None:
            links.append(zone.backbone)
        if target in zone.uplinks:
            links.append(zone.uplinks[target][1])
        # A host that sends to itself over one link for both directions passes it once.
        return tuple(dict.fromkeys(links))
    if (source, target) in zone.routes:
        return zone.routes[source, target]
    if source == target:
        return (_LOOPBACK,)
    if zone.routing in {"floyd", "dijkstra", "dijkstracache"}:
        return _shortest_path(zone, source, target)
    return ()


def _shortest_path(zone: Zone, source: str, target: str) -> tuple[Link, ...]:
    """Return the path with the fewest routes; the first of equal ones."""
    paths: dict[str, tuple[Link, ...]] = {source: ()}
    waiting = deque([source])
    while waiting:
        here = waiting.popleft()
        for (start, end), links in zone.routes.items():
            if start == here and end not in paths:
                paths[end] = paths[here] + links
                waiting.append(end)
    return paths.get(target, ())


def _distance_s(zone: Zone, source: str, target: str) -> float:
    """Return the Vivaldi latency: distance in the plane, plus both heights, in milliseconds."""
    if source == target:
        return 0.0
    (*here, up), (*there, down) = zone.coordinates[source], zone.coordinates[target]
    return (dist(here, there) + abs(up) + abs(down)) / _MS_PER_S
