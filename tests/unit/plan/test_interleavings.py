from __future__ import annotations

import pytest

from builders import a_cluster, a_host, a_step, a_vm, facts
from equipoise.capacity.ledger import CapacityLedger
from equipoise.model.action import Action, Boot, Kill, Migrate, PowerOff, PowerOn, Shutdown
from equipoise.model.event import ActionStarted, VmCrashed
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state.draft import TouchedEntities
from equipoise.model.vm import Vm, VmState
from equipoise.plan.interleavings import InterleavingCheck
from equipoise.spec.evaluate import incremental
from equipoise.spec.rules import requirements_of

H1, H2, H3, V1, V2 = HostId("h1"), HostId("h2"), HostId("h3"), VmId("v1"), VmId("v2")
R = RuleId("r")
APART = KeepApart(id=R, vms=(V1, V2), continuous=True)
TOGETHER = KeepTogether(id=R, vms=(V1, V2), continuous=True)
TO_H2 = Migrate(vm=V1, source=H1, target=H2)
TO_H3 = Migrate(vm=V1, source=H1, target=H3)
V2_LEAVES = Migrate(vm=V2, source=H2, target=H3)


def risks(
    rule: Rule, action: Action, *running: Action, v2: str | None = "h2", more: tuple[Vm, ...] = ()
) -> list[tuple[str, str]]:
    """Return the codes and details of the risks of an action while others are under way."""
    hosts = [a_host("h1"), a_host("h2"), a_host("h3"), a_host("h4", state=HostState.STANDBY)]
    vms = [a_vm("v1", "h1"), a_vm("v2", v2), *more]
    ledger = CapacityLedger(a_cluster(*hosts, vms=vms, rules=(rule,)))
    for number, running_action in enumerate(running):
        step = a_step(f"s{number}", running_action)
        ledger.apply(ActionStarted(at_ms=0, step=step, attempt=1))
    requirements = requirements_of(ledger.draft.settings, ledger.draft).valid
    interleavings = InterleavingCheck(ledger.draft, requirements)
    found = interleavings.risks(ledger.draft, a_step("s", action))
    return [(risk.code, risk.detail) for risk in found]


def satisfy(constraint: str, **arguments: int | str | tuple[str, ...]) -> Satisfy:
    return Satisfy(id=R, constraint=constraint, arguments=arguments, continuous=True)


def test_a_leaving_vm_may_still_be_on_its_source_or_already_on_its_target() -> None:
    ((code, detail),) = risks(APART, TO_H2, V2_LEAVES)
    assert (code, facts(detail.partition(": ")[2])) == ("rule-violated", ["v1", "v2", "h2"])
    ((code, detail),) = risks(APART, TO_H3, V2_LEAVES)
    assert (code, facts(detail.partition(": ")[2])) == ("rule-violated", ["v1", "v2", "h3"])
    assert risks(APART, TO_H3) == []


def test_a_stopping_vm_may_still_run() -> None:
    stop = Shutdown(vm=V1, source=H1)
    assert risks(TOGETHER, Boot(vm=V2, target=H2), stop, v2=None)
    assert risks(TOGETHER, Boot(vm=V2, target=H1), v2=None) == []


@pytest.mark.parametrize("rule", [APART.but(hard=False), APART.but(continuous=False)])
def test_soft_and_discrete_rules_block_no_step(rule: Rule) -> None:
    assert risks(rule, TO_H2) == []


def test_rules_about_hosts_are_checked_for_every_order() -> None:
    assert risks(StayOff(id=R, vms=(V1,), hosts=(H2,), continuous=True), TO_H2)
    within = StayWithin(id=R, vms=(V1,), hosts=(H1, H2), continuous=True)
    assert risks(within, TO_H3)
    assert not risks(within, TO_H2)


def test_a_step_that_stops_a_vm_is_no_risk() -> None:
    assert risks(APART, Shutdown(vm=V1, source=H1)) == []


def test_every_constraint_of_the_library_is_checked() -> None:
    lonely = satisfy("Lonely", vs=("v1",))
    assert risks(lonely, TO_H2, V2_LEAVES), "v2 may still be there"
    assert risks(lonely, TO_H3, V2_LEAVES), "v2 may already be there"
    assert risks(lonely, TO_H3) == []


def test_effects_from_the_start_of_an_action_count() -> None:
    one_at_a_time = satisfy("MaxDisturbed", vs=("v1", "v2"), nb=1)
    assert risks(one_at_a_time, TO_H2) == []
    assert risks(one_at_a_time, TO_H2, V2_LEAVES)


def test_an_action_that_names_no_host_changes_the_host_of_its_vm() -> None:
    at_least_one = satisfy("MinRunning", vs=("v1", "v2"), nb=1)
    assert risks(at_least_one, Kill(vm=V1)) == []
    assert risks(at_least_one, Kill(vm=V1), Kill(vm=V2))


def test_agents_start_and_stop_with_their_host() -> None:
    agent = a_vm("a1", "h4", state=VmState.SLEEPING, agent=True)
    few = satisfy("RunningCapacity", ns=("h4",), nb=0)
    assert risks(few, PowerOn(host=HostId("h4")), more=(agent,))
    keep_up = satisfy("Running", v="a2")
    awake = a_vm("a2", "h3", agent=True)
    assert risks(keep_up, PowerOff(host=H3), more=(awake,))


def test_a_step_is_not_charged_with_an_existing_violation() -> None:
    assert risks(APART, Shutdown(vm=V2, source=H1), v2="h1") == []


def test_a_step_waits_while_too_many_actions_are_under_way() -> None:
    others = tuple(a_vm(f"w{number}", "h1") for number in range(6))
    leave = [Shutdown(vm=VmId(f"w{number}"), source=H1) for number in range(6)]
    full = satisfy("RunningCapacity", ns=("h1", "h2", "h3"), nb=9)
    found = risks(full, Boot(vm=V2, target=H2), *leave, v2=None, more=others)
    assert [code for code, _ in found] == ["open-actions-exceeded"]
    assert "6 other actions" in found[0][1]
    assert risks(full, Boot(vm=V2, target=H2), *leave[:4], v2=None, more=others) == []


@pytest.mark.parametrize(("most", "fine"), [(7, False), (8, True)])
def test_the_worst_case_of_a_sum_is_known_for_any_number_of_actions(
    most: int, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight may run if all starts succeed and none of the stops does: v1, six more, and v2."""
    monkeypatch.setattr(incremental, "INCREMENTAL_SIZE_MIN", 1)
    others = tuple(
        a_vm(f"w{number}", None if number % 2 else f"h{number // 2 + 1}") for number in range(6)
    )
    under_way: list[Action] = [
        Boot(vm=vm.id, target=(H1, H2, H3)[number // 2])
        if vm.host is None
        else Shutdown(vm=vm.id, source=vm.host)
        for number, vm in enumerate(others)
    ]
    for rule in (
        satisfy("RunningCapacity", ns=("h1", "h2", "h3", "h4"), nb=most),
        satisfy("TenantMax", name="", nb=most),
    ):
        found = risks(rule, Boot(vm=V2, target=H2), *under_way, v2=None, more=others)
        assert (found == []) is fine, found


def test_a_formula_that_may_lose_its_value_is_a_risk() -> None:
    shares = Satisfy(id=R, constraint="Shares", arguments={"n": "h2"}, continuous=True)
    own = "Shares(n : hosts) ::= 10 / card(running(n)) > 0"
    hosts = [a_host("h1"), a_host("h2"), a_host("h3")]
    vms = [a_vm("v1", "h1"), a_vm("v2", "h2")]
    ledger = CapacityLedger(a_cluster(*hosts, vms=vms, rules=(shares,), specification=own))
    interleavings = InterleavingCheck(
        ledger.draft, requirements_of(ledger.draft.settings, ledger.draft).valid
    )
    (risk,) = interleavings.risks(ledger.draft, a_step("s", V2_LEAVES))
    assert risk.code == "rule-violated"
    ledger.apply(VmCrashed(at_ms=1, vm=V2))
    interleavings.mark_touched(TouchedEntities((V2,), (H2,)))
    assert list(interleavings.risks(ledger.draft, a_step("s", TO_H2))) == [], (
        "the formula has no value without the step either"
    )
