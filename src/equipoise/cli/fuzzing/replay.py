"""The cases of a file, judged again: each with the settings that it was saved with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from equipoise.cli.fuzzing.wishes import Order
from equipoise.errors import InvalidInput, Problem
from equipoise.fuzz.campaign import Report
from equipoise.fuzz.registry import the_scheduler
from equipoise.fuzz.trial.stored import Stored, trial_of

Settings = tuple[tuple[str, str], ...]


def replayed(order: Order, stored: Iterable[Stored], *, save: bool) -> tuple[Order, Report]:
    """Judge cases again; what a person sets goes before what a case was saved with.

    The order that comes back has the settings that all cases have in common.
    """
    cases: dict[Settings, list[Stored]] = {}
    for one in stored:
        cases.setdefault(_settings(order, one.settings), []).append(one)
    if save and len(cases) > 1:
        what = "the cases have different settings, and those that are saved have the same"
        raise InvalidInput("--save", [Problem(key="", what=what, cure="say which by --with")])
    reports = [_report(order, settings, some) for settings, some in cases.items()]
    if not reports:
        return order, order.campaign.replay(())
    common = set.intersection(*map(set, cases))
    settings = {name: value for name, value in next(iter(cases)) if (name, value) in common}
    return replace(order, settings=settings), _together(reports)


def _settings(order: Order, saved: Mapping[str, str]) -> Settings:
    """How the target is set for a case; settings of another target than this say nothing here."""
    able = order.known.settings
    own = {name: value for name, value in saved.items() if value in able.get(name, ())}
    usual = {name: values[0] for name, values in able.items()}
    return tuple(sorted({**usual, **own, **order.set_by_hand}.items()))


def _report(order: Order, settings: Settings, some: Iterable[Stored]) -> Report:
    make = partial(the_scheduler, order.known.name, settings)
    try:
        return replace(order.campaign, scheduler=make).replay(map(trial_of, some))
    finally:
        close = getattr(make(), "close", None)
        if close is not None:
            close()


def _together(reports: list[Report]) -> Report:
    first, *others = reports
    for one in others:
        first.interrupted |= one.interrupted
        first.tests += one.tests
        first.seconds += one.seconds
        first.outcomes.update(one.outcomes)
        first.seen.update(one.seen)
        first.verdicts.update(one.verdicts)
        first.findings.extend(one.findings)
    return first
