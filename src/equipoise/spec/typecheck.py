"""The type checker: it reports a formula without a meaning before anything is judged by it.

It reports all problems of a file at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Final, NamedTuple

from equipoise.errors import InputProblem
from equipoise.spec.functions import signatures
from equipoise.spec.language import syntax
from equipoise.spec.language.syntax import (
    Binding,
    Constraint,
    Parameter,
    SourcePosition,
    SourceText,
    Term,
    calls_in,
)
from equipoise.spec.language.vocabulary import (
    ANYTHING,
    BOOL,
    DOMAINS,
    ELEMENT,
    HOST,
    INT,
    KEYWORDS,
    SETS,
    STATES,
    STRING,
    VM,
    Type,
    canonical_name,
    common_type,
    list_of,
    match_type,
    members_of,
    packing_of,
    set_of,
    substitute,
)

_ORDER: Final = ("<", "<=", ">", ">=")
_LOGIC: Final = ("&", "|", "-->", "<-->")


class TypeCheckResult(NamedTuple):
    """The problems and warnings of a file."""

    problems: tuple[InputProblem, ...]
    warnings: tuple[InputProblem, ...]
    overloads: Mapping[int, str] = {}
    """For calls that may be of a VM or of a host: which of the two, by the identity of the call."""


def check_types(
    constraints: Iterable[Constraint], source: SourceText, known: Iterable[Constraint] = ()
) -> TypeCheckResult:
    """Check the declarations of a file; ``known`` are others that they may call or hide."""
    checker = _TypeChecker(source, constraints, known)
    for constraint in constraints:
        checker.constraint(constraint)
    return TypeCheckResult(tuple(checker.problems), tuple(checker.warnings), checker.overloads)


class _TypeChecker:
    def __init__(
        self, source: SourceText, declared: Iterable[Constraint], known: Iterable[Constraint] = ()
    ) -> None:
        self.problems: list[InputProblem] = []
        self.warnings: list[InputProblem] = []
        self.overloads: dict[int, str] = {}
        self._source = source
        self._declared: dict[str, Constraint] = {}
        for constraint in declared:
            if self._declared.setdefault(constraint.name, constraint) is not constraint:
                what = f"{constraint.name} is declared twice"
                self._report(constraint.place, what, "rename one of them", "declared-twice")
        # Own constraints hide those of the library with the same name.
        self._declared = {constraint.name: constraint for constraint in known} | self._declared
        self._resolving: frozenset[str] = frozenset()
        self._scope: dict[str, Type] = {}
        self._used: set[str] = set()

    def constraint(self, constraint: Constraint) -> None:
        self._scope, self._used = {}, set()
        name = canonical_name(constraint.name)
        if name in signatures() or name in SETS or name in STATES or name in KEYWORDS:
            what = f"{constraint.name} is a word of the language"
            self._report(constraint.place, what, "choose another name", "reserved-word")
        for parameter in constraint.parameters:
            if parameter.name in self._scope:
                what = f"{parameter.name} is given twice"
                self._report(parameter.place, what, "rename one of them", "declared-twice")
            self._scope[parameter.name] = self._parameter_type(parameter)
        self._want(constraint.formula, BOOL, "a constraint must be true or false")
        # Formulas always end: a constraint that calls itself could be evaluated for ever.
        if self._reaches(constraint.name, constraint):
            what = f"{constraint.name} calls itself"
            cure = "remove one of the calls that form the cycle"
            self._report(constraint.place, what, cure, "recursive-constraint")
        for parameter in constraint.parameters:
            if parameter.name not in self._used:
                what = f"{constraint.name} never uses its argument {parameter.name}"
                cure = "use it or remove it"
                self.warnings.append(
                    self._source.problem(parameter.place, what, cure, "unused-argument")
                )

    def _reaches(self, name: str, start: Constraint) -> bool:
        """Whether evaluating a constraint leads to evaluating another one."""
        seen: set[str] = set()
        open_calls = list(calls_in(start.formula))
        while open_calls:
            called = open_calls.pop()
            if called == name:
                return True
            if called in self._declared and called not in seen:
                seen.add(called)
                open_calls += calls_in(self._declared[called].formula)
        return False

    def _parameter_type(self, parameter: Parameter) -> Type:
        domain = parameter.domain
        if isinstance(domain, syntax.Name) and domain.name in DOMAINS:
            return self._among(parameter.binding, DOMAINS[domain.name])
        return self._bound(parameter.binding, domain)

    def _bound(self, binding: Binding, domain: Term) -> Type:
        """The type of a variable that ranges over a domain."""
        kind = self._type(domain)
        inner = members_of(kind)
        if inner is None:
            if kind != ANYTHING:
                self._report(domain.place, f"{kind} is not a collection", "give a set or a list")
            return ANYTHING
        return self._among(binding, inner)

    @staticmethod
    def _among(binding: Binding, inner: Type) -> Type:
        if binding is Binding.MEMBER:
            return inner
        return set_of(inner) if binding is Binding.SUBSET else packing_of(inner)

    def _type(self, term: Term) -> Type:
        match term:
            case syntax.Name():
                return self._name(term)
            case syntax.Number():
                return INT
            case syntax.Text():
                return STRING
            case syntax.Boolean():
                return BOOL
            case syntax.Call():
                return self._call(term)
            case syntax.Operation():
                return self._operation(term)
            case _:
                return self._compound(term)

    def _compound(self, term: Term) -> Type:
        match term:
            case syntax.Not():
                return self._want(term.term, BOOL, "only true or false can be negated")
            case syntax.Minus():
                return self._want(term.term, INT, "only a number has a sign")
            case syntax.Index():
                return self._index(term)
            case syntax.SetOf():
                return set_of(self._common(term.members, "a set has members of one kind"))
            case syntax.ListOf():
                return list_of(self._common(term.elements, "a list has elements of one kind"))
            case syntax.SetWhere() | syntax.ListWhere():
                return self._where(term)
            case syntax.ForAll() | syntax.Exists():
                with self._binding(term.binders):
                    return self._want(term.body, BOOL, "the body of a quantifier is true or false")
            case syntax.Let():
                return self._let(term)
            case syntax.Always() | syntax.Sometime():
                return self._want(term.body, BOOL, "always and sometime need true or false")
            case _:
                raise AssertionError(f"no rule for {term}")

    def _name(self, term: syntax.Name) -> Type:
        if term.name in self._scope:
            self._used.add(term.name)
            return self._scope[term.name]
        name = canonical_name(term.name)
        known_type = SETS.get(name) or STATES.get(name)
        if known_type is None:
            cure = f"{term.name}(...) is a function" if name in signatures() else ""
            known = [*self._scope, *SETS, *STATES]
            what = f"{term.name} is not known here"
            self._report(term.place, what, cure or _suggestion(name, known), "unknown-name")
        return known_type or ANYTHING

    def _call(self, term: syntax.Call) -> Type:
        name = canonical_name(term.function)
        kinds = [self._type(argument) for argument in term.arguments]
        signature = signatures().get(name)
        if signature is not None:
            wanted, result = signature.parameters, signature.result
        elif term.function in self._declared:
            declared = self._declared[term.function]
            wanted, result = self._parameters_of(declared), BOOL
        else:
            known = [*signatures(), *self._declared]
            what = f"there is no function {term.function}"
            self._report(term.place, what, _suggestion(name, known), "unknown-name")
            return ANYTHING
        if len(kinds) != len(wanted):
            what = f"{term.function} takes {len(wanted)} arguments, not {len(kinds)}"
            self._report(term.place, what, f"write {term.function}({', '.join(map(str, wanted))})")
            return substitute(result, {})
        return self._arguments(term, kinds, wanted, result)

    def _arguments(
        self, term: syntax.Call, kinds: list[Type], wanted: tuple[Type, ...], result: Type
    ) -> Type:
        open_types: dict[str, Type] = {}
        for argument, given, need in zip(term.arguments, kinds, wanted, strict=True):
            if need == ELEMENT and given in (VM, HOST, ANYTHING):
                # A term without elements may be either; both functions give the same for it.
                of = HOST if given == HOST else VM
                self.overloads[id(term)] = f"{canonical_name(term.function)} of {of}"
                continue
            if not match_type(need, given, open_types):
                cure = _argument_cure(canonical_name(term.function), given)
                self._report(argument.place, f"{term.function} takes {need}, this is {given}", cure)
        return substitute(result, open_types)

    def _parameters_of(self, constraint: Constraint) -> tuple[Type, ...]:
        """Return the types of another constraint's parameters, without reporting its problems."""
        if constraint.name in self._resolving:  # its parameters range over itself
            return (ANYTHING,) * len(constraint.parameters)
        # Types of parameters may depend on other constraints; a second checker discards the
        # problems.
        silent = _TypeChecker(self._source, ())
        silent._declared = self._declared
        silent._resolving = self._resolving | {constraint.name}
        return tuple(silent._parameter_type(parameter) for parameter in constraint.parameters)

    def _operation(self, term: syntax.Operation) -> Type:
        operator = term.operator
        if operator in _LOGIC:
            self._want(term.left, BOOL, f"{operator} takes true or false")
            return self._want(term.right, BOOL, f"{operator} takes true or false")
        left, right = self._type(term.left), self._type(term.right)
        if operator in _ORDER:
            self._both(term, left, right, INT)
            return BOOL
        if operator in ("=", "/="):
            self._same(term, left, right)
            return BOOL
        if operator in ("*", "/"):
            self._both(term, left, right, INT)
            return INT
        if operator in ("+", "-", "/\\", "\\/"):
            return self._arithmetic(term, left, right)
        return self._membership(term, left, right)

    def _arithmetic(self, term: syntax.Operation, left: Type, right: Type) -> Type:
        if left == INT and right == INT and term.operator in "+-":
            return INT
        joined = self._same(term, left, right)
        if joined.name not in ("set", ANYTHING.name):
            self._report(term.place, f"{term.operator} does not work on {joined}", "use sets")
        return joined

    def _membership(self, term: syntax.Operation, left: Type, right: Type) -> Type:
        operator = term.operator.removeprefix("/")
        inner = members_of(right)
        if inner is None:
            if right != ANYTHING:
                self._report(term.place, f"{right} has no members", "write a set on the right")
            return BOOL
        if operator == "<<:":
            self._packing(term, left, inner)
            return BOOL
        wanted = inner if operator == ":" else set_of(inner)
        if common_type(wanted, left) is None:
            self._report(term.place, f"{operator} takes {wanted} on the left, this is {left}", "")
        return BOOL

    def _packing(self, term: syntax.Operation, left: Type, inner: Type) -> None:
        if isinstance(term.left, syntax.SetWhere):
            self._report(
                term.left.place,
                "a set keeps equal groups once, so overlapping groups would pass",
                "write [ ... ] instead of { ... }: a list keeps both",
            )
        groups = members_of(left)
        if groups is not None and common_type(groups, set_of(inner)) is None:
            wanted = f"groups of {inner}"
            self._report(term.place, f"<<: takes {wanted} on the left, this is {left}", "")

    def _where(self, term: syntax.SetWhere | syntax.ListWhere) -> Type:
        with self._binding(term.binders):
            for condition in term.conditions:
                self._want(condition, BOOL, "a condition is true or false")
            inner = self._type(term.term)
        return set_of(inner) if isinstance(term, syntax.SetWhere) else list_of(inner)

    def _index(self, term: syntax.Index) -> Type:
        kind = self._type(term.sequence)
        self._want(term.position, INT, "a position is a number")
        if kind.name != "list" and kind != ANYTHING:
            self._report(term.place, f"{kind} has no positions", "only lists have positions")
        return kind.of or ANYTHING

    def _let(self, term: syntax.Let) -> Type:
        kind = self._type(term.value)
        with self._names({term.name: kind}):
            return self._type(term.body)

    @contextmanager
    def _binding(self, binders: tuple[syntax.Binder, ...]) -> Iterator[None]:
        names: dict[str, Type] = {}
        for binder in binders:
            with self._names(names):
                kind = self._bound(binder.binding, binder.domain)
            names = names | dict.fromkeys(binder.names, kind)
        with self._names(names):
            yield

    @contextmanager
    def _names(self, names: dict[str, Type]) -> Iterator[None]:
        """Bind names inside the block; names that they hide have their meaning again after it."""
        # A use of an inner name must not count as a use of the outer argument that it hides.
        before, used = self._scope, {name for name in names if name in self._used}
        self._scope = before | names
        yield
        self._scope = before
        self._used = (self._used - names.keys()) | used

    def _want(self, term: Term, wanted: Type, why: str) -> Type:
        kind = self._type(term)
        if common_type(kind, wanted) is None:
            self._report(term.place, f"this is {kind}, not {wanted}", why)
        return wanted

    def _both(self, term: syntax.Operation, left: Type, right: Type, wanted: Type) -> None:
        for side, kind in ((term.left, left), (term.right, right)):
            if common_type(kind, wanted) is None:
                self._report(side.place, f"{term.operator} takes {wanted}, this is {kind}", "")

    def _same(self, term: syntax.Operation, left: Type, right: Type) -> Type:
        joined = common_type(left, right)
        if joined is None:
            what = f"{left} and {right} are never equal"
            self._report(term.place, what, "compare values of one type")
        return joined or ANYTHING

    def _common(self, terms: tuple[Term, ...], why: str) -> Type:
        common = ANYTHING
        for term in terms:
            kind = self._type(term)
            # Members are compared with the type so far, so only the first odd member is reported.
            joined = common_type(common, kind)
            if joined is None:
                self._report(term.place, f"this is {kind} among {common}", why)
            common = joined or common
        return common

    def _report(
        self, place: SourcePosition, what: str, cure: str, code: str = "type-mismatch"
    ) -> None:
        self.problems.append(self._source.problem(place, what, cure, code))


def _argument_cure(function: str, given: Type) -> str:
    if function == "sum" and given.name == "set":
        return "a set counts equal numbers once; write [ ... ] to add them all"
    if function == "host" and given == HOST:
        return "for a host, write hosted(n) or running(n)"
    signature = signatures().get(function)
    return signature.doc if signature is not None else ""


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]}?" if close else ""
