"""One measure for the plans of both sides, on plans made by hand."""

from __future__ import annotations

from typing import Any

from equipoise.adapters.btrplace.format.plan_actions import PlanCost, cost_of_plan

Record = dict[str, Any]


def an_action(kind: str, start: int, end: int, **other: Any) -> Record:
    hooks = {"pre": other.pop("pre", []), "post": []}
    return {"id": kind, "start": start, "end": end, "hooks": hooks, **other}


def amount(*actions: Record) -> PlanCost:
    return cost_of_plan({"origin": {}, "actions": list(actions)})


def test_a_plan_that_does_nothing_costs_nothing() -> None:
    assert amount() == PlanCost(0, 0)


def test_ends_are_added_up_not_durations() -> None:
    found = amount(
        an_action("migrateVM", 3, 5, vm=1, **{"from": 0}, to=1),
        an_action("bootVM", 0, 4, vm=2, on=1),
        an_action("suspendVM", 1, 2, vm=3, **{"from": 0}, to=0),
    )
    assert found == PlanCost(11, 1)


def test_only_the_last_action_of_a_vm_counts_in_whatever_order_they_are_written() -> None:
    found = amount(
        an_action("migrateVM", 5, 7, vm=1, **{"from": 1}, to=2),
        an_action("migrateVM", 0, 2, vm=1, **{"from": 0}, to=1),
    )
    assert found == PlanCost(7, 2)


def test_a_vm_and_a_host_may_have_the_same_number() -> None:
    found = amount(
        an_action("shutdownVM", 0, 2, vm=1, on=1),
        an_action("shutdownNode", 2, 5, node=1),
        an_action("bootNode", 0, 3, node=2),
    )
    assert found == PlanCost(10, 0)


def test_allocations_do_not_count() -> None:
    found = amount(
        an_action("allocate", 9, 9, vm=1, on=0, rc="cpu", amount=2),
        an_action("allocate", 9, 10, vm=2, on=0, rc="cpu", amount=2),
        an_action("migrateVM", 0, 1, vm=2, **{"from": 0}, to=1),
    )
    assert found == PlanCost(1, 1)


def test_a_replaced_vm_ends_with_the_shutdown_of_the_old_one() -> None:
    swap = {"id": "substitutedVM", "vm": 1, "newVm": 7}
    found = amount(
        an_action("forgeVM", 0, 1, vm=7),
        an_action("bootVM", 1, 9, vm=7, on=1, pre=[swap]),
        an_action("shutdownVM", 2, 4, vm=1, on=0),
    )
    assert found == PlanCost(4, 1)


def test_a_vm_that_is_forged_for_its_own_sake_counts() -> None:
    assert amount(an_action("forgeVM", 0, 3, vm=7)) == PlanCost(3, 0)


def test_a_plan_without_hooks_can_be_counted() -> None:
    action = {"id": "killVM", "vm": 1, "on": 0, "start": 0, "end": 2}
    assert amount(action) == PlanCost(2, 0)
