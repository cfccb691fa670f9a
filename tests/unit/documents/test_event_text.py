from __future__ import annotations

import pytest

from builders import a_plan, a_step, a_vm
from equipoise.cli.output import format_mib, format_time_ms
from equipoise.documents.event_text import describe_event
from equipoise.model.action import Migrate
from equipoise.model.event import Event, PlanRefused, ProposalMade, ProposalsArbitrated, VmArrived
from equipoise.model.plan import Intent, Proposal, Purpose, Rejection, Violation
from equipoise.model.quantity import HostId, StepId, VmId, format_count

MOVE = Migrate(vm=VmId("v1"), source=HostId("h1"), target=HostId("h2"))
REJECTED = Rejection(subject="migrate v2 from h1 to h3", code="no_room", detail="h3 is full")


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            ProposalMade(
                at_ms=0,
                proposal=Proposal(
                    decider="balance",
                    purpose=Purpose.BALANCE,
                    intents=(Intent(id=StepId("1"), action=MOVE, duration_ms=1),),
                    reason="h1 is busy",
                    rejected=(REJECTED,),
                ),
            ),
            (
                "balance proposed migrate v1 from h1 to h2, because h1 is busy; "
                "rejected: migrate v2 from h1 to h3, h3 is full"
            ),
        ),
        (
            ProposalMade(
                at_ms=0,
                proposal=Proposal(
                    decider="balance",
                    purpose=Purpose.BALANCE,
                    reason="rejected: migrate v2 from h1 to h3 (h3 is full)",
                    rejected=(REJECTED,),
                ),
            ),
            ("balance proposed nothing, because rejected: migrate v2 from h1 to h3 (h3 is full)"),
        ),
        (
            ProposalMade(at_ms=0, proposal=Proposal(decider="power", purpose=Purpose.SLEEP)),
            "power proposed nothing",
        ),
        (
            ProposalsArbitrated(at_ms=0, dropped=(REJECTED,)),
            "dropped: migrate v2 from h1 to h3, h3 is full",
        ),
        (
            PlanRefused(
                at_ms=0,
                plan=a_plan(a_step("s", MOVE)),
                violations=(Violation(constraint="c", at_ms=0, detail="h2 is off"),),
            ),
            "plan p refused: h2 is off",
        ),
        (VmArrived(at_ms=0, vm=a_vm("v1", "h1")), "VM v1 arrived, running"),
    ],
)
def test_each_event_has_one_line_of_text(event: Event, text: str) -> None:
    assert describe_event(event) == text


def test_numbers_have_their_printed_form() -> None:
    assert [format_time_ms(ms) for ms in (0, 65_250, 3_600_000)] == [
        "0:00:00",
        "0:01:05.250",
        "1:00:00",
    ]
    assert [format_mib(n) for n in (0, 900, 1024, 5000, 12_000, 65_536)] == [
        "0 MiB", "900 MiB", "1 GiB", "5,000 MiB", "11.7 GiB", "64 GiB",
    ]  # fmt: skip
    assert [format_count(n, "host") for n in (0, 1, 2000)] == ["0 hosts", "1 host", "2,000 hosts"]
