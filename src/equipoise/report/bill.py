"""The bill of a run: what its energy came to, what sleep saved, and what VMs missed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from equipoise.report.chart.markup import EMPTY, Markup, joined, tag, text
from equipoise.report.material import Summary, figure, looked_up
from equipoise.report.section import listed
from equipoise.report.words import NONE, amount, duration, money, number, percent, with_unit

_ALL_PCT: Final = 100.0


class _Line(NamedTuple):
    """One figure, and what it says in a sentence."""

    measure: str
    value: str
    words: str


def bill(summary: Summary) -> Markup:
    """A table of what the run cost, or nothing if nothing is known about that."""
    lines = [*_used(summary), *_slept(summary)]
    if not lines:
        return EMPTY
    lines += [*_missed(summary, "CPU", "cpu", "mhz"), *_missed(summary, "memory", "memory", "mib")]
    rows = [[text(one.measure), text(one.value), text(one.words)] for one in lines]
    table = listed(("measure", "value", "what it says"), rows, right=("value",))
    title = tag("h3", text("What it came to, and what it cost"))
    return joined([title, tag("div", table, class_="bill")])


def currency_of(summary: Summary) -> str:
    """The currency in which prices are; empty if nobody says."""
    return str(looked_up(summary, "energy.currency") or "")


def _used(summary: Summary) -> Iterator[_Line]:
    kwh = figure(summary, "energy.kwh")
    if not kwh:
        return
    simulated = figure(summary, "duration_s")
    within = "" if simulated is None else f" in {duration(simulated)}"
    yield _Line("energy used", with_unit(kwh, "kWh"), f"All hosts together drew this{within}.")
    price, co2 = figure(summary, "energy.price"), figure(summary, "energy.co2_kg")
    if price is not None:
        rate = figure(summary, "energy.price_per_kwh")
        one = NONE if rate is None else money(rate, currency_of(summary))
        words = f"A kWh costs {one} by the tariff of the cluster."
        yield _Line("price", money(price, currency_of(summary)), words)
    if co2 is not None:
        one = with_unit(figure(summary, "energy.co2_g_per_kwh"), "g")
        words = f"A kWh makes {one} of it by the same tariff."
        yield _Line("CO2", with_unit(co2, "kg"), words)


def _slept(summary: Summary) -> Iterator[_Line]:
    hours = figure(summary, "energy.host_hours_asleep")
    if not hours:
        return
    simulated = figure(summary, "duration_s")
    mean = f", as if {number(hours * 3600 / simulated)} of them always slept" if simulated else ""
    words = f"All hosts together slept this long{mean}."
    yield _Line("sleep of hosts", with_unit(hours, "h"), words)
    saved = figure(summary, "energy.saved_kwh")
    if saved is None or not figure(summary, "energy.kwh"):
        return
    part = figure(summary, "energy.saved_pct")
    share = "" if part is None else f"; it is {percent(part)} of what would have been used"
    words = f"Sleeping hosts would have drawn this on top, had they been on and idle{share}."
    yield _Line("energy saved", with_unit(saved, "kWh"), words)
    price, co2 = figure(summary, "energy.saved_price"), figure(summary, "energy.saved_co2_kg")
    if price is not None:
        words = "The energy saved would have cost this."
        yield _Line("price saved", money(price, currency_of(summary)), words)
    if co2 is not None:
        yield _Line("CO2 saved", with_unit(co2, "kg"), "The energy saved would have made this.")


def _missed(summary: Summary, title: str, resource: str, recorded: str) -> Iterator[_Line]:
    missed = figure(summary, f"unsatisfied.{resource}_{recorded}_h")
    if missed is None:
        return
    met = figure(summary, f"satisfied_pct.{resource}")
    share = "" if met is None else f", {percent(_ALL_PCT - met)} of what they wanted"
    words = f"VMs got all the {title} they wanted."
    if missed:
        words = f"VMs wanted this and did not get it{share}, because of sleep or for other reasons."
    yield _Line(f"{title} demand not met", f"{amount(missed, recorded)} h", words)
