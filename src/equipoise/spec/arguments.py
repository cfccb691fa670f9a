"""What a person gives as arguments of a constraint: made into values, or refused with reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from equipoise.errors import Problem
from equipoise.model.change.draft import Draft
from equipoise.model.snapshot import Snapshot
from equipoise.spec.choose import is_packing
from equipoise.spec.explain import shown
from equipoise.spec.language.print import print_term
from equipoise.spec.language.syntax import (
    Binding,
    Call,
    Constraint,
    Name,
    Parameter,
    Term,
    names_in,
)
from equipoise.spec.language.vocabulary import plain

T = TypeVar("T")


class Fittings:
    """What was found out about arguments already: many rules share large ones, as all racks."""

    def __init__(self) -> None:
        self._found: dict[Any, tuple[Any, Any]] = {}

    def once(self, value: Any, purpose: Any, find: Callable[[], T]) -> T:
        """What is found for a purpose, by the identity of a value; looked for once."""
        key = (id(value), purpose)
        if key not in self._found:
            self._found[key] = value, find()  # what is kept keeps its identity
        found: T = self._found[key][1]
        return found


def fitted(
    constraint: Constraint,
    given: Mapping[str, Any],
    state: Snapshot | Draft,
    known: Fittings | None = None,
) -> tuple[dict[str, Any], list[Problem]]:
    """The values of the arguments, and everything that is wrong with them."""
    known = known or Fittings()
    wanted = {one.name: one for one in constraint.parameters}
    cure = f"it takes {', '.join(wanted)}" if wanted else "it takes none"
    problems = [
        Problem(key=one, what=f"is not an argument of {constraint.name}", cure=cure)
        for one in given
        if one not in wanted
    ]
    values: dict[str, Any] = {}
    for name, parameter in wanted.items():
        if name not in given:
            problems.append(Problem(key=name, what="is missing", cure="give it a value"))
            continue
        values[name], what = known.once(
            given[name], parameter, partial(_fit, given[name], parameter, state)
        )
        problems += [Problem(key=name, what=what)] if what else []
    return values, problems


def _fit(given: Any, parameter: Parameter, state: Snapshot | Draft) -> tuple[Any, str]:
    """The value of an argument, and what is wrong with it."""
    value = _value(given, parameter)
    return value, _doubled(given, parameter) or _misfit(value, parameter, state)


def _value(value: Any, parameter: Parameter) -> Any:
    """A value of the language for what a file gave: lists become sets, unless a list is wanted."""
    if isinstance(parameter.domain, Call) and isinstance(value, list | tuple):
        return tuple(value)
    if isinstance(value, Collection) and not isinstance(value, str):
        return frozenset(map(_group, value))
    return value


def _group(value: Any) -> Any:
    if isinstance(value, str):  # most are names
        return value
    return frozenset(map(_group, value)) if isinstance(value, Collection) else value


def _doubled(given: Any, parameter: Parameter) -> str:
    """Say that a group is given twice; as a set of groups it would count once."""
    if parameter.binding is not Binding.PACKING or not isinstance(given, list | tuple):
        return ""
    groups = [_group(one) for one in given]
    return "the groups overlap" if len(set(groups)) < len(groups) else ""


def _misfit(value: Any, parameter: Parameter, state: Snapshot | Draft) -> str:
    """Say why a value cannot be an argument; nothing if it can."""
    named = {plain(name) for name in names_in(parameter.domain)}
    domain = next(iter(named & {"int", "string", "vms", "hosts"}), "")
    if domain in ("int", "string"):
        return _no_words(value, domain, single=parameter.binding is Binding.MEMBER)
    if not _can_be_given(parameter.domain):
        return f"cannot be given from outside: it ranges over {print_term(parameter.domain)}"
    members: Collection[str] = getattr(state, domain, ())
    if isinstance(parameter.domain, Call):
        return _no_list(value, members, domain)
    match parameter.binding:
        case Binding.MEMBER if isinstance(value, frozenset):
            return f"is one of the {domain}, not a list of them"
        case Binding.SUBSET if not isinstance(value, frozenset):
            return f"{shown(value)} is not a list"
        case Binding.MEMBER:
            known = isinstance(value, str) and value in members
            return "" if known else f"there is no {domain.removesuffix('s')} {shown(value)}"
        case Binding.SUBSET:
            strange = _strange(value, members)
            return f"not among {domain}: {strange}" if strange else ""
        case Binding.PACKING:
            if isinstance(value, frozenset) and all(isinstance(one, frozenset) for one in value):
                return "" if is_packing(value, members) else "the groups overlap or are not known"
            return "a packing is a list of groups"


def _can_be_given(domain: Term) -> bool:
    """Whether a person can know what an argument may be: VMs, hosts, or a list of them."""
    if isinstance(domain, Call) and domain.function == "lists":
        return all(isinstance(one, Name) for one in domain.arguments)
    return isinstance(domain, Name)


def _no_words(value: Any, domain: str, *, single: bool) -> str:
    wanted, named = (int, "a number") if domain == "int" else (str, "text")
    if not single and not isinstance(value, frozenset):
        return f"{value!r} is not a list"
    for one in (value,) if single else sorted(value, key=repr):
        if not isinstance(one, wanted) or isinstance(one, bool):
            return f"{one!r} is not {named}"
    return ""


def _no_list(value: Any, members: Collection[str], domain: str) -> str:
    if not isinstance(value, tuple):
        return f"{value!r} is not a list"
    if len(set(value)) < len(value):
        return "the list names something twice"
    strange = _strange(frozenset(value), members)
    return f"not among {domain}: {strange}" if strange else ""


def _strange(value: Any, members: Collection[str]) -> str:
    if not isinstance(value, frozenset):
        return shown(value)
    return ", ".join(sorted(shown(one) for one in value if one not in members))
