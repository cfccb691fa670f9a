"""The filters of OpenStack Nova as a scheduler under test.

Not called ``nova``: the worker has this folder on its path, and would import us instead of Nova.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Final, Self

from equipoise.errors import WorldError
from equipoise.fuzz.schedulers.scheduler import Crash, TooLate, Unsupported
from equipoise.fuzz.targets.nova_question import EXTRA_SPECS, encode
from equipoise.fuzz.targets.worker import Crashed, Worker, start
from equipoise.fuzz.trial.trial import Trial

SECONDS_MAX: Final = 60.0
"""For one line of questions, however many."""
_BEGIN: Final = partial(start, "nova")


class Nova:
    """Each constraint of ``nova.spec`` put to the filter that it describes: may this VM come here?

    A filter answers for its own constraint and takes everything else for granted: that the machines
    can carry the plan out, and that the constraint held before. So its yes to a trial that has
    ``objections`` means nothing: judge valid trials only. One that is broken at first is not
    supported. ``ExtraSpecs`` describes two filters; ``extra_specs`` says which of them is asked.
    """

    def __init__(
        self,
        *,
        extra_specs: str = EXTRA_SPECS[0],
        begin: Callable[[], Worker] = _BEGIN,
    ) -> None:
        self._extra_specs = extra_specs
        self._begin = begin
        self._worker: Worker | None = begin()  # at once, so that a missing target is told at once

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def accepts(self, trial: Trial) -> bool:
        """Whether the filter lets the VM come, if that is all that the plan does."""
        (answer,) = self.accepts_many([trial])
        if isinstance(answer, bool):
            return answer
        raise answer

    def accepts_many(self, trials: Sequence[Trial]) -> tuple[bool | Unsupported | Crash, ...]:
        """The same for many trials in one go; what ``accepts`` would raise is an answer here."""
        questions = [self._question(trial) for trial in trials]
        asked = [one for one in questions if not isinstance(one, Unsupported)]
        said = iter(self._ask(asked) if asked else ())
        return tuple(one if isinstance(one, Unsupported) else next(said) for one in questions)

    def close(self) -> None:
        """End the worker; the next question would start another."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _question(self, trial: Trial) -> dict[str, object] | Unsupported:
        try:
            return encode(trial, extra_specs=self._extra_specs)
        except Unsupported as error:
            return error

    def _ask(self, questions: list[dict[str, object]]) -> list[bool | Crash]:
        worker = self._worker = self._worker or self._begin()
        try:
            answers = worker.admits(questions, seconds_max=SECONDS_MAX)
        except WorldError as error:
            self.close()
            if worker.is_late:
                raise TooLate(str(error)) from error
            raise
        return [Crash(one.what) if isinstance(one, Crashed) else all(one) for one in answers]
