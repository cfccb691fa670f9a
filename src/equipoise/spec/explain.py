"""Why a formula is false: the sub-formula that decides it, with the values it was decided by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Protocol

from equipoise.errors import InvalidInput
from equipoise.model.plan import Step
from equipoise.spec.choose import choices
from equipoise.spec.compile import Compiler
from equipoise.spec.language.print import print_term
from equipoise.spec.language.syntax import (
    Always,
    Binder,
    Call,
    Constraint,
    Exists,
    ForAll,
    Let,
    Moment,
    Name,
    Not,
    Number,
    Operation,
    Sometime,
    Term,
    Text,
    Truth,
    field_names,
    names_in,
    parts_of,
)
from equipoise.spec.language.vocabulary import STATES
from equipoise.spec.view import Frame

SHOWN_MAX = 8
"""How many members of a collection are written out."""


class Quoted(str):
    """A text that is no name."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Why:
    """The reason why something does not hold."""

    formula: str
    """The smallest part that is false, as it is written."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """What those of its variables stand for that are too long to be written in their place."""
    values: tuple[tuple[str, Any], ...] = ()
    """What its terms come to."""
    about: frozenset[str] = frozenset()
    """The names that stand in the formula in place of its variables."""
    note: str = ""
    moment: int | None = None
    """At which of all moments of the plan it was so, if it is another one than the present."""

    def __str__(self) -> str:
        bound = [f"{name} = {shown(value)}" for name, value in self.where.items()]
        found = [f"{text} = {shown(value)}" for text, value in self.values]
        said = ", ".join(dict.fromkeys([*bound, *found]))  # a variable may be a term as well
        return f"not so: {self.formula}{f', with {said}' if said else ''}{self.note}"

    def elements(self) -> frozenset[str]:
        """The VMs and hosts it speaks of."""
        told = (*self.where.values(), *(value for _, value in self.values))
        return self.about.union(one for value in told for one in _texts(value))


def shown(value: Any) -> str:
    """A value of the language as a person reads it."""
    match value:
        case None:
            return "nowhere"
        case bool():
            return "true" if value else "false"
        case Quoted():
            return print_term(Text(str(value)))
        case Step():
            return f"step {value.id}"
        case frozenset() | tuple():
            some = list(value) if isinstance(value, tuple) else sorted(value, key=shown)
            listed = ", ".join(map(shown, some[:SHOWN_MAX]))
            more = f", and {len(some) - SHOWN_MAX} more" if len(some) > SHOWN_MAX else ""
            return f"[{listed}{more}]" if isinstance(value, tuple) else f"{{{listed}{more}}}"
        case _:
            return str(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, frozenset | tuple):
        for one in value:
            yield from _texts(one)


class Homes(Protocol):
    """The specification whose formulas are explained, and those it may call."""

    constraints: dict[str, Constraint]

    def home(self, name: str) -> Homes | None:
        """The specification that declares a constraint."""
        ...

    def why(self, term: Term, names: Mapping[str, Any], frame: Frame) -> Why:
        """Say why one of its formulas is false."""
        ...


class Explainer:
    """Finds the reason, by asking the same closures again, one part after the other."""

    def __init__(self, homes: Homes, compiler: Compiler, frame: Frame) -> None:
        self._homes = homes
        self._compiler = compiler
        self._frame = frame

    def why(self, term: Term, names: Mapping[str, Any]) -> Why:
        """Say why a formula is false here; the names are its variables with their values."""
        match term:
            case Operation(operator="&"):
                left = self._value(term.left, names)
                return self.why(term.right if left else term.left, names)
            case Operation(operator="-->"):
                return self.why(term.right, names)
            case ForAll() if not _hides_itself(term.binders):
                return self._for_all(term.binders, term.body, names)
            case Let():
                return self.why(term.body, {**names, term.name: self._value(term.value, names)})
            case Call() if (home := self._homes.home(term.function)) is not None:
                return self._called(term, names, home)
            case Always():
                return self._always(term, names)
            case _:
                return self._leaf(term, names)

    def _for_all(self, binders: tuple[Binder, ...], body: Term, names: Mapping[str, Any]) -> Why:
        if not binders:
            return self.why(body, names)
        first, rest = binders[0], binders[1:]
        name, others = first.names[0], first.names[1:]
        if others:
            rest = (Binder(others, first.binding, first.domain, place=first.place), *rest)
        for value in choices(first.binding, self._value(first.domain, names)):
            inner = {**names, name: value}
            if not self._value(ForAll(rest, body, place=body.place) if rest else body, inner):
                return self._for_all(rest, body, inner)
        raise AssertionError("it holds for all of them")

    def _called(self, term: Call, names: Mapping[str, Any], home: Homes) -> Why:
        constraint = home.constraints[term.function]
        values = [self._value(one, names) for one in term.arguments]
        frame = self._frame
        if term.moment is not Moment.NOW:
            frame = frame.at(frame.initial if term.moment is Moment.INITIAL else frame.final)
        parameters = (one.name for one in constraint.parameters)
        given = dict(zip(parameters, values, strict=True))
        return home.why(constraint.formula, given, frame)

    def _always(self, term: Always, names: Mapping[str, Any]) -> Why:
        for place, view in enumerate(self._frame.moments or (self._frame.now,)):
            inner = Explainer(self._homes, self._compiler, self._frame.at(view))
            if not inner._value(term.body, names):
                why = inner.why(term.body, names)
                return replace(why, moment=place if why.moment is None else why.moment)
        raise AssertionError("it holds at every moment")

    def _leaf(self, term: Term, names: Mapping[str, Any]) -> Why:
        hidden = _bound_in(term)
        named = {
            name: Name(shown(self._quoted(value)))
            for name, value in names.items()
            if name not in hidden and isinstance(value, str | int | None)
        }
        written = names_in(term)
        used = {name: names[name] for name in names if name in written and name not in named}
        about = frozenset(shown(names[name]) for name in named if name in written)
        text = print_term(_with(term, named))
        if isinstance(term, Sometime):
            return Why(text, used, about=about, note=", at no moment of the plan")
        found = {}
        for part in _telling_parts(term):
            with suppress(InvalidInput):  # what has no value here did not decide it
                found[print_term(_with(part, named))] = self._quoted(self._value(part, names))
        return Why(text, used, tuple(found.items()), about, self._trouble(term, names))

    def _trouble(self, term: Term, names: Mapping[str, Any]) -> str:
        """Say that a term has no value here, if it has none."""
        try:
            self._value(term, names)
        except InvalidInput as error:
            return f", which {error.problems[0].what}"
        return ""

    def _quoted(self, value: Any) -> Any:
        """A text, unlike a name or a state, is shown in quotes."""
        view = self._frame.now
        known = value in view.vms or value in view.hosts or value in STATES
        return Quoted(value) if isinstance(value, str) and not known else value

    def _value(self, term: Term, names: Mapping[str, Any]) -> Any:
        scope = {name: place for place, name in enumerate(names)}
        return self._compiler.term(term, scope)(self._frame, list(names.values()))


def _hides_itself(binders: tuple[Binder, ...]) -> bool:
    """Whether a name is used by the very binder that gives it a new meaning."""
    return any(
        len(set(one.names)) < len(one.names)
        or (len(one.names) > 1 and not names_in(one.domain).isdisjoint(one.names))
        for one in binders
    )


def _bound_in(term: Term) -> frozenset[str]:
    """The names that get a meaning of their own somewhere within a term."""
    found: set[str] = set()
    for part in parts_of(term):
        if isinstance(part, Let):
            found.add(part.name)
        for binder in getattr(part, "binders", ()):
            found.update(binder.names)
    return frozenset(found)


def _with(node: Any, named: Mapping[str, Name]) -> Any:
    """The same syntax with some names written in place of others."""
    if isinstance(node, Name):
        return named.get(node.name, node)
    if isinstance(node, tuple):
        return tuple(_with(one, named) for one in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    parts = {name: getattr(node, name) for name in field_names(type(node))}
    changed = {name: _with(part, named) for name, part in parts.items()}
    return replace(node, **changed)


def _telling_parts(term: Term) -> Iterator[Term]:
    """The terms whose values show why a formula is false: what is compared, not how."""
    match term:
        case Operation(operator="|" | "<-->" | "&" | "-->"):
            yield from _telling_parts(term.left)
            yield from _telling_parts(term.right)
        case Operation():
            for side in (term.left, term.right):
                if isinstance(side, Call) and side.function == "card":
                    yield from side.arguments  # which shows more than how many they are
                elif not _plain(side):
                    yield side
        case Not(term=inner):
            yield from _telling_parts(inner)
        case Exists(binders=binders):
            yield from (one.domain for one in binders[:1] if not _plain(one.domain))
        case _:
            return


def _plain(term: Term) -> bool:
    return isinstance(term, Name | Number | Text | Truth)
