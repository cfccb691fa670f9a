"""Power of the cluster and of each host, hosts that are on, and the cost of the energy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from equipoise.documents.simulation import SimulationDocument
from equipoise.report.chart import heatmap, plot
from equipoise.report.chart.frame import Floats, empty_note, note_line
from equipoise.report.chart.heatmap import ColourRamp, HeatMap
from equipoise.report.chart.markup import EMPTY, Markup, Section, concat, html_table, tag, text
from equipoise.report.chart.plot import Plot, PlotSeries, SeriesStyle
from equipoise.report.format import (
    NO_VALUE,
    format_amount,
    format_duration,
    format_number,
    format_percent,
    format_price,
    unit_for,
    with_unit,
)
from equipoise.report.run.data import (
    Downsampler,
    RunData,
    column_times,
    column_values,
    row_count,
)
from equipoise.report.run.hosts import divide, host_grid

_ALL_PCT: Final = 100.0


class _CostLine(NamedTuple):
    """One figure and its explanation."""

    measure: str
    value: str
    words: str


def cost_table(document: SimulationDocument) -> Markup:
    """Return the table of energy, price and unmet demand; empty if no energy was measured."""
    lines = [*_energy_lines(document), *_standby_lines(document)]
    if not lines:
        return EMPTY
    missed, met = document.unsatisfied, document.satisfied_pct
    lines += [
        *_unmet_demand_lines("CPU", "mhz", missed.cpu_mhz_h, met.cpu),
        *_unmet_demand_lines("memory", "mib", missed.memory_mib_h, met.memory),
    ]
    rows = [[text(line.measure), text(line.value), text(line.words)] for line in lines]
    table = html_table(("measure", "value", "meaning"), rows, right=("value",))
    title = tag("h3", text("Energy, cost and unmet demand"))
    return concat([title, tag("div", table, class_="bill")])


def _energy_lines(document: SimulationDocument) -> Iterator[_CostLine]:
    energy = document.energy
    if not energy.kwh:
        return
    simulated = document.duration_s
    within = "" if simulated is None else f" in {format_duration(simulated)}"
    words = f"Energy of all hosts{within}."
    yield _CostLine("energy used", with_unit(energy.kwh, "kWh"), words)
    if energy.price is not None:
        rate = energy.price_per_kwh
        per_kwh = NO_VALUE if rate is None else format_price(rate, energy.currency)
        words = f"The tariff of the cluster is {per_kwh} per kWh."
        yield _CostLine("price", format_price(energy.price, energy.currency), words)
    if energy.co2_kg is not None:
        words = f"The tariff has {with_unit(energy.co2_g_per_kwh, 'g')} of CO2 per kWh."
        yield _CostLine("CO2", with_unit(energy.co2_kg, "kg"), words)


def _standby_lines(document: SimulationDocument) -> Iterator[_CostLine]:
    energy = document.energy
    hours = energy.host_hours_asleep
    if not hours:
        return
    simulated = document.duration_s
    mean = (
        f", on average {format_number(hours * 3600 / simulated)} hosts at a time"
        if simulated
        else ""
    )
    words = f"Time in standby, summed over all hosts{mean}."
    yield _CostLine("standby time", with_unit(hours, "h"), words)
    if energy.saved_kwh is None or not energy.kwh:
        return
    part = energy.saved_pct
    share = "" if part is None else f"; {format_percent(part)} of the energy without standby"
    words = f"Energy that the hosts in standby would use if they were on and idle{share}."
    yield _CostLine("energy saved", with_unit(energy.saved_kwh, "kWh"), words)
    if energy.saved_price is not None:
        price = format_price(energy.saved_price, energy.currency)
        yield _CostLine("price saved", price, "Price of the energy saved.")
    if energy.saved_co2_kg is not None:
        co2 = with_unit(energy.saved_co2_kg, "kg")
        yield _CostLine("CO2 saved", co2, "CO2 of the energy saved.")


def _unmet_demand_lines(
    title: str, recorded: str, missed: float | None, met_pct: float | None
) -> Iterator[_CostLine]:
    if missed is None:
        return
    share = "" if met_pct is None else f", {format_percent(_ALL_PCT - met_pct)} of the demand"
    words = f"VMs received all the {title} they demanded."
    if missed:
        words = f"Demand that VMs did not receive{share}, for any reason."
    yield _CostLine(f"{title} demand not met", f"{format_amount(missed, recorded)} h", words)


_NO_POWER_FIGURES: Final = "The hosts of this run have no power figures (idle_watts, peak_watts)."


def power_section(run: RunData) -> Section:
    """Return power of the cluster and of each host, hosts that are on, and the cost."""
    thin = Downsampler(column_times(run.record.cluster))
    charts = [
        tag("h3", text("Power of the cluster")),
        _cluster_chart(run, thin),
        _host_heatmap(run),
        tag("h3", text("Hosts that are on")),
        _hosts_on_chart(run, thin),
        cost_table(run.document),
    ]
    return Section("power", "Power", _power_caption(run) + thin.note, concat(charts))


def _power_caption(run: RunData) -> str:
    watts = column_values(run.record.cluster, "watts")
    if not np.nansum(watts) > 0:
        return "Power of the cluster, and the number of hosts that are on."
    unit = unit_for("watts", float(np.nanmax(watts)))
    low, high = (format_number(value / unit.size) for value in (np.nanmin(watts), np.nanmax(watts)))
    between = f"between {low} and {high} {unit.name}"
    energy = run.document.energy_kwh
    total = "" if energy is None else f", {format_number(energy)} kWh in all"
    on = column_values(run.record.cluster, "hosts_on")
    awake = ""
    if np.isfinite(on).any():
        fewest, most = format_number(np.nanmin(on)), format_number(np.nanmax(on))
        awake = f" {most} hosts" if fewest == most else f" {fewest} to {most} hosts"
        awake += " were on."
    return f"The cluster drew {between}{total}.{awake}{_saved_text(run)}"


def _saved_text(run: RunData) -> str:
    if not _any_host_in_standby(run):
        return ""
    saved, part = run.document.energy.saved_kwh, run.document.energy.saved_pct
    known = saved is not None and part is not None
    total = (
        f" Standby saved {format_number(saved)} kWh, {format_percent(part)} of that."
        if known
        else ""
    )
    return (
        " The dashed line is an estimate: the power if all hosts were on, "
        f"with the hosts in standby idle.{total}"
    )


def _any_host_in_standby(run: RunData) -> bool:
    return bool(np.nan_to_num(_saved_watts(run)).any())


def _saved_watts(run: RunData) -> Floats:
    """Return the extra power of each sample if the hosts in standby were on and idle."""
    return column_values(run.record.cluster, "watts_saved")


def _cluster_chart(run: RunData, thin: Downsampler) -> Markup:
    watts = thin.mean(column_values(run.record.cluster, "watts"))
    if not np.nansum(watts) > 0:
        return empty_note(_NO_POWER_FIGURES)
    awake = watts + thin.mean(_saved_watts(run)) if _any_host_in_standby(run) else watts
    unit = unit_for("watts", float(np.nanmax(awake)))
    series = [PlotSeries(name="power", values=watts / unit.size, look=SeriesStyle.AREA, colour=4)]
    if _any_host_in_standby(run):
        # Below the other line, which hides it while no host is in standby.
        series.insert(0, PlotSeries(name="if all on", values=awake / unit.size, colour=0))
    picture = Plot(
        label="Power of the cluster over time",
        span=run.span,
        times=thin.times,
        series=series,
        unit=unit.name,
        marks=run.marks(),
    )
    return plot.draw(picture, empty=_NO_POWER_FIGURES)


def _host_heatmap(run: RunData) -> Markup:
    """Return a heat map of the power of every host that is on."""
    table = run.record.hosts
    watts = column_values(table, "watts")
    if not row_count(table) or not np.nansum(watts) > 0:
        return EMPTY
    grid = host_grid(table)
    drawn = np.where(grid.on & np.isfinite(watts), watts, 0.0)
    views = {"power": grid.cells(divide(grid.summed(drawn), grid.counted(grid.on)))}
    if grid.mixed:
        highest = grid.cells(grid.highest(np.where(grid.on, watts, np.nan)))
        views = {"mean per host": views["power"], "highest": highest}
    known = np.concatenate([cells[cells >= 0] for cells in views.values()])
    high = int(known.max(initial=0))
    low = int(known.min(initial=high))
    picture = HeatMap(
        label="Power of each host over time",
        span=run.span,
        edges=plot.sample_edges(grid.times, run.span),
        rows=grid.names,
        views=views,
        flawed_cells=grid.flawed_cells,
        ramp=ColourRamp(low if low < high else 0, high, "W"),
    )
    title = tag("h3", text("Power of each host"))
    return concat([title, note_line(grid.note), heatmap.draw(picture, name="power-hosts")])


def _hosts_on_chart(run: RunData, thin: Downsampler) -> Markup:
    on = thin.mean(column_values(run.record.cluster, "hosts_on"))
    picture = Plot(
        label="Hosts that are on over time",
        span=run.span,
        times=thin.times,
        series=[PlotSeries(name="hosts on", values=on, look=SeriesStyle.STEP, colour=3)],
        height=90,
        whole=True,
        marks=run.marks(),
    )
    return plot.draw(picture, empty="The run has no record of the hosts that are on.")
