"""Asking the gate beforehand: what it would refuse is not proposed, and the reason is told.

It is asked about everything together with what balancing does in the same pass, because that is
what it will be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from equipoise.balance.mending.mend import Transfer
from equipoise.balance.mending.standing import Standing
from equipoise.balance.rules import read_rules
from equipoise.balance.surely import surely_pass
from equipoise.balance.wishes import Wishes, after_moves
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent
from equipoise.model.quantity import RuleId
from equipoise.plan.passing import Passing
from equipoise.power.advice import Code, Sleep, Told, Wake
from equipoise.power.ground import Ground
from equipoise.power.intents import PowerWishes
from equipoise.power.wake import awake
from equipoise.spec.rules import broken_rules


class Woken(NamedTuple):
    """Who is woken, and what is done in the same plan for rules that are broken now."""

    wakes: tuple[Wake, ...]
    moves: tuple[Transfer, ...] = ()
    mends: tuple[RuleId, ...] = ()
    told: tuple[Told, ...] = ()


class Gate:
    """Knows what balancing does in this pass."""

    def __init__(self, ground: Ground, estimates: Estimates) -> None:
        self._ground, self._estimates = ground, estimates
        self._snapshot = ground.snapshot
        self._wishes = PowerWishes(ground.snapshot, estimates)

    def sleeps(self, sleeps: Sequence[Sleep]) -> tuple[tuple[Sleep, ...], list[Told]]:
        """Those that pass, each with all the moves that empty it, and the others."""
        if not sleeps:
            return (), []
        rules = read_rules(self._snapshot)
        standing = Standing(self._snapshot, rules)
        standing.find_problems()
        going = [(one.vm, one.target) for sleep in sleeps for one in sleep.going]
        simple = not rules.failures and not self._ground.switches
        if simple and surely_pass(standing, [*self._ground.moves, *going]):
            return tuple(sleeps), []
        passing = Passing(self._snapshot, self._ground.mends)
        # Those that wait to be approved must not be what lets the others pass.
        first = self._halved(passing, self._taken(), [one for one in sleeps if one.automatic])
        taken = [*self._taken(), *(intent for one in first for intent in self._wishes.sleep(one))]
        later = self._halved(passing, taken, [one for one in sleeps if not one.automatic])
        kept = (*first, *later)
        refused = [one for one in sleeps if one not in kept]
        told = []
        for one in refused:
            why = self._why(passing, [*self._taken(), *self._wishes.sleep(one)])
            told.append(Told(one.host, Code.GATE, why))
        return kept, told

    def wakes(self, wakes: Sequence[Wake], moves: Sequence[Transfer]) -> Woken:
        """Those that pass; what is moved for the rules passes with them or not at all."""
        if not wakes or not self._snapshot.settings.rules:
            return Woken(tuple(wakes))
        hosts = {one.host for one in wakes}
        mends = self._mended(wakes, moves)
        going = [self._wishes.move(one, hosts) for one in moves]
        intents = [self._wishes.wake(one) for one in wakes]
        passing = Passing(self._snapshot, mends)
        if not passing.objections([*self._taken(), *intents, *going]):
            return Woken(tuple(wakes), tuple(moves), mends)
        passing = Passing(self._snapshot, self._ground.mends)
        kept = {one.id for one in passing.of(intents, self._taken())}
        told = tuple(
            Told(one.host, Code.GATE, self._why(passing, [*self._taken(), intent]))
            for one, intent in zip(wakes, intents, strict=True)
            if intent.id not in kept
        )
        passed = zip(wakes, intents, strict=True)
        return Woken(tuple(one for one, intent in passed if intent.id in kept), told=told)

    def _mended(self, wakes: Sequence[Wake], moves: Sequence[Transfer]) -> tuple[RuleId, ...]:
        """The continuous rules that are broken now and hold once all of it is done."""
        rules = [one for one in self._snapshot.settings.rules if one.hard and one.continuous]
        ids = [one.id for one in rules]
        broken = dict(broken_rules(self._snapshot, ids)) if ids else {}
        if not broken:
            return ()
        going = {**dict(self._ground.moves), **{one.vm: one.target for one in moves}}
        after = after_moves(awake(self._snapshot, [one.host for one in wakes]), going.items())
        still = dict(broken_rules(after, tuple(broken)))
        return tuple(one for one in broken if one not in still)

    def _taken(self) -> list[Intent]:
        """What balancing does."""
        wishes, vms = Wishes(self._snapshot, self._estimates), self._snapshot.vms
        moves = [wishes.move(vm, vms[vm].host or to, to) for vm, to in self._ground.moves]
        return [*moves, *map(wishes.switch, self._ground.switches)]

    def _halved(
        self, passing: Passing, taken: Sequence[Intent], sleeps: Sequence[Sleep]
    ) -> tuple[Sleep, ...]:
        """All of them or, by halving, as many as pass together with what is taken."""
        wished = [intent for one in sleeps for intent in self._wishes.sleep(one)]
        if not sleeps or not passing.objections([*taken, *wished]):
            return tuple(sleeps)
        if len(sleeps) == 1:
            return ()
        half = len(sleeps) // 2
        first = self._halved(passing, taken, sleeps[:half])
        more = [intent for one in first for intent in self._wishes.sleep(one)]
        return (*first, *self._halved(passing, [*taken, *more], sleeps[half:]))

    def _why(self, passing: Passing, intents: Sequence[Intent]) -> str:
        for one in passing.objections(intents)[:1]:
            return f"the gate refuses it: {one.constraint}: {one.detail}"
        return "the gate refuses it together with the others"
