"""Trials with rounder times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from equipoise.fuzz.trial.size import SECOND_MS
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.plan import Step


def rounder_times(trial: Trial) -> Iterator[Trial]:
    """All times in whole seconds and without gaps, or all early, or short; then one by one."""
    steps = trial.steps
    times = sorted({at_ms for one in steps for at_ms in (one.start_ms, one.end_ms)})
    ranks = {at_ms: rank * SECOND_MS for rank, at_ms in enumerate(times)}
    yield replace(
        trial,
        steps=tuple(
            one.but(start_ms=ranks[one.start_ms], end_ms=ranks[one.end_ms]) for one in steps
        ),
    )
    yield replace(trial, steps=tuple(_begun(one, 0) for one in steps))
    yield replace(trial, steps=tuple(_lasting(one, SECOND_MS) for one in steps))
    for place, step in enumerate(steps):
        for rounder in _rounder(step):
            yield replace(trial, steps=(*steps[:place], rounder, *steps[place + 1 :]))


def _rounder(step: Step) -> Iterator[Step]:
    yield _begun(step, 0)
    if step.start_ms > SECOND_MS:
        yield _begun(step, step.start_ms - SECOND_MS)
    yield _lasting(step, SECOND_MS)
    if step.duration_ms > SECOND_MS:
        yield _lasting(step, step.duration_ms - SECOND_MS)


def _begun(step: Step, at_ms: int) -> Step:
    return step.but(start_ms=at_ms, end_ms=at_ms + step.duration_ms)


def _lasting(step: Step, duration_ms: int) -> Step:
    return step.but(end_ms=step.start_ms + duration_ms)
