"""Why a formula is false: a plain sentence, the deciding part, and the values of its terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Final, Protocol

from equipoise.errors import InvalidInput
from equipoise.model.plan import Step
from equipoise.spec.evaluate.compile import Compiler
from equipoise.spec.evaluate.domains import choices
from equipoise.spec.evaluate.view import EvaluationContext
from equipoise.spec.language import syntax
from equipoise.spec.language.print import print_term
from equipoise.spec.language.syntax import (
    Constraint,
    StateRef,
    Term,
    field_names,
    names_in,
    subterms,
)
from equipoise.spec.language.vocabulary import STATES

MEMBERS_SHOWN_MAX = 8
"""Number of members of a collection that are written out."""


class QuotedText(str):
    """A text, as opposed to the name of a VM, host or state."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FormulaFailure:
    """The reason why a formula is false."""

    formula: str
    """The smallest part that is false, as it is written."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """The values of the variables that are too long to be written into the formula."""
    values: tuple[tuple[str, Any], ...] = ()
    """The values of its terms."""
    about: frozenset[str] = frozenset()
    """The names that replace variables in the formula."""
    note: str = ""
    moment: int | None = None
    """The index of the moment of the plan, if it is not the judged one."""
    sentence: str = ""
    """The reason without the formula, such as "a and b are both on h1"; empty if there is none."""
    code: str = "rule-violated"
    """A key of ``equipoise.errors.CODES``."""

    def __str__(self) -> str:
        if self.sentence:
            return f"{self.sentence}{self.note}"
        bound = [f"{name} = {format_value(value)}" for name, value in self.where.items()]
        values = [f"{text} = {format_value(value)}" for text, value in self.values]
        details = ", ".join(dict.fromkeys([*bound, *values]))  # a variable may be a term as well
        return f"{self.formula} is false{f', with {details}' if details else ''}{self.note}"

    def elements(self) -> frozenset[str]:
        """Return the VMs and hosts that it names."""
        mentioned = (*self.where.values(), *(value for _, value in self.values))
        return self.about.union(name for value in mentioned for name in texts_in(value))


def format_value(value: Any) -> str:
    """Return the text of a value of the language."""
    match value:
        case None:
            return "nowhere"
        case bool():
            return "true" if value else "false"
        case QuotedText():
            return print_term(syntax.Text(str(value)))
        case Step():
            return f"step {value.id}"
        case frozenset() | tuple():
            members = list(value) if isinstance(value, tuple) else sorted(value, key=format_value)
            listed = ", ".join(map(format_value, members[:MEMBERS_SHOWN_MAX]))
            more = (
                f", and {len(members) - MEMBERS_SHOWN_MAX} more"
                if len(members) > MEMBERS_SHOWN_MAX
                else ""
            )
            return f"[{listed}{more}]" if isinstance(value, tuple) else f"{{{listed}{more}}}"
        case _:
            return str(value)


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a value, also inside sets and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, frozenset | tuple):
        for member in value:
            yield from texts_in(member)


class Declarations(Protocol):
    """The specification of the explained formulas, and the constraints that they call."""

    constraints: dict[str, Constraint]

    def owner(self, name: str) -> Declarations | None:
        """Return the specification that declares a constraint."""
        ...

    def explain(
        self, term: Term, names: Mapping[str, Any], context: EvaluationContext
    ) -> FormulaFailure:
        """Return why one of its formulas is false."""
        ...


class FormulaExplainer:
    """Finds the reason: it evaluates the parts of a false formula until a part decides it."""

    def __init__(
        self, declarations: Declarations, compiler: Compiler, context: EvaluationContext
    ) -> None:
        self._declarations = declarations
        self._compiler = compiler
        self._context = context

    def explain(self, term: Term, names: Mapping[str, Any]) -> FormulaFailure:
        """Return why a formula is false here; the names are its variables with their values."""
        match term:
            case syntax.Operation(operator="&"):
                left = self._value(term.left, names)
                return self.explain(term.right if left else term.left, names)
            case syntax.Operation(operator="-->"):
                # A false implication has a true left side: only the right side can be the reason.
                return self.explain(term.right, names)
            case syntax.ForAll() if not _shadows_itself(term.binders):
                return self._for_all(term.binders, term.body, names)
            case syntax.Let():
                return self.explain(term.body, {**names, term.name: self._value(term.value, names)})
            case syntax.Call() if (owner := self._declarations.owner(term.function)) is not None:
                return self._called(term, names, owner)
            case syntax.Always():
                return self._always(term, names)
            case _:
                return self._leaf(term, names)

    def _for_all(
        self, binders: tuple[syntax.Binder, ...], body: Term, names: Mapping[str, Any]
    ) -> FormulaFailure:
        if not binders:
            return self.explain(body, names)
        first, rest = binders[0], binders[1:]
        name, others = first.names[0], first.names[1:]
        if others:
            rest = (syntax.Binder(others, first.binding, first.domain, place=first.place), *rest)
        # The first value for which the rest is false is the reason, in the order of the language.
        for value in choices(first.binding, self._value(first.domain, names)):
            inner = {**names, name: value}
            if not self._value(
                syntax.ForAll(rest, body, place=body.place) if rest else body, inner
            ):
                return self._for_all(rest, body, inner)
        raise AssertionError("the formula holds for all values")

    def _called(
        self, term: syntax.Call, names: Mapping[str, Any], owner: Declarations
    ) -> FormulaFailure:
        constraint = owner.constraints[term.function]
        values = [self._value(argument, names) for argument in term.arguments]
        context = self._context
        if term.moment is not StateRef.NOW:
            context = context.at(
                context.initial if term.moment is StateRef.INITIAL else context.final
            )
        parameters = (parameter.name for parameter in constraint.parameters)
        given = dict(zip(parameters, values, strict=True))
        return owner.explain(constraint.formula, given, context)

    def _always(self, term: syntax.Always, names: Mapping[str, Any]) -> FormulaFailure:
        for index, view in enumerate(self._context.moments or (self._context.now,)):
            inner = FormulaExplainer(self._declarations, self._compiler, self._context.at(view))
            if not inner._value(term.body, names):
                failure = inner.explain(term.body, names)
                return replace(failure, moment=index if failure.moment is None else failure.moment)
        raise AssertionError("the formula holds at every moment")

    def _leaf(self, term: Term, names: Mapping[str, Any]) -> FormulaFailure:
        # A name that is bound again inside the term keeps its letter; replacing it would be wrong.
        hidden = _bound_in(term)
        named = {
            name: syntax.Name(format_value(self._quoted(value)))
            for name, value in names.items()
            if name not in hidden and isinstance(value, str | int | None)
        }
        written = names_in(term)
        used = {name: names[name] for name in names if name in written and name not in named}
        about = frozenset(format_value(names[name]) for name in named if name in written)
        text = print_term(_substituted(term, named))
        if isinstance(term, syntax.Sometime):
            return FormulaFailure(text, used, about=about, note=", at no moment of the plan")
        values = {}
        for part in _deciding_terms(term):
            with suppress(InvalidInput):  # a term without a value did not decide the formula
                values[print_term(_substituted(part, named))] = self._quoted(
                    self._value(part, names)
                )
        undefined = self._undefined_note(term, names)
        return FormulaFailure(
            text,
            used,
            tuple(values.items()),
            about,
            undefined,
            sentence="" if undefined else self._sentence(term, names, named),
            code="evaluation-failed" if undefined else "rule-violated",
        )

    def _sentence(
        self, term: Term, names: Mapping[str, Any], named: Mapping[str, syntax.Name]
    ) -> str:
        """Return a false comparison in words; an empty text for other formulas."""
        # "v is h1" says nothing of a plain name; the formula itself is clearer then.
        if not isinstance(term, syntax.Operation) or _is_simple(term.left):
            return ""
        left, right = self._value(term.left, names), self._value(term.right, names)
        other = format_value(self._quoted(right))
        vm, other_vm = _vm_of_host_call(term.left, named), _vm_of_host_call(term.right, named)
        if vm and other_vm:
            pattern = _TWO_VMS.get(term.operator, "")
            return pattern.format(vm=vm, host=_location(left), vm2=other_vm, host2=_location(right))
        if vm:
            pattern = _ONE_VM.get(term.operator, "")
            return pattern.format(vm=vm, host=_location(left), other=other, host2=_location(right))
        written = print_term(_substituted(term.right, named))
        if not _is_simple(term.right) and written != other:
            other = f"{written} = {other}"
        is_set = isinstance(left, frozenset) and isinstance(right, frozenset)
        if term.operator == "<:" and not is_set:
            return ""  # the difference of lists is not a list
        return _COMPARISONS.get(term.operator, "").format(
            term=print_term(_substituted(term.left, named)),
            value=format_value(self._quoted(left)),
            other=other,
            extra=format_value(left - right) if is_set else "",
        )

    def _undefined_note(self, term: Term, names: Mapping[str, Any]) -> str:
        """Return a note if a term has no value here; else an empty text."""
        try:
            self._value(term, names)
        except InvalidInput as error:
            return f"; {error.problems[0].what}"
        return ""

    def _quoted(self, value: Any) -> Any:
        """Return a text so that it is shown in quotes, unlike a name or a state."""
        view = self._context.now
        # A label may have the text of a state or an id; it is shown like one, which is harmless.
        known = value in view.vms or value in view.hosts or value in STATES
        return QuotedText(value) if isinstance(value, str) and not known else value

    def _value(self, term: Term, names: Mapping[str, Any]) -> Any:
        scope = {name: index for index, name in enumerate(names)}
        return self._compiler.term(term, scope)(self._context, list(names.values()))


def _shadows_itself(binders: tuple[syntax.Binder, ...]) -> bool:
    """Whether a binder uses a name that it binds itself."""
    return any(
        len(set(binder.names)) < len(binder.names)
        or (len(binder.names) > 1 and not names_in(binder.domain).isdisjoint(binder.names))
        for binder in binders
    )


def _bound_in(term: Term) -> frozenset[str]:
    """Return the names that are bound somewhere within a term."""
    bound: set[str] = set()
    for part in subterms(term):
        if isinstance(part, syntax.Let):
            bound.add(part.name)
        for binder in getattr(part, "binders", ()):
            bound.update(binder.names)
    return frozenset(bound)


def _substituted(node: Any, named: Mapping[str, syntax.Name]) -> Any:
    """Return the same syntax with some names replaced by others."""
    if isinstance(node, syntax.Name):
        return named.get(node.name, node)
    if isinstance(node, tuple):
        return tuple(_substituted(part, named) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    parts = {name: getattr(node, name) for name in field_names(type(node))}
    changed = {name: _substituted(part, named) for name, part in parts.items()}
    return replace(node, **changed)


def _deciding_terms(term: Term) -> Iterator[Term]:
    """Yield the terms whose values show why a formula is false: the compared terms."""
    match term:
        case syntax.Operation(operator="|" | "<-->" | "&" | "-->"):
            yield from _deciding_terms(term.left)
            yield from _deciding_terms(term.right)
        case syntax.Operation():
            for side in (term.left, term.right):
                if isinstance(side, syntax.Call) and side.function == "card":
                    yield from side.arguments  # the members say more than their number
                elif not _is_simple(side):
                    yield side
        case syntax.Not(term=inner):
            yield from _deciding_terms(inner)
        case syntax.Exists(binders=binders):
            yield from (binder.domain for binder in binders[:1] if not _is_simple(binder.domain))
        case _:
            return


def _is_simple(term: Term) -> bool:
    return isinstance(term, syntax.Name | syntax.Number | syntax.Text | syntax.Boolean)


_TWO_VMS: Final = {
    "/=": "{vm} and {vm2} are both {host}",
    "=": "{vm} is {host}, {vm2} is {host2}",
}
"""What a false comparison of ``host(a)`` and ``host(b)`` means, by operator."""
_ONE_VM: Final = {
    "=": "{vm} is {host}, not {host2}",
    "/=": "{vm} is {host}",
    ":": "{vm} is {host}, which is not in {other}",
    "/:": "{vm} is {host}, which is in {other}",
}
"""What a false comparison of ``host(a)`` with other terms means."""
_COMPARISONS: Final = {
    "=": "{term} is {value}, not {other}",
    "/=": "{term} is {value}",
    "<=": "{term} is {value}, more than {other}",
    "<": "{term} is {value}, not less than {other}",
    ">=": "{term} is {value}, less than {other}",
    ">": "{term} is {value}, not more than {other}",
    ":": "{term} is {value}, which is not in {other}",
    "/:": "{term} is {value}, which is in {other}",
    "<:": "{term} contains {extra}, which is not in {other}",
}
"""What any other false comparison means. Of operators without an entry the formula is shown."""


def _vm_of_host_call(term: Term, named: Mapping[str, syntax.Name]) -> str:
    """Return ``a`` for the term ``host(a)`` about the judged state; else an empty text."""
    match term:
        case syntax.Call(function="host", arguments=(argument,), moment=StateRef.NOW):
            return print_term(_substituted(argument, named))
        case _:
            return ""


def _location(host: Any) -> str:
    return "without a host" if host is None else f"on {format_value(host)}"
