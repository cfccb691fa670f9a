"""OpenStack Nova as a scheduler under test: its filters one by one, and all of it at once.

Not called ``nova``: the worker has this folder on its path, and would import us instead of Nova.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, Final

from equipoise.fuzz.schedulers.scheduler import Crash, Unsupported
from equipoise.fuzz.targets.asked import Asked
from equipoise.fuzz.targets.nova_question import Question, encode
from equipoise.fuzz.targets.nova_requests import encode_requests
from equipoise.fuzz.targets.nova_words import EXTRA_SPECS
from equipoise.fuzz.targets.worker import Admission, Crashed, Worker, start
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import Boot
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId

SECONDS_MAX: Final = 60.0
"""For one line of questions, however many."""
TOGETHER: Final = 64
"""How many trials are put in one line."""
BOOT_MS: Final = 1000
"""How long a boot takes in a plan of Nova's, which says nothing of times."""
_BEGIN: Final = partial(start, "nova")


class _Asked(Asked):
    """Has a worker of Nova."""

    def __init__(
        self,
        *,
        extra_specs: str = EXTRA_SPECS[0],
        begin: Callable[[], Worker] = _BEGIN,
    ) -> None:
        self._extra_specs = extra_specs
        super().__init__(begin)


class Nova(_Asked):
    """Each constraint of ``nova.spec`` put to the filter that it describes: may this VM come here?

    A filter answers for its own constraint and takes everything else for granted: that the machines
    can carry the plan out, and that the constraint held before. So its yes to a trial that has
    ``objections`` means nothing: judge valid trials only. One that is broken before the VM comes is
    not supported. ``ExtraSpecs`` describes two filters; ``extra_specs`` says which of them is
    asked. Where Nova reads a word as something else than we do, its answer says nothing either, but
    that it breaks is told.
    """

    def accepts(self, trial: Trial) -> bool:
        """Whether the filter lets everybody come who comes in the plan."""
        (answer,) = self.accepts_many([trial])
        if isinstance(answer, bool):
            return answer
        raise answer

    def accepts_many(self, trials: Sequence[Trial]) -> tuple[bool | Unsupported | Crash, ...]:
        """The same for many trials in one go; what ``accepts`` would raise is an answer here."""
        asked: list[list[Question] | Unsupported] = []
        said: list[Future[Sequence[Admission]]] = []
        with ThreadPoolExecutor(max_workers=1) as other:  # while Nova answers, we go on asking
            for start in range(0, len(trials), TOGETHER):
                some = [self._questions(one) for one in trials[start : start + TOGETHER]]
                told = [one.told for each in some if isinstance(each, list) for one in each]
                asked += some
                said += [other.submit(self._answers, told)] if told else []
        answers = chain.from_iterable(one.result() for one in said)
        return tuple(
            _answer([(one.odd, next(answers)) for one in each]) if isinstance(each, list) else each
            for each in asked
        )

    def _questions(self, trial: Trial) -> list[Question] | Unsupported:
        try:
            return encode(trial, extra_specs=self._extra_specs)
        except Unsupported as error:
            return error

    def _answers(self, told: Sequence[dict[str, Any]]) -> Sequence[Admission]:
        return self._ask(lambda worker: worker.admits(told, seconds_max=SECONDS_MAX))


class NovaPipeline(_Asked):
    """All of Nova's scheduler but Placement: it finds hosts for the VMs of a trial that are ready.

    It filters by what the constraint says and by its usual filters, weighs the hosts that are left,
    and takes the best one. A request that it cannot fulfil whole is not fulfilled at all.
    """

    def plan(self, trial: Trial) -> tuple[Step, ...]:
        """One boot after the other, in the order in which it decides."""
        question = encode_requests(trial, extra_specs=self._extra_specs)
        told = [question.told]
        (said,) = self._ask(lambda worker: worker.place(told, seconds_max=SECONDS_MAX))
        if isinstance(said, Crashed):
            raise Crash(said.what)
        if question.odd:
            raise Unsupported(question.odd)
        return tuple(
            Step(
                id=StepId(f"s{number + 1}"),
                action=Boot(vm=VmId(vm), target=HostId(host)),
                start_ms=number * BOOT_MS,
                end_ms=(number + 1) * BOOT_MS,
            )
            for number, (vm, host) in enumerate(said.items())
        )


def _answer(said: Iterable[tuple[str, Admission]]) -> bool | Unsupported | Crash:
    """What one who is asked about VMs in turn says about all of them."""
    for odd, one in said:
        if isinstance(one, Crashed):
            return Crash(one.what)
        if odd:
            return Unsupported(odd)
        if not all(one):
            return False
    return True
