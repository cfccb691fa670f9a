"""Clusters by chance, small and of few words, so that much in them meets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from equipoise.fuzz.generate.draw.chance import Chance, Weighed, one_of
from equipoise.fuzz.generate.draw.numbers import NONE, NOWHERE, ON, READY, RUNNING, SLEEPING
from equipoise.fuzz.generate.options import Options
from equipoise.spec.batch.cases import HOST_CODES, VM_CODES, Array

_OVERFULL: Final = 1 << 20
"""A topic that is no VM."""


class Some:
    """Arrays of which the first axis is the trial."""

    __slots__ = ()

    def only(self, which: Array) -> Self:
        """Those of some of the trials."""
        fields: tuple[str, ...] = self.__slots__
        return type(self)(*(getattr(self, name)[which] for name in fields))


@dataclass(slots=True)
class Hosts(Some):
    """Hosts: (trial, host)."""

    count: Array
    there: Array
    """Which of the rows are hosts."""
    state: Array
    capacity: Array
    """Of each resource; -1 where nobody says."""
    label: Array
    """0 where there is none, else the number of its value, from 1."""
    room: Array
    """What is left of each resource, if nobody ever gives anything back."""


@dataclass(slots=True)
class Vms(Some):
    """VMs: (trial, VM)."""

    count: Array
    there: Array
    state: Array
    host: Array
    consumption: Array
    agent: Array
    replaceable: Array
    pair: Array
    """The other half, or -1."""
    tenant: Array
    label: Array
    been: Array
    """On which hosts each has ever been: (trial, VM, host)."""


def draw_hosts(chance: Chance, options: Options, least: Array) -> Hosts:
    """Draw hosts, at least so many in each trial."""
    most = max(1, options.hosts[1])
    count = np.maximum(least, chance.within(options.hosts))
    capacity = [chance.within(one.capacity, most) for one in options.resources.values()]
    offered = [chance.happens(one.offered, most) for one in options.resources.values()]
    amounts = np.where(_by_resource(offered, count, most), _by_resource(capacity, count, most), -1)
    return Hosts(
        count=count,
        there=np.arange(most) < count[:, None],
        state=Weighed(options.host_states, HOST_CODES).chosen(chance.numbers(most)),
        capacity=amounts,
        label=_labels(chance, options, most),
        room=np.maximum(0, amounts),
    )


def draw_vms(chance: Chance, options: Options, hosts: Hosts, least: Array) -> Vms:
    """Draw VMs, at least so many; those who run do so on hosts that are on, and fit there."""
    most = max(1, options.vms[1])
    count = np.maximum(least, chance.within(options.vms))
    taken = [chance.within(one.consumption, most) for one in options.resources.values()]
    there = np.arange(most) < count[:, None]
    agent = chance.happens(options.agents, most) & (hosts.count > 0)[:, None] & there
    amounts = _by_resource(taken, count, most)
    vms = Vms(
        count=count,
        there=there,
        state=Weighed(options.vm_states, VM_CODES).chosen(chance.numbers(most)),
        host=np.full((len(count), most), NOWHERE),
        consumption=np.where(agent[:, :, None], 0, amounts),
        agent=agent,
        replaceable=chance.happens(options.replaceable, most),
        pair=_pairs(chance.happens(options.paired, most) & there, ~agent),
        tenant=_tenants(chance, options, most),
        label=_labels(chance, options, most),
        been=np.zeros((len(count), most, hosts.state.shape[1]), np.bool_),
    )
    _give_agents_homes(chance, hosts, vms)
    for vm in range(most):
        _give_home(chance, hosts, vms, vm)
    _overfill(chance, options, hosts)
    return vms


def fitting(hosts: Hosts, vms: Vms, trials: Array, which: Array) -> Array:
    """The hosts with room for a VM, and where its other half has never been: (trial, host)."""
    needs = vms.consumption[trials, which][:, None]
    pair = vms.pair[trials, which]
    met = vms.been[trials, np.maximum(pair, 0)] & (pair != NONE)[:, None]
    found: Array = (needs <= hosts.room[trials]).all(axis=2) & ~met
    return found


def settle(hosts: Hosts, vms: Vms, trials: Array, which: Array, where: Array) -> None:
    """Take the room that VMs take on hosts, once and for all."""
    vms.been[trials, which, where] = True
    hosts.room[trials, where] -= vms.consumption[trials, which]


def _give_agents_homes(chance: Chance, hosts: Hosts, vms: Vms) -> None:
    """Agents take nothing, and sleep if their host does."""
    home = chance.below(hosts.count[:, None], vms.state.shape[1])
    asleep = np.take_along_axis(hosts.state, home, axis=1) != ON
    vms.host[:] = np.where(vms.agent, home, NOWHERE)
    vms.state[:] = np.where(vms.agent, np.where(asleep, SLEEPING, RUNNING), vms.state)


def _give_home(chance: Chance, hosts: Hosts, vms: Vms, vm: int) -> None:
    needs_one = np.isin(vms.state[:, vm], (RUNNING, SLEEPING)) & ~vms.agent[:, vm]
    trials = np.flatnonzero(needs_one & vms.there[:, vm])
    which = np.full(len(trials), vm)
    is_open = ((hosts.state == ON) & hosts.there)[trials] & fitting(hosts, vms, trials, which)
    home = one_of(chance.about(vm, trials).numbers(), is_open)
    vms.state[trials[home == NOWHERE], vm] = READY
    finds = home != NOWHERE
    trials, which, home = trials[finds], which[finds], home[finds]
    vms.host[trials, vm] = home
    settle(hosts, vms, trials, which, home)


def _overfill(chance: Chance, options: Options, hosts: Hosts) -> None:
    """Let some hosts have less than is taken there already; nobody comes there any more."""
    every = np.arange(len(hosts.count))
    wish = chance.about(_OVERFULL, every).happens(options.overfull, hosts.state.shape[1])
    taken = np.maximum(0, hosts.capacity) - hosts.room
    short = (wish & hosts.there)[:, :, None] & (taken > 0)
    hosts.capacity[:] = np.where(short, taken - 1, hosts.capacity)
    hosts.room[:] = np.where(short, -1, hosts.room)


def _pairs(wish: Array, able: Array) -> Array:
    """The other half of each VM: that before or after it, if it wants one and that has none."""
    found = np.full(wish.shape, NONE)
    for vm in range(1, wish.shape[1]):
        joined = wish[:, vm] & able[:, vm - 1] & able[:, vm] & (found[:, vm - 1] == NONE)
        found[joined, vm] = vm - 1
        found[joined, vm - 1] = vm
    return found


def _tenants(chance: Chance, options: Options, most: int) -> Array:
    owned = chance.happens(options.owned, most) & bool(options.tenants)
    return np.where(owned, chance.below(len(options.tenants), most), NONE)


def _labels(chance: Chance, options: Options, most: int) -> Array:
    counts = np.array([len(values) for values in options.labels.values()], np.int64)
    there = chance.happens(options.labelled, most, len(counts)) & (counts > 0)
    return np.where(there, 1 + chance.below(counts, most, len(counts)), 0)


def _by_resource(columns: list[Array], count: Array, most: int) -> Array:
    if not columns:
        return np.zeros((len(count), most, 0), np.int64)
    return np.stack(columns, axis=2)
