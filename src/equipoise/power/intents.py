"""Sleeping and waking as wishes: the form in which gate, arbiter and journal know them."""

from __future__ import annotations

from collections.abc import Collection

from equipoise.balance.mending.mend import Transfer
from equipoise.balance.wishes import Wishes, step_of, switch_of
from equipoise.model.action import Action, PowerOff, PowerOn
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent
from equipoise.model.quantity import HostId, StepId
from equipoise.model.snapshot import Snapshot
from equipoise.power.advice import Sleep, Wake


class PowerWishes:
    """Makes intents of what should be switched."""

    def __init__(self, snapshot: Snapshot, estimates: Estimates) -> None:
        self._snapshot, self._estimates = snapshot, estimates
        self._wishes = Wishes(snapshot, estimates)

    def sleep(self, sleep: Sleep) -> tuple[Intent, ...]:
        """Wish that a host is emptied, and sleeps then."""
        moves = tuple(
            self._wishes.move(one.vm, sleep.host, one.target).but(
                reason=f"{sleep.host} is to sleep"
            )
            for one in sleep.going
        )
        after = tuple(step_of(one.vm) for one in sleep.going)
        return (*moves, self._switch(sleep.host, PowerOff(host=sleep.host), sleep.reason, after))

    def move(self, move: Transfer, woken: Collection[HostId]) -> Intent:
        """Wish that a VM goes where it may be, once that host is on."""
        after = (switch_of(move.target),) if move.target in woken else ()
        return self._wishes.move(*move).but(after=after, reason="a rule is broken where it is")

    def wake(self, wake: Wake) -> Intent:
        """Wish that a host wakes."""
        return self._switch(wake.host, PowerOn(host=wake.host), wake.reason)

    def _switch(
        self, host: HostId, action: Action, reason: str, after: tuple[StepId, ...] = ()
    ) -> Intent:
        duration_ms = self._estimates.duration_ms(action, self._snapshot)
        return Intent(
            id=switch_of(host), action=action, duration_ms=duration_ms, after=after, reason=reason
        )
