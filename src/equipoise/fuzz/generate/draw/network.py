"""Networks by chance: hosts on switches, and switches on each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.fuzz.generate.draw.chance import Chance, below
from equipoise.fuzz.generate.draw.cluster import Hosts, Some
from equipoise.fuzz.generate.draw.numbers import AT, MBPS, NO_LIMIT, NONE, TO
from equipoise.fuzz.generate.options import Speeds, Wires
from equipoise.spec.batch.cases import Array

_TOPIC: Final = (1 << 20) + 1
"""A topic that is no VM, and not that of those who draw about hosts."""
_FAR: Final = 1 << 20
_ANYTHING: Final = 1 << 40
"""What a switch without a limit carries, in Mbit/s."""


@dataclass(slots=True)
class Networks(Some):
    """Networks: (trial, ...). Those of no width are none."""

    switches: Array
    """The limit of each: (trial, switch)."""
    links: Array
    """(trial, link, column): of the hosts first, in their order."""


def no_networks(count: int) -> Networks:
    """Nothing that anybody's migrations would go through."""
    return Networks(np.zeros((count, 0), np.int64), np.zeros((count, 0, 3), np.int64))


def draw_networks(chance: Chance, wires: Wires, hosts: Hosts) -> Networks:
    """Draw a network for each cluster."""
    trials, most = hosts.state.shape
    chance = chance.about(_TOPIC, np.arange(trials))
    width = wires.switches[1]
    count = chance.within(wires.switches)
    there = np.arange(width) < count[:, None]
    limits = np.where(
        chance.happens(wires.limited, width), _speeds(chance, wires.switches_mbps, width), NO_LIMIT
    )
    links = np.zeros((trials, most + 2 * (width - 1), 3), np.int64)
    links[:, :most, AT] = chance.below(count[:, None], most)
    links[:, :most, TO] = np.arange(most)
    links[:, :most, MBPS] = np.where(hosts.there, _speeds(chance, wires.hosts_mbps, most), 0)
    second = chance.happens(wires.detours, width - 1)
    for turn, wanted in ((0, np.ones_like(second)), (1, second)):
        rows = slice(most + turn * (width - 1), most + (turn + 1) * (width - 1))
        links[:, rows, AT] = np.arange(1, width)
        links[:, rows, TO] = chance.below(np.arange(1, width), width - 1)
        speeds = _speeds(chance, wires.trunks_mbps, width - 1)
        links[:, rows, MBPS] = np.where(wanted & there[:, 1:], speeds, 0)
    return Networks(np.where(there, limits, NONE), links)


def _speeds(chance: Chance, span: Speeds, most: int) -> Array:
    return span[0] * (1 + below(chance.numbers(most), span[1] // span[0]))


class Ways:
    """The ways through networks: the shortest, and of several along the links that come first.

    Lanes are numbered: what leaves each host, what comes to each, each link between switches in its
    one and its other direction, and each switch.
    """

    def __init__(self, networks: Networks, hosts: int) -> None:
        self._hosts = hosts
        of_hosts, trunks = networks.links[:, :hosts], networks.links[:, hosts:]
        self._at = of_hosts[:, :, AT]
        self._trunks = trunks
        limits = np.where(networks.switches > 0, networks.switches, _ANYTHING)
        speeds = [of_hosts[:, :, MBPS]] * 2 + [trunks[:, :, MBPS]] * 2
        self.capacity = np.concatenate([*speeds, limits], axis=1)
        """What each lane carries: (trial, lane)."""
        self._left = _distances(networks.switches.shape[1], trunks)

    def between(self, trials: Array, source: Array, target: Array) -> tuple[Array, Array]:
        """Which lanes the ways between some hosts have, and what their narrowest parts carry."""
        rows = np.arange(len(trials))
        used = np.zeros((len(trials), self.capacity.shape[1]), np.bool_)
        used[rows, source] = True
        used[rows, self._hosts + target] = True
        here, end = self._at[trials, source], self._at[trials, target]
        self._pass(used, rows, here)
        on = np.flatnonzero(here != end)
        while on.size:
            here[on] = self._hop(used, on, trials[on], here[on], end[on])
            self._pass(used, on, here[on])
            on = on[here[on] != end[on]]
        narrowest: Array = np.where(used, self.capacity[trials], _ANYTHING).min(axis=1)
        return used, narrowest

    def _hop(self, used: Array, rows: Array, trials: Array, here: Array, end: Array) -> Array:
        """Take one link each; where it leads."""
        trunks, count = self._trunks[trials], self._trunks.shape[1]
        there = trunks[:, :, MBPS] > 0
        each, place = trials[:, None], end[:, None]
        left = self._left[trials, here, end][:, None]
        ways = [
            there
            & (trunks[:, :, near] == here[:, None])
            & (self._left[each, trunks[:, :, far], place] < left)
            for near, far in ((AT, TO), (TO, AT))
        ]
        first = np.argmax(ways[0] | ways[1], axis=1)
        some = np.arange(len(rows))
        is_forth = ways[0][some, first]
        used[rows, 2 * self._hosts + first + np.where(is_forth, 0, count)] = True
        found: Array = np.where(is_forth, trunks[some, first, TO], trunks[some, first, AT])
        return found

    def _pass(self, used: Array, rows: Array, switch: Array) -> None:
        used[rows, 2 * self._hosts + 2 * self._trunks.shape[1] + switch] = True


def _distances(width: int, trunks: Array) -> Array:
    """How many links are between any two switches: (trial, switch, switch)."""
    found = np.full((len(trunks), width, width), _FAR)
    found[:, np.arange(width), np.arange(width)] = 0
    for link in np.moveaxis(trunks, 1, 0):
        trials = np.flatnonzero(link[:, MBPS] > 0)
        one, other = link[trials, AT], link[trials, TO]
        found[trials, one, other] = found[trials, other, one] = 1
    for via in range(width):
        found = np.minimum(found, found[:, :, via, None] + found[:, None, via])
    return found
