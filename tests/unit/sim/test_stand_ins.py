"""The stand-ins: they want only what the gate lets pass, and do not starve anybody."""

from __future__ import annotations

from typing import Any

import pytest

from builders import a_cluster, a_host, a_vm, an_inventory
from equipoise.model.action import Boot, Migrate, PowerOff, PowerOn, describe
from equipoise.model.estimate import Estimates
from equipoise.model.host import HostState
from equipoise.model.plan import Proposal, Purpose
from equipoise.model.quantity import HostId, PlanId, RuleId, VmId
from equipoise.model.rule import StayOff
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.scenario import Scenario
from equipoise.model.vm import MemorySettings, VmState
from equipoise.plan import Refusal, VerifiedPlan, order, verify
from equipoise.sim.stand_ins import AT_ONCE, Restart, Shuffle


def a_story(**fields: Any) -> Scenario:
    return Scenario(name="s", duration_s=1, cluster=an_inventory(), **fields)


def wanted(proposal: Proposal) -> list[str]:
    return [describe(intent.action) for intent in proposal.intents]


def passes(snapshot: Snapshot, proposal: Proposal) -> bool:
    plan = order(snapshot, proposal.intents, PlanId("p"))
    return not isinstance(plan, Refusal) and isinstance(verify(snapshot, plan), VerifiedPlan)


def test_restart_starts_what_is_ready_where_there_is_most_room() -> None:
    hosts = [a_host("h1"), a_host("h2"), a_host("off", state=HostState.STANDBY)]
    vms = [a_vm("x", "h1", memory_mib=4096), a_vm("a", memory_mib=3500), a_vm("b"), a_vm("c")]
    snapshot = a_cluster(*hosts, vms=vms)
    proposal = Restart(a_story()).propose(snapshot)
    assert wanted(proposal) == ["boot a on h2", "boot b on h2", "boot c on h1"]
    assert proposal.purpose is Purpose.REPAIR
    assert proposal.reason == "3 of 3 ready VMs can be started"
    assert passes(snapshot, proposal)


def test_restart_leaves_alone_what_is_not_ready() -> None:
    others = [
        a_vm("asleep", "h1", state=VmState.SLEEPING),
        a_vm("raw", state=VmState.INIT, template="x"),
        a_vm("done", state=VmState.TERMINATED),
        a_vm("runs", "h1"),
    ]
    proposal = Restart(a_story()).propose(a_cluster(vms=others))
    assert proposal.intents == ()
    assert proposal.reason == "0 of 0 ready VMs can be started"


def test_restart_wants_nothing_when_everything_is_off() -> None:
    dark = a_cluster(a_host("h1", state=HostState.FAILED), vms=[a_vm("a")])
    assert Restart(a_story()).propose(dark).intents == ()


def test_restart_takes_as_many_as_there_is_room_for() -> None:
    reserved = MemorySettings(reservation_mib=1024)
    vms = [a_vm(f"v{n}", memory=reserved) for n in range(5)]
    snapshot = a_cluster(a_host("h1", memory_mib=2048), vms=vms)
    proposal = Restart(a_story()).propose(snapshot)
    assert 0 < len(proposal.intents) <= 2
    assert passes(snapshot, proposal)


def test_restart_goes_by_the_estimates_of_the_story() -> None:
    story = a_story(estimates=Estimates(boot_ms=12_345))
    (intent,) = Restart(story).propose(a_cluster(vms=[a_vm("a")])).intents
    assert intent.duration_ms == 12_345


def test_restart_wants_only_so_much_at_once() -> None:
    vms = [a_vm(f"v{n}", memory_mib=1) for n in range(2 * AT_ONCE)]
    assert len(Restart(a_story()).propose(a_cluster(vms=vms)).intents) == AT_ONCE


def test_those_who_cannot_start_do_not_keep_the_others_waiting_for_ever() -> None:
    stuck = [VmId(f"a{n}") for n in range(AT_ONCE)]
    banned = StayOff(id=RuleId("r"), vms=tuple(stuck), hosts=(HostId("h1"),), continuous=True)
    snapshot = a_cluster(a_host("h1"), vms=[*map(a_vm, stuck), a_vm("z")], rules=(banned,))
    assert "boot z on h1" in wanted(Restart(a_story()).propose(snapshot))


@pytest.mark.parametrize("seed", range(12))
def test_shuffle_wants_anything_that_the_gate_lets_pass(seed: int) -> None:
    hosts = [a_host(f"h{n}", memory_mib=3072) for n in range(4)]
    hosts += [a_host("off", state=HostState.STANDBY), a_host("dead", state=HostState.FAILED)]
    vms = [a_vm(f"v{n}", f"h{n % 2}") for n in range(6)]
    vms += [a_vm("agent", "h2", agent=True), a_vm("ready")]
    snapshot = a_cluster(*hosts, vms=vms)
    shuffle = Shuffle(a_story(seed=seed))
    for _ in range(5):
        proposal = shuffle.propose(snapshot)
        assert not proposal.intents or passes(snapshot, proposal)
        for intent in proposal.intents:
            assert isinstance(intent.action, Migrate | PowerOn | PowerOff)
            assert not isinstance(intent.action, Migrate) or intent.action.vm != "agent"


def test_shuffle_is_the_same_for_the_same_seed_and_goes_on() -> None:
    vms = [a_vm(f"v{n}", f"h{n % 4}") for n in range(8)]
    snapshot = a_cluster(*(a_host(f"h{n}") for n in range(4)), vms=vms)
    one, same, other = (Shuffle(a_story(seed=seed)) for seed in (1, 1, 2))
    first = [wanted(one.propose(snapshot)) for _ in range(4)]
    assert first == [wanted(same.propose(snapshot)) for _ in range(4)]
    assert first != [wanted(other.propose(snapshot)) for _ in range(4)]
    assert len(set(map(tuple, first))) > 1


def test_shuffle_never_switches_off_the_last_empty_host() -> None:
    for seed in range(20):
        snapshot = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v", "h1")])
        intents = Shuffle(a_story(seed=seed)).propose(snapshot).intents
        assert not any(isinstance(one.action, PowerOff) for one in intents)


def test_shuffle_wants_nothing_of_a_cluster_that_is_dark_or_empty() -> None:
    shuffle = Shuffle(a_story())
    for snapshot in (a_cluster(), a_cluster(a_host("h1", state=HostState.FAILED))):
        for _ in range(5):
            assert shuffle.propose(snapshot).intents == ()


def test_neither_wants_to_start_an_agent() -> None:
    snapshot = a_cluster(vms=[a_vm("a", agent=True)])
    proposal = Restart(a_story()).propose(snapshot)
    assert not any(isinstance(intent.action, Boot) for intent in proposal.intents)
