"""Checks of power advice before it is proposed: rules after standby, and the gate.

``StandbyRuleCheck`` judges the rules that the arrays do not know. ``PowerGateCheck`` asks the gate
about the whole plan, together with what balance does in the same pass.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from equipoise.balance.advice import HostSwitchAdvice, IntentBuilder, Transfer, snapshot_after_moves
from equipoise.balance.repair.move_order import passes_in_any_order
from equipoise.balance.repair.placement_state import PlacementState
from equipoise.balance.repair.rule_repair import repair_rules
from equipoise.balance.rules import PlacementRules, read_rules
from equipoise.model.action_durations import Estimates
from equipoise.model.host import HostState
from equipoise.model.plan import Intent
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.plan.order import GateFilter
from equipoise.power.advice import (
    PowerCode,
    PowerIntentBuilder,
    SkippedHost,
    StandbyAdvice,
    WakeAdvice,
)
from equipoise.power.wake import snapshot_with_hosts_on
from equipoise.power.whatif_state import WhatIfState
from equipoise.spec.rules import broken_rules, worsened_rules


class StandbyRuleCheck:
    """Judges the rules that the arrays do not know, after hosts went into standby.

    Constraints such as a quorum are judged with the specification. A failover reserve is judged
    with a repair: all VMs that may be lost must be able to restart.
    """

    def __init__(
        self, snapshot: Snapshot, estimates: Estimates, switches: Sequence[HostSwitchAdvice] = ()
    ) -> None:
        self._snapshot, self._estimates = snapshot, estimates
        self._switched = {switch.host: HostState(switch.desired) for switch in switches}
        """The hosts that balance switches in this pass."""
        self._rules: PlacementRules = read_rules(snapshot)
        self._ids = (
            *self._rules.gate_only_rules,
            *(rule for rule, _ in self._rules.failover_counts),
        )
        self._faults_now: int | None = None

    def find_broken_rule(self, moves: Mapping[VmId, HostId], in_standby: Collection[HostId]) -> str:
        """Return which rule would break after the moves and standbys; empty if none would."""
        if not self._ids or not in_standby:
            return ""
        after = self._after(moves, in_standby)
        # A rule that is broken already is no reason to keep a host on, unless the standby makes it
        # worse.
        for rule, why in worsened_rules(self._snapshot, after, self._ids):
            return f"rule {rule} would break: {why}"
        if self._rules.failover_counts:
            if self._faults_now is None:
                self._faults_now = self._count_faults(self._snapshot)
            if self._count_faults(after) > self._faults_now:
                return "the VMs of a failed host could not restart without it"
        return ""

    def _count_faults(self, snapshot: Snapshot) -> int:
        result = repair_rules(snapshot, self._rules, self._estimates)
        # Moves count too: a reserve that holds only after further moves does not hold when the host
        # goes down.
        return len(result.faults) + len(result.moves)

    def _after(self, moves: Mapping[VmId, HostId], in_standby: Collection[HostId]) -> Snapshot:
        """Return the snapshot after the moves and standbys."""
        states = self._switched | dict.fromkeys(in_standby, HostState.STANDBY)
        hosts = {
            host.id: host.but(state=states.get(host.id, host.state))
            for host in self._snapshot.hosts.values()
        }
        return replace(snapshot_after_moves(self._snapshot, moves.items()), hosts=FrozenMap(hosts))


class CheckedWakes(NamedTuple):
    """The wakes that pass the gate, and the moves and repairs of the same plan."""

    wakes: tuple[WakeAdvice, ...]
    moves: tuple[Transfer, ...] = ()
    repairs: tuple[RuleId, ...] = ()
    skipped: tuple[SkippedHost, ...] = ()


class PowerGateCheck:
    """Checks power advice with the gate, together with the intents of balance."""

    def __init__(self, whatif: WhatIfState, estimates: Estimates) -> None:
        self._whatif, self._estimates = whatif, estimates
        self._snapshot = whatif.snapshot
        self._builder = PowerIntentBuilder(whatif.snapshot, estimates)

    def standbys(
        self, standbys: Sequence[StandbyAdvice]
    ) -> tuple[tuple[StandbyAdvice, ...], list[SkippedHost]]:
        """Return the standbys that pass with all their evacuations, and the refused hosts."""
        if not standbys:
            return (), []
        rules = read_rules(self._snapshot)
        placement_state = PlacementState(self._snapshot, rules)
        placement_state.find_problems()
        evacuations = [
            (move.vm, move.target) for standby in standbys for move in standby.evacuations
        ]
        # The fast path judges moves only, not what the power-offs take away from a reserve or a
        # switched host.
        simple = not rules.failover_counts and not self._whatif.switches
        if simple and passes_in_any_order(placement_state, [*self._whatif.moves, *evacuations]):
            return tuple(standbys), []
        gate = GateFilter(self._snapshot, self._whatif.repairs)
        # Automatic standbys must pass without those that need approval, which may never run.
        first = self._bisect(
            gate, self._balance_intents(), [standby for standby in standbys if standby.automatic]
        )
        accepted = [
            *self._balance_intents(),
            *(intent for standby in first for intent in self._builder.standby(standby)),
        ]
        later = self._bisect(
            gate, accepted, [standby for standby in standbys if not standby.automatic]
        )
        kept = (*first, *later)
        refused = [standby for standby in standbys if standby not in kept]
        skipped = []
        for standby in refused:
            why = self._refusal(gate, [*self._balance_intents(), *self._builder.standby(standby)])
            skipped.append(SkippedHost(standby.host, PowerCode.GATE, why))
        return kept, skipped

    def wakes(self, wakes: Sequence[WakeAdvice], moves: Sequence[Transfer]) -> CheckedWakes:
        """Return the wakes that pass; the moves for rules pass with them or not at all."""
        # Without rules the gate has nothing to say about a host that powers on.
        if not wakes or not self._snapshot.settings.rules:
            return CheckedWakes(tuple(wakes))
        hosts = {wake.host for wake in wakes}
        repairs = self._repaired_rules(wakes, moves)
        evacuations = [self._builder.move(move, hosts) for move in moves]
        intents = [self._builder.wake(wake) for wake in wakes]
        gate = GateFilter(self._snapshot, repairs)
        if not gate.objections([*self._balance_intents(), *intents, *evacuations]):
            return CheckedWakes(tuple(wakes), tuple(moves), repairs)
        # Second attempt without the moves for rules: more hosts on are of use even if a rule stays
        # broken.
        gate = GateFilter(self._snapshot, self._whatif.repairs)
        kept = {intent.id for intent in gate.of(intents, self._balance_intents())}
        skipped = tuple(
            SkippedHost(
                wake.host, PowerCode.GATE, self._refusal(gate, [*self._balance_intents(), intent])
            )
            for wake, intent in zip(wakes, intents, strict=True)
            if intent.id not in kept
        )
        passed = zip(wakes, intents, strict=True)
        return CheckedWakes(
            tuple(wake for wake, intent in passed if intent.id in kept), skipped=skipped
        )

    def _repaired_rules(
        self, wakes: Sequence[WakeAdvice], moves: Sequence[Transfer]
    ) -> tuple[RuleId, ...]:
        """Return the continuous rules that are broken now and hold after the plan."""
        rules = [rule for rule in self._snapshot.settings.rules if rule.hard and rule.continuous]
        ids = [rule.id for rule in rules]
        broken = dict(broken_rules(self._snapshot, ids)) if ids else {}
        if not broken:
            return ()
        evacuations = {**dict(self._whatif.moves), **{move.vm: move.target for move in moves}}
        after = snapshot_after_moves(
            snapshot_with_hosts_on(self._snapshot, [wake.host for wake in wakes]),
            evacuations.items(),
        )
        still = dict(broken_rules(after, tuple(broken)))
        return tuple(rule for rule in broken if rule not in still)

    def _balance_intents(self) -> list[Intent]:
        """Return the intents of balance in this pass."""
        builder, vms = IntentBuilder(self._snapshot, self._estimates), self._snapshot.vms
        moves = [
            builder.move(Transfer(vm, vms[vm].host or to, to)) for vm, to in self._whatif.moves
        ]
        return [*moves, *map(builder.switch, self._whatif.switches)]

    def _bisect(
        self, gate: GateFilter, accepted: Sequence[Intent], standbys: Sequence[StandbyAdvice]
    ) -> tuple[StandbyAdvice, ...]:
        """Return as many standbys as pass together with the accepted intents; found by halving."""
        intents = [intent for standby in standbys for intent in self._builder.standby(standby)]
        if not standbys or not gate.objections([*accepted, *intents]):
            return tuple(standbys)
        if len(standbys) == 1:
            return ()
        half = len(standbys) // 2
        # Each half is judged with what was accepted before it, so the result passes as a whole.
        first = self._bisect(gate, accepted, standbys[:half])
        more = [intent for standby in first for intent in self._builder.standby(standby)]
        return (*first, *self._bisect(gate, [*accepted, *more], standbys[half:]))

    def _refusal(self, gate: GateFilter, intents: Sequence[Intent]) -> str:
        """Return the first objection of the gate in words."""
        for violation in gate.objections(intents)[:1]:
            return f"the gate refuses it: {violation.constraint}: {violation.detail}"
        # Alone it would pass: only the combination is refused.
        return "the gate refuses it together with other hosts"
