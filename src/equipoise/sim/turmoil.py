"""Turmoil: lets happen what a scenario foretells, and what its rates bring by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Final

from equipoise.model.event import (
    Event,
    HostFailed,
    HostJoined,
    HostLeft,
    HostRecovered,
    VmArrived,
    VmCrashed,
    VmLeft,
)
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.story.load import Level
from equipoise.model.story.unrest import (
    Gaps,
    Happening,
    HostChurn,
    MigrationsSlowed,
    MonitoringLost,
    Outages,
    PowerOnStuck,
    VmChurn,
)
from equipoise.model.vm import VmState
from equipoise.sim.calendar import Act, Rank
from equipoise.sim.chance import Dice
from equipoise.sim.newcomers import Newcomers
from equipoise.sim.stage import Stage

HOUR_MS: Final = 3600 * 1000
DAY_MS: Final = 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class _Chance:
    """Something that strikes again and again."""

    dice: Dice
    rate: Callable[[], float]
    """How often per millisecond, as things are."""
    strike: Callable[[Dice], Event | None]


class Turmoil:
    """Faults and changes, foretold and by chance."""

    def __init__(self, stage: Stage, newcomers: Newcomers) -> None:
        self._stage = stage
        self._newcomers = newcomers
        for happening in stage.scenario.happenings:
            stage.later(happening.at_ms, Rank.FAULT, partial(self._foretold, happening))
        for chance in self._chances():
            self._wait(chance)

    def _foretold(self, happening: Happening) -> Event | None:
        stage = self._stage
        match happening:
            case MonitoringLost():
                stage.go_blind(happening.for_ms)
            case MigrationsSlowed():
                stage.set_link_speed(happening.speed_pct / 100)
                again = partial(stage.set_link_speed, 1.0)
                stage.later(stage.now_ms + happening.for_ms, Rank.FAULT, again)
            case PowerOnStuck():
                stage.doing.stuck_hosts.add(happening.host)
            case VmArrived():
                load = stage.scenario.vm_loads.get(happening.vm.id)
                return self._newcomers.arrive(happening.vm, load)
            case _:
                return stage.happen(happening)
        return None

    def _chances(self) -> Iterator[_Chance]:
        unrest = self._stage.scenario.unrest
        if (outages := unrest.host_crashes) is not None:
            rate = partial(self._rate_of_hosts, outages.per_host_day)
            yield _Chance(self._dice("hosts"), rate, partial(self._crash_host, outages))
        if (crashes := unrest.vm_crashes) is not None:
            yield _Chance(
                self._dice("vms"), partial(self._rate_of_vms, crashes.per_vm_day), self._crash_vm
            )
        if (gaps := unrest.monitoring_gaps) is not None:
            rate = partial(float, gaps.per_day / DAY_MS)
            yield _Chance(self._dice("gaps"), rate, partial(self._lose_sight, gaps))
        for hosts in unrest.hosts:
            rate = partial(float, hosts.per_day / DAY_MS)
            yield _Chance(self._dice("joins", hosts.fleet), rate, partial(self._add_host, hosts))
        for vms in unrest.vms:
            rate = partial(float, vms.per_hour / HOUR_MS)
            yield _Chance(self._dice("arrives", vms.fleet), rate, partial(self._add_vm, vms))

    def _dice(self, *words: str) -> Dice:
        return Dice(self._stage.scenario.seed, "unrest", *words)

    def _wait(self, chance: _Chance) -> None:
        rate = chance.rate()
        # When there is nobody left to strike, look again in an hour.
        wait_ms = round(-log(1 - chance.dice.roll()) / rate) if rate > 0 else HOUR_MS
        at_ms = self._stage.now_ms + max(1, min(wait_ms, 10**14))
        self._stage.later(at_ms, Rank.FAULT, partial(self._strike, chance, rate > 0))

    def _strike(self, chance: _Chance, is_due: bool) -> Event | None:
        event = chance.strike(chance.dice) if is_due else None
        self._wait(chance)
        return event

    def _alive_hosts(self) -> list[HostId]:
        hosts = self._stage.truth.state.hosts.values()
        return [host.id for host in hosts if host.state is HostState.ON]

    def _alive_vms(self) -> list[VmId]:
        vms = self._stage.truth.state.vms.values()
        return [vm.id for vm in vms if vm.state is VmState.RUNNING]

    def _rate_of_hosts(self, per_host_day: float) -> float:
        return per_host_day * len(self._alive_hosts()) / DAY_MS

    def _rate_of_vms(self, per_vm_day: float) -> float:
        return per_vm_day * len(self._alive_vms()) / DAY_MS

    def _crash_host(self, outages: Outages, dice: Dice) -> Event | None:
        alive = self._alive_hosts()
        if not alive:
            return None
        struck = alive[dice.choose(len(alive))]
        self._after(outages.back_after_s, dice, partial(self._bring_back, struck))
        stage = self._stage
        return stage.happen(HostFailed(at_ms=stage.now_ms, host=struck, reason="it crashed"))

    def _bring_back(self, host: HostId) -> Event | None:
        found = self._stage.truth.state.hosts.get(host)
        if found is None or found.state is not HostState.FAILED:
            return None
        return self._stage.happen(HostRecovered(at_ms=self._stage.now_ms, host=host))

    def _crash_vm(self, dice: Dice) -> Event | None:
        alive = self._alive_vms()
        if not alive:
            return None
        struck, stage = alive[dice.choose(len(alive))], self._stage
        return stage.happen(VmCrashed(at_ms=stage.now_ms, vm=struck, reason="it crashed"))

    def _lose_sight(self, gaps: Gaps, dice: Dice) -> None:
        self._stage.go_blind(max(1, round(1000 * dice.draw(gaps.for_s))))

    def _add_host(self, churn: HostChurn, dice: Dice) -> Event | None:
        host = self._newcomers.next_host(churn.fleet)
        if churn.stay_s is not None:
            self._after(churn.stay_s, dice, partial(self._take_host, host.id))
        return self._stage.happen(HostJoined(at_ms=self._stage.now_ms, host=host))

    def _take_host(self, host: HostId) -> Event | None:
        if host not in self._stage.truth.state.hosts:
            return None
        return self._stage.happen(HostLeft(at_ms=self._stage.now_ms, host=host))

    def _add_vm(self, churn: VmChurn, dice: Dice) -> Event | None:
        event = self._newcomers.arrive_next(churn.fleet)
        self._after(churn.stay_s, dice, partial(self._take_vm, event.vm.id))
        return event

    def _take_vm(self, vm: VmId) -> Event | None:
        if vm not in self._stage.truth.state.vms:
            return None
        return self._stage.happen(VmLeft(at_ms=self._stage.now_ms, vm=vm))

    def _after(self, seconds: Level, dice: Dice, act: Act) -> None:
        wait_ms = max(1, round(1000 * dice.draw(seconds)))
        self._stage.later(self._stage.now_ms + wait_ms, Rank.FAULT, act)
