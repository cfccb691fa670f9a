"""The keys of the JSON documents: they are a contract with programs that read them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from equipoise.documents.advice import (
    ActionRow,
    BeforeAfter,
    MoveRow,
    PlaceDocument,
    RecommendationRow,
    RecommendDocument,
    TotalsRow,
    WhatIfDocument,
)
from equipoise.documents.json_document import Document, read_leniently, unknown_keys
from equipoise.documents.plan import CheckDocument, GoalRow, SolveDocument, StepRow, ViolationRow
from equipoise.documents.simulation import (
    CpuMemory,
    ImbalanceFigures,
    SimulationDocument,
    read_simulation_document,
    simulation_document,
)
from equipoise.sim.builtin import builtin_scenario
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal

RECOMMEND = (
    "recommendations faults existing_faults imbalance summary fewest_moves rejected host_pools "
    "host_pool_changes explanations warnings"
)
KEYS = {
    SimulationDocument: (
        "scenario about seed deciders duration_s migrations migrations_per_pass payload_pct "
        "satisfied_pct share_classes cpu_ready_pct unsatisfied energy_kwh energy imbalance "
        "happiness downtime_s sla power_ons power_offs violations plans events wall_s "
        "journal_sha256"
    ),
    RecommendDocument: (
        f"{RECOMMEND} power actions totals hosts dropped ignored_rules unmet_soft_rules "
        "unknown_vms vms pools commands wall_s"
    ),
    WhatIfDocument: (
        f"{RECOMMEND} restarts prerequisite_moves power_ons unplaced restart_faults wall_s"
    ),
    RecommendationRow: (
        "action vm from to priority code reason gain cost gains costs risks considered after "
        "automatic"
    ),
    ActionRow: (
        "step action vm from to start_s end_s after decider code priority automatic "
        "benefit_host_s evenness_host_s cost_host_s reason"
    ),
    BeforeAfter: "before after gain",
    TotalsRow: "actions moves moved_gib move_s ends_s",
    MoveRow: "vm from to",
    PlaceDocument: "placements prerequisite_moves power_ons faults warnings overloads",
    SolveDocument: (
        "status optimal objective goals actions migrations makespan_s verified broken "
        "unrepaired explanation conflict build_s solve_s steps fullest overload load_s wall_s"
    ),
    GoalRow: "goal value bound",
    StepRow: "id start_ms end_ms action after",
    CheckDocument: "accepted violations existing_faults",
    ViolationRow: "constraint at step detail code",
}


@pytest.mark.parametrize("kind", KEYS, ids=lambda kind: kind.__name__)
def test_a_document_has_the_keys_of_the_contract_in_order(kind: type[Document]) -> None:
    fields = msgspec.structs.fields(kind)
    assert [field.encode_name for field in fields] == KEYS[kind].split()
    properties = msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"]
    assert list(properties) == KEYS[kind].split()


def test_a_document_of_a_run_survives_json() -> None:
    scenario, journal = builtin_scenario("first-steps"), MemoryJournal()
    runner = ScenarioRunner(scenario, journal)
    runner.run(1000 * scenario.duration_s)
    document = simulation_document(runner.result(), journal, wall_s=1.23456)
    written = document.to_json_object()
    assert list(written) == KEYS[SimulationDocument].split()
    assert (written["migrations"], written["power_ons"], written["wall_s"]) == (3, 1, 1.235)
    assert read_simulation_document(json.loads(json.dumps(written))) == (document, {})


def test_an_unset_figure_has_no_key_and_null_is_a_value() -> None:
    assert "below_target_at_s" not in ImbalanceFigures().to_json_object()
    assert ImbalanceFigures(below_target_at_s=None).to_json_object()["below_target_at_s"] is None


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, SimulationDocument()),
        ({"seed": "seven", "migrations": 3}, SimulationDocument(migrations=3)),
        ({"satisfied_pct": {"cpu": 5, "memory": "much"}},
         SimulationDocument(satisfied_pct=CpuMemory(cpu=5.0))),
        ({"energy_kwh": float("nan")}, SimulationDocument()),
        ({"violations": [3, {"constraint": "c", "new_key": 1}]},
         SimulationDocument(violations=(ViolationRow(constraint="c"),))),
    ],
)  # fmt: skip
def test_values_of_another_type_count_as_missing(
    raw: dict[str, Any], expected: SimulationDocument
) -> None:
    assert read_leniently(SimulationDocument, raw) == expected


def test_keys_of_another_version_are_kept_apart() -> None:
    assert unknown_keys(SimulationDocument, {"seed": 1, "queue": {"s": 2}}) == {"queue": {"s": 2}}
