"""Random arguments of a constraint, which complete the trials.

Unusual arguments are drawn more often, and so are VMs and hosts of the plan: otherwise the plan
would rarely matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from equipoise.adapters.targets.trial import TrialOptions
from equipoise.fuzz.generate.draw.keyed_random import KeyedRandom
from equipoise.fuzz.generate.draw.plans import PlannedClusters
from equipoise.fuzz.generate.draw.trial_arrays import (
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
    TrialArrays,
)
from equipoise.fuzz.generate.parameters import DrawableParameter, resource_of
from equipoise.spec.batch.cases import Array

_SET_SHARES: Final = (0.4, 0.75)
"""The probability that a possible member is in a set: without and with an action."""
_SMALL_NUMBER_SHARE: Final = 0.2
"""The fraction of numbers that are small, independent of the trial."""


def draw_arguments(
    rng: KeyedRandom,
    options: TrialOptions,
    clusters: PlannedClusters,
    parameters: Sequence[DrawableParameter],
) -> Array:
    """Draw the arguments of a constraint."""
    return _ArgumentDrawer(rng, options, clusters).draw(parameters)


class _ArgumentDrawer:
    def __init__(self, rng: KeyedRandom, options: TrialOptions, clusters: PlannedClusters) -> None:
        self._rng, self._options = rng, options
        self._hosts, self._vms = hosts, vms = clusters.hosts, clusters.vms
        self._steps, self._count = clusters.steps, clusters.count
        self._is_step = np.arange(self._steps.shape[1]) < self._count[:, None]
        self._busy_vms = self._touched(vms.state.shape[1], VM)
        self._busy_hosts = self._touched(hosts.state.shape[1], SOURCE, TARGET, SWITCH)

    def draw(self, parameters: Sequence[DrawableParameter]) -> Array:
        """Draw all arguments. Numbers come last, because they depend on the others."""
        wide = max(self._busy_vms.shape[1], self._busy_hosts.shape[1], 1)
        wide = max(wide, *(len(parameter.choices) for parameter in parameters), 1)
        arguments = np.zeros((len(self._count), len(parameters), wide), np.int64)
        for numbers in (False, True):
            for i, parameter in enumerate(parameters):
                if (parameter.what == NUMBER) == numbers:
                    drawn = (
                        self._number(parameters, arguments) if numbers else self._draw(parameter)
                    )
                    arguments[:, i, : drawn.shape[1]] = drawn
        return arguments

    def _draw(self, parameter: DrawableParameter) -> Array:
        of_hosts = parameter.what in (SOME_HOSTS, HOST_GROUPS, ONE_HOST)
        present = self._hosts.present if of_hosts else self._vms.present
        busy = self._busy_hosts if of_hosts else self._busy_vms
        match parameter.what:
            case what if what in (SOME_VMS, SOME_HOSTS):
                return self._some(present, busy)
            case what if what in (VM_GROUPS, HOST_GROUPS):
                return self._groups(present)
            case what if what == VM_LIST:
                return self._list(self._some(present, busy))
            case what if what in (ONE_VM, ONE_HOST):
                return self._member(present, busy)
            case what if what == CHOICE:
                return self._rng.below(len(parameter.choices), 1)
        assert parameter.what == SOME_CHOICES
        every = np.ones((len(self._count), len(parameter.choices)), np.bool_)
        return self._some(every, np.zeros_like(every))

    def _some(self, present: Array, busy: Array) -> Array:
        """A set: 1 for each member. Unusual sets have no, one or all possible members."""
        rng, most = self._rng, present.shape[1]
        unusual = rng.happens(self._options.unusual)
        size = rng.below(3)[:, None]
        single = np.arange(most) == rng.one_of(present)[:, None]
        few = np.where(size == 1, single, size > 1)
        idle, taken = (rng.happens(part, most) for part in _SET_SHARES)
        many = np.where(busy, taken, idle)
        return (np.where(unusual[:, None], few, many) & present).astype(np.int64)

    def _groups(self, present: Array) -> Array:
        """Groups: the number of the group of each member, or 0 without a group.

        Unusual: no group, one group, or groups with one member each.
        """
        rng, most = self._rng, present.shape[1]
        unusual = rng.happens(self._options.unusual)
        kind = rng.below(3)[:, None]
        few = np.where(kind > 1, np.arange(1, most + 1), kind)
        groups = 1 + rng.below(present.sum(axis=1))
        many = rng.below(groups[:, None] + 1, most)
        return np.where(present, np.where(unusual[:, None], few, many), 0)

    def _list(self, some: Array) -> Array:
        """The members of a set in random order: their indexes plus 1, then 0."""
        # Random numbers have 31 bits, so members come before all others.
        rank = np.where(some > 0, self._rng.numbers(some.shape[1]), 1 << 40)
        order = np.argsort(rank, axis=1)
        return np.where(np.take_along_axis(some, order, axis=1) > 0, order + 1, 0)

    def _member(self, present: Array, busy: Array) -> Array:
        """A single member, often one with an action."""
        any_member, busy_member = self._rng.one_of(present), self._rng.one_of(present & busy)
        is_busy = self._rng.happens(self._options.busy) & (busy_member != NONE)
        return np.where(is_busy, busy_member, any_member)[:, None]

    def _number(self, parameters: Sequence[DrawableParameter], drawn: Array) -> Array:
        """A number close to a count of the trial, so that it is just enough or just too small."""
        figures = []
        for i, parameter in enumerate(parameters):
            if parameter.what in (SOME_VMS, SOME_HOSTS):
                figures.append(drawn[:, i].sum(axis=1))
            elif parameter.what in (VM_GROUPS, HOST_GROUPS):
                figures.append(drawn[:, i].max(axis=1))
            if parameter.what == SOME_HOSTS:
                figures += self._use(drawn[:, i], resource_of(parameters, self._options, drawn))
        figures = figures or [self._fullest(), self._count]
        # The exact figure has double weight: at the limit a scheduler that is off by one is wrong.
        near = np.stack([figure + by for figure in figures for by in (-1, 0, 0, 1)], axis=1)
        small = self._rng.below(3)
        which = self._rng.below(near.shape[1])
        chosen = near[np.arange(len(near)), which]
        is_small = self._rng.happens(_SMALL_NUMBER_SHARE)
        return np.maximum(0, np.where(is_small, small, chosen))[:, None]

    def _use(self, hosts: Array, resource: Array) -> list[Array]:
        """The use of some hosts now, and after all migrations to them.

        The use is the number of running VMs, or their consumption of the named resource.
        """
        vms = self._vms
        chosen = np.append(
            hosts, np.zeros((len(hosts), 1), np.int64), axis=1
        )  # the last column: no host
        present = (
            np.take_along_axis(chosen, vms.host, axis=1) * (vms.state == RUNNING) * vms.present
        )
        source, target = (
            np.take_along_axis(chosen, self._steps[:, :, column], axis=1)
            for column in (SOURCE, TARGET)
        )
        # A VM that moves between two of the hosts is already counted.
        coming = target * (1 - source) * self._is_step
        # The last column: without a named resource, each VM counts as one.
        known = np.append(vms.consumption, np.ones((*vms.host.shape, 1), np.int64), axis=2)
        taken = np.take_along_axis(known, resource[:, None, None], axis=2)[:, :, 0]
        comes = np.take_along_axis(taken, np.maximum(0, self._steps[:, :, VM]), axis=1) * coming
        in_use = (present * taken).sum(axis=1)
        return [in_use, in_use + comes.sum(axis=1)]

    def _fullest(self) -> Array:
        """The number of VMs on the host with the most VMs."""
        is_on = self._vms.host[:, :, None] == np.arange(self._hosts.state.shape[1])
        count: Array = (is_on & self._vms.present[:, :, None]).sum(axis=1).max(axis=1)
        return count

    def _touched(self, most: int, *columns: int) -> Array:
        """Which VMs or hosts have an action, by the columns of steps that name them."""
        touched = np.zeros((len(self._count), most + 1), np.bool_)  # the last column: none
        for column in columns:
            named = np.where(self._is_step, self._steps[:, :, column], most)
            touched[np.arange(len(touched))[:, None], named] = True
        return touched[:, :most]


_ARGUMENTS_TOPIC = -1


def draw_trials(
    clusters: PlannedClusters,
    options: TrialOptions,
    parameters: Sequence[DrawableParameter],
    modes: Sequence[bool],
) -> TrialArrays:
    """Complete clusters and plans to trials, with arguments of a constraint."""
    hosts, vms = clusters.hosts, clusters.vms
    rng = KeyedRandom(clusters.keys).about(_ARGUMENTS_TOPIC, np.arange(len(clusters.keys)))
    return TrialArrays(
        counts=np.stack([hosts.count, vms.count, clusters.count], axis=1),
        continuous=np.array(modes)[rng.below(len(modes))],
        host_state=hosts.state,
        host_label=hosts.label,
        capacity=hosts.capacity,
        vm_state=vms.state,
        vm_host=vms.host,
        vm_label=vms.label,
        tenant=vms.tenant,
        consumption=vms.consumption,
        agent=vms.agent,
        replaceable=vms.replaceable,
        pair=vms.pair,
        steps=clusters.steps,
        arguments=draw_arguments(rng, options, clusters, parameters),
        switches=clusters.networks.switches,
        links=clusters.networks.links,
    )
