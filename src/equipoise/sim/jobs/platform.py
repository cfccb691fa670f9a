"""The machine that runs jobs: hosts with speeds and power, links, and routes between hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from equipoise.model.host import watts_at


@dataclass(frozen=True, slots=True)
class PowerState:
    """What a host computes and draws in one of its states."""

    speed_flops: float
    """Operations per second of one core."""
    idle_w: float = 0.0
    base_w: float = 0.0
    """At the smallest load above none; the power grows linearly from here."""
    full_w: float = 0.0

    def watts_at(self, load: float) -> float:
        """Return the power at a load from 0 to 1."""
        return watts_at((self.base_w, self.full_w), load) if load > 0 else self.idle_w


@dataclass(frozen=True, slots=True)
class SleepState:
    """The states that a host passes through when it sleeps and wakes."""

    state: int
    falling_asleep: int
    waking: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHost:
    """A host that jobs run on, or that stores their files."""

    name: str
    power_states: tuple[PowerState, ...]
    cores: int = 1
    initial_state: int = 0
    sleep_states: Mapping[int, SleepState] = field(default_factory=dict)
    measures_power: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    zone_properties: Mapping[str, str] = field(default_factory=dict)

    def is_computing_state(self, state: int) -> bool:
        """True if jobs can run in this state: it is no sleep state and no transition."""
        if not 0 <= state < len(self.power_states):
            return False
        return not self.sleep_states or all(
            state not in {sleep.state, sleep.falling_asleep, sleep.waking}
            for sleep in self.sleep_states.values()
        )


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A network link. All transfers share a ``shared`` one; each has the whole of another."""

    name: str
    bandwidth: float
    """Bytes per second."""
    latency_s: float
    shared: bool = True


@dataclass(frozen=True, slots=True)
class HostRoute:
    """The links between two hosts, in order."""

    links: tuple[Link, ...]
    latency_s: float


NO_NETWORK = HostRoute((), 0.0)


@dataclass(slots=True, kw_only=True)
class Platform:
    """Hosts in the order of their numbers: compute hosts first, then storage hosts."""

    hosts: Sequence[JobHost]
    storages: Sequence[JobHost] = ()
    master: JobHost | None = None
    """The host of the scheduler, if the platform has one; it has no number."""
    find_route: Callable[[str, str], HostRoute] = lambda source, target: NO_NETWORK
    _routes: dict[tuple[str, str], HostRoute] = field(default_factory=dict)

    @property
    def measures_power(self) -> bool:
        """True if a compute host has power figures."""
        return any(host.measures_power for host in self.hosts)

    def host(self, number: int) -> JobHost:
        """Return a compute or storage host."""
        count = len(self.hosts)
        return self.hosts[number] if number < count else self.storages[number - count]

    def route(self, source: str, target: str) -> HostRoute:
        """Return the route between two hosts by name; found once, then remembered."""
        route = self._routes.get((source, target))
        if route is None:
            route = self._routes[source, target] = self.find_route(source, target)
        return route


def uniform_platform(count: int) -> Platform:
    """Return a platform of equal hosts without power figures and without a network."""
    state = (PowerState(1.0),)
    return Platform(
        hosts=[JobHost(name=f"host{number}", power_states=state) for number in range(count)]
    )
