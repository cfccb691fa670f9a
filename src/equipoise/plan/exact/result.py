"""The result of planning: a plan, or a minimal set of conditions that conflict.

``smallest_conflict`` searches the conflict of a whole task. For tasks that are too large for one
model, ``subproblems_of`` and ``capacity_shortage`` find proofs in a part of the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations, islice, pairwise
from typing import Any, Final, NamedTuple

from equipoise.capacity.ledger import RESOURCES, claimed_resources, host_limits, vm_claim
from equipoise.model.host import HostState
from equipoise.model.plan import Plan
from equipoise.model.problem.problem import HOST_ACTIONS
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import DisjointSets, FrozenMap
from equipoise.model.vm import VmState
from equipoise.plan.exact.narrowing import as_desired, misplaced_vms
from equipoise.plan.exact.task import (
    HostCondition,
    PlanCondition,
    PlanningTask,
    RuleCondition,
    VmCondition,
    relevant_vms,
)
from equipoise.spec.evaluate.explain import format_value, texts_in


class PlanningStatus(StrEnum):
    """How the search ended."""

    SOLVED = "solved"
    UNSAT = "unsat"
    TIMEOUT = "timeout"


class ConflictReason(NamedTuple):
    """One reason of a conflict: a stable code and a sentence."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class ConditionConflict:
    """Conditions that cannot be satisfied together; without any one of them, the others can."""

    conditions: tuple[PlanCondition, ...]
    why: tuple[str, ...]
    """The reasons as sentences."""
    minimal: bool = True
    """Whether it is proved that none of them can be left out."""
    codes: tuple[str, ...] = ()
    """The codes of the reasons, each once; keys of ``equipoise.errors.CODES``."""

    @classmethod
    def of(
        cls,
        conditions: Iterable[PlanCondition],
        reasons: Sequence[ConflictReason],
        *,
        minimal: bool,
    ) -> ConditionConflict:
        """Return the conflict of some conditions, with its reasons."""
        codes = dict.fromkeys(reason.code for reason in reasons)
        why = tuple(reason.text for reason in reasons)
        return cls(tuple(conditions), why, minimal, tuple(codes))


@dataclass(frozen=True, slots=True)
class PlanningResult:
    """A plan, or the conflict that excludes one."""

    status: PlanningStatus
    plan: Plan | None = None
    optimal: bool = False
    """Whether it is proved that no plan is better."""
    goals: tuple[int, ...] = ()
    """The cost of the plan by goal, the most important first."""
    bounds: tuple[int | None, ...] = ()
    """A lower bound of the cost of any plan, by goal."""
    broken: tuple[RuleCondition, ...] = ()
    """The soft rules that the plan violates."""
    unrepaired: tuple[RuleId, ...] = ()
    """The rules that were broken before the plan and that no plan can repair."""
    overload: int | None = None
    """The demand above the capacity of hosts in the final state, in thousandths of a host.

    ``None`` without a plan, or if no VM demands anything.
    """
    conflict: ConditionConflict | None = None
    build_s: float = 0.0
    solve_s: float = 0.0


EXHAUSTIVE_MAX: Final = 5
"""Largest conflict of which every subset is tried."""
FeasibilityTest = Callable[[Sequence[PlanCondition]], bool | None]
"""Whether some conditions can be satisfied together; ``None`` if the budget ends before."""


def smallest_conflict(
    conditions: Sequence[PlanCondition], possible: FeasibilityTest
) -> tuple[list[PlanCondition], bool]:
    """Return a minimal set of conditions in conflict, and whether its minimality is proved.

    Without a rule more is possible; but without a desired state less may be possible: a VM that no
    condition stops stays. So feasibility is not monotone, and the result of the halving search is
    tried once more, subset by subset.
    """
    search = _ConflictSearch(possible)
    conflict = (
        search.by_halving([], [], list(conditions)) if len(conditions) > 1 else list(conditions)
    )
    if search.may_be_feasible(conflict):
        conflict = list(conditions)
    conflict = search.minimise(conflict)
    return conflict, not search.unsure


class _ConflictSearch:
    def __init__(self, possible: FeasibilityTest) -> None:
        self._possible = possible
        self.unsure = False

    def by_halving(
        self,
        ground: list[PlanCondition],
        added: list[PlanCondition],
        conditions: list[PlanCondition],
    ) -> list[PlanCondition]:
        """Return the conditions that are needed for a conflict on top of the ground.

        This is QuickXplain: a half that is not needed is never divided further.
        """
        # The ground is in conflict without these conditions, so none of them is needed.
        if added and not self.may_be_feasible(ground):
            return []
        if len(conditions) == 1:
            return conditions
        half = len(conditions) // 2
        first, second = conditions[:half], conditions[half:]
        of_second = self.by_halving([*ground, *first], first, second)
        of_first = self.by_halving([*ground, *of_second], of_second, first)
        return of_first + of_second

    def minimise(self, conditions: list[PlanCondition]) -> list[PlanCondition]:
        """Return the smallest subset in conflict; of many conditions, one without a spare one."""
        if len(conditions) <= EXHAUSTIVE_MAX:
            for size in range(len(conditions)):
                for subset in combinations(conditions, size):
                    if not self.may_be_feasible(list(subset)):
                        return list(subset)
            return conditions
        for index in range(len(conditions)):
            rest = [*conditions[:index], *conditions[index + 1 :]]
            if not self.may_be_feasible(rest):
                return self.minimise(rest)
        return conditions

    def may_be_feasible(self, conditions: list[PlanCondition]) -> bool:
        """Whether some conditions can be satisfied together, or it is unknown."""
        if not conditions:
            return True  # without conditions the empty plan is a solution
        feasible = self._possible(conditions)
        self.unsure = self.unsure or feasible is None
        return feasible is not False


def describe_conflict(
    conditions: Sequence[PlanCondition], facts: Sequence[ConflictReason]
) -> tuple[ConflictReason, ...]:
    """Return the reasons of a conflict: host counts, the conditions, and the given facts."""
    return (*_host_counts(conditions), *map(_describe, conditions), *facts)


def _describe(condition: PlanCondition) -> ConflictReason:
    if isinstance(condition, VmCondition | HostCondition):
        return ConflictReason("condition-conflict", condition.title)
    requirement = condition.requirement
    constraint = requirement.specification.constraints[requirement.name]
    arguments = "; ".join(
        f"{name} = {format_value(value)}" for name, value in requirement.arguments.items()
    )
    doc = " ".join(constraint.doc.split()).removesuffix(".")
    when = "at every moment" if requirement.continuous else "at the end"
    rule = f"{condition.rule.id}, {requirement.name}({arguments}), {when}"
    return ConflictReason("condition-conflict", f"{rule}: {doc}" if doc else rule)


def _host_counts(conditions: Sequence[PlanCondition]) -> Iterator[ConflictReason]:
    """Yield the rules that need more hosts than other rules leave."""
    rules = [condition for condition in conditions if isinstance(condition, RuleCondition)]
    apart = [rule for rule in rules if rule.requirement.library_name in _APART]
    within = [rule for rule in rules if rule.requirement.library_name in _WITHIN]
    for condition in apart:
        vms = condition.requirement.arguments["vs"]
        fences = [rule for rule in within if vms & rule.named_vms]
        # Only if each VM of the group is fenced, no host outside the fences can help.
        if not fences or not all(any(vm in fence.named_vms for fence in fences) for vm in vms):
            continue
        allowed = frozenset().union(*(_hosts_left(vm, fences) for vm in vms))
        if len(allowed) < len(vms):
            needs = f"{condition.rule.id} needs {len(vms)} hosts for {format_value(vms)}"
            names = ", ".join(fence.rule.id for fence in fences)
            verb = "leave" if len(fences) > 1 else "leaves"
            text = f"{needs}, {names} {verb} {len(allowed)}: {format_value(allowed)}"
            yield ConflictReason("too-few-hosts", text)


def _hosts_left(vm: str, fences: Sequence[RuleCondition]) -> frozenset[str]:
    sets = [fence.requirement.arguments["ns"] for fence in fences if vm in fence.named_vms]
    return frozenset.intersection(*sets)


_APART = frozenset({"Spread", "KeepApart"})
_WITHIN = frozenset({"Fence", "MustRunOn"})


PLACEMENTS_MAX: Final = 500_000
"""Budget of placements, VMs times hosts, over all parts together."""


def subproblems_of(task: PlanningTask) -> Iterator[PlanningTask]:
    """Yield the parts of a task in which something has to happen, the smallest first.

    A part is a set of VMs that rules about these VMs alone connect. Rules about other VMs, and VMs
    in no part, are left out.
    """
    if task.referenced_times_ms is not None:
        return  # a rule about times may need actions of other VMs
    affected = misplaced_vms(task, as_desired(task)) | task.vm_conditions.keys()
    conditions = _by_group(task)
    kinds = _kinds_of_host(task)
    parts = [vms for vms in conditions if not vms.isdisjoint(affected)]
    budget = PLACEMENTS_MAX
    for vms in sorted(parts, key=lambda part: (len(part), sorted(part))):
        if any(task.snapshot.vms[vm].agent for vm in vms):
            continue  # the state of an agent depends on its host
        part = _subproblem(task, vms, conditions[vms], kinds)
        budget -= len(vms) * len(part.snapshot.hosts)
        if budget < 0:
            return
        yield part


def _kinds_of_host(task: PlanningTask) -> list[list[HostId]]:
    """Return the hosts grouped by everything but their names."""
    groups: dict[Any, list[HostId]] = {}
    given = task.problem.durations
    switching = [given[kind].of for kind in HOST_ACTIONS if kind in given]
    for host in task.snapshot.hosts.values():
        kind = (
            *(host.state, host.cores),
            *(frozenset(host_limits(host).items()), frozenset(host.labels.items())),
            *(of.get(host.id) for of in switching),
            # Hosts of a network differ by their links.
            host.id if task.problem.network is not None else None,
        )
        groups.setdefault(kind, []).append(host.id)
    return list(groups.values())


def _by_group(task: PlanningTask) -> dict[frozenset[VmId], list[PlanCondition]]:
    """Return the conditions about VMs, by the groups of VMs that they connect."""
    about: list[tuple[PlanCondition, frozenset[VmId]]] = []
    for condition in task.hard:
        if isinstance(condition, VmCondition):
            about.append((condition, frozenset({condition.vm})))
        elif isinstance(condition, RuleCondition):
            vms = relevant_vms(condition.requirement)
            if vms:
                about.append((condition, vms & task.snapshot.vms.keys()))
    groups = DisjointSets({vm for _, vms in about for vm in vms})
    for _, vms in about:
        for vm, other in pairwise(vms):
            groups.join(vm, other)
    members = {first: frozenset(vms) for first, vms in groups.classes().items()}
    by_group: dict[frozenset[VmId], list[PlanCondition]] = {}
    for condition, vms in about:
        # All VMs of a condition are in one group, so any of them finds it.
        for vm in sorted(vms)[:1]:
            by_group.setdefault(members[groups.find(vm)], []).append(condition)
    return by_group


def _subproblem(
    task: PlanningTask,
    vms: frozenset[VmId],
    conditions: Iterable[PlanCondition],
    kinds: Iterable[list[HostId]],
) -> PlanningTask:
    """Return the task of some VMs alone, with as many equal hosts as these can ever visit."""
    whole = task.snapshot
    rules = (condition for condition in conditions if isinstance(condition, RuleCondition))
    # Every name in an argument: names of VMs and labels do no harm.
    named = {
        HostId(name)
        for rule in rules
        for value in rule.requirement.arguments.values()
        for name in texts_in(value)
    }
    named |= {host for vm in vms if (host := whole.vms[vm].host) is not None}
    about = [
        condition for host in sorted(named) for condition in task.host_conditions.get(host, ())
    ]
    # Equal hosts are interchangeable: more of them than the VMs can visit change nothing.
    visits = len(vms) * task.problem.moves_max
    others = (islice((host for host in kind if host not in named), visits) for kind in kinds)
    kept = named.union(*others)
    snapshot = Snapshot(
        version=whole.version,
        at_ms=whole.at_ms,
        hosts=FrozenMap({host: whole.hosts[host] for host in whole.hosts if host in kept}),
        vms=FrozenMap({vm: whole.vms[vm] for vm in whole.vms if vm in vms}),
        settings=whole.settings,
    )
    return replace(task, snapshot=snapshot, conditions=(*conditions, *about), known_parts=None)


def capacity_shortage(task: PlanningTask) -> ConditionConflict | None:
    """Return a conflict of conditions that need more of a resource than all hosts have together."""
    for resource in claimed_resources(task.snapshot):
        conflict = _shortage_of(task, resource)
        if conflict is not None:
            return conflict
    return None


def _shortage_of(task: PlanningTask, resource: str) -> ConditionConflict | None:
    available, removing = _final_capacity(task, resource)
    needed, arriving = 0, dict[VmId, int]()
    for vm in task.snapshot.vms.values():
        conditions = task.vm_conditions.get(vm.id)
        ends = conditions[0].state if conditions else vm.state
        if ends is VmState.RUNNING and not vm.agent:
            need = vm_claim(vm).get(resource, 0)
            if vm.state is VmState.RUNNING:
                needed += need
            elif need:
                arriving[vm.id] = need
    conditions_in_conflict: list[PlanCondition] = [*removing]
    # The largest arrivals first, so that few conditions show the shortage.
    for name, need in sorted(arriving.items(), key=lambda arrival: (-arrival[1], arrival[0])):
        if needed > available:
            break
        needed += need
        conditions_in_conflict += task.vm_conditions[name]
    if needed <= available:
        return None
    is_named = not any(resource == of_host.label for of_host in RESOURCES)
    what = f"of {resource}" if is_named else resource
    reason = f"all VMs together need {needed:,} {what}; all hosts together have {available:,}"
    reasons = (ConflictReason("no-capacity", reason),)
    return ConditionConflict.of(conditions_in_conflict, reasons, minimal=False)


def _final_capacity(task: PlanningTask, resource: str) -> tuple[int, list[HostCondition]]:
    """Return how much of a resource remains at the end, and the conditions that remove some of it.

    A host that is overfull from the beginning may stay so.
    """
    available, removing = 0, list[HostCondition]()
    loads = _loads(task, resource)
    for host in task.snapshot.hosts.values():
        conditions = task.host_conditions.get(host.id, [])
        ends = conditions[0].state if conditions else host.state
        # An overfull host counts with its load, so that the bound stays valid.
        most = max(host_limits(host).get(resource, 0), loads.get(host.id, 0))
        if ends is HostState.ON or (ends is HostState.STANDBY and not conditions):
            available += most
        elif most:
            removing += conditions
    return available, removing


def _loads(task: PlanningTask, resource: str) -> Mapping[HostId, int]:
    loads: dict[HostId, int] = {}
    for vm in task.snapshot.vms.values():
        if vm.host is not None and vm.state is VmState.RUNNING:
            loads[vm.host] = loads.get(vm.host, 0) + vm_claim(vm).get(resource, 0)
    return loads
