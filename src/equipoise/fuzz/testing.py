"""Campaigns in a test file: a decorator that makes a test of a function that gives a scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec

from equipoise.errors import InvalidInput, Problem
from equipoise.fuzz.campaign import Campaign, Limits
from equipoise.fuzz.campaign.words import told
from equipoise.fuzz.generate.options import USUAL, Options
from equipoise.fuzz.plugin import WISHES, save
from equipoise.fuzz.schedulers import Scheduler
from equipoise.spec.library import constraint_named, library, of_origin, own

Fixtures = ParamSpec("Fixtures")


def campaign(  # noqa: PLR0913  (all of them have names, and mostly none is given)
    *constraints: str,
    group: str | None = None,
    spec: str = "",
    tests: int | None = 1_000,
    failures: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    options: Options = USUAL,
) -> Callable[[Callable[Fixtures, Scheduler]], Callable[Fixtures, None]]:
    """A test that puts a scheduler before trials of some constraints, and fails if it errs.

    What is decorated gives the scheduler, and may ask for fixtures as any test. ``group`` is a file
    of the library, ``spec`` a text of one's own; without names, all constraints of both count.
    """
    names = _names(constraints, group, spec)

    def decorate(make: Callable[Fixtures, Scheduler]) -> Callable[Fixtures, None]:
        @wraps(make)
        def test(*given: Fixtures.args, **named: Fixtures.kwargs) -> None:
            wishes = WISHES.get()
            until_s = seconds if wishes.seconds is None else wishes.seconds
            most = tests if wishes.seconds is None else None
            limits = Limits(most if wishes.tests is None else wishes.tests, failures, until_s)
            scheduler, drawn = make(*given, **named), seed if wishes.seed is None else wishes.seed
            name = type(scheduler).__name__
            report = Campaign(name, scheduler, names, options, drawn, limits, spec).run()
            if report.defects:
                if wishes.save is not None:
                    save(report, wishes.save)
                raise AssertionError("\n".join((f"{name} errs, seed {drawn}", *told(report))))

        return test

    return decorate


def _names(wished: Sequence[str], group: str | None, spec: str) -> tuple[str, ...]:
    """The constraints that are meant: those that are named, else all of the group and one's own."""
    mine = tuple(own(spec).constraints)
    if group is not None and group not in library():
        raise _refused(group, "is no group of constraints", ", ".join(library()))
    if not wished:
        found = (*(() if group is None else of_origin(group).constraints), *mine)
        if not found:
            raise _refused("", "tries nothing", "name a constraint, a group, or a spec with some")
        return found
    return tuple(one if one in mine else _of_library(one) for one in wished)


def _of_library(name: str) -> str:
    found = constraint_named(name)
    if found is None:
        raise _refused(name, "is no constraint", "'equipoise spec list' lists them")
    return found


def _refused(key: str, what: str, cure: str) -> InvalidInput:
    return InvalidInput("campaign", [Problem(key=key, what=what, cure=cure)])
