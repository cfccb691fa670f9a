"""The tenants of a campaign: available VMs, SLA bounds, outages and penalties."""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.model.quantity import TenantId
from equipoise.report.chart import plot
from equipoise.report.chart.frame import TimeSpan, empty_note
from equipoise.report.chart.markup import Markup, Section, concat, html_table, tag, text
from equipoise.report.chart.plot import Plot, PlotSeries, SeriesStyle
from equipoise.report.format import format_number
from equipoise.report.upgrade.history import CampaignHistory
from equipoise.report.upgrade.penalties import CampaignPenalties, TenantPenalty, outage_intervals

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
    note = [tag("p", text(words), class_="note")] if hidden > 0 else []
    table = html_table(_COLUMNS, rows, right=_COLUMNS[1:])
    return Section("tenants", "Tenants", caption, concat([*charts, *note, table]))


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
        f"{format_number(penalty.delay_penalty)} q",
        f"{format_number(penalty.proportional_penalty)} q'",
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
    changes: dict[int, tuple[int, int]] = {}
    for at_ms, size in history.sizes[tenant]:
        changes[at_ms] = (size, 0)
    out = {start: count for start, _, count in outage_intervals(mine)}
    ends = {end for _, end, _ in outage_intervals(mine)}
    times = sorted({0, history.end_ms, *changes, *out, *ends})
    size = missing = 0
    sizes, answering = [], []
    for at_ms in times:
        size = changes.get(at_ms, (size, 0))[0]
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
