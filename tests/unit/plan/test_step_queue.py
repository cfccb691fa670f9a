"""A parked step starts as soon as what it waits for has happened, and not later."""

from __future__ import annotations

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import Action, Allocate, Boot, Migrate, PowerOff, Shutdown
from equipoise.model.plan import ConcurrencyLimits
from equipoise.model.quantity import HostId, ResourceName, RuleId, VmId
from equipoise.model.rule import KeepTogether
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.step_queue import dry_run

H1, H2, H3, V1, V2 = HostId("h1"), HostId("h2"), HostId("h3"), VmId("v1"), VmId("v2")
LICENCES = ResourceName("licences")
HOSTS = [a_host(f"h{n}", capacity={LICENCES: 2}) for n in range(1, 5)]
BUSY = a_vm("v9", "h4")
ELSEWHERE = a_step("long", Shutdown(vm=VmId("v9"), source=HostId("h4")), 0, 9000)
"""A step that is always under way, so that no step is released because all others have ended."""


def starts(snapshot: Snapshot, *actions: tuple[str, Action, int]) -> dict[str, int]:
    steps = [a_step(name, action, 0, length) for name, action, length in actions]
    result = dry_run(snapshot, [ELSEWHERE, *steps], {step.id: () for step in [ELSEWHERE, *steps]})
    assert not result.blocked
    return {step.id: step.start_ms for step in result.timed if step.id != ELSEWHERE.id}


def test_a_step_starts_when_the_vm_of_its_rule_has_stopped() -> None:
    rule = KeepTogether(id=RuleId("r"), vms=(V1, V2), continuous=True)
    snapshot = a_cluster(*HOSTS, vms=[a_vm("v1", "h1"), a_vm("v2"), BUSY], rules=(rule,))
    stop, start = Shutdown(vm=V1, source=H1), Boot(vm=V2, target=H3)
    assert starts(snapshot, ("b", start, 1000), ("a", stop, 700)) == {"a": 0, "b": 700}


def test_an_allocation_starts_when_its_host_has_free_capacity() -> None:
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1", consumption={LICENCES: 2}), BUSY]
    snapshot = a_cluster(*HOSTS, vms=vms)
    grow = Allocate(vm=V1, resource=LICENCES, amount=2)
    leave = Migrate(vm=V2, source=H1, target=H2)
    assert starts(snapshot, ("b", grow, 10), ("a", leave, 700)) == {"a": 0, "b": 700}


def test_a_host_is_switched_when_the_action_on_its_agent_has_ended() -> None:
    snapshot = a_cluster(*HOSTS, vms=[a_vm("v1", "h1", agent=True), BUSY])
    change = Allocate(vm=V1, resource=LICENCES, amount=1)
    off = PowerOff(host=H1)
    assert starts(snapshot, ("a", change, 700), ("b", off, 10)) == {"a": 0, "b": 700}


def test_a_full_host_releases_one_step_at_a_time_and_skips_blocked_steps() -> None:
    vms = [a_vm(f"v{n}", "h1") for n in range(1, 5)]
    full = a_vm("v8", "h2", consumption={LICENCES: 2})
    hungry = vms[2].but(consumption={LICENCES: 1})
    snapshot = a_cluster(
        *HOSTS,
        vms=[*vms[:2], hungry, vms[3], full, BUSY],
        limits=ConcurrencyLimits(actions_per_host=1),
    )
    moves = [
        (f"m{n}", Migrate(vm=VmId(f"v{n}"), source=H1, target=H2 if n == 3 else H3), 100)
        for n in range(1, 5)
    ]
    leave = ("l", Migrate(vm=VmId("v8"), source=H2, target=HostId("h4")), 1000)
    start_ms = starts(snapshot, *moves, leave)
    assert (start_ms["m1"], start_ms["m2"], start_ms["m4"]) == (0, 100, 200)
    assert start_ms["m3"] > start_ms["l"]
