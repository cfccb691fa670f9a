"""What goes through networks while plans are drawn, so that no part has to carry too much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.fuzz.generate.draw.cluster import Some
from equipoise.fuzz.generate.draw.network import Networks, Ways
from equipoise.fuzz.generate.usual import USUAL_VM
from equipoise.spec.batch.cases import Array

_BITS: Final = 8 * 1024 * 1024 * USUAL_VM.memory_mib
"""Of the memory of a VM."""
_BITS_PER_S: Final = 1_000_000
"""Of one Mbit/s."""


@dataclass(slots=True)
class Going(Some):
    """What steps take of a network; those that do not migrate take nothing."""

    lanes: Array
    mbps: Array

    @property
    def least_s(self) -> Array:
        """How many whole seconds the copying takes."""
        speed = np.maximum(1, self.mbps) * _BITS_PER_S
        found: Array = np.where(self.mbps > 0, -(-_BITS // speed), 0)
        return found


class Traffic:
    """The migrations of all plans so far, with the ``most`` that a plan may have."""

    def __init__(self, networks: Networks, hosts: int, most: int) -> None:
        self._ways = Ways(networks, hosts)
        trials, lanes = self._ways.capacity.shape
        self._count = np.zeros(trials, np.int64)
        self._times_s = np.zeros((2, trials, most), np.int64)
        """From when to when: one that is not there has ended before it began."""
        self._takes = np.zeros((trials, most, lanes), np.int64)

    def going(self, trials: Array, moves: Array, source: Array, target: Array) -> Going:
        """What steps would take, of which some are moves from one host to another."""
        lanes = np.zeros((len(trials), self._takes.shape[2]), np.bool_)
        mbps = np.zeros(len(trials), np.int64)
        lanes[moves], mbps[moves] = self._ways.between(trials[moves], source[moves], target[moves])
        return Going(lanes, mbps)

    def is_too_much(self, trials: Array, going: Going, start_s: Array, end_s: Array) -> Array:
        """Whether some lane would have to carry more than it can, at any moment."""
        known = int(self._count[trials].max(initial=0))
        begun, ended = self._times_s[:, trials, :known]
        takes = self._takes[trials, :known]
        free = self._ways.capacity[trials] - going.mbps[:, None]
        found = np.zeros(len(trials), np.bool_)
        # What is under way becomes more only when something begins.
        for moment in (start_s, *begun.T):
            counts = (start_s <= moment) & (moment < end_s)
            under_way = (begun <= moment[:, None]) & (moment[:, None] < ended)
            carried = (takes * under_way[:, :, None]).sum(axis=1)
            found |= counts & ((carried > free) & going.lanes).any(axis=1)
        return found

    def add(self, trials: Array, going: Going, start_s: Array, end_s: Array) -> None:
        """Let steps happen, one of each trial."""
        moves = np.flatnonzero(going.mbps > 0)
        which, place = trials[moves], self._count[trials[moves]]
        self._times_s[:, which, place] = start_s[moves], end_s[moves]
        self._takes[which, place] = going.lanes[moves] * going.mbps[moves, None]
        self._count[which] += 1
