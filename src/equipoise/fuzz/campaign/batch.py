"""Batches: trials that are drawn, answered and judged together, and the size of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf
from time import perf_counter
from typing import Final, NamedTuple

from equipoise.adapters.targets.scheduler import Scheduler, ask
from equipoise.adapters.targets.trial import PlanSampling, TrialOptions
from equipoise.fuzz.campaign.findings import DefectSignature, Finding, signature_of
from equipoise.fuzz.campaign.workers import QUEUED_PER_WORKER, is_grace_over, is_stop_requested
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.generate.generator import DrawnTrials, draw_in_turn
from equipoise.fuzz.trial import OracleFailure, Trial, TrialOutcome, judge, shrink, verdict_on
from equipoise.spec.library import all_constraints

SchedulerFactory = Callable[[], Scheduler]


@dataclass(frozen=True, slots=True)
class TrialBatch:
    """The trials of a batch: all that a worker needs to know."""

    make: SchedulerFactory
    """Returns the scheduler; the same one in each call of one worker."""
    constraints: Sequence[str]
    """The constraints of the campaign: trial n is for constraint n modulo their number."""
    options: TrialOptions
    seed: int
    numbers: range
    own: str = ""
    """The text of constraints beside the library; they override equal names of the library."""
    is_optional: bool = False
    """Whether another trial shows the same kind of defect, so that this one can be skipped."""


class JudgedTrial(NamedTuple):
    """The outcome of a trial."""

    number: int
    outcome: TrialOutcome
    signature: DefectSignature | None
    """The signature of the defect; ``None`` without a defect."""


class BatchResult(NamedTuple):
    """The outcomes of a batch."""

    judged: list[JudgedTrial]
    seconds: float
    """The duration of the whole batch."""


def judge_batch(batch: TrialBatch) -> BatchResult:
    """Draw the trials of a batch, ask the scheduler and compare, in the order of their numbers.

    After a stop request, the remaining trials are left out.
    """
    scheduler, judged, started = batch.make(), list[JudgedTrial](), perf_counter()
    for numbers, drawn in _draw_batch(batch):
        if is_stop_requested():
            break
        judged.extend(_judge_drawn(batch, scheduler, numbers, drawn))
    # Trials come grouped by constraint. In the order of their numbers a limit cuts the same trials
    # off with any size of batch.
    judged.sort(key=lambda trial: trial.number)
    return BatchResult(judged, perf_counter() - started)


def shrink_defect(batch: TrialBatch) -> Finding | None:
    """Shrink the only trial of a batch, which has shown a defect.

    Returns ``None`` for an optional trial after a stop request.
    """
    if batch.is_optional and is_stop_requested():
        return None
    (((number,), drawn),) = _draw_batch(batch)
    return shrink_to_finding(batch.make(), number, drawn.trial(0))


def _draw_batch(batch: TrialBatch) -> Iterator[tuple[Sequence[int], DrawnTrials]]:
    known = all_constraints(batch.own)
    generators = [
        Generator(known[name], name, batch.options, batch.seed) for name in batch.constraints
    ]
    return draw_in_turn(generators, batch.options, batch.seed, batch.numbers)


def _judge_drawn(
    batch: TrialBatch, scheduler: Scheduler, numbers: Sequence[int], drawn: DrawnTrials
) -> Iterator[JudgedTrial]:
    """Judge trials of one constraint."""
    try:
        verdicts = drawn.keeps.tolist(), drawn.broken_at_first.tolist()
    except Exception as error:
        raise _oracle_failure(drawn.trials, error) from error
    # Plans of the other kinds can be executed, by construction or because others are drawn again,
    # so they need no replay.
    careful = batch.options.plans is not PlanSampling.ANY
    for trial, keeps, broken in zip(drawn.trials, *verdicts, strict=True):
        trial.set_known_verdict(keeps=keeps, broken_at_first=broken, careful=careful)
    answers = ask(scheduler, drawn.trials)
    seen: set[DefectSignature] = set()
    for position, (trial, answer) in enumerate(zip(drawn.trials, answers, strict=True)):
        verdict = verdict_on(trial, answer)
        signature = signature_of(trial, verdict) if verdict.outcome.is_defect else None
        # A defect is worth a second judge: the arrays and the single case have separate code. One
        # trial of each signature is enough.
        if signature is not None and signature not in seen:
            seen.add(signature)
            _recheck_alone(drawn.trial(position), trial)
        yield JudgedTrial(numbers[position], verdict.outcome, signature)


def shrink_to_finding(scheduler: Scheduler, number: int, trial: Trial) -> Finding:
    """Shrink a trial that has shown a defect, and return the finding."""
    signature = signature_of(trial, judge(scheduler, trial))

    # The whole signature must stay: a smaller trial with another defect would be another finding.
    def keeps(smaller: Trial) -> bool:
        return signature_of(smaller, judge(scheduler, smaller)) == signature

    shrunk = _shrunk(trial, keeps)
    return Finding(judge(scheduler, shrunk), number, trial, shrunk)


class _GraceOver(Exception):
    """The grace period after a stop request is over."""


def _shrunk(trial: Trial, keeps: Callable[[Trial], bool]) -> Trial:
    """The smallest trial with the same defect, or the smallest one within the grace period."""
    smallest = trial

    def keeps_in_time(smaller: Trial) -> bool:
        nonlocal smallest
        if is_grace_over():
            raise _GraceOver
        if keeps(smaller):
            smallest = smaller
        return smallest is smaller

    try:
        return shrink(trial, keeps_in_time)
    except _GraceOver:
        return smallest


def _recheck_alone(alone: Trial, judged: Trial) -> None:
    """Raise ``OracleFailure`` if a trial is judged differently alone than in its batch."""
    if (alone.is_acceptable, alone.is_broken_at_first) != (
        judged.is_acceptable,
        judged.is_broken_at_first,
    ):
        raise OracleFailure(
            alone, "the verdict on the single trial differs from its verdict in the batch"
        )


def _oracle_failure(trials: Sequence[Trial], error: Exception) -> OracleFailure:
    """The failure for the first trial that the specification cannot judge."""
    for trial in trials:
        try:
            trial.violation, trial.is_broken_at_first  # noqa: B018  (evaluated for its exception)
        except Exception as cause:  # any exception of the specification is a bug of ours
            return OracleFailure(trial, f"{type(cause).__name__}: {cause}")
    return OracleFailure(trials[0], f"{type(error).__name__}: {error} (with all trials at once)")


BATCH_S: Final = 4.0
"""The intended duration of a batch: limits are checked that often."""
LAST_BATCH_S_MIN: Final = 1.0
"""The minimum duration of the last batches; shorter ones cost more than waiting."""
FIRST_SIZE: Final = 128
"""The number of trials of the first batch, whose duration is unknown."""
SIZE_MIN: Final = 32
"""The minimum number of trials of a batch."""
SIZE_MAX: Final = 1 << 16
"""The maximum number of trials of a batch, which limits the size of arrays."""


class BatchSizer:
    """Derives the size of the next batch from the speed of the last one."""

    def __init__(self, parallelism: int) -> None:
        self._parallelism = parallelism
        self._per_s = FIRST_SIZE / BATCH_S
        """The trials per second of one worker."""

    def note(self, trials: int, seconds: float) -> None:
        """Record the speed of a batch. The growth is limited: the first batches are slow."""
        self._per_s = min(16 * self._per_s, trials / max(seconds, 1e-6))

    def size(self, remaining: float, remaining_s: float) -> int:
        """The number of trials of the next batch, from the remaining trials and seconds."""
        batch_s = min(BATCH_S, remaining_s / QUEUED_PER_WORKER)
        # Batches shrink towards the end, so that no worker is idle for long at the end.
        share = (
            remaining
            if self._parallelism == 1
            else max(remaining / self._parallelism, self._per_s * LAST_BATCH_S_MIN)
        )
        size = max(SIZE_MIN, min(self._per_s * max(batch_s, 0), share, SIZE_MAX))
        return ceil(min(size, remaining)) if remaining < inf else ceil(size)
