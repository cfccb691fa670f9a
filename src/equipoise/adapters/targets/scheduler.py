"""The port of a scheduler under test: one small class is enough for a scheduler of your own.

A scheduler accepts or rejects given plans, or makes plans itself. ``SchedulerEntry`` describes one
that the command line knows by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from equipoise.adapters.targets.trial import DEFAULT_OPTIONS, TrialOptions
from equipoise.model.plan import Step

if TYPE_CHECKING:
    from equipoise.adapters.targets.trial import Trial

MAKES_ITS_OWN_PLAN: Final = "the scheduler makes plans itself and accepts no given plan"
"""The reason why a scheduler that makes plans rejects a trial that has one."""


class UnsupportedTrial(Exception):
    """The scheduler cannot express a trial. It reports that instead of guessing an answer."""

    def __init__(self, reason: str, code: str = "unsupported-trial") -> None:
        # Both are arguments of the exception, so that pickle can copy it between processes.
        super().__init__(reason, code)
        self.reason = reason
        self.code = code
        """A key of ``errors.CODES``."""

    def __str__(self) -> str:
        return self.reason


class SchedulerCrash(Exception):
    """The scheduler failed instead of answering, but it can answer further questions."""


class SchedulerTimeout(Exception):
    """The scheduler gave no answer within its time limit."""


def require_no_network(trial: Trial) -> None:
    """Raise ``UnsupportedTrial`` for a trial with a network."""
    if trial.network is not None:
        raise UnsupportedTrial("the scheduler does not model networks", "unsupported-network")


class PlanAcceptor(Protocol):
    """Accepts or rejects a plan with exactly these actions at exactly these times."""

    def accepts(self, trial: Trial) -> bool:
        """Whether the plan of a trial satisfies its constraint and can be executed."""
        ...


@runtime_checkable
class PlanMaker(Protocol):
    """Makes a plan that must satisfy the constraint; the trial has no plan."""

    def plan(self, trial: Trial) -> Sequence[Step]:
        """The steps that it would execute, for the constraint or for its own goal."""
        ...


Scheduler = PlanAcceptor | PlanMaker


@runtime_checkable
class BatchPlanAcceptor(PlanAcceptor, Protocol):
    """Judges many plans in one call, which is faster."""

    def accepts_many(self, trials: Sequence[Trial]) -> Sequence[SchedulerAnswer]:
        """The answer to each trial; an exception of ``accepts`` is a value here."""
        ...


AcceptanceAnswer = bool | UnsupportedTrial | SchedulerTimeout | SchedulerCrash
"""Whether a plan is accepted, or why there is no answer."""
SchedulerAnswer = AcceptanceAnswer | tuple[Step, ...]
"""The answer of a scheduler: yes or no, a plan, or why there is neither."""
SelfMadePlan = tuple[Step, ...] | UnsupportedTrial | SchedulerTimeout | SchedulerCrash | None
"""A plan that a scheduler made itself; ``None`` if it found no plan."""


def ask(scheduler: Scheduler, trials: Sequence[Trial]) -> Sequence[SchedulerAnswer]:
    """Return the answer to each trial, in one call if the scheduler supports that."""
    if isinstance(scheduler, BatchPlanAcceptor):
        try:
            answers = scheduler.accepts_many(trials)
            if len(answers) == len(trials):
                return answers
        except Exception:  # one trial ended the batch: the calls below find out which one
            pass
    # Once for all trials: the check for a method takes longer than some answers.
    put = _plan_of(scheduler) if isinstance(scheduler, PlanMaker) else _acceptance_of(scheduler)
    return [_answer(put, trial) for trial in trials]


def _plan_of(scheduler: PlanMaker) -> Callable[[Trial], SchedulerAnswer]:
    return lambda trial: _checked_steps(scheduler.plan(trial))


def _acceptance_of(scheduler: PlanAcceptor) -> Callable[[Trial], SchedulerAnswer]:
    return lambda trial: bool(scheduler.accepts(trial))


def _answer(put: Callable[[Trial], SchedulerAnswer], trial: Trial) -> SchedulerAnswer:
    try:
        return put(trial)
    except (UnsupportedTrial, SchedulerTimeout, SchedulerCrash) as answer:
        return answer
    except Exception as error:  # any other exception is a crash of the scheduler
        return SchedulerCrash(f"{type(error).__name__}: {error}")


def _checked_steps(plan: Sequence[Step]) -> tuple[Step, ...]:
    """The steps of a plan; ``SchedulerCrash`` if it contains anything else."""
    steps = tuple(plan)
    unexpected = next((step for step in steps if not isinstance(step, Step)), None)
    if unexpected is not None:
        raise SchedulerCrash(f"its plan has {type(unexpected).__name__} where a step should be")
    return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerEntry:
    """A scheduler that campaigns know by name: its abilities and how to create it."""

    name: str
    about: str
    make: Callable[..., Scheduler]
    """Creates the scheduler from its settings by name; a campaign calls its ``close``, if any."""
    question: str = "accepts"
    """``admits`` a VM to a host, ``place`` some VMs, ``plan`` for a goal, or ``accepts`` a plan.

    The first is an ``accepts`` of plans with one boot, the second a ``plan`` of boots only.
    """
    constraints: tuple[str, ...] = ()
    """The constraints that it supports; empty means the whole library."""
    options: TrialOptions = DEFAULT_OPTIONS
    """The options of trials that it can answer."""
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Its settings with their possible values; the first value is the default."""
    has_checker: bool = False
    """Whether it has a checker beside its decisions; campaigns call ``checks_many``."""
    version: str = ""
    """The version that a foreign scheduler is pinned to."""
    findings: Path | None = None
    """A file with the cases of its known defects in that version."""
    missing: Callable[[], str] = lambda: ""
    """Returns why it is not available on this machine and how to install it; empty if it is."""
