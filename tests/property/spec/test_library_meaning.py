"""The formulas of the library mean what their sentences state, compared with plain Python.

Every state of two VMs and two hosts, some of three and three (all with ``EQUIPOISE_THOROUGH``), and
a few hundred larger worlds with actions under way, each with all or many arguments.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any, NamedTuple

import pytest

from equipoise.errors import InvalidInput
from equipoise.model.state.snapshot import Snapshot
from equipoise.spec.evaluate.view import EvaluationContext
from equipoise.spec.library import library
from equipoise.spec.specification import Specification, context_of
from meanings import MEANINGS, World
from small_worlds import VARIANTS, a_random_plan, arguments, moving, states, told

THOROUGH = bool(os.environ.get("EQUIPOISE_THOROUGH"))
SIZES = [(0, 1), (1, 1), (2, 1), (1, 2), (2, 2)]
MOVING = 4000 if THOROUGH else 300
JUDGED_MAX = 400_000 if THOROUGH else 8_000
"""Number of judgements of a constraint on the states of one size."""
CONSTRAINTS = [(origin, name) for origin, some in library().items() for name in some.constraints]


class Case(NamedTuple):
    """A world and its context for the language."""

    world: World
    context: EvaluationContext


def case_of(world: World) -> Case:
    return Case(world, context_of(world.now, initial=world.initial, steps=world.steps))


@cache
def still(vms: int, hosts: int, some: int | None = None) -> list[list[Case]]:
    """Yield states in each variant, after a random state and with a random plan."""
    rng = Random(f"{vms} {hosts}")
    variants = [list(states(vms, hosts, variant)) for variant in range(VARIANTS)]
    count = len(variants[0])
    chosen = range(count) if some is None else sorted(rng.sample(range(count), some))

    def a_case(number: int, same: list[Snapshot]) -> Case:
        initial = rng.choice(same)
        return case_of(World(same[number], initial, a_random_plan(rng, initial, most=2)))

    return [[a_case(number, same) for same in variants] for number in chosen]


@cache
def in_motion() -> list[Case]:
    rng = Random("moving")
    return [case_of(moving(rng)) for _ in range(MOVING)]


Question = tuple[Case, dict[str, Any], dict[str, Any]]
"""A case, arguments as a file has them, and the same as values of the language."""


def on_still_worlds(
    specification: Specification, name: str, cases: list[list[Case]], rng: Random
) -> Iterator[Question]:
    """Yield all states with all arguments; if that is too much, each state with a share of them."""
    now = cases[0][0].world.now
    choices = [
        (values, specification.arguments(name, values, now))
        for values in arguments(specification.constraints[name], now, rng)
    ]
    judged = max(1, len(cases) * len(choices))
    every = -(-judged // JUDGED_MAX)
    rounds = max(1, min(VARIANTS, JUDGED_MAX // judged))
    for number, variants in enumerate(cases):
        for place in range(number % every, len(choices), every):
            for more in range(rounds):
                case = variants[(2 * number + place // every + more) % VARIANTS]
                yield case, *choices[place]


def on_moving_worlds(specification: Specification, name: str, rng: Random) -> Iterator[Question]:
    constraint = specification.constraints[name]
    for case in in_motion():
        choices = arguments(constraint, case.world.now, rng, most=8)
        for values in rng.sample(choices, min(6, len(choices))):
            yield case, values, specification.arguments(name, values, case.world.now)


def everything(specification: Specification, name: str) -> Iterator[Question]:
    rng = Random(name)
    for size in SIZES:
        yield from on_still_worlds(specification, name, still(*size), rng)
    three = still(3, 3) if THOROUGH else still(3, 3, some=200)
    yield from on_still_worlds(specification, name, three, rng)
    yield from on_moving_worlds(specification, name, rng)


@pytest.mark.parametrize(("origin", "name"), CONSTRAINTS)
def test_a_constraint_of_the_library_means_what_its_sentence_states(origin: str, name: str) -> None:
    assert name in MEANINGS, "write down what it means, from its sentence"
    specification, meaning = library()[origin], MEANINGS[name]
    answers: set[bool] = set()
    for case, values, fitting in everything(specification, name):
        found = answer(specification, name, fitting, case.context)
        meant = meaning(case.world, values)
        if found != meant:
            said = f"{name}: {specification.constraints[name].doc}"
            answered = f"with {values} it is {found}, and should be {meant}"
            pytest.fail(f"{said}\n{answered}\n{told(case.world)}", pytrace=False)
        answers.add(meant)
    assert answers == {True, False}, "it is true somewhere and false somewhere"


def answer(
    specification: Specification, name: str, fitting: dict[str, Any], context: EvaluationContext
) -> bool | str:
    """Return the value of the formula, or why it has none."""
    try:
        return specification.holds(name, fitting, context)
    except (InvalidInput, LookupError) as error:
        return repr(error)


def test_every_meaning_has_a_constraint() -> None:
    assert sorted(MEANINGS) == sorted(name for _, name in CONSTRAINTS)
