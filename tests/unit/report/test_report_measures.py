"""The measures of a summary, whatever is in it."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.report.head import head
from equipoise.report.measures import HIGHER, LOWER, measures
from unit.report.parsed import parsed
from unit.report.synthetic import a_run


def by_path(summary: dict[str, Any]) -> dict[str, str]:
    return {one.path: one.words for one in measures(summary)}


def test_known_measures_have_names_units_and_a_good_direction() -> None:
    found = {one.path: one for one in measures(a_run(hosts=3, samples=2).summary)}
    assert found["energy_kwh"].words == "183 kWh"
    assert found["energy_kwh"].better == LOWER
    assert found["satisfied_pct.cpu"].better == HIGHER
    assert found["happiness.gold.mean_pct"].label == "mean happiness, gold"
    assert found["violations"].words == "0"
    assert found["imbalance.below_target_at_s"].words == "8 h 30 min"
    assert found["seed"].words == "7"


def test_prices_are_in_the_currency_of_the_run() -> None:
    summary = a_run(hosts=30, samples=2).summary
    found = {one.path: one for one in measures(summary)}
    assert found["energy.price"].words == "55 EUR"
    assert found["energy.price"].better == LOWER
    assert found["energy.saved_price"].words == "0.622 EUR"
    assert found["energy.price_per_kwh"].words == "0.3 EUR"
    assert found["energy.host_hours_asleep"].words == "19.2 h"
    assert found["unsatisfied.cpu_mhz_h"].words == "415,000 MHz h"
    assert not {"energy.kwh", "energy.currency"} & set(found), "they are said already"
    assert by_path({"energy": {"price": 2.5}})["energy.price"] == "2.5"


def test_a_target_that_was_never_met_says_so() -> None:
    summary = {"imbalance": {"below_target_at_s": None}}
    assert by_path(summary)["imbalance.below_target_at_s"] == "never"
    assert "imbalance.below_target_at_s" not in by_path({"imbalance": {}})


def test_keys_nobody_knows_are_shown_under_their_own_name() -> None:
    summary = {"queue": {"longest_wait_s": 90}, "plans": [1, 2], "mode": "fast", "odd": None}
    found = {one.label: one.words for one in measures(summary)}
    assert found["queue, longest wait"] == "1 min 30 s"
    assert found["plans"] == "2"
    assert found["mode"] == "fast"
    assert found["odd"] == "-"


@pytest.mark.parametrize(
    "summary",
    [{}, {"happiness": None}, {"happiness": "x"}, {"happiness": [1, {}]}, {"imbalance": 3},
     {"sla": None, "violations": None}, {"satisfied_pct": {"cpu": "much"}}, {"seed": None},
     {"energy_kwh": float("nan")}, {"violations": ["odd"]}, {"sla": {"violation_s": 5}},
     {"duration_s": "long"}, {"power_ons": 3}, {"happiness": [{"pool": None, "mean_pct": 90}]}],
)  # fmt: skip
def test_odd_summaries_are_borne(summary: dict[str, Any]) -> None:
    measures(summary)
    assert parsed(head(summary)).all("h1")


def test_what_is_listed_per_tenant_or_class_has_a_measure_each() -> None:
    summary = {
        "sla": [
            {"tenant": "t1", "violations": 2, "violation_s": 60.0, "vm_s": 120.0},
            {"tenant": "t2", "violation_s": 30.0, "vm_s": 30.0},
        ],
        "share_classes": [{"shares": 2000, "vms": 3, "satisfied_cpu_pct": 88.0}],
        "deciders": ["balance", "power"],
    }
    found = {one.label: one.words for one in measures(summary)}
    assert found["SLA violated, tenant t1"] == "1 min"
    assert found["times that the SLA was violated, tenant t1"] == "2"
    assert found["CPU demand met, VMs of 2000 shares"] == "88 %"
    assert found["deciders"] == "balance, power"
    assert "SLA violated 1 min 30 s VM time missing 2 min 30 s" in parsed(head(summary)).text


def test_broken_rules_come_first_on_the_page() -> None:
    row = {"constraint": "spread", "at": 5, "step": "s1", "detail": "two on <h1>"}
    made = parsed(head({"scenario": "x", "violations": [row] * 60}))
    assert "two on <h1>" in made.one("div", "broken").text
    assert "The other 10 are in summary.json." in made.text
    assert made.one("li", "bad").text.startswith("rules broken 60")


def test_the_happiness_tile_shows_the_least_happy_pool() -> None:
    summary = {"happiness": [{"pool": "a", "mean_pct": 90}, {"pool": "b", "mean_pct": 70.5}]}
    assert "70.5 % mean of b, the least happy of 2 pools" in parsed(head(summary)).text
