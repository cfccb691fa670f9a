"""The proposal: what a pass recommends, in the form that the control loop takes."""

from __future__ import annotations

from equipoise.balance.advice import Advice, Advised
from equipoise.balance.advise import advise, leave
from equipoise.balance.levelling.forecast import Forecast
from equipoise.balance.levelling.foresight import foreseen
from equipoise.balance.wishes import Wishes, step_of, switch_of
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent, Proposal, Purpose, Rejection
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.scenario import Scenario
from equipoise.plan.passing import Passing


def for_scenario(scenario: Scenario) -> Balance:
    """The decider for a simulated run."""
    return Balance(scenario.estimates, seed=scenario.seed)


class Balance:
    """Wants the rules kept, and VMs spread so that all hosts can give what their VMs deserve."""

    def __init__(self, estimates: Estimates, *, seed: int = 0) -> None:
        self._estimates, self._seed = estimates, seed
        self._forecast = Forecast()

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Say which VMs should move, or why none should.

        Where it is asked to look ahead, it learns from each snapshot it is shown.
        """
        ahead_s, reason = snapshot.settings.balance.foresight_s, ""
        if ahead_s:
            self._forecast = self._forecast.learnt(snapshot)
            snapshot, count = foreseen(snapshot, self._forecast.ahead(snapshot, ahead_s))
            reason = f"; the demand of {count} VMs is foretold for {ahead_s} s" if count else ""
        done = advise(snapshot, self._estimates, seed=self._seed)
        leave(done, self._estimates, self._seed)
        advice = done.advice
        made, advised = self._intents(snapshot, advice)
        if advised:
            reason += f"; {len(advised)} of {len(made) + len(advised)} actions wait to be approved"
        faults = tuple(
            Rejection(subject=fault.subject, code=fault.code, detail=fault.detail)
            for fault in advice.faults
        )
        mending = bool(advice.switches) or any(one.priority == 1 for one in advice.moves)
        return Proposal(
            decider="balance",
            purpose=Purpose.REPAIR if mending else Purpose.BALANCE,
            intents=made,
            reason=f"{advice.summary}{reason}",
            gain={"imbalance": advice.before - advice.after} if made else {},
            rejected=(*faults, *advice.rejected),
            advised=advised,
            mends=advice.mends if made else (),
        )

    def _intents(
        self, snapshot: Snapshot, advice: Advice
    ) -> tuple[tuple[Intent, ...], tuple[Intent, ...]]:
        """What is done without asking, and what somebody has to approve."""
        asked = {one.vm for one in advice.moves if not one.automatic}
        while True:  # what waits for something that has to be approved has to be approved too
            more = {one.vm for one in advice.moves if not asked.isdisjoint(one.after)} - asked
            if not more:
                break
            asked |= more
        wishes = Wishes(snapshot, self._estimates)
        wanted = [
            _with_reason(wishes.move(one.vm, one.source, one.target), one) for one in advice.moves
        ]
        wanted += map(wishes.switch, advice.switches)
        waiting = {step_of(vm) for vm in asked}
        waiting |= {switch_of(one.host) for one in advice.switches if not one.automatic}
        made = [one for one in wanted if waiting.isdisjoint((one.id, *one.after))]
        if waiting and made:  # the gate was asked about all of them together
            made = list(Passing(snapshot, advice.mends).of(made))
        done = {one.id for one in made}
        return tuple(made), tuple(one for one in wanted if one.id not in done)


def _with_reason(wish: Intent, one: Advised) -> Intent:
    gain = one.gain.get("imbalance")
    expected = f"; imbalance falls by {gain:.4f}" if gain is not None else ""
    return wish.but(after=tuple(map(step_of, one.after)), reason=f"{one.reason}{expected}")
