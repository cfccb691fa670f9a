"""Running a campaign: draw, ask, compare, and make small what disagrees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter

from equipoise.fuzz.campaign.findings import Finding, Report, Sort, sort_of
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.generate.options import USUAL, Options
from equipoise.fuzz.schedulers import Scheduler
from equipoise.fuzz.trial import Trial, judge, shrink
from equipoise.spec.library import library_constraints

Watch = Callable[[Report], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """When a campaign ends: whatever comes first."""

    tests: int | None = 1_000
    failures: int | None = None
    """How many trials may show a defect."""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Campaign:
    """Trials of some constraints for one scheduler, in turn. The seed decides everything."""

    target: str
    scheduler: Scheduler
    constraints: Sequence[str]
    options: Options = USUAL
    seed: int = 0
    limits: Limits = field(default_factory=Limits)

    def run(self, watch: Watch | None = None) -> Report:
        """Draw and judge, until a limit is reached."""
        known = library_constraints()
        makers = [
            Generator(known[name], name, self.options, self.seed) for name in self.constraints
        ]
        numbered = ((number, makers[number % len(makers)].trial(number)) for number in count())
        return judge_all(self._report(), self.scheduler, numbered, self.limits, watch)

    def replay(self, trials: Iterable[Trial]) -> Report:
        """Judge trials that were drawn some other time."""
        return judge_all(self._report(), self.scheduler, enumerate(trials), Limits(tests=None))

    def _report(self) -> Report:
        return Report(self.target, self.seed)


def judge_all(
    report: Report,
    scheduler: Scheduler,
    trials: Iterable[tuple[int, Trial]],
    limits: Limits,
    watch: Watch | None = None,
) -> Report:
    """Judge trials until they or the limits end."""
    began = perf_counter()
    for number, trial in _within(limits, report, trials, began):
        verdict = judge(scheduler, trial)
        report.tests += 1
        report.outcomes[verdict.outcome] += 1
        report.verdicts[trial.demand.name, verdict.outcome] += 1
        report.seconds = perf_counter() - began
        if verdict.outcome.is_defect:
            sort = sort_of(trial, verdict)
            report.seen[sort] += 1
            if report.seen[sort] == 1:
                report.findings.append(_finding(scheduler, number, trial, sort))
        if watch is not None:
            watch(report)
    report.seconds = perf_counter() - began
    return report


def _within(
    limits: Limits, report: Report, trials: Iterable[tuple[int, Trial]], began: float
) -> Iterator[tuple[int, Trial]]:
    if limits.tests == 0:
        return
    for one in trials:
        yield one
        if limits.tests is not None and report.tests >= limits.tests:
            return
        if limits.failures is not None and report.defects >= limits.failures:
            return
        if limits.seconds is not None and perf_counter() - began >= limits.seconds:
            return


def _finding(scheduler: Scheduler, number: int, trial: Trial, sort: Sort) -> Finding:
    def keeps(smaller: Trial) -> bool:
        return sort_of(smaller, judge(scheduler, smaller)) == sort

    shrunk = shrink(trial, keeps)
    return Finding(judge(scheduler, shrunk), number, trial, shrunk)
