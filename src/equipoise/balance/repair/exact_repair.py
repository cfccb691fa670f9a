"""Exact repair: the moves that repair rules which only the specification can judge.

The repair search knows a few kinds of rule. The exact planner repairs every other rule of the
library, and every rule that an operator wrote, within a budget of solver work. It also finds the
moves that make room for a new VM under such rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from equipoise.balance.advice import snapshot_after_moves
from equipoise.balance.rules import PlacementRules, pinned_vms
from equipoise.errors import InvalidInput
from equipoise.model.action import Boot, Migrate
from equipoise.model.host import HostState
from equipoise.model.inventory import Inventory
from equipoise.model.problem import (
    DesiredHostState,
    DesiredVmState,
    ObjectiveMeasure,
    PlanningProblem,
)
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, Rule, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.spec.rules import broken_rules, rules_about_placement

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
    # No search for moves that cannot exist: a reserve in percent, or a number of hosts that are on,
    # is the same wherever VMs run.
    broken = rules_about_placement(snapshot, broken)
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


def place_exactly(
    snapshot: Snapshot, rules: PlacementRules, vm: VmId, refusing: Collection[RuleId]
) -> dict[VmId, HostId] | None:
    """Return the host of a new VM and the targets of the moves that it needs; without a plan, none.

    The ``refusing`` rules hold after it, also if they are broken now.
    """
    continuous = rules.continuous.intersection(refusing)
    broken = {rule for rule, _ in broken_rules(snapshot, continuous)} if continuous else set()
    # A continuous rule that holds now must hold on the way too.
    repair = [rule for rule in refusing if rule not in continuous or rule in broken]
    return _solve(snapshot, rules, repair, vm)


def _solve(
    snapshot: Snapshot, rules: PlacementRules, repair: Sequence[RuleId], start: VmId | None = None
) -> dict[VmId, HostId] | None:
    """Return the hosts to which VMs move or start for these rules, or nothing without a plan."""
    # OR-Tools takes half a second to import, and most passes have nothing to repair exactly.
    from equipoise.plan.exact.solve import solve  # noqa: PLC0415
    from equipoise.plan.exact.solver import SearchBudget  # noqa: PLC0415

    problem = _problem(snapshot, rules, repair, start)
    pairs = len(snapshot.vms) * len(snapshot.hosts)
    budget = SearchBudget(work=WORK_MAX, explains=False)
    try:
        optimise = pairs <= OPTIMISE_PAIRS_MAX
        result = solve(problem, budget, repair=True, optimise=optimise)
    except InvalidInput:  # a rule that cannot be judged: the gate reports it
        return None
    if result.plan is None:
        return None
    actions = [step.action for step in result.plan.steps]
    targets = {action.vm: action.target for action in actions if isinstance(action, Migrate | Boot)}
    # Rules are repaired by moves; no other VM starts, and no VM or host stops.
    is_allowed = len(targets) == len(actions) and all(
        action.vm == start for action in actions if isinstance(action, Boot)
    )
    return targets if is_allowed else None


def _problem(
    snapshot: Snapshot, rules: PlacementRules, repair: Sequence[RuleId], start: VmId | None
) -> PlanningProblem:
    """Return the planning problem: the rules to repair, those that hold now, and what is pinned."""
    every = [rule.id for rule in snapshot.settings.rules if rule.hard]
    broken = {rule for rule, _ in broken_rules(snapshot, every)}
    kept: list[Rule] = []
    for rule in snapshot.settings.rules:
        if not rule.hard:
            continue
        if rule.id in repair:
            # The planner finds the final state. The gate checks the moments in between, with the
            # rule among those that the plan repairs.
            kept.append(rule.but(continuous=False))
        elif rule.id not in broken:
            kept.append(rule)
    kept += _implicit_rules(snapshot, rules, start)
    hosts = tuple(host.but(requested=None) for host in snapshot.hosts.values())
    cluster: Inventory = snapshot.inventory().but(hosts=hosts, rules=tuple(kept))
    return PlanningProblem(
        cluster=cluster,
        vms={} if start is None else {start: DesiredVmState.RUNNING},
        hosts={
            host.id: _STEADY_STATE[host.state]
            for host in snapshot.hosts.values()
            if host.state in _STEADY_STATE
        },
        moves_max=1,
        objective=(ObjectiveMeasure.MIGRATIONS, ObjectiveMeasure.MOVED_MEMORY),
    )


def _implicit_rules(
    snapshot: Snapshot, rules: PlacementRules, start: VmId | None
) -> Iterable[Rule]:
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
        coming = running if start is None else running | {start}
        others = tuple(vm for vm in snapshot.vms if vm in coming and vm not in residents)
        if others:  # no VM moves to a host that is about to leave or that the policy closes
            yield StayOff(id=RuleId(f"closed-{number}"), vms=others, hosts=(host.id,))
