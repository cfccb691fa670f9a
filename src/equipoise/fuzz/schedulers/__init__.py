"""Schedulers that are put to the test in this process: ours, and some that are wrong on purpose.

Enter by ``Scheduler``. Those that live in a process of their own are in ``targets``.
"""

from equipoise.fuzz.schedulers.scheduler import (
    Accepting,
    Crash,
    Planning,
    Scheduler,
    TooLate,
    Unsupported,
)

__all__ = ["Accepting", "Crash", "Planning", "Scheduler", "TooLate", "Unsupported"]
