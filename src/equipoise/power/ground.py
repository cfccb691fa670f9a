"""The ground: a cluster as balancing leaves it, in arrays, on which hosts are switched in mind."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from equipoise.balance.advice import Advice, Switch
from equipoise.balance.advise import left_or_made
from equipoise.balance.levelling.assess import Assessment, assess
from equipoise.balance.rules import read_rules
from equipoise.balance.stuck import Stuck, stuck_vms
from equipoise.balance.wishes import after_moves
from equipoise.model.action import PowerOn
from equipoise.model.estimate import Estimates
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.place.water import Floats, Ints
from equipoise.power.demand import Span, asked, expected
from equipoise.power.packing import KERNELS, Packing
from equipoise.power.score import Scores, scores

Move = tuple[VmId, HostId]


class Ground:
    """Units and hosts, and which hosts are on in mind."""

    def __init__(
        self,
        snapshot: Snapshot,
        state: Assessment,
        done: Advice | None = None,
        ahead: Floats | None = None,
    ) -> None:
        self.snapshot, self.state = snapshot, state
        moves = () if done is None else done.moves
        self.moves: tuple[Move, ...] = tuple((one.vm, one.target) for one in moves)
        """What balancing moves in this pass, ..."""
        self.switches: tuple[Switch, ...] = () if done is None else done.switches
        """... which hosts it switches that an operator wants so, ..."""
        self.mends: tuple[RuleId, ...] = () if done is None else done.mends
        """... and which broken rules it mends."""
        self.policy = snapshot.settings.power
        self.faults = None if done is None else [one.detail for one in done.faults]
        """What stays wrong whatever moves, if anybody has looked."""
        self.row = {host: row for row, host in enumerate(self.state.host_ids)}
        self.asked = asked(self.state, self.policy, snapshot.at_ms, ahead)
        self._kernels = KERNELS.at(fast=self.state.fast)
        self.stuck: dict[VmId, Stuck] = stuck_vms(snapshot)
        self.waking = _waking(snapshot)
        closed = snapshot.settings.balance.hosts
        self._welcoming = [int(host not in closed) for host in self.state.host_ids]
        self.closed: set[HostId] = set()
        """The hosts that were put to sleep in mind."""
        self.on = np.zeros(len(self.state.host_ids), dtype=bool)
        self.on[self.state.hosts] = True
        for host in self.waking:
            self.open(self.row[host])
        self._by_host = self._residents()
        self._movable = np.zeros(len(self.state.members), dtype=bool)
        for some in self._by_host:
            for unit in some:
                self._movable[unit] = self.stuck.keys().isdisjoint(self.state.members[unit])

    @property
    def count_on(self) -> int:
        """How many hosts are on in the world, or about to be, and not on their way out of it."""
        hosts = self.snapshot.hosts.values()
        on = sum(host.state is HostState.ON and host.requested is None for host in hosts)
        return on + len(self.waking)

    @property
    def rows(self) -> Ints:
        """The hosts that are on in mind and take part."""
        return np.nonzero(self.on)[0]

    def open(self, row: int) -> None:
        """Let a host be on."""
        self.on[row] = True
        self.state.field.open[row] = self._welcoming[row]
        self.closed.discard(self.state.host_ids[row])

    def close(self, row: int) -> None:
        """Let a host be asleep."""
        self.on[row] = False
        self.state.field.open[row] = 0
        self.closed.add(self.state.host_ids[row])

    def units_on(self, row: int) -> Ints:
        """The units on a host, those that need most first, without what sleeps with it."""
        field = self.state.field
        some = np.array(
            [unit for unit in self._by_host[row] if field.home[unit] == row], dtype=np.int64
        )
        return some[np.argsort(-self._size(some, row), kind="stable")]

    def used(self, span: Span) -> Floats:
        """What part of each host that is on is expected to be needed by a span, or by forecast."""
        need = np.maximum(expected(self.asked, span), expected(self.asked, Span.AHEAD))
        found: Floats = (need / self.state.field.capacity[:, :2])[self.on]
        return found

    def scores(self) -> Scores:
        """How far hosts are from what they should use."""
        policy = self.policy
        return scores(self.used(Span.ON), self.used(Span.OFF), policy.high, policy.low)

    def short(self, span: Span) -> Floats:
        """How much of CPU and memory hosts that are on would lack by a span."""
        over = expected(self.asked, span) - self.state.field.capacity[:, :2]
        found: Floats = np.maximum(0.0, over)[self.on].sum(axis=0)
        return found

    def empty(self, row: int, units: Ints, others: Ints) -> Packing:
        """Let units go from a host to the first of others that bears them; see ``target``."""
        others = others[self.on[others] & (others != row)]
        packing = self._packing(units, others, self._lasting())
        self._kernels.pack(self.state.field, self.asked, packing)
        return packing

    def spread(self, units: Ints) -> Packing:
        """Let units go to hosts that are on, each to the one that is then the least full."""
        packing = self._packing(units, self.rows, self._lasting())
        self._kernels.spread(self.state.field, self.asked, packing)
        return packing

    def relieve(self, helpers: Ints) -> Packing:
        """Let units of hosts that have too much to do come to others; see ``target``."""
        spans = [Span.ON, Span.AHEAD][: len(self.asked.deviations) - 2]
        packing = self._packing(self._burdens(), helpers, spans)
        self._kernels.relieve(self.state.field, self.asked, packing)
        return packing

    def _burdens(self) -> Ints:
        """The units that can leave hosts that have too much to do: the busiest host first, and of
        each the largest unit."""
        home, excess = self.state.field.home, np.zeros(len(self.on))
        excess[self.on] = self.used(Span.ON).max(axis=1) - self.policy.high
        units = np.nonzero((excess[home] > 0) & self._movable)[0]
        span = slice(self.asked.first[Span.ON], self.asked.first[Span.ON + 1])
        need = self.asked.units[span][:, units].mean(axis=0)
        size = (need * self.state.field.inverse[home[units], :2]).max(axis=1)
        return units[np.lexsort((-size, home[units], -excess[home[units]]))]

    def send(self, units: Ints, homes: Ints) -> None:
        """Let units be on other hosts."""
        self.put_back(units, homes)
        self.settle(units)

    def put_back(self, units: Ints, homes: Ints) -> None:
        """Let units be where they were."""
        self._kernels.unpack(self.state.field, self.asked, units, homes)

    def settle(self, units: Ints) -> None:
        """Note where units are now."""
        for unit in units.tolist():
            self._by_host[int(self.state.field.home[unit])].setdefault(unit)

    @contextmanager
    def what_if(self) -> Iterator[None]:
        """Whatever is tried within is undone in the end."""
        home, on = self.state.field.home.copy(), self.on.copy()
        yield
        units = np.nonzero(self.state.field.home != home)[0]
        self.put_back(units, home[units])
        for row in np.nonzero(on != self.on)[0].tolist():
            self.open(row) if on[row] else self.close(row)

    def blocker(self, unit: int) -> tuple[VmId, Stuck] | None:
        """Who keeps a unit from being moved, and why."""
        for vm in self.state.members[unit]:
            if vm in self.stuck:
                return vm, self.stuck[vm]
        return None

    def _lasting(self) -> list[Span]:
        """The spans by which hosts must bear what comes to stay."""
        return [Span.OFF, Span.ON, Span.AHEAD][: len(self.asked.deviations) - 1]

    def _packing(self, units: Ints, hosts: Ints, spans: Sequence[Span]) -> Packing:
        return Packing(
            units=units,
            hosts=hosts,
            part=self.policy.high,
            spans=np.array(spans, dtype=np.int64),
            target=np.full(len(units), -1, dtype=np.int64),
        )

    def _size(self, units: Ints, row: int) -> Floats:
        """What units need of a host, of CPU or memory, whichever is more."""
        off = slice(self.asked.first[Span.OFF], self.asked.first[Span.ON])
        need = self.asked.units[off][:, units].mean(axis=0)
        found: Floats = (need / self.state.field.capacity[row, :2]).max(axis=1)
        return found

    def _residents(self) -> list[dict[int, None]]:
        """The units on each host; agents sleep and wake with theirs."""
        found: list[dict[int, None]] = [{} for _ in self.state.host_ids]
        agents = {vm.id for vm in self.snapshot.vms.values() if vm.agent}
        members = len(self.state.members) - len(self.state.guests)
        for unit, home in enumerate(self.state.field.home[:members].tolist()):
            if not agents.issuperset(self.state.members[unit]):
                found[home][unit] = None
        return found


def ground_of(
    snapshot: Snapshot, estimates: Estimates, *, seed: int, balanced: bool, ahead: Floats | None
) -> Ground:
    """The ground after what balancing does by itself, if somebody balances."""
    if balanced:
        done = left_or_made(snapshot, estimates, seed=seed)
        made = _made(done.advice)
        if len(made.moves) == len(done.advice.moves):
            return Ground(snapshot, done.state, made, ahead)
        # Of what has to be approved, nobody knows what will be.
        moved = after_moves(snapshot, ((one.vm, one.target) for one in made.moves))
        return Ground(snapshot, assess(moved, read_rules(snapshot), estimates), made, ahead)
    return Ground(snapshot, assess(snapshot, read_rules(snapshot), estimates), None, ahead)


def _made(advice: Advice) -> Advice:
    """What of an advice is done without asking: nobody waits for what has to be approved."""
    moves = [one for one in advice.moves if one.automatic]
    done = {one.vm for one in moves}
    while not all(done.issuperset(one.after) for one in moves):
        moves = [one for one in moves if done.issuperset(one.after)]
        done = {one.vm for one in moves}
    switches = [one for one in advice.switches if one.automatic and done.issuperset(one.after)]
    return replace(advice, moves=tuple(moves), switches=tuple(switches))


def _waking(snapshot: Snapshot) -> Collection[HostId]:
    """Hosts that are being woken."""
    steps = (running.step.action for running in snapshot.in_flight.values())
    asleep = {host.id for host in snapshot.hosts.values() if host.state is HostState.STANDBY}
    return [one.host for one in steps if isinstance(one, PowerOn) and one.host in asleep]
