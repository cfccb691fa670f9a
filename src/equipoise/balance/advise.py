"""One pass: mend the rules, then balance, and let nothing stand that the gate would refuse."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from equipoise.balance.advice import Advice, Advised
from equipoise.balance.dependencies import dependencies
from equipoise.balance.levelling.assess import Assessment, assess
from equipoise.balance.levelling.climber import Climber
from equipoise.balance.levelling.level import Levelled, Levelling
from equipoise.balance.mending.mend import Mended, mend, other_faults
from equipoise.balance.mending.standing import Standing
from equipoise.balance.rules import Rules, read_rules
from equipoise.balance.wishes import after_moves
from equipoise.model.estimate import Estimates
from equipoise.model.policy import Automation, BalancePolicy
from equipoise.model.quantity import VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.words import counted
from equipoise.place.imbalance import weights

OVERFULL: Final = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What came of a pass, and the state of mind it ended in, for whoever asks further."""

    snapshot: Snapshot
    advice: Advice
    state: Assessment
    """After all moves."""
    mended: Mended
    climber: Climber


def advise(
    snapshot: Snapshot, estimates: Estimates, *, seed: int = 0, alternatives: bool = False
) -> Pass:
    """What one pass recommends; with ``alternatives``, also what else it has considered.

    Soft rules about hosts are kept like hard ones if that does no harm. Otherwise they are left
    out, if the cluster is better off without them.
    """
    wishes, plain = read_rules(snapshot, wishes=True), read_rules(snapshot)
    first = _run(snapshot, wishes, estimates, seed, alternatives)
    if wishes == plain or _harm(first.advice) == 0:
        return first
    second = _run(snapshot, plain, estimates, seed, alternatives)
    return second if _harm(second.advice) < _harm(first.advice) else first


class _Left(NamedTuple):
    """A pass that was made, and for what."""

    estimates: Estimates
    seed: int
    done: Pass


_LEFT: Final[deque[_Left]] = deque(maxlen=1)


def leave(done: Pass, estimates: Estimates, seed: int) -> None:
    """Leave a pass that is done with to the next who wants the same: deciders are asked in turn."""
    _LEFT.append(_Left(estimates, seed, done))


def left_or_made(snapshot: Snapshot, estimates: Estimates, *, seed: int = 0) -> Pass:
    """What one pass recommends: one that was left, if it was made for this very snapshot.

    It is handed over, for whoever goes on with it alters the state of mind it ended in.
    """
    left = _LEFT.pop() if _LEFT else None
    if left is None or left.done.snapshot is not snapshot:
        return advise(snapshot, estimates, seed=seed)
    if (left.estimates, left.seed) == (estimates, seed):
        return left.done
    return advise(snapshot, estimates, seed=seed)


def _harm(advice: Advice) -> int:
    """How many rules stay broken, and how many hosts have to give more than they have."""
    return len(advice.faults) + advice.crowded


def _run(
    snapshot: Snapshot, rules: Rules, estimates: Estimates, seed: int, alternatives: bool
) -> Pass:
    policy = snapshot.settings.balance
    mended = mend(snapshot, rules, estimates)
    repaired = after_moves(snapshot, ((one.vm, one.target) for one in mended.moves))
    state = assess(repaired, rules, estimates)
    # What is scarce is decided at the beginning of a pass: otherwise relief would look like a loss.
    start = assess(snapshot, rules, estimates) if mended.moves else state
    before, weight = start.imbalance(), weights(start.loads())
    _hold(state, mended, {one.vm for one in mended.moves} | _newly_come(snapshot))
    chance = (seed * 1_000_003 + snapshot.version) % 2**63
    climber = Climber(state, _filling(snapshot), weight, chance)
    levelled = Levelled((), ())
    if not policy.rules_only:
        levelling = Levelling(snapshot, state, climber, estimates)
        levelled = levelling.run(mended, alternatives=alternatives)
    for one in levelled.moves if alternatives else ():  # for whoever asks further
        mended.standing.place(one.vm, one.target)
    moves = [_asked(policy, one) for one in (*mended.moves, *levelled.moves)]
    full = policy.automation is Automation.FULL
    final = after_moves(repaired, ((one.vm, one.target) for one in levelled.moves))
    after = state.imbalance(weight)
    advice = Advice(
        moves=_in_order(snapshot, rules, moves),
        switches=tuple(replace(one, automatic=full) for one in mended.switches),
        faults=(*mended.faults, *other_faults(final, rules)),
        rejected=levelled.rejected,
        mends=mended.mends,
        before=before,
        after=after,
        fewest=mended.fewest,
        crowded=int((state.loads() > OVERFULL).any(axis=1).sum()),
        summary=_summary(policy, mended, levelled, before, after),
    )
    return Pass(snapshot=snapshot, advice=advice, state=state, mended=mended, climber=climber)


def _in_order(snapshot: Snapshot, rules: Rules, moves: list[Advised]) -> tuple[Advised, ...]:
    """The moves with those they must wait for; nobody waits if nobody goes where others leave."""
    if {one.source for one in moves}.isdisjoint(one.target for one in moves):
        return tuple(moves)
    return dependencies(Standing(snapshot, rules), moves)


def _hold(state: Assessment, mended: Mended, fixed: Collection[VmId]) -> None:
    """Keep VMs where they are, and room free for what may be lost elsewhere."""
    for unit, names in enumerate(state.members) if fixed else ():
        if any(name in fixed for name in names):
            state.field.movable[unit] = 0
    row = {host: place for place, host in enumerate(state.host_ids)}
    for host, needs in mended.reserved:
        state.field.host_reserved[row[host], :2] += needs[:2]


def _newly_come(snapshot: Snapshot) -> set[VmId]:
    """Those that moved a moment ago, and have not shown yet what that was worth."""
    since_ms = snapshot.at_ms - 1000 * snapshot.settings.balance.stable_s_min
    return {vm for vm, move in snapshot.moves.items() if move.ended_ms > since_ms}


def _filling(snapshot: Snapshot) -> BalancePolicy:
    """The policy, with more moves while hosts that were woken are to be filled: VMs wait for it."""
    policy = snapshot.settings.balance
    since_ms = snapshot.at_ms - 1000 * policy.filling_s
    for host, last in snapshot.switches.items():
        if last.on and not last.failed and last.ended_ms > since_ms and host in snapshot.hosts:
            return policy.but(moves_per_host=max(policy.moves_per_host, policy.moves_to_fill))
    return policy


def _asked(policy: BalancePolicy, advised: Advised) -> Advised:
    """Note whether it may be done without asking."""
    return advised if policy.moves_by_itself(advised.vm) else replace(advised, automatic=False)


def _summary(
    policy: BalancePolicy, mended: Mended, levelled: Levelled, before: float, after: float
) -> str:
    parts = []
    if mended.moves:
        parts.append(f"{counted(len(mended.moves), 'move')} for the rules")
    if mended.switches:
        parts.append(f"{counted(len(mended.switches), 'host')} to be switched")
    if policy.rules_only:
        parts.append(f"rules only: an imbalance of {after:.3f} is left as it is")
    elif levelled.moves:
        parts.append(f"the imbalance is {before:.3f} and would be {after:.3f}")
    elif after <= policy.imbalance_target:
        parts.append(f"the imbalance is {after:.3f}, the target is not exceeded")
    elif levelled.rejected:
        first = levelled.rejected[0]
        parts.append(f"the imbalance is {after:.3f}; given up: {first.subject} ({first.detail})")
    else:
        parts.append(f"the imbalance is {after:.3f}, and no move is worth its cost")
    return "; ".join(parts)
