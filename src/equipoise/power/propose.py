"""The proposal: what should be switched, in the form that the control loop takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from equipoise.balance.levelling.forecast import Forecast
from equipoise.balance.mending.fault import listed
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent, Proposal, Purpose, Rejection, Step
from equipoise.model.quantity import HostId
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.scenario import Scenario
from equipoise.model.vm import VmState
from equipoise.place.water import Floats
from equipoise.power.advice import PowerAdvice, Told
from equipoise.power.advise import advise_power
from equipoise.power.intents import PowerWishes
from equipoise.power.reconsider import reasons_to_stop


def for_scenario(scenario: Scenario) -> Power:
    """The decider for a simulated run."""
    balanced = "balance" in scenario.deciders
    return Power(scenario.estimates, seed=scenario.seed, balanced=balanced)


class Power:
    """Wants as few hosts on as it takes to do all work, now and at the worst that may come."""

    def __init__(self, estimates: Estimates, *, seed: int = 0, balanced: bool = True) -> None:
        self._estimates, self._seed, self._balanced = estimates, seed, balanced
        self._forecast = Forecast()

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Say which hosts should sleep or wake, or why none should.

        Where it is asked to look ahead, it learns from each snapshot it is shown.
        """
        advice = advise_power(
            snapshot,
            self._estimates,
            seed=self._seed,
            balanced=self._balanced,
            ahead=self._ahead(snapshot),
        )
        wishes = PowerWishes(snapshot, self._estimates)
        made: list[Intent] = []
        advised: list[Intent] = []
        woken = {one.host for one in advice.wakes}
        # What mends a rule does so as a whole.
        ask = bool(advice.moves or advice.mends) and not all(one.automatic for one in advice.wakes)
        for wake in advice.wakes:
            (made if wake.automatic and not ask else advised).append(wishes.wake(wake))
        (advised if ask else made).extend(wishes.move(one, woken) for one in advice.moves)
        for sleep in advice.sleeps:
            (made if sleep.automatic else advised).extend(wishes.sleep(sleep))
        count = "1 action waits" if len(advised) == 1 else f"{len(advised)} actions wait"
        waits = f"; {count} to be approved" if advised else ""
        return Proposal(
            decider="power",
            purpose=Purpose.WAKE if advice.wakes else Purpose.SLEEP,
            intents=tuple(made),
            reason=f"{advice.summary}{waits}",
            gain=_gain(advice) if made else {},
            rejected=tuple(_rejections(advice.told)),
            advised=tuple(advised),
            whole=bool(advice.moves),
            mends=advice.mends if made else (),
        )

    def reconsider(self, snapshot: Snapshot, left: Sequence[Step]) -> str:
        """Say why the rest of a plan should not be done: it may take longer than demand stays."""
        return reasons_to_stop(snapshot, self._estimates, left, self._seed)

    def _ahead(self, snapshot: Snapshot) -> Floats | None:
        """What each VM that runs is foretold to ask for, at the most."""
        ahead_s = snapshot.settings.power.foresight_s
        if not ahead_s:
            return None
        self._forecast = self._forecast.learnt(snapshot)
        ahead = self._forecast.ahead(snapshot, ahead_s)
        running = [vm.state is VmState.RUNNING for vm in snapshot.vms.values()]
        most: Floats = ahead.most[running]
        return most


def _gain(advice: PowerAdvice) -> dict[str, float]:
    if advice.wakes:
        return {"high_score": max(advice.before.high) - max(advice.after.high)}
    return {"watts": sum(one.gain["watts"] for one in advice.sleeps if one.automatic)}


def _rejections(told: Iterable[Told]) -> Iterator[Rejection]:
    """Why other hosts are left as they are; those of which the same is said stand together."""
    alike: dict[tuple[str, str], list[HostId]] = defaultdict(list)
    for one in told:
        alike[one.code, one.sentence].append(one.host)
    for (code, sentence), hosts in alike.items():
        yield Rejection(subject=listed(hosts), code=code, detail=sentence)
