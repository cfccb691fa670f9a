"""Random plans that hosts can execute and that often do several things at once.

A VM does one action after the other. A host that powers on is used after that; all VMs leave a host
before it powers off. A host has capacity for every VM that is ever on it. A migration over a
network waits for others on a shared link that cannot carry both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.adapters.targets.trial import PlanSampling, TrialOptions
from equipoise.fuzz.generate.draw.clusters import (
    DrawnHosts,
    DrawnVms,
    PerTrialArrays,
    commit_capacity,
    draw_hosts,
    draw_vms,
    hosts_that_fit,
)
from equipoise.fuzz.generate.draw.keyed_random import (
    KeyedRandom,
    WeightedChoice,
    below,
    happens,
    one_of,
)
from equipoise.fuzz.generate.draw.networks import (
    DrawnNetworks,
    DrawnTraffic,
    TrafficDemand,
    draw_networks,
    no_networks,
)
from equipoise.fuzz.generate.draw.trial_arrays import (
    ALLOCATE,
    BOOT,
    END,
    ENTER,
    FORGE,
    INIT,
    KILL,
    LEAVE,
    MIGRATE,
    NO_HOST,
    NONE,
    ON,
    POWER_OFF,
    POWER_ON,
    READY,
    REINSTANTIATE,
    RESUME,
    RUNNING,
    SHUTDOWN,
    SLEEPING,
    SOURCE,
    STANDBY,
    START,
    SUSPEND,
    SWITCH,
    TARGET,
    TERMINATED,
)
from equipoise.model.plan import ConcurrencyLimits
from equipoise.spec.batch.cases import KIND_CODES, VM_CODES, Array

ACTIONS_MAX: Final = 1 << 16
"""More than the maximum number of actions of a VM."""
_MAINTENANCE_SHARE: Final = 0.3
"""The fraction of emptied hosts that enter maintenance instead of standby."""


def draw_plans(
    rng: KeyedRandom,
    options: TrialOptions,
    hosts: DrawnHosts,
    vms: DrawnVms,
    networks: DrawnNetworks,
    limits: ConcurrencyLimits,
) -> tuple[Array, Array]:
    """Draw the steps of each plan, and their number."""
    drawer = _PlanDrawer(rng, options, hosts, vms, networks, limits)
    for host in range(hosts.state.shape[1]):
        drawer.power_on(host)
    # Random order, because committed capacity is never freed: VMs that act early find more of it.
    # Absent rows come last.
    order = np.argsort(np.where(vms.present, rng.numbers(vms.state.shape[1]), 1 << 40), axis=1)
    for position in range(vms.state.shape[1]):
        drawer.move(position, order[:, position])
    for host in range(hosts.state.shape[1]):
        drawer.power_off_empty(host)
    return np.ascontiguousarray(np.moveaxis(drawer.steps, 0, 2)), drawer.count


def steps_max(options: TrialOptions) -> int:
    """The maximum number of steps of a plan."""
    most = options.vms[1] * options.actions[1] + options.hosts[1]
    return most if options.total is None else min(most, options.total[1])


@dataclass(slots=True)
class _StepArrays(PerTrialArrays):
    """One step for each trial; fields that do not apply are -1."""

    kind: Array
    vm: Array
    source: Array
    target: Array
    switch: Array
    resource: Array
    amount: Array


class _PlanDrawer:
    def __init__(
        self,
        rng: KeyedRandom,
        options: TrialOptions,
        hosts: DrawnHosts,
        vms: DrawnVms,
        networks: DrawnNetworks,
        limits: ConcurrencyLimits,
    ) -> None:
        self._rng, self._options, self._limits = rng, options, limits
        self._hosts, self._vms = hosts, vms
        self._careful = options.plans is PlanSampling.CAREFUL
        trials = len(hosts.count)
        self._every = np.arange(trials)
        most = max(1, steps_max(options))
        self.steps = np.zeros((9, trials, most), np.int64)
        """The columns of all steps, each by (trial, step)."""
        self.count = np.zeros(trials, np.int64)
        self._total = rng.within(options.total or (most, most))
        is_on = (hosts.state == ON) & hosts.present
        self._usable_from_s = np.where(is_on, 0, -1)
        """The second from which each host may be used; -1 for never."""
        self._busy_s = np.zeros_like(hosts.state)
        """The end of the last action on each host."""
        self._emptied = rng.happens(options.switched, hosts.state.shape[1]) & is_on
        self._final_vms = np.zeros_like(hosts.state)
        """The final number of VMs of each host."""
        self._state, self._host = vms.state.copy(), vms.host.copy()
        self._now = DrawnVms(**{name: getattr(vms, name) for name in DrawnVms.__slots__})
        self._now.consumption = vms.consumption.copy()
        self._kinds = _of_kinds(*(KIND_CODES[kind.value] for kind in options.kinds))
        self._ends = WeightedChoice(options.end_states, VM_CODES)
        self._allocated = options.allocated if options.resources else 0.0
        self._network = options.network
        width = hosts.state.shape[1]
        self._traffic = None if self._network is None else DrawnTraffic(networks, width, most)

    # Hosts

    def power_on(self, host: int) -> None:
        """Sometimes power on a host on standby, or end its maintenance."""
        state = self._hosts.state[:, host]
        kind = np.where(state == STANDBY, POWER_ON, LEAVE)
        wanted = self._rng.happens(self._options.switched) & (state != ON)
        trials, ends_s = self._switch(wanted & self._hosts.present[:, host], kind, host)
        self._usable_from_s[trials, host] = ends_s

    def power_off_empty(self, host: int) -> None:
        """Power off an emptied host, or put it into maintenance."""
        kind = np.where(self._rng.happens(_MAINTENANCE_SHARE), ENTER, POWER_OFF)
        self._switch(self._emptied[:, host] & (self._final_vms[:, host] == 0), kind, host)

    def _switch(self, wanted: Array, kind: Array, host: int) -> tuple[Array, Array]:
        """Switch a host after its last action; return the trials and the ends of the steps."""
        trials = np.flatnonzero(wanted & self._may_add(self._every, kind))
        kind, none = kind[trials], np.full(len(trials), NONE)
        step = _StepArrays(
            kind, none, none, none, np.full_like(kind, host), none, np.zeros_like(kind)
        )
        # Topics of hosts are negative, those of actions are not.
        rng = self._rng.about(-1 - host, trials)
        return trials, self._add(rng, trials, step, self._busy_s[trials, host])

    # VMs

    def move(self, position: int, vm: Array) -> None:
        """Draw the actions of one VM of each cluster; agents have none."""
        is_vm = (position < self._vms.count) & ~self._vms.agent[self._every, vm]
        actions = np.where(is_vm, self._rng.within(self._options.actions), 0)
        free_s = np.zeros_like(self.count)
        trials = self._every
        for number in range(self._options.actions[1]):
            trials = trials[number < actions[trials]]
            rng = self._rng.about(position * ACTIONS_MAX + number, trials)
            step = self._choose(rng, trials, vm[trials])
            # A VM whose action is not possible stops: its later actions would start from another
            # state.
            may = self._may_add(trials, step.kind)
            trials, step = trials[may], step.only(may)
            free_s[trials] = self._take(rng.only(may), trials, step, free_s[trials])
        home = self._host[self._every, vm]
        placed = np.flatnonzero(is_vm & (home != NO_HOST))
        self._final_vms[placed, home[placed]] += 1

    def _take(self, rng: KeyedRandom, trials: Array, step: _StepArrays, free_s: Array) -> Array:
        """Add steps after the previous actions of their VMs; return the ends of the steps."""
        has_target = step.target != NO_HOST
        usable_s = self._usable_from_s[trials, step.target]
        free_s = np.where(has_target, np.maximum(free_s, usable_s), free_s)
        changes_host = has_target & (step.target != self._host[trials, step.vm])
        commit_capacity(
            self._hosts,
            self._now,
            trials[changes_host],
            step.vm[changes_host],
            step.target[changes_host],
        )
        ends_s = self._add(rng, trials, step, free_s)
        allocates = step.kind == ALLOCATE
        self._now.consumption[trials[allocates], step.vm[allocates], step.resource[allocates]] = (
            step.amount[allocates]
        )
        changes = ~allocates
        self._state[trials[changes], step.vm[changes]] = _STATE_AFTER[step.kind[changes]]
        # A suspended VM keeps its host: its image is there.
        relocates = changes & (step.kind != SUSPEND)
        self._host[trials[relocates], step.vm[relocates]] = step.target[relocates]
        return ends_s

    def _choose(self, rng: KeyedRandom, trials: Array, vm: Array) -> _StepArrays:
        """Choose an action that is possible in the current state of a VM."""
        state, host = self._state[trials, vm], self._host[trials, vm]
        # All numbers are drawn at once, used or not: a trial must not depend on the others in its
        # batch.
        drawn = rng.numbers(8).T
        end = self._ends.chosen(drawn[0])
        runs, sleeps = state == RUNNING, state == SLEEPING
        targets = self._targets(trials, vm, host)
        busy = targets & (self._busy_s[trials] > 0)
        meets = happens(drawn[7], self._options.meets) & busy.any(axis=1)
        target = one_of(drawn[1], np.where(meets[:, None], busy, targets))
        stays = sleeps & happens(drawn[2], 0.5) & self._may_resume(trials, host)
        target = np.where(stays, host, target)
        # A VM resumes from the image on its host, so that host must be usable too.
        target = np.where(sleeps & (self._usable_from_s[trials, host] < 0), NO_HOST, target)
        has_target = target != NO_HOST
        recreated = happens(drawn[3], 0.5) & self._vms.replaceable[trials, vm]
        # A VM must leave a host that is emptied, so an action is not spent on an allocation.
        allocates = happens(drawn[4], self._allocated) & ~self._emptied[trials, host]
        kind = np.select(
            [
                (end == TERMINATED) & (state != TERMINATED),
                state == INIT,
                (state == READY) & has_target,
                sleeps & has_target,
                runs & (end == READY),
                runs & (end == SLEEPING),
                runs & allocates,
                runs & has_target,
            ],
            [
                KILL,
                FORGE,
                BOOT,
                RESUME,
                SHUTDOWN,
                SUSPEND,
                ALLOCATE,
                np.where(recreated, REINSTANTIATE, MIGRATE),
            ],
            NONE,
        )
        resource = np.where(kind == ALLOCATE, below(drawn[5], len(self._options.resources)), NONE)
        return _StepArrays(
            kind=kind,
            vm=vm,
            source=np.where(_HAS_SOURCE[kind], host, NO_HOST),
            target=np.where(_HAS_TARGET[kind], target, NO_HOST),
            switch=np.full_like(kind, NONE),
            resource=resource,
            amount=self._amount(drawn[6], trials, vm, resource),
        )

    def _amount(self, drawn: Array, trials: Array, vm: Array, resource: Array) -> Array:
        """A new amount of a resource: at most the current one, which fits on the host."""
        if not self._options.resources:
            return np.zeros_like(drawn)
        has = self._now.consumption[trials, vm, resource]
        return np.where(resource == NONE, 0, below(drawn, has + 1))

    def _targets(self, trials: Array, vm: Array, host: Array) -> Array:
        """The other hosts with capacity for a VM."""
        hosts = self._hosts
        targets: Array = hosts.present[trials] & (np.arange(hosts.state.shape[1]) != host[:, None])
        if self._careful:
            targets &= (self._usable_from_s >= 0)[trials] & ~self._emptied[trials]
            targets &= hosts_that_fit(hosts, self._now, trials, vm)
        return targets

    def _may_resume(self, trials: Array, host: Array) -> Array:
        """Whether a sleeping VM may resume on its host: not on an overcommitted one."""
        if not self._careful:
            return np.ones(len(trials), np.bool_)
        may: Array = np.min(self._hosts.free[trials, host], axis=1, initial=0) >= 0
        return may

    # Steps and their times

    def _may_add(self, trials: Array, kind: Array) -> Array:
        """Whether each step is allowed and fits into the length of its plan."""
        may: Array = (self.count < self._total)[trials] & self._kinds[kind]
        return may

    def _add(self, rng: KeyedRandom, trials: Array, step: _StepArrays, from_s: Array) -> Array:
        """Set the times of steps, add them to the plans and return their ends."""
        start = from_s + rng.within(self._options.waits)
        length = np.maximum(1, rng.within(self._options.seconds))
        host = np.where(step.vm == NONE, NO_HOST, self._host[trials, step.vm])
        traffic = self._traffic_of(trials, step)
        if traffic is not None:
            enough = np.maximum(length, traffic.least_s)
            length = np.where(self._is_hurried(rng), length, enough)
        if self._careful:
            self._delay(trials, start, length, (host, step.target), traffic)
        end = start + length
        if self._traffic is not None and traffic is not None:
            self._traffic.add(trials, traffic, start, end)
        fields = (*(getattr(step, name) for name in _StepArrays.__slots__), start, end)
        row = self.count[trials]
        for column, values in zip(self.steps, fields, strict=True):
            column[trials, row] = values
        self.count[trials] += 1
        for at in (host, step.target):
            has_host = at != NO_HOST
            busy = trials[has_host], at[has_host]
            self._busy_s[busy] = np.maximum(self._busy_s[busy], end[has_host])
        return end

    def _traffic_of(self, trials: Array, step: _StepArrays) -> TrafficDemand | None:
        """The traffic of steps; ``None`` without networks."""
        if self._traffic is None:
            return None
        return self._traffic.of_steps(trials, step.kind == MIGRATE, step.source, step.target)

    def _is_hurried(self, rng: KeyedRandom) -> Array:
        """Which steps may end before their copy can."""
        assert self._network is not None
        return rng.happens(0.0 if self._careful else self._network.hurried)

    def _delay(
        self,
        trials: Array,
        start: Array,
        length: Array,
        at: tuple[Array, ...],
        traffic: TrafficDemand | None,
    ) -> None:
        """Delay steps until the limits of the cluster, of their hosts and of links allow them."""
        late = np.arange(len(trials))
        while late.size:
            rows = trials[late]
            steps = self.steps[:, :, : int(self.count[rows].max())]
            # In an unused row start and end are 0, so it never runs.
            running = steps[START, rows] < (start + length)[late, None]
            running &= steps[END, rows] > start[late, None]
            many = running.sum(axis=1)
            is_late = many >= self._limits.actions_total
            # A host cannot have more actions than the whole plan, so only these plans are counted
            # by host.
            crowded = np.flatnonzero(many >= self._limits.actions_per_host)
            for hosts in at:
                host = hosts[late[crowded]]
                touches = np.zeros((len(crowded), steps.shape[2]), np.bool_)
                for column in (SOURCE, TARGET, SWITCH):
                    touches |= steps[column, rows[crowded]] == host[:, None]
                here = (touches & running[crowded]).sum(axis=1)
                is_late[crowded] |= (here >= self._limits.actions_per_host) & (host != NO_HOST)
            if self._traffic is not None and traffic is not None:
                times = start[late], (start + length)[late]
                is_late |= self._traffic.is_overloaded(rows, traffic.only(late), *times)
            late = late[is_late]
            start[late] += 1


def _of_kinds(*kinds: int) -> Array:
    """For each kind of action whether it is one of some kinds; False for no action (-1)."""
    # One entry more than kinds: the index -1 reads the last one.
    is_kind = np.zeros(max(KIND_CODES.values()) + 2, np.bool_)
    is_kind[list(kinds)] = True
    return is_kind


_HAS_SOURCE: Final = _of_kinds(MIGRATE, REINSTANTIATE, SHUTDOWN, SUSPEND, RESUME)
_HAS_TARGET: Final = _of_kinds(MIGRATE, REINSTANTIATE, BOOT, RESUME)
_STATE_AFTER: Final = np.full(max(KIND_CODES.values()) + 2, NONE)
"""The state of a VM after an action of each kind."""
_STATE_AFTER[[FORGE, SHUTDOWN]] = READY
_STATE_AFTER[[BOOT, RESUME, MIGRATE, REINSTANTIATE]] = RUNNING
_STATE_AFTER[SUSPEND] = SLEEPING
_STATE_AFTER[KILL] = TERMINATED


@dataclass(slots=True)
class PlannedClusters(PerTrialArrays):
    """Clusters with plans."""

    keys: Array
    hosts: DrawnHosts
    vms: DrawnVms
    steps: Array
    count: Array
    networks: DrawnNetworks

    def only(self, which: Array) -> PlannedClusters:
        """The clusters of some trials."""
        return PlannedClusters(
            keys=self.keys[which],
            hosts=self.hosts.only(which),
            vms=self.vms.only(which),
            steps=self.steps[which],
            count=self.count[which],
            networks=self.networks.only(which),
        )


def draw_planned_clusters(
    keys: Array, options: TrialOptions, least: Array, limits: ConcurrencyLimits
) -> PlannedClusters:
    """Draw a cluster and a plan for each key, with at least ``least`` hosts and VMs."""
    rng = KeyedRandom(keys)
    hosts = draw_hosts(rng, options, least[:, 0])
    vms = draw_vms(rng, options, hosts, least[:, 1])
    network = options.network
    networks = no_networks(len(keys)) if network is None else draw_networks(rng, network, hosts)
    steps, count = draw_plans(rng, options, hosts, vms, networks, limits)
    return PlannedClusters(keys, hosts, vms, steps, count, networks)
