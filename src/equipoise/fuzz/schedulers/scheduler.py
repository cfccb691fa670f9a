"""What a scheduler is asked: one small class is all that your own needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from equipoise.model.plan import Step

if TYPE_CHECKING:
    from equipoise.fuzz.trial.trial import Trial


TAKES_NO_PLAN: Final = "it makes a plan itself, and takes none"
"""Why whoever makes plans has no words for a trial that has one."""


class Unsupported(Exception):
    """The scheduler has no words for a trial, and says so instead of guessing."""


class Crash(Exception):
    """The scheduler broke instead of answering, in a way that leaves it able to go on."""


class TooLate(Exception):
    """The scheduler gave no answer in time."""


def without_network(trial: Trial) -> None:
    """Refuse a trial with a network, for those who could not be told of it."""
    if trial.network is not None:
        raise Unsupported("it has no words for the network that migrations go through")


class Accepting(Protocol):
    """Says whether it would accept a plan: just these actions at just these times."""

    def accepts(self, trial: Trial) -> bool:
        """Whether the plan of a trial keeps its constraint, and machines could carry it out."""
        ...


@runtime_checkable
class Planning(Protocol):
    """Makes a plan of its own, which must keep the constraint; the trial has none."""

    def plan(self, trial: Trial) -> Sequence[Step]:
        """What it would do, for the constraint or for whatever else it is made for."""
        ...


Scheduler = Accepting | Planning


@runtime_checkable
class AcceptingMany(Accepting, Protocol):
    """Can be asked about many plans in one go, which is faster."""

    def accepts_many(self, trials: Sequence[Trial]) -> Sequence[Answer]:
        """The answer to each; what ``accepts`` would raise is an answer here."""
        ...


YesOrNo = bool | Unsupported | TooLate | Crash
"""What came of asking whether a plan is accepted, or why there is no answer."""
Answer = YesOrNo | tuple[Step, ...]
"""What came of asking a scheduler: yes or no, a plan, or why there is neither."""


def ask(scheduler: Scheduler, trials: Sequence[Trial]) -> Sequence[Answer]:
    """Ask about trials: all at once if the scheduler can be asked so, else one after the other."""
    if isinstance(scheduler, AcceptingMany):
        try:
            answers = scheduler.accepts_many(trials)
            if len(answers) == len(trials):
                return answers
        except Exception:  # one of them ended it: asked one by one, it is found
            pass
    # Once for all of them: to look whether somebody has a method takes longer than some answers.
    put = _plan_of(scheduler) if isinstance(scheduler, Planning) else _yes_or_no_of(scheduler)
    return [_answer(put, trial) for trial in trials]


def _plan_of(scheduler: Planning) -> Callable[[Trial], Answer]:
    return lambda trial: _steps(scheduler.plan(trial))


def _yes_or_no_of(scheduler: Accepting) -> Callable[[Trial], Answer]:
    return lambda trial: bool(scheduler.accepts(trial))


def _answer(put: Callable[[Trial], Answer], trial: Trial) -> Answer:
    try:
        return put(trial)
    except (Unsupported, TooLate, Crash) as answer:
        return answer
    except Exception as error:  # whatever it is, the scheduler has crashed
        return Crash(f"{type(error).__name__}: {error}")


def _steps(plan: Sequence[Step]) -> tuple[Step, ...]:
    """A plan, if it is one."""
    steps = tuple(plan)
    odd = next((one for one in steps if not isinstance(one, Step)), None)
    if odd is not None:
        raise Crash(f"its plan has {type(odd).__name__} where a step should be")
    return steps
