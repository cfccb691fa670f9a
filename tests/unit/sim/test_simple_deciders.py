"""The simple deciders propose only actions that the gate accepts, and starve no VM."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_cluster, a_host, a_vm, an_inventory, figures
from equipoise.model.action import Boot, Migrate, PowerOff, PowerOn, describe
from equipoise.model.action_durations import Estimates
from equipoise.model.host import HostState
from equipoise.model.plan import Proposal, Purpose
from equipoise.model.quantity import HostId, PlanId, RuleId, VmId
from equipoise.model.rule import StayOff
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import MemorySettings, RestartPriority, VmState
from equipoise.plan import Refusal, VerifiedPlan, order, verify
from equipoise.sim.simple_deciders import ACTIONS_MAX, RestartDecider, ShuffleDecider


def a_scenario(**fields: Any) -> Scenario:
    return Scenario(name="s", duration_s=1, cluster=an_inventory(), **fields)


def proposed(proposal: Proposal) -> list[str]:
    return [describe(intent.action) for intent in proposal.intents]


def passes(snapshot: Snapshot, proposal: Proposal) -> bool:
    plan = order(snapshot, proposal.intents, PlanId("p"))
    return not isinstance(plan, Refusal) and isinstance(verify(snapshot, plan), VerifiedPlan)


def test_restart_starts_ready_vms_on_the_emptiest_host() -> None:
    hosts = [a_host("h1"), a_host("h2"), a_host("off", state=HostState.STANDBY)]
    vms = [a_vm("x", "h1", memory_mib=4096), a_vm("a", memory_mib=3500), a_vm("b"), a_vm("c")]
    snapshot = a_cluster(*hosts, vms=vms)
    proposal = RestartDecider(a_scenario()).propose(snapshot)
    assert proposed(proposal) == ["boot a on h2", "boot b on h2", "boot c on h1"]
    assert proposal.purpose is Purpose.RESTART
    assert figures(proposal.reason) == [3, 3]
    assert passes(snapshot, proposal)


def test_restart_starts_vms_by_their_priority() -> None:
    levels = [RestartPriority.LOW, RestartPriority.MEDIUM, RestartPriority.HIGH] * 8
    vms = [a_vm(f"v{n:02}", restart_priority=level) for n, level in enumerate(levels)]
    hosts = [a_host(f"h{n}", memory_mib=16384) for n in range(3)]
    proposal = RestartDecider(a_scenario()).propose(a_cluster(*hosts, vms=vms))
    started = [action.split()[1] for action in proposed(proposal)]
    urgent = [vm.id for vm in (*vms[2::3], *vms[1::3], *vms[0::3])]
    assert started == urgent[:ACTIONS_MAX]


def test_restart_ignores_vms_that_are_not_ready() -> None:
    others = [
        a_vm("asleep", "h1", state=VmState.SLEEPING),
        a_vm("raw", state=VmState.INIT, template="x"),
        a_vm("done", state=VmState.TERMINATED),
        a_vm("runs", "h1"),
    ]
    proposal = RestartDecider(a_scenario()).propose(a_cluster(vms=others))
    assert proposal.intents == ()
    assert figures(proposal.reason) == [0, 0]


def test_restart_proposes_nothing_without_a_host_on() -> None:
    cluster = a_cluster(a_host("h1", state=HostState.FAILED), vms=[a_vm("a")])
    assert RestartDecider(a_scenario()).propose(cluster).intents == ()


def test_restart_proposes_as_many_vms_as_fit() -> None:
    reserved = MemorySettings(reservation_mib=1024)
    vms = [a_vm(f"v{n}", memory=reserved) for n in range(5)]
    snapshot = a_cluster(a_host("h1", memory_mib=2048), vms=vms)
    proposal = RestartDecider(a_scenario()).propose(snapshot)
    assert 0 < len(proposal.intents) <= 2
    assert passes(snapshot, proposal)


def test_restart_uses_the_estimates_of_the_scenario() -> None:
    scenario = a_scenario(estimates=Estimates(boot_ms=12_345))
    (intent,) = RestartDecider(scenario).propose(a_cluster(vms=[a_vm("a")])).intents
    assert intent.duration_ms == 12_345


def test_restart_limits_its_actions_per_pass() -> None:
    vms = [a_vm(f"v{n}", memory_mib=1) for n in range(2 * ACTIONS_MAX)]
    assert len(RestartDecider(a_scenario()).propose(a_cluster(vms=vms)).intents) == ACTIONS_MAX


def test_vms_that_cannot_start_do_not_block_others() -> None:
    stuck = [VmId(f"a{n}") for n in range(ACTIONS_MAX)]
    banned = StayOff(id=RuleId("r"), vms=tuple(stuck), hosts=(HostId("h1"),), continuous=True)
    snapshot = a_cluster(a_host("h1"), vms=[*map(a_vm, stuck), a_vm("z")], rules=(banned,))
    assert "boot z on h1" in proposed(RestartDecider(a_scenario()).propose(snapshot))


@pytest.mark.parametrize("seed", range(12))
def test_shuffle_proposes_only_accepted_actions(seed: int) -> None:
    hosts = [a_host(f"h{n}", memory_mib=3072) for n in range(4)]
    hosts += [a_host("off", state=HostState.STANDBY), a_host("dead", state=HostState.FAILED)]
    vms = [a_vm(f"v{n}", f"h{n % 2}") for n in range(6)]
    vms += [a_vm("agent", "h2", agent=True), a_vm("ready")]
    snapshot = a_cluster(*hosts, vms=vms)
    shuffle = ShuffleDecider(a_scenario(seed=seed))
    for _ in range(5):
        proposal = shuffle.propose(snapshot)
        assert not proposal.intents or passes(snapshot, proposal)
        for intent in proposal.intents:
            assert isinstance(intent.action, Migrate | PowerOn | PowerOff)
            assert not isinstance(intent.action, Migrate) or intent.action.vm != "agent"


def test_shuffle_depends_on_the_seed_and_varies() -> None:
    vms = [a_vm(f"v{n}", f"h{n % 4}") for n in range(8)]
    snapshot = a_cluster(*(a_host(f"h{n}") for n in range(4)), vms=vms)
    shuffle, same, other = (ShuffleDecider(a_scenario(seed=seed)) for seed in (1, 1, 2))
    first = [proposed(shuffle.propose(snapshot)) for _ in range(4)]
    assert first == [proposed(same.propose(snapshot)) for _ in range(4)]
    assert first != [proposed(other.propose(snapshot)) for _ in range(4)]
    assert len(set(map(tuple, first))) > 1


def test_shuffle_never_switches_off_the_last_empty_host() -> None:
    for seed in range(20):
        snapshot = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v", "h1")])
        intents = ShuffleDecider(a_scenario(seed=seed)).propose(snapshot).intents
        assert not any(isinstance(intent.action, PowerOff) for intent in intents)


def test_shuffle_proposes_nothing_without_hosts_on() -> None:
    shuffle = ShuffleDecider(a_scenario())
    for snapshot in (a_cluster(), a_cluster(a_host("h1", state=HostState.FAILED))):
        for _ in range(5):
            assert shuffle.propose(snapshot).intents == ()


def test_no_simple_decider_starts_an_agent() -> None:
    snapshot = a_cluster(vms=[a_vm("a", agent=True)])
    proposal = RestartDecider(a_scenario()).propose(snapshot)
    assert not any(isinstance(intent.action, Boot) for intent in proposal.intents)
