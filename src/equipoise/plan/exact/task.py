"""A planning task: a problem as conditions that can be dropped one by one, and a search scope."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Final

from equipoise.capacity.overload import demand_per_vm
from equipoise.model.host import HostState, RequestedHostState
from equipoise.model.problem import (
    DesiredHostState,
    DesiredVmState,
    ObjectiveMeasure,
    PlanningProblem,
)
from equipoise.model.problem.problem import ObjectiveTerm
from equipoise.model.quantity import HostId, ResourceName, RuleId, VmId
from equipoise.model.rule import Rule, Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.spec.evaluate.cells import FormulaCell, TrackingView
from equipoise.spec.evaluate.explain import texts_in
from equipoise.spec.evaluate.view import HOST_RESOURCES, EvaluationContext, ReadSet, StateView
from equipoise.spec.language.syntax import Call, Number, Term, calls_in, names_in, subterms
from equipoise.spec.language.vocabulary import SETS, canonical_name
from equipoise.spec.requirement import Requirement
from equipoise.spec.rules import requirement_per_rule
from equipoise.spec.specification import Specification

_VM_FUNCTIONS: Final = frozenset(
    {"host", "runs", "vmState", "cons", "demand", "label", "pool", "tenant", "agent"}
)
"""Functions of a VM whose value changes only when an action changes that VM."""
_STATELESS_FUNCTIONS: Final = frozenset(
    {"capa", "card", "sum", "largest", "range", "lists", "actions", "kind", "source", "target"}
    | {"begin", "end"}
)
"""Functions whose value for the same arguments is the same at every moment of a plan."""


def relevant_vms(requirement: Requirement) -> frozenset[VmId] | None:
    """Return the VMs whose actions can change a requirement; ``None`` if any action can.

    A formula that reads only its own VMs, which its arguments name, changes only when one of them
    does. So the planner need not judge it after every action of other VMs.
    """
    if not _is_about_its_arguments(requirement.specification, requirement.name):
        return None
    about_vms = _vm_parameters(requirement.specification, requirement.name)
    return frozenset(map(VmId, texts_in(tuple(requirement.arguments[name] for name in about_vms))))


@lru_cache(maxsize=512)
def _vm_parameters(owner: Specification, name: str) -> tuple[str, ...]:
    """Return the parameters of a constraint that may be VMs."""
    parameters = owner.constraints[name].parameters
    return tuple(
        parameter.name
        for parameter in parameters
        if "vms" in map(canonical_name, names_in(parameter.domain))
    )


@lru_cache(maxsize=512)
def _is_about_its_arguments(owner: Specification, name: str) -> bool:
    if not owner.calls(name) <= _VM_FUNCTIONS | _STATELESS_FUNCTIONS:
        return False
    formula = owner.constraints[name].formula
    # A formula over all VMs or hosts depends on more than its arguments.
    if any(canonical_name(used) in SETS for used in names_in(formula)):
        return False
    called = ((owner.owner(function), function) for function in calls_in(formula))
    return all(
        declares is None or _is_about_its_arguments(declares, function)
        for declares, function in called
    )


@dataclass(slots=True, eq=False)
class RequirementPart:
    """A formula that must hold for a condition to be met, and its value before the plan."""

    term: Term
    names: Mapping[str, Any]
    cell: FormulaCell | None = None
    holds: bool = True
    reads: ReadSet | None = None
    """What it has read; ``None`` if unknown, as for a formula about the plan itself."""

    def is_touched(self, vms: Set[VmId], hosts: Set[HostId]) -> bool:
        """Whether it may change if only these VMs and hosts change."""
        if self.reads is None:
            return True
        return not (self.reads.vms.isdisjoint(vms) and self.reads.hosts.isdisjoint(hosts))


@dataclass(slots=True)
class RequirementParts:
    """The parts of every requirement, in one state."""

    snapshot: Snapshot
    _known: dict[Requirement, tuple[RequirementPart, ...]] = field(default_factory=dict)
    _view: TrackingView | None = None

    def of(self, requirement: Requirement) -> tuple[RequirementPart, ...]:
        """Return the parts of a requirement."""
        if requirement not in self._known:
            self._known[requirement] = tuple(self._evaluate(requirement))
        return self._known[requirement]

    def may_change(self, requirement: Requirement, vms: Set[VmId], hosts: Set[HostId]) -> bool:
        """Whether a requirement is violated, or may be if only these VMs and hosts change."""
        return any(not part.holds or part.is_touched(vms, hosts) for part in self.of(requirement))

    def _evaluate(self, requirement: Requirement) -> Collection[RequirementPart]:
        owner, name = requirement.specification, requirement.name
        formula = owner.constraints[name].formula
        # A formula about the plan has no value before there is a plan: it is one unknown part.
        if owner.looks_beyond(name):
            return (RequirementPart(formula, requirement.arguments),)
        context = self._context()
        parts = []
        for cell in owner.cells(name, requirement.arguments, context):
            reads = cell.judge(context)
            # A cell without a value may have stopped early: what it depends on is unknown.
            known_reads = None if cell.error is not None else reads
            parts.append(RequirementPart(cell.term, cell.names, cell, cell.holds, known_reads))
        return parts

    def _context(self) -> EvaluationContext:
        if self._view is None:
            self._view = TrackingView(StateView.of(self.snapshot).state)
        return EvaluationContext(self._view, self._view, self._view)


VM_STATES: Final[Mapping[DesiredVmState, VmState]] = {
    DesiredVmState.RUNNING: VmState.RUNNING,
    DesiredVmState.READY: VmState.READY,
    DesiredVmState.FORGED: VmState.READY,
    DesiredVmState.SLEEPING: VmState.SLEEPING,
    DesiredVmState.KILLED: VmState.TERMINATED,
}
HOST_STATES: Final[Mapping[DesiredHostState, HostState]] = {
    DesiredHostState.ONLINE: HostState.ON,
    DesiredHostState.OFFLINE: HostState.STANDBY,
    DesiredHostState.MAINTENANCE: HostState.MAINTENANCE,
}
_REQUESTED: Final[Mapping[RequestedHostState, DesiredHostState]] = {
    RequestedHostState.MAINTENANCE: DesiredHostState.MAINTENANCE,
    RequestedHostState.STANDBY: DesiredHostState.OFFLINE,
}
_FINAL_STATE_BY_CONSTRAINT: Final[Mapping[str, tuple[str, str]]] = {
    "Running": ("v", VmState.RUNNING.value),
    "Ready": ("v", VmState.READY.value),
    "Sleeping": ("v", VmState.SLEEPING.value),
    "Killed": ("v", VmState.TERMINATED.value),
    "Online": ("n", HostState.ON.value),
    "Offline": ("n", HostState.STANDBY.value),
    "Maintenance": ("n", HostState.MAINTENANCE.value),
}
"""The constraints that state a desired final state, written as a rule."""


@dataclass(frozen=True, slots=True, eq=False)
class VmCondition:
    """A VM must end in a state."""

    vm: VmId
    state: VmState
    title: str


@dataclass(frozen=True, slots=True, eq=False)
class HostCondition:
    """A host must end in a state."""

    host: HostId
    state: HostState
    title: str


@dataclass(frozen=True, slots=True, eq=False)
class RuleCondition:
    """A constraint must hold, at the end or at every moment."""

    rule: Rule
    requirement: Requirement
    weight: int = 0
    """The cost of violating it; 0 for a hard rule."""
    kept: bool = False
    """Whether it is broken before the plan, and the plan need not repair it."""

    @property
    def title(self) -> str:
        """The name in results."""
        return self.requirement.title

    @property
    def named_vms(self) -> frozenset[VmId]:
        """The VMs that its arguments name, for a constraint of the library with such arguments."""
        arguments = self.requirement.arguments
        return arguments["vs"] if "vs" in arguments else frozenset({arguments["v"]})


PlanCondition = VmCondition | HostCondition | RuleCondition


@dataclass(frozen=True)
class PlanningTask:
    """What is to be planned. ``with_only`` drops conditions, to find those in conflict."""

    problem: PlanningProblem
    snapshot: Snapshot
    conditions: tuple[PlanCondition, ...]
    invalid: tuple[str, ...] = field(default=())
    """Rules that cannot be read, each with the reason."""
    known_parts: RequirementParts | None = field(default=None, repr=False)
    """The parts of the same conditions, if they were evaluated already."""
    broken_rules: frozenset[RuleId] = frozenset()
    """The hard rules that are broken before the plan, where the plan may repair or keep them."""

    @classmethod
    def of(cls, problem: PlanningProblem, kept: Collection[RuleId] | None = None) -> PlanningTask:
        """Return the task of a problem.

        A continuous rule that is broken before the plan admits no plan. But if ``kept`` is given,
        the plan repairs it, except the rules of ``kept``, which it must not make worse.
        """
        snapshot = Snapshot.of(problem.cluster)
        conditions: list[PlanCondition] = [*_state_conditions(problem)]
        invalid: list[str] = []
        # Rules come after the desired states: a conflict lists the states first.
        for rule, requirement in requirement_per_rule(snapshot.settings, snapshot):
            if isinstance(requirement, Requirement):
                conditions += _rule_conditions(rule, requirement, problem)
            else:
                invalid.append(f"{requirement.constraint}: {requirement.detail}")
        broken: set[RuleId] = set()
        if kept is not None:
            parts = RequirementParts(snapshot)
            conditions = [
                _with_existing_fault(condition, parts, kept, broken) for condition in conditions
            ]
        task = cls(problem, snapshot, tuple(conditions), tuple(invalid))
        return replace(task, broken_rules=frozenset(broken)) if broken else task

    @cached_property
    def parts(self) -> RequirementParts:
        """The parts of every requirement, evaluated before the plan."""
        return self.known_parts or RequirementParts(self.snapshot)

    def with_only(self, conditions: Iterable[PlanCondition]) -> PlanningTask:
        """Return the same task with fewer conditions."""
        # A search for a conflict makes dozens of such tasks; the parts are evaluated once.
        return replace(self, conditions=tuple(conditions), known_parts=self.parts)

    @cached_property
    def demands(self) -> Mapping[VmId, tuple[int, int]]:
        """The MHz and MiB that each VM demands, without the VMs that demand nothing."""
        return demand_per_vm(self.snapshot, list(self.snapshot.vms.values()))

    @cached_property
    def hard(self) -> tuple[PlanCondition, ...]:
        """The conditions that must be satisfied."""
        return tuple(
            condition
            for condition in self.conditions
            if not isinstance(condition, RuleCondition) or not condition.weight
        )

    @cached_property
    def soft(self) -> tuple[RuleCondition, ...]:
        """The conditions that are satisfied if possible."""
        return tuple(rule for rule in self._rules if rule.weight)

    @cached_property
    def _rules(self) -> tuple[RuleCondition, ...]:
        return tuple(
            condition for condition in self.conditions if isinstance(condition, RuleCondition)
        )

    @cached_property
    def vm_conditions(self) -> dict[VmId, list[VmCondition]]:
        """The conditions on the final state of each VM."""
        by_vm: dict[VmId, list[VmCondition]] = {}
        for condition in self.conditions:
            if isinstance(condition, VmCondition):
                by_vm.setdefault(condition.vm, []).append(condition)
        return by_vm

    @cached_property
    def host_conditions(self) -> dict[HostId, list[HostCondition]]:
        """The conditions on the final state of each host."""
        by_host: dict[HostId, list[HostCondition]] = {}
        for condition in self.conditions:
            if isinstance(condition, HostCondition):
                by_host.setdefault(condition.host, []).append(condition)
        return by_host

    @cached_property
    def amounts(self) -> dict[VmId, dict[ResourceName, int]]:
        """The amounts of resources that VMs must be allocated, because they have too little."""
        amounts: dict[VmId, dict[ResourceName, int]] = {}
        for condition in self.hard:
            if (
                isinstance(condition, RuleCondition)
                and condition.requirement.library_name == "Preserve"
            ):
                _note_growth(condition.requirement.arguments, self.snapshot, amounts)
        return amounts

    @cached_property
    def referenced_times_ms(self) -> frozenset[int] | None:
        """The numbers in users' rules that read times; ``None`` if no rule does.

        A rule of the library never requires an action to be late.
        """
        reading = [rule.requirement for rule in self._rules if _reads_times(rule.requirement)]
        if not reading:
            return None
        return frozenset(time for rule in reading for time in _referenced_times(rule))

    @property
    def guesses_horizon(self) -> bool:
        """Whether no horizon is given and a rule may require any time."""
        return self.problem.horizon_s is None and self.referenced_times_ms is not None

    def may_power_off(self, host: HostId) -> bool:
        """Whether it may help to power off a host without a condition on its state."""
        return self._any_may_power_off or not self._agents_in_conditions.isdisjoint(
            self.snapshot.residents[host]
        )

    @cached_property
    def _any_may_power_off(self) -> bool:
        if self.counts(ObjectiveMeasure.HOSTS_USED) or self.counts(ObjectiveMeasure.ENERGY):
            return True
        return self._looks_at("hostState")

    def counts(self, measure: ObjectiveMeasure) -> bool:
        """Whether a measure is part of the objective."""
        return any(measure in measures_of(goal) for goal in self.problem.objective)

    @cached_property
    def looks_at_actions(self) -> bool:
        """Whether a rule reads actions or VMs on their way, and not only their results."""
        return self._looks_at("actions", "underway", "hosted")

    def _looks_at(self, *functions: str) -> bool:
        return any(
            not rule.requirement.specification.calls(rule.requirement.name).isdisjoint(functions)
            for rule in self._rules
        )

    @cached_property
    def _agents_in_conditions(self) -> frozenset[VmId]:
        """The agents that some condition is about: they sleep when their host does."""
        agents = frozenset(vm.id for vm in self.snapshot.vms.values() if vm.agent)
        named = set(self.vm_conditions)
        for condition in self.conditions if agents else ():
            if isinstance(condition, RuleCondition):
                about = relevant_vms(condition.requirement)
                if about is None:
                    return agents
                named |= about
        return agents & named


_TIME_FUNCTIONS: Final = frozenset({"begin", "end"})


def _reads_times(requirement: Requirement) -> bool:
    calls = requirement.specification.calls(requirement.name)
    return requirement.library_name is None and not _TIME_FUNCTIONS.isdisjoint(calls)


def _referenced_times(requirement: Requirement) -> Iterator[int]:
    """Yield the numbers that the start or the end of an action may be compared with."""
    for value in (
        *requirement.arguments.values(),
        *_numbers_in(requirement.specification, requirement.name),
    ):
        # Not ``isinstance``: a bool is an int in Python, and no time.
        if type(value) is int and value > 0:
            yield value


def _numbers_in(owner: Specification, name: str) -> Iterator[int]:
    """Yield the numbers in a constraint, and in those it calls."""
    for part in subterms(owner.constraints[name].formula):
        if isinstance(part, Number):
            yield part.value
        elif isinstance(part, Call):
            called = owner.owner(part.function)
            if called is not None:
                yield from _numbers_in(called, part.function)


def measures_of(goal: ObjectiveTerm) -> Mapping[ObjectiveMeasure, int]:
    """Return the measures of a goal with their weights."""
    return {goal: 1} if isinstance(goal, ObjectiveMeasure) else goal


def _note_growth(
    arguments: Mapping[str, object],
    snapshot: Snapshot,
    amounts: dict[VmId, dict[ResourceName, int]],
) -> None:
    vm, name, amount = arguments["v"], arguments["id"], arguments["amount"]
    assert isinstance(vm, str)
    assert isinstance(name, str)
    assert isinstance(amount, int)
    if name in HOST_RESOURCES:
        return  # sizes and reservations cannot be allocated; the rule itself is in conflict then
    has = snapshot.vms[VmId(vm)].consumption.get(ResourceName(name), 0)
    wanted = amounts.setdefault(VmId(vm), {})
    if amount > wanted.get(ResourceName(name), has):
        wanted[ResourceName(name)] = amount


def _state_conditions(problem: PlanningProblem) -> Iterator[PlanCondition]:
    for vm, vm_state in problem.vms.items():
        yield VmCondition(vm, VM_STATES[vm_state], f"{vm} must be {vm_state}")
    for host, host_state in problem.hosts.items():
        yield HostCondition(host, HOST_STATES[host_state], _host_title(host, host_state))
    for member in problem.cluster.hosts:
        if member.requested is not None and member.id not in problem.hosts:
            state = _REQUESTED[member.requested]
            yield HostCondition(member.id, HOST_STATES[state], _host_title(member.id, state))


def _host_title(host: HostId, state: DesiredHostState) -> str:
    text = "in maintenance" if state is DesiredHostState.MAINTENANCE else state.value
    return f"{host} must be {text}"


def _rule_conditions(
    rule: Rule, requirement: Requirement, problem: PlanningProblem
) -> Iterator[PlanCondition]:
    final_state = _FINAL_STATE_BY_CONSTRAINT.get(requirement.library_name or "")
    is_final_state = final_state is not None and rule.hard and isinstance(rule, Satisfy)
    if final_state is not None and is_final_state:
        key, state = final_state
        title = f"{rule.id}: {requirement.arguments[key]} must be {state}"
        if key == "v":
            yield VmCondition(requirement.arguments[key], VmState(state), title)
        else:
            yield HostCondition(requirement.arguments[key], HostState(state), title)
    if not is_final_state or rule.continuous:  # a continuous rule is about every moment as well
        weight = 0 if rule.hard else problem.weights.get(rule.id, 1)
        yield RuleCondition(rule, replace(requirement, title=rule.id), weight)


def _with_existing_fault(
    condition: PlanCondition,
    parts: RequirementParts,
    kept: Collection[RuleId],
    broken: set[RuleId],
) -> PlanCondition:
    """Return a condition that a plan can meet if its hard rule is broken; note the rule."""
    if not isinstance(condition, RuleCondition) or condition.weight:
        return condition
    requirement = condition.requirement
    # A formula about the plan is not broken before there is a plan.
    is_known = not requirement.specification.looks_beyond(requirement.name)
    if not is_known or all(part.holds for part in parts.of(requirement)):
        return condition
    broken.add(condition.rule.id)
    if condition.rule.id in kept:
        return replace(condition, kept=True)
    if not requirement.continuous:
        return condition
    return replace(condition, requirement=replace(requirement, repaired=True))


@dataclass(frozen=True, slots=True)
class SearchScope:
    """How far the planner searches: which VMs may move where, and how often."""

    moves: int
    movable: Collection[VmId] | None = None
    """The VMs that may migrate; ``None`` for all."""
    hosts: Mapping[VmId, Collection[HostId]] | None = None
    """The hosts that single VMs may come to; all hosts for a VM that is not named."""
    in_parallel: bool = False
    """Whether the plan must end as early as if no action had to wait for another."""
    with_capacity: bool = True
    """Whether capacity counts. A search without it shows whether capacity is the problem."""

    def is_whole(self, moves_max: int) -> bool:
        """Whether the scope is the whole problem."""
        all_vms = self.movable is None and self.hosts is None
        return all_vms and not self.in_parallel and self.moves >= moves_max

    def may_move(self, vm: VmId) -> bool:
        """Whether a VM may migrate."""
        return self.movable is None or vm in self.movable


class UnreachableState(Exception):
    """A desired state that no schedule leads to, with the conditions that demand it."""

    def __init__(
        self, conditions: tuple[Any, ...], why: str, code: str = "unreachable-state"
    ) -> None:
        super().__init__(why)
        self.conditions = conditions
        self.why = why
        self.code = code
