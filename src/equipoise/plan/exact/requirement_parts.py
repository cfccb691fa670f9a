"""What a requirement depends on: its VMs, and its parts with what each part has read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.evaluate.cells import FormulaCell, TrackingView
from equipoise.spec.evaluate.view import EvaluationContext, ReadSet, StateView
from equipoise.spec.language.syntax import Term, calls_in, names_in
from equipoise.spec.language.vocabulary import SETS, canonical_name
from equipoise.spec.requirement import Requirement
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
    return frozenset(_names_in_arguments([requirement.arguments[name] for name in about_vms]))


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


def _names_in_arguments(values: Collection[Any]) -> Iterator[VmId]:
    """Yield every name in some arguments, also inside groups."""
    for value in values:
        if isinstance(value, str):
            yield VmId(value)
        elif isinstance(value, frozenset | tuple):
            yield from _names_in_arguments(value)


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
