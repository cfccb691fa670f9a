"""What pytest is told of campaigns in test files: how to look longer without changing a test.

Loaded by pytest wherever Equipoise is installed, so it imports nothing that takes time.
"""

from __future__ import annotations

from collections.abc import Generator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from equipoise.fuzz.campaign import Report


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the person who runs the tests wants otherwise than the tests say."""

    tests: int | None = None
    seed: int | None = None
    seconds: float | None = None
    save: Path | None = None


WISHES: Final[ContextVar[Wishes]] = ContextVar("wishes", default=Wishes())  # noqa: B039  (frozen)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say what can be asked for."""
    group = parser.getgroup("campaigns", "campaigns of equipoise")
    group.addoption("--campaign-tests", type=int, metavar="N", help="trials of each campaign")
    group.addoption("--campaign-seed", type=int, metavar="N", help="the seed of each campaign")
    group.addoption(
        "--campaign-seconds", type=float, metavar="S", help="how long each campaign goes on"
    )
    group.addoption(
        "--campaign-save", type=Path, metavar="FILE", help="add the smallest cases to this file"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Let a campaign know what was asked for, while its test runs."""
    get = item.config.getoption
    wishes = Wishes(
        get("--campaign-tests"),
        get("--campaign-seed"),
        get("--campaign-seconds"),
        get("--campaign-save"),
    )
    token = WISHES.set(wishes)
    try:
        return (yield)
    finally:
        WISHES.reset(token)


def save(report: Report, path: Path) -> None:
    """Add the smallest cases to a file, for ``equipoise fuzz TARGET --replay FILE``."""
    from equipoise.fuzz.reports.replay import stored_of  # noqa: PLC0415  (takes time)
    from equipoise.fuzz.trial.stored import write_line  # noqa: PLC0415

    with path.open("ab") as out:
        out.writelines(write_line(stored_of(one, report)) for one in report.findings)
