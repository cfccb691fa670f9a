"""Campaigns in a test file: a decorator turns a function that returns a scheduler into a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec

from equipoise.adapters.targets.scheduler import Scheduler
from equipoise.adapters.targets.trial import DEFAULT_OPTIONS, TrialOptions
from equipoise.errors import InvalidInput
from equipoise.fuzz.campaign import CampaignLimits, FuzzCampaign
from equipoise.fuzz.campaign.text_report import report_lines
from equipoise.fuzz.pytest_plugin import OVERRIDES, save_findings
from equipoise.spec.library import custom_specification, find_constraint, library, library_file

Fixtures = ParamSpec("Fixtures")


def campaign(  # noqa: PLR0913  (all are keywords with defaults)
    *constraints: str,
    group: str | None = None,
    spec: str = "",
    tests: int | None = 1_000,
    failures: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    options: TrialOptions = DEFAULT_OPTIONS,
) -> Callable[[Callable[Fixtures, Scheduler]], Callable[Fixtures, None]]:
    """Decorate a function that returns a scheduler: it becomes a test that runs a campaign.

    The test fails if the campaign finds a defect. The function may use fixtures as any test.
    ``group`` is a file of the library, ``spec`` the text of own constraints; without names, the
    campaign has all constraints of both.
    """
    names = _constraint_names(constraints, group, spec)

    def decorate(make: Callable[Fixtures, Scheduler]) -> Callable[Fixtures, None]:
        @wraps(make)
        def test(*given: Fixtures.args, **named: Fixtures.kwargs) -> None:
            overrides = OVERRIDES.get()
            until_s = seconds if overrides.seconds is None else overrides.seconds
            # A duration on the command line replaces the number of trials, which would end it
            # earlier.
            tests_max = tests if overrides.seconds is None else None
            limits = CampaignLimits(
                tests_max if overrides.tests is None else overrides.tests, failures, until_s
            )
            scheduler = make(*given, **named)
            used_seed = seed if overrides.seed is None else overrides.seed
            name = type(scheduler).__name__
            report = FuzzCampaign(name, scheduler, names, options, used_seed, limits, spec).run()
            if report.defects:
                if overrides.save is not None:
                    save_findings(report, overrides.save)
                raise AssertionError(
                    "\n".join((f"{name} has defects, seed {used_seed}", *report_lines(report)))
                )

        return test

    return decorate


def _constraint_names(requested: Sequence[str], group: str | None, spec: str) -> tuple[str, ...]:
    """The named constraints; without names, all constraints of the group and of ``spec``."""
    own = tuple(custom_specification(spec).constraints)
    if group is not None and group not in library():
        raise _refused(
            group,
            "is no group of the library",
            f"use one of {', '.join(library())}",
            "unknown-name",
        )
    if not requested:
        names = (*(() if group is None else library_file(group).constraints), *own)
        if not names:
            raise _refused(
                "", "has no constraints", "name a constraint, a group or a spec", "empty-value"
            )
        return names
    return tuple(name if name in own else _of_library(name) for name in requested)


def _of_library(name: str) -> str:
    constraint = find_constraint(name)
    if constraint is None:
        cure = "'equipoise spec list' lists them"
        raise _refused(name, "is no constraint", cure, "unknown-constraint")
    return constraint


def _refused(key: str, what: str, cure: str, code: str) -> InvalidInput:
    return InvalidInput.of("campaign", what, key=key, cure=cure, code=code)
