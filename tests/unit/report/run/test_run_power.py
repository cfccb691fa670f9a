"""The power section: watts of the cluster and of each host, and the cost."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from equipoise.report.run.data import RunData
from equipoise.report.run.page import page_head
from equipoise.report.run.power import cost_table, power_section
from equipoise.sim.measure.sampling import SampleTable
from unit.report.parsed import Element, parsed
from unit.report.synthetic import Given, a_run, document_of


def section(given: Given) -> Element:
    run = RunData(document=given.document, record=given.record, events=())
    return parsed(power_section(run).markup())


def carried(made: Element, kind: str) -> dict[str, Any]:
    figure = made.all("figure", kind)[0]
    found: dict[str, Any] = json.loads(figure.one("script").words[0])
    return found


def without(given: Given, column: str) -> Given:
    """Return the run of a version without a column."""
    tables = {
        name: SampleTable({
            key: values
            for key, values in getattr(given.record, name).columns.items()
            if key != column
        })
        for name in ("cluster", "hosts")
    }  # fmt: skip
    return replace(given, record=replace(given.record, **tables))


def lines(summary: dict[str, Any]) -> dict[str, tuple[str, str]]:
    made = cost_table(document_of(summary))
    rows = parsed(made).all("tr")[1:] if made else []
    cells = [[cell.text for cell in row.all("td")] for row in rows]
    return {name: (value, words) for name, value, words in cells}


def test_a_second_line_shows_the_power_without_standby() -> None:
    given = a_run(hosts=30, samples=20)
    series = dict(carried(section(given), "lines")["series"])
    assert list(series) == ["if all on", "power"]
    first, last = (series["if all on"][n] - series["power"][n] for n in (0, -1))
    assert first == pytest.approx(4 * 0.108, abs=0.002)
    assert last == 0
    assert "if all hosts were on" in section(given).one("p", "caption").text
    assert "Standby saved 2.07 kWh, 1.12 % of that." in section(given).one("p", "caption").text


@pytest.mark.parametrize(
    "given", [a_run(hosts=3, samples=20), without(a_run(hosts=30, samples=20), "watts_saved")]
)
def test_one_line_is_drawn_without_standby_or_without_its_column(given: Given) -> None:
    made = section(given)
    assert [name for name, _ in carried(made, "lines")["series"]] == ["power"]
    assert "dashed" not in made.one("p", "caption").text


def test_each_host_has_a_row_of_watts_from_the_least_to_the_most() -> None:
    given = a_run(hosts=12, samples=20)
    made = section(given)
    heat = carried(made, "heat")
    assert heat["unit"] == "W"
    assert [name for name, _ in heat["views"]] == ["power"]
    rows = heat["views"][0][1]
    assert len(rows) == 12
    assert rows[-1].startswith("s s s "), "the host is in standby in the first night"
    hosts = given.record.hosts
    drawn = np.round(hosts["watts"][hosts["state"] == "on"])
    legend = made.one("figure", "heat").one("ul", "legend").text
    assert legend.startswith(f"{drawn.min():.0f} W")
    assert f"{drawn.max():.0f} W" in legend
    assert "orange" not in legend
    assert not made.all("input"), "one view needs no switch"


def test_rows_of_many_hosts_show_the_mean_and_the_highest() -> None:
    made = section(a_run(hosts=130, samples=20))
    views = dict(carried(made, "heat")["views"])
    assert list(views) == ["mean per host", "highest"]
    assert "Each row is 3 of 130 hosts." in made.text
    for mean, highest in zip(*views.values(), strict=True):
        pairs = zip(mean.split(), highest.split(), strict=True)
        assert all(int(a) <= int(b) for a, b in pairs if a.isdigit())


def test_hosts_with_equal_power_make_a_heat_map() -> None:
    given = a_run(hosts=3, samples=5)
    given.record.hosts["watts"][:] = 200.0
    assert "0 W" in section(given).one("ul", "legend").text


def test_without_power_figures_only_the_hosts_are_shown() -> None:
    made = section(a_run(hosts=3, samples=5, powered=False))
    assert "have no power figures" in made.text
    assert len(made.all("figure")) == 1
    assert not made.all("table")


def test_the_cost_table_explains_each_figure() -> None:
    found = lines(a_run(hosts=30, samples=2).summary)
    assert {name: value for name, (value, _) in found.items()} == {
        "energy used": "183 kWh",
        "price": "54.98 EUR",
        "CO2": "73.3 kg",
        "standby time": "19.2 h",
        "energy saved": "2.07 kWh",
        "price saved": "0.62 EUR",
        "CO2 saved": "0.829 kg",
        "CPU demand not met": "415 GHz h",
        "memory demand not met": "0 MiB h",
    }
    assert all(words.endswith(".") for _, words in found.values())
    assert "0.30 EUR per kWh" in found["price"][1]
    assert "2.69 % of the demand" in found["CPU demand not met"][1]
    assert "received all the memory" in found["memory demand not met"][1]


def test_the_cost_table_leaves_out_missing_figures() -> None:
    assert lines({}) == {}
    assert lines({"energy": {"kwh": 0.0, "host_hours_asleep": 0.0}, "unsatisfied": {}}) == {}
    assert list(lines({"energy": {"kwh": 5.0}})) == ["energy used"]
    asleep = {"kwh": 0.0, "saved_kwh": 0.0, "host_hours_asleep": 3.0}
    missed = {"cpu_mhz_h": 1.0, "memory_mib_h": 2.0}
    found = lines({"energy": asleep, "unsatisfied": missed})
    assert list(found) == ["standby time", "CPU demand not met", "memory demand not met"]
    awake = {"kwh": 5.0, "saved_kwh": 0.0, "price": 0.05, "host_hours_asleep": 0.0}
    assert list(lines({"energy": awake})) == ["energy used", "price"]


def test_the_energy_tile_shows_the_saving_of_standby() -> None:
    summary = a_run(hosts=30, samples=2).summary
    assert (
        "saved by standby 2.07 kWh, hosts powered on 1, off 0 times"
        in parsed(page_head(document_of(summary))).text
    )
    assert "saved by standby" not in parsed(page_head(a_run(hosts=3, samples=2).document)).text
