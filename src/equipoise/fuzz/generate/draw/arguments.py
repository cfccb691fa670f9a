"""Arguments by chance, the unusual ones more often than chance would have it.

Whoever has to do with the plan is named more often: else it would seldom make a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from equipoise.fuzz.generate.draw.chance import Chance
from equipoise.fuzz.generate.draw.numbers import (
    CHOICE,
    HOST_GROUPS,
    NONE,
    NUMBER,
    ONE_HOST,
    ONE_VM,
    RUNNING,
    SOME_CHOICES,
    SOME_HOSTS,
    SOME_VMS,
    SOURCE,
    SWITCH,
    TARGET,
    VM,
    VM_GROUPS,
    VM_LIST,
)
from equipoise.fuzz.generate.draw.stage import Stages
from equipoise.fuzz.generate.options import Options
from equipoise.fuzz.generate.parameters import Drawable, resource_of
from equipoise.spec.batch.cases import Array

_TAKEN: Final = (0.4, 0.75)
"""How many of those who could be in a set are in it: of the idle ones, and of the others."""
_SMALL: Final = 0.2
"""How many numbers are small, whatever there is."""


def draw_arguments(
    chance: Chance, options: Options, stages: Stages, parameters: Sequence[Drawable]
) -> Array:
    """Draw the arguments of a constraint."""
    return _Drawer(chance, options, stages).draw(parameters)


class _Drawer:
    def __init__(self, chance: Chance, options: Options, stages: Stages) -> None:
        self._chance, self._options = chance, options
        self._hosts, self._vms = hosts, vms = stages.hosts, stages.vms
        self._steps, self._count = stages.steps, stages.count
        self._is_step = np.arange(self._steps.shape[1]) < self._count[:, None]
        self._busy_vms = self._touched(vms.state.shape[1], VM)
        self._busy_hosts = self._touched(hosts.state.shape[1], SOURCE, TARGET, SWITCH)

    def draw(self, parameters: Sequence[Drawable]) -> Array:
        """Draw all of them, numbers last, for they are about the others."""
        wide = max(self._busy_vms.shape[1], self._busy_hosts.shape[1], 1)
        wide = max(wide, *(len(one.choices) for one in parameters), 1)
        found = np.zeros((len(self._count), len(parameters), wide), np.int64)
        for numbers in (False, True):
            for place, one in enumerate(parameters):
                if (one.what == NUMBER) == numbers:
                    drawn = self._number(parameters, found) if numbers else self._one(one)
                    found[:, place, : drawn.shape[1]] = drawn
        return found

    def _one(self, one: Drawable) -> Array:
        of_hosts = one.what in (SOME_HOSTS, HOST_GROUPS, ONE_HOST)
        there = self._hosts.there if of_hosts else self._vms.there
        busy = self._busy_hosts if of_hosts else self._busy_vms
        match one.what:
            case what if what in (SOME_VMS, SOME_HOSTS):
                return self._some(there, busy)
            case what if what in (VM_GROUPS, HOST_GROUPS):
                return self._groups(there)
            case what if what == VM_LIST:
                return self._list(self._some(there, busy))
            case what if what in (ONE_VM, ONE_HOST):
                return self._member(there, busy)
            case what if what == CHOICE:
                return self._chance.below(len(one.choices), 1)
        assert one.what == SOME_CHOICES
        every = np.ones((len(self._count), len(one.choices)), np.bool_)
        return self._some(every, np.zeros_like(every))

    def _some(self, there: Array, busy: Array) -> Array:
        """A set: 1 for each member that is in it. Unusual: none, one or all."""
        chance, most = self._chance, there.shape[1]
        unusual = chance.happens(self._options.unusual)
        size = chance.below(3)[:, None]
        single = np.arange(most) == chance.one_of(there)[:, None]
        few = np.where(size == 1, single, size > 1)
        idle, taken = (chance.happens(part, most) for part in _TAKEN)
        many = np.where(busy, taken, idle)
        return (np.where(unusual[:, None], few, many) & there).astype(np.int64)

    def _groups(self, there: Array) -> Array:
        """Groups: for each member the number of its own, or 0. Unusual: none, one, or of one."""
        chance, most = self._chance, there.shape[1]
        unusual = chance.happens(self._options.unusual)
        kind = chance.below(3)[:, None]
        few = np.where(kind > 1, np.arange(1, most + 1), kind)
        groups = 1 + chance.below(there.sum(axis=1))
        many = chance.below(groups[:, None] + 1, most)
        return np.where(there, np.where(unusual[:, None], few, many), 0)

    def _list(self, some: Array) -> Array:
        """A list of the members of a set in any order, each plus 1, and 0 after the last."""
        rank = np.where(some > 0, self._chance.numbers(some.shape[1]), 1 << 40)
        order = np.argsort(rank, axis=1)
        return np.where(np.take_along_axis(some, order, axis=1) > 0, order + 1, 0)

    def _member(self, there: Array, busy: Array) -> Array:
        """One of several, often one to whom something happens."""
        anybody, somebody = self._chance.one_of(there), self._chance.one_of(there & busy)
        is_busy = self._chance.happens(self._options.busy) & (somebody != NONE)
        return np.where(is_busy, somebody, anybody)[:, None]

    def _number(self, parameters: Sequence[Drawable], drawn: Array) -> Array:
        """A number that is just enough for what is there, or just not."""
        figures = []
        for place, one in enumerate(parameters):
            if one.what in (SOME_VMS, SOME_HOSTS):
                figures.append(drawn[:, place].sum(axis=1))
            elif one.what in (VM_GROUPS, HOST_GROUPS):
                figures.append(drawn[:, place].max(axis=1))
            if one.what == SOME_HOSTS:
                figures += self._use(drawn[:, place], resource_of(parameters, self._options, drawn))
        figures = figures or [self._fullest(), self._count]
        near = np.stack([figure + by for figure in figures for by in (-1, 0, 0, 1)], axis=1)
        small = self._chance.below(3)
        which = self._chance.below(near.shape[1])
        chosen = near[np.arange(len(near)), which]
        is_small = self._chance.happens(_SMALL)
        return np.maximum(0, np.where(is_small, small, chosen))[:, None]

    def _use(self, hosts: Array, resource: Array) -> list[Array]:
        """How much is in use on some hosts, and will be when all have come from elsewhere.

        That is the number of VMs that run, or what they take of a resource if one is named.
        """
        vms = self._vms
        chosen = np.append(hosts, np.zeros((len(hosts), 1), np.int64), axis=1)  # the last: nowhere
        there = np.take_along_axis(chosen, vms.host, axis=1) * (vms.state == RUNNING) * vms.there
        source, target = (
            np.take_along_axis(chosen, self._steps[:, :, column], axis=1)
            for column in (SOURCE, TARGET)
        )
        coming = target * (1 - source) * self._is_step
        # The last one: none is named, and each VM counts as one.
        known = np.append(vms.consumption, np.ones((*vms.host.shape, 1), np.int64), axis=2)
        taken = np.take_along_axis(known, resource[:, None, None], axis=2)[:, :, 0]
        comes = np.take_along_axis(taken, np.maximum(0, self._steps[:, :, VM]), axis=1) * coming
        in_use = (there * taken).sum(axis=1)
        return [in_use, in_use + comes.sum(axis=1)]

    def _fullest(self) -> Array:
        """How many VMs lie on the fullest host."""
        lies = self._vms.host[:, :, None] == np.arange(self._hosts.state.shape[1])
        found: Array = (lies & self._vms.there[:, :, None]).sum(axis=1).max(axis=1)
        return found

    def _touched(self, most: int, *columns: int) -> Array:
        """To whom something happens, by the columns of the steps that name them."""
        found = np.zeros((len(self._count), most + 1), np.bool_)  # the last one: nobody
        for column in columns:
            named = np.where(self._is_step, self._steps[:, :, column], most)
            found[np.arange(len(found))[:, None], named] = True
        return found[:, :most]
