"""The rules of an inventory as requirements of the specification language."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.diagnostics import Diagnostics, KeyPath, closest_match
from equipoise.model.inventory import ClusterSettings, Inventory
from equipoise.model.plan import Violation
from equipoise.model.quantity import RuleId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.evaluate.breaches import Breaches, worse_breaches
from equipoise.spec.evaluate.view import EvaluationContext, StateView
from equipoise.spec.language.syntax import Binding, Parameter, names_in
from equipoise.spec.language.vocabulary import canonical_name
from equipoise.spec.library import custom_specification, library_constraints, library_file
from equipoise.spec.requirement import Requirement
from equipoise.spec.specification import ArgumentCache, Specification, bind_arguments

State = Snapshot | Draft


class RuleRequirements(NamedTuple):
    """The requirements of the hard rules, and the rules that cannot be read."""

    valid: tuple[Requirement, ...]
    invalid: tuple[Violation, ...] = ()


def requirements_of(
    settings: ClusterSettings, state: State, repaired: Collection[RuleId] = ()
) -> RuleRequirements:
    """Return the requirements of the hard rules; a rule about removed VMs or hosts has none.

    The ``repaired`` rules may be violated at the start.
    """
    valid: list[Requirement] = []
    invalid: list[Violation] = []
    for rule, requirement in requirement_per_rule(settings, state):
        if not rule.hard:
            continue
        if isinstance(requirement, Requirement):
            # A discrete rule is judged at the end only and needs no exemption on the way.
            is_repaired = requirement.continuous and rule.id in repaired
            valid.append(replace(requirement, repaired=True) if is_repaired else requirement)
        else:
            invalid.append(requirement)
    return RuleRequirements(tuple(valid), tuple(invalid))


def requirement_per_rule(
    settings: ClusterSettings, state: State
) -> Iterator[tuple[Rule, Requirement | Violation]]:
    """Yield the requirement of each rule, hard or soft, or why the rule cannot be read."""
    # Many rules name the same large groups, so what is known about a group is shared.
    known = ArgumentCache()
    for rule in settings.rules:
        try:
            requirement = _requirement_of(rule, settings, state, known)
        except InvalidInput as error:
            what = "; ".join(f"{problem.key}: {problem.what}" for problem in error.problems)
            yield (
                rule,
                Violation(constraint=f"rule {rule.id}", at_ms=0, detail=what, code="invalid-rule"),
            )
        else:
            if requirement is not None:
                yield rule, requirement


def broken_rules(snapshot: Snapshot, ids: Collection[RuleId]) -> Iterable[tuple[RuleId, str]]:
    """Yield those of the rules that do not hold in a state, each with the reason."""
    view = StateView.of(snapshot)
    for rule in snapshot.settings.rules:
        if rule.id in ids:
            requirements, invalid = requirements_of(snapshot.settings.but(rules=(rule,)), snapshot)
            yield from ((rule.id, violation.detail) for violation in invalid)
            failures = (
                requirement.failure(EvaluationContext(view, view, view))
                for requirement in requirements
            )
            yield from ((rule.id, str(failure)) for failure in failures if failure is not None)


def worsened_rules(
    before: Snapshot, after: Snapshot, ids: Collection[RuleId]
) -> Iterable[tuple[RuleId, str]]:
    """Yield those of the rules that a change breaks or makes worse, each with the reason.

    The gate charges a plan with the same. A rule that is violated in both states is worse if it has
    a breach that is new or larger.
    """
    for rule, why in broken_rules(after, ids):
        own = before.settings.but(rules=tuple(r for r in before.settings.rules if r.id == rule))
        requirements = requirements_of(own, before).valid
        if not requirements or any(
            worse_breaches(_breaches(requirement, after), _breaches(requirement, before))
            for requirement in requirements
        ):
            yield rule, why


def _breaches(requirement: Requirement, state: Snapshot) -> Breaches:
    view, owner = StateView.of(state), requirement.specification
    formula = owner.constraints[requirement.name].formula
    context = EvaluationContext(view, view, view, moments=[view])
    return owner.breaches(formula, requirement.arguments, context)


def rules_about_placement(snapshot: Snapshot, ids: Collection[RuleId]) -> tuple[RuleId, ...]:
    """Return those of the rules that migrations can repair or break."""
    if not ids:
        return ()
    rules = tuple(rule for rule in snapshot.settings.rules if rule.id in ids)
    return tuple(
        rule.id
        for rule, requirement in requirement_per_rule(snapshot.settings.but(rules=rules), snapshot)
        if isinstance(requirement, Requirement)
        and requirement.specification.reads_placement(requirement.name)
    )


def broken_soft_rules(snapshot: Snapshot) -> Iterator[tuple[RuleId, str]]:
    """Yield the soft rules that do not hold in a state, each with the reason."""
    if all(rule.hard for rule in snapshot.settings.rules):
        return
    view = StateView.of(snapshot)
    for rule, requirement in requirement_per_rule(snapshot.settings, snapshot):
        if rule.hard:
            continue
        if isinstance(requirement, Violation):
            yield rule.id, requirement.detail
            continue
        failure = requirement.failure(EvaluationContext(view, view, view))
        if failure is not None:
            yield rule.id, str(failure)


def check_rules(inventory: Inventory, found: Diagnostics) -> None:
    """Report the rules that name no constraint or give it wrong arguments."""
    if not inventory.specification and not any(map(_is_satisfy_rule, inventory.rules)):
        return  # most inventories have no such rule; then the library need not be read
    try:
        custom_specification(inventory.specification)
    except InvalidInput as error:
        for problem in error.problems:
            what = f"line {problem.line} of it: {problem.what}"
            found.add(("specification",), what, problem.cure, code=problem.code)
        return
    state = Snapshot.of(inventory)
    for index, rule in enumerate(inventory.rules):
        if not isinstance(rule, Satisfy):
            continue
        path: KeyPath = ("rules", index)
        owner = _owner_of(rule.constraint, inventory.specification)
        if owner is None:
            what, cure = "there is no such constraint", _suggestion(rule.constraint)
            found.add((*path, "constraint"), what, cure, code="unknown-constraint")
            continue
        _, problems = bind_arguments(owner.constraints[rule.constraint], rule.arguments, state)
        for problem in problems:
            place = (*path, "arguments", problem.key)
            found.add(place, problem.what, problem.cure, code=problem.code)


def _requirement_of(
    rule: Rule, settings: ClusterSettings, state: State, known: ArgumentCache
) -> Requirement | None:
    title, continuous = f"rule {rule.id}", rule.continuous
    if isinstance(rule, Satisfy):
        name, owner = rule.constraint, _owner_of(rule.constraint, settings.specification)
        if owner is None:
            problem = InputProblem(
                key=name,
                what="there is no such constraint",
                cure=_suggestion(name),
                code="unknown-constraint",
            )
            raise InvalidInput(title, [problem])
        given = _without_removed(rule, owner, state, known)
        if given is None:
            return None
        values, problems = bind_arguments(owner.constraints[name], given, state, known)
        if problems:
            raise InvalidInput(title, problems)
        return Requirement(owner, name, values, continuous, title)
    name = _CONSTRAINT_OF_RULE[type(rule)]
    # VMs and hosts that left are dropped: a rule must not block a cluster that has outlived them.
    values = {"vs": _existing(rule.vms, state.vms)}
    if isinstance(rule, StayWithin | StayOff):
        values["ns"] = _existing(rule.hosts, state.hosts)
    return Requirement(library_file("drs"), name, values, continuous, title)


_CONSTRAINT_OF_RULE: Final[Mapping[type[Rule], str]] = {
    KeepApart: "KeepApart",
    KeepTogether: "KeepTogether",
    StayWithin: "MustRunOn",
    StayOff: "MustNotRunOn",
}


def _owner_of(name: str, own_text: str) -> Specification | None:
    """Return the specification that declares a constraint; a user's goes before the library."""
    owner = custom_specification(own_text)
    return owner if name in owner.constraints else library_constraints().get(name)


def _is_satisfy_rule(rule: Rule) -> bool:
    return isinstance(rule, Satisfy)


def _suggestion(name: str) -> str:
    near = closest_match(name, library_constraints())
    return f"did you mean {near}?" if near else "'equipoise spec list' lists them"


def _existing(names: Collection[Any], present: Collection[Any]) -> frozenset[Any]:
    return frozenset(name for name in names if name in present)


def _without_removed(
    rule: Satisfy, owner: Specification, state: State, known: ArgumentCache
) -> dict[str, Any] | None:
    """Return the arguments without removed VMs and hosts; ``None`` if the rule is about one."""
    given: dict[str, Any] = dict(rule.arguments)
    for parameter in owner.constraints[rule.constraint].parameters:
        domain = domain_of(parameter)
        if domain is None or parameter.name not in given:
            continue
        present: Collection[Any] = getattr(state, domain)
        value = given[parameter.name]
        if isinstance(value, str) and parameter.binding is Binding.MEMBER:
            if value not in present:
                return None
        elif isinstance(value, tuple | list):
            given[parameter.name] = known.get_or_compute(
                value, domain, partial(_existing_members, value, present)
            )
    return given


# The library has fewer parameters than this, and every pass asks for each rule again.
@lru_cache(maxsize=512)
def domain_of(parameter: Parameter) -> str | None:
    """Return ``vms`` or ``hosts`` if the argument names such; else ``None``."""
    named = {canonical_name(name) for name in names_in(parameter.domain)} & {"vms", "hosts"}
    return named.pop() if len(named) == 1 else None


def _existing_members(value: Collection[Any], present: Collection[Any]) -> Collection[Any]:
    """Return the names, or the groups of names, without those that are not present."""
    if all(isinstance(member, str) and member in present for member in value):
        return value
    return [
        member if isinstance(member, str) else _existing_members(member, present)
        for member in value
        if not isinstance(member, str) or member in present
    ]
