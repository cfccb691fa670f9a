"""One power pass as a proposal: wake needed hosts or, if none is, put hosts into standby."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from equipoise.balance.advice import BalanceAdvice
from equipoise.balance.rebalance.assess import assess
from equipoise.balance.rebalance.forecast import DemandForecaster
from equipoise.balance.repair.faults import join_names
from equipoise.balance.rules import read_rules
from equipoise.balance.run_pass import PassResult
from equipoise.capacity.waterfill import Floats
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.action_durations import Estimates
from equipoise.model.plan import Intent, Proposal, Purpose, Rejection, Step
from equipoise.model.quantity import HostId, format_count
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.power.advice import (
    PowerAdvice,
    PowerCode,
    PowerIntentBuilder,
    SkippedHost,
    StandbyAdvice,
    WakeAdvice,
)
from equipoise.power.candidates import exceeds_power_cap, standby_candidates
from equipoise.power.gate_check import PowerGateCheck
from equipoise.power.standby import StandbySearch
from equipoise.power.wake import WakeSearch
from equipoise.power.whatif_state import WhatIfState, build_whatif_state


def run_power_pass(
    snapshot: Snapshot,
    estimates: Estimates,
    *,
    seed: int = 0,
    balanced: bool = True,
    ahead: Floats | None = None,
    balance_pass: PassResult | None = None,
) -> PowerAdvice:
    """Run one pass: the hosts to wake, or else the hosts to put into standby.

    ``balanced`` says whether a balance decider runs beside this one; ``balance_pass`` is its
    result, if it has run already. ``ahead`` is the forecast demand of each running VM, CPU and
    memory, in the order of the snapshot.
    """
    whatif = build_whatif_state(
        snapshot,
        estimates,
        seed=seed,
        balanced=balanced,
        ahead=ahead,
        balance_pass=balance_pass,
    )
    before = whatif.scores()
    wake_search = WakeSearch(whatif, estimates, seed)
    # Wakes are tried and undone: the gate may refuse them, and then the standby search starts from
    # the present state.
    with whatif.what_if():
        wake_search.run()
        after = whatif.scores()
    standby_search = StandbySearch(whatif, estimates)
    gate = PowerGateCheck(whatif, estimates)
    woken = gate.wakes(wake_search.wakes, wake_search.moves)
    if woken.wakes:
        candidates, standby_search.skipped = standby_candidates(whatif)
        standby_search.skipped += [
            SkippedHost(host, PowerCode.BUSY, "hosts wake in this pass, so none goes into standby")
            for host in candidates
        ]
    else:
        standby_search.run()
        after = whatif.scores()
    standbys, refused = gate.standbys(standby_search.standbys)
    # Later entries win: what the gate says is more exact than what the search assumed.
    skipped = {
        entry.host: entry
        for entry in (*wake_search.skipped, *woken.skipped, *standby_search.skipped, *refused)
    }
    return PowerAdvice(
        standbys=standbys,
        wakes=woken.wakes,
        moves=woken.moves,
        repairs=woken.repairs,
        skipped=tuple(skipped[host] for host in snapshot.hosts if host in skipped),
        before=before,
        after=after,
        summary=_summary(standbys, woken.wakes, list(skipped.values())),
    )


def _summary(
    standbys: Sequence[StandbyAdvice], wakes: Sequence[WakeAdvice], skipped: Sequence[SkippedHost]
) -> str:
    """Return the advice in one sentence."""
    if wakes:
        return f"{_named([wake.host for wake in wakes])} should wake: {wakes[0].reason}"
    if standbys:
        moves = sum(len(standby.evacuations) for standby in standbys)
        watts = sum(standby.gain["watts"] for standby in standbys)
        hosts = _named([standby.host for standby in standbys])
        after = format_count(moves, "move")
        return f"{hosts} can go into standby after {after}, which saves about {watts:.0f} W"
    kept = [entry for entry in skipped if entry.code is not PowerCode.NOT_NEEDED]
    return f"no host to switch; {kept[0].host}: {kept[0].sentence}" if kept else "no host to switch"


def _named(hosts: Sequence[HostId]) -> str:
    return f"{len(hosts)} hosts ({join_names(hosts)})" if len(hosts) > 1 else str(hosts[0])


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
        return self.propose_with_advice(snapshot, balance_pass)[0]

    def learn(self, snapshot: Snapshot) -> None:
        """Learn the demand of a snapshot of the past, for the forecast."""
        self._forecaster = self._forecaster.learn(snapshot)

    def propose_with_advice(
        self, snapshot: Snapshot, balance_pass: PassResult | None
    ) -> tuple[Proposal, PowerAdvice]:
        """Return the proposal and the advice behind it."""
        advice = run_power_pass(
            snapshot,
            self._estimates,
            seed=self._seed,
            balanced=self._balanced,
            ahead=self._ahead(snapshot),
            balance_pass=balance_pass,
        )
        return self._proposal(snapshot, advice), advice

    def _proposal(self, snapshot: Snapshot, advice: PowerAdvice) -> Proposal:
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
        return too_busy_for_standby(snapshot, self._estimates, remaining) or hosts_to_wake_first(
            snapshot, self._estimates, remaining, self._seed
        )

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


def hosts_to_wake_first(
    snapshot: Snapshot, estimates: Estimates, remaining: Sequence[Step], seed: int
) -> str:
    """Return the hosts that should wake before a long plan ends; empty if none should."""
    # To stop it would delay the very hosts that are needed.
    if any(isinstance(step.action, PowerOn) for step in remaining):
        return ""  # the plan wakes hosts itself
    whatif = WhatIfState(
        snapshot, assess(snapshot, read_rules(snapshot), estimates), BalanceAdvice()
    )
    wake_search = WakeSearch(whatif, estimates, seed)
    wake_search.run()
    switches = snapshot.switches
    # A host whose last wake failed may fail again, so no plan is stopped for it.
    reliable = [
        wake
        for wake in wake_search.wakes
        if wake.host not in switches or not switches[wake.host].power_on_failed
    ]
    hosts = [wake.host for wake in reliable if wake.automatic]
    return f"{join_names(hosts)} should wake first: {reliable[0].reason}" if hosts else ""


def too_busy_for_standby(
    snapshot: Snapshot, estimates: Estimates, remaining: Sequence[Step]
) -> str:
    """Return why the remaining standbys of a plan should not run; empty if they should.

    Finished steps stay as they are. The remaining steps are tried with the demand of now.
    """
    standby_hosts = [step.action.host for step in remaining if isinstance(step.action, PowerOff)]
    hosts = snapshot.hosts
    going = [host for host in standby_hosts if host in hosts and hosts[host].requested is None]
    if not going:
        return ""
    whatif = WhatIfState(snapshot, assess(snapshot, read_rules(snapshot), estimates))
    # Below the cap comes before utilisation, so the standbys go on.
    if exceeds_power_cap(whatif):
        return ""
    before = whatif.scores()
    unit_of = {vm: unit for unit, vms in enumerate(whatif.state.members) for vm in vms}
    evacuations = [step.action for step in remaining if isinstance(step.action, Migrate)]
    targets = {
        unit_of[move.vm]: whatif.row[move.target]
        for move in evacuations
        if move.vm in unit_of and move.target in whatif.row
    }
    whatif.move_units(
        np.array(list(targets), dtype=np.int64), np.array(list(targets.values()), np.int64)
    )
    for host in going:
        whatif.close(whatif.row[host])
    if not before.is_high and not whatif.scores().is_high:
        return ""
    part = f"{snapshot.settings.power.high:.0%}"
    names = f"{len(going)} more hosts" if len(going) > 1 else f"{going[0]}"
    return f"demand has risen: without {names}, other hosts would exceed {part} utilisation"
