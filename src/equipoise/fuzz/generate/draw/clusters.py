"""Random clusters, small and with few distinct values, so that many of them coincide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from equipoise.adapters.targets.trial import TrialOptions
from equipoise.fuzz.generate.draw.keyed_random import KeyedRandom, WeightedChoice, one_of
from equipoise.fuzz.generate.draw.trial_arrays import NO_HOST, NONE, ON, READY, RUNNING, SLEEPING
from equipoise.spec.batch.cases import HOST_CODES, VM_CODES, Array

_OVERCOMMIT_TOPIC: Final = 1 << 20
"""A topic of random numbers that is not the number of a VM."""


class PerTrialArrays:
    """Arrays whose first axis is the trial."""

    __slots__ = ()

    def only(self, which: Array) -> Self:
        """The arrays of some trials."""
        fields: tuple[str, ...] = self.__slots__
        return type(self)(*(getattr(self, name)[which] for name in fields))


@dataclass(slots=True)
class DrawnHosts(PerTrialArrays):
    """Hosts: (trial, host)."""

    count: Array
    present: Array
    """Whether each row is a host."""
    state: Array
    capacity: Array
    """The capacity of each resource; -1 where the host states none."""
    label: Array
    """The number of the value of each label, from 1; 0 without the label."""
    free: Array
    """The free capacity of each resource; capacity that was committed once is never freed."""


@dataclass(slots=True)
class DrawnVms(PerTrialArrays):
    """VMs: (trial, VM)."""

    count: Array
    present: Array
    state: Array
    host: Array
    consumption: Array
    agent: Array
    replaceable: Array
    pair: Array
    """The fault-tolerance partner, or -1."""
    tenant: Array
    label: Array
    visited: Array
    """Whether each VM has ever been on each host: (trial, VM, host)."""


def draw_hosts(rng: KeyedRandom, options: TrialOptions, least: Array) -> DrawnHosts:
    """Draw hosts, at least ``least`` in each trial."""
    most = max(1, options.hosts[1])
    count = np.maximum(least, rng.within(options.hosts))
    resources = options.resources.values()
    capacity = [rng.within(resource.capacity, most) for resource in resources]
    offered = [rng.happens(resource.offered, most) for resource in resources]
    amounts = np.where(_by_resource(offered, count, most), _by_resource(capacity, count, most), -1)
    return DrawnHosts(
        count=count,
        present=np.arange(most) < count[:, None],
        state=WeightedChoice(options.host_states, HOST_CODES).chosen(rng.numbers(most)),
        capacity=amounts,
        label=_labels(rng, options, most),
        free=np.maximum(0, amounts),
    )


def draw_vms(rng: KeyedRandom, options: TrialOptions, hosts: DrawnHosts, least: Array) -> DrawnVms:
    """Draw VMs, at least ``least`` in each trial; running VMs fit on hosts that are on."""
    most = max(1, options.vms[1])
    count = np.maximum(least, rng.within(options.vms))
    taken = [rng.within(resource.consumption, most) for resource in options.resources.values()]
    present = np.arange(most) < count[:, None]
    agent = rng.happens(options.agents, most) & (hosts.count > 0)[:, None] & present
    amounts = _by_resource(taken, count, most)
    vms = DrawnVms(
        count=count,
        present=present,
        state=WeightedChoice(options.vm_states, VM_CODES).chosen(rng.numbers(most)),
        host=np.full((len(count), most), NO_HOST),
        # Agents are placed without a look at capacity, so they must not consume any.
        consumption=np.where(agent[:, :, None], 0, amounts),
        agent=agent,
        replaceable=rng.happens(options.replaceable, most),
        pair=_pairs(rng.happens(options.paired, most) & present, ~agent),
        tenant=_tenants(rng, options, most),
        label=_labels(rng, options, most),
        visited=np.zeros((len(count), most, hosts.state.shape[1]), np.bool_),
    )
    _place_agents(rng, hosts, vms)
    for vm in range(most):
        _place_vm(rng, hosts, vms, vm)
    _overcommit(rng, options, hosts)
    return vms


def hosts_that_fit(hosts: DrawnHosts, vms: DrawnVms, trials: Array, which: Array) -> Array:
    """The hosts with capacity for a VM where its partner has never been: (trial, host)."""
    needs = vms.consumption[trials, which][:, None]
    pair = vms.pair[trials, which]
    # Partners may never meet on a host, at whatever times they are there.
    met = vms.visited[trials, np.maximum(pair, 0)] & (pair != NONE)[:, None]
    fits: Array = (needs <= hosts.free[trials]).all(axis=2) & ~met
    return fits


def commit_capacity(
    hosts: DrawnHosts, vms: DrawnVms, trials: Array, which: Array, where: Array
) -> None:
    """Commit the capacity that VMs consume on hosts, for the whole plan."""
    vms.visited[trials, which, where] = True
    hosts.free[trials, where] -= vms.consumption[trials, which]


def _place_agents(rng: KeyedRandom, hosts: DrawnHosts, vms: DrawnVms) -> None:
    """Place agents. They consume nothing, and they sleep if their host is not on."""
    host = rng.below(hosts.count[:, None], vms.state.shape[1])
    asleep = np.take_along_axis(hosts.state, host, axis=1) != ON
    vms.host[:] = np.where(vms.agent, host, NO_HOST)
    vms.state[:] = np.where(vms.agent, np.where(asleep, SLEEPING, RUNNING), vms.state)


def _place_vm(rng: KeyedRandom, hosts: DrawnHosts, vms: DrawnVms, vm: int) -> None:
    needs_host = np.isin(vms.state[:, vm], (RUNNING, SLEEPING)) & ~vms.agent[:, vm]
    trials = np.flatnonzero(needs_host & vms.present[:, vm])
    which = np.full(len(trials), vm)
    is_open = ((hosts.state == ON) & hosts.present)[trials] & hosts_that_fit(
        hosts, vms, trials, which
    )
    host = one_of(rng.about(vm, trials).numbers(), is_open)
    # No host has capacity: ``ready`` needs no host, and the plan can still boot the VM.
    vms.state[trials[host == NO_HOST], vm] = READY
    is_placed = host != NO_HOST
    trials, which, host = trials[is_placed], which[is_placed], host[is_placed]
    vms.host[trials, vm] = host
    commit_capacity(hosts, vms, trials, which, host)


def _overcommit(rng: KeyedRandom, options: TrialOptions, hosts: DrawnHosts) -> None:
    """Lower the capacity of some hosts below their consumption; no other VM fits there."""
    all_trials = np.arange(len(hosts.count))
    chosen = rng.about(_OVERCOMMIT_TOPIC, all_trials).happens(
        options.overfull, hosts.state.shape[1]
    )
    taken = np.maximum(0, hosts.capacity) - hosts.free
    short = (chosen & hosts.present)[:, :, None] & (taken > 0)
    hosts.capacity[:] = np.where(short, taken - 1, hosts.capacity)
    # Negative, so that not even a VM that consumes nothing fits.
    hosts.free[:] = np.where(short, -1, hosts.free)


def _pairs(wanted: Array, able: Array) -> Array:
    """The partner of each VM: the VM before or after it, if both are able and unpaired."""
    partner = np.full(wanted.shape, NONE)
    for vm in range(1, wanted.shape[1]):
        joined = wanted[:, vm] & able[:, vm - 1] & able[:, vm] & (partner[:, vm - 1] == NONE)
        partner[joined, vm] = vm - 1
        partner[joined, vm - 1] = vm
    return partner


def _tenants(rng: KeyedRandom, options: TrialOptions, most: int) -> Array:
    owned = rng.happens(options.owned, most) & bool(options.tenants)
    return np.where(owned, rng.below(len(options.tenants), most), NONE)


def _labels(rng: KeyedRandom, options: TrialOptions, most: int) -> Array:
    counts = np.array([len(values) for values in options.labels.values()], np.int64)
    present = rng.happens(options.labelled, most, len(counts)) & (counts > 0)
    return np.where(present, 1 + rng.below(counts, most, len(counts)), 0)


def _by_resource(columns: list[Array], count: Array, most: int) -> Array:
    if not columns:
        return np.zeros((len(count), most, 0), np.int64)
    return np.stack(columns, axis=2)
