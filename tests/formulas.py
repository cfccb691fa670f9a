"""Hypothesis strategies for well-typed formulas of the specification language.

A formula is written from its type downwards. Collections to choose groups from have few members.

A list by a rule over a set has its elements in an order that the language does not tell. It is a
``bag`` here, and stands only where the order does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar, cast

from hypothesis import strategies as st

from equipoise.spec.language import syntax
from equipoise.spec.language.parse import parse
from equipoise.spec.language.print import print_file
from equipoise.spec.language.syntax import Binder, Binding, Call, Constraint, Name, Operation, Term
from equipoise.spec.language.vocabulary import (
    ELEMENT,
    SIGNATURES,
    SIMPLE_TYPES,
    STATES,
    SYNONYMS,
    Type,
    canonical_name,
    list_of,
    packing_of,
    set_of,
)


def parse_term(text: str) -> Term:
    """Parse a single term, as the formula of a declaration."""
    (constraint,) = parse(f"a ::= {text}")
    return constraint.formula


A = TypeVar("A")
Maker = Callable[[], Term]

DEPTH: Final = 4
BYTES: Final = 500
PLAIN_KINDS: Final = tuple(SIMPLE_TYPES.values())
INT, BOOL, STRING, VM, HOST, VM_STATE, HOST_STATE, ACTION = PLAIN_KINDS
VARIABLES: Final = ("x", "y", "z", "v", "x", "y", "z", "v", "vms", "hosts", "running", "card")
"""Few names, so that inner names hide outer ones and some hide predefined ones."""
WORDS: Final = ("", '"\\', "p1", "t1", "migrate", "r1", "r2", "rack", "licences", "cpu", "memory")
FEW: Final = (VM, HOST, BOOL, ACTION, VM_STATE, HOST_STATE)  # sets of these are small
MOMENTS: Final = (*syntax.StateRef, syntax.StateRef.NOW)
PREDEFINED: Final = {VM: ("vms",), HOST: ("hosts", "nodes")}
STATE_WORDS: Final = {
    kind: tuple(name for name in (*STATES, *SYNONYMS) if STATES.get(canonical_name(name)) == kind)
    for kind in (VM_STATE, HOST_STATE)
}
PARAMETERS: Final = {
    "v": (Binding.MEMBER, "vms", VM), "h": (Binding.MEMBER, "nodes", HOST),
    "s": (Binding.SUBSET, "vms", set_of(VM)), "g": (Binding.SUBSET, "hosts", set_of(HOST)),
    "p": (Binding.PACKING, "vms", packing_of(VM)),
    "n": (Binding.MEMBER, "int", INT), "t": (Binding.MEMBER, "string", STRING),
}  # fmt: skip
EXAMPLES: Final = {
    INT: "0", BOOL: "true", STRING: '""', VM_STATE: "ready", HOST_STATE: "on",
    VM: "[v . v : vms][0]", HOST: "[h . h : hosts][0]",
    ACTION: "[a . v : vms; a : actions(v)][0]",
}  # fmt: skip
bag_of = partial(Type, "bag")


@dataclass(frozen=True)
class Scope:
    """The variables, the callable constraints and the remaining depth at a place of a formula."""

    depth: int = DEPTH
    names: Mapping[str, Type] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()

    def deeper(self) -> Scope:
        return replace(self, depth=self.depth - 1)

    def having(self, names: Mapping[str, Type]) -> Scope:
        return replace(self, names={**self.names, **names})

    def variables(self, kind: Type) -> list[Term]:
        return [Name(name) for name, known in self.names.items() if known == kind]

    def visible(self, names: Sequence[str]) -> list[Term]:
        return [Name(name) for name in names if name not in self.names]

    def has(self, kind: Type) -> bool:
        """Whether a term of a plain type can be written."""
        if kind in (HOST, ELEMENT):
            return any(self.variables(element) for element in (HOST, VM, ACTION))
        if kind in (VM, ACTION) or kind.name == "packing":
            return bool(self.variables(kind))
        return True


class Choices:
    """Choices that follow from bytes; what makes a formula longer never follows from 0.

    Of many small draws Hypothesis would make most examples by repeating parts of others.
    """

    def __init__(self, data: bytes) -> None:
        self._left = iter(data)

    def pick(self, options: Sequence[A]) -> A:
        return options[next(self._left, 0) % len(options)]

    def often(self, odds: int) -> bool:
        return next(self._left, 0) % (odds + 1) > 0

    def seldom(self, odds: int) -> bool:
        return next(self._left, 0) % (odds + 1) == odds


class Writer(Choices):
    """Writes terms."""

    def kind(self, scope: Scope, collections: int = 2) -> Type:
        """Return a type of which a term can be written, with nested collections up to a depth."""
        plain_kinds = [kind for kind in PLAIN_KINDS if scope.has(kind)]
        kind = self.pick([*plain_kinds, *[element for element in (VM, HOST) if scope.has(element)]])
        while collections > 0 and self.seldom(2):
            kind, collections = self.pick((set_of, set_of, list_of))(kind), collections - 1
        return kind

    def term(self, kind: Type, scope: Scope) -> Term:
        if kind.name == "bag":
            return self.bag(kind, scope)
        if kind.name == "packing":
            return self.pick(scope.variables(kind))
        if scope.depth > 0 and self.seldom(11):
            return self.pick((self._let, self._index))(kind, scope.deeper())
        makers = self._compounds(kind, scope.deeper()) if scope.depth > 0 else []
        if makers and self.often(9 if kind == BOOL else 2):
            return self.pick(makers)()
        return self._leaf(kind, scope)

    def _leaf(self, kind: Type, scope: Scope) -> Term:
        found = scope.variables(kind) * 2 + scope.visible(STATE_WORDS.get(kind, ()))
        if kind == HOST:
            found += [Call("host", (vm,)) for vm in scope.variables(VM)]
            found += [Call("target", (action,)) for action in scope.variables(ACTION)]
        elif kind.name == "set":
            found += scope.visible(PREDEFINED.get(_inner(kind), ())) * 2
        if found and self.often(3):
            return self.pick(found)
        if kind == BOOL:
            return self._fact(scope)
        if kind == INT:
            return syntax.Number(self.pick((0, 0, 1, 1, 2, 3, 1000)))
        if kind == STRING:
            return syntax.Text(self.pick(WORDS))
        return self._literal(kind, replace(scope, depth=0)) if kind.of else self.pick(found)

    def _fact(self, scope: Scope) -> Term:
        """Return a term about a variable, if there is one."""
        moment = self.pick(MOMENTS)
        asked: list[tuple[Term, Type]] = [
            (Call(name, (variable,), moment), signature.result)
            for name, signature in SIGNATURES.items()
            if len(signature.parameters) == 1 and signature.result in PLAIN_KINDS
            for variable in scope.variables(signature.parameters[0])
        ]
        alone = [(Name(name), kind) for name, kind in scope.names.items() if kind in PLAIN_KINDS]
        if not alone or not self.often(5):
            return syntax.Boolean(self.often(2))
        term, kind = self.pick(asked if asked and self.often(1) else alone)
        other = self._leaf(kind, scope)
        fact: Term = Operation(self.pick(("=", "/=")), term, other)
        return self.pick([fact, fact, fact, syntax.Always(fact), syntax.Sometime(fact)])

    def _literal(self, kind: Type, scope: Scope) -> Term:
        inner = _inner(kind)
        known = scope.visible(PREDEFINED.get(inner, ()))
        if known and kind.name == "set" and not scope.has(inner):
            return self.pick(known)
        # The checker takes the members of {} for anything but numbers, so it is not written there.
        empty = not scope.has(inner) or ("int" not in str(kind) and self.seldom(11))
        size = 0 if empty else self.pick((1, 1, 2, 3))
        members = tuple(self.term(inner, scope) for _ in range(size))
        return syntax.SetOf(members) if kind.name == "set" else syntax.ListOf(members)

    def _compounds(self, kind: Type, scope: Scope) -> list[Maker]:
        makers: list[Maker] = [
            lambda function=function: self._call(function, kind, scope)  # type: ignore[misc]
            for function, signature in SIGNATURES.items()
            if signature.result == kind or (function == "lists" and str(kind)[:8] == "set<list")
            if all(map(scope.has, signature.parameters))
        ]
        if kind == INT:
            makers += [lambda: self._joined("+ - * /", INT, scope)] * 2
            makers += [lambda: Operation("/", self.term(INT, scope), syntax.Number(2))]
            makers += [lambda: syntax.Minus(self.term(INT, scope))]
        elif kind == BOOL:
            makers += self._formulas(scope)
        elif kind.name == "set":
            makers += [lambda: self._joined("+ - /\\ \\/", kind, scope)] * 2
        if kind.name in ("set", "list"):
            makers += [lambda: self._literal(kind, scope)]
            makers += [lambda: self._where(kind, scope)] * 2
        return makers

    def _let(self, kind: Type, scope: Scope) -> Term:
        name, given = self.pick(VARIABLES), self.kind(scope)
        inner = scope.having({name: given})
        if not inner.has(kind):  # the only variable of this type would be hidden
            return self.term(kind, scope)
        return syntax.Let(name, self.term(given, scope), self.term(kind, inner))

    def _index(self, kind: Type, scope: Scope) -> Term:
        if self.seldom(4):
            sequence = self.term(list_of(kind), scope)
            return syntax.Index(sequence, self.term(INT, replace(scope, depth=0)))
        elements = syntax.ListOf((self.term(kind, scope), self.term(kind, scope)))
        return syntax.Index(elements, syntax.Number(self.pick((0, 1))))

    def _call(self, function: str, kind: Type, scope: Scope) -> Term:
        wanted = SIGNATURES[function].parameters
        arguments = tuple(self._argument(parameter, kind, scope) for parameter in wanted)
        others = [name for name, ours in SYNONYMS.items() if ours == function]
        return Call(self.pick([function, *others]), arguments, self.pick(MOMENTS))

    def _argument(self, wanted: Type, result: Type, scope: Scope) -> Term:
        if wanted == ELEMENT:
            elements = [element for element in (VM, HOST) if scope.has(element)]
            return self.term(self.pick(elements), scope)
        if wanted.name == "collection":
            return self.collection(self.kind(scope, 1), scope)
        if wanted.name == "set":  # of lists(...)
            return self.small_set(_inner(_inner(result)), scope)
        if wanted.name == "list":  # of functions that do not depend on the order
            return self.bag(bag_of(_inner(wanted) if wanted == list_of(INT) else BOOL), scope)
        if wanted == STRING and self.often(5):  # a label or a resource
            return syntax.Text(self.pick(WORDS[-4:]))
        return self.term(wanted, scope)

    def _joined(self, signs: str, kind: Type, scope: Scope) -> Term:
        left, right = self.term(kind, scope), self.term(kind, scope)
        return Operation(self.pick(signs.split()), left, right)

    def collection(self, member: Type, scope: Scope) -> Term:
        """Return a set, a list in any order, or a packing."""
        packings = scope.variables(packing_of(_inner(member))) if member.name == "set" else []
        if packings and self.often(1):
            return self.pick(packings)
        if member == ACTION and scope.has(HOST) and self.often(4):
            return self._call(self.pick(("actions", "underway")), set_of(ACTION), scope)
        in_order = scope.has(member) and self.seldom(2)
        return self.term(bag_of(member) if in_order else set_of(member), scope)

    def small_set(self, member: Type, scope: Scope) -> Term:
        if member in FEW:
            return self.term(set_of(member), scope)
        if scope.depth > 0 and self.often(1):
            binder = Binder(("x",), Binding.MEMBER, self.term(set_of(VM), scope.deeper()))
            inner = scope.deeper().having({"x": VM})
            return syntax.SetWhere(self.term(member, inner), (binder,))
        return self._literal(set_of(member), replace(scope, depth=min(scope.depth, 1)))

    def bag(self, kind: Type, scope: Scope) -> Term:
        """Return a list whose order does not matter."""
        if scope.depth <= 0 or (scope.has(_inner(kind)) and not self.often(2)):
            return self.term(list_of(_inner(kind)), scope)
        return self._where(kind, scope.deeper())

    def _where(self, kind: Type, scope: Scope) -> Term:
        """Return a collection by a rule; an ordered list ranges over another ordered list."""
        binders, inner = self.binders(scope) if kind.name != "list" else self._in_order(scope)
        if not inner.has(_inner(kind)):
            return self._literal(kind, scope)
        found = self.term(_inner(kind), inner), binders, self._conditions(inner)
        return syntax.SetWhere(*found) if kind.name == "set" else syntax.ListWhere(*found)

    def _in_order(self, scope: Scope) -> tuple[tuple[Binder, ...], Scope]:
        name, given = self.pick(VARIABLES), self.kind(scope, 1)
        binder = Binder((name,), Binding.MEMBER, self.term(list_of(given), scope))
        return (binder,), scope.having({name: given})

    def _conditions(self, scope: Scope) -> tuple[Term, ...]:
        return tuple(self.term(BOOL, scope) for _ in range(self.pick((0, 0, 1, 1, 2))))

    def binders(self, scope: Scope) -> tuple[tuple[Binder, ...], Scope]:
        """Return one or two binders, and the scope with their variables."""
        found: list[Binder] = []
        for _ in range(self.pick((1, 1, 2))):
            binder, kind = self._binder(scope)
            found.append(binder)
            scope = scope.having(dict.fromkeys(binder.names, kind))
        return tuple(found), scope

    def _binder(self, scope: Scope) -> tuple[Binder, Type]:
        binding = self.pick((*[Binding.MEMBER] * 4, Binding.SUBSET, Binding.PACKING))
        names = tuple(self.pick(VARIABLES) for _ in range(self.pick((1, 1, 2))))
        often = [VM, VM, HOST, self.kind(scope, 1)]
        member = self.pick(often + ([ACTION] * 2 if scope.has(HOST) else []))
        if binding is Binding.MEMBER:
            return Binder(names, binding, self.collection(member, scope)), member
        groups = set_of(member) if binding is Binding.SUBSET else packing_of(member)
        return Binder(names[:1], binding, self.small_set(member, scope)), groups

    def _formulas(self, scope: Scope) -> list[Maker]:
        return [
            *[lambda: self._joined("& | --> <-->", BOOL, scope)] * 3,
            lambda: syntax.Not(self.term(BOOL, scope)),
            *[lambda: self._joined("= /= < <= > >=", INT, scope)] * 2,
            *[lambda: self._joined("= /=", self.kind(scope), scope)] * 2,
            *[lambda: self._membership(scope)] * 3,
            *[lambda: self._quantified(scope)] * 4,
            lambda: syntax.Always(self.term(BOOL, scope)),
            lambda: syntax.Sometime(self.term(BOOL, scope)),
            *[lambda: self._constraint_call(scope)] * (3 if scope.constraints else 0),
        ]

    def _membership(self, scope: Scope) -> Term:
        member = self.kind(scope, 1)
        negated, sign = self.pick(("", "/")), self.pick((":", "<:", "<<:"))
        groups = self._groups(member, scope) if sign == "<<:" else None
        left = groups or self.term(member if sign == ":" else set_of(member), scope)
        return Operation(negated + sign, left, self.collection(member, scope))

    def _groups(self, member: Type, scope: Scope) -> Term:
        """Return a term that may be a packing; never a set by rule, which the checker refuses."""
        packings = scope.variables(packing_of(member))
        if packings and self.often(1):
            return self.pick(packings)
        literal = self._literal(set_of(set_of(member)), scope)
        return literal if self.often(1) else self.bag(bag_of(set_of(member)), scope)

    def _quantified(self, scope: Scope) -> Term:
        binders, inner = self.binders(scope)
        body = self.term(BOOL, inner)
        return syntax.ForAll(binders, body) if self.often(1) else syntax.Exists(binders, body)

    def _constraint_call(self, scope: Scope) -> Term:
        called = self.pick(scope.constraints)
        kinds = [PARAMETERS[parameter.name][2] for parameter in called.parameters]
        if not all(map(scope.has, kinds)):
            return self._fact(scope)
        arguments = tuple(self.term(kind, scope) for kind in kinds)
        return Call(called.name, arguments, self.pick(MOMENTS))

    def formula(self, scope: Scope) -> Term:
        """Return a formula, most often about all or some VMs, hosts or actions."""
        return self._quantified(scope) if self.often(5) else self.term(BOOL, scope)

    def report(self, scope: Scope) -> tuple[Term, Type]:
        """Return a term that tells more than a formula: a value of each of many cases."""
        binders, inner = self.binders(scope)
        kind = self.pick((INT, self.kind(inner, 1)))
        makers = self._compounds(kind, inner.deeper()) or [lambda: self.term(kind, inner)]
        return _of_each(self.pick(makers)(), kind, binders, self._conditions(inner)[:1])

    def survey(self) -> tuple[Term, Type]:
        """Return the values of one function for everything."""
        function = self.pick(sorted(SIGNATURES))
        kind = set_of(list_of(VM)) if function == "lists" else SIGNATURES[function].result
        names, rule = {"v": VM, "h": HOST}, "{v . v : vms; h : hosts}"
        if ACTION in SIGNATURES[function].parameters:
            names, rule = {**names, "a": ACTION}, "{v . v : vms; h : hosts; a : actions(h)}"
        binders = cast(syntax.SetWhere, parse_term(rule)).binders
        return _of_each(self._call(function, kind, Scope(1, names)), kind, binders)


def _of_each(
    term: Term, kind: Type, binders: tuple[Binder, ...], conditions: tuple[Term, ...] = ()
) -> tuple[Term, Type]:
    if kind == INT:
        return Call("sum", (syntax.ListWhere(term, binders, conditions),)), INT
    return syntax.SetWhere(term, binders, conditions), set_of(kind)


def _example(kind: Type) -> Term:
    if kind.of is None:
        return parse_term(EXAMPLES[kind])
    inner = (_example(kind.of),)
    return syntax.SetOf(inner) if kind.name == "set" else syntax.ListOf(inner)


def _inner(kind: Type) -> Type:
    assert kind.of is not None
    return kind.of


class File(tuple[Constraint, ...]):
    """Constraints, shown as they are written."""

    def __repr__(self) -> str:
        return print_file(self)


def a_file(data: bytes) -> File:
    """Return a file: ``a`` is a formula, or states that a term has the value ``e``."""
    writer = Writer(data)
    others: tuple[Constraint, ...] = ()
    if writer.often(1):
        names = {writer.pick(sorted(PARAMETERS)) for _ in range(writer.pick(range(4)))}
        given = {name: PARAMETERS[name] for name in sorted(names)}
        scope = Scope(DEPTH - 1, {name: kind for name, (_, __, kind) in given.items()})
        parameters = [
            syntax.Parameter(name, how, Name(domain)) for name, (how, domain, _) in given.items()
        ]
        others = (Constraint("b", tuple(parameters), writer.formula(scope)),)
    scope = Scope(writer.pick((2, 2, 3, DEPTH)), constraints=others)
    if not writer.often(3):
        return File((Constraint("a", (), writer.formula(scope)), *others))
    term, kind = writer.report(scope) if writer.often(1) else writer.survey()
    expected = syntax.Parameter("e", Binding.MEMBER, syntax.SetOf((_example(kind),)))
    return File((Constraint("a", (expected,), Operation("=", term, Name("e"))), *others))


files = st.binary(min_size=BYTES, max_size=BYTES).map(a_file)
