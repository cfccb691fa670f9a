"""Plans by chance that machines can carry out, and that often do several things at once.

A VM does one thing after the other. A host that wakes is used once it is awake; one that is to
sleep is left by everybody first. Whoever comes to a host finds room for all who are ever on it.
Who migrates over a network waits for those who share a part of its way that does not carry both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.fuzz.generate.draw.chance import Chance, Weighed, below, happens, one_of
from equipoise.fuzz.generate.draw.cluster import Hosts, Some, Vms, fitting, settle
from equipoise.fuzz.generate.draw.network import Networks
from equipoise.fuzz.generate.draw.numbers import (
    ALLOCATE,
    BOOT,
    END,
    ENTER,
    FORGE,
    INIT,
    KILL,
    LEAVE,
    MIGRATE,
    NONE,
    NOWHERE,
    ON,
    POWER_OFF,
    POWER_ON,
    READY,
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
from equipoise.fuzz.generate.draw.numbers import (
    REINSTANTIATE as ANEW,
)
from equipoise.fuzz.generate.draw.traffic import Going, Traffic
from equipoise.fuzz.generate.options import Options, Plans
from equipoise.model.plan import Limits
from equipoise.spec.batch.cases import KIND_CODES, VM_CODES, Array

ACTIONS_MAX: Final = 1 << 16
"""More than a VM ever has."""
_SERVICED: Final = 0.3
"""How many of the hosts that everybody leaves are taken out of service instead of put to sleep."""


def draw_plans(
    chance: Chance, options: Options, hosts: Hosts, vms: Vms, networks: Networks, limits: Limits
) -> tuple[Array, Array]:
    """Draw some steps for each cluster, and how many."""
    drawer = _Drawer(chance, options, hosts, vms, networks, limits)
    for host in range(hosts.state.shape[1]):
        drawer.wake(host)
    order = np.argsort(np.where(vms.there, chance.numbers(vms.state.shape[1]), 1 << 40), axis=1)
    for place in range(vms.state.shape[1]):
        drawer.move(place, order[:, place])
    for host in range(hosts.state.shape[1]):
        drawer.put_to_sleep(host)
    return np.ascontiguousarray(np.moveaxis(drawer.steps, 0, 2)), drawer.count


def steps_max(options: Options) -> int:
    """How many steps a plan may have."""
    most = options.vms[1] * options.actions[1] + options.hosts[1]
    return most if options.total is None else min(most, options.total[1])


@dataclass(slots=True)
class _Step(Some):
    """One step for each trial; what does not apply is -1."""

    kind: Array
    vm: Array
    source: Array
    target: Array
    switch: Array
    resource: Array
    amount: Array


class _Drawer:
    def __init__(
        self,
        chance: Chance,
        options: Options,
        hosts: Hosts,
        vms: Vms,
        networks: Networks,
        limits: Limits,
    ) -> None:
        self._chance, self._options, self._limits = chance, options, limits
        self._hosts, self._vms = hosts, vms
        self._careful = options.plans is Plans.CAREFUL
        trials = len(hosts.count)
        self._every = np.arange(trials)
        most = max(1, steps_max(options))
        self.steps = np.zeros((9, trials, most), np.int64)
        """The columns of all steps, each by (trial, step)."""
        self.count = np.zeros(trials, np.int64)
        self._total = chance.within(options.total or (most, most))
        is_on = (hosts.state == ON) & hosts.there
        self._awake_s = np.where(is_on, 0, -1)
        """From when on each host may be used; -1 if never."""
        self._busy_s = np.zeros_like(hosts.state)
        """Until when something happens at each host."""
        self._leaving = chance.happens(options.switched, hosts.state.shape[1]) & is_on
        self._homes = np.zeros_like(hosts.state)
        """How many VMs each host has in the end."""
        self._state, self._host = vms.state.copy(), vms.host.copy()
        self._now = Vms(**{name: getattr(vms, name) for name in Vms.__slots__})
        self._now.consumption = vms.consumption.copy()
        self._kinds = _of_kinds(*(KIND_CODES[kind.value] for kind in options.kinds))
        self._ends = Weighed(options.end_states, VM_CODES)
        self._allocated = options.allocated if options.resources else 0.0
        self._wires = options.network
        width = hosts.state.shape[1]
        self._traffic = None if self._wires is None else Traffic(networks, width, most)

    # Hosts

    def wake(self, host: int) -> None:
        """Let a host that cannot be used be used, now and then."""
        state = self._hosts.state[:, host]
        kind = np.where(state == STANDBY, POWER_ON, LEAVE)
        asked = self._chance.happens(self._options.switched) & (state != ON)
        trials, ends_s = self._switch(asked & self._hosts.there[:, host], kind, host)
        self._awake_s[trials, host] = ends_s

    def put_to_sleep(self, host: int) -> None:
        """Switch off a host that everybody has left, or take it out of service."""
        kind = np.where(self._chance.happens(_SERVICED), ENTER, POWER_OFF)
        self._switch(self._leaving[:, host] & (self._homes[:, host] == 0), kind, host)

    def _switch(self, asked: Array, kind: Array, host: int) -> tuple[Array, Array]:
        """Switch a host where it was asked for, once nothing happens there; where, and when."""
        trials = np.flatnonzero(asked & self._may_add(self._every, kind))
        kind, none = kind[trials], np.full(len(trials), NONE)
        step = _Step(kind, none, none, none, np.full_like(kind, host), none, np.zeros_like(kind))
        chance = self._chance.about(-1 - host, trials)
        return trials, self._add(chance, trials, step, self._busy_s[trials, host])

    # VMs

    def move(self, place: int, vm: Array) -> None:
        """Let something happen to one VM of each cluster, or nothing; agents are left alone."""
        mine = (place < self._vms.count) & ~self._vms.agent[self._every, vm]
        actions = np.where(mine, self._chance.within(self._options.actions), 0)
        free_s = np.zeros_like(self.count)
        trials = self._every
        for number in range(self._options.actions[1]):
            trials = trials[number < actions[trials]]
            chance = self._chance.about(place * ACTIONS_MAX + number, trials)
            step = self._choose(chance, trials, vm[trials])
            may = self._may_add(trials, step.kind)
            trials, step = trials[may], step.only(may)
            free_s[trials] = self._take(chance.only(may), trials, step, free_s[trials])
        home = self._host[self._every, vm]
        lives = np.flatnonzero(mine & (home != NOWHERE))
        self._homes[lives, home[lives]] += 1

    def _take(self, chance: Chance, trials: Array, step: _Step, free_s: Array) -> Array:
        """Let steps happen once their VMs are free; when these are free again."""
        comes = step.target != NOWHERE
        awake_s = self._awake_s[trials, step.target]
        free_s = np.where(comes, np.maximum(free_s, awake_s), free_s)
        anew = comes & (step.target != self._host[trials, step.vm])
        settle(self._hosts, self._now, trials[anew], step.vm[anew], step.target[anew])
        ends_s = self._add(chance, trials, step, free_s)
        gets = step.kind == ALLOCATE
        self._now.consumption[trials[gets], step.vm[gets], step.resource[gets]] = step.amount[gets]
        changes = ~gets
        self._state[trials[changes], step.vm[changes]] = _AFTER[step.kind[changes]]
        goes = changes & (step.kind != SUSPEND)
        self._host[trials[goes], step.vm[goes]] = step.target[goes]
        return ends_s

    def _choose(self, chance: Chance, trials: Array, vm: Array) -> _Step:
        """Choose something that can be done to a VM in the state it is in."""
        state, host = self._state[trials, vm], self._host[trials, vm]
        drawn = chance.numbers(8).T
        end = self._ends.chosen(drawn[0])
        runs, sleeps = state == RUNNING, state == SLEEPING
        targets = self._targets(trials, vm, host)
        busy = targets & (self._busy_s[trials] > 0)
        meets = happens(drawn[7], self._options.meets) & busy.any(axis=1)
        target = one_of(drawn[1], np.where(meets[:, None], busy, targets))
        stays = sleeps & happens(drawn[2], 0.5) & self._may_wake(trials, host)
        target = np.where(stays, host, target)
        target = np.where(sleeps & (self._awake_s[trials, host] < 0), NOWHERE, target)
        somewhere = target != NOWHERE
        anew = happens(drawn[3], 0.5) & self._vms.replaceable[trials, vm]
        gets = happens(drawn[4], self._allocated) & ~self._leaving[trials, host]
        kind = np.select(
            [
                (end == TERMINATED) & (state != TERMINATED),
                state == INIT,
                (state == READY) & somewhere,
                sleeps & somewhere,
                runs & (end == READY),
                runs & (end == SLEEPING),
                runs & gets,
                runs & somewhere,
            ],
            [KILL, FORGE, BOOT, RESUME, SHUTDOWN, SUSPEND, ALLOCATE, np.where(anew, ANEW, MIGRATE)],
            NONE,
        )
        resource = np.where(kind == ALLOCATE, below(drawn[5], len(self._options.resources)), NONE)
        return _Step(
            kind=kind,
            vm=vm,
            source=np.where(_HAS_SOURCE[kind], host, NOWHERE),
            target=np.where(_HAS_TARGET[kind], target, NOWHERE),
            switch=np.full_like(kind, NONE),
            resource=resource,
            amount=self._amount(drawn[6], trials, vm, resource),
        )

    def _amount(self, drawn: Array, trials: Array, vm: Array, resource: Array) -> Array:
        """Another amount of something: as much as it has at the most, which is there."""
        if not self._options.resources:
            return np.zeros_like(drawn)
        has = self._now.consumption[trials, vm, resource]
        return np.where(resource == NONE, 0, below(drawn, has + 1))

    def _targets(self, trials: Array, vm: Array, host: Array) -> Array:
        """The hosts with room, other than its own."""
        hosts = self._hosts
        found: Array = hosts.there[trials] & (np.arange(hosts.state.shape[1]) != host[:, None])
        if self._careful:
            found &= (self._awake_s >= 0)[trials] & ~self._leaving[trials]
            found &= fitting(hosts, self._now, trials, vm)
        return found

    def _may_wake(self, trials: Array, host: Array) -> Array:
        """Whether who sleeps on a host may go on there: it has its room, but on an overfull one."""
        if not self._careful:
            return np.ones(len(trials), np.bool_)
        found: Array = np.min(self._hosts.room[trials, host], axis=1, initial=0) >= 0
        return found

    # Steps and their times

    def _may_add(self, trials: Array, kind: Array) -> Array:
        """Which steps may be part of their plans."""
        found: Array = (self.count < self._total)[trials] & self._kinds[kind]
        return found

    def _add(self, chance: Chance, trials: Array, step: _Step, from_s: Array) -> Array:
        """Give steps their times, add them to the plans, and say when they end."""
        start = from_s + chance.within(self._options.waits)
        length = np.maximum(1, chance.within(self._options.seconds))
        host = np.where(step.vm == NONE, NOWHERE, self._host[trials, step.vm])
        going = self._going(trials, step)
        if going is not None:
            enough = np.maximum(length, going.least_s)
            length = np.where(self._is_hurried(chance), length, enough)
        if self._careful:
            self._put_off(trials, start, length, (host, step.target), going)
        end = start + length
        if self._traffic is not None and going is not None:
            self._traffic.add(trials, going, start, end)
        fields = (*(getattr(step, name) for name in _Step.__slots__), start, end)
        place = self.count[trials]
        for column, values in zip(self.steps, fields, strict=True):
            column[trials, place] = values
        self.count[trials] += 1
        for at in (host, step.target):
            somewhere = at != NOWHERE
            busy = trials[somewhere], at[somewhere]
            self._busy_s[busy] = np.maximum(self._busy_s[busy], end[somewhere])
        return end

    def _going(self, trials: Array, step: _Step) -> Going | None:
        """What steps take of networks, if there are any."""
        if self._traffic is None:
            return None
        return self._traffic.going(trials, step.kind == MIGRATE, step.source, step.target)

    def _is_hurried(self, chance: Chance) -> Array:
        """Which steps may end before all is copied."""
        assert self._wires is not None
        return chance.happens(0.0 if self._careful else self._wires.hurried)

    def _put_off(
        self,
        trials: Array,
        start: Array,
        length: Array,
        at: tuple[Array, ...],
        going: Going | None,
    ) -> None:
        """Put steps off as long as too much is going on: anywhere, at their hosts, on their way."""
        late = np.arange(len(trials))
        while late.size:
            rows = trials[late]
            steps = self.steps[:, :, : int(self.count[rows].max())]
            # A row that is not used yet has ended before it began.
            going_on = steps[START, rows] < (start + length)[late, None]
            going_on &= steps[END, rows] > start[late, None]
            many = going_on.sum(axis=1)
            is_late = many >= self._limits.actions_total
            crowded = np.flatnonzero(many >= self._limits.actions_per_host)
            for hosts in at:
                host = hosts[late[crowded]]
                touches = np.zeros((len(crowded), steps.shape[2]), np.bool_)
                for column in (SOURCE, TARGET, SWITCH):
                    touches |= steps[column, rows[crowded]] == host[:, None]
                here = (touches & going_on[crowded]).sum(axis=1)
                is_late[crowded] |= (here >= self._limits.actions_per_host) & (host != NOWHERE)
            if self._traffic is not None and going is not None:
                times = start[late], (start + length)[late]
                is_late |= self._traffic.is_too_much(rows, going.only(late), *times)
            late = late[is_late]
            start[late] += 1


def _of_kinds(*kinds: int) -> Array:
    """For each kind of action whether it is one of these; none is none of them."""
    found = np.zeros(max(KIND_CODES.values()) + 2, np.bool_)
    found[list(kinds)] = True
    return found


_HAS_SOURCE: Final = _of_kinds(MIGRATE, ANEW, SHUTDOWN, SUSPEND, RESUME)
_HAS_TARGET: Final = _of_kinds(MIGRATE, ANEW, BOOT, RESUME)
_AFTER: Final = np.full(max(KIND_CODES.values()) + 2, NONE)
"""The state of a VM after an action of each kind."""
_AFTER[[FORGE, SHUTDOWN]] = READY
_AFTER[[BOOT, RESUME, MIGRATE, ANEW]] = RUNNING
_AFTER[SUSPEND] = SLEEPING
_AFTER[KILL] = TERMINATED
