"""One balance pass: repair the rules, then rebalance, and drop what the gate refuses.

A what-if runs the same pass on a cluster with hosts removed or failed, or with VMs added.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from equipoise.balance.advice import BalanceAdvice, MoveAdvice, snapshot_after_moves
from equipoise.balance.placement import PlacementAdvice, place_vms
from equipoise.balance.rebalance.assess import Assessment, assess
from equipoise.balance.rebalance.greedy import GreedySearch
from equipoise.balance.rebalance.rebalancer import Rebalancer, RebalanceResult
from equipoise.balance.repair.move_order import order_moves
from equipoise.balance.repair.placement_state import PlacementState
from equipoise.balance.repair.rule_repair import RepairResult, find_unrepaired_rules, repair_rules
from equipoise.balance.rules import PlacementRules, read_rules
from equipoise.capacity.arrays import claim_row
from equipoise.capacity.imbalance import resource_weights
from equipoise.model.estimate import Estimates
from equipoise.model.event import HostFailed
from equipoise.model.host import HostState, RequestedHostState
from equipoise.model.policy import Automation, BalancePolicy
from equipoise.model.quantity import HostId, VmId, format_count
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState

OVERLOADED: Final = 1 + 1e-9
"""A load above this is more than the host has; the margin covers rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassResult:
    """The advice of a pass, and the state in which the search ended.

    A caller that goes on from ``assessment`` works on ``assessment.copy()``, so that several
    callers can share one result.
    """

    snapshot: Snapshot
    estimates: Estimates
    seed: int
    advice: BalanceAdvice
    assessment: Assessment
    """The arrays after all moves of the advice."""
    repair: RepairResult
    search: GreedySearch

    def fits(self, snapshot: Snapshot, estimates: Estimates, seed: int) -> bool:
        """Whether a pass with these arguments would give this result."""
        same_input = (self.estimates, self.seed) == (estimates, seed)
        return self.snapshot is snapshot and same_input


def run_balance_pass(
    snapshot: Snapshot, estimates: Estimates, *, seed: int = 0, alternatives: bool = False
) -> PassResult:
    """Run one pass; with ``alternatives``, each move also lists the targets it was chosen from.

    The first run treats soft rules about hosts as hard ones. If it leaves a rule broken or a host
    overloaded, a second run ignores the soft rules, and the better of both results is returned.
    """
    with_soft, plain = read_rules(snapshot, with_soft=True), read_rules(snapshot)
    first = _run_with_rules(snapshot, with_soft, estimates, seed, alternatives)
    if with_soft == plain or _count_unresolved(first.advice) == 0:
        return first
    second = _run_with_rules(snapshot, plain, estimates, seed, alternatives)
    return second if _count_unresolved(second.advice) < _count_unresolved(first.advice) else first


def _count_unresolved(advice: BalanceAdvice) -> int:
    """Return how many faults remain plus how many hosts are overloaded."""
    return len(advice.faults) + advice.crowded


def _run_with_rules(
    snapshot: Snapshot, rules: PlacementRules, estimates: Estimates, seed: int, alternatives: bool
) -> PassResult:
    policy = snapshot.settings.balance
    repair = repair_rules(snapshot, rules, estimates)
    repaired = snapshot_after_moves(snapshot, ((move.vm, move.target) for move in repair.moves))
    state = assess(repaired, rules, estimates)
    # Which resource is scarce is decided before any move. Otherwise a move that ends a scarcity
    # would change the weights, and the imbalance before and after could not be compared.
    start = assess(snapshot, rules, estimates) if repair.moves else state
    before, weight = start.imbalance(), resource_weights(start.loads())
    _pin_units(state, repair, {move.vm for move in repair.moves} | _recently_moved(snapshot))
    pass_seed = (seed * 1_000_003 + snapshot.version) % 2**63
    search = GreedySearch(state, _policy_after_wake(snapshot), weight, pass_seed)
    rebalanced = RebalanceResult((), ())
    if not policy.rules_only:
        rebalancer = Rebalancer(snapshot, state, search, estimates)
        rebalanced = rebalancer.run(repair, alternatives=alternatives)
    for move in rebalanced.moves if alternatives else ():  # explanations read the final placement
        repair.placement_state.place(move.vm, move.target)
    moves = [_mark_automatic(policy, move) for move in (*repair.moves, *rebalanced.moves)]
    full = policy.automation is Automation.FULL
    final = snapshot_after_moves(repaired, ((move.vm, move.target) for move in rebalanced.moves))
    after = state.imbalance(weight)
    advice = BalanceAdvice(
        moves=_order_moves(snapshot, rules, moves),
        switches=tuple(replace(switch, automatic=full) for switch in repair.switches),
        faults=(*repair.faults, *find_unrepaired_rules(final, rules)),
        rejected=rebalanced.rejected,
        repairs=repair.repairs,
        before=before,
        after=after,
        fewest=repair.fewest,
        crowded=int((state.loads() > OVERLOADED).any(axis=1).sum()),
        summary=_summary(policy, repair, rebalanced, before, after),
    )
    return PassResult(
        snapshot=snapshot,
        estimates=estimates,
        seed=seed,
        advice=advice,
        assessment=state,
        repair=repair,
        search=search,
    )


def _order_moves(
    snapshot: Snapshot, rules: PlacementRules, moves: list[MoveAdvice]
) -> tuple[MoveAdvice, ...]:
    """Return the moves, each with the moves it waits for."""
    # A move can only wait for another that leaves its target host.
    if {move.source for move in moves}.isdisjoint(move.target for move in moves):
        return tuple(moves)
    return order_moves(PlacementState(snapshot, rules), moves)


def _pin_units(state: Assessment, repair: RepairResult, pinned_ids: Collection[VmId]) -> None:
    """Make units with pinned VMs immovable, and reserve the capacity of the failover reserve."""
    for unit, names in enumerate(state.members) if pinned_ids else ():
        if any(name in pinned_ids for name in names):
            state.arrays.movable[unit] = 0
    row = {host: number for number, host in enumerate(state.host_ids)}
    for host, claim in repair.reserved:
        state.arrays.ledger.committed[row[host]] += claim_row(claim, state.claimed)


def _recently_moved(snapshot: Snapshot) -> set[VmId]:
    """Return the VMs whose last migration ended less than ``stable_s_min`` ago."""
    since_ms = snapshot.at_ms - 1000 * snapshot.settings.balance.stable_s_min
    return {vm for vm, move in snapshot.moves.items() if move.ended_ms > since_ms}


def _policy_after_wake(snapshot: Snapshot) -> BalancePolicy:
    """Return the policy, with more moves per host for a while after a host was powered on.

    A host that was woken for load is empty. With the usual limit it would fill too slowly.
    """
    policy = snapshot.settings.balance
    since_ms = snapshot.at_ms - 1000 * policy.filling_s
    for host, switch in snapshot.switches.items():
        if (
            switch.on
            and not switch.failed
            and switch.ended_ms > since_ms
            and host in snapshot.hosts
        ):
            return policy.but(moves_per_host=max(policy.moves_per_host, policy.moves_to_fill))
    return policy


def _mark_automatic(policy: BalancePolicy, move: MoveAdvice) -> MoveAdvice:
    """Return the move, marked as not automatic if the policy requires an approval."""
    return move if policy.moves_by_itself(move.vm) else replace(move, automatic=False)


def _summary(
    policy: BalancePolicy,
    repair: RepairResult,
    rebalanced: RebalanceResult,
    before: float,
    after: float,
) -> str:
    parts = []
    if repair.moves:
        parts.append(f"{format_count(len(repair.moves), 'move')} for the rules")
    if repair.switches:
        parts.append(f"{format_count(len(repair.switches), 'host')} to switch")
    if policy.rules_only:
        parts.append(f"the policy is rules_only; the imbalance stays {after:.3f}")
    elif rebalanced.moves:
        parts.append(f"the imbalance falls from {before:.3f} to {after:.3f}")
    elif after <= policy.imbalance_target:
        parts.append(f"the imbalance is {after:.3f}, within the target")
    elif rebalanced.rejected:
        first = rebalanced.rejected[0]
        parts.append(f"the imbalance is {after:.3f}; rejected: {first.subject} ({first.detail})")
    else:
        parts.append(f"the imbalance is {after:.3f}; no move is worth its cost")
    return "; ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfResult:
    """The pass after the change, and the restarts of the VMs that were lost."""

    done: PassResult
    restarts: PlacementAdvice
    unplaced: tuple[VmId, ...]
    """The VMs without a host, and the VMs that cannot leave a removed host."""


def run_whatif(
    snapshot: Snapshot,
    estimates: Estimates,
    *,
    remove: Sequence[HostId] = (),
    fail: Sequence[HostId] = (),
    new: Sequence[VmId] = (),
    seed: int = 0,
) -> WhatIfResult:
    """Remove and fail hosts, start lost and new VMs, then run a balance pass."""
    lost_vms = [
        vm
        for host in fail
        for vm in snapshot.residents[host]
        if snapshot.vms[vm].state is VmState.RUNNING and not snapshot.vms[vm].agent
    ]
    for host in fail:
        snapshot = transition.apply(snapshot, HostFailed(at_ms=snapshot.at_ms, host=host))
    removed = {
        host: snapshot.hosts[host].but(requested=RequestedHostState.MAINTENANCE)
        for host in remove
        if snapshot.hosts[host].state is HostState.ON
    }
    snapshot = replace(snapshot, hosts=FrozenMap({**snapshot.hosts, **removed}))
    restarts = place_vms(snapshot, lost_vms, estimates, known=True)
    after = _after_placement(snapshot, restarts)
    starts = place_vms(after, new, estimates)
    after = _after_placement(after, starts)
    result = run_balance_pass(after, estimates, seed=seed, alternatives=True)
    leaving = {move.vm for move in result.advice.moves}
    staying = [
        vm
        for host in remove
        for vm in after.residents[host]
        if vm not in leaving and not after.vms[vm].agent
    ]
    unplaced = [vm for vm in (*lost_vms, *new) if after.vms[vm].host is None]
    return WhatIfResult(
        done=result, restarts=_joined(restarts, starts), unplaced=(*unplaced, *staying)
    )


def _after_placement(snapshot: Snapshot, placement: PlacementAdvice) -> Snapshot:
    """Return the snapshot after the moves, power-ons and starts of a placement."""
    vms = {move.vm: snapshot.vms[move.vm].but(host=move.target) for move in placement.moves}
    for start in placement.placed:
        vms[start.vm] = snapshot.vms[start.vm].but(state=VmState.RUNNING, host=start.host)
    hosts = {host: snapshot.hosts[host].but(state=HostState.ON) for host in placement.wakes}
    return replace(
        snapshot,
        hosts=FrozenMap({**snapshot.hosts, **hosts}),
        vms=FrozenMap({**snapshot.vms, **vms}),
    )


def _joined(first: PlacementAdvice, second: PlacementAdvice) -> PlacementAdvice:
    """Return both advices as one."""
    return PlacementAdvice(
        placed=first.placed + second.placed,
        moves=first.moves + second.moves,
        wakes=first.wakes + second.wakes,
        faults=first.faults + second.faults,
        intents=first.intents + second.intents,
    )
