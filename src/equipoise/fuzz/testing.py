"""Campaigns in a test file: a decorator that makes a test of a function that gives a scheduler."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from equipoise.fuzz.campaign import Campaign, Limits
from equipoise.fuzz.campaign.words import told
from equipoise.fuzz.generate.options import USUAL, Options
from equipoise.fuzz.schedulers import Scheduler

Fixtures = ParamSpec("Fixtures")


def campaign(
    *constraints: str, tests: int = 1_000, seed: int = 0, options: Options = USUAL
) -> Callable[[Callable[Fixtures, Scheduler]], Callable[Fixtures, None]]:
    """A test that puts a scheduler before trials of some constraints, and fails if it errs.

    What is decorated gives the scheduler, and may ask for fixtures as any test.
    """

    def decorate(make: Callable[Fixtures, Scheduler]) -> Callable[Fixtures, None]:
        @wraps(make)
        def test(*given: Fixtures.args, **named: Fixtures.kwargs) -> None:
            scheduler, limits = make(*given, **named), Limits(tests=tests)
            name = type(scheduler).__name__
            report = Campaign(name, scheduler, constraints, options, seed, limits).run()
            if report.defects:
                raise AssertionError("\n".join((f"{name} errs, seed {seed}", *told(report))))

        return test

    return decorate
