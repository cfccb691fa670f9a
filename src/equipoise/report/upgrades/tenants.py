"""What each tenant had: VMs available against what it was promised, outages and penalties."""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.model.quantity import TenantId
from equipoise.report.chart import plot
from equipoise.report.chart.frame import Span, nothing
from equipoise.report.chart.markup import Markup, joined, tag, text
from equipoise.report.chart.plot import Look, Plot, Series
from equipoise.report.section import Section, listed
from equipoise.report.upgrades.course import Course
from equipoise.report.upgrades.penalties import Penalties, TenantPenalty, out_at_once
from equipoise.report.words import number

CHARTS_MAX: Final = 6
ROWS_MAX: Final = 200
_COLUMNS: Final = (
    "tenant",
    "VMs",
    "promised",
    "times short",
    "VMs short at once",
    "short",
    "application out",
    "delay penalty",
    "proportional",
    "refused",
)


def tenants(course: Course, penalties: Penalties) -> Section:
    """Charts of the tenants that went through most, and a table of all."""
    see = (
        "VMs that answer, against the fewest and the most that the tenant was promised. A tenant "
        "is short while a VM of it does not answer. Its delay penalty is the seconds of that "
        "(times q), its proportional penalty the seconds times the VMs missing (times q')."
    )
    if not course.tenants:
        return Section("tenants", "Tenants", see, nothing("The cluster has no tenants."))
    worst = sorted(penalties.tenants, key=lambda one: (-one.application_s, -one.proportional_s))
    charts = [_chart(course, one.tenant) for one in worst[:CHARTS_MAX]]
    rows = [_row(course, one) for one in worst[:ROWS_MAX]]
    left = len(worst) - len(rows)
    words = f"The {len(rows)} tenants that went through most; there are {left:,} more."
    note = [tag("p", text(words), class_="note")] if left > 0 else []
    table = listed(_COLUMNS, rows, right=_COLUMNS[1:])
    return Section("tenants", "Tenants", see, joined([*charts, *note, table]))


def _row(course: Course, one: TenantPenalty) -> list[Markup]:
    sla = course.tenants[one.tenant].sla
    sizes = course.sizes[one.tenant]
    first, last = sizes[0][1], sizes[-1][1]
    cells = (
        one.tenant,
        str(last) if first == last else f"{first} to {last}",
        f"{sla.vms_min} to {sla.vms_max}",
        str(one.violations),
        _between(one.impacted),
        f"{number(one.violation_s)} s",
        f"{number(one.application_s)} s",
        f"{number(one.delay_penalty)} q",
        f"{number(one.proportional_penalty)} q'",
        str(one.refused),
    )
    return [text(cell) for cell in cells]


def _between(counts: tuple[int, ...]) -> str:
    if not counts:
        return "-"
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _chart(course: Course, tenant: TenantId) -> Markup:
    """The VMs of a tenant and those that answer, wherever either changes."""
    mine = [one for one in course.outages if one.tenant == tenant]
    changes: dict[int, tuple[int, int]] = {}
    for at_ms, size in course.sizes[tenant]:
        changes[at_ms] = (size, 0)
    out = {start: count for start, _, count in out_at_once(mine)}
    ends = {end for _, end, _ in out_at_once(mine)}
    times = sorted({0, course.end_ms, *changes, *out, *ends})
    size = missing = 0
    sizes, answering = [], []
    for at_ms in times:
        size = changes.get(at_ms, (size, 0))[0]
        missing = out.get(at_ms, 0 if at_ms in ends else missing)
        sizes.append(size)
        answering.append(size - missing)
    sla = course.tenants[tenant].sla
    picture = Plot(
        label=f"VMs of {tenant} that answer over time",
        span=Span(0.0, max(course.end_ms / 1000, 1.0)),
        times=np.array(times, dtype=np.float64) / 1000,
        series=[
            Series(name="has", values=np.array(sizes, dtype=np.float64), look=Look.STEP, colour=0),
            Series(
                name="answer",
                values=np.array(answering, dtype=np.float64),
                look=Look.STEP,
                colour=1,
            ),
        ],
        height=84,
        high=float(sla.vms_max),
        whole=True,
        levels=[(float(sla.vms_min), "least"), (float(sla.vms_max), "most")],
    )
    title = tag("h3", text(tenant))
    return joined([title, plot.draw(picture, empty="It had no VM.")])
