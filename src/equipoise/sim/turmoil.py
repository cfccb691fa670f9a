"""Turmoil: lets happen what a scenario foretells, and what its rates bring by chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import log
from typing import Final

from equipoise.model.event import (
    Event,
    HostChanged,
    HostFailed,
    HostJoined,
    HostLeft,
    HostRecovered,
    RolesFound,
    VmArrived,
    VmCrashed,
)
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ProcessorId, VmId
from equipoise.model.roles.duty import table_of
from equipoise.model.story.load import Level
from equipoise.model.story.unrest import (
    ControllerLost,
    Gaps,
    Happening,
    HostChurn,
    HostRequested,
    MigrationsSlowed,
    MonitoringLost,
    Outages,
    PowerOnStuck,
    RoleStartsFail,
    VmChurn,
)
from equipoise.model.vm import VmState
from equipoise.sim.calendar import Act, Rank
from equipoise.sim.chance import Dice
from equipoise.sim.newcomers import Newcomers
from equipoise.sim.stage import Stage

HOUR_MS: Final = 3600 * 1000
DAY_MS: Final = 24 * HOUR_MS
LATER_MS: Final = 10**14
"""After the end of any run."""


@dataclass(frozen=True, slots=True)
class _Chance:
    """Something that strikes again and again."""

    dice: Dice
    rate: float
    """How often per millisecond, each of those it can strike."""
    strike: Callable[[Dice], Event | None]
    targets: Callable[[], int] | None = None
    """How many it can strike now; without it, it strikes nobody in particular."""


class Turmoil:
    """Faults and changes, foretold and by chance."""

    def __init__(self, stage: Stage, newcomers: Newcomers) -> None:
        self._stage = stage
        self._newcomers = newcomers
        self._failed_ms: dict[HostId, int] = {}
        """When each host failed last."""
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
                stage.slow_links(happening.speed_pct / 100, happening.for_ms)
            case PowerOnStuck():
                stage.doing.stuck_hosts.add(happening.host)
            case VmArrived():
                load = stage.scenario.vm_loads.get(happening.vm.id)
                return self._newcomers.arrive(happening.vm, load)
            case RoleStartsFail():
                stage.doing.role_faults.foretell(happening)
            case ControllerLost():
                self._leave_alone(happening)
            case HostRequested():
                return self._request(happening)
            case HostFailed():
                self._failed_ms[happening.host] = stage.now_ms
                return stage.happen(happening)
            case _:
                return stage.happen(happening)
        return None

    def _request(self, wish: HostRequested) -> Event | None:
        host = self._stage.truth.state.hosts.get(wish.host)
        if host is None:
            return None
        changed = host.but(requested=wish.wish)
        return self._stage.happen(HostChanged(at_ms=self._stage.now_ms, host=changed))

    def _leave_alone(self, lost: ControllerLost) -> None:
        """Roles run on without a controller, but single ones only for a while."""
        layout = self._stage.truth.state.settings.layout
        if layout is None or layout.hold_s is None or 1000 * layout.hold_s >= lost.for_ms:
            return
        for processor in table_of(layout).teams_of:
            give_up = partial(self._give_up, processor)
            self._stage.later(self._stage.now_ms + 1000 * layout.hold_s, Rank.FAULT, give_up)

    def _give_up(self, processor: ProcessorId) -> Event | None:
        """A processor stops what somebody else may have been given meanwhile."""
        state, layout = self._stage.truth.state, self._stage.truth.state.settings.layout
        if layout is None:
            return None
        held, single = state.duties.held.get(processor, ()), table_of(layout).single
        left = tuple(duty for duty in held if duty not in single)
        if left == held:
            return None
        reason = f"it heard of no controller for {layout.hold_s} s and stopped its single roles"
        return self._stage.happen(
            RolesFound(at_ms=self._stage.now_ms, processor=processor, held=left, reason=reason)
        )

    def _chances(self) -> Iterator[_Chance]:
        unrest = self._stage.scenario.unrest
        if (outages := unrest.host_crashes) is not None:
            strike = partial(self._crash_host, outages)
            rate = outages.per_host_day / DAY_MS
            yield _Chance(self._dice("hosts"), rate, strike, lambda: len(self._alive_hosts()))
        if (crashes := unrest.vm_crashes) is not None:
            rate = crashes.per_vm_day / DAY_MS
            yield _Chance(self._dice("vms"), rate, self._crash_vm, lambda: len(self._alive_vms()))
        if (gaps := unrest.monitoring_gaps) is not None:
            blind = partial(self._lose_sight, gaps)
            yield _Chance(self._dice("gaps"), gaps.per_day / DAY_MS, blind)
        for number, hosts in enumerate(unrest.hosts):
            dice = self._dice("joins", hosts.fleet, str(number))
            yield _Chance(dice, hosts.per_day / DAY_MS, partial(self._add_host, hosts))
        for number, vms in enumerate(unrest.vms):
            dice = self._dice("arrives", vms.fleet, str(number))
            yield _Chance(dice, vms.per_hour / HOUR_MS, partial(self._add_vm, vms))

    def _dice(self, *words: str) -> Dice:
        return Dice(self._stage.scenario.seed, "unrest", *words)

    def _wait(self, chance: _Chance) -> None:
        # Meanwhile there may be more to strike, or fewer. So strike as often as twice as many would
        # need it, and let a strike miss as often as there are fewer: that is exact until there are
        # more than that.
        most = 1 if chance.targets is None else 2 * chance.targets() + 8
        wait_ms = float(LATER_MS)
        if chance.rate > 0:
            wait_ms = min(-log(1 - chance.dice.roll()) / (chance.rate * most), LATER_MS)
        at_ms = self._stage.now_ms + max(1, round(wait_ms))
        self._stage.later(at_ms, Rank.FAULT, partial(self._strike, chance, most))

    def _strike(self, chance: _Chance, most: int) -> Event | None:
        hits = chance.targets is None or chance.dice.roll() * most < chance.targets()
        event = chance.strike(chance.dice) if hits else None
        self._wait(chance)
        return event

    def _alive_hosts(self) -> list[HostId]:
        hosts = self._stage.truth.state.hosts.values()
        return [host.id for host in hosts if host.state is HostState.ON]

    def _alive_vms(self) -> list[VmId]:
        vms = self._stage.truth.state.vms.values()
        return [vm.id for vm in vms if vm.state is VmState.RUNNING]

    def _crash_host(self, outages: Outages, dice: Dice) -> Event | None:
        alive, stage = self._alive_hosts(), self._stage
        struck = alive[dice.choose(len(alive))]
        self._failed_ms[struck] = stage.now_ms
        back = partial(self._bring_back, struck, stage.now_ms)
        self._after(outages.back_after_s, dice, back)
        return stage.happen(HostFailed(at_ms=stage.now_ms, host=struck, reason="it crashed"))

    def _bring_back(self, host: HostId, failed_ms: int) -> Event | None:
        """A host comes back, unless somebody was quicker: the next outage has its own end."""
        found = self._stage.truth.state.hosts.get(host)
        if found is None or found.state is not HostState.FAILED:
            return None
        if self._failed_ms[host] != failed_ms:
            return None
        return self._stage.happen(HostRecovered(at_ms=self._stage.now_ms, host=host))

    def _crash_vm(self, dice: Dice) -> Event | None:
        alive = self._alive_vms()
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
        self._after(churn.stay_s, dice, partial(self._newcomers.leave, event.vm.id))
        return event

    def _after(self, seconds: Level, dice: Dice, act: Act) -> None:
        wait_ms = max(1, round(1000 * dice.draw(seconds)))
        self._stage.later(self._stage.now_ms + wait_ms, Rank.FAULT, act)
