"""The power decider: turns the advice of a pass into a proposal for the control loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from equipoise.balance.rebalance.forecast import DemandForecaster
from equipoise.balance.repair.faults import join_names
from equipoise.balance.run_pass import PassResult
from equipoise.capacity.waterfill import Floats
from equipoise.model.estimate import Estimates
from equipoise.model.plan import Intent, Proposal, Purpose, Rejection, Step
from equipoise.model.quantity import HostId
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.power.advice import PowerAdvice, PowerIntentBuilder, SkippedHost
from equipoise.power.plan_review import why_stop
from equipoise.power.run_pass import run_power_pass


def for_scenario(scenario: Scenario) -> PowerDecider:
    """Return the decider for a simulated run."""
    balanced = "balance" in scenario.deciders
    return PowerDecider(scenario.estimates, seed=scenario.seed, balanced=balanced)


class PowerDecider:
    """The decider that keeps as few hosts on as the demand needs, now and in the worst case."""

    def __init__(self, estimates: Estimates, *, seed: int = 0, balanced: bool = True) -> None:
        self._estimates, self._seed, self._balanced = estimates, seed, balanced
        self._forecaster = DemandForecaster()

    def propose(self, snapshot: Snapshot) -> Proposal:
        """Return the hosts to wake or to put into standby, with the reasons."""
        return self.propose_from_pass(snapshot, None)

    def propose_from_pass(self, snapshot: Snapshot, balance_pass: PassResult | None) -> Proposal:
        """Return the proposal, starting from the balance pass of this turn if there is one.

        With ``foresight_s`` in the policy, the forecast learns from every snapshot.
        """
        advice = run_power_pass(
            snapshot,
            self._estimates,
            seed=self._seed,
            balanced=self._balanced,
            ahead=self._ahead(snapshot),
            balance_pass=balance_pass,
        )
        builder = PowerIntentBuilder(snapshot, self._estimates)
        automatic: list[Intent] = []
        to_approve: list[Intent] = []
        woken = {wake.host for wake in advice.wakes}
        # The wakes and moves that repair a rule run together, so one approval holds up all.
        approve_moves = bool(advice.moves or advice.repairs) and not all(
            wake.automatic for wake in advice.wakes
        )
        for wake in advice.wakes:
            (automatic if wake.automatic and not approve_moves else to_approve).append(
                builder.wake(wake)
            )
        (to_approve if approve_moves else automatic).extend(
            builder.move(move, woken) for move in advice.moves
        )
        for standby in advice.standbys:
            (automatic if standby.automatic else to_approve).extend(builder.standby(standby))
        count = "1 action needs" if len(to_approve) == 1 else f"{len(to_approve)} actions need"
        waits = f"; {count} approval" if to_approve else ""
        return Proposal(
            decider="power",
            purpose=Purpose.WAKE if advice.wakes else Purpose.SLEEP,
            intents=tuple(automatic),
            reason=f"{advice.summary}{waits}",
            gain=_gain(advice) if automatic else {},
            rejected=tuple(_rejections(advice.skipped)),
            advised=tuple(to_approve),
            all_or_nothing=bool(advice.moves),
            repairs=advice.repairs if automatic else (),
        )

    def review(self, snapshot: Snapshot, remaining: Sequence[Step]) -> str:
        """Return why the rest of a running plan should stop; empty if it should go on."""
        return why_stop(snapshot, self._estimates, remaining, self._seed)

    def _ahead(self, snapshot: Snapshot) -> Floats | None:
        """Return the forecast maximum demand of each running VM, if the policy uses a forecast."""
        ahead_s = snapshot.settings.power.foresight_s
        if not ahead_s:
            return None
        self._forecaster = self._forecaster.learn(snapshot)
        ahead = self._forecaster.ahead(snapshot, ahead_s)
        running = [vm.state is VmState.RUNNING for vm in snapshot.vms.values()]
        most: Floats = ahead.most[running]
        return most


def _gain(advice: PowerAdvice) -> dict[str, float]:
    if advice.wakes:
        return {"high_score": max(advice.before.high) - max(advice.after.high)}
    return {"watts": sum(standby.gain["watts"] for standby in advice.standbys if standby.automatic)}


def _rejections(skipped: Iterable[SkippedHost]) -> Iterator[Rejection]:
    """Yield the reasons for skipped hosts; hosts with the same reason are joined."""
    hosts_by_reason: dict[tuple[str, str], list[HostId]] = defaultdict(list)
    for host in skipped:
        hosts_by_reason[host.code, host.sentence].append(host.host)
    for (code, sentence), hosts in hosts_by_reason.items():
        yield Rejection(subject=join_names(hosts), code=code, detail=sentence)
