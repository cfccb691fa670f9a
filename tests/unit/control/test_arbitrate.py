"""Arbitration: of two intents in conflict the more urgent one is kept."""

from __future__ import annotations

from equipoise.control.arbitrate import arbitrate
from equipoise.model.action import Action, Migrate, PowerOff, PowerOn
from equipoise.model.plan import Intent, Proposal, Purpose
from equipoise.model.quantity import HostId, PlanId, StepId, VmId


def move(vm: str, source: str = "h1", target: str = "h2") -> Migrate:
    return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))


def intent(name: str, action: Action, *after: str) -> Intent:
    return Intent(
        id=StepId(name), action=action, duration_ms=1, after=tuple(StepId(step) for step in after)
    )


def proposal(purpose: Purpose, *intents: Intent, all_or_nothing: bool = False) -> Proposal:
    return Proposal(
        decider=purpose.name.lower(),
        purpose=purpose,
        intents=intents,
        all_or_nothing=all_or_nothing,
    )


def arbitrated(*proposals: Proposal) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the ids of the kept intents, and action and code of the dropped ones."""
    result = arbitrate(proposals, PlanId("p"))
    dropped = [(rejection.subject, rejection.code) for rejection in result.dropped]
    return [intent.id for intent in result.intents], dropped


def test_the_more_urgent_proposal_wins_in_any_order() -> None:
    balance = proposal(Purpose.BALANCE, intent("1", move("v1", "h1", "h3")))
    repair = proposal(Purpose.REPAIR, intent("1", move("v1", "h1", "h2")))
    expected = (
        ["p/repair/1"],
        [("migrate v1 from h1 to h3", "intent-conflict")],
    )
    assert arbitrated(balance, repair) == expected
    assert arbitrated(repair, balance) == expected


def test_purposes_are_ordered_by_urgency() -> None:
    purposes = [Purpose.SLEEP, Purpose.BALANCE, Purpose.WAKE, Purpose.UPGRADE, Purpose.REPAIR]
    kept, _ = arbitrated(*(proposal(purpose, intent("1", move("v1"))) for purpose in purposes))
    assert kept == ["p/repair/1"]
    assert sorted(purposes) == purposes[::-1]


def test_a_host_in_use_is_not_powered_off() -> None:
    balance = proposal(Purpose.BALANCE, intent("1", move("v1", "h1", "h2")))
    sleep = proposal(Purpose.SLEEP, intent("1", PowerOff(host=HostId("h2"))))
    assert arbitrated(balance, sleep) == (["p/balance/1"], [("power off h2", "intent-conflict")])


def test_a_less_urgent_proposal_cannot_use_a_host_that_changes_state() -> None:
    wake = proposal(Purpose.WAKE, intent("1", PowerOn(host=HostId("h2"))))
    balance = proposal(Purpose.BALANCE, intent("1", move("v1", "h1", "h2")))
    assert arbitrated(wake, balance)[1] == [("migrate v1 from h1 to h2", "intent-conflict")]


def test_dependents_of_a_dropped_intent_are_dropped() -> None:
    repair = proposal(Purpose.REPAIR, intent("1", move("v1")))
    balance = proposal(
        Purpose.BALANCE,
        intent("3", move("v3", "h3", "h4"), "2"),
        intent("1", move("v1")),
        intent("2", move("v2", "h5", "h6"), "1"),
        intent("4", move("v4", "h7", "h8")),
    )
    kept, dropped = arbitrated(repair, balance)
    assert kept == ["p/repair/1", "p/balance/4"]
    assert len(dropped) == 3
    assert ("migrate v3 from h3 to h4", "prerequisite-dropped") in dropped


def test_an_all_or_nothing_proposal_is_dropped_completely() -> None:
    repair = proposal(Purpose.REPAIR, intent("1", move("v1")))
    sleep = proposal(
        Purpose.SLEEP,
        intent("1", move("v1")),
        intent("2", move("v2", "h3", "h4")),
        intent("3", PowerOff(host=HostId("h3")), "2"),
        all_or_nothing=True,
    )
    kept, dropped = arbitrated(repair, sleep)
    assert kept == ["p/repair/1"]
    codes = ["intent-conflict", "proposal-incomplete", "proposal-incomplete"]
    assert [code for _, code in dropped] == codes


def test_two_proposals_of_one_decider_have_different_step_ids() -> None:
    first = proposal(Purpose.BALANCE, intent("1", move("v1")))
    second = proposal(Purpose.BALANCE, intent("1", move("v2", "h3", "h4")))
    assert arbitrated(first, second)[0] == ["p/balance/1", "p/balance.2/1"]


def test_references_between_intents_follow_their_new_ids() -> None:
    made = proposal(
        Purpose.BALANCE, intent("1", move("v1")), intent("2", move("v2", "h3", "h4"), "1")
    )
    result = arbitrate([made], PlanId("plan-7"))
    assert result.intents[1].id == "plan-7/balance/2"
    assert result.intents[1].after == ("plan-7/balance/1",)


def test_moves_that_only_empty_a_host_are_dropped_with_its_power_off() -> None:
    repair = proposal(Purpose.REPAIR, intent("1", move("v9", "h1", "h3")))
    sleep = proposal(
        Purpose.SLEEP,
        intent("1", move("v2", "h3", "h4")),
        intent("2", PowerOff(host=HostId("h3")), "1"),
    )
    kept, dropped = arbitrated(repair, sleep)
    assert kept == ["p/repair/1"]
    assert [code for _, code in dropped] == ["intent-conflict", "evacuation-pointless"]
