"""Campaigns side by side: ours and rolling upgrades of fixed batch sizes, as in tables 6.1 and 6.2.

A line stands for one run or for the mean of many that differ by chance only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from equipoise.report.chart.markup import Markup, text
from equipoise.report.section import Section, listed
from equipoise.report.upgrades.penalties import Penalties

COLUMNS: Final = (
    "method",
    "duration s",
    "violations/tenant",
    "VMs at once",
    "violation s/tenant",
    "delay penalty",
    "proportional",
    "application out s",
    "moves",
    "refused",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A method, and what it costs."""

    method: str
    runs: int
    duration_s: float
    violations: tuple[float, float]
    """The mean of the tenant with the fewest, and of the one with the most."""
    impacted: tuple[int, int]
    """The fewest and the most VMs of a tenant that were out at once in any run."""
    violation_s: float
    proportional_s: float
    application_s: float
    moves: float
    refused: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as it is printed, in the order of the columns."""
        return (
            self.method,
            f"{self.duration_s:.2f}",
            _range(*self.violations),
            _range(*self.impacted),
            f"{self.violation_s:.2f}",
            f"{self.violation_s:.2f} q",
            f"{self.proportional_s:.2f} q'",
            f"{self.application_s:.2f}",
            _short(self.moves),
            _short(self.refused),
        )

    @property
    def document(self) -> dict[str, Any]:
        """The line as programs read it."""
        return {
            "method": self.method,
            "runs": self.runs,
            "duration_s": round(self.duration_s, 3),
            "violations": {"min": self.violations[0], "max": self.violations[1]},
            "impacted_vms": {"min": self.impacted[0], "max": self.impacted[1]},
            "violation_s": round(self.violation_s, 4),
            "delay_penalty": round(self.violation_s, 4),
            "proportional_penalty": round(self.proportional_s, 4),
            "application_outage_s": round(self.application_s, 4),
            "moves": self.moves,
            "refused": self.refused,
        }


def line_of(method: str, runs: Sequence[Penalties]) -> Line:
    """The mean of runs that differ by chance only."""
    count = len(runs[0].tenants)
    per_tenant = [fmean(run.tenants[one].violations for run in runs) for one in range(count)]
    at_once = [count for run in runs for one in run.tenants for count in one.impacted]
    return Line(
        method=method,
        runs=len(runs),
        duration_s=fmean(run.duration_s for run in runs),
        violations=(min(per_tenant, default=0.0), max(per_tenant, default=0.0)),
        impacted=(min(at_once, default=0), max(at_once, default=0)),
        violation_s=fmean(run.violation_s for run in runs),
        proportional_s=fmean(run.proportional_s for run in runs),
        application_s=fmean(run.application_s for run in runs),
        moves=fmean(run.moves for run in runs),
        refused=fmean(run.refused for run in runs),
    )


def comparison(lines: Sequence[Line]) -> Section:
    """The lines as a section of a page."""
    see = (
        "The same campaign in the same simulation, by us and by rolling upgrades that take so many "
        "of a kind at a time, whoever needs them; the mean over many orders of the resources."
    )
    rows: list[list[Markup]] = [[text(cell) for cell in one.cells] for one in lines]
    table = listed(COLUMNS, rows, right=COLUMNS[1:])
    return Section("comparison", "Compared with rolling upgrades", see, table)


def _range(low: float, high: float) -> str:
    return _short(low) if low == high else f"{_short(low)}-{_short(high)}"


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
