"""A brake that one thread pulls and another one heeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock


class Brake:
    """Once pulled, it stays pulled, and whatever runs or comes later is told to end."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._deed: Callable[[], object] | None = None
        self._is_pulled = False

    @property
    def is_pulled(self) -> bool:
        """Whether everything is to end."""
        return self._is_pulled

    def pull(self) -> None:
        """Tell what runs now to end."""
        with self._lock:
            self._is_pulled = True
            deed = self._deed
        if deed is not None:
            deed()

    @contextmanager
    def wired(self, deed: Callable[[], object]) -> Iterator[None]:
        """Have something done when the brake is pulled, or at once if it was."""
        with self._lock:
            self._deed, is_pulled = deed, self._is_pulled
        if is_pulled:
            deed()
        try:
            yield
        finally:
            with self._lock:
                self._deed = None
