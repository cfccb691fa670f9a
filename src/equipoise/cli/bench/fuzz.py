"""The benchmark of campaigns: how fast trials are drawn, judged and asked, and what they find."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Final

from equipoise.cli.bench.row import Row, best
from equipoise.errors import EquipoiseError
from equipoise.fuzz.campaign import Campaign, Limits
from equipoise.fuzz.campaign.crew import crew_of
from equipoise.fuzz.generate import Generator, Options
from equipoise.fuzz.generate.generator import draw_in_turn
from equipoise.fuzz.registry import find_known, the_scheduler
from equipoise.fuzz.schedulers.faulty import FAULTY
from equipoise.fuzz.schedulers.mutants import mutants
from equipoise.fuzz.targets.safeplace_rate import safeplace_rate
from equipoise.spec.library import library_constraints, of_origin

SIZE: Final = Options(hosts=(10, 10), vms=(10, 10))
DRAWN: Final = 1 << 15
ALONE: Final = 300
ASKED: Final = {"planner": 5_000, "nova": 20_000}
"""How many trials each is asked about, so that it takes some ten seconds."""
SHARED: Final = 10_000
"""How many trials workers share."""
WARM: Final = 500
"""How many come before, so that everything is warm."""
ORIGINAL: Final = 2_000
"""How many tests SafePlace does."""
FOUND_S_MAX: Final = 60.0
"""How long a campaign may look for a mutant."""


def rows() -> Iterator[Row]:
    """Measure."""
    yield _drawn()
    original, note = _original()
    for target in ASKED:
        yield from _asked(target, original, note)
    yield from _workers()
    yield _causes()
    yield _mutants()


def _constraints() -> tuple[str, ...]:
    return tuple(of_origin("btrplace").constraints)


def _drawn() -> Row:
    """From a seed to verdicts, on one core."""
    known, names = library_constraints(), _constraints()
    makers = [Generator(known[name], name, SIZE) for name in names]

    def together() -> None:
        for _, drawn in draw_in_turn(makers, SIZE, 0, range(DRAWN)):
            assert len(drawn.keeps) == len(drawn.broken_at_first)

    def alone() -> None:
        for number in range(ALONE):
            trial = makers[number % len(makers)].trial(number)
            assert trial.fault is None or trial.fault.at_ms >= 0
            assert trial.is_broken_at_first in (True, False)

    return Row(
        f"trials of 10 VMs x 10 hosts drawn and judged, {len(names)} constraints of BtrPlace",
        best(together, tries=3),
        "one at a time",
        best(alone, tries=1) * DRAWN / ALONE,
        count=DRAWN,
    )


def _original() -> tuple[float | None, str]:
    """How many tests SafePlace does in a second, if it is there."""
    try:
        return safeplace_rate(ORIGINAL), ""
    except EquipoiseError as error:
        return None, f"SafePlace does not run beside it: {error}"


def _asked(target: str, original: float | None, note: str) -> Iterator[Row]:
    """Everything but making findings small: draw, judge, ask, compare."""
    known = find_known(target)
    assert known is not None
    missing = known.missing()
    if missing:
        yield Row(f"trials against {target}: not measured", 0.0, "", None, note=missing)
        return
    options = known.options.but(hosts=SIZE.hosts, vms=SIZE.vms)
    names = known.constraints or _constraints()
    campaign = Campaign(
        target, partial(the_scheduler, target, _usual(target)), names, options, 0,
        Limits(tests=ASKED[target]),
    )  # fmt: skip
    replace(campaign, limits=Limits(tests=WARM)).run()
    report = campaign.run()
    plain = None if original is None else report.tests / original
    yield Row(
        f"trials of 10 VMs x 10 hosts against {target}, {len(names)} constraints",
        report.seconds,
        "SafePlace against BtrPlace" if plain is not None else "",
        plain,
        count=report.tests,
        figures={"defects": report.defects, "findings": len(report.findings)},
        note=note,
    )


def _usual(target: str) -> tuple[tuple[str, str], ...]:
    known = find_known(target)
    assert known is not None
    return tuple(sorted((name, values[0]) for name, values in known.settings.items()))


def _workers() -> Iterator[Row]:
    """The same campaign on one process and on as many as there are cores."""
    cores = len(os.sched_getaffinity(0))
    campaign = Campaign(
        "planner", partial(the_scheduler, "planner"), _constraints(), SIZE, 0,
        Limits(tests=SHARED),
    )  # fmt: skip
    warm = replace(campaign, limits=Limits(tests=WARM))
    seconds = {}
    for count in (1, cores):
        with crew_of(str(count)) as crew:
            warm.run(None, crew)
            seconds[count] = campaign.run(None, crew).seconds
    yield Row(
        f"trials of 10 VMs x 10 hosts against planner, {cores} workers",
        seconds[cores],
        "one worker",
        seconds[1],
        count=SHARED,
    )


def _causes() -> Row:
    """How many of the six causes of the paper are found within 1,000 trials each."""
    began = perf_counter()
    found = 0
    for name in FAULTY:
        known = find_known(name)
        assert known is not None
        limits = Limits(tests=1_000, failures=1)
        report = Campaign(name, known.make, known.constraints, known.options, 0, limits).run()
        found += report.defects > 0
    figures = {"causes": len(FAULTY), "found": found}
    return Row(
        "causes A to F found within 1,000 trials", perf_counter() - began, "", None, figures=figures
    )


def _mutants() -> Row:
    """How many mutants of our planner are found within a minute each."""
    began = perf_counter()
    cores = len(os.sched_getaffinity(0))
    names = tuple(mutants())
    with crew_of(str(cores)) as crew:
        seconds = list(crew.do(_seconds_to_find, names))
    missed = [name for name, one in zip(names, seconds, strict=True) if one is None]
    times: Sequence[float] = sorted(one for one in seconds if one is not None)
    return Row(
        f"mutants of our planner found within {FOUND_S_MAX:g} s each, {cores} at a time",
        perf_counter() - began,
        "",
        None,
        figures={
            "mutants": len(names),
            "found_percent": 100 * len(times) / len(names),
            "median_s": times[len(times) // 2] if times else 0.0,
            "slowest_s": times[-1] if times else 0.0,
        },
        note=f"not found: {', '.join(missed)}" if missed else "",
    )


def _seconds_to_find(name: str) -> float | None:
    known = find_known(name)
    assert known is not None
    constraint = name.removeprefix("mutant-").rpartition("-")[0]
    scheduler = known.make()
    limits = Limits(tests=None, failures=1, seconds=FOUND_S_MAX)
    report = Campaign(name, scheduler, (constraint,), known.options, 0, limits).run()
    return report.seconds if report.defects else None
