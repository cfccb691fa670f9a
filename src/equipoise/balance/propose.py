"""The balance decider: turns the advice of a pass into a proposal for the control loop."""

from __future__ import annotations

from equipoise.balance.advice import (
    BalanceAdvice,
    BalanceIntentBuilder,
    MoveAdvice,
    move_step_id,
    switch_step_id,
)
from equipoise.balance.rebalance.forecast import DemandForecaster, with_forecast_demand
from equipoise.balance.run_pass import PassResult, run_balance_pass
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent, Proposal, Purpose, Rejection
from equipoise.model.quantity import format_count
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.order import GateFilter


def for_scenario(scenario: Scenario) -> BalanceDecider:
    """Return the decider for a simulated run."""
    return BalanceDecider(scenario.estimates, seed=scenario.seed)


class BalanceDecider:
    """The decider that repairs rules and moves VMs to reduce the imbalance."""

    def __init__(self, estimates: Estimates, *, seed: int = 0) -> None:
        self._estimates, self._seed = estimates, seed
        self._forecast = DemandForecaster()

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Return the moves that the loop should execute, with the reasons."""
        return self.propose_with_pass(snapshot)[0]

    def propose_with_pass(self, snapshot: Snapshot) -> tuple[Proposal, PassResult]:
        """Return the proposal and the pass behind it, which the power decider can reuse.

        With ``foresight_s`` in the policy, the forecast learns from every snapshot, and the pass
        runs on the snapshot with the forecast demand.
        """
        ahead_s, reason = snapshot.settings.balance.foresight_s, ""
        if ahead_s:
            self._forecast = self._forecast.learn(snapshot)
            snapshot, count = with_forecast_demand(
                snapshot, self._forecast.ahead(snapshot, ahead_s)
            )
            vms = format_count(count, "VM")
            reason = f"; the demand of {vms} is a forecast for {ahead_s} s ahead" if count else ""
        result = run_balance_pass(snapshot, self._estimates, seed=self._seed)
        return self._proposal(snapshot, result.advice, reason), result

    def _proposal(self, snapshot: Snapshot, advice: BalanceAdvice, reason: str) -> Proposal:
        automatic, to_approve = self._intents(snapshot, advice)
        if to_approve:
            reason += (
                f"; {len(to_approve)} of {len(automatic) + len(to_approve)} actions need approval"
            )
        faults = tuple(
            Rejection(subject=fault.subject, code=fault.code, detail=fault.detail)
            for fault in advice.faults
        )
        repairs = bool(advice.switches) or any(move.priority == 1 for move in advice.moves)
        return Proposal(
            decider="balance",
            purpose=Purpose.REPAIR if repairs else Purpose.BALANCE,
            intents=automatic,
            reason=f"{advice.summary}{reason}",
            gain={"imbalance": advice.before - advice.after} if automatic else {},
            rejected=(*faults, *advice.rejected),
            advised=to_approve,
            repairs=advice.repairs if automatic else (),
        )

    def _intents(
        self, snapshot: Snapshot, advice: BalanceAdvice
    ) -> tuple[tuple[Intent, ...], tuple[Intent, ...]]:
        """Return the automatic intents, and the intents that need approval."""
        vms_to_approve = {move.vm for move in advice.moves if not move.automatic}
        while True:  # a move that waits for one that needs approval needs approval too
            more = {
                move.vm for move in advice.moves if not vms_to_approve.isdisjoint(move.after)
            } - vms_to_approve
            if not more:
                break
            vms_to_approve |= more
        builder = BalanceIntentBuilder(snapshot, self._estimates)
        intents = [
            _with_reason(builder.move(move.vm, move.source, move.target), move)
            for move in advice.moves
        ]
        intents += map(builder.switch, advice.switches)
        waiting = {move_step_id(vm) for vm in vms_to_approve}
        waiting |= {
            switch_step_id(switch.host) for switch in advice.switches if not switch.automatic
        }
        automatic = [intent for intent in intents if waiting.isdisjoint((intent.id, *intent.after))]
        if waiting and automatic:  # the gate has accepted all of them together, not this subset
            automatic = list(GateFilter(snapshot, advice.repairs).of(automatic))
        automatic_ids = {intent.id for intent in automatic}
        return tuple(automatic), tuple(
            intent for intent in intents if intent.id not in automatic_ids
        )


def _with_reason(intent: Intent, move: MoveAdvice) -> Intent:
    gain = move.gain.get("imbalance")
    expected = f"; imbalance falls by {gain:.4f}" if gain is not None else ""
    return intent.but(after=tuple(map(move_step_id, move.after)), reason=f"{move.reason}{expected}")
