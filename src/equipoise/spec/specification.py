"""A specification: constraints that are parsed, checked and compiled, and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Self, TypeVar

from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.plan import Step
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.evaluate.breaches import Breaches, BreachFinder
from equipoise.spec.evaluate.cells import FormulaCell, FormulaSplitter
from equipoise.spec.evaluate.compile import Closure, Compiler
from equipoise.spec.evaluate.domains import is_packing
from equipoise.spec.evaluate.explain import FormulaExplainer, FormulaFailure, format_value
from equipoise.spec.evaluate.view import EvaluationContext, PlanSteps, StateView
from equipoise.spec.language.parse import parse
from equipoise.spec.language.print import print_term
from equipoise.spec.language.syntax import (
    Always,
    Binding,
    Call,
    Constraint,
    Name,
    Parameter,
    Sometime,
    SourceText,
    StateRef,
    Term,
    calls_in,
    names_in,
    subterms,
)
from equipoise.spec.language.vocabulary import PLACEMENT_FREE_FUNCTIONS, canonical_name
from equipoise.spec.typecheck import check_types

T = TypeVar("T")


class ArgumentCache:
    """Results of checking arguments; many rules share large arguments, such as all racks.

    The key is the identity of the value: comparing large arguments would cost more than it saves.
    """

    def __init__(self) -> None:
        self._results: dict[Any, tuple[Any, Any]] = {}

    def get_or_compute(self, value: Any, purpose: Any, compute: Callable[[], T]) -> T:
        """Return the result for a value and a purpose; compute it the first time."""
        key = (id(value), purpose)
        if key not in self._results:
            # The entry keeps a reference to the value, so that its id is not used again.
            self._results[key] = value, compute()
        result: T = self._results[key][1]
        return result


def bind_arguments(
    constraint: Constraint,
    given: Mapping[str, Any],
    state: Snapshot | Draft,
    known: ArgumentCache | None = None,
) -> tuple[dict[str, Any], list[InputProblem]]:
    """Return the values of the arguments, and every problem with them."""
    known = known or ArgumentCache()
    parameters = {parameter.name: parameter for parameter in constraint.parameters}
    cure = f"it takes {', '.join(parameters)}" if parameters else "it takes none"
    problems = [
        InputProblem(
            key=name,
            what=f"is not an argument of {constraint.name}",
            cure=cure,
            code="unknown-argument",
        )
        for name in given
        if name not in parameters
    ]
    values: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if name not in given:
            problems.append(
                InputProblem(
                    key=name, what="is missing", cure="give it a value", code="missing-argument"
                )
            )
            continue
        values[name], what = known.get_or_compute(
            given[name], parameter, partial(_bind, given[name], parameter, state)
        )
        if what:
            problems.append(InputProblem(key=name, what=what, code="invalid-argument"))
    return values, problems


def _bind(given: Any, parameter: Parameter, state: Snapshot | Draft) -> tuple[Any, str]:
    """Return the value of an argument and what is wrong with it; an empty text if nothing is."""
    value = _language_value(given, parameter)
    return value, _duplicate_groups(given, parameter) or _argument_problem(value, parameter, state)


def _language_value(value: Any, parameter: Parameter) -> Any:
    """Return a value of the language; a list becomes a set, unless the parameter is a list."""
    # Only a parameter such as ``lists(vms)`` keeps the order of its argument.
    if isinstance(parameter.domain, Call) and isinstance(value, list | tuple):
        return tuple(value)
    if isinstance(value, Collection) and not isinstance(value, str):
        return frozenset(map(_frozen_group, value))
    return value


def _frozen_group(value: Any) -> Any:
    if isinstance(value, str):  # most are names
        return value
    return frozenset(map(_frozen_group, value)) if isinstance(value, Collection) else value


def _duplicate_groups(given: Any, parameter: Parameter) -> str:
    """Return a problem if a group is given twice; a set of groups would keep it once."""
    if parameter.binding is not Binding.PACKING or not isinstance(given, list | tuple):
        return ""
    groups = [_frozen_group(group) for group in given]
    return "the groups overlap" if len(set(groups)) < len(groups) else ""


def _argument_problem(value: Any, parameter: Parameter, state: Snapshot | Draft) -> str:
    """Return why a value cannot be an argument; an empty text if it can."""
    named = {canonical_name(name) for name in names_in(parameter.domain)}
    domain = next(iter(named & {"int", "string", "vms", "hosts"}), "")
    if domain in ("int", "string"):
        return _literal_problem(value, domain, single=parameter.binding is Binding.MEMBER)
    if not _can_be_given(parameter.domain):
        return f"no file can give it: it ranges over {print_term(parameter.domain)}"
    members: Collection[str] = getattr(state, domain, ())
    if isinstance(parameter.domain, Call):
        return _list_problem(value, members, domain)
    match parameter.binding:
        case Binding.MEMBER if isinstance(value, frozenset):
            return f"must be one of the {domain}, not a list of them"
        case Binding.SUBSET if not isinstance(value, frozenset):
            return f"{format_value(value)} is not a list"
        case Binding.MEMBER:
            known = isinstance(value, str) and value in members
            return "" if known else f"there is no {domain.removesuffix('s')} {format_value(value)}"
        case Binding.SUBSET:
            unknown = _unknown_members(value, members)
            return f"the cluster has no such {domain}: {unknown}" if unknown else ""
        case Binding.PACKING:
            if isinstance(value, frozenset) and all(isinstance(part, frozenset) for part in value):
                known = is_packing(value, members)
                return "" if known else f"the groups overlap or name unknown {domain}"
            return "must be a list of groups"


def _can_be_given(domain: Term) -> bool:
    """Whether a file can give the argument: VMs, hosts, or a list of them."""
    if isinstance(domain, Call) and domain.function == "lists":
        return all(isinstance(argument, Name) for argument in domain.arguments)
    return isinstance(domain, Name)


def _literal_problem(value: Any, domain: str, *, single: bool) -> str:
    wanted, type_name = (int, "a number") if domain == "int" else (str, "text")
    if not single and not isinstance(value, frozenset):
        return f"{value!r} is not a list"
    for member in (value,) if single else sorted(value, key=repr):
        # In Python a bool is an int, but the language has a type of its own for it.
        if not isinstance(member, wanted) or isinstance(member, bool):
            return f"{member!r} is not {type_name}"
    return ""


def _list_problem(value: Any, members: Collection[str], domain: str) -> str:
    if not isinstance(value, tuple):
        return f"{value!r} is not a list"
    if len(set(value)) < len(value):
        return "the list has an element twice"
    unknown = _unknown_members(frozenset(value), members)
    return f"the cluster has no such {domain}: {unknown}" if unknown else ""


def _unknown_members(value: Any, members: Collection[str]) -> str:
    if not isinstance(value, frozenset):
        return format_value(value)
    return ", ".join(sorted(format_value(member) for member in value if member not in members))


class Specification:
    """The constraints of a file, by name."""

    def __init__(
        self,
        source: SourceText,
        constraints: Sequence[Constraint],
        known: Mapping[str, Specification] | None = None,
    ) -> None:
        """Check and compile constraints, which may call the ``known`` ones of other files."""
        self.text = source.text
        """The source text."""
        self.constraints: dict[str, Constraint] = {
            constraint.name: constraint for constraint in constraints
        }
        self._known: Mapping[str, Specification] = known or {}
        others = [owner.constraints[name] for name, owner in self._known.items()]
        # All problems are reported before anything is compiled.
        checked = check_types(constraints, source, others)
        if checked.problems:
            raise InvalidInput(source.name, checked.problems)
        self.warnings = checked.warnings
        """What is allowed, but probably a mistake."""
        # Only what is called: a text that calls two constraints must not compile the whole library.
        called = {name for constraint in constraints for name in calls_in(constraint.formula)}
        foreign = {name: self._known[name].closure(name) for name in called if name in self._known}
        self._compiler = Compiler(source, self.constraints, checked.overloads, foreign)
        self._splitter = FormulaSplitter(self._compiler)
        self._calls: dict[str, frozenset[str]] = {}
        self._looks_ahead: dict[str, bool] = {}

    @classmethod
    def read(
        cls,
        text: str,
        name: str = "specification",
        known: Mapping[str, Specification] | None = None,
    ) -> Self:
        """Read a file; the error lists every problem of it."""
        return cls(SourceText(name, text), parse(text, name), known)

    def declared(self) -> dict[str, Constraint]:
        """Return every constraint that can be called here, by name; its own hide the others."""
        others = {name: owner.constraints[name] for name, owner in self._known.items()}
        return others | self.constraints

    def closure(self, name: str) -> Closure:
        """Return the compiled formula of a constraint."""
        return self._compiler.constraint(self.constraints[name])

    def calls(self, name: str) -> frozenset[str]:
        """Return the functions that a constraint calls, directly or through other constraints."""
        if name not in self._calls:
            functions: set[str] = set()
            for called in calls_in(self.constraints[name].formula):
                owner = self.owner(called)
                functions |= {canonical_name(called)} if owner is None else owner.calls(called)
            self._calls[name] = frozenset(functions)
        return self._calls[name]

    def looks_ahead(self, name: str) -> bool:
        """Whether a constraint, or one it calls, reads the final state or all moments."""
        if name not in self._looks_ahead:
            parts = subterms(self.constraints[name].formula)
            self._looks_ahead[name] = any(map(self._part_looks_ahead, parts))
        return self._looks_ahead[name]

    def looks_at_plan(self, name: str) -> bool:
        """Whether a constraint reads the actions of the plan, at any time."""
        return "actions" in self.calls(name)

    def reads_placement(self, name: str) -> bool:
        """Whether a migration can change the value of a constraint."""
        # A function of another package may read anything, so it counts as one that does.
        return not self.calls(name) <= PLACEMENT_FREE_FUNCTIONS

    def looks_beyond(self, name: str) -> bool:
        """Whether a constraint reads more than one state: other states, or the plan."""
        return self.looks_ahead(name) or self.looks_at_plan(name)

    def _part_looks_ahead(self, part: Term) -> bool:
        if isinstance(part, Always | Sometime):
            return True
        if not isinstance(part, Call):
            return False
        owner = self.owner(part.function)
        ahead = owner is not None and owner.looks_ahead(part.function)
        return ahead or part.moment is StateRef.FINAL

    def owner(self, name: str) -> Specification | None:
        """Return the specification that declares a constraint; ``None`` for a function."""
        return self if name in self.constraints else self._known.get(name)

    def function_of(self, call: Call) -> str:
        """Return the function of a call; one name may mean a function of VMs and one of hosts."""
        return self._compiler.function_of(call)

    def holds(self, name: str, arguments: Mapping[str, Any], context: EvaluationContext) -> bool:
        """Whether a constraint holds for some arguments in a context."""
        constraint = self.constraints[name]
        bindings = [arguments[parameter.name] for parameter in constraint.parameters]
        return bool(self.closure(name)(context, bindings))

    def cells(
        self, name: str, arguments: Mapping[str, Any], context: EvaluationContext
    ) -> Sequence[FormulaCell]:
        """Return the parts of a constraint; it holds if and only if all of them hold."""
        constraint = self.constraints[name]
        given = {parameter.name: arguments[parameter.name] for parameter in constraint.parameters}
        try:
            return tuple(self._splitter.cells(constraint.formula, given, context))
        except InvalidInput:  # a domain has no value: the constraint is one cell, which is false
            return (self._splitter.cell(constraint.formula, given),)

    def closure_of(self, term: Term, names: Mapping[str, Any]) -> Closure:
        """Return the compiled form of a part of a formula, in which these names are bound."""
        return self._splitter.closure(term, names)

    def breaches(
        self, term: Term, names: Mapping[str, Any], context: EvaluationContext
    ) -> Breaches:
        """Return what violates a formula of this specification; nothing if it holds."""
        return BreachFinder(self, context).find(term, names)

    def explain(
        self, term: Term, names: Mapping[str, Any], context: EvaluationContext
    ) -> FormulaFailure:
        """Return why a formula of this specification is false in a context."""
        return FormulaExplainer(self, self._compiler, context).explain(term, names)

    def arguments(self, name: str, given: Mapping[str, Any], state: Snapshot) -> dict[str, Any]:
        """Return the given arguments as values of the language; raise if they do not fit."""
        constraint = self.constraints.get(name)
        if constraint is None:
            close = get_close_matches(name, self.constraints, n=1)
            cure = f"did you mean {close[0]}?" if close else "'equipoise spec list' lists them"
            problem = InputProblem(
                key=name, what="there is no such constraint", cure=cure, code="unknown-constraint"
            )
            raise InvalidInput("constraint", [problem])
        values, problems = bind_arguments(constraint, given, state)
        if problems:
            raise InvalidInput("constraint", problems)
        return values


def context_of(
    now: Snapshot | Draft,
    *,
    initial: Snapshot | Draft | None = None,
    final: Snapshot | Draft | None = None,
    steps: Sequence[Step] = (),
) -> EvaluationContext:
    """Return the context of a formula; by default the state is also the initial and final one."""
    view = StateView.of(now)
    return EvaluationContext(
        view,
        view if initial is None else StateView.of(initial),
        view if final is None else StateView.of(final),
        PlanSteps(steps),
    )
