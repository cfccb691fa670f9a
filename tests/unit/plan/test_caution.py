from __future__ import annotations

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import Action, Boot, Kill, Migrate, PowerOff, PowerOn, Shutdown
from equipoise.model.change.draft import Touched
from equipoise.model.event import ActionStarted, VmCrashed
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.vm import Vm, VmState
from equipoise.plan.caution import Caution
from equipoise.plan.ledger import Ledger
from equipoise.spec import tally
from equipoise.spec.rules import demands_of

H1, H2, H3, V1, V2 = HostId("h1"), HostId("h2"), HostId("h3"), VmId("v1"), VmId("v2")
R = RuleId("r")
APART = KeepApart(id=R, vms=(V1, V2), continuous=True)
TOGETHER = KeepTogether(id=R, vms=(V1, V2), continuous=True)
TO_H2 = Migrate(vm=V1, source=H1, target=H2)
TO_H3 = Migrate(vm=V1, source=H1, target=H3)
V2_LEAVES = Migrate(vm=V2, source=H2, target=H3)


def risks(
    rule: Rule, action: Action, *running: Action, v2: str | None = "h2", more: tuple[Vm, ...] = ()
) -> list[str]:
    hosts = [a_host("h1"), a_host("h2"), a_host("h3"), a_host("h4", state=HostState.STANDBY)]
    vms = [a_vm("v1", "h1"), a_vm("v2", v2), *more]
    ledger = Ledger(a_cluster(*hosts, vms=vms, rules=(rule,)))
    for number, one in enumerate(running):
        ledger.apply(ActionStarted(at_ms=0, step=a_step(f"s{number}", one), attempt=1))
    demands = demands_of(ledger.draft.settings, ledger.draft).clear
    caution = Caution(ledger.draft, demands)
    return [one.detail for one in caution.risks(ledger.draft, a_step("s", action))]


def satisfy(constraint: str, **arguments: int | str | tuple[str, ...]) -> Satisfy:
    return Satisfy(id=R, constraint=constraint, arguments=arguments, continuous=True)


def test_a_vm_that_is_leaving_may_still_be_there() -> None:
    told = "it may come to this: not so: host(v1) /= host(v2), with "
    assert risks(APART, TO_H2, V2_LEAVES)[0] == f"{told}host(v1) = h2, host(v2) = h2"
    assert risks(APART, TO_H3, V2_LEAVES)[0] == f"{told}host(v1) = h3, host(v2) = h3"
    assert risks(APART, TO_H3) == []


def test_a_vm_that_is_stopping_may_still_run() -> None:
    stop = Shutdown(vm=V1, source=H1)
    assert risks(TOGETHER, Boot(vm=V2, target=H2), stop, v2=None)
    assert risks(TOGETHER, Boot(vm=V2, target=H1), v2=None) == []


@pytest.mark.parametrize("rule", [APART.but(hard=False), APART.but(continuous=False)])
def test_soft_and_discrete_rules_ask_for_no_caution(rule: Rule) -> None:
    assert risks(rule, TO_H2) == []


def test_rules_about_hosts_hold_in_any_order() -> None:
    assert risks(StayOff(id=R, vms=(V1,), hosts=(H2,), continuous=True), TO_H2)
    within = StayWithin(id=R, vms=(V1,), hosts=(H1, H2), continuous=True)
    assert risks(within, TO_H3)
    assert not risks(within, TO_H2)


def test_what_does_not_end_in_running_is_no_risk() -> None:
    assert risks(APART, Shutdown(vm=V1, source=H1)) == []


def test_any_constraint_is_treated_with_caution() -> None:
    lonely = satisfy("Lonely", vs=("v1",))
    assert risks(lonely, TO_H2, V2_LEAVES), "v2 may still be there"
    assert risks(lonely, TO_H3, V2_LEAVES), "v2 may already be there"
    assert risks(lonely, TO_H3) == []


def test_what_an_action_does_from_its_start_on_counts_too() -> None:
    one_at_a_time = satisfy("MaxDisturbed", vs=("v1", "v2"), nb=1)
    assert risks(one_at_a_time, TO_H2) == []
    assert risks(one_at_a_time, TO_H2, V2_LEAVES)


def test_an_action_that_names_no_host_may_free_one() -> None:
    at_least_one = satisfy("MinRunning", vs=("v1", "v2"), nb=1)
    assert risks(at_least_one, Kill(vm=V1)) == []
    assert risks(at_least_one, Kill(vm=V1), Kill(vm=V2))


def test_agents_wake_and_sleep_with_their_host() -> None:
    agent = a_vm("a1", "h4", state=VmState.SLEEPING, agent=True)
    few = satisfy("RunningCapacity", ns=("h4",), nb=0)
    assert risks(few, PowerOn(host=HostId("h4")), more=(agent,))
    keep_up = satisfy("Running", v="a2")
    awake = a_vm("a2", "h3", agent=True)
    assert risks(keep_up, PowerOff(host=H3), more=(awake,))


def test_a_step_is_not_charged_with_what_is_broken_without_it() -> None:
    assert risks(APART, Shutdown(vm=V2, source=H1), v2="h1") == []


def test_with_too_much_under_way_a_step_waits() -> None:
    others = tuple(a_vm(f"w{number}", "h1") for number in range(6))
    leave = [Shutdown(vm=VmId(f"w{number}"), source=H1) for number in range(6)]
    full = satisfy("RunningCapacity", ns=("h1", "h2", "h3"), nb=9)
    told = risks(full, Boot(vm=V2, target=H2), *leave, v2=None, more=others)
    assert told == ["too much is under way to be sure: 6 other actions"]
    assert risks(full, Boot(vm=V2, target=H2), *leave[:4], v2=None, more=others) == []


@pytest.mark.parametrize(("most", "fine"), [(7, False), (8, True)])
def test_of_a_count_over_much_the_worst_case_is_known_however_much_is_under_way(
    most: int, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight may run if all starts succeed and none of the stops does: v1, six more, and v2."""
    monkeypatch.setattr(tally, "WORTHWHILE", 1)
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
        told = risks(rule, Boot(vm=V2, target=H2), *under_way, v2=None, more=others)
        assert (told == []) is fine, told


def test_what_may_come_to_have_no_value_is_a_risk() -> None:
    shares = Satisfy(id=R, constraint="Shares", arguments={"n": "h2"}, continuous=True)
    own = "Shares(n : hosts) ::= 10 / card(running(n)) > 0"
    hosts = [a_host("h1"), a_host("h2"), a_host("h3")]
    vms = [a_vm("v1", "h1"), a_vm("v2", "h2")]
    ledger = Ledger(a_cluster(*hosts, vms=vms, rules=(shares,), specification=own))
    caution = Caution(ledger.draft, demands_of(ledger.draft.settings, ledger.draft).clear)
    (risk,) = caution.risks(ledger.draft, a_step("s", V2_LEAVES))
    assert "10 divided by zero" in risk.detail
    ledger.apply(VmCrashed(at_ms=1, vm=V2))
    caution.notice(Touched((V2,), (H2,)))
    assert list(caution.risks(ledger.draft, a_step("s", TO_H2))) == [], "it was so without the step"
