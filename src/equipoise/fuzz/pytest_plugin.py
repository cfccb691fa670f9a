"""The pytest plugin: command-line options for campaigns in test files.

Pytest loads it wherever Equipoise is installed, so it imports only what is fast to import.
"""

from __future__ import annotations

from collections.abc import Generator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from equipoise.fuzz.campaign import CampaignReport


@dataclass(frozen=True, slots=True)
class CampaignOverrides:
    """The command-line options that override the limits of campaigns in tests."""

    tests: int | None = None
    seed: int | None = None
    seconds: float | None = None
    save: Path | None = None


OVERRIDES: Final[ContextVar[CampaignOverrides]] = ContextVar(
    "overrides",
    default=CampaignOverrides(),  # noqa: B039  (frozen)
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options to pytest's command line."""
    group = parser.getgroup("campaigns", "campaigns of equipoise")
    group.addoption("--campaign-tests", type=int, metavar="N", help="trials of each campaign")
    group.addoption("--campaign-seed", type=int, metavar="N", help="random seed of each campaign")
    group.addoption("--campaign-seconds", type=float, metavar="S", help="duration of each campaign")
    group.addoption(
        "--campaign-save", type=Path, metavar="FILE", help="add the smallest cases to this file"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Set the overrides while a test runs."""
    get = item.config.getoption
    overrides = CampaignOverrides(
        get("--campaign-tests"),
        get("--campaign-seed"),
        get("--campaign-seconds"),
        get("--campaign-save"),
    )
    token = OVERRIDES.set(overrides)
    try:
        return (yield)
    finally:
        OVERRIDES.reset(token)


def save_findings(report: CampaignReport, path: Path) -> None:
    """Add the smallest cases to a file, for ``equipoise fuzz TARGET --replay FILE``."""
    from equipoise.fuzz.reports.export import stored_finding  # noqa: PLC0415  (slow to import)
    from equipoise.fuzz.trial.stored import write_line  # noqa: PLC0415

    with path.open("ab") as out:
        lines = (write_line(stored_finding(finding, report)) for finding in report.findings)
        out.writelines(lines)
