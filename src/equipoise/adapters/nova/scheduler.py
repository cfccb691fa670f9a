"""OpenStack Nova as a scheduler under test: its filters one by one, and its whole scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, Final

from equipoise.adapters.nova.encode import (
    CONSTRAINTS,
    EXTRA_SPECS,
    PLACEABLE,
    NovaQuestion,
    encode_questions,
    encode_requests,
)
from equipoise.adapters.targets.environment import PYTHON_TARGETS
from equipoise.adapters.targets.scheduler import SchedulerCrash, SchedulerEntry, UnsupportedTrial
from equipoise.adapters.targets.trial import ResourceOptions, Trial, TrialOptions
from equipoise.adapters.targets.worker import (
    AdmissionAnswer,
    TargetCrash,
    Worker,
    WorkerClient,
    start_worker,
    why_missing,
)
from equipoise.model.action import Boot
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState

SECONDS_MAX: Final = 60.0
"""The time limit of one line of questions."""
TRIALS_PER_LINE: Final = 64
"""The number of trials in one line of questions."""
BOOT_MS: Final = 1000
"""The duration of a boot in plans of Nova, which states no times."""
_START: Final = partial(start_worker, "nova")


class _NovaClient(WorkerClient):
    """A worker with Nova and the choice between its two filters of extra specs."""

    def __init__(
        self,
        *,
        extra_specs: str = EXTRA_SPECS[0],
        starter: Callable[[], Worker] = _START,
    ) -> None:
        self._extra_specs = extra_specs
        super().__init__(starter)


class Nova(_NovaClient):
    """The filters of Nova: each constraint of ``nova.spec`` is judged by the filter it describes.

    A filter judges its own constraint and assumes the rest: that the plan can be executed and that
    the constraint held before. So its answer counts only for trials without ``objections``. A trial
    that is violated before the VM is placed is not supported. ``ExtraSpecs`` describes two filters;
    ``extra_specs`` selects one of them. Where Nova interprets a value differently, its answer does
    not count, but a crash does.
    """

    def accepts(self, trial: Trial) -> bool:
        """Whether the filter admits every VM that the plan places."""
        (answer,) = self.accepts_many([trial])
        if isinstance(answer, bool):
            return answer
        raise answer

    def accepts_many(
        self, trials: Sequence[Trial]
    ) -> tuple[bool | UnsupportedTrial | SchedulerCrash, ...]:
        """The answers for many trials; an exception of ``accepts`` is a value here."""
        encoded: list[list[NovaQuestion] | UnsupportedTrial] = []
        replies: list[Future[Sequence[AdmissionAnswer]]] = []
        # A thread, so that the next questions are encoded while Nova answers.
        with ThreadPoolExecutor(max_workers=1) as thread:
            for start in range(0, len(trials), TRIALS_PER_LINE):
                batch = [
                    self._questions(trial) for trial in trials[start : start + TRIALS_PER_LINE]
                ]
                messages = [
                    question.message
                    for questions in batch
                    if isinstance(questions, list)
                    for question in questions
                ]
                encoded += batch
                replies += [thread.submit(self._answers, messages)] if messages else []
        answers = chain.from_iterable(reply.result() for reply in replies)
        return tuple(
            _combined_answer([(question.misread, next(answers)) for question in questions])
            if isinstance(questions, list)
            else questions
            for questions in encoded
        )

    def _questions(self, trial: Trial) -> list[NovaQuestion] | UnsupportedTrial:
        try:
            return encode_questions(trial, extra_specs=self._extra_specs)
        except UnsupportedTrial as error:
            return error

    def _answers(self, messages: Sequence[dict[str, Any]]) -> Sequence[AdmissionAnswer]:
        return self._ask(lambda worker: worker.admits(messages, seconds_max=SECONDS_MAX))


class NovaPipeline(_NovaClient):
    """Nova's scheduler without Placement: it finds hosts for the ready VMs of a trial.

    It applies the filter of the constraint and its default filters, weighs the remaining hosts and
    takes the best one. It fulfils a request completely or not at all.
    """

    def plan(self, trial: Trial) -> tuple[Step, ...]:
        """One boot after the other, in the order of Nova's decisions."""
        question = encode_requests(trial, extra_specs=self._extra_specs)
        messages = [question.message]
        (placed,) = self._ask(lambda worker: worker.place(messages, seconds_max=SECONDS_MAX))
        if isinstance(placed, TargetCrash):
            raise SchedulerCrash(placed.what)
        if question.misread:
            raise UnsupportedTrial(question.misread, "ambiguous-value")
        return tuple(
            Step(
                id=StepId(f"s{number + 1}"),
                action=Boot(vm=VmId(vm), target=HostId(host)),
                start_ms=number * BOOT_MS,
                end_ms=(number + 1) * BOOT_MS,
            )
            for number, (vm, host) in enumerate(placed.items())
        )


def _combined_answer(
    answers: Iterable[tuple[str, AdmissionAnswer]],
) -> bool | UnsupportedTrial | SchedulerCrash:
    """The answer for a whole trial, from the answers for its placements in turn."""
    for misread, answer in answers:
        if isinstance(answer, TargetCrash):
            return SchedulerCrash(answer.what)
        if misread:
            return UnsupportedTrial(misread, "ambiguous-value")
        if not all(answer):
            return False
    return True


_LABEL_VALUES: Final = ("a", "b")
_FILTER_OPTIONS: Final = TrialOptions(
    hosts=(2, 4),
    vms=(3, 5),
    host_states=FrozenMap({HostState.ON: 8, HostState.STANDBY: 1, HostState.MAINTENANCE: 1}),
    vm_states=FrozenMap({VmState.RUNNING: 3, VmState.READY: 6, VmState.SLEEPING: 2}),
    overfull=0,
    agents=0,
    paired=0,
    replaceable=0,
    allocated=0,
    actions=(1, 1),
    end_states=FrozenMap({VmState.RUNNING: 1}),
    total=(1, 2),
    kinds=frozenset((ActionKind.BOOT, ActionKind.MIGRATE)),
    switched=0,
    waits=(0, 0),  # all at once, so that many actions are in flight at each placement
    # Nova reads it as a limit. VMs consume none of it: otherwise a violating plan could not run.
    resources=FrozenMap({"instances": ResourceOptions(capacity=(0, 3), consumption=(0, 0))}),
    labels=FrozenMap(
        {
            "filter_tenant_id": _LABEL_VALUES,
            "instance_type": _LABEL_VALUES,
            "flavor": _LABEL_VALUES,
            "subnet": _LABEL_VALUES,
            # Some values that Nova reads as comparisons, or as an invalid size of a network.
            "os_distro": ("a", ">= 4", "<or>"),
            "cidr": ("/24", "/99"),
        }
    ),
    busy=1,
    given=FrozenMap({"nb": (1, 2), "key": ("os_distro",)}),
    broken_at_first=False,
)
_PIPELINE_OPTIONS: Final = _FILTER_OPTIONS.but(
    vm_states=FrozenMap({VmState.READY: 8, VmState.RUNNING: 3, VmState.SLEEPING: 2}),
    actions=(0, 0),
    total=None,
)


NOVA: Final = SchedulerEntry(
    name="nova",
    about="the filters of OpenStack Nova's scheduler, one by one",
    make=Nova,
    question="admits",
    constraints=CONSTRAINTS,
    options=_FILTER_OPTIONS,
    settings={"extra_specs": EXTRA_SPECS},
    version=PYTHON_TARGETS["nova"].version,
    findings=PYTHON_TARGETS["nova"].findings,
    missing=partial(why_missing, "nova"),
)
NOVA_PIPELINE: Final = SchedulerEntry(
    name="nova-pipeline",
    about="OpenStack Nova's scheduler without Placement: it finds hosts for VMs",
    make=NovaPipeline,
    question="place",
    constraints=PLACEABLE,
    options=_PIPELINE_OPTIONS,
    settings={"extra_specs": EXTRA_SPECS},
    version=PYTHON_TARGETS["nova"].version,
    findings=PYTHON_TARGETS["nova"].findings,
    missing=partial(why_missing, "nova"),
)
