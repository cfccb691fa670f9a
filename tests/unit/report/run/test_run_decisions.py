"""The table of decisions and their reasons."""

from __future__ import annotations

from builders import a_plan, a_step
from equipoise.documents.simulation import SimulationDocument
from equipoise.model.action import Migrate
from equipoise.model.event import (
    ActionFailed,
    ActionSkipped,
    ActionStarted,
    Event,
    HostFailed,
    PlanRefused,
    ProposalMade,
    ProposalsArbitrated,
    VmCrashed,
)
from equipoise.model.plan import Intent, Proposal, Purpose, Rejection, Violation
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.report.run.data import RunData
from equipoise.report.run.decisions import ROWS_MAX, decision_rows, decisions_section
from unit.report.parsed import Element, parsed
from unit.report.synthetic import a_run


def a_proposal(at_ms: int, moves: int = 0, decider: str = "balance", reason: str = "so") -> Event:
    intents = tuple(
        Intent(
            id=StepId(f"s{n}"),
            action=Migrate(vm=VmId(f"v{n}"), source=HostId("h1"), target=HostId("h2")),
            duration_ms=1000,
        )
        for n in range(moves)
    )
    against = Rejection(subject="v9 on h3", code="no-capacity", detail="too full")
    proposal = Proposal(
        decider=decider,
        purpose=Purpose.BALANCE,
        intents=intents,
        reason=reason,
        gain={"imbalance": -0.125} if moves else {},
        rejected=(against,) if moves else (),
    )
    return ProposalMade(at_ms=at_ms, proposal=proposal)


def section(events: list[Event]) -> Element:
    record = a_run(hosts=3, samples=5).record
    run = RunData(document=SimulationDocument(), record=record, events=events)
    return parsed(decisions_section(run).markup())


def test_a_proposal_row_has_decider_actions_reason_and_rejections() -> None:
    (row,) = decision_rows([a_proposal(65_000, moves=5)])
    assert row.actor == "balance"
    assert row.what.startswith("migrate v0 from h1 to h2; migrate v1")
    assert row.what.endswith("; and 2 more")
    assert row.why == "so (expected gain: imbalance -0.125)"
    assert row.details[-1] == "not v9 on h3: too full"
    assert row.details_label == "2 more proposed, 1 rejected"


def test_passes_without_a_proposal_share_a_row_per_decider() -> None:
    events = [
        a_proposal(1000, reason="fine"),
        a_proposal(1000, decider="power"),
        a_proposal(2000, reason="still fine"),
        a_proposal(2000, decider="power"),
        a_proposal(3000, moves=1),
        a_proposal(4000),
    ]
    rows = decision_rows(events)
    assert [(row.actor, row.kind, row.times) for row in rows] == [
        ("balance", "nothing", 2),
        ("power", "nothing", 2),
        ("balance", "proposed", 1),
        ("balance", "nothing", 1),
    ]
    assert rows[0].why == "still fine"
    assert rows[0].until_s == 2.0


def test_a_refused_plan_shows_every_violation() -> None:
    move = Migrate(vm=VmId("v1"), source=HostId("h1"), target=HostId("h2"))
    violations = tuple(
        Violation(constraint=f"rule{n}", at_ms=0, detail=f"detail {n}") for n in range(3)
    )
    plan = a_plan(a_step("s", move))
    made = section([PlanRefused(at_ms=1000, plan=plan, violations=violations)])
    for words in ("plan p of 1 step refused", "rule0: detail 0", "rule2: detail 2", "1 refused"):
        assert words in made.text


def test_dropped_intents_and_faults_have_rows() -> None:
    dropped = (Rejection(subject="v1", code="busy", detail="later"),)
    events: list[Event] = [
        ProposalsArbitrated(at_ms=1, dropped=dropped),
        HostFailed(at_ms=2, host=HostId("h1"), reason="fire"),
        VmCrashed(at_ms=3, vm=VmId("v1"), reason="panic"),
    ]
    rows = decision_rows(events)
    assert [row.kind for row in rows] == ["dropped", "fault", "fault"]
    assert rows[0].what == "1 intent dropped"
    assert rows[1].what == "host h1 failed: fire"


def test_a_failed_step_row_names_its_action() -> None:
    move = Migrate(vm=VmId("v1"), source=HostId("h1"), target=HostId("h2"))
    events: list[Event] = [
        ActionStarted(at_ms=0, step=a_step("s", move), attempt=1),
        ActionFailed(at_ms=1, step=StepId("s"), attempt=1, reason="no room"),
        ActionSkipped(at_ms=2, step=StepId("t"), reason="too late"),
    ]
    assert [row.what for row in decision_rows(events)] == [
        "migrate v1 from h1 to h2: step s failed: no room",
        "step t skipped: too late",
    ]


def test_of_too_many_rows_faults_and_decisions_stay_in_order() -> None:
    events: list[Event] = []
    for number in range(ROWS_MAX):
        events += [a_proposal(number * 10, decider=f"d{number}"), a_proposal(number * 10 + 1, 1)]
    events.append(HostFailed(at_ms=10**6, host=HostId("h1")))
    made = section(events)
    rows = made.one("tbody").all("tr")
    assert len(rows) == ROWS_MAX
    assert "fault" in rows[-1].text
    assert not any("nothing to do" in row.text for row in rows)
    assert "the other 501 are in journal.jsonl" in made.text


def test_without_decisions_the_section_has_no_table() -> None:
    made = section([])
    assert "has no decisions" in made.text
    assert not made.all("table")


def test_the_filter_waits_for_its_script() -> None:
    made = section([a_proposal(0, 1)])
    assert "hidden" in made.one("p", "filter").attributes
