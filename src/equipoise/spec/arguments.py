"""Binding of the arguments that a file gives to the parameters of a constraint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from equipoise.errors import InputProblem
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.evaluate.domains import is_packing
from equipoise.spec.evaluate.explain import format_value
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
from equipoise.spec.language.vocabulary import canonical_name

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
