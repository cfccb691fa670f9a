"""Running a campaign: draw, ask, compare, and make small what disagrees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from math import inf
from time import perf_counter
from typing import Final

from equipoise.fuzz.campaign.block import Block, Judged, Make, find, finding_of, judge_block
from equipoise.fuzz.campaign.crew import Alone, Crew
from equipoise.fuzz.campaign.findings import Finding, Report, Sort, by_cause, sort_of
from equipoise.fuzz.campaign.stop import is_asked_to_stop
from equipoise.fuzz.generate.options import USUAL, Options
from equipoise.fuzz.schedulers import Scheduler
from equipoise.fuzz.trial import Trial, judge

Watch = Callable[[Report], None]
ROUND_S: Final = 5.0
"""How long a round takes, more or less: as often the limits are looked at."""
FIRST: Final = 128
"""How many trials the first block has, of which nobody knows how long it takes."""
SHRUNK: Final = 3
"""Of how many trials of one sort of defect the cause is looked for: they may differ in it."""
SMALLEST: Final = 32
"""How many trials a block has at the least, however slow the scheduler is."""
LARGEST: Final = 1 << 16
"""How many trials a block has at the most, so that arrays do not grow too large."""


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
        began = perf_counter()
        for judged in self._rounds(crew, began):
            for number, outcome, sort in judged:
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

    def _rounds(self, crew: Crew, since: float) -> Iterator[Iterable[Judged]]:
        """All trials in order of their numbers, so many at a time as take about a round."""
        number, size, most = 0, FIRST, self.limits.tests
        while self.constraints and not is_asked_to_stop() and (most is None or number < most):
            end = (
                number + size * crew.hands
                if most is None
                else min(number + size * crew.hands, most)
            )
            began = perf_counter()
            blocks = [
                self._block(range(first, min(first + size, end)))
                for first in range(number, end, size)
            ]
            yield chain.from_iterable(crew.do(judge_block, blocks))
            seconds = max(perf_counter() - began, 1e-6)
            wish_s = min(ROUND_S, max(0.0, self._left_s(since)))
            size = max(SMALLEST, min(8 * size, LARGEST, int(size * wish_s / seconds)))
            number = end

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
