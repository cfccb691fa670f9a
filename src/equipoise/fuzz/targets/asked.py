"""Somebody who is asked by a worker, and gets another one if that is lost."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from equipoise.errors import WorldError
from equipoise.fuzz.schedulers.scheduler import TooLate
from equipoise.fuzz.targets.worker import Worker

T = TypeVar("T")


class Asked:
    """Has a worker; leave it with ``with`` or ``close``."""

    def __init__(self, begin: Callable[[], Worker]) -> None:
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

    def close(self) -> None:
        """End the worker; the next question would start another."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _ask(self, put: Callable[[Worker], T]) -> T:
        worker = self._worker = self._worker or self._begin()
        try:
            return put(worker)
        except WorldError as error:
            self.close()
            if worker.is_late:
                raise TooLate(str(error)) from error
            raise
