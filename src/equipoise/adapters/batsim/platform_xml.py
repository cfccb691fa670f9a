"""Reads SimGrid platforms: hosts, clusters, links, routes and zones (also the old ``AS``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Final, NoReturn
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from equipoise.adapters.batsim.quantities import parse_bandwidth, parse_seconds, parse_speed
from equipoise.adapters.batsim.zones import RouteFinder, Zone
from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.platform import JobHost, Link, Platform, PowerState, SleepState

_ZONES: Final = frozenset({"zone", "AS"})
_ZONE_ROUTES: Final = frozenset({"zoneRoute", "ASroute"})
_ROUTINGS: Final = frozenset(
    {"", "none", "full", "floyd", "dijkstra", "dijkstracache", "vivaldi", "cluster"}
)
HOSTS_MAX: Final = 1_000_000
_ZONES_DEEP_MAX: Final = 100
"""The most hosts of a platform."""
_IDLE_AND_FULL, _IDLE_BASE_FULL = 2, 3
_DIMENSIONS: Final = 3


def read_platform(
    path: Path, *, master: str = "master_host", roles: Sequence[str] = ()
) -> Platform:
    """Read a platform file; every error names the element.

    ``roles`` adds roles to hosts: ``host1,host2:storage``.
    """
    return _Reader(path, master, _parse_roles(roles)).read()


def _parse_roles(roles: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in roles:
        names, mark, role = text.rpartition(":")
        if not mark:
            problem = InputProblem(key=text, what="names no role", cure="write host1,host2:role")
            raise InvalidInput("--add-role-to-hosts", [problem])
        found.update(dict.fromkeys(names.split(","), role))
    return found


class _Reader:
    def __init__(self, path: Path, master: str, roles: dict[str, str]) -> None:
        self._path = path
        self._master = master
        self._roles = roles
        self._links: dict[str, tuple[Link, Link]] = {}
        self._zone_of: dict[str, Zone] = {}
        self._zones: list[Zone] = []
        self._hosts: list[JobHost] = []

    def read(self) -> Platform:
        """Return the platform."""
        try:
            # Some published platforms begin with an empty line, which XML forbids.
            root = ElementTree.fromstring(self._path.read_bytes().strip())
        except OSError as error:
            self._fail("", f"cannot be read: {(error.strerror or '').lower()}", "name a file")
        except ElementTree.ParseError as error:
            self._fail("", f"is no XML: {error}", "write a SimGrid platform")
        for child in root:
            if child.tag in _ZONES:
                self._read_zone(child, None)
            elif child.tag == "cluster":
                self._read_parts([child], Zone("", "full"))
        self._check_ends()
        unknown = sorted(self._roles.keys() - {host.name for host in self._hosts})
        if unknown:
            problem = InputProblem(key=unknown[0], what="is no host", cure="name hosts of the file")
            raise InvalidInput("--add-role-to-hosts", [problem])
        return self._platform()

    def _fail(self, key: str, what: str, cure: str) -> NoReturn:
        raise InvalidInput(str(self._path), [InputProblem(key=key, what=what, cure=cure)])

    def _platform(self) -> Platform:
        masters = [
            host
            for host in self._hosts
            if host.properties.get("role") == "master"
            or (not host.properties.get("role") and host.name == self._master)
        ]
        others = [host for host in self._hosts if host not in masters]
        storages = [host for host in others if host.properties.get("role") == "storage"]
        computing = [host for host in others if host not in storages]
        if not computing:
            self._fail("", "has no host that computes", "add a <host> or a <cluster>")
        return Platform(
            # Batsim numbers hosts by their names as text: a1, a10, a2.
            hosts=sorted(computing, key=lambda host: host.name),
            storages=sorted(storages, key=lambda host: host.name),
            master=masters[0] if masters else None,
            find_route=RouteFinder(str(self._path), self._zone_of),
        )

    def _read_zone(self, element: Element, parent: Zone | None) -> None:
        zone = Zone(element.get("id", ""), element.get("routing", "").lower(), parent)
        # A limit of its own: how deep calls may go differs between interpreters.
        if len(zone.ancestors()) > _ZONES_DEEP_MAX:
            self._fail("", "has too many zones inside zones", f"write {_ZONES_DEEP_MAX} levels")
        inherited = dict(parent.properties) if parent else {}
        zone.properties = inherited | _properties(element)
        if zone.routing not in _ROUTINGS:
            what = f"has the routing {zone.routing!r:.40}, which is not offered"
            self._fail(f"{element.tag} {zone.name}".strip(), what, "use Full, Floyd or Dijkstra")
        self._zones.append(zone)
        for child in element:
            if child.tag == "link":
                self._read_part(child, self._read_link)
        self._read_parts(element, zone)

    def _read_parts(self, parts: Iterable[Element], zone: Zone) -> None:
        for child in parts:
            self._read_part(child, lambda child: self._read_any(child, zone))

    def _read_part(self, child: Element, read: Callable[[Element], None]) -> None:
        try:
            read(child)
        except (ValueError, KeyError, OverflowError) as error:
            ends = " ".join(child.get(key, "") for key in ("id", "src", "dst"))
            self._fail(f"{child.tag} {ends.strip()}".strip(), str(error), "correct the element")

    def _check_ends(self) -> None:
        """Refuse routes and gateways that no element declares."""
        inside = {
            name: {ancestor.name for ancestor in zone.ancestors()}
            for name, zone in self._zone_of.items()
        }
        for zone in self._zones:
            for pair in zone.routes:
                for end in pair:
                    if end not in self._zone_of:
                        self._fail(
                            f"route {' '.join(pair)}",
                            f"no host has the name {end!r}",
                            "correct the route",
                        )
            for pair, (exit_gate, _, entry_gate) in zone.zone_routes.items():
                for end, gate in zip(pair, (exit_gate, entry_gate), strict=True):
                    if end not in inside.get(gate, ()):
                        self._fail(
                            f"zoneRoute {' '.join(pair)}",
                            f"the gateway {gate!r} is not in the zone {end!r}",
                            "correct the route",
                        )

    def _read_any(self, child: Element, zone: Zone) -> None:
        if child.tag in _ZONES:
            self._read_zone(child, zone)
        elif child.tag == "host":
            name = child.get("id", "")
            _read_coordinates(child, zone)
            self._add_host(child, name, zone, _properties(child))
        elif child.tag == "router":
            _read_coordinates(child, zone)
            self._zone_of[child.get("id", "")] = zone
        elif child.tag == "cluster":
            self._read_cluster(child, zone)
        elif child.tag == "route":
            self._read_route(child, zone)
        elif child.tag in _ZONE_ROUTES:
            self._read_zone_route(child, zone)

    def _add_host(
        self, element: Element, name: str, zone: Zone, properties: dict[str, str]
    ) -> None:
        if not name:
            raise ValueError("has no id")
        if name in self._zone_of:
            raise ValueError(f"{name} is defined twice")
        if len(self._hosts) == HOSTS_MAX:
            raise ValueError(f"is beyond the {HOSTS_MAX:,} hosts of a platform")
        speeds = [parse_speed(text) for text in element.get("speed", "").split(",")]
        watts = properties.get("wattage_per_state", properties.get("watt_per_state"))
        figures = _parse_watts(watts, len(speeds)) if watts else [(0.0, 0.0, 0.0)] * len(speeds)
        cores, state = int(element.get("core", "1")), int(element.get("pstate", "0"))
        sleep_states = _parse_sleep_states(properties.get("sleep_pstates", ""))
        _check_states([state, *_numbers_of(sleep_states)], len(speeds))
        if cores < 1:
            raise ValueError(f"has {cores} cores")
        self._zone_of[name] = zone
        self._hosts.append(
            JobHost(
                name=name,
                power_states=tuple(
                    PowerState(speed, *power) for speed, power in zip(speeds, figures, strict=True)
                ),
                cores=cores,
                initial_state=state,
                sleep_states=sleep_states,
                measures_power=watts is not None,
                properties={"role": "", **properties, **self._added_role(name)},
                zone_properties=zone.properties,
            )
        )

    def _added_role(self, name: str) -> dict[str, str]:
        return {"role": self._roles[name]} if name in self._roles else {}

    def _read_cluster(self, element: Element, parent: Zone) -> None:
        name = element.get("id", "")
        prefix, suffix = element.get("prefix", ""), element.get("suffix", "")
        properties = _properties(element)
        zone = Zone(name, "cluster", parent, properties=dict(parent.properties) | properties)
        bandwidth = parse_bandwidth(element.get("bw", "0"))
        latency_s = parse_seconds(element.get("lat", "0"))
        if element.get("bb_bw"):
            zone.backbone = Link(
                f"{name}_backbone",
                parse_bandwidth(element.get("bb_bw", "")),
                parse_seconds(element.get("bb_lat", "0")),
                shared=element.get("bb_sharing_policy", "SHARED") != "FATPIPE",
            )
        policy = element.get("sharing_policy", "SPLITDUPLEX")
        for number in _parse_radical(element.get("radical", "")):
            host = f"{prefix}{number}{suffix}"
            self._add_host(element, host, zone, properties)
            # SimGrid shares the links of a cluster's hosts also where the file says FATPIPE.
            up = Link(f"{name}_link_{number}_UP", bandwidth, latency_s)
            down = (
                Link(f"{name}_link_{number}_DOWN", bandwidth, latency_s)
                if policy == "SPLITDUPLEX"
                else up
            )
            zone.uplinks[host] = (up, down)
            if element.get("loopback_bw"):
                zone.loopbacks[host] = Link(
                    f"{name}_link_{number}_loopback",
                    parse_bandwidth(element.get("loopback_bw", "")),
                    parse_seconds(element.get("loopback_lat", "0")),
                    shared=False,
                )
        self._zone_of[element.get("router_id") or f"{prefix}{name}_router{suffix}"] = zone

    def _read_link(self, element: Element) -> None:
        policy = element.get("sharing_policy", "SHARED")
        bandwidth = parse_bandwidth(element.get("bandwidth", "0"))
        latency_s = parse_seconds(element.get("latency", "0"))

        def link(name: str) -> Link:
            return Link(name, bandwidth, latency_s, shared=policy != "FATPIPE")

        name = element.get("id", "")
        first = link(name)
        split = policy in {"SPLITDUPLEX", "FULLDUPLEX"}
        self._links[name] = (first, link(f"{name}_DOWN") if split else first)

    def _read_route(self, element: Element, zone: Zone) -> None:
        source, target = element.get("src", ""), element.get("dst", "")
        forth, back = self._route_links(element)
        zone.routes[source, target] = forth
        if _is_symmetrical(element):
            zone.routes.setdefault((target, source), back)

    def _read_zone_route(self, element: Element, zone: Zone) -> None:
        source, target = element.get("src", ""), element.get("dst", "")
        exit_gate, entry_gate = element.get("gw_src", ""), element.get("gw_dst", "")
        forth, back = self._route_links(element)
        zone.zone_routes[source, target] = (exit_gate, forth, entry_gate)
        if _is_symmetrical(element):
            zone.zone_routes.setdefault((target, source), (entry_gate, back, exit_gate))

    def _route_links(self, element: Element) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
        forth, back = [], []
        for part in element:
            if part.tag == "link_ctn":
                name = part.get("id", "")
                if name not in self._links:
                    raise ValueError(f"no link has the name {name!r}")
                up, down = self._links[name]
                if part.get("direction") == "DOWN":
                    up, down = down, up
                forth.append(up)
                back.append(down)
        return tuple(forth), tuple(reversed(back))


def _is_symmetrical(element: Element) -> bool:
    return element.get("symmetrical", "YES").upper() != "NO"


def _read_coordinates(element: Element, zone: Zone) -> None:
    """Read where a host or router of a Vivaldi zone is: x, y and height."""
    text = element.get("coordinates")
    if text:
        point = tuple(map(float, text.split()))
        if len(point) != _DIMENSIONS or not all(map(isfinite, point)):
            raise ValueError(f"has the coordinates {text!r:.40}, not three finite numbers")
        zone.coordinates[element.get("id", "")] = point


def _properties(element: Element) -> dict[str, str]:
    return {part.get("id", ""): part.get("value", "") for part in element if part.tag == "prop"}


def _parse_radical(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise ValueError(f"radical {part!r:.60} is neither a number nor an interval")
        numbers = range(int(first), int(last or first) + 1)
        if not numbers:
            raise ValueError(f"radical {part!r} ends before it begins")
        yield from numbers


def _parse_watts(text: str, count: int) -> list[tuple[float, float, float]]:
    """Return idle, base and full power of each power state."""
    figures = []
    for part in text.split(","):
        values = [float(value) for value in part.split(":")]
        if not all(isfinite(value) and value >= 0 for value in values):
            raise ValueError(f"{part.strip()!r} has a power that is not finite or below 0")
        if len(values) == _IDLE_AND_FULL:
            values = [values[0], values[0], values[1]]
        if len(values) != _IDLE_BASE_FULL:
            raise ValueError(f"{part.strip()!r} is neither idle:full nor idle:epsilon:full")
        figures.append((values[0], values[1], values[2]))
    if len(figures) != count:
        raise ValueError(f"{len(figures)} power figures, but {count} speeds")
    return figures


def _parse_sleep_states(text: str) -> dict[int, SleepState]:
    states = {}
    for part in text.split(","):
        if part.strip():
            asleep, falling, waking = map(int, part.split(":"))
            states[asleep] = SleepState(asleep, falling, waking)
    return states


def _numbers_of(sleep_states: dict[int, SleepState]) -> Iterator[int]:
    for state in sleep_states.values():
        yield from (state.state, state.falling_asleep, state.waking)


def _check_states(numbers: Iterable[int], count: int) -> None:
    for number in numbers:
        if not 0 <= number < count:
            raise ValueError(f"has no power state {number}, only {count} speeds")
