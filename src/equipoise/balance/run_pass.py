"""One balance pass: repair the rules, relieve overloaded hosts, rebalance.

What the gate refuses is dropped.

A what-if runs the same pass on a cluster with hosts removed or failed, or with VMs added.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from equipoise.balance.advice import (
    BalanceAdvice,
    BalanceCode,
    HostSwitchAdvice,
    MoveAdvice,
    snapshot_after_moves,
)
from equipoise.balance.overload_report import report_overload, shortage_phrase
from equipoise.balance.placement import PlacementAdvice, place_vms
from equipoise.balance.rebalance.assess import Assessment, assess
from equipoise.balance.rebalance.cost_benefit import migration_cost_host_s
from equipoise.balance.rebalance.greedy import GreedySearch
from equipoise.balance.rebalance.rebalancer import Rebalancer, RebalanceResult
from equipoise.balance.rebalance.rest import (
    Resting,
    balance_moves_max,
    find_resting,
    has_spare_host,
)
from equipoise.balance.repair.faults import BalanceFault
from equipoise.balance.repair.move_order import order_moves
from equipoise.balance.repair.placement_state import PlacementState
from equipoise.balance.repair.rule_repair import RepairResult, find_unrepaired_rules, repair_rules
from equipoise.balance.rules import PlacementRules, is_host_preference, read_rules
from equipoise.capacity.arrays import claim_row
from equipoise.capacity.imbalance import contended_lately, contended_resources, resource_weights
from equipoise.capacity.overload import DEMANDED
from equipoise.capacity.waterfill import Floats
from equipoise.model.action_durations import Estimates
from equipoise.model.event import HostFailed
from equipoise.model.host import HostState, RequestedHostState
from equipoise.model.policy.balance import Automation, BalancePolicy
from equipoise.model.quantity import HostId, VmId, format_count
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import snapshot_after_actions, with_contention
from equipoise.model.vm import VmState


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
    resting: Resting
    """What takes part in no move for now."""
    withheld: bool = False
    """Whether an even load had no value, because power could put a host into standby."""

    def fits(self, snapshot: Snapshot, estimates: Estimates, seed: int) -> bool:
        """Whether a pass with these arguments would give this result."""
        # Identity of the snapshot, not equality: to compare 300,000 VMs would cost more than it
        # saves.
        same_input = (self.estimates, self.seed) == (estimates, seed)
        return self.snapshot is snapshot and same_input


def run_balance_pass(
    snapshot: Snapshot,
    estimates: Estimates,
    *,
    seed: int = 0,
    alternatives: bool = False,
    powered: bool = False,
) -> PassResult:
    """Run one pass; with ``alternatives``, each move also lists the targets it was chosen from.

    ``powered`` says that a power decider runs beside this one. While it is about to put a host into
    standby, VMs move only where that meets demand.

    The first run treats soft rules about hosts as hard ones. If it leaves a rule broken or a host
    overloaded, a second run ignores the soft rules, and the better of both results is returned.
    """
    with_soft, plain = read_rules(snapshot, with_soft=True), read_rules(snapshot)
    # Every run measures with the soft rules, so that the next pass reads what this one promises.
    options = _PassOptions(with_soft, estimates, seed, alternatives, powered)
    first = _run_with_rules(snapshot, with_soft, options)
    # Without soft rules both runs are the same.
    if with_soft == plain or (not first.advice.faults and not first.advice.crowded):
        return first
    second = _run_with_rules(snapshot, plain, options)
    if _unresolved(second) >= _unresolved(first):
        return first
    ignored = tuple(rule.id for rule in snapshot.settings.rules if is_host_preference(rule))
    return replace(second, advice=replace(second.advice, ignored=ignored))


def measure_imbalance(snapshot: Snapshot, estimates: Estimates) -> float:
    """Return the imbalance of a snapshot as every pass reads it: this is what advice promises.

    The weights are those of its own loads and of what was contended lately. Soft rules about hosts
    count as hard ones.
    """
    state = assess(snapshot, read_rules(snapshot, with_soft=True), estimates)
    return state.imbalance(_weights(snapshot, state))


def measure_fall(snapshot: Snapshot, after: Snapshot, estimates: Estimates) -> float:
    """Return by how much the imbalance falls between two snapshots, in the weights of the first."""
    rules = read_rules(snapshot, with_soft=True)
    start, end = assess(snapshot, rules, estimates), assess(after, rules, estimates)
    weight = _weights(snapshot, start)
    return start.imbalance(weight) - end.imbalance(weight)


def _unresolved(result: PassResult) -> tuple[int, float]:
    """Return how many faults and overloaded hosts remain, and how large the overload is."""
    state = result.assessment
    capacity = state.arrays.capacity[state.hosts, : len(DEMANDED)]
    overload = float((state.overload() / capacity).sum())
    return len(result.advice.faults) + result.advice.crowded, round(overload, 9)


class _PassOptions(NamedTuple):
    measured: PlacementRules
    """The rules for the promised imbalance."""
    estimates: Estimates
    seed: int
    alternatives: bool
    powered: bool


def _run_with_rules(snapshot: Snapshot, rules: PlacementRules, options: _PassOptions) -> PassResult:
    measured, estimates, seed, alternatives, powered = options
    policy = snapshot.settings.balance
    repair = repair_rules(snapshot, rules, estimates)
    repaired = snapshot_after_moves(snapshot, ((move.vm, move.target) for move in repair.moves))
    state = assess(repaired, rules, estimates)
    # Which resource is scarce is decided before any move. Otherwise a move that ends a scarcity
    # would change the weights, and the imbalance before and after could not be compared.
    start = assess(snapshot, rules, estimates) if repair.moves else state
    weight = _weights(snapshot, start)
    before, contended = start.imbalance(weight), _contended_now(start)
    resting = _apply_rest(snapshot, state, repair)
    withheld = powered and has_spare_host(snapshot, state)
    if withheld:
        state = state.without_evenness()
    search = _new_search(snapshot, state, weight, seed)
    rebalanced = _rebalance(snapshot, state, search, repair, options)
    mandatory = _with_cost(state, search, repair.moves) if alternatives else repair.moves
    moves = [_mark_automatic(policy, move) for move in (*mandatory, *rebalanced.moves)]
    overload = report_overload(snapshot, state, search, explain=alternatives)
    crowded = int((state.overload() > 0.0).any(axis=1).sum())
    final = snapshot_after_moves(repaired, ((move.vm, move.target) for move in rebalanced.moves))
    gain = before - state.imbalance(weight)
    switches = _mark_switches(policy, repair.switches)
    # The next pass weighs by the loads that it finds, and by what is contended now.
    after = state.imbalance(_weights(with_contention(snapshot, contended), state))
    if switches or rules is not measured:
        # A switch takes capacity from the cluster, and with it the entitlements change.
        end = snapshot_after_actions(final, (switch.action for switch in switches))
        before = measure_imbalance(snapshot, estimates)
        after = measure_imbalance(with_contention(end, contended), estimates)
    parts = _summary(policy, repair, rebalanced, crowded > 0, (before, after, gain))
    rests = resting.rejections(with_moved=after > policy.imbalance_target)
    advice = BalanceAdvice(
        moves=_order_moves(snapshot, rules, moves),
        switches=switches,
        faults=(*repair.faults, *find_unrepaired_rules(final, rules)),
        rejected=(*rebalanced.rejected, *rests),
        repairs=repair.repairs,
        before=before,
        after=after,
        gain=gain,
        fewest=repair.fewest,
        contended=contended,
        overload=overload,
        crowded=crowded,
        summary="; ".join((*_overload_phrases(crowded, overload), *parts)),
    )
    return PassResult(
        snapshot=snapshot,
        estimates=estimates,
        seed=seed,
        advice=advice,
        assessment=state,
        repair=repair,
        search=search,
        resting=resting,
        withheld=withheld,
    )


def _apply_rest(snapshot: Snapshot, state: Assessment, repair: RepairResult) -> Resting:
    """Make immovable what rests and what the repair has moved; return what rests."""
    resting = find_resting(snapshot, state, balance_moves_max(snapshot.settings.balance))
    _pin_units(state, repair, {move.vm for move in repair.moves} | resting.vms.keys())
    _close_links(state, resting)
    return resting


def _new_search(snapshot: Snapshot, state: Assessment, weight: Floats, seed: int) -> GreedySearch:
    # Each version samples other hosts, so that hosts which one pass does not pair meet in a later
    # one. A large prime keeps neighbouring seeds apart.
    pass_seed = (seed * 1_000_003 + snapshot.version) % 2**63
    return GreedySearch(state, _policy_after_wake(snapshot), weight, pass_seed)


def _rebalance(
    snapshot: Snapshot,
    state: Assessment,
    search: GreedySearch,
    repair: RepairResult,
    options: _PassOptions,
) -> RebalanceResult:
    if snapshot.settings.balance.rules_only:
        return RebalanceResult((), ())
    rebalancer = Rebalancer(snapshot, state, search, options.estimates)
    rebalanced = rebalancer.run(repair, alternatives=options.alternatives)
    if options.alternatives:  # explanations read the final placement
        for move in rebalanced.moves:
            repair.placement_state.place(move.vm, move.target)
    return rebalanced


def _order_moves(
    snapshot: Snapshot, rules: PlacementRules, moves: list[MoveAdvice]
) -> tuple[MoveAdvice, ...]:
    """Return the moves, each with the moves it waits for."""
    if any(move.parking for move in moves):
        return tuple(moves)  # the search has ordered them, and the gate has seen this order
    # A move can only wait for another that leaves its target host.
    if {move.source for move in moves}.isdisjoint(move.target for move in moves):
        return tuple(moves)
    return order_moves(PlacementState(snapshot, rules), moves)


def _with_cost(
    state: Assessment, search: GreedySearch, moves: Sequence[MoveAdvice]
) -> Sequence[MoveAdvice]:
    """Return the moves of a repair with their cost in the unit of the other moves."""
    if not moves:
        return moves
    row = {host: number for number, host in enumerate(state.host_ids)}
    unit = {vm: unit for unit, names in enumerate(state.members) for vm in names}
    priced = []
    for move in moves:
        cost = migration_cost_host_s(state.arrays, search.totals, unit[move.vm], row[move.target])
        priced.append(replace(move, cost={**move.cost, "host_s": round(cost, 3)}))
    return priced


def _pin_units(state: Assessment, repair: RepairResult, pinned_ids: Collection[VmId]) -> None:
    """Make units with pinned VMs immovable, and reserve the capacity of the failover reserve."""
    for unit, names in enumerate(state.members) if pinned_ids else ():
        if any(name in pinned_ids for name in names):
            state.arrays.movable[unit] = 0
    row = {host: number for number, host in enumerate(state.host_ids)}
    for host, claim in repair.reserved:
        state.arrays.ledger.committed[row[host]] += claim_row(claim, state.claimed)


def _contended_now(state: Assessment) -> tuple[str, ...]:
    contended = contended_resources(state.loads()).tolist()
    return tuple(name for name, is_ in zip(state.resources, contended, strict=True) if is_)


def _weights(snapshot: Snapshot, state: Assessment) -> Floats:
    """Return the weights that a pass on the snapshot gives the loads of a state."""
    lately = contended_lately(snapshot.contended, state.resources, snapshot.at_ms)
    return resource_weights(state.loads(), lately)


def _close_links(state: Assessment, resting: Resting) -> None:
    """Let no VM move to a host whose migration link waits."""
    for row, host in enumerate(state.host_ids) if resting.links else ():
        if host in resting.links:
            state.arrays.open[row] = 0


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


def _mark_switches(
    policy: BalancePolicy, switches: Sequence[HostSwitchAdvice]
) -> tuple[HostSwitchAdvice, ...]:
    """Return the switches, marked as automatic if the policy requires no approval."""
    full = policy.automation is Automation.FULL
    return tuple(replace(switch, automatic=full) for switch in switches)


def _mark_automatic(policy: BalancePolicy, move: MoveAdvice) -> MoveAdvice:
    """Return the move, marked as not automatic if the policy requires an approval."""
    return move if policy.moves_by_itself(move.vm) else replace(move, automatic=False)


def _summary(
    policy: BalancePolicy,
    repair: RepairResult,
    rebalanced: RebalanceResult,
    crowded: bool,
    figures: tuple[float, float, float],
) -> list[str]:
    """Return what the pass does and why it does no more, without the overload that remains.

    The figures are the imbalance before and after, and the gain.
    """
    before, after, gain = figures
    parts = []
    if repair.moves:
        parts.append(f"{format_count(len(repair.moves), 'move')} for the rules")
    if repair.switches:
        parts.append(f"{format_count(len(repair.switches), 'host')} to switch")
    relief = sum(move.code is not BalanceCode.BALANCE for move in rebalanced.moves)
    evened = len(rebalanced.moves) > relief
    if relief:
        parts.append(f"{format_count(relief, 'move')} for overloaded hosts")
    if policy.rules_only:
        parts.append(f"the policy is rules_only; the imbalance stays {after:.3f}")
    elif evened and after < before:
        parts.append(f"the imbalance falls from {before:.3f} to {after:.3f}")
    elif evened and gain > 0.0:
        # The moves end a scarcity, and the other resource then counts more than before.
        parts.append(
            f"the imbalance falls by {gain:.3f}; it is {before:.3f} now and {after:.3f} then, "
            "because a scarcity ends and the weights change"
        )
    elif after <= policy.imbalance_target and not crowded:
        parts.append(f"the imbalance is {after:.3f}, within the target")
    elif rebalanced.rejected:
        first = rebalanced.rejected[0]
        parts.append(f"the imbalance is {after:.3f}; rejected: {first.subject} ({first.detail})")
    elif relief or crowded:
        parts.append(f"the imbalance is {after:.3f}")
    else:
        parts.append(f"the imbalance is {after:.3f}; no move is worth its cost")
    return parts


def _overload_phrases(crowded: int, overload: Sequence[BalanceFault]) -> list[str]:
    """Return what the cluster lacks, and how many hosts stay overloaded."""
    short = [fault for fault in overload if fault.code != "host-overloaded"]
    phrases = [shortage_phrase(fault) for fault in short]
    if crowded:
        verb = "stays" if crowded == 1 else "stay"
        phrases.append(f"{format_count(crowded, 'host')} {verb} overloaded")
    return phrases


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
    # Read before the failure is applied, because it removes the VMs from their hosts.
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
    snapshot = replace(snapshot, hosts=snapshot.hosts.but(removed))
    # Lost VMs restart before new ones start: they hold the first claim on the capacity.
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
    return replace(snapshot, hosts=snapshot.hosts.but(hosts), vms=snapshot.vms.but(vms))


def _joined(first: PlacementAdvice, second: PlacementAdvice) -> PlacementAdvice:
    """Return both advices as one."""
    return PlacementAdvice(
        placed=first.placed + second.placed,
        moves=first.moves + second.moves,
        wakes=first.wakes + second.wakes,
        faults=first.faults + second.faults,
        intents=first.intents + second.intents,
        warnings=first.warnings + second.warnings,
    )
