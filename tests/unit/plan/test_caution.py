from __future__ import annotations

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import Action, Boot, Migrate, Shutdown
from equipoise.model.event import ActionStarted
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, StayOff, StayWithin
from equipoise.plan.caution import Caution
from equipoise.plan.ledger import Ledger

H1, H2, H3, V1, V2 = HostId("h1"), HostId("h2"), HostId("h3"), VmId("v1"), VmId("v2")
R = RuleId("r")
APART = KeepApart(id=R, vms=(V1, V2), continuous=True)
TOGETHER = KeepTogether(id=R, vms=(V1, V2), continuous=True)


def risks(rule: Rule, action: Action, *running: Action, v2: str | None = "h2") -> list[str]:
    hosts = [a_host("h1"), a_host("h2"), a_host("h3")]
    ledger = Ledger(a_cluster(*hosts, vms=[a_vm("v1", "h1"), a_vm("v2", v2)]))
    for number, one in enumerate(running):
        ledger.apply(ActionStarted(at_ms=0, step=a_step(f"s{number}", one), attempt=1))
    return [one.detail for one in Caution([rule]).risks(ledger.draft, a_step("s", action))]


TO_H2 = Migrate(vm=V1, source=H1, target=H2)
TO_H3 = Migrate(vm=V1, source=H1, target=H3)
V2_LEAVES = Migrate(vm=V2, source=H2, target=H3)


def test_a_vm_that_is_leaving_may_still_be_there() -> None:
    assert risks(APART, TO_H2, V2_LEAVES) == ["v2 might still be on h2 when v1 comes"]
    assert risks(APART, TO_H3, V2_LEAVES) == ["v2 might still be on h3 when v1 comes"]
    assert risks(APART, TO_H3) == []


def test_a_vm_that_is_stopping_may_still_run() -> None:
    stop = Shutdown(vm=V1, source=H1)
    assert risks(TOGETHER, Boot(vm=V2, target=H2), stop, v2=None) == ["v1 might be on h1, v2 on h2"]
    assert risks(TOGETHER, Boot(vm=V2, target=H1), v2=None) == []


@pytest.mark.parametrize("rule", [APART.but(hard=False), APART.but(continuous=False)])
def test_soft_and_discrete_rules_ask_for_no_caution(rule: Rule) -> None:
    assert risks(rule, TO_H2) == []


def test_rules_about_hosts_hold_in_any_order() -> None:
    assert risks(StayOff(id=R, vms=(V1,), hosts=(H2,), continuous=True), TO_H2)
    assert risks(StayWithin(id=R, vms=(V1,), hosts=(H2,), continuous=True), TO_H3)
    assert not risks(StayWithin(id=R, vms=(V1,), hosts=(H2,), continuous=True), TO_H2)


def test_what_does_not_end_in_running_is_no_risk() -> None:
    assert risks(APART, Shutdown(vm=V1, source=H1)) == []
