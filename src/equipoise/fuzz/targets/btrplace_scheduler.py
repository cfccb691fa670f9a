"""BtrPlace as a scheduler under test: a plan is imposed on it, to the second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypedDict, TypeVar

from equipoise.fuzz.generate.options import Amounts, Options
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.schedulers.scheduler import Crash, TooLate, Unsupported, YesOrNo
from equipoise.fuzz.targets.asked import Asked
from equipoise.fuzz.targets.btrplace_constraint import CONSTRAINTS
from equipoise.fuzz.targets.btrplace_question import Question, encode, read_made
from equipoise.fuzz.targets.folder import MissingTarget
from equipoise.fuzz.targets.java import PINNED, VERSIONS, find, need
from equipoise.fuzz.targets.worker import Crashed, OwnPlan, Worker
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.problem.problem import ActionKind
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState

EACH_S_MAX: Final = 5
"""For one question, in BtrPlace's own search."""
SECONDS_MAX: Final = 120.0
"""For one line of questions, however many."""
HEAP_MIB: Final = 512
Own = tuple[Step, ...] | Unsupported | TooLate | Crash | None
"""A plan that BtrPlace made itself; nothing if it found none."""
_Said = TypeVar("_Said")


class _Limits(TypedDict):
    each_s_max: int
    seconds_max: float


def _limits() -> _Limits:
    return {"each_s_max": EACH_S_MAX, "seconds_max": SECONDS_MAX}


TRIALS: Final = Options(
    host_states=FrozenMap({HostState.ON: 8, HostState.STANDBY: 2}),
    vm_states=FrozenMap({VmState.RUNNING: 12, VmState.READY: 4, VmState.SLEEPING: 3}),
    overfull=0,  # it takes no view of which less is there than taken
    agents=0,
    paired=0,
    replaceable=0,
    actions=(0, 1),
    allocated=0,
    kinds=frozenset(ActionKind) - {ActionKind.ENTER_MAINTENANCE},
    resources=FrozenMap({"licences": Amounts(offered=1.0)}),
    given=FrozenMap({"id": ("licences",), "percent": (100, 150)}),
)
"""Trials that BtrPlace has words for: one action for a VM at the most, and whole seconds.

Only killing, which it does at 0 or never, is drawn at other times as well.
"""


class BtrPlace(Asked):
    """Says whether there is a solution that is just the plan of a trial.

    Every VM and host does what the plan says and nothing else, at just these times; besides, only
    the constraint of the trial is wanted, and what BtrPlace always wants. If it is to ``repair``,
    it may move only VMs that it takes for misplaced, and whom the plan moves is one of them.
    """

    def __init__(self, *, repair: bool, begin: Callable[[], Worker] | None = None) -> None:
        self._repair = repair
        super().__init__(begin or start_btrplace)

    def accepts(self, trial: Trial) -> bool:
        """Whether the plan of a trial is one that BtrPlace could have made."""
        (answer,) = self.accepts_many([trial])
        if isinstance(answer, bool):
            return answer
        raise answer

    def accepts_many(self, trials: Sequence[Trial]) -> tuple[YesOrNo, ...]:
        """The same for many trials in one go; what ``accepts`` would raise is an answer here."""
        said = self._each(trials, lambda worker, asked: worker.accepts(asked, **_limits()))
        return tuple(_crash(one) if isinstance(one, Crashed) else one for one in said)

    def checks_many(self, trials: Sequence[Trial]) -> tuple[YesOrNo, ...]:
        """Whether BtrPlace's own checker, which the solver has no part in, accepts the plans."""
        said = self._each(
            trials, lambda worker, asked: worker.checks(asked, seconds_max=SECONDS_MAX)
        )
        return tuple(_crash(one) if isinstance(one, Crashed) else one for one in said)

    def plans_many(self, trials: Sequence[Trial]) -> tuple[Own, ...]:
        """What it would do itself to get where the plans lead; nothing if it finds no way there."""
        said = self._each(trials, lambda worker, asked: worker.plans(asked, **_limits()))
        return tuple(_own(trial, one) for trial, one in zip(trials, said, strict=True))

    def _question(self, trial: Trial) -> Question | Unsupported:
        try:
            return encode(trial, repair=self._repair)
        except Unsupported as error:
            return error

    def _each(
        self,
        trials: Sequence[Trial],
        ask: Callable[[Worker, list[Question]], Sequence[_Said]],
    ) -> tuple[_Said | Unsupported, ...]:
        """Ask about those trials that it has words for; each has its answer in its own place."""
        questions = [self._question(trial) for trial in trials]
        asked = [one for one in questions if not isinstance(one, Unsupported)]
        said = iter(self._ask(lambda worker: ask(worker, asked)) if asked else ())
        return tuple(one if isinstance(one, Unsupported) else next(said) for one in questions)


def start_btrplace() -> Worker:
    """Start a worker, if BtrPlace has been built."""
    build = need()
    return Worker(build.worker_line(heap_mib=HEAP_MIB), name=PINNED.about)


def _crash(said: Crashed) -> Crash:
    return Crash(said.what)


def _own(trial: Trial, said: OwnPlan) -> Own:
    if isinstance(said, Crashed):
        return _crash(said)
    return read_made(trial, said) if isinstance(said, dict) else said


def _make(repair: str) -> BtrPlace:
    return BtrPlace(repair=repair == "on")


def _missing() -> str:
    try:
        need()
    except MissingTarget as error:
        return str(error)
    return ""


def target() -> Known:
    """What is known of BtrPlace, in the version that was built here."""
    found = find()
    built = next((one for one in VERSIONS if found and one.version == found.version), PINNED)
    return Known(
        name=PINNED.name,
        about="BtrPlace, with the plan imposed on it",
        make=_make,
        constraints=CONSTRAINTS,
        options=TRIALS,
        settings={"repair": ("off", "on")},
        has_checker=True,
        version=built.version,
        findings=built.findings if built.findings.exists() else None,
        missing=_missing,
    )
