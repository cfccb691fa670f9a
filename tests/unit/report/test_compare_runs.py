"""Two runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from equipoise.report import MeasureDifference, SavedRun, compare_page, differences, read_run
from unit.report.parsed import parsed
from unit.report.synthetic import Given, a_run, write


def a_pair(folder: Path, in_a: dict[str, Any], in_b: dict[str, Any]) -> tuple[SavedRun, SavedRun]:
    for name, changes in (("a", in_a), ("b", in_b)):
        given = a_run(hosts=3, samples=20 if name == "a" else 33)
        summary = given.summary | changes
        write(folder / name, Given(summary=summary, record=given.record, journal=given.journal))
    return read_run(folder / "a"), read_run(folder / "b")


def one(found: list[MeasureDifference], measure: str) -> MeasureDifference:
    return next(each for each in found if each.measure == measure)


def test_the_better_run_is_named_by_the_direction_of_the_measure(tmp_path: Path) -> None:
    found = differences(
        *a_pair(
            tmp_path,
            {"energy_kwh": 200.0, "satisfied_pct": {"cpu": 99.0}, "migrations": 5},
            {"energy_kwh": 150.0, "satisfied_pct": {"cpu": 98.0}, "migrations": 5},
        )
    )
    energy = one(found, "energy")
    assert (energy.a, energy.b, energy.difference, energy.better) == (200, 150, -50, "B")
    assert energy.words == ("200 kWh", "150 kWh", "-50 kWh")
    assert one(found, "CPU demand met").better == "A"
    assert one(found, "migrations").better == "same"
    assert one(found, "simulated time").better == ""


def test_never_is_worse_than_late(tmp_path: Path) -> None:
    found = differences(
        *a_pair(
            tmp_path,
            {"imbalance": {"below_target_at_s": None}},
            {"imbalance": {"below_target_at_s": 9000.0}},
        )
    )
    first = one(found, "imbalance first below its target")
    assert first.better == "B"
    assert first.words == ("never", "2 h 30 min", "")


def test_a_measure_that_one_run_lacks_is_shown_without_a_judgement(tmp_path: Path) -> None:
    found = differences(*a_pair(tmp_path, {"novel_s": 5.0}, {}))
    novel = one(found, "novel")
    assert (novel.a, novel.b, novel.difference, novel.better) == (5.0, None, None, "")
    assert novel.words == ("5 s", "-", "")


def test_energy_price_and_what_vms_missed_stand_side_by_side(tmp_path: Path) -> None:
    dear = {"kwh": 200.0, "price": 60.0, "saved_kwh": 0.0, "currency": "EUR", "co2_kg": 80.0}
    cheap = {"kwh": 150.0, "price": 45.0, "saved_kwh": 50.0, "currency": "EUR", "co2_kg": 60.0}
    missed = [{"cpu_mhz_h": figure, "memory_mib_h": 0.0} for figure in (0.0, 2500.0)]
    found = differences(
        *a_pair(
            tmp_path,
            {"energy_kwh": 200.0, "energy": dear, "unsatisfied": missed[0]},
            {"energy_kwh": 150.0, "energy": cheap, "unsatisfied": missed[1]},
        )
    )
    price = one(found, "price of the energy")
    assert (price.words, price.better) == (("60 EUR", "45 EUR", "-15 EUR"), "B")
    assert one(found, "CO2 of the energy").better == "B"
    assert one(found, "energy saved by standby").words == ("0 kWh", "50 kWh", "+50 kWh")
    assert one(found, "energy saved by standby").better == "", "it may have used more all the same"
    cost = one(found, "CPU demand not met")
    assert (cost.words[1], cost.better) == ("2,500 MHz h", "A")
    assert len([each for each in found if each.a == 200.0]) == 1, "the energy stands there once"


def test_prices_in_two_currencies_are_not_compared(tmp_path: Path) -> None:
    found = differences(
        *a_pair(
            tmp_path,
            {"energy": {"price": 60.0, "currency": "EUR"}},
            {"energy": {"price": 45.0, "currency": "CHF"}},
        )
    )
    price = one(found, "price of the energy")
    assert (price.words, price.better) == (("60 EUR", "45 CHF", ""), "")
    assert price.difference is None


def test_the_page_shows_measures_and_both_runs_over_time(tmp_path: Path) -> None:
    page = parsed(compare_page(*a_pair(tmp_path, {}, {"seed": 8})))
    assert "The runs differ in seed: compare with care." in page.text
    figures = page.all("figure")
    assert len(figures) == 6
    for figure in figures:
        assert [name.one("title").text for name in figure.all("text", "name")]
    assert "better" in page.one("thead").text


def test_runs_without_samples_and_power_say_why(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, a_run(hosts=3, samples=1, powered=False))
    page = parsed(compare_page(read_run(tmp_path / "a"), read_run(tmp_path / "b")))
    assert "The hosts of these runs have no power figures." in page.text


@pytest.mark.parametrize("changes", [{}, {"duration_s": 10.0 * 86400}])
def test_comparing_a_run_with_itself_or_a_longer_one_works(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    run_a, run_b = a_pair(tmp_path, {}, changes)
    assert all(each.better in {"same", ""} for each in differences(run_a, run_a))
    parsed(compare_page(run_a, run_b))
