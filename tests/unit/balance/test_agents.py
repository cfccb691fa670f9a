"""Required agents: VMs run only where an agent runs that they require."""

from __future__ import annotations

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.api.advice import place, recommend
from equipoise.model.action import Boot, Migrate, PowerOn
from equipoise.model.host import Host, HostState, RequestedHostState
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.rule import Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.plan import VerifiedPlan, verify

RULE = Satisfy(
    id=RuleId("r"), constraint="AgentReady", arguments={"key": "shield"}, continuous=True
)
NEW = a_vm("new", demand=Demand(cpu_mhz=100, memory_mib=100))


def an_agent(host: Host) -> Vm:
    state = VmState.RUNNING if host.state is HostState.ON else VmState.SLEEPING
    return a_vm(f"agent-{host.id}", host.id, agent=True, state=state, labels={"shield": "yes"})


def shielded(*hosts: Host, agents: str, vms: tuple[Vm, ...] = ()) -> Snapshot:
    """A cluster with the rule, and agents on some of its hosts."""
    found = [an_agent(host) for host in hosts if host.id in agents.split()]
    return a_cluster(*hosts, vms=(*found, *vms), rules=(RULE,))


def test_a_drain_goes_to_hosts_with_the_agent_only() -> None:
    hosts = [a_host("h1", requested=RequestedHostState.MAINTENANCE), a_host("h2"), a_host("h3")]
    vms = tuple(a_vm(f"v{n}", "h1") for n in range(4))
    advice = recommend(shielded(*hosts, agents="h1 h3", vms=vms))
    assert {move.target for move in advice.moves} == {"h3"}
    assert len(advice.moves) == 4


def test_balance_leaves_a_host_without_the_agent_empty() -> None:
    busy = tuple(a_vm(f"v{n}", "h1", demand=Demand(cpu_mhz=900, memory_mib=500)) for n in range(4))
    hosts = [a_host("h1"), a_host("h2")]
    assert recommend(shielded(*hosts, agents="h1 h2", vms=busy)).moves
    assert not recommend(shielded(*hosts, agents="h1", vms=busy)).moves


def test_a_start_avoids_hosts_without_the_agent() -> None:
    state = shielded(a_host("h1"), a_host("h2"), agents="h2")
    (start,) = place(state, [NEW]).placed
    assert start.host == "h2"
    assert not start.alternatives


def test_a_start_wakes_the_standby_host_that_has_the_agent() -> None:
    hosts = [
        a_host("h1"),
        a_host("s1", state=HostState.STANDBY),
        a_host("s2", state=HostState.STANDBY),
    ]
    advice = place(shielded(*hosts, agents="s2"), [NEW])
    assert advice.wakes == ("s2",)
    assert [start.host for start in advice.placed] == ["s2"]


@pytest.mark.parametrize("ready", [True, False])
def test_the_gate_waits_for_the_agent(ready: bool) -> None:
    """An agent that has crashed sleeps on its host; nothing starts there or moves there."""
    state = shielded(a_host("h1"), a_host("h2"), agents="h1 h2", vms=(a_vm("v", "h1"), NEW))
    agent = state.vms[VmId("agent-h2")]
    if not ready:
        vms = (*(vm for vm in state.vms.values() if vm is not agent),)
        down = agent.but(state=VmState.SLEEPING)
        state = Snapshot.of(state.inventory().but(vms=(*vms, down)))
    here, there = HostId("h1"), HostId("h2")
    migrate = Migrate(vm=VmId("v"), source=here, target=there)
    for action in (Boot(vm=VmId("new"), target=there), migrate):
        verdict = verify(state, a_plan(a_step("s", action)))
        assert isinstance(verdict, VerifiedPlan) is ready


def test_a_start_follows_the_power_on_that_starts_the_agent() -> None:
    state = shielded(a_host("s", state=HostState.STANDBY), agents="s", vms=(NEW,))
    wake = a_step("wake", PowerOn(host=HostId("s")))
    boot = a_step("boot", Boot(vm=VmId("new"), target=HostId("s")), 1000, 2000, "wake")
    assert isinstance(verify(state, a_plan(wake, boot)), VerifiedPlan)
