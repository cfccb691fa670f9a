"""From a formula to constraints of the solver: the specification is the model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from equipoise.plan.exact.formula.functions import (
    RELATIONS,
    SymbolicFunctions,
    SymbolicOperators,
    as_upper_bound,
)
from equipoise.plan.exact.solver import FALSE, TRUE, CpModelBuilder, LinearSum, Literal
from equipoise.plan.exact.timeline.states import TimelineState
from equipoise.plan.exact.values import (
    OneOf,
    SymbolicList,
    SymbolicSet,
    UnsupportedFormula,
    elements_of,
    is_known,
    literal_of,
    options_of,
    symbolic_list,
    value_of_literal,
)
from equipoise.spec.evaluate.domains import cached_members, choices, members
from equipoise.spec.language import syntax
from equipoise.spec.language.syntax import Binding, StateRef, Term, names_in
from equipoise.spec.language.vocabulary import SETS, canonical_name
from equipoise.spec.specification import Specification

BoundNames = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SymbolicContext:
    """The states that a formula may read; all of them may be undecided."""

    now: TimelineState
    initial: TimelineState
    final: TimelineState
    moments: Sequence[tuple[TimelineState, Literal]] = ()
    """All moments of the plan, each with the literal that it exists."""

    def at(self, moment: StateRef) -> TimelineState:
        """Return the state that a call reads."""
        if moment is StateRef.NOW:
            return self.now
        return self.initial if moment is StateRef.INITIAL else self.final


class FormulaTranslator:
    """Translates formulas into constraints of one model."""

    def __init__(self, builder: CpModelBuilder) -> None:
        self.builder = builder
        self.operators = SymbolicOperators(builder)
        self._functions = SymbolicFunctions(self.operators)
        self._calls: dict[int, Callable[..., Any] | None] = {}
        self._used: dict[int, frozenset[str]] = {}

    def require(
        self,
        owner: Specification,
        term: Term,
        names: BoundNames,
        context: SymbolicContext,
        given: Sequence[Literal] = (),
        idle: Collection[Any] | None = None,
    ) -> None:
        """Require that a formula holds at the current moment if all ``given`` literals hold.

        ``idle`` are VMs that no action changes. It is given for a formula that holds before the
        plan and reads only the VMs that it names: its parts about idle VMs need no constraint.
        """
        _Formula(self, owner, context, idle).require(term, names, tuple(given))

    def function(self, owner: Specification, call: syntax.Call) -> Callable[..., Any] | None:
        """Return the function of a call; ``None`` for a call of another constraint."""
        # By identity: comparing trees would take longer than the lookup saves.
        key = id(call)
        if key not in self._calls:
            is_constraint = owner.owner(call.function) is not None
            self._calls[key] = (
                None if is_constraint else self._functions.named(owner.function_of(call))
            )
        return self._calls[key]

    def used(self, term: Term) -> frozenset[str]:
        """Return the names in a term."""
        key = id(term)
        if key not in self._used:
            self._used[key] = names_in(term)
        return self._used[key]


class _Formula:
    """A formula of one specification, at one moment."""

    def __init__(
        self,
        translator: FormulaTranslator,
        owner: Specification,
        context: SymbolicContext,
        idle: Collection[Any] | None = None,
    ) -> None:
        self._translator = translator
        self._builder = translator.builder
        self._operators = translator.operators
        self._owner = owner
        self._context = context
        self._idle = idle

    # Requirements: a constraint is cheaper than a literal for its truth value.

    def require(self, term: Term, names: BoundNames, given: tuple[Literal, ...]) -> None:
        """Require that a formula holds if all ``given`` literals hold."""
        match term:
            case syntax.ForAll(binders=binders, body=body):
                for inner, present in self._each(binders, names):
                    if present != FALSE and not self._is_unaffected(body, inner):
                        self.require(body, inner, (*given, present))
            case syntax.Operation(operator="&", left=left, right=right):
                self.require(left, names, given)
                self.require(right, names, given)
            case syntax.Operation(operator="-->", left=left, right=right):
                # The premise becomes a condition of the constraint, without a literal for the
                # implication.
                premise = literal_of(self.value(left, names))
                if premise != FALSE:
                    self.require(right, names, (*given, premise))
            case syntax.Operation(operator="<=" | "<" | ">=" | ">"):
                left, right = self.value(term.left, names), self.value(term.right, names)
                self._builder.require_at_most(*as_upper_bound(term.operator, left, right), given)
            case syntax.Let(name=name, value=value, body=body):
                self.require(body, {**names, name: self.value(value, names)}, given)
            case syntax.Call() if self._translator.function(self._owner, term) is None:
                other, formula, arguments = self._called(term, names)
                other.require(formula, arguments, given)
            case _:
                self._builder.require(literal_of(self.value(term, names)), given)

    def _is_unaffected(self, body: Term, names: BoundNames) -> bool:
        """Whether a part that holds now reads only VMs that no action changes."""
        if self._idle is None:
            return False
        used = (names[name] for name in self._translator.used(body) if name in names)
        return all(isinstance(value, str) and value in self._idle for value in used)

    # Values

    def value(self, term: Term, names: BoundNames) -> Any:
        """Return the value of a term, possibly undecided."""
        evaluate = _EVALUATORS.get(type(term))
        return self._rest(term, names) if evaluate is None else evaluate(self, term, names)

    def _constant(self, term: syntax.Number | syntax.Text | syntax.Boolean, _: BoundNames) -> Any:
        return term.value

    def _rest(self, term: Term, names: BoundNames) -> Any:
        match term:
            case syntax.Not(term=inner):
                return value_of_literal(-literal_of(self.value(inner, names)))
            case syntax.Minus(term=inner):
                return -self.value(inner, names)
            case syntax.SetOf(members=terms):
                members = [options_of(self._plain(self.value(member, names))) for member in terms]
                return self._operators.union(members)
            case syntax.ListOf(elements=terms):
                return symbolic_list((self.value(element, names), TRUE) for element in terms)
            case syntax.Index(sequence=sequence, position=position):
                return self._index(self.value(sequence, names), self.value(position, names))
            case syntax.Let(name=name, value=value, body=body):
                return self.value(body, {**names, name: self.value(value, names)})
            case syntax.Always(body=body):
                return value_of_literal(self._always(body, names))
            case syntax.Sometime(body=body):
                return value_of_literal(-self._always(syntax.Not(body), names))
            case _:
                raise AssertionError(f"no translation of {term}")

    def _name(self, term: syntax.Name, names: BoundNames) -> Any:
        if term.name in names:
            return names[term.name]
        name = canonical_name(term.name)
        return self._context.now.names(name) if name in SETS else name

    def _call(self, term: syntax.Call, names: BoundNames) -> Any:
        function = self._translator.function(self._owner, term)
        if function is None:
            other, formula, given = self._called(term, names)
            return other.value(formula, given)
        arguments = [self.value(argument, names) for argument in term.arguments]
        state = self._context.at(term.moment)
        if len(arguments) == 1 and not isinstance(arguments[0], OneOf):  # the common case
            return function(state, arguments[0])
        return self._for_each_option(partial(function, state), arguments)

    def _called(self, term: syntax.Call, names: BoundNames) -> tuple[_Formula, Term, BoundNames]:
        """Return the formula and the arguments of another constraint that is called."""
        owner = self._owner.owner(term.function)
        assert owner is not None
        constraint = owner.constraints[term.function]
        values = [self.value(argument, names) for argument in term.arguments]
        parameters = (parameter.name for parameter in constraint.parameters)
        arguments = dict(zip(parameters, values, strict=True))
        context = replace(self._context, now=self._context.at(term.moment))
        # Without ``idle``, which was found for the formula that calls this one.
        return _Formula(self._translator, owner, context), constraint.formula, arguments

    def _for_each_option(self, function: Callable[..., Any], arguments: list[Any]) -> Any:
        """Evaluate a function for each option of its undecided arguments, and merge the values."""
        for index, argument in enumerate(arguments):
            if isinstance(argument, OneOf):
                before, after = arguments[:index], arguments[index + 1 :]
                return self._operators.merged(
                    [
                        (self._for_each_option(function, [*before, option, *after]), literal)
                        for option, literal in argument.options.items()
                    ]
                )
        return function(*arguments)

    def _operation(self, term: syntax.Operation, names: BoundNames) -> Any:
        left = self.value(term.left, names)
        match term.operator:
            case "&" | "|" | "-->":
                return self._connected(term, literal_of(left), names)
            case "<-->":
                return value_of_literal(self._operators.equal(left, self.value(term.right, names)))
        right = self.value(term.right, names)
        if term.operator in RELATIONS:
            return value_of_literal(self._operators.related(term.operator, left, right))
        return self._combined(term.operator, left, right)

    def _connected(self, term: syntax.Operation, left: Literal, names: BoundNames) -> Any:
        # The right side is not translated where the left side decides: it may have no value there.
        first = -left if term.operator == "-->" else left
        if term.operator == "&":
            if first == FALSE:
                return False
            return value_of_literal(
                self._builder.all((first, literal_of(self.value(term.right, names))))
            )
        if first == TRUE:
            return True
        return value_of_literal(
            self._builder.any((first, literal_of(self.value(term.right, names))))
        )

    def _combined(self, operator: str, left: Any, right: Any) -> Any:
        if operator in ("+", "-") and isinstance(left, frozenset | SymbolicSet):
            act = self._operators.either if operator == "+" else self._operators.without
            return act(left, right)
        match operator:
            case "/\\":
                return self._operators.both(left, right)
            case "\\/":
                return self._operators.either(left, right)
            case "+":
                return left + right
            case "-":
                return left - right
            case "*" if isinstance(left, int) or isinstance(right, int):
                return left * right
            case "/" if isinstance(right, int) and right != 0:
                return self._builder.quotient(left, right)
        raise UnsupportedFormula(f"{operator} is applied to undecided values")

    def _index(self, sequence: Any, position: Any) -> Any:
        if not is_known(sequence) or not is_known(position) or not 0 <= position < len(sequence):
            raise UnsupportedFormula("a position of a list is undecided, or the list lacks it")
        return sequence[position]

    def _plain(self, value: Any) -> Any:
        """Return a value that can be a member of a set; raise for other values."""
        if isinstance(value, LinearSum | SymbolicSet | SymbolicList):
            raise UnsupportedFormula("a set has undecided numbers or collections as members")
        return value

    # Binders

    def _quantified(self, term: syntax.ForAll | syntax.Exists, names: BoundNames) -> Any:
        every = isinstance(term, syntax.ForAll)
        literals: list[Literal] = []
        for inner, present in self._each(term.binders, names):
            if present == FALSE:
                continue
            holds = literal_of(self.value(term.body, inner))
            literal = (
                self._builder.any((-present, holds))
                if every
                else self._builder.all((present, holds))
            )
            if literal == (FALSE if every else TRUE):
                return not every
            literals.append(literal)
        combine = self._builder.all if every else self._builder.any
        return value_of_literal(combine(literals))

    def _where(self, term: syntax.SetWhere | syntax.ListWhere, names: BoundNames) -> Any:
        kept: list[tuple[Any, Literal]] = []
        for inner, present in self._each(term.binders, names):
            conditions = [present]
            for condition in term.conditions:
                if conditions[-1] != FALSE:
                    conditions.append(literal_of(self.value(condition, inner)))
            inside = self._builder.all(conditions)
            if inside != FALSE:
                kept.append((self.value(term.term, inner), inside))
        if isinstance(term, syntax.ListWhere):
            return symbolic_list(kept)
        return self._operators.union(
            [
                {
                    option: self._builder.all((inside, chosen))
                    for option, chosen in options_of(self._plain(value)).items()
                }
                for value, inside in kept
            ]
        )

    def _each(
        self, binders: tuple[syntax.Binder, ...], names: BoundNames, present: Literal = TRUE
    ) -> Iterator[tuple[BoundNames, Literal]]:
        """Yield all values of the names of some binders, with the literal that they are members."""
        if not binders:
            yield names, present
            return
        binder, rest = binders[0], binders[1:]
        domain = self.value(binder.domain, names)
        for filled, inside in self._filled(binder, domain, names, present):
            yield from self._each(rest, filled, inside)

    def _filled(
        self, binder: syntax.Binder, domain: Any, names: BoundNames, present: Literal
    ) -> Sequence[tuple[BoundNames, Literal]]:
        combinations: list[tuple[BoundNames, Literal]] = [(names, present)]
        values = list(self._choices(binder, domain))
        for name in binder.names:
            combinations = [
                (
                    {**filled, name: value},
                    inside if literal == TRUE else self._builder.all((inside, literal)),
                )
                for filled, inside in combinations
                for value, literal in values
            ]
        return combinations

    def _choices(self, binder: syntax.Binder, domain: Any) -> Iterator[tuple[Any, Literal]]:
        if binder.binding is Binding.MEMBER:
            if is_known(domain):
                find = cached_members if isinstance(binder.domain, syntax.Name) else members
                yield from ((member, TRUE) for member in find(domain))
            else:
                yield from elements_of(domain)
            return
        if not is_known(domain):
            raise UnsupportedFormula("subsets of an undecided set")
        try:
            yield from ((group, TRUE) for group in choices(binder.binding, domain))
        except ValueError as error:
            raise UnsupportedFormula(str(error)) from None

    def _always(self, body: Term, names: BoundNames) -> Literal:
        literals = []
        for state, present in self._context.moments:
            formula = _Formula(self._translator, self._owner, replace(self._context, now=state))
            holds = literal_of(formula.value(body, names))
            literals.append(self._builder.any((-present, holds)))
        return self._builder.all(literals)


_EVALUATORS: Final[Mapping[type[Term], Callable[[_Formula, Any, BoundNames], Any]]] = {
    syntax.Name: _Formula._name,
    syntax.Number: _Formula._constant,
    syntax.Text: _Formula._constant,
    syntax.Boolean: _Formula._constant,
    syntax.Call: _Formula._call,
    syntax.Operation: _Formula._operation,
    syntax.ForAll: _Formula._quantified,
    syntax.Exists: _Formula._quantified,
    syntax.SetWhere: _Formula._where,
    syntax.ListWhere: _Formula._where,
}
"""How each kind of term is evaluated; ``_rest`` evaluates all other kinds."""
