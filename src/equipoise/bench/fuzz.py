"""The benchmark of campaigns: how fast trials are drawn, judged and asked, and what they find."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Final

from equipoise.adapters.btrplace.java_build import safeplace_tests_per_s
from equipoise.bench.measure import BenchmarkRow, best_time_s
from equipoise.errors import EquipoiseError
from equipoise.fuzz.campaign import CampaignLimits, FuzzCampaign
from equipoise.fuzz.campaign.workers import open_pool
from equipoise.fuzz.generate import Generator, TrialOptions
from equipoise.fuzz.generate.generator import draw_in_turn
from equipoise.fuzz.registry import find_scheduler, make_scheduler
from equipoise.fuzz.schedulers.faulty import FAULTY
from equipoise.fuzz.schedulers.planner import mutants
from equipoise.spec.library import library_constraints, library_file

SIZE: Final = TrialOptions(hosts=(10, 10), vms=(10, 10))
TRIALS_DRAWN: Final = 1 << 15
TRIALS_ONE_BY_ONE: Final = 300
TRIALS_ASKED: Final = {"planner": 5_000, "nova": 20_000}
"""Trials per scheduler, enough for about ten seconds."""
TRIALS_SHARED: Final = 10_000
"""The trials that workers share."""
TRIALS_WARM_UP: Final = 500
"""The trials before the measurement, which load and compile everything."""
SAFEPLACE_TESTS: Final = 2_000
"""The tests of SafePlace."""
FOUND_S_MAX: Final = 60.0
"""The time limit of the campaign against one mutant."""


def rows() -> Iterator[BenchmarkRow]:
    """Measure."""
    yield _draw_and_judge_row()
    original, note = _safeplace_rate()
    for target in TRIALS_ASKED:
        yield from _campaign_rows(target, original, note)
    yield from _worker_rows()
    yield _causes_row()
    yield _mutants_row()


def _constraints() -> tuple[str, ...]:
    return tuple(library_file("btrplace").constraints)


def _draw_and_judge_row() -> BenchmarkRow:
    """From a seed to verdicts, on one core."""
    known, names = library_constraints(), _constraints()
    makers = [Generator(known[name], name, SIZE) for name in names]

    def together() -> None:
        for _, drawn in draw_in_turn(makers, SIZE, 0, range(TRIALS_DRAWN)):
            assert len(drawn.keeps) == len(drawn.broken_at_first)

    def alone() -> None:
        for number in range(TRIALS_ONE_BY_ONE):
            trial = makers[number % len(makers)].trial(number)
            assert trial.violation is None or trial.violation.at_ms >= 0
            assert trial.is_broken_at_first in (True, False)

    return BenchmarkRow(
        f"trials of 10 VMs x 10 hosts drawn and judged, {len(names)} constraints of BtrPlace",
        best_time_s(together, tries=3),
        "one at a time",
        # Extrapolated from a part: all trials one at a time would take minutes.
        best_time_s(alone, tries=1) * TRIALS_DRAWN / TRIALS_ONE_BY_ONE,
        count=TRIALS_DRAWN,
    )


def _safeplace_rate() -> tuple[float | None, str]:
    """The tests per second of SafePlace, or the reason why it is not measured."""
    try:
        return safeplace_tests_per_s(SAFEPLACE_TESTS), ""
    except EquipoiseError as error:
        return None, f"SafePlace does not run beside it: {error}"


def _campaign_rows(target: str, original: float | None, note: str) -> Iterator[BenchmarkRow]:
    """Measure a campaign without shrinking: draw, judge, ask, compare."""
    known = find_scheduler(target)
    assert known is not None
    missing = known.missing()
    if missing:
        yield BenchmarkRow(f"trials against {target}: not measured", 0.0, "", None, note=missing)
        return
    options = known.options.but(hosts=SIZE.hosts, vms=SIZE.vms)
    names = known.constraints or _constraints()
    campaign = FuzzCampaign(
        target, partial(make_scheduler, target, _default_settings(target)), names, options, 0,
        CampaignLimits(tests=TRIALS_ASKED[target]),
    )  # fmt: skip
    replace(campaign, limits=CampaignLimits(tests=TRIALS_WARM_UP)).run()
    report = campaign.run()
    plain = None if original is None else report.tests / original
    yield BenchmarkRow(
        f"trials of 10 VMs x 10 hosts against {target}, {len(names)} constraints",
        report.seconds,
        "SafePlace against BtrPlace" if plain is not None else "",
        plain,
        count=report.tests,
        figures={"defects": report.defects, "findings": len(report.findings)},
        note=note,
    )


def _default_settings(target: str) -> tuple[tuple[str, str], ...]:
    known = find_scheduler(target)
    assert known is not None
    return tuple(sorted((name, values[0]) for name, values in known.settings.items()))


def _worker_rows() -> Iterator[BenchmarkRow]:
    """The same campaign on one process and on as many as there are cores."""
    cores = len(os.sched_getaffinity(0))
    campaign = FuzzCampaign(
        "planner", partial(make_scheduler, "planner"), _constraints(), SIZE, 0,
        CampaignLimits(tests=TRIALS_SHARED),
    )  # fmt: skip
    warm = replace(campaign, limits=CampaignLimits(tests=TRIALS_WARM_UP))
    seconds = {}
    for count in (1, cores):
        with open_pool(str(count)) as pool:
            warm.run(None, pool)
            seconds[count] = campaign.run(None, pool).seconds
    yield BenchmarkRow(
        f"trials of 10 VMs x 10 hosts against planner, {cores} workers",
        seconds[cores],
        "one worker",
        seconds[1],
        count=TRIALS_SHARED,
    )


def _causes_row() -> BenchmarkRow:
    """How many of the six causes of the paper are found within 1,000 trials each."""
    began = perf_counter()
    found = 0
    for name in FAULTY:
        known = find_scheduler(name)
        assert known is not None
        limits = CampaignLimits(tests=1_000, failures=1)
        report = FuzzCampaign(name, known.make, known.constraints, known.options, 0, limits).run()
        found += report.defects > 0
    figures = {"causes": len(FAULTY), "found": found}
    return BenchmarkRow(
        "causes A to F found within 1,000 trials", perf_counter() - began, "", None, figures=figures
    )


def _mutants_row() -> BenchmarkRow:
    """How many mutants of our planner are found within a minute each."""
    began = perf_counter()
    cores = len(os.sched_getaffinity(0))
    names = tuple(mutants())
    with open_pool(str(cores)) as pool:
        seconds = list(pool.run_all(_seconds_to_find, names))
    missed = [name for name, second in zip(names, seconds, strict=True) if second is None]
    times: Sequence[float] = sorted(value for value in seconds if value is not None)
    return BenchmarkRow(
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
    known = find_scheduler(name)
    assert known is not None
    constraint = name.removeprefix("mutant-").rpartition("-")[0]
    scheduler = known.make()
    limits = CampaignLimits(tests=None, failures=1, seconds=FOUND_S_MAX)
    report = FuzzCampaign(name, scheduler, (constraint,), known.options, 0, limits).run()
    return report.seconds if report.defects else None
