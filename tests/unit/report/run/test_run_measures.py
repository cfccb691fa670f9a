"""The measures of a summary, with known, unknown and malformed keys."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.documents.simulation import read_simulation_document
from equipoise.report.run.measures import HIGHER, LOWER, RunMeasure, run_measures
from equipoise.report.run.page import page_head
from unit.report.parsed import Element, parsed
from unit.report.synthetic import a_run, document_of


def measures(summary: dict[str, Any]) -> list[RunMeasure]:
    return run_measures(*read_simulation_document(summary))


def by_path(summary: dict[str, Any]) -> dict[str, str]:
    return {measure.path: measure.words for measure in measures(summary)}


def head(summary: dict[str, Any]) -> Element:
    return parsed(page_head(document_of(summary)))


def test_known_measures_have_names_units_and_a_good_direction() -> None:
    found = {measure.path: measure for measure in measures(a_run(hosts=3, samples=2).summary)}
    assert found["energy_kwh"].words == "183 kWh"
    assert found["energy_kwh"].better == LOWER
    assert found["satisfied_pct.cpu"].better == HIGHER
    assert found["happiness.gold.mean_pct"].label == "mean happiness, gold"
    assert found["violations"].words == "0"
    assert found["imbalance.below_target_at_s"].words == "8 h 30 min"
    assert found["seed"].words == "7"


def test_prices_are_in_the_currency_of_the_run() -> None:
    summary = a_run(hosts=30, samples=2).summary
    found = {measure.path: measure for measure in measures(summary)}
    assert found["energy.price"].words == "55 EUR"
    assert found["energy.price"].better == LOWER
    assert found["energy.saved_price"].words == "0.622 EUR"
    assert found["energy.price_per_kwh"].words == "0.3 EUR"
    assert found["energy.host_hours_asleep"].words == "19.2 h"
    assert found["unsatisfied.cpu_mhz_h"].words == "415,000 MHz h"
    assert not {"energy.kwh", "energy.currency"} & set(found), "other measures show them"
    assert by_path({"energy": {"price": 2.5}})["energy.price"] == "2.5"


def test_a_target_that_is_never_met_reads_never() -> None:
    summary = {"imbalance": {"below_target_at_s": None}}
    assert by_path(summary)["imbalance.below_target_at_s"] == "never"
    assert "imbalance.below_target_at_s" not in by_path({"imbalance": {}})


def test_unknown_keys_appear_under_their_own_names() -> None:
    summary = {"queue": {"longest_wait_s": 90}, "runs": [1, 2], "mode": "fast", "odd": None}
    found = {measure.label: measure.words for measure in measures(summary)}
    assert found["queue, longest wait"] == "1 min 30 s"
    assert found["runs"] == "2"
    assert found["mode"] == "fast"
    assert found["odd"] == "-"


@pytest.mark.parametrize(
    "summary",
    [{}, {"happiness": None}, {"happiness": "x"}, {"happiness": [1, {}]}, {"imbalance": 3},
     {"sla": None, "violations": None}, {"satisfied_pct": {"cpu": "much"}}, {"seed": None},
     {"energy_kwh": float("nan")}, {"violations": ["odd"]}, {"sla": {"violation_s": 5}},
     {"duration_s": "long"}, {"power_ons": 3}, {"happiness": [{"pool": None, "mean_pct": 90}]}],
)  # fmt: skip
def test_malformed_summaries_still_have_measures_and_a_page(summary: dict[str, Any]) -> None:
    measures(summary)
    assert head(summary).all("h1")


def test_each_tenant_and_each_share_class_has_measures() -> None:
    summary = {
        "sla": [
            {"tenant": "t1", "violations": 2, "violation_s": 60.0, "vm_s": 120.0},
            {"tenant": "t2", "violation_s": 30.0, "vm_s": 30.0},
        ],
        "share_classes": [
            {"resource": "cpu", "shares": 2000, "vms": 3, "payload_pct": 9.5, "satisfied_pct": 88.0}
        ],
        "deciders": ["balance", "power"],
    }
    found = {measure.label: measure.words for measure in measures(summary)}
    assert found["SLA violated, tenant t1"] == "1 min"
    assert found["number of SLA violations, tenant t1"] == "2"
    assert found["demand met, VMs of 2000 cpu shares"] == "88 %"
    assert found["deciders"] == "balance, power"
    assert "SLA violated 1 min 30 s VM time missing 2 min 30 s" in head(summary).text


def test_violated_constraints_come_first_on_the_page() -> None:
    row = {"constraint": "spread", "at": 5, "step": "s1", "detail": "two on <h1>"}
    made = head({"scenario": "x", "violations": [row] * 60})
    assert "two on <h1>" in made.one("div", "broken").text
    assert "The other 10 are in summary.json." in made.text
    assert made.one("li", "bad").text.startswith("constraints violated 60")


def test_the_happiness_tile_shows_the_least_happy_pool() -> None:
    summary = {"happiness": [{"pool": "a", "mean_pct": 90}, {"pool": "b", "mean_pct": 70.5}]}
    assert "70.5 % mean of b, the least happy of 2 pools" in head(summary).text


def test_a_target_that_is_met_at_the_start_is_a_figure() -> None:
    assert (
        by_path({"imbalance": {"below_target_at_s": 0.0}})["imbalance.below_target_at_s"] == "0 s"
    )
