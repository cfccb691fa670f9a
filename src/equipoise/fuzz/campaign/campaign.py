"""Running a campaign: draw, ask, compare, and make small what disagrees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from time import perf_counter
from typing import Final

from equipoise.fuzz.campaign.block import Block, Make, find, finding_of, judge_block
from equipoise.fuzz.campaign.crew import Alone, Crew
from equipoise.fuzz.campaign.findings import Finding, Report, Sort, by_cause, sort_of
from equipoise.fuzz.campaign.pace import Pace
from equipoise.fuzz.campaign.stop import is_asked_to_stop
from equipoise.fuzz.generate.options import USUAL, Options
from equipoise.fuzz.schedulers import Scheduler
from equipoise.fuzz.trial import Trial, judge

Watch = Callable[[Report], None]
SHRUNK: Final = 3
"""Of how many trials of one sort of defect the cause is looked for: they may differ in it."""


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
    scheduler: Scheduler | Make
    """The scheduler, or a function that gives it, for those who work elsewhere to call."""
    constraints: Sequence[str]
    options: Options = USUAL
    seed: int = 0
    limits: Limits = field(default_factory=Limits)
    own: str = ""
    """Constraints besides those of the library; of two with the same name, these count."""

    def run(self, watch: Watch | None = None, crew: Crew | None = None) -> Report:
        """Draw and judge, until a limit is reached; then make small what disagreed.

        Whoever asks to stop gets what was found by then.
        """
        crew = crew or Alone()
        report = Report(self.target, self.seed)
        first: dict[Sort, list[int]] = {}
        began, pace = perf_counter(), Pace(crew.hands)
        with closing(crew.do(judge_block, self._blocks(pace, began))) as done:
            for block in done:
                pace.note(len(block.judged), block.seconds)
                for number, outcome, sort in block.judged:
                    if self._is_enough(report):
                        break
                    report.add(self.constraints[number % len(self.constraints)], outcome, sort)
                    if sort is not None:
                        first.setdefault(sort, []).append(number)
                report.seconds = perf_counter() - began
                if watch is not None:
                    watch(report)
                if self._is_enough(report) or self._left_s(began) <= 0:
                    break
        report.seconds = perf_counter() - began
        report.findings.extend(by_cause(filter(None, crew.do(find, self._to_shrink(first)))))
        report.interrupted = is_asked_to_stop()
        return report

    def replay(self, trials: Iterable[Trial]) -> Report:
        """Judge trials that were drawn some other time."""
        report = Report(self.target, self.seed)
        scheduler, began = self._make()(), perf_counter()
        found: list[Finding] = []
        for number, trial in enumerate(trials):
            if is_asked_to_stop():
                break
            verdict = judge(scheduler, trial)
            sort = sort_of(trial, verdict) if verdict.outcome.is_defect else None
            report.add(trial.demand.name, verdict.outcome, sort)
            if sort is not None:
                found.append(finding_of(scheduler, number, trial))
        report.findings.extend(by_cause(found))
        report.seconds = perf_counter() - began
        report.interrupted = is_asked_to_stop()
        return report

    def _is_enough(self, report: Report) -> bool:
        tests, failures = self.limits.tests, self.limits.failures
        return (tests is not None and report.tests >= tests) or (
            failures is not None and report.defects >= failures
        )

    def _left_s(self, began: float) -> float:
        """How many seconds are left."""
        seconds = self.limits.seconds
        return inf if seconds is None else seconds - (perf_counter() - began)

    def _blocks(self, pace: Pace, began: float) -> Iterator[Block]:
        """All trials in order of their numbers, as many at a time as the pace is."""
        number, end = 0, inf if self.limits.tests is None else self.limits.tests
        while self.constraints and number < end and not is_asked_to_stop():
            size = pace.size(end - number, self._left_s(began))
            yield self._block(range(number, number + size))
            number += size

    def _to_shrink(self, first: Mapping[Sort, Sequence[int]]) -> Iterator[Block]:
        """The first trials of each sort, each by itself."""
        for numbers in first.values():
            for place, one in enumerate(numbers[:SHRUNK]):
                yield replace(self._block(range(one, one + 1)), is_further=place > 0)

    def _block(self, numbers: range) -> Block:
        names = tuple(self.constraints)
        return Block(self._make(), names, self.options, self.seed, numbers, self.own)

    def _make(self) -> Make:
        return self.scheduler if callable(self.scheduler) else partial(_itself, self.scheduler)


def _itself(scheduler: Scheduler) -> Scheduler:
    return scheduler
