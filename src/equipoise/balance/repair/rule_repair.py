"""Rule repair: evacuates hosts, separates and joins VMs, and moves VMs off forbidden hosts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from equipoise.balance.advice import (
    MANDATORY_PRIORITY,
    BalanceCode,
    HostSwitchAdvice,
    IntentBuilder,
    MoveAdvice,
    Transfer,
    snapshot_after_moves,
    switch_step_id,
)
from equipoise.balance.repair.exact_repair import ExactRepair, repair_exactly
from equipoise.balance.repair.failover import failover_spares
from equipoise.balance.repair.faults import BalanceFault, build_fault, join_names
from equipoise.balance.repair.move_order import VmAssignment
from equipoise.balance.repair.placement_state import (
    PlacementProblem,
    PlacementState,
    ProblemKind,
    problem_rules,
)
from equipoise.balance.repair.repair_search import RepairSearchResult, search_repair
from equipoise.balance.repair.routes import find_routes
from equipoise.balance.rules import PlacementRules
from equipoise.capacity.ledger import Claim
from equipoise.model.action_durations import Estimates
from equipoise.model.host import Host, HostState
from equipoise.model.plan import Intent
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.plan.order import GateFilter
from equipoise.spec.rules import broken_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairResult:
    """The moves and switches that repair the rules, and the faults that remain."""

    moves: tuple[MoveAdvice, ...]
    intents: tuple[Intent, ...]
    switches: tuple[HostSwitchAdvice, ...]
    faults: tuple[BalanceFault, ...]
    repairs: tuple[RuleId, ...]
    """The continuous rules that are broken now and hold after the moves."""
    fewest: bool
    placement_state: PlacementState
    """The state after all moves."""
    reserved: tuple[tuple[HostId, Claim], ...]
    """The capacity that hosts keep free for failover."""


def repair_rules(snapshot: Snapshot, rules: PlacementRules, estimates: Estimates) -> RepairResult:
    """Return the fewest moves that repair the rules and pass the gate."""
    return _RuleRepair(snapshot, rules, estimates).run()


class _GateResult(NamedTuple):
    """The moves, switches and intents that pass the gate, and the refused ones as faults."""

    moves: list[Transfer]
    switches: list[HostSwitchAdvice]
    intents: tuple[Intent, ...]
    refused: list[BalanceFault]
    repairs: tuple[RuleId, ...]
    """The rules that the intents repair completely."""


class _RuleRepair:
    """Repairs the rules of one snapshot."""

    def __init__(self, snapshot: Snapshot, rules: PlacementRules, estimates: Estimates) -> None:
        self._snapshot, self._estimates = snapshot, estimates
        self._builder = IntentBuilder(snapshot, estimates)
        spares, bans = failover_spares(snapshot, rules)
        self._spares = [vm.id for vm in spares]
        # Spares are placed by the same search, so one solution repairs the rules and keeps the
        # failover reserve.
        self._rules = replace(rules, bans=(*rules.bans, *bans)) if bans else rules
        self._placement_state = PlacementState(snapshot, self._rules, spares)
        self._placement_state.find_problems()
        # Kept from before the search, which changes the placement state.
        self._broken = {
            problem: problem_rules(self._placement_state, problem)
            for problem in self._placement_state.problems
        }
        self._breaks: dict[VmId, RuleId] = {}
        for problem, vms in self._placement_state.problems.items():
            # One rule per VM is enough for the reason of its move. The first problem of a VM wins.
            for rule in self._broken[problem][:1]:
                for vm in vms:
                    self._breaks.setdefault(vm, rule)

    def run(self) -> RepairResult:
        search_result = search_repair(self._placement_state)
        transfers = _transfers(search_result.assignments)
        exact = self._repair_exactly(transfers)
        repairs = (*self._repaired_rules(search_result), *self._continuous(exact))
        passed = self._pass_gate(transfers, repairs)
        placement_state = self._placement_state
        return RepairResult(
            moves=tuple(map(self._move_advice, passed.moves)),
            intents=passed.intents,
            switches=tuple(passed.switches),
            faults=(
                *(build_fault(placement_state, problem) for problem in search_result.unsolved),
                *passed.refused,
                *self._sleeping_vm_faults(),
            ),
            # Without moves the plan repairs nothing, and the gate refuses a plan that promises a
            # repair and leaves the rule broken.
            repairs=passed.repairs if passed.moves else (),
            fewest=search_result.fewest,
            placement_state=placement_state,
            reserved=tuple(
                (host, placement_state.claims[vm])
                for vm in self._spares
                if (host := placement_state.host_of[vm]) is not None
            ),
        )

    def _repair_exactly(self, transfers: list[Transfer]) -> ExactRepair:
        """Let the exact planner repair what the search cannot, after the moves of the search.

        Its moves are added to ``transfers``; a VM that both move goes to its last target at once.
        """
        after = snapshot_after_moves(self._snapshot, ((move.vm, move.target) for move in transfers))
        exact = repair_exactly(after, self._rules)
        for vm, target in exact.targets.items():
            self._placement_state.place(vm, target)
            source = self._snapshot.vms[vm].host
            assert source is not None, "only running VMs migrate"
            # The two moves of a VM become one from its real host, because the step id is the same.
            transfers[:] = [move for move in transfers if move.vm != vm]
            if source != target:
                transfers.append(Transfer(vm, source, target))
        for rule, vms in exact.repaired.items():
            for vm in vms:
                self._breaks.setdefault(vm, rule)
        return exact

    def _continuous(self, exact: ExactRepair) -> tuple[RuleId, ...]:
        """Return the continuous rules that are broken now and that the exact planner repairs."""
        # The moves of the search can break a rule for the exact planner to restore. Such a rule
        # holds now, so the plan does not repair it, and the gate must judge it at every moment.
        repaired = [rule for rule in exact.repaired if rule in self._rules.continuous]
        broken = {rule for rule, _ in broken_rules(self._snapshot, repaired)} if repaired else ()
        return tuple(rule for rule in repaired if rule in broken)

    def _repaired_rules(self, search_result: RepairSearchResult) -> tuple[RuleId, ...]:
        """Return the continuous rules that the search repairs."""
        unsolved = {
            rule
            for problem in search_result.unsolved
            for rule in problem_rules(self._placement_state, problem)
        }
        broken = dict.fromkeys(rule for rules in self._broken.values() for rule in rules)
        return tuple(
            rule for rule in broken if rule in self._rules.continuous and rule not in unsolved
        )

    def _pass_gate(self, transfers: list[Transfer], repairs: tuple[RuleId, ...]) -> _GateResult:
        """Return what passes the gate; every refused move or switch becomes a fault."""
        moves = [self._builder.move(transfer) for transfer in transfers]
        switches = list(self._switches(transfers))
        intents = (*moves, *map(self._builder.switch, switches))
        # The filter builds a ledger of the whole cluster, which most passes do not need.
        gate = GateFilter(self._snapshot, repairs) if intents else None
        violations = gate.objections(intents) if gate is not None else ()
        if gate is None or not violations:
            return _GateResult(transfers, switches, intents, [], repairs)
        routed = self._route(transfers, gate, repairs)
        if routed is not None:
            return routed
        complete = _complete_repair(moves, gate) if repairs else ()
        if not complete:
            # A part of a repair is better than none, if no step of it makes the rule worse.
            gate, repairs = GateFilter(self._snapshot), ()
        accepted = {intent.id: intent for intent in complete or gate.of(moves)}
        kept = [transfer for transfer in transfers if transfer.step in accepted]
        # A host from which a move was refused is not empty, so it is not switched.
        switches = list(self._switches(kept))
        accepted_switches = gate.of(
            [self._builder.switch(switch) for switch in switches], tuple(accepted.values())
        )
        accepted |= {intent.id: intent for intent in accepted_switches}
        objections = "; ".join(
            dict.fromkeys(
                f"{violation.constraint}: {violation.detail}" for violation in violations[:3]
            )
        )
        refused = []
        for transfer in transfers:
            if transfer.step not in accepted:
                # Rebalancing goes on from this state and must see the VM where it stays.
                self._placement_state.place(transfer.vm, transfer.source)
                move = f"{transfer.vm} from {transfer.source} to {transfer.target}"
                detail = f"the gate refuses the move of {move}: {objections}"
                refused.append(
                    BalanceFault(code="gate-refuses", subject=transfer.vm, detail=detail)
                )
        for switch in switches:
            if switch_step_id(switch.host) not in accepted:
                detail = f"the gate refuses {switch.desired} for {switch.host}: {objections}"
                refused.append(
                    BalanceFault(code="gate-refuses", subject=switch.host, detail=detail)
                )
        switches = [switch for switch in switches if switch_step_id(switch.host) in accepted]
        return _GateResult(kept, switches, tuple(accepted.values()), refused, repairs)

    def _route(
        self, transfers: Sequence[Transfer], gate: GateFilter, repairs: tuple[RuleId, ...]
    ) -> _GateResult | None:
        """Find a way to the same state with VMs that are parked on another host on the way."""
        targets = {transfer.vm: transfer.target for transfer in transfers}
        legs = list(find_routes(PlacementState(self._snapshot, self._rules), targets))
        if not any(leg.parking for leg in legs):
            return None
        switches = list(self._switches(legs))
        intents = (*map(self._builder.move, legs), *map(self._builder.switch, switches))
        if gate.objections(intents):
            return None
        for leg in legs:
            self._placement_state.place(leg.vm, leg.target)
        return _GateResult(legs, switches, intents, [], repairs)

    def _move_advice(self, transfer: Transfer) -> MoveAdvice:
        vm, requested = (
            self._snapshot.vms[transfer.vm],
            self._snapshot.hosts[transfer.source].requested,
        )
        rule = self._breaks.get(transfer.vm)
        if transfer.parking:
            code = BalanceCode.FREE_CAPACITY
            reason = f"{transfer.target} takes it until another VM has left its next host"
        elif requested is not None:
            code, reason = BalanceCode.EVACUATE, f"{transfer.source} goes into {requested}"
        elif rule is not None:
            code, reason = BalanceCode.RULE, f"rule {rule} is broken on {transfer.source}"
        elif PlacementProblem(ProblemKind.OVER_RESERVED, transfer.source) in self._broken:
            code, reason = (
                BalanceCode.RULE,
                f"more is committed on {transfer.source} than it has",
            )
        else:
            code = BalanceCode.FREE_CAPACITY
            reason = f"it frees capacity on {transfer.source} for another VM"
        return MoveAdvice(
            vm=transfer.vm,
            source=transfer.source,
            target=transfer.target,
            code=code,
            priority=MANDATORY_PRIORITY,
            reason=reason,
            gain={},
            cost={
                "seconds": self._estimates.migration_of(vm, self._snapshot) / 1000,
                "memory_mib": float(vm.memory_mib),
            },
            risk={},
            after=transfer.after,
            parking=transfer.parking,
            after_parking=transfer.after_parking,
        )

    def _switches(self, moves: Iterable[Transfer]) -> Iterable[HostSwitchAdvice]:
        """Yield the switches of hosts on which only agents remain."""
        snapshot, leaving = self._snapshot, {move.vm for move in moves}
        busy = {
            host for running in snapshot.in_flight.values() for host in running.step.footprint.hosts
        }
        for host in self._hosts_to_switch():
            evacuated = [vm for vm in snapshot.residents[host.id] if not snapshot.vms[vm].agent]
            # A running action on the host could bring a VM to it after the last move.
            if host.id not in busy and leaving.issuperset(evacuated):
                assert host.requested is not None
                yield HostSwitchAdvice(host.id, host.requested, tuple(evacuated))

    def _hosts_to_switch(self) -> Iterable[Host]:
        for host in self._snapshot.hosts.values():
            if host.requested is not None and host.state is HostState.ON:
                yield host

    def _sleeping_vm_faults(self) -> Iterable[BalanceFault]:
        """Yield a fault per host to switch with a sleeping VM, which cannot move."""
        vms = self._snapshot.vms
        for host in self._hosts_to_switch():
            residents = [vms[vm] for vm in self._snapshot.residents[host.id]]
            sleeping = [vm.id for vm in residents if vm.state is VmState.SLEEPING and not vm.agent]
            if sleeping:
                verb = "sleeps" if len(sleeping) == 1 else "sleep"
                names = f"{join_names(sleeping)} {verb} there"
                yield BalanceFault(
                    code="vm-sleeping",
                    subject=host.id,
                    detail=f"{host.id} cannot go into {host.requested}: {names}",
                    unblock="resume or stop the sleeping VMs",
                )


def find_unrepaired_rules(after: Snapshot, rules: PlacementRules) -> Iterable[BalanceFault]:
    """Yield the rules that are still broken and that the search cannot repair."""
    ids = (*rules.gate_only_rules, *(rule for rule, _ in rules.failover_counts))
    for rule, why in broken_rules(after, ids) if ids else ():
        yield BalanceFault(
            code="broken-rule",
            subject=rule,
            detail=f"rule {rule} is broken ({why}), and no move is known that repairs it",
            rules=(rule,),
            unblock="repair or remove the rule; the gate refuses what makes it worse",
        )


def _complete_repair(intents: Sequence[Intent], gate: GateFilter) -> Sequence[Intent]:
    """Return intents that pass the gate together and keep the promise to repair; none if unknown.

    Only a complete repair keeps the promise, so intents cannot be tried one by one. The intents
    that the gate blames are dropped first.
    """
    remaining = list(intents)
    while remaining:
        violations = gate.objections(remaining)
        if not violations:
            break
        blamed = {violation.step for violation in violations}
        if blamed.isdisjoint(intent.id for intent in remaining):
            return ()
        remaining = [intent for intent in remaining if intent.id not in blamed]
    return remaining


def _transfers(assignments: Iterable[VmAssignment]) -> list[Transfer]:
    """Return the moves of VMs that have a host; new VMs and spares have none."""
    return [
        Transfer(assignment.vm, assignment.before, assignment.host)
        for assignment in assignments
        if assignment.before is not None
    ]
