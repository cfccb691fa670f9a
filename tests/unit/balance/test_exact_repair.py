"""Exact repair respects what no rule states: closed hosts."""

from __future__ import annotations

import pytest

from builders import a_cluster, a_host, a_vm
from equipoise.balance import BalanceDecider
from equipoise.model.action import Migrate
from equipoise.model.action_durations import Estimates
from equipoise.model.policy.balance import BalancePolicy, HostOverride
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import Satisfy

LONELY = Satisfy(id=RuleId("r"), constraint="Lonely", arguments={"vs": (VmId("a"),)})


@pytest.mark.parametrize("override", HostOverride)
def test_no_vm_moves_to_a_host_that_the_policy_closes(override: HostOverride) -> None:
    hosts = [a_host(name) for name in ("h1", "h2", "h3")]
    state = a_cluster(
        *hosts,
        vms=[a_vm("a", "h1"), a_vm("b", "h1")],
        rules=(LONELY,),
        balance=BalancePolicy(hosts={HostId("h2"): override}),
    )
    (intent,) = BalanceDecider(Estimates()).propose(state).intents
    assert isinstance(intent.action, Migrate)
    assert intent.action.target == "h3"
