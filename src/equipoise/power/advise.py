"""One look at the power of a cluster: wake who is missed or, if nobody is, let sleep who is not."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.balance.mending.fault import listed
from equipoise.balance.mending.standing import Standing
from equipoise.balance.rules import read_rules
from equipoise.balance.surely import surely_pass
from equipoise.balance.wishes import Wishes
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent
from equipoise.model.quantity import HostId
from equipoise.model.snapshot import Snapshot
from equipoise.place.water import Floats
from equipoise.plan.passing import Passing
from equipoise.power.advice import Code, PowerAdvice, Sleep, Told, Wake
from equipoise.power.ground import Ground, ground_of
from equipoise.power.intents import PowerWishes
from equipoise.power.sleep import Sleeping
from equipoise.power.wake import Waking


def advise_power(
    snapshot: Snapshot,
    estimates: Estimates,
    *,
    seed: int = 0,
    balanced: bool = True,
    ahead: Floats | None = None,
) -> PowerAdvice:
    """What should be switched.

    ``balanced`` says whether somebody balances the cluster as well; ``ahead`` is what each VM that
    runs is foretold to ask for, of CPU and memory, in the order of the snapshot.
    """
    ground = ground_of(snapshot, estimates, seed=seed, balanced=balanced, ahead=ahead)
    before = ground.scores()
    waking = Waking(ground, estimates, seed)
    with ground.what_if():
        waking.run()
        after = ground.scores()
    sleeping = Sleeping(ground, estimates)
    if waking.wakes:
        sleeping.told = _kept(ground, "others are woken now")
    else:
        sleeping.run()
        after = ground.scores()
    sleeps, refused = _passing(ground, estimates, sleeping.sleeps)
    told = {one.host: one for one in (*waking.told, *sleeping.told, *refused)}
    return PowerAdvice(
        sleeps=sleeps,
        wakes=tuple(waking.wakes),
        told=tuple(told[host] for host in snapshot.hosts if host in told),
        before=before,
        after=after,
        summary=_summary(sleeps, waking.wakes, list(told.values())),
    )


def _kept(ground: Ground, why: str) -> list[Told]:
    return [Told(ground.state.host_ids[row], Code.BUSY, why) for row in ground.state.hosts]


def _passing(
    ground: Ground, estimates: Estimates, sleeps: Sequence[Sleep]
) -> tuple[tuple[Sleep, ...], list[Told]]:
    """Those that the gate lets pass, each as a whole, besides what balancing does."""
    if not sleeps:
        return (), []
    snapshot = ground.snapshot
    rules = read_rules(snapshot)
    standing = Standing(snapshot, rules)
    standing.find_problems()
    going = [(one.vm, one.target) for sleep in sleeps for one in sleep.going]
    if not rules.failures and surely_pass(standing, [*ground.moves, *going]):
        return tuple(sleeps), []
    moves = Wishes(snapshot, estimates)
    taken = [moves.move(vm, standing.where[vm] or target, target) for vm, target in ground.moves]
    gate = _Gate(Passing(snapshot), PowerWishes(snapshot, estimates))
    kept = gate.let_pass(taken, sleeps)
    refused = [one.host for one in sleeps if one not in kept]
    return kept, [Told(host, Code.GATE, "the gate refuses the way there") for host in refused]


class _Gate:
    """Asks the gate about hosts that should sleep, each with all the moves that empty it."""

    def __init__(self, passing: Passing, wishes: PowerWishes) -> None:
        self._passing, self._wishes = passing, wishes

    def let_pass(self, taken: Sequence[Intent], sleeps: Sequence[Sleep]) -> tuple[Sleep, ...]:
        """All of them or, by halving, as many as pass together with what is taken."""
        wished = [intent for one in sleeps for intent in self._wishes.sleep(one)]
        if not sleeps or not self._passing.objections([*taken, *wished]):
            return tuple(sleeps)
        if len(sleeps) == 1:
            return ()
        half = len(sleeps) // 2
        first = self.let_pass(taken, sleeps[:half])
        more = [intent for one in first for intent in self._wishes.sleep(one)]
        return (*first, *self.let_pass([*taken, *more], sleeps[half:]))


def _summary(sleeps: Sequence[Sleep], wakes: Sequence[Wake], told: Sequence[Told]) -> str:
    if wakes:
        return f"{_named([one.host for one in wakes])} should wake: {wakes[0].reason}"
    if sleeps:
        moves = sum(len(one.going) for one in sleeps)
        watts = sum(one.gain["watts"] for one in sleeps)
        hosts = _named([one.host for one in sleeps])
        return f"{hosts} can sleep after {moves} moves, which saves about {watts:.0f} W"
    kept = [one for one in told if one.code is not Code.NOT_NEEDED]
    return f"nothing to switch; {kept[0].host}: {kept[0].sentence}" if kept else "nothing to switch"


def _named(hosts: Sequence[HostId]) -> str:
    return f"{len(hosts)} hosts ({listed(hosts)})" if len(hosts) > 1 else str(hosts[0])
