"""Some trials of one constraint, drawn, put before a scheduler and judged together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from equipoise.fuzz.campaign.findings import Finding, Sort, sort_of
from equipoise.fuzz.campaign.stop import is_asked_to_stop, is_out_of_time
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.generate.drawn import Drawn
from equipoise.fuzz.generate.generator import draw_in_turn
from equipoise.fuzz.generate.options import Options, Plans
from equipoise.fuzz.schedulers.scheduler import Scheduler, ask
from equipoise.fuzz.trial import OracleBroke, Outcome, Trial, judge, shrink, verdict_on
from equipoise.spec.library import all_constraints

Make = Callable[[], Scheduler]


@dataclass(frozen=True, slots=True)
class Block:
    """Which trials: all that a worker needs to know."""

    make: Make
    """Gives the scheduler; the same for the same worker."""
    constraints: Sequence[str]
    """Those of the campaign: trial n is for constraint n modulo their number."""
    options: Options
    seed: int
    numbers: range
    own: str = ""
    """Constraints besides those of the library; of two with the same name, these count."""
    is_further: bool = False
    """Whether a sort of defect is told already by another trial, so that one can do without it."""


class Judged(NamedTuple):
    """What came of a trial."""

    number: int
    outcome: Outcome
    sort: Sort | None
    """Of which sort the defect is, if it is one."""


class Done(NamedTuple):
    """What came of a block."""

    judged: list[Judged]
    seconds: float
    """How long it took, from the first to the last."""


def judge_block(block: Block) -> Done:
    """Draw the trials of a block, ask, and compare; in the order of their numbers.

    Those that nobody has looked at when somebody asks to stop are left out.
    """
    scheduler, found, began = block.make(), list[Judged](), perf_counter()
    for numbers, drawn in _draw(block):
        if is_asked_to_stop():
            break
        found.extend(_judge(block, scheduler, numbers, drawn))
    found.sort(key=lambda judged: judged.number)
    return Done(found, perf_counter() - began)


def find(block: Block) -> Finding | None:
    """Make the only trial of a block, which has shown a defect, as small as it can be.

    Nothing, if one can do without it and somebody asks to stop.
    """
    if block.is_further and is_asked_to_stop():
        return None
    (((number,), drawn),) = _draw(block)
    return finding_of(block.make(), number, drawn.trial(0))


def _draw(block: Block) -> Iterator[tuple[Sequence[int], Drawn]]:
    known = all_constraints(block.own)
    generators = [
        Generator(known[name], name, block.options, block.seed) for name in block.constraints
    ]
    return draw_in_turn(generators, block.options, block.seed, block.numbers)


def _judge(
    block: Block, scheduler: Scheduler, numbers: Sequence[int], drawn: Drawn
) -> Iterator[Judged]:
    """Judge trials of one constraint."""
    try:
        said = drawn.keeps.tolist(), drawn.broken_at_first.tolist()
    except Exception as error:
        raise _broke(drawn.trials, error) from error
    careful = block.options.plans is not Plans.ANY
    for trial, keeps, broken in zip(drawn.trials, *said, strict=True):
        trial.foretell(keeps=keeps, broken_at_first=broken, careful=careful)
    answers = ask(scheduler, drawn.trials)
    seen: set[Sort] = set()
    for place, (trial, answer) in enumerate(zip(drawn.trials, answers, strict=True)):
        verdict = verdict_on(trial, answer)
        sort = sort_of(trial, verdict) if verdict.outcome.is_defect else None
        if sort is not None and sort not in seen:
            seen.add(sort)
            _look_again(drawn.trial(place), trial)
        yield Judged(numbers[place], verdict.outcome, sort)


def finding_of(scheduler: Scheduler, number: int, trial: Trial) -> Finding:
    """Make a trial that has shown a defect as small as it can be."""
    sort = sort_of(trial, judge(scheduler, trial))

    def keeps(smaller: Trial) -> bool:
        return sort_of(smaller, judge(scheduler, smaller)) == sort

    shrunk = _shrunk(trial, keeps)
    return Finding(judge(scheduler, shrunk), number, trial, shrunk)


class _OutOfTime(Exception):
    """Nobody waits any longer."""


def _shrunk(trial: Trial, keeps: Callable[[Trial], bool]) -> Trial:
    """As small as it can be made, or while somebody waits who has asked to stop."""
    smallest = trial

    def keeps_in_time(smaller: Trial) -> bool:
        nonlocal smallest
        if is_out_of_time():
            raise _OutOfTime
        if keeps(smaller):
            smallest = smaller
        return smallest is smaller

    try:
        return shrink(trial, keeps_in_time)
    except _OutOfTime:
        return smallest


def _look_again(alone: Trial, judged: Trial) -> None:
    """See that a trial that shows a defect is judged alone as it was with all the others."""
    if (alone.is_right, alone.is_broken_at_first) != (judged.is_right, judged.is_broken_at_first):
        raise OracleBroke(alone, "judged alone, the trial is judged otherwise than with others")


def _broke(trials: Sequence[Trial], error: Exception) -> OracleBroke:
    """Find the trial that the specification cannot judge."""
    for trial in trials:
        try:
            trial.fault, trial.is_broken_at_first  # noqa: B018  (asked for what it raises)
        except Exception as own:  # whatever it is, it is ours
            return OracleBroke(trial, f"{type(own).__name__}: {own}")
    return OracleBroke(trials[0], f"{type(error).__name__}: {error} (with all trials at once)")
