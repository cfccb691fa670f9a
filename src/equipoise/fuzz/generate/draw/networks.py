"""Random networks (hosts on switches, switches on each other), and the traffic of plans on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.adapters.targets.trial import NetworkOptions, SpeedRange
from equipoise.fuzz.generate.draw.clusters import DrawnHosts, PerTrialArrays
from equipoise.fuzz.generate.draw.keyed_random import KeyedRandom, below
from equipoise.fuzz.generate.draw.trial_arrays import AT, DEFAULT_VM, MBPS, NO_LIMIT, NONE, TO
from equipoise.spec.batch.cases import Array

_NETWORK_TOPIC: Final = (1 << 20) + 1
"""A topic of random numbers that no other draw uses."""
_FAR: Final = 1 << 20
_UNLIMITED_MBPS: Final = 1 << 40
"""The capacity of a switch without a limit, in Mbit/s."""


@dataclass(slots=True)
class DrawnNetworks(PerTrialArrays):
    """Networks: (trial, ...). The second axis is empty without networks."""

    switches: Array
    """The limit of each switch: (trial, switch)."""
    links: Array
    """(trial, link, column): the links of hosts come first, in the order of the hosts."""


def no_networks(count: int) -> DrawnNetworks:
    """Empty arrays, for trials without networks."""
    return DrawnNetworks(np.zeros((count, 0), np.int64), np.zeros((count, 0, 3), np.int64))


def draw_networks(rng: KeyedRandom, network: NetworkOptions, hosts: DrawnHosts) -> DrawnNetworks:
    """Draw a network for each cluster."""
    trials, most = hosts.state.shape
    rng = rng.about(_NETWORK_TOPIC, np.arange(trials))
    width = network.switches[1]
    count = rng.within(network.switches)
    present = np.arange(width) < count[:, None]
    limits = np.where(
        rng.happens(network.limited, width), _speeds(rng, network.switches_mbps, width), NO_LIMIT
    )
    links = np.zeros((trials, most + 2 * (width - 1), 3), np.int64)
    links[:, :most, AT] = rng.below(count[:, None], most)
    links[:, :most, TO] = np.arange(most)
    links[:, :most, MBPS] = np.where(hosts.present, _speeds(rng, network.hosts_mbps, most), 0)
    second = rng.happens(network.detours, width - 1)
    for turn, wanted in ((0, np.ones_like(second)), (1, second)):
        rows = slice(most + turn * (width - 1), most + (turn + 1) * (width - 1))
        links[:, rows, AT] = np.arange(1, width)
        # Each switch links to an earlier one, so the switches are connected; the second turn adds
        # detours.
        links[:, rows, TO] = rng.below(np.arange(1, width), width - 1)
        speeds = _speeds(rng, network.trunks_mbps, width - 1)
        links[:, rows, MBPS] = np.where(wanted & present[:, 1:], speeds, 0)
    return DrawnNetworks(np.where(present, limits, NONE), links)


def _speeds(rng: KeyedRandom, span: SpeedRange, most: int) -> Array:
    return span[0] * (1 + below(rng.numbers(most), span[1] // span[0]))


class DrawnRoutes:
    """The shortest paths through networks; of equally short ones, the path over earlier links.

    Lanes are numbered in this order: the outgoing direction of each host link, the incoming
    direction of each, the two directions of each link between switches, and each switch.
    """

    def __init__(self, networks: DrawnNetworks, hosts: int) -> None:
        self._hosts = hosts
        of_hosts, trunks = networks.links[:, :hosts], networks.links[:, hosts:]
        self._switch_of = of_hosts[:, :, AT]
        self._trunks = trunks
        limits = np.where(networks.switches > 0, networks.switches, _UNLIMITED_MBPS)
        speeds = [of_hosts[:, :, MBPS]] * 2 + [trunks[:, :, MBPS]] * 2
        self.capacity = np.concatenate([*speeds, limits], axis=1)
        """The capacity of each lane: (trial, lane)."""
        self._distance = _distances(networks.switches.shape[1], trunks)

    def between(self, trials: Array, source: Array, target: Array) -> tuple[Array, Array]:
        """The lanes of the paths between hosts, and the lowest capacity of each path."""
        rows = np.arange(len(trials))
        used = np.zeros((len(trials), self.capacity.shape[1]), np.bool_)
        used[rows, source] = True
        used[rows, self._hosts + target] = True
        here, end = self._switch_of[trials, source], self._switch_of[trials, target]
        self._pass(used, rows, here)
        # All paths advance by one link in each round; those at their end drop out.
        open_rows = np.flatnonzero(here != end)
        while open_rows.size:
            here[open_rows] = self._hop(
                used, open_rows, trials[open_rows], here[open_rows], end[open_rows]
            )
            self._pass(used, open_rows, here[open_rows])
            open_rows = open_rows[here[open_rows] != end[open_rows]]
        narrowest: Array = np.where(used, self.capacity[trials], _UNLIMITED_MBPS).min(axis=1)
        return used, narrowest

    def _hop(self, used: Array, rows: Array, trials: Array, here: Array, end: Array) -> Array:
        """Use one link of each path, and return the next switches."""
        trunks, count = self._trunks[trials], self._trunks.shape[1]
        is_link = trunks[:, :, MBPS] > 0
        each, goal = trials[:, None], end[:, None]
        distance = self._distance[trials, here, end][:, None]
        # A link is on a shortest path if it leads closer to the end.
        closer = [
            is_link
            & (trunks[:, :, near] == here[:, None])
            & (self._distance[each, trunks[:, :, far], goal] < distance)
            for near, far in ((AT, TO), (TO, AT))
        ]
        # The first such link, as ``plan.network`` chooses it: the judge must find the same path.
        first = np.argmax(closer[0] | closer[1], axis=1)
        paths = np.arange(len(rows))
        is_forward = closer[0][paths, first]
        used[rows, 2 * self._hosts + first + np.where(is_forward, 0, count)] = True
        following: Array = np.where(is_forward, trunks[paths, first, TO], trunks[paths, first, AT])
        return following

    def _pass(self, used: Array, rows: Array, switch: Array) -> None:
        used[rows, 2 * self._hosts + 2 * self._trunks.shape[1] + switch] = True


def _distances(width: int, trunks: Array) -> Array:
    """The number of links between any two switches: (trial, switch, switch).

    Floyd and Warshall: each switch in turn may be part of a path.
    """
    distance = np.full((len(trunks), width, width), _FAR)
    distance[:, np.arange(width), np.arange(width)] = 0
    for link in np.moveaxis(trunks, 1, 0):
        trials = np.flatnonzero(link[:, MBPS] > 0)
        near, far = link[trials, AT], link[trials, TO]
        distance[trials, near, far] = distance[trials, far, near] = 1
    for via in range(width):
        distance = np.minimum(distance, distance[:, :, via, None] + distance[:, None, via])
    return distance


_VM_BITS: Final = 8 * 1024 * 1024 * DEFAULT_VM.memory_mib
"""The bits of the memory of a VM."""
_BITS_PER_MBPS: Final = 1_000_000
"""The bits per second of one Mbit/s."""


@dataclass(slots=True)
class TrafficDemand(PerTrialArrays):
    """The lanes and the bandwidth that steps use; only migrations use any."""

    lanes: Array
    mbps: Array

    @property
    def least_s(self) -> Array:
        """The duration of the copy in whole seconds, rounded up."""
        speed = np.maximum(1, self.mbps) * _BITS_PER_MBPS
        seconds: Array = np.where(self.mbps > 0, -(-_VM_BITS // speed), 0)
        return seconds


class DrawnTraffic:
    """The migrations of all plans so far; ``most`` is the maximum number of a plan."""

    def __init__(self, networks: DrawnNetworks, hosts: int, most: int) -> None:
        self._routes = DrawnRoutes(networks, hosts)
        trials, lanes = self._routes.capacity.shape
        self._count = np.zeros(trials, np.int64)
        self._times_s = np.zeros((2, trials, most), np.int64)
        """Start and end of each migration; in unused rows both are 0, so these never run."""
        self._usage = np.zeros((trials, most, lanes), np.int64)

    def of_steps(self, trials: Array, moves: Array, source: Array, target: Array) -> TrafficDemand:
        """The traffic of steps; ``moves`` marks the migrations among them."""
        lanes = np.zeros((len(trials), self._usage.shape[2]), np.bool_)
        mbps = np.zeros(len(trials), np.int64)
        lanes[moves], mbps[moves] = self._routes.between(
            trials[moves], source[moves], target[moves]
        )
        return TrafficDemand(lanes, mbps)

    def is_overloaded(
        self, trials: Array, traffic: TrafficDemand, start_s: Array, end_s: Array
    ) -> Array:
        """Whether a lane would exceed its capacity at any moment of a step."""
        known = int(self._count[trials].max(initial=0))
        starts, ends = self._times_s[:, trials, :known]
        usage = self._usage[trials, :known]
        free = self._routes.capacity[trials] - traffic.mbps[:, None]
        overloaded = np.zeros(len(trials), np.bool_)
        # The load grows only when a migration starts, so only those moments are checked.
        for moment in (start_s, *starts.T):
            counts = (start_s <= moment) & (moment < end_s)
            running = (starts <= moment[:, None]) & (moment[:, None] < ends)
            load = (usage * running[:, :, None]).sum(axis=1)
            overloaded |= counts & ((load > free) & traffic.lanes).any(axis=1)
        return overloaded

    def add(self, trials: Array, traffic: TrafficDemand, start_s: Array, end_s: Array) -> None:
        """Record steps, one for each trial."""
        moves = np.flatnonzero(traffic.mbps > 0)
        which, row = trials[moves], self._count[trials[moves]]
        self._times_s[:, which, row] = start_s[moves], end_s[moves]
        self._usage[which, row] = traffic.lanes[moves] * traffic.mbps[moves, None]
        self._count[which] += 1
