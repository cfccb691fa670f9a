"""What is known of a scheduler that can be put to the test by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from equipoise.fuzz.generate.options import USUAL, Options
from equipoise.fuzz.schedulers.scheduler import Scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A scheduler: what it is, what it can be asked, and how to get hold of it."""

    name: str
    about: str
    make: Callable[..., Scheduler]
    """Makes it, given the settings by name; it may be closed by ``close`` if it has that."""
    question: str = "accepts"
    """``admits`` a VM to a host, ``place`` some VMs, ``plan`` for a goal, or ``accepts`` a plan.

    The first is an ``accepts`` of plans with one boot, the second a ``plan`` of boots only.
    """
    constraints: tuple[str, ...] = ()
    """What it can be asked about; nothing means everything in the library."""
    options: Options = USUAL
    """What trials are like that it can answer."""
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What can be set, with the values there are; the first one is usual."""
    has_checker: bool = False
    """Whether it has a checker besides what decides; it is asked by ``checks_many``."""
    version: str = ""
    """The version that it is pinned to, if it is not ours."""
    findings: Path | None = None
    """A file with the cases of what is known to be wrong with it in that version."""
    missing: Callable[[], str] = lambda: ""
    """Why it cannot be asked on this machine, and what would help; nothing if it can."""
