"""Putting hosts to sleep: each in turn, if all its VMs find another place and it is worth it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from equipoise.balance.advice import MANDATORY
from equipoise.balance.levelling.climb import obstacle
from equipoise.balance.levelling.field import FINE, HERE
from equipoise.balance.levelling.reasons import NAMES
from equipoise.balance.mending.fault import listed
from equipoise.model.estimate import Estimates
from equipoise.model.quantity import HostId, VmId
from equipoise.model.words import counted
from equipoise.place.water import NOBODY, Ints
from equipoise.power.advice import Code, Going, Sleep, Told
from equipoise.power.aftermath import Aftermath
from equipoise.power.brakes import is_automatic, over_cap, sleepy
from equipoise.power.demand import Span
from equipoise.power.ground import Ground
from equipoise.power.order import sleep_order
from equipoise.power.packing import Packing
from equipoise.power.score import Scores, lowered, raised
from equipoise.power.worth import Shortage, Worth, shortage, wanted_times, worth


class _Chosen(NamedTuple):
    """A host that sleeps in mind."""

    host: HostId
    units: Ints
    """Those who leave it."""
    worth: Worth
    priority: int
    told: int
    """How much had been told before."""


class _Mark(NamedTuple):
    """How far everything is known to be right."""

    place: int
    chosen: int
    told: int


class Sleeping:
    """Goes through the hosts, and puts those to sleep in mind that are not needed."""

    def __init__(self, ground: Ground, estimates: Estimates) -> None:
        self._ground, self._estimates = ground, estimates
        self._aftermath = Aftermath(ground.snapshot, estimates, ground.switches)
        self._chosen: list[_Chosen] = []
        self._scores: Scores = ground.scores()
        self._capped = False
        """Whether the cluster may draw too much, whatever the load."""
        self.told: list[Told] = []
        self.sleeps: tuple[Sleep, ...] = ()

    def run(self) -> None:
        """Fill ``sleeps`` and ``told``.

        Judging the aftermath is slow, so it is judged after one host, then after two more, then
        four, and so on. If it is not right, all goes back to where it was, one by one from there.
        """
        may, self.told = sleepy(self._ground)
        order = sleep_order(self._ground, may)
        others = self._others(order)
        place, stride, good = 0, 1, _Mark(0, 0, len(self.told))
        while True:
            against = self._general() if place < len(order) else None
            over = place == len(order) or against is not None
            new = len(self._chosen) - good.chosen
            if new and (over or new >= stride):
                why = self._aftermath.why_not(self._moves(), self._asleep())
                if not why:
                    stride, good = 2 * stride, _Mark(place, len(self._chosen), len(self.told))
                else:
                    place, stride = self._go_back(good, order, why if new == 1 else ""), 1
                    good = _Mark(place, good.chosen, len(self.told))
                continue
            if against is not None:
                self.told += [Told(one, *against) for one in order[place:]]
            if over:
                break
            told = self._try(order[place], others)
            place += 1
            if told is not None:
                self.told.append(told)
        self._even_out()
        self.sleeps = tuple(map(self._sleep, self._chosen))

    def _go_back(self, good: _Mark, order: Sequence[HostId], why: str) -> int:
        """Go back to where all was right, or behind the one host that is wrong, and say why; those
        that were tried after it are tried again."""
        wrong = self._chosen[good.chosen]
        self._take_back(good.chosen)
        del self.told[wrong.told if why else good.told :]
        if not why:
            return good.place
        self.told.append(Told(wrong.host, Code.RULE, why))
        return order.index(wrong.host) + 1

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

    def _general(self) -> tuple[Code, str] | None:
        """What keeps all that are left from being put to sleep."""
        policy = self._ground.policy
        if self._ground.count_on - len(self._chosen) <= policy.hosts_on_min:
            return Code.MINIMUM, f"at least {counted(policy.hosts_on_min, 'host')} must be on"
        if over_cap(self._ground):
            return None
        if self._scores.is_high:
            return Code.BUSY, f"hosts use more than {policy.high:.0%} of what they have"
        if not self._scores.is_low:
            which = "CPU" if self._scores.low[0] <= self._scores.low[1] else "memory"
            return Code.NOT_LOW, f"every host uses {policy.low:.0%} or more of its {which}"
        return None

    def _try(self, host: HostId, others: Ints) -> Told | None:
        """Put one host to sleep in mind, or say why not."""
        ground, row = self._ground, self._ground.row[host]
        units = ground.units_on(row)
        moved = [unit for one in self._chosen for unit in one.units.tolist()]
        if row in ground.state.field.home[moved]:
            return Told(host, Code.IN_USE, "it is needed for the VMs of others that go to sleep")
        most = ground.policy.moves_per_pass
        if moved and self._count_vms([*moved, *units.tolist()]) > most:
            return Told(host, Code.LATER, f"{most} moves are enough for one pass")
        short = shortage(ground)
        self._capped = bool(over_cap(ground))
        packing = ground.empty(row, units, others)
        told = self._stays(host, packing)
        if told is None:
            ground.close(row)
            told = self._judged(host, units, short)
            if told is not None:
                ground.open(row)
        if told is not None:
            ground.put_back(units, np.full(len(units), row))
            return told
        ground.settle(units)
        self._scores = ground.scores()
        return None

    def _take_back(self, count: int) -> None:
        """Let all that were chosen be on again but so many."""
        ground = self._ground
        while len(self._chosen) > count:
            one = self._chosen.pop()
            row = ground.row[one.host]
            ground.put_back(one.units, np.full(len(one.units), row))
            ground.open(row)
        self._scores = ground.scores()

    def _count_vms(self, units: Sequence[int]) -> int:
        return sum(len(self._ground.state.members[unit]) for unit in units)

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

    def _judged(self, host: HostId, units: Ints, short: Shortage) -> Told | None:
        ground, before = self._ground, self._scores
        after = ground.scores()
        if self._capped:
            found = worth(ground, self._estimates, ground.row[host], units, short)
            self._chosen.append(_Chosen(host, units, found, MANDATORY, len(self.told)))
            return None
        if raised(before.high, after.high):
            return Told(host, Code.BUSY, "others would have too much to do without it")
        if not lowered(before.low, after.low):
            return Told(host, Code.USELESS, "hosts with little to do would be as many without it")
        found = worth(ground, self._estimates, ground.row[host], units, short)
        levels = range(2, ground.policy.threshold + 1)
        wanted = ((one, wanted_times(ground.policy, one)) for one in levels)
        priority = next((one for one, times in wanted if found.times >= times), None)
        if priority is None:
            return Told(host, Code.NOT_WORTH_IT, self._not_worth(found))
        self._chosen.append(_Chosen(host, units, found, priority, len(self.told)))
        return None

    def _not_worth(self, found: Worth) -> str:
        wanted = wanted_times(self._ground.policy, self._ground.policy.threshold)
        said = f"it would be worth {found.times:.0f} times its cost, and {wanted:g} times is wanted"
        if max(found.short) > 0:
            said += "; at the worst of the last hour it would be missed"
        return said

    def _even_out(self) -> None:
        """Spread those who leave over all that stay on, if they all fit that way too.

        While hosts are chosen, others are filled up, so that as many as possible become empty. Once
        it is known who stays, nobody needs to be full while others are not.
        """
        ground, field = self._ground, self._ground.state.field
        units = np.array([u for one in self._chosen for u in one.units.tolist()], dtype=np.int64)
        rows = [ground.row[one.host] for one in self._chosen for _ in one.units]
        packed = field.home[units].copy()
        ground.put_back(units, np.array(rows, dtype=np.int64))
        size = ground.asked.units[:, units].max(axis=0) / field.capacity[packed, :2]
        found = ground.spread(units[np.argsort(-size.max(axis=1), kind="stable")])
        if NOBODY in found.target or self._aftermath.why_not(self._moves(), self._asleep()):
            ground.put_back(units, packed)

    def _moves(self) -> dict[VmId, HostId]:
        """Where VMs go, with what balancing does."""
        going = {one.vm: one.target for chosen in self._chosen for one in self._going(chosen)}
        return dict(self._ground.moves) | going

    def _asleep(self) -> set[HostId]:
        return {one.host for one in self._chosen}

    def _going(self, chosen: _Chosen) -> list[Going]:
        state = self._ground.state
        return [
            Going(vm, state.host_ids[state.field.home[unit]])
            for unit in chosen.units.tolist()
            for vm in state.members[unit]
        ]

    def _sleep(self, chosen: _Chosen) -> Sleep:
        ground, going, found = self._ground, tuple(self._going(chosen)), chosen.worth
        power = ground.snapshot.hosts[chosen.host].power
        watts = power.curve[0] - power.standby_watts
        cpu, memory = ground.used(Span.OFF).max(axis=0, initial=0.0).tolist()
        cap = f"; more than {ground.policy.cap_watts} W must not be drawn by all together"
        capped = cap if chosen.priority == MANDATORY else ""
        said = f"its {counted(len(going), 'VM')} can be elsewhere" if going else "it is empty"
        return Sleep(
            host=chosen.host,
            going=going,
            priority=chosen.priority,
            reason=(
                f"{said}; in the end no host uses more than {cpu:.0%} of its CPU or {memory:.0%} "
                f"of its memory; some {watts} W saved{capped}"
            ),
            gain={
                "watts": float(watts),
                "cpu_mhz_s": found.benefit[0],
                "memory_mib_s": found.benefit[1],
                **({"times": found.times} if isfinite(found.times) else {}),
            },
            cost={"cpu_mhz_s": found.cost[0], "memory_mib_s": found.cost[1]},
            # Who has to be asked before VMs move is asked before a host is emptied.
            automatic=is_automatic(ground.policy, chosen.host, ground.snapshot.at_ms)
            and all(ground.snapshot.settings.balance.moves_by_itself(one.vm) for one in going),
        )
