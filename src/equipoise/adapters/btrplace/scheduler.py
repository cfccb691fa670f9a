"""BtrPlace as a scheduler under test: it accepts or rejects a plan with times to the second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypedDict, TypeVar

from equipoise.adapters.btrplace.encode import (
    CONSTRAINTS,
    BtrPlaceQuestion,
    encode_question,
    read_own_plan,
)
from equipoise.adapters.btrplace.java_build import PINNED, VERSIONS, find_build, require_build
from equipoise.adapters.targets.environment import MissingTarget
from equipoise.adapters.targets.scheduler import (
    AcceptanceAnswer,
    SchedulerCrash,
    SchedulerEntry,
    SelfMadePlan,
    UnsupportedTrial,
)
from equipoise.adapters.targets.trial import ResourceOptions, Trial, TrialOptions
from equipoise.adapters.targets.worker import (
    AcceptsAnswer,
    OwnPlanAnswer,
    TargetCrash,
    Worker,
    WorkerClient,
)
from equipoise.model.host import HostState
from equipoise.model.problem.problem import ActionKind
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState

EACH_S_MAX: Final = 5
"""The time limit of BtrPlace's search for one question."""
SECONDS_MAX: Final = 120.0
"""The time limit of one line of questions."""
HEAP_MIB: Final = 512
_Answer = TypeVar("_Answer")


class _TimeLimits(TypedDict):
    each_s_max: int
    seconds_max: float


def _time_limits() -> _TimeLimits:
    return {"each_s_max": EACH_S_MAX, "seconds_max": SECONDS_MAX}


TRIAL_OPTIONS: Final = TrialOptions(
    host_states=FrozenMap({HostState.ON: 8, HostState.STANDBY: 2}),
    vm_states=FrozenMap({VmState.RUNNING: 12, VmState.READY: 4, VmState.SLEEPING: 3}),
    overfull=0,  # BtrPlace rejects a resource view with less capacity than consumption
    agents=0,
    paired=0,
    replaceable=0,
    actions=(0, 1),
    allocated=0,
    kinds=frozenset(ActionKind) - {ActionKind.ENTER_MAINTENANCE},
    resources=FrozenMap({"licences": ResourceOptions(offered=1.0)}),
    given=FrozenMap({"id": ("licences",), "percent": (100, 150)}),
)
"""Trials that BtrPlace can express: at most one action per VM, and whole seconds.

BtrPlace kills only at 0 s; other times are drawn too and are unsupported.
"""


class BtrPlace(WorkerClient):
    """Accepts a trial if its plan is a solution of BtrPlace.

    The plan is imposed: every VM and host has exactly its actions, at exactly its times. Beside
    that, only the constraint of the trial and BtrPlace's own rules apply. With ``repair``, BtrPlace
    may move only misplaced VMs, and the VMs that the plan moves count as misplaced.
    """

    def __init__(self, *, repair: bool, starter: Callable[[], Worker] | None = None) -> None:
        self._repair = repair
        super().__init__(starter or start_btrplace)

    def accepts(self, trial: Trial) -> bool:
        """Whether BtrPlace could have made the plan of a trial."""
        (answer,) = self.accepts_many([trial])
        if isinstance(answer, bool):
            return answer
        raise answer

    def accepts_many(self, trials: Sequence[Trial]) -> tuple[AcceptanceAnswer, ...]:
        """The answers for many trials; an exception of ``accepts`` is a value here."""
        answers = self._each(
            trials, lambda worker, questions: worker.accepts(questions, **_time_limits())
        )
        return tuple(map(_acceptance, answers))

    def checks_many(self, trials: Sequence[Trial]) -> tuple[AcceptanceAnswer, ...]:
        """Whether BtrPlace's checker, which is independent of its solver, accepts the plans."""
        answers = self._each(
            trials, lambda worker, questions: worker.checks(questions, seconds_max=SECONDS_MAX)
        )
        return tuple(map(_acceptance, answers))

    def plans_many(self, trials: Sequence[Trial]) -> tuple[SelfMadePlan, ...]:
        """The plans that BtrPlace makes for the same final states; ``None`` if it finds none."""
        answers = self._each(
            trials, lambda worker, questions: worker.plans(questions, **_time_limits())
        )
        return tuple(
            _own_plan(trial, answer) for trial, answer in zip(trials, answers, strict=True)
        )

    def _question(self, trial: Trial) -> BtrPlaceQuestion | UnsupportedTrial:
        try:
            return encode_question(trial, repair=self._repair)
        except UnsupportedTrial as error:
            return error

    def _each(
        self,
        trials: Sequence[Trial],
        ask: Callable[[Worker, list[BtrPlaceQuestion]], Sequence[_Answer]],
    ) -> tuple[_Answer | UnsupportedTrial, ...]:
        """The answers in the order of the trials; only supported trials become questions."""
        questions = [self._question(trial) for trial in trials]
        supported = [
            question for question in questions if not isinstance(question, UnsupportedTrial)
        ]
        answers = iter(self._ask(lambda worker: ask(worker, supported)) if supported else ())
        return tuple(
            question if isinstance(question, UnsupportedTrial) else next(answers)
            for question in questions
        )


def start_btrplace() -> Worker:
    """Start a worker; raise ``MissingTarget`` if BtrPlace has not been built."""
    build = require_build()
    return Worker(build.worker_command(heap_mib=HEAP_MIB), name=PINNED.about)


def _acceptance(answer: AcceptsAnswer) -> AcceptanceAnswer:
    return SchedulerCrash(answer.what) if isinstance(answer, TargetCrash) else answer


def _own_plan(trial: Trial, answer: OwnPlanAnswer) -> SelfMadePlan:
    if isinstance(answer, TargetCrash):
        return SchedulerCrash(answer.what)
    return read_own_plan(trial, answer) if isinstance(answer, dict) else answer


def _make_scheduler(repair: str) -> BtrPlace:
    return BtrPlace(repair=repair == "on")


def _why_missing() -> str:
    try:
        require_build()
    except MissingTarget as error:
        return str(error)
    return ""


def btrplace_entry() -> SchedulerEntry:
    """The entry of BtrPlace, in the version that was built on this machine."""
    build = find_build()
    built = next(
        (target for target in VERSIONS if build and target.version == build.version), PINNED
    )
    return SchedulerEntry(
        name=PINNED.name,
        about="BtrPlace with an imposed plan",
        make=_make_scheduler,
        constraints=CONSTRAINTS,
        options=TRIAL_OPTIONS,
        settings={"repair": ("off", "on")},
        has_checker=True,
        version=built.version,
        findings=built.findings if built.findings.exists() else None,
        missing=_why_missing,
    )
