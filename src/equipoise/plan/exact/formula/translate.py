"""From a formula to what must hold between decisions: the specification is the model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from equipoise.plan.exact.formula.functions import Functions
from equipoise.plan.exact.formula.operators import RELATIONS, Operators, ordered
from equipoise.plan.exact.formula.outlook import Names, Outlook, Spoken
from equipoise.plan.exact.formula.values import (
    Maybe,
    MaybeList,
    OneOf,
    Unsupported,
    as_value,
    elements_of,
    is_known,
    maybe_list,
    options_of,
    truth_of,
)
from equipoise.plan.exact.solver.circuit import NO, YES, Circuit, Truth
from equipoise.plan.exact.solver.number import Sum
from equipoise.spec.choose import choices, known_members, members
from equipoise.spec.language.syntax import (
    Always,
    Binder,
    Binding,
    Call,
    Exists,
    ForAll,
    Index,
    Let,
    ListOf,
    ListWhere,
    Minus,
    Name,
    Not,
    Number,
    Operation,
    SetOf,
    SetWhere,
    Sometime,
    Term,
    Text,
    names_in,
)
from equipoise.spec.language.syntax import (
    Truth as Verity,
)
from equipoise.spec.language.vocabulary import SETS, plain
from equipoise.spec.specification import Specification


class Translator:
    """Says formulas to a circuit."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.operators = Operators(circuit)
        self._functions = Functions(self.operators)
        self._calls: dict[int, Callable[..., Any] | None] = {}
        self._used: dict[int, frozenset[str]] = {}

    def require(
        self,
        spoken: Spoken,
        outlook: Outlook,
        given: Sequence[Truth] = (),
        idle: Collection[Any] | None = None,
    ) -> None:
        """A formula must hold at the moment that is looked at, if everything given holds.

        ``idle`` names whom nothing happens to, of a formula that holds before anything does and is
        about whom it names only: of those nothing more has to be said.
        """
        formula = _Formula(self, spoken.home, outlook, idle)
        formula.require(spoken.term, spoken.names, tuple(given))

    def function(self, home: Specification, call: Call) -> Callable[..., Any] | None:
        """The function that a call asks; nothing if it asks another constraint."""
        key = id(call)
        if key not in self._calls:
            other = home.home(call.function) is not None
            self._calls[key] = None if other else self._functions.named(home.function_of(call))
        return self._calls[key]

    def used(self, term: Term) -> frozenset[str]:
        """The names that are written in a term."""
        key = id(term)
        if key not in self._used:
            self._used[key] = names_in(term)
        return self._used[key]


class _Formula:
    """A formula of one specification, seen from one moment."""

    def __init__(
        self,
        owner: Translator,
        home: Specification,
        outlook: Outlook,
        idle: Collection[Any] | None = None,
    ) -> None:
        self._owner = owner
        self._circuit = owner.circuit
        self._operators = owner.operators
        self._home = home
        self._outlook = outlook
        self._idle = idle

    # What must hold: whatever can be said without naming its truth is said so.

    def require(self, term: Term, names: Names, given: tuple[Truth, ...]) -> None:
        """A formula must hold, if everything given holds."""
        match term:
            case ForAll(binders=binders, body=body):
                for inner, there in self._each(binders, names):
                    if there != NO and not self._says_nothing(body, inner):
                        self.require(body, inner, (*given, there))
            case Operation(operator="&", left=left, right=right):
                self.require(left, names, given)
                self.require(right, names, given)
            case Operation(operator="-->", left=left, right=right):
                premise = truth_of(self.value(left, names))
                if premise != NO:
                    self.require(right, names, (*given, premise))
            case Operation(operator="<=" | "<" | ">=" | ">"):
                left, right = self.value(term.left, names), self.value(term.right, names)
                self._circuit.require_at_most(*ordered(term.operator, left, right), given)
            case Let(name=name, value=value, body=body):
                self.require(body, {**names, name: self.value(value, names)}, given)
            case Call() if self._owner.function(self._home, term) is None:
                other, formula, arguments = self._called(term, names)
                other.require(formula, arguments, given)
            case _:
                self._circuit.require(truth_of(self.value(term, names)), given)

    def _says_nothing(self, body: Term, names: Names) -> bool:
        """Whether a part that holds now is about nobody to whom anything happens."""
        if self._idle is None:
            return False
        used = (names[one] for one in self._owner.used(body) if one in names)
        return all(isinstance(one, str) and one in self._idle for one in used)

    # Values

    def value(self, term: Term, names: Names) -> Any:
        """The value of a term, as far as it is decided."""
        how = _HOW.get(type(term))
        return self._rest(term, names) if how is None else how(self, term, names)

    def _constant(self, term: Number | Text | Verity, _: Names) -> Any:
        return term.value

    def _rest(self, term: Term, names: Names) -> Any:
        match term:
            case Not(term=inner):
                return as_value(-truth_of(self.value(inner, names)))
            case Minus(term=inner):
                return -self.value(inner, names)
            case SetOf(members=terms):
                members = [options_of(self._plain(self.value(one, names))) for one in terms]
                return self._operators.united(members)
            case ListOf(elements=terms):
                return maybe_list((self.value(one, names), YES) for one in terms)
            case Index(sequence=sequence, position=position):
                return self._index(self.value(sequence, names), self.value(position, names))
            case Let(name=name, value=value, body=body):
                return self.value(body, {**names, name: self.value(value, names)})
            case Always(body=body):
                return as_value(self._always(body, names))
            case Sometime(body=body):
                return as_value(-self._always(Not(body), names))
            case _:
                raise AssertionError(f"no translation of {term}")

    def _name(self, term: Name, names: Names) -> Any:
        if term.name in names:
            return names[term.name]
        name = plain(term.name)
        return self._outlook.now.names(name) if name in SETS else name

    def _call(self, term: Call, names: Names) -> Any:
        function = self._owner.function(self._home, term)
        if function is None:
            other, formula, given = self._called(term, names)
            return other.value(formula, given)
        arguments = [self.value(one, names) for one in term.arguments]
        state = self._outlook.at(term.moment)
        if len(arguments) == 1 and not isinstance(arguments[0], OneOf):  # by far the most
            return function(state, arguments[0])
        return self._spread_out(partial(function, state), arguments)

    def _called(self, term: Call, names: Names) -> tuple[_Formula, Term, Names]:
        """Another constraint that is asked, and what it is asked with."""
        home = self._home.home(term.function)
        assert home is not None
        constraint = home.constraints[term.function]
        values = [self.value(one, names) for one in term.arguments]
        arguments = dict(zip((one.name for one in constraint.parameters), values, strict=True))
        outlook = replace(self._outlook, now=self._outlook.at(term.moment))
        return _Formula(self._owner, home, outlook), constraint.formula, arguments

    def _spread_out(self, function: Callable[..., Any], arguments: list[Any]) -> Any:
        """Ask a function for each value that an argument may have."""
        for place, argument in enumerate(arguments):
            if isinstance(argument, OneOf):
                before, after = arguments[:place], arguments[place + 1 :]
                return self._operators.merged(
                    [
                        (self._spread_out(function, [*before, one, *after]), truth)
                        for one, truth in argument.options.items()
                    ]
                )
        return function(*arguments)

    def _operation(self, term: Operation, names: Names) -> Any:
        left = self.value(term.left, names)
        match term.operator:
            case "&" | "|" | "-->":
                return self._connected(term, truth_of(left), names)
            case "<-->":
                return as_value(self._operators.equal(left, self.value(term.right, names)))
        right = self.value(term.right, names)
        if term.operator in RELATIONS:
            return as_value(self._operators.related(term.operator, left, right))
        return self._combined(term.operator, left, right)

    def _connected(self, term: Operation, left: Truth, names: Names) -> Any:
        first = -left if term.operator == "-->" else left
        if term.operator == "&":
            if first == NO:
                return False
            return as_value(self._circuit.all((first, truth_of(self.value(term.right, names)))))
        if first == YES:
            return True
        return as_value(self._circuit.any((first, truth_of(self.value(term.right, names)))))

    def _combined(self, operator: str, left: Any, right: Any) -> Any:
        if operator in ("+", "-") and isinstance(left, frozenset | Maybe):
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
                return self._circuit.quotient(left, right)
        raise Unsupported(f"{operator} of values that are not decided")

    def _index(self, sequence: Any, position: Any) -> Any:
        if not is_known(sequence) or not is_known(position) or not 0 <= position < len(sequence):
            raise Unsupported("a place of a list that is not decided, or that it does not have")
        return sequence[position]

    def _plain(self, value: Any) -> Any:
        """A value that can be in a set."""
        if isinstance(value, Sum | Maybe | MaybeList):
            raise Unsupported("a set of values that are not decided")
        return value

    # Binders

    def _quantified(self, term: ForAll | Exists, names: Names) -> Any:
        every = isinstance(term, ForAll)
        found: list[Truth] = []
        for inner, there in self._each(term.binders, names):
            if there == NO:
                continue
            holds = truth_of(self.value(term.body, inner))
            one = self._circuit.any((-there, holds)) if every else self._circuit.all((there, holds))
            if one == (NO if every else YES):
                return not every
            found.append(one)
        return as_value(self._circuit.all(found) if every else self._circuit.any(found))

    def _where(self, term: SetWhere | ListWhere, names: Names) -> Any:
        kept: list[tuple[Any, Truth]] = []
        for inner, there in self._each(term.binders, names):
            conditions = [there]
            for condition in term.conditions:
                if conditions[-1] != NO:
                    conditions.append(truth_of(self.value(condition, inner)))
            inside = self._circuit.all(conditions)
            if inside != NO:
                kept.append((self.value(term.term, inner), inside))
        if isinstance(term, ListWhere):
            return maybe_list(kept)
        return self._operators.united(
            [
                {
                    one: self._circuit.all((inside, chosen))
                    for one, chosen in options_of(self._plain(value)).items()
                }
                for value, inside in kept
            ]
        )

    def _each(
        self, binders: tuple[Binder, ...], names: Names, there: Truth = YES
    ) -> Iterator[tuple[Names, Truth]]:
        """All ways to fill the names of some binders, with the truth that it is one."""
        if not binders:
            yield names, there
            return
        binder, rest = binders[0], binders[1:]
        domain = self.value(binder.domain, names)
        for filled, inside in self._filled(binder, domain, names, there):
            yield from self._each(rest, filled, inside)

    def _filled(
        self, binder: Binder, domain: Any, names: Names, there: Truth
    ) -> Sequence[tuple[Names, Truth]]:
        ways: list[tuple[Names, Truth]] = [(names, there)]
        some = list(self._choices(binder, domain))
        for name in binder.names:
            ways = [
                (
                    {**filled, name: value},
                    inside if truth == YES else self._circuit.all((inside, truth)),
                )
                for filled, inside in ways
                for value, truth in some
            ]
        return ways

    def _choices(self, binder: Binder, domain: Any) -> Iterator[tuple[Any, Truth]]:
        if binder.binding is Binding.MEMBER:
            if is_known(domain):
                find = known_members if isinstance(binder.domain, Name) else members
                yield from ((one, YES) for one in find(domain))
            else:
                yield from elements_of(domain)
            return
        if not is_known(domain):
            raise Unsupported("subsets of a set that is not decided")
        try:
            yield from ((one, YES) for one in choices(binder.binding, domain))
        except ValueError as error:
            raise Unsupported(str(error)) from None

    def _always(self, body: Term, names: Names) -> Truth:
        found = []
        for state, there in self._outlook.moments:
            seen = _Formula(self._owner, self._home, replace(self._outlook, now=state))
            found.append(self._circuit.any((-there, truth_of(seen.value(body, names)))))
        return self._circuit.all(found)


_HOW: Final[Mapping[type[Term], Callable[[_Formula, Any, Names], Any]]] = {
    Name: _Formula._name,
    Number: _Formula._constant,
    Text: _Formula._constant,
    Verity: _Formula._constant,
    Call: _Formula._call,
    Operation: _Formula._operation,
    ForAll: _Formula._quantified,
    Exists: _Formula._quantified,
    SetWhere: _Formula._where,
    ListWhere: _Formula._where,
}
"""How the value of a term is found, by its kind; for all others, ``_rest`` knows."""
