"""The rules of an inventory as demands: what an operator wrote, in the words of the language."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from equipoise.errors import InvalidInput, Problem
from equipoise.model.change.draft import Draft
from equipoise.model.files.findings import Findings
from equipoise.model.files.words import Path, closest
from equipoise.model.inventory import Inventory, Settings
from equipoise.model.plan import Violation
from equipoise.model.quantity import RuleId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.snapshot import Snapshot
from equipoise.spec.arguments import Fittings, fitted
from equipoise.spec.demand import Demand
from equipoise.spec.language.syntax import Binding, Parameter, names_in
from equipoise.spec.language.vocabulary import plain
from equipoise.spec.library import library_constraints, of_origin, own
from equipoise.spec.specification import Specification
from equipoise.spec.view import Frame, View

State = Snapshot | Draft


class Demands(NamedTuple):
    """What the hard rules demand, and those of which nobody can say what they demand."""

    clear: tuple[Demand, ...]
    unclear: tuple[Violation, ...] = ()


def demands_of(settings: Settings, state: State, mended: Collection[RuleId] = ()) -> Demands:
    """What the hard rules demand; a rule about what has left the cluster demands nothing.

    Those that are ``mended`` may be broken at the start.
    """
    clear: list[Demand] = []
    unclear: list[Violation] = []
    for rule, found in each_demand(settings, state):
        if not rule.hard:
            continue
        if isinstance(found, Demand):
            is_mended = found.continuous and rule.id in mended
            clear.append(replace(found, mended=True) if is_mended else found)
        else:
            unclear.append(found)
    return Demands(tuple(clear), tuple(unclear))


def each_demand(settings: Settings, state: State) -> Iterator[tuple[Rule, Demand | Violation]]:
    """What each rule demands, hard or soft, or why nobody can say what it does."""
    known = Fittings()
    for rule in settings.rules:
        try:
            demand = _demand(rule, settings, state, known)
        except InvalidInput as error:
            said = "; ".join(f"{one.key}: {one.what}" for one in error.problems)
            yield rule, Violation(constraint=f"rule {rule.id}", at_ms=0, detail=said)
        else:
            if demand is not None:
                yield rule, demand


def broken_rules(snapshot: Snapshot, ids: Collection[RuleId]) -> Iterable[tuple[RuleId, str]]:
    """Those of the rules that do not hold in a state, and why."""
    view = View.of(snapshot)
    for rule in snapshot.settings.rules:
        if rule.id in ids:
            demands, unclear = demands_of(snapshot.settings.but(rules=(rule,)), snapshot)
            yield from ((rule.id, one.detail) for one in unclear)
            whys = (demand.fault(Frame(view, view, view)) for demand in demands)
            yield from ((rule.id, str(why)) for why in whys if why is not None)


def check_rules(inventory: Inventory, found: Findings) -> None:
    """Find rules that name no constraint or give it what it cannot take."""
    if not inventory.specification and not any(map(_names_a_constraint, inventory.rules)):
        return  # most inventories; the library need not be read for them
    try:
        own(inventory.specification)
    except InvalidInput as error:
        for one in error.problems:
            what = f"line {one.line} of it: {one.what}"
            found.add(("specification",), what, one.cure)
        return
    state = Snapshot.of(inventory)
    for place, rule in enumerate(inventory.rules):
        if not isinstance(rule, Satisfy):
            continue
        path: Path = ("rules", place)
        home = _home(rule.constraint, inventory.specification)
        if home is None:
            what, cure = "there is no such constraint", _guess(rule.constraint)
            found.add((*path, "constraint"), what, cure)
            continue
        _, problems = fitted(home.constraints[rule.constraint], rule.arguments, state)
        for one in problems:
            found.add((*path, "arguments", one.key), one.what, one.cure)


def _demand(rule: Rule, settings: Settings, state: State, known: Fittings) -> Demand | None:
    title, continuous = f"rule {rule.id}", rule.continuous
    if isinstance(rule, Satisfy):
        name, home = rule.constraint, _home(rule.constraint, settings.specification)
        if home is None:
            raise InvalidInput(title, [Problem(key=name, what="there is no such constraint")])
        given = _without_the_departed(rule, home, state, known)
        if given is None:
            return None
        values, problems = fitted(home.constraints[name], given, state, known)
        if problems:
            raise InvalidInput(title, problems)
        return Demand(home, name, values, continuous, title)
    name = _PLAIN[type(rule)]
    values = {"vs": _present(rule.vms, state.vms)}
    if isinstance(rule, StayWithin | StayOff):
        values["ns"] = _present(rule.hosts, state.hosts)
    return Demand(of_origin("drs"), name, values, continuous, title)


_PLAIN: Final[Mapping[type[Rule], str]] = {
    KeepApart: "KeepApart",
    KeepTogether: "KeepTogether",
    StayWithin: "MustRunOn",
    StayOff: "MustNotRunOn",
}


def _home(name: str, own_text: str) -> Specification | None:
    """The specification that declares a constraint; one's own goes before the library."""
    home = own(own_text)
    return home if name in home.constraints else library_constraints().get(name)


def _names_a_constraint(rule: Rule) -> bool:
    return isinstance(rule, Satisfy)


def _guess(name: str) -> str:
    near = closest(name, library_constraints())
    return f"did you mean {near}?" if near else "'equipoise spec list' lists them"


def _present(names: Collection[Any], there: Collection[Any]) -> frozenset[Any]:
    return frozenset(name for name in names if name in there)


def _without_the_departed(
    rule: Satisfy, home: Specification, state: State, known: Fittings
) -> dict[str, Any] | None:
    """The arguments without VMs and hosts that have left; none if it was about one of them."""
    given: dict[str, Any] = dict(rule.arguments)
    for parameter in home.constraints[rule.constraint].parameters:
        domain = _domain(parameter)
        if domain is None or parameter.name not in given:
            continue
        there: Collection[Any] = getattr(state, domain)
        value = given[parameter.name]
        if isinstance(value, str) and parameter.binding is Binding.MEMBER:
            if value not in there:
                return None
        elif isinstance(value, tuple | list):
            given[parameter.name] = known.once(value, domain, partial(_left, value, there))
    return given


@lru_cache(maxsize=512)
def _domain(parameter: Parameter) -> str | None:
    """Whether an argument is about VMs or about hosts."""
    named = {plain(name) for name in names_in(parameter.domain)} & {"vms", "hosts"}
    return named.pop() if len(named) == 1 else None


def _left(value: Collection[Any], there: Collection[Any]) -> Collection[Any]:
    """The names, or the groups of names, without those that are not there."""
    if all(isinstance(one, str) and one in there for one in value):
        return value
    return [
        one if isinstance(one, str) else _left(one, there)
        for one in value
        if not isinstance(one, str) or one in there
    ]
