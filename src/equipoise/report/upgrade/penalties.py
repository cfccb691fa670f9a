"""The penalties of a campaign, and the section of its page about tenants (thesis, section 6.1.3).

A violation is a period in which a VM of a tenant does not answer. Its delay penalty counts
seconds, its proportional penalty seconds times missing VMs. An application is down while more VMs
of an anti-affinity group are out at once than the group allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

import numpy as np

from equipoise.model.quantity import GroupId, TenantId
from equipoise.report.chart import plot
from equipoise.report.chart.frame import TimeSpan, empty_note, note_line
from equipoise.report.chart.markup import Markup, Section, concat, html_table, tag, text
from equipoise.report.chart.plot import Plot, PlotSeries, SeriesStyle
from equipoise.report.format import format_number
from equipoise.report.upgrade.history import CampaignHistory, VmOutage


@dataclass(frozen=True, slots=True)
class TenantPenalty:
    """The violations of one tenant."""

    tenant: TenantId
    violations: int
    impacted: tuple[int, ...]
    """For each violation, the largest number of VMs out at once."""
    violation_s: float
    """The delay penalty in units of q, the price of a second."""
    proportional_s: float
    """Seconds times missing VMs: the penalty in units of q', the price of a second of a VM."""
    application_s: float
    """Seconds in which too many VMs of an anti-affinity group are out at once."""
    refused: int
    """Number of VMs within the SLA that the tenant did not get."""


@dataclass(frozen=True, slots=True)
class CampaignPenalties:
    """The violations of a whole campaign."""

    duration_s: float
    moves: int
    tenants: tuple[TenantPenalty, ...]

    @property
    def violation_s(self) -> float:
        """Seconds with a violation; mean of all tenants, impacted or not."""
        return fmean([tenant.violation_s for tenant in self.tenants] or [0.0])

    @property
    def proportional_s(self) -> float:
        """Seconds times missing VMs; mean of all tenants."""
        return fmean([tenant.proportional_s for tenant in self.tenants] or [0.0])

    @property
    def application_s(self) -> float:
        """Seconds without the application; mean of all tenants."""
        return fmean([tenant.application_s for tenant in self.tenants] or [0.0])

    @property
    def refused(self) -> int:
        """Number of refused VMs within the SLAs of all tenants."""
        return sum(tenant.refused for tenant in self.tenants)


def campaign_penalties(history: CampaignHistory) -> CampaignPenalties:
    """Return the penalties of all tenants from the outages of a campaign."""
    by_tenant: dict[TenantId, list[VmOutage]] = {tenant: [] for tenant in history.tenants}
    for outage in history.outages:
        by_tenant[outage.tenant].append(outage)
    refused = dict.fromkeys(history.tenants, 0)
    for _, tenant, count in history.refused:
        refused[tenant] += count
    tenants = tuple(
        _tenant(history, tenant, by_tenant[tenant], refused[tenant]) for tenant in history.tenants
    )
    return CampaignPenalties(history.end_ms / 1000, history.moves, tenants)


def _tenant(
    history: CampaignHistory, tenant: TenantId, outages: Sequence[VmOutage], refused: int
) -> TenantPenalty:
    intervals = outage_intervals(outages)
    violations: list[int] = []
    last_ms = -1
    for start_ms, end_ms, count in intervals:
        # Intervals that touch are one violation: only the number of missing VMs changes.
        if start_ms == last_ms:
            violations[-1] = max(violations[-1], count)
        else:
            violations.append(count)
        last_ms = end_ms
    return TenantPenalty(
        tenant,
        len(violations),
        tuple(violations),
        sum(end - start for start, end, _ in intervals) / 1000,
        sum((end - start) * count for start, end, count in intervals) / 1000,
        _application_s(history, tenant, outages),
        refused,
    )


def outage_intervals(outages: Sequence[VmOutage]) -> list[tuple[int, int, int]]:
    """Return the intervals with a constant number of VMs out, and that number."""
    changes: dict[int, int] = {}
    for outage in outages:
        changes[outage.start_ms] = changes.get(outage.start_ms, 0) + 1
        changes[outage.end_ms] = changes.get(outage.end_ms, 0) - 1
    intervals = []
    out = 0
    for (at_ms, change), (next_ms, _) in pairwise(sorted(changes.items())):
        out += change
        if out:
            intervals.append((at_ms, next_ms, out))
    return intervals


def _application_s(
    history: CampaignHistory, tenant: TenantId, outages: Sequence[VmOutage]
) -> float:
    by_group: dict[GroupId, list[VmOutage]] = {}
    for outage in outages:
        if outage.group is not None:
            by_group.setdefault(outage.group, []).append(outage)
    total_ms = 0
    for group in history.tenants[tenant].anti_affinity:
        # A group that may lose all its VMs has no application to protect.
        if len(group.vms) > group.disturbed_max:
            intervals = outage_intervals(by_group.get(group.id, ()))
            total_ms += sum(e - s for s, e, count in intervals if count > group.disturbed_max)
    return total_ms / 1000


CHARTS_MAX: Final = 6
ROWS_MAX: Final = 200
_COLUMNS: Final = (
    "tenant",
    "VMs",
    "SLA",
    "violations",
    "VMs missing at once",
    "violation time",
    "application out",
    "delay penalty",
    "proportional",
    "refused",
)


def tenants_section(history: CampaignHistory, penalties: CampaignPenalties) -> Section:
    """Return charts of the tenants with the highest penalties, and a table of all."""
    caption = (
        "VMs that answer, and the bounds of the SLA. A violation lasts while a VM of the tenant "
        "does not answer. The delay penalty is its seconds (times q); the proportional penalty is "
        "its seconds times the missing VMs (times q')."
    )
    if not history.tenants:
        return Section("tenants", "Tenants", caption, empty_note("The cluster has no tenants."))
    worst = sorted(penalties.tenants, key=lambda row: (-row.application_s, -row.proportional_s))
    charts = [_chart(history, penalty.tenant) for penalty in worst[:CHARTS_MAX]]
    rows = [_row(history, penalty) for penalty in worst[:ROWS_MAX]]
    hidden = len(worst) - len(rows)
    words = f"The {len(rows)} tenants with the highest penalties; there are {hidden:,} more."
    note = note_line(words if hidden > 0 else "")
    table = html_table(_COLUMNS, rows, right=_COLUMNS[1:])
    return Section("tenants", "Tenants", caption, concat([*charts, note, table]))


def _row(history: CampaignHistory, penalty: TenantPenalty) -> list[Markup]:
    sla = history.tenants[penalty.tenant].sla
    sizes = history.sizes[penalty.tenant]
    first, last = sizes[0][1], sizes[-1][1]
    cells = (
        penalty.tenant,
        str(last) if first == last else f"{first} to {last}",
        f"{sla.vms_min} to {sla.vms_max}",
        str(penalty.violations),
        _range_text(penalty.impacted),
        f"{format_number(penalty.violation_s)} s",
        f"{format_number(penalty.application_s)} s",
        f"{format_number(penalty.violation_s)} q",
        f"{format_number(penalty.proportional_s)} q'",
        str(penalty.refused),
    )
    return [text(cell) for cell in cells]


def _range_text(counts: tuple[int, ...]) -> str:
    if not counts:
        return "-"
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _chart(history: CampaignHistory, tenant: TenantId) -> Markup:
    """Return the number of VMs of a tenant and of those that answer, over time."""
    mine = [outage for outage in history.outages if outage.tenant == tenant]
    changes = dict(history.sizes[tenant])
    out = {start: count for start, _, count in outage_intervals(mine)}
    ends = {end for _, end, _ in outage_intervals(mine)}
    times = sorted({0, history.end_ms, *changes, *out, *ends})
    size = missing = 0
    sizes, answering = [], []
    for at_ms in times:
        size = changes.get(at_ms, size)
        missing = out.get(at_ms, 0 if at_ms in ends else missing)
        sizes.append(size)
        answering.append(size - missing)
    sla = history.tenants[tenant].sla
    picture = Plot(
        label=f"VMs of {tenant} that answer over time",
        span=TimeSpan(0.0, max(history.end_ms / 1000, 1.0)),
        times=np.array(times, dtype=np.float64) / 1000,
        series=[
            PlotSeries(
                name="VMs",
                values=np.array(sizes, dtype=np.float64),
                look=SeriesStyle.STEP,
                colour=0,
            ),
            PlotSeries(
                name="answering",
                values=np.array(answering, dtype=np.float64),
                look=SeriesStyle.STEP,
                colour=1,
            ),
        ],
        height=84,
        high=float(sla.vms_max),
        whole=True,
        levels=[(float(sla.vms_min), "minimum"), (float(sla.vms_max), "maximum")],
    )
    title = tag("h3", text(tenant))
    return concat([title, plot.draw(picture, empty="The tenant has no VM.")])
