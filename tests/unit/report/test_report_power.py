"""The power section: watts of the cluster and of each host, and the bill."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from equipoise.report.bill import bill
from equipoise.report.head import head
from equipoise.report.material import Material
from equipoise.report.power import power
from equipoise.sim.measure.record import Table
from unit.report.parsed import Element, parsed
from unit.report.synthetic import Given, a_run, told


def section(given: Given) -> Element:
    material = Material(summary=given.summary, record=given.record, events=(), tell=told)
    return parsed(power(material).markup())


def carried(made: Element, kind: str) -> dict[str, Any]:
    figure = made.all("figure", kind)[0]
    found: dict[str, Any] = json.loads(figure.one("script").words[0])
    return found


def without(given: Given, column: str) -> Given:
    """The run as a version wrote it that did not know a column."""
    tables = {
        name: Table({
            key: values
            for key, values in getattr(given.record, name).columns.items()
            if key != column
        })
        for name in ("cluster", "hosts")
    }  # fmt: skip
    return replace(given, record=replace(given.record, **tables))


def lines(summary: dict[str, Any]) -> dict[str, tuple[str, str]]:
    made = bill(summary)
    rows = parsed(made).all("tr")[1:] if made else []
    cells = [[cell.text for cell in row.all("td")] for row in rows]
    return {name: (value, words) for name, value, words in cells}


def test_what_it_would_have_drawn_is_a_second_line_while_hosts_sleep() -> None:
    given = a_run(hosts=30, samples=20)
    series = dict(carried(section(given), "lines")["series"])
    assert list(series) == ["if all on", "power"]
    first, last = (series["if all on"][n] - series["power"][n] for n in (0, -1))
    assert first == pytest.approx(4 * 0.108, abs=0.002)
    assert last == 0
    assert "if all hosts had stayed on" in section(given).one("p", "see").text
    assert "Sleep saved 2.07 kWh, 1.12 % of that." in section(given).one("p", "see").text


@pytest.mark.parametrize(
    "given", [a_run(hosts=3, samples=20), without(a_run(hosts=30, samples=20), "watts_saved")]
)
def test_there_is_one_line_if_nobody_slept_or_nobody_knows(given: Given) -> None:
    made = section(given)
    assert [name for name, _ in carried(made, "lines")["series"]] == ["power"]
    assert "dashed" not in made.one("p", "see").text


def test_each_host_has_a_row_of_watts_from_the_least_to_the_most() -> None:
    given = a_run(hosts=12, samples=20)
    made = section(given)
    heat = carried(made, "heat")
    assert heat["unit"] == "W"
    assert [name for name, _ in heat["views"]] == ["power"]
    rows = heat["views"][0][1]
    assert len(rows) == 12
    assert rows[-1].startswith("s s s "), "it slept in the first night"
    hosts = given.record.hosts
    drawn = np.round(hosts["watts"][hosts["state"] == "on"])
    legend = made.one("figure", "heat").one("ul", "legend").text
    assert legend.startswith(f"{drawn.min():.0f} W")
    assert f"{drawn.max():.0f} W" in legend
    assert "orange" not in legend
    assert not made.all("input"), "there is nothing to switch"


def test_many_hosts_are_taken_together_as_a_mean_and_the_highest() -> None:
    made = section(a_run(hosts=130, samples=20))
    views = dict(carried(made, "heat")["views"])
    assert list(views) == ["mean per host", "highest"]
    assert "Each row takes 3 neighbours of 130 hosts together." in made.text
    for mean, highest in zip(*views.values(), strict=True):
        pairs = zip(mean.split(), highest.split(), strict=True)
        assert all(int(a) <= int(b) for a, b in pairs if a.isdigit())


def test_hosts_that_all_draw_the_same_make_a_map() -> None:
    given = a_run(hosts=3, samples=5)
    given.record.hosts["watts"][:] = 200.0
    assert "0 W" in section(given).one("ul", "legend").text


def test_without_power_figures_it_says_so_and_shows_the_hosts() -> None:
    made = section(a_run(hosts=3, samples=5, powered=False))
    assert "No power was drawn" in made.text
    assert len(made.all("figure")) == 1
    assert not made.all("table")


def test_the_bill_says_each_thing_in_a_sentence() -> None:
    found = lines(a_run(hosts=30, samples=2).summary)
    assert {name: value for name, (value, _) in found.items()} == {
        "energy used": "183 kWh",
        "price": "54.98 EUR",
        "CO2": "73.3 kg",
        "sleep of hosts": "19.2 h",
        "energy saved": "2.07 kWh",
        "price saved": "0.62 EUR",
        "CO2 saved": "0.829 kg",
        "CPU demand not met": "415 GHz h",
        "memory demand not met": "0 MiB h",
    }
    assert all(words.endswith(".") for _, words in found.values())
    assert found["price"][1] == "A kWh costs 0.30 EUR by the tariff of the cluster."
    assert "2.69 % of what they wanted" in found["CPU demand not met"][1]
    assert found["memory demand not met"][1] == "VMs got all the memory they wanted."


def test_the_bill_leaves_out_what_is_not_known() -> None:
    assert lines({}) == {}
    assert lines({"energy": {"kwh": 0.0, "host_hours_asleep": 0.0}, "unsatisfied": {}}) == {}
    assert list(lines({"energy": {"kwh": 5.0}})) == ["energy used"]
    asleep = {"kwh": 0.0, "saved_kwh": 0.0, "host_hours_asleep": 3.0}
    missed = {"cpu_mhz_h": 1.0, "memory_mib_h": 2.0}
    found = lines({"energy": asleep, "unsatisfied": missed})
    assert list(found) == ["sleep of hosts", "CPU demand not met", "memory demand not met"]
    awake = {"kwh": 5.0, "saved_kwh": 0.0, "price": 0.05, "host_hours_asleep": 0.0}
    assert list(lines({"energy": awake})) == ["energy used", "price"]


def test_the_tile_of_the_energy_says_what_sleep_saved() -> None:
    summary = a_run(hosts=30, samples=2).summary
    assert "saved by sleep 2.07 kWh, hosts powered on 1, off 0 times" in parsed(head(summary)).text
    assert "saved by sleep" not in parsed(head(a_run(hosts=3, samples=2).summary)).text
