"""Exact repair: the moves that repair rules which only the specification can judge.

The repair search knows a few kinds of rule. The exact planner repairs every other rule of the
library, and every rule that an operator wrote, within a budget of solver work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from equipoise.balance.advice import snapshot_after_moves
from equipoise.balance.pinned import pinned_vms
from equipoise.balance.rules import PlacementRules
from equipoise.errors import InvalidInput
from equipoise.model.action import Migrate
from equipoise.model.host import HostState
from equipoise.model.inventory import Inventory
from equipoise.model.problem import DesiredHostState, ObjectiveMeasure, PlanningProblem
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, Rule, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.spec.rules import broken_rules

WORK_MAX: Final = 4.0
"""The solver work of one call, in the solver's own unit: with a clock, runs would not repeat."""
OPTIMISE_PAIRS_MAX: Final = 2_000
"""Up to how many pairs of a VM and a host the fewest moves are searched for, not just some."""

_STEADY_STATE: Final[Mapping[HostState, DesiredHostState]] = {
    HostState.ON: DesiredHostState.ONLINE,
    HostState.STANDBY: DesiredHostState.OFFLINE,
    HostState.MAINTENANCE: DesiredHostState.MAINTENANCE,
}


class ExactRepair(NamedTuple):
    """Moves that repair rules, and the rules that they repair."""

    targets: Mapping[VmId, HostId]
    repaired: Mapping[RuleId, tuple[VmId, ...]]
    """Each repaired rule, with the VMs that move for it."""


NO_REPAIR: Final = ExactRepair({}, {})


def repair_exactly(snapshot: Snapshot, rules: PlacementRules) -> ExactRepair:
    """Return moves after which the broken gate-only rules of ``snapshot`` hold.

    First all of them are repaired together. Where that is impossible, each is tried on its own, so
    that one rule that no move can repair does not keep the others broken.
    """
    ids = rules.gate_only_rules
    broken = tuple(dict.fromkeys(rule for rule, _ in broken_rules(snapshot, ids))) if ids else ()
    if not broken:
        return NO_REPAIR
    together = _solve(snapshot, rules, broken)
    if together is not None or len(broken) == 1:
        moving = tuple(together or ())
        return ExactRepair(together or {}, {rule: moving for rule in broken if together})
    targets: dict[VmId, HostId] = {}
    repaired: dict[RuleId, tuple[VmId, ...]] = {}
    current = snapshot
    for rule in broken:
        found = _solve(current, rules, (rule,))
        if found is not None:
            targets |= found
            repaired[rule] = tuple(found)
            current = snapshot_after_moves(current, found.items())
    return ExactRepair(targets, repaired)


def _solve(
    snapshot: Snapshot, rules: PlacementRules, repair: Sequence[RuleId]
) -> dict[VmId, HostId] | None:
    """Return the targets of the moves that repair these rules, or nothing without a plan."""
    # OR-Tools takes half a second to import, and most passes have nothing to repair exactly.
    from equipoise.plan.exact.solve import solve  # noqa: PLC0415
    from equipoise.plan.exact.solver import SearchBudget  # noqa: PLC0415

    problem = _problem(snapshot, rules, repair)
    pairs = len(snapshot.vms) * len(snapshot.hosts)
    budget = SearchBudget(work=WORK_MAX)
    try:
        result = solve(problem, budget, repair=True, optimise=pairs <= OPTIMISE_PAIRS_MAX)
    except InvalidInput:  # a rule that cannot be judged: the gate reports it
        return None
    if result.plan is None:
        return None
    actions = [step.action for step in result.plan.steps]
    if not all(isinstance(action, Migrate) for action in actions):
        return None  # the repair of rules moves VMs; it starts, ends and switches nothing
    return {action.vm: action.target for action in actions if isinstance(action, Migrate)}


def _problem(
    snapshot: Snapshot, rules: PlacementRules, repair: Sequence[RuleId]
) -> PlanningProblem:
    """Return the planning problem: the rules to repair, those that hold now, and what is pinned."""
    every = [rule.id for rule in snapshot.settings.rules if rule.hard]
    broken = {rule for rule, _ in broken_rules(snapshot, every)}
    kept: list[Rule] = []
    for rule in snapshot.settings.rules:
        if not rule.hard:
            continue
        if rule.id in repair:
            # A continuous rule that is broken at the start admits no plan. The gate checks the
            # moments in between, with the rule among those that the plan repairs.
            kept.append(rule.but(continuous=False))
        elif rule.id not in broken:
            kept.append(rule)
    kept += _implicit_rules(snapshot, rules)
    hosts = tuple(host.but(requested=None) for host in snapshot.hosts.values())
    cluster: Inventory = snapshot.inventory().but(hosts=hosts, rules=tuple(kept))
    return PlanningProblem(
        cluster=cluster,
        hosts={
            host.id: _STEADY_STATE[host.state]
            for host in snapshot.hosts.values()
            if host.state in _STEADY_STATE
        },
        moves_max=1,
        objective=(ObjectiveMeasure.MIGRATIONS, ObjectiveMeasure.MOVED_MEMORY),
    )


def _implicit_rules(snapshot: Snapshot, rules: PlacementRules) -> Iterable[Rule]:
    """Yield what balancing respects without a rule: pins, closed hosts, fault-tolerant pairs."""
    declared = {rule.id for rule in snapshot.settings.rules}
    running = {vm.id for vm in snapshot.vms.values() if vm.state is VmState.RUNNING}
    for number, vm in enumerate(pinned_vms(snapshot)):
        home = snapshot.vms[vm].host
        if vm in running and home is not None:
            yield StayWithin(id=RuleId(f"pinned-{number}"), vms=(vm,), hosts=(home,))
    for number, group in enumerate(rules.apart):
        if group.rule not in declared:
            yield KeepApart(id=RuleId(f"apart-{number}"), vms=group.vms)
    overrides = snapshot.settings.balance.hosts
    for number, host in enumerate(snapshot.hosts.values()):
        is_closed = host.requested is not None or host.id in overrides
        if not is_closed or host.state is not HostState.ON:
            continue
        residents = set(snapshot.residents[host.id])
        others = tuple(vm for vm in snapshot.vms if vm in running and vm not in residents)
        if others:  # no VM moves to a host that is about to leave or that the policy closes
            yield StayOff(id=RuleId(f"closed-{number}"), vms=others, hosts=(host.id,))
