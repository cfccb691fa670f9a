"""The virtual time of a run, shared by the cluster, the objects and the clock of schedulers."""

from __future__ import annotations

from typing import Final

NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000


class Moment:
    """The present instant in nanoseconds; 0 is the start of the workload.

    Schedulers start before 0. The cluster counts in whole milliseconds, timers of schedulers in
    nanoseconds: an instant between two milliseconds belongs to the earlier one.
    """

    def __init__(self, now_ns: int = 0) -> None:
        self._now_ns = now_ns

    @property
    def now_ns(self) -> int:
        """The present instant."""
        return self._now_ns

    @property
    def now_ms(self) -> int:
        """The present millisecond; the start of the workload for everything before it."""
        return max(self._now_ns // NS_PER_MS, 0)

    def advance(self, to_ns: int) -> None:
        """Let the time pass; it never goes back."""
        assert to_ns >= self._now_ns, (to_ns, self._now_ns)
        self._now_ns = to_ns
