"""The balance decider: turns the advice of a pass into a proposal for the control loop."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.balance.advice import (
    MANDATORY_PRIORITY,
    BalanceAdvice,
    BalanceCode,
    IntentBuilder,
    MoveAdvice,
    switch_step_id,
)
from equipoise.balance.rebalance.forecast import DemandForecaster, with_forecast_demand
from equipoise.balance.run_pass import PassResult, measure_fall, run_balance_pass
from equipoise.model.action_durations import Estimates
from equipoise.model.plan import Intent, Proposal, Purpose, Rejection
from equipoise.model.quantity import format_count
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import snapshot_after_actions
from equipoise.plan.order import GateFilter


def for_scenario(scenario: Scenario) -> BalanceDecider:
    """Return the decider for a simulated run."""
    powered = "power" in scenario.deciders
    return BalanceDecider(scenario.estimates, seed=scenario.seed, powered=powered)


class BalanceDecider:
    """The decider that repairs rules and moves VMs to reduce the imbalance."""

    def __init__(
        self,
        estimates: Estimates,
        *,
        seed: int = 0,
        powered: bool = False,
        alternatives: bool = False,
    ) -> None:
        """``powered`` says whether a power decider runs beside this one."""
        self._estimates, self._seed = estimates, seed
        self._powered, self._alternatives = powered, alternatives
        self._forecast = DemandForecaster()

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Return the moves that the loop should execute, with the reasons."""
        return self.propose_with_pass(snapshot)[0]

    def learn(self, snapshot: Snapshot) -> None:
        """Learn the demand of a snapshot of the past, for the forecast."""
        self._forecast = self._forecast.learn(snapshot)

    def propose_with_pass(
        self, snapshot: Snapshot, *, even: bool = False
    ) -> tuple[Proposal, PassResult]:
        """Return the proposal and the pass behind it, which the power decider can reuse.

        With ``even``, an even load has its value although a host is spare: power has already said
        that it puts none into standby. With ``foresight_s`` in the policy, the forecast learns
        from every snapshot, and the pass runs on the snapshot with the forecast demand.
        """
        ahead_s, reason = snapshot.settings.balance.foresight_s, ""
        if ahead_s:
            if not even:  # the second question of a turn is about the same snapshot
                self._forecast = self._forecast.learn(snapshot)
            snapshot, count = with_forecast_demand(
                snapshot, self._forecast.ahead(snapshot, ahead_s)
            )
            vms = format_count(count, "VM")
            reason = f"; the demand of {vms} is a forecast for {ahead_s} s ahead" if count else ""
        result = run_balance_pass(
            snapshot,
            self._estimates,
            seed=self._seed,
            alternatives=self._alternatives,
            powered=self._powered and not even,
        )
        return self.proposal_of(snapshot, result.advice, reason), result

    def proposal_of(self, snapshot: Snapshot, advice: BalanceAdvice, reason: str = "") -> Proposal:
        """Return the proposal of a pass."""
        automatic, to_approve = self._intents(snapshot, advice)
        waiting = sum(not _is_seen_enough(snapshot, move) for move in advice.moves)
        if waiting:
            reason += f"; {format_count(waiting, 'move')} must be seen in further passes first"
        elif to_approve:
            reason += (
                f"; {len(to_approve)} of {len(automatic) + len(to_approve)} actions need approval"
            )
        faults = tuple(
            Rejection(subject=fault.subject, code=fault.code, detail=fault.detail)
            for fault in advice.unresolved
        )
        # The purpose decides the rank in arbitration: one mandatory move lifts the whole proposal,
        # because later moves may wait for it.
        repairs = bool(advice.switches) or any(move.priority == 1 for move in advice.moves)
        return Proposal(
            decider="balance",
            purpose=Purpose.REPAIR if repairs else Purpose.BALANCE,
            intents=automatic,
            reason=f"{advice.summary}{reason}",
            gain={"imbalance": self._gain(snapshot, advice, automatic)} if automatic else {},
            rejected=(*faults, *advice.rejected),
            advised=to_approve,
            repairs=advice.repairs if automatic else (),
            contended=advice.contended,
        )

    def _gain(
        self, snapshot: Snapshot, advice: BalanceAdvice, automatic: Sequence[Intent]
    ) -> float:
        """Return the fall of the imbalance by the intents that run without approval."""
        if len(automatic) == len(advice.actions):
            return advice.gain
        after = snapshot_after_actions(snapshot, (intent.action for intent in automatic))
        return measure_fall(snapshot, after, self._estimates)

    def _intents(
        self, snapshot: Snapshot, advice: BalanceAdvice
    ) -> tuple[tuple[Intent, ...], tuple[Intent, ...]]:
        """Return the automatic intents, and the intents that need approval."""
        vms_to_approve = {
            move.vm
            for move in advice.moves
            if not move.automatic or not _is_seen_enough(snapshot, move)
        }
        while True:  # a move that waits for one that needs approval needs approval too
            more = {
                move.vm
                for move in advice.moves
                if not vms_to_approve.isdisjoint((*move.after, *move.after_parking))
            } - vms_to_approve
            if not more:
                break
            vms_to_approve |= more
        builder = IntentBuilder(snapshot, self._estimates)
        intents = [builder.move(move.transfer, _reason(move)) for move in advice.moves]
        intents += map(builder.switch, advice.switches)
        waiting = {move.transfer.step for move in advice.moves if move.vm in vms_to_approve}
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


def _is_seen_enough(snapshot: Snapshot, move: MoveAdvice) -> bool:
    """Return whether enough passes in a row have recommended a move, this one included."""
    needed = snapshot.settings.balance.passes_seen
    if needed == 1 or move.priority == MANDATORY_PRIORITY:
        return True
    target, count = snapshot.moves_seen.get(move.vm, (move.target, 0))
    return target == move.target and count + 1 >= needed


def _reason(move: MoveAdvice) -> str:
    gain = move.gain.get("imbalance") if move.code is BalanceCode.BALANCE else None
    return move.reason if gain is None else f"{move.reason}; imbalance falls by {gain:.4f}"
