"""Putting hosts to sleep: each in turn, if all its VMs find another place and it is worth it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from equipoise.balance.levelling.climb import obstacle
from equipoise.balance.levelling.field import FINE, HERE
from equipoise.balance.levelling.reasons import NAMES
from equipoise.balance.mending.fault import listed
from equipoise.balance.mending.mend import mend
from equipoise.balance.rules import Rules, read_rules
from equipoise.balance.wishes import after_moves
from equipoise.model.estimate import Estimates
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.place.water import NOBODY, Ints
from equipoise.power.advice import Code, Going, Sleep, Told
from equipoise.power.brakes import is_automatic, sleepy
from equipoise.power.demand import Span
from equipoise.power.ground import Ground
from equipoise.power.order import sleep_order
from equipoise.power.packing import Packing
from equipoise.power.score import Scores, lowered, raised
from equipoise.power.worth import Shortage, Worth, shortage, wanted_times, worth
from equipoise.spec.rules import broken_rules

LEAST_URGENT = 5


class Sleeping:
    """Goes through the hosts, and puts those to sleep in mind that are not needed."""

    def __init__(self, ground: Ground, estimates: Estimates) -> None:
        self._ground, self._estimates = ground, estimates
        self._rules: Rules = read_rules(ground.snapshot)
        self._moves: dict[VmId, HostId] = dict(ground.moves)
        self._asleep: list[HostId] = []
        self._takers: set[int] = set()
        self._left: list[tuple[int, int]] = []
        """The units that leave, each with the host it leaves."""
        self._broken = self._breaks(ground.snapshot)
        self._faults: int | None = None
        self.told: list[Told] = []
        self.sleeps: list[Sleep] = []

    def run(self) -> None:
        """Fill ``sleeps`` and ``told``."""
        ground = self._ground
        may, self.told = sleepy(ground)
        order = sleep_order(ground, may)
        others = self._others(order)
        scores = ground.scores()
        on = self._count_on()
        for place, host in enumerate(order):
            against = self._general(scores, on)
            if against is not None:
                self.told += [Told(one, *against) for one in order[place:]]
                break
            told = self._try(host, others, scores)
            if told is None:
                scores, on = ground.scores(), on - 1
            else:
                self.told.append(told)
        self._even_out()

    def _even_out(self) -> None:
        """Spread those who leave over all that stay on, if they all fit that way too.

        While hosts are chosen, others are filled up, so that as many as possible become empty. Once
        it is known who stays, nobody needs to be full while others are not.
        """
        ground, field = self._ground, self._ground.state.field
        if not self._left:
            return
        units, homes = (np.array(one, dtype=np.int64) for one in zip(*self._left, strict=True))
        packed = field.home[units].copy()
        ground.put_back(units, homes)
        size = ground.asked.units[:, units].max(axis=0) / field.capacity[packed, :2]
        order = np.argsort(-size.max(axis=1), kind="stable")
        found = ground.spread(units[order])
        target = dict(zip(found.units.tolist(), found.target.tolist(), strict=True))
        sleeps = [self._retargeted(one, target) for one in self.sleeps]
        if NOBODY in found.target or not self._allowed(sleeps):
            ground.put_back(units, packed)
            return
        self.sleeps = sleeps

    def _retargeted(self, sleep: Sleep, target: dict[int, int]) -> Sleep:
        members, hosts = self._ground.state.members, self._ground.state.host_ids
        where = {
            vm: hosts[target[unit]]
            for unit, home in self._left
            if home == self._ground.row[sleep.host] and target[unit] != NOBODY
            for vm in members[unit]
        }
        return replace(
            sleep, going=tuple(Going(one.vm, where.get(one.vm, one.target)) for one in sleep.going)
        )

    def _allowed(self, sleeps: Sequence[Sleep]) -> bool:
        """Whether the rules that the arrays do not know are kept with these moves too."""
        if not sleeps:
            return True
        *_, last = sleeps
        going = [one for sleep in sleeps for one in sleep.going]
        return self._forbidden(last.host, going) is None

    def _others(self, order: Sequence[HostId]) -> Ints:
        """Who takes the VMs of others: first who stays on anyway, then who would sleep last."""
        ground = self._ground
        may = {ground.row[host] for host in order}
        staying = np.array([row for row in ground.rows.tolist() if row not in may], dtype=np.int64)
        used = np.zeros(len(ground.on))
        used[ground.rows] = ground.used(Span.OFF).max(axis=1)
        staying = staying[np.argsort(-used[staying], kind="stable")]
        last_first = [ground.row[host] for host in reversed(order)]
        return np.array([*staying.tolist(), *last_first], dtype=np.int64)

    def _count_on(self) -> int:
        hosts = self._ground.snapshot.hosts.values()
        on = sum(host.state is HostState.ON and host.requested is None for host in hosts)
        return on + len(self._ground.waking)

    def _general(self, scores: Scores, on: int) -> tuple[Code, str] | None:
        """What keeps all that are left from being put to sleep."""
        policy = self._ground.policy
        if on <= policy.hosts_on_min:
            return Code.MINIMUM, f"at least {_counted(policy.hosts_on_min, 'host')} must be on"
        if scores.is_high:
            return Code.BUSY, f"hosts use more than {policy.high:.0%} of what they have"
        if not scores.is_low:
            which = "CPU" if scores.low[0] <= scores.low[1] else "memory"
            return Code.NOT_LOW, f"every host uses {policy.low:.0%} or more of its {which}"
        return None

    def _try(self, host: HostId, others: Ints, before: Scores) -> Told | None:
        """Put one host to sleep in mind, or say why not."""
        ground, row = self._ground, self._ground.row[host]
        units = ground.units_on(row)
        if row in self._takers:
            return Told(host, Code.IN_USE, "it takes the VMs of others that go to sleep")
        count = sum(len(one.going) for one in self.sleeps)
        members = sum(len(ground.state.members[unit]) for unit in units.tolist())
        if count and count + members > ground.policy.moves_per_pass:
            detail = f"{ground.policy.moves_per_pass} moves are enough for one pass"
            return Told(host, Code.LATER, detail)
        short = shortage(ground)
        packing = ground.empty(row, units, others)
        told = self._stays(host, packing)
        if told is None:
            ground.close(row)
            told = self._judged(host, packing, before, short)
            if told is not None:
                ground.open(row)
        if told is not None:
            ground.put_back(units, np.full(len(units), row))
            return told
        ground.settle(units)
        self._left += [(unit, row) for unit in units.tolist()]
        self._takers.update(packing.target.tolist())
        return None

    def _stays(self, host: HostId, packing: Packing) -> Told | None:
        """Who finds no other place."""
        nowhere = np.nonzero(packing.target == NOBODY)[0]
        if not len(nowhere):
            return None
        unit = int(packing.units[nowhere[0]])
        names = listed(self._ground.state.members[unit])
        return Told(host, Code.NO_ROOM, f"{names} fits nowhere else: {self._obstacles(unit)}")

    def _obstacles(self, unit: int) -> str:
        """What keeps a unit from each other host, those with the same reason together."""
        ground = self._ground
        full = f"it would use more than {ground.policy.high:.0%} of its CPU or memory"
        found: dict[str, list[HostId]] = defaultdict(list)
        for row in ground.rows.tolist():
            code = obstacle(ground.state.field, unit, row)
            if code != HERE:
                why = full if code == FINE else NAMES[code][1]
                found[why].append(ground.state.host_ids[row])
        said = (f"{listed(hosts)}: {why}" for why, hosts in found.items())
        return "; ".join(said) or "no other host is on"

    def _judged(
        self, host: HostId, packing: Packing, before: Scores, short: Shortage
    ) -> Told | None:
        ground = self._ground
        after = ground.scores()
        if raised(before.high, after.high):
            return Told(host, Code.BUSY, "others would have too much to do without it")
        if not lowered(before.low, after.low):
            return Told(host, Code.USELESS, "hosts with little to do would be as many without it")
        found = worth(ground, self._estimates, ground.row[host], packing.units, short)
        priority = self._priority(found)
        if priority is None:
            return Told(host, Code.NOT_WORTH_IT, self._not_worth(found))
        moves = self._going(packing)
        told = self._forbidden(host, moves)
        if told is None:
            self._accept(host, moves, found, priority)
        return told

    def _priority(self, found: Worth) -> int | None:
        policy = self._ground.policy
        levels = range(2, policy.threshold + 1)
        return next((one for one in levels if found.times >= wanted_times(policy, one)), None)

    def _not_worth(self, found: Worth) -> str:
        wanted = wanted_times(self._ground.policy, self._ground.policy.threshold)
        said = f"it would be worth {found.times:.0f} times its cost, and {wanted:g} times is wanted"
        if max(found.short) > 0:
            said += "; at the worst of the last hour it would be missed"
        return said

    def _going(self, packing: Packing) -> list[Going]:
        state = self._ground.state
        pairs = zip(packing.units.tolist(), packing.target.tolist(), strict=True)
        return [
            Going(vm, state.host_ids[target])
            for unit, target in pairs
            for vm in state.members[unit]
        ]

    def _forbidden(self, host: HostId, moves: list[Going]) -> Told | None:
        """Which rule is against it that the arrays do not know."""
        if not (self._rules.others or self._rules.failures):
            return None
        after = self._after(host, moves)
        for rule, why in self._breaks(after).items():
            if rule not in self._broken:
                return Told(host, Code.RULE, f"rule {rule} would be broken: {why}")
        if self._rules.failures:
            if self._faults is None:
                self._faults = self._count_faults(self._ground.snapshot)
            if self._count_faults(after) > self._faults:
                detail = "what may be lost with other hosts could not start again without it"
                return Told(host, Code.RULE, detail)
        return None

    def _count_faults(self, snapshot: Snapshot) -> int:
        found = mend(snapshot, self._rules, self._estimates)
        return len(found.faults) + len(found.moves)

    def _breaks(self, snapshot: Snapshot) -> dict[RuleId, str]:
        rules = self._rules
        ids = (*rules.others, *(rule for rule, _ in rules.failures))
        return dict(broken_rules(snapshot, ids)) if ids else {}

    def _after(self, host: HostId, moves: list[Going]) -> Snapshot:
        """The cluster once all of it is done."""
        snapshot = self._ground.snapshot
        going = {**self._moves, **{one.vm: one.target for one in moves}}
        asleep = {*self._asleep, host}
        hosts = {
            one.id: one.but(state=HostState.STANDBY) if one.id in asleep else one
            for one in snapshot.hosts.values()
        }
        moved = after_moves(snapshot, going.items())
        return replace(moved, hosts=FrozenMap(hosts))

    def _accept(self, host: HostId, moves: list[Going], found: Worth, priority: int) -> None:
        ground = self._ground
        power = ground.snapshot.hosts[host].power
        watts = power.curve[0] - power.standby_watts
        used = ground.used(Span.OFF).max(axis=0, initial=0.0)
        said = f"its {_counted(len(moves), 'VM')} can be elsewhere" if moves else "it is empty"
        self.sleeps.append(
            Sleep(
                host=host,
                going=tuple(moves),
                priority=priority,
                reason=(
                    f"{said}; no other host then uses more than {used[0]:.0%} of its CPU or "
                    f"{used[1]:.0%} of its memory; some {watts} W saved"
                ),
                gain={
                    "watts": float(watts),
                    "cpu_mhz_s": found.benefit[0],
                    "memory_mib_s": found.benefit[1],
                    "times": found.times,
                },
                cost={"cpu_mhz_s": found.cost[0], "memory_mib_s": found.cost[1]},
                automatic=is_automatic(ground.policy, host, ground.snapshot.at_ms),
            )
        )
        self._asleep.append(host)
        self._moves |= {one.vm: one.target for one in moves}


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
