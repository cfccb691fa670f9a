from __future__ import annotations

from equipoise.control.arbitrate import arbitrate
from equipoise.model.action import Action, Migrate, PowerOff, PowerOn
from equipoise.model.plan import Intent, Proposal, Purpose
from equipoise.model.quantity import HostId, PlanId, StepId, VmId


def move(vm: str, source: str = "h1", target: str = "h2") -> Migrate:
    return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))


def intent(name: str, action: Action, *after: str) -> Intent:
    return Intent(
        id=StepId(name), action=action, duration_ms=1, after=tuple(StepId(one) for one in after)
    )


def proposal(purpose: Purpose, *intents: Intent, whole: bool = False) -> Proposal:
    return Proposal(decider=purpose.name.lower(), purpose=purpose, intents=intents, whole=whole)


def settled(*proposals: Proposal) -> tuple[list[str], list[str]]:
    result = arbitrate(proposals, PlanId("p"))
    return [one.id for one in result.intents], [f"{r.subject}: {r.detail}" for r in result.dropped]


def test_the_more_urgent_proposal_wins_whatever_the_order() -> None:
    balance = proposal(Purpose.BALANCE, intent("1", move("v1", "h1", "h3")))
    repair = proposal(Purpose.REPAIR, intent("1", move("v1", "h1", "h2")))
    expected = (
        ["p/repair/1"],
        ["migrate v1 from h1 to h3: repair already does something with v1"],
    )
    assert settled(balance, repair) == expected
    assert settled(repair, balance) == expected


def test_the_order_of_urgency() -> None:
    purposes = [Purpose.SLEEP, Purpose.BALANCE, Purpose.WAKE, Purpose.UPGRADE, Purpose.REPAIR]
    kept, _ = settled(*(proposal(one, intent("1", move("v1"))) for one in purposes))
    assert kept == ["p/repair/1"]
    assert sorted(purposes) == purposes[::-1]


def test_a_host_that_others_use_is_not_switched() -> None:
    balance = proposal(Purpose.BALANCE, intent("1", move("v1", "h1", "h2")))
    sleep = proposal(Purpose.SLEEP, intent("1", PowerOff(host=HostId("h2"))))
    assert settled(balance, sleep) == (["p/balance/1"], ["power off h2: balance uses h2"])


def test_a_host_that_is_switched_is_not_used_by_the_less_urgent() -> None:
    wake = proposal(Purpose.WAKE, intent("1", PowerOn(host=HostId("h2"))))
    balance = proposal(Purpose.BALANCE, intent("1", move("v1", "h1", "h2")))
    assert settled(wake, balance)[1] == ["migrate v1 from h1 to h2: wake switches h2"]


def test_what_needs_a_dropped_intent_is_dropped_too() -> None:
    repair = proposal(Purpose.REPAIR, intent("1", move("v1")))
    balance = proposal(
        Purpose.BALANCE,
        intent("3", move("v3", "h3", "h4"), "2"),
        intent("1", move("v1")),
        intent("2", move("v2", "h5", "h6"), "1"),
        intent("4", move("v4", "h7", "h8")),
    )
    kept, dropped = settled(repair, balance)
    assert kept == ["p/repair/1", "p/balance/4"]
    assert len(dropped) == 3
    assert "migrate v3 from h3 to h4: needs 2, which was dropped" in dropped


def test_a_proposal_that_only_counts_as_a_whole_is_dropped_as_a_whole() -> None:
    repair = proposal(Purpose.REPAIR, intent("1", move("v1")))
    sleep = proposal(
        Purpose.SLEEP,
        intent("1", move("v1")),
        intent("2", move("v2", "h3", "h4")),
        intent("3", PowerOff(host=HostId("h3")), "2"),
        whole=True,
    )
    kept, dropped = settled(repair, sleep)
    assert kept == ["p/repair/1"]
    assert len(dropped) == 3


def test_several_proposals_of_one_decider_do_not_mix() -> None:
    first = proposal(Purpose.BALANCE, intent("1", move("v1")))
    second = proposal(Purpose.BALANCE, intent("1", move("v2", "h3", "h4")))
    assert settled(first, second)[0] == ["p/balance/1", "p/balance.2/1"]


def test_ids_are_made_unique_and_references_follow() -> None:
    one = proposal(
        Purpose.BALANCE, intent("1", move("v1")), intent("2", move("v2", "h3", "h4"), "1")
    )
    result = arbitrate([one], PlanId("plan-7"))
    assert result.intents[1].id == "plan-7/balance/2"
    assert result.intents[1].after == ("plan-7/balance/1",)
