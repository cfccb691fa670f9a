"""Compares a campaign with rolling upgrades of fixed batch sizes, as tables 6.1 and 6.2 do.

A row is one run, or the mean of many runs with different seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from equipoise.documents.upgrade import LowestHighest, MethodRow
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.report.chart.markup import Markup, Section, html_table, text
from equipoise.report.upgrade.history import campaign_history
from equipoise.report.upgrade.penalties import CampaignPenalties, campaign_penalties
from equipoise.sim.upgrade.rolling import count_rolling_units, run_rolling_upgrade

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
class MethodComparison:
    """The figures of one method."""

    method: str
    runs: int
    duration_s: float
    violations: tuple[float, float]
    """The means of the tenant with the fewest and of the tenant with the most violations."""
    impacted: tuple[int, int]
    """The fewest and the most VMs of a tenant that are out at once, over all runs."""
    violation_s: float
    proportional_s: float
    application_s: float
    moves: float
    refused: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of the columns."""
        return (
            self.method,
            f"{self.duration_s:.2f}",
            _range_text(*self.violations),
            _range_text(*self.impacted),
            f"{self.violation_s:.2f}",
            f"{self.violation_s:.2f} q",
            f"{self.proportional_s:.2f} q'",
            f"{self.application_s:.2f}",
            _short_number(self.moves),
            _short_number(self.refused),
        )

    @property
    def document(self) -> MethodRow:
        """The row of the JSON document."""
        return MethodRow.of(
            self,
            duration_s=round(self.duration_s, 3),
            violations=LowestHighest(lowest=self.violations[0], highest=self.violations[1]),
            impacted_vms=LowestHighest(lowest=self.impacted[0], highest=self.impacted[1]),
            violation_s=round(self.violation_s, 4),
            delay_penalty=round(self.violation_s, 4),
            proportional_penalty=round(self.proportional_s, 4),
            application_outage_s=round(self.application_s, 4),
        )


def compare_method(method: str, runs: Sequence[CampaignPenalties]) -> MethodComparison:
    """Return the mean of runs that differ only in their seed."""
    count = len(runs[0].tenants)
    per_tenant = [fmean(run.tenants[tenant].violations for run in runs) for tenant in range(count)]
    at_once = [count for run in runs for tenant in run.tenants for count in tenant.impacted]
    return MethodComparison(
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


def comparison_section(lines: Sequence[MethodComparison]) -> Section:
    """Return the comparison as a section of a page."""
    caption = (
        "The same campaign in the same simulation: this coordinator, and rolling upgrades with a "
        "fixed batch size that ignore dependents; mean of many orders of the resources."
    )
    rows: list[list[Markup]] = [[text(cell) for cell in row.cells] for row in lines]
    table = html_table(COLUMNS, rows, right=COLUMNS[1:])
    return Section("comparison", "Compared with rolling upgrades", caption, table)


def _range_text(low: float, high: float) -> str:
    return _short_number(low) if low == high else f"{_short_number(low)}-{_short_number(high)}"


def _short_number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


BATCH_SIZES: Final = (1, 2, 3, 4)
ORDERS_MAX: Final = 100
"""The number of resource orders to average over, for small campaigns."""
_BATCHES_MAX: Final = 10_000
"""The number of batches that all rolling runs together may have, for large campaigns."""

Progress = Callable[[Iterable[int], str, int], Iterable[int]]
"""Shows the progress of a loop: takes values, a label and their count; yields the values."""


def _without_progress(values: Iterable[int], _label: str, _count: int) -> Iterable[int]:
    return values


def compare_with_rolling(
    campaign: UpgradeCampaign, events: Iterable[Event], progress: Progress = _without_progress
) -> list[MethodComparison]:
    """Run the campaign as rolling upgrades, and compare them with the run of ``events``."""
    # A rolling run has about one batch per unit, so large campaigns average over fewer orders.
    count = max(1, min(ORDERS_MAX, _BATCHES_MAX // max(1, count_rolling_units(campaign))))
    lines = [compare_method("ours", [campaign_penalties(campaign_history(events))])]
    for size in BATCH_SIZES:
        seeds = range(campaign.seed, campaign.seed + count)
        runs: list[CampaignPenalties] = [
            campaign_penalties(campaign_history(run_rolling_upgrade(campaign, size, seed)))
            for seed in progress(seeds, f"rolling by {size}", count)
        ]
        lines.append(compare_method(f"rolling by {size}", runs))
    return lines
