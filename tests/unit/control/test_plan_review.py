"""Deciders review long plans, and a failed power-on causes an early pass."""

from __future__ import annotations

from collections.abc import Sequence

from builders import a_cluster, a_host, a_plan, a_step, a_vm, event_facts
from equipoise.control import ControlLoop
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.event import ActionStarted
from equipoise.model.host import HostState
from equipoise.model.plan import Intent, Proposal, Purpose, Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.store import MemoryJournal
from memory_world import MemoryWorld, Script

H1, H2, V1, V2 = HostId("h1"), HostId("h2"), VmId("v1"), VmId("v2")
SLOW_MS = 400_000


class Evacuator:
    """Empties h1, one VM after the other, and powers it off. Its review gives ``reason``."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        self.reviewed: list[list[str]] = []

    def propose(self, snapshot: Snapshot) -> Proposal:
        if snapshot.at_ms > 0:
            return Proposal(decider="evacuator", purpose=Purpose.SLEEP, reason="done")
        moves = [Migrate(vm=vm, source=H1, target=H2) for vm in (V1, V2)]
        first, second = (
            Intent(id=StepId(move.vm), action=move, duration_ms=SLOW_MS) for move in moves
        )
        off = Intent(
            id=StepId("off"),
            action=PowerOff(host=H1),
            duration_ms=1000,
            after=(first.id, second.id),
        )
        return Proposal(
            decider="evacuator",
            purpose=Purpose.SLEEP,
            intents=(first, second.but(after=(first.id,)), off),
        )

    def review(self, snapshot: Snapshot, remaining: Sequence[Step]) -> str:
        assert snapshot.history, "the loop observes before each review"
        self.reviewed.append([step.id.rsplit("/", 1)[1] for step in remaining])
        return self.reason


def recorded(decider: Evacuator) -> list[str]:
    """Run the loop, and return the time in seconds and the facts of every event."""
    cluster = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    journal = MemoryJournal()
    ControlLoop(MemoryWorld(cluster), journal, deciders=[decider]).run(until_ms=1_000_000)
    return [f"{event.at_ms // 1000} {event_facts(event)}" for event in journal.events()]


def test_a_plan_continues_when_the_review_has_no_reason() -> None:
    decider = Evacuator()
    assert "801 plan_ended plan-3 done 3 0 0" in recorded(decider)
    assert decider.reviewed == [["v2", "off"], ["off"]], (
        "a plan without waiting steps has no review"
    )


def test_a_review_with_a_reason_cancels_the_remaining_steps() -> None:
    facts = recorded(Evacuator("demand has risen"))
    assert "300 plan_cancelled plan-3" in facts
    assert "400 action_finished plan-3/evacuator/v1 1" in facts, "a running step finishes"
    assert "400 plan_ended plan-3 cancelled 1 0 2" in facts
    assert "400 proposal_made" in facts, "the next pass follows at once"


class PowersOn:
    """Powers on one host; after a failure it powers on the other one."""

    def propose(self, snapshot: Snapshot) -> Proposal:
        if any(host.state is HostState.ON for host in snapshot.hosts.values()):
            return Proposal(decider="power", purpose=Purpose.WAKE, reason="a host is on")
        host = next(name for name in snapshot.hosts if name not in snapshot.switches)
        power_on = Intent(id=StepId(host), action=PowerOn(host=host), duration_ms=60_000)
        return Proposal(decider="power", purpose=Purpose.WAKE, intents=(power_on,))


def test_after_a_failed_power_on_the_next_pass_powers_on_another_host() -> None:
    cluster = a_cluster(
        a_host("h1", state=HostState.STANDBY), a_host("h2", state=HostState.STANDBY)
    )
    script = Script(failures={StepId("plan-3/power/h1"): 1})
    journal = MemoryJournal()
    loop = ControlLoop(MemoryWorld(cluster, script), journal, deciders=[PowersOn()])
    loop.run(until_ms=200_000)
    starts = [
        (event.at_ms // 1000, event.step.action)
        for event in journal.events()
        if isinstance(event, ActionStarted)
    ]
    assert starts == [(0, PowerOn(host=H1)), (60, PowerOn(host=H2))]
    changes = loop.snapshot().switches
    assert (changes[H1].on, changes[H1].failed) == (True, True)
    assert (changes[H2].on, changes[H2].failed) == (True, False)


def test_a_plan_of_the_caller_is_not_reviewed() -> None:
    decider = Evacuator("demand has risen")
    cluster = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    loop = ControlLoop(MemoryWorld(cluster), MemoryJournal(), deciders=[decider])
    slow = Migrate(vm=V1, source=H1, target=H2)
    loop.submit(
        a_plan(
            a_step("a", slow, 0, SLOW_MS),
            a_step("b", slow.but(vm=V2), SLOW_MS, 2 * SLOW_MS, "a"),
            base_version=1,
        )
    )
    loop.run(until_ms=900_000)
    assert decider.reviewed == []
    assert loop.snapshot().vms[V2].host == "h2"


def test_a_restarted_loop_continues_after_a_finished_power_on() -> None:
    cluster = a_cluster(a_host("h1"), a_host("h2", state=HostState.STANDBY), vms=[a_vm("v1", "h1")])
    world, journal = MemoryWorld(cluster), MemoryJournal()
    first = ControlLoop(world, journal)
    first.submit(
        a_plan(
            a_step("on", PowerOn(host=H2), 0, 1000),
            a_step("move", Migrate(vm=V1, source=H1, target=H2), 1000, 9000, "on"),
            base_version=1,
        )
    )
    first.run(until_ms=5000)
    second = ControlLoop(world, journal)
    assert not second.idle
    second.finish()
    assert second.snapshot().vms[V1].host == "h2"


def test_a_restarted_loop_reviews_the_running_plan() -> None:
    cluster = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    world, journal = MemoryWorld(cluster), MemoryJournal()
    ControlLoop(world, journal, deciders=[Evacuator()]).run(until_ms=10_000)
    decider = Evacuator("demand has risen")
    ControlLoop(world, journal, deciders=[decider]).run(until_ms=1_000_000)
    assert decider.reviewed
    assert world.observe().hosts[H1].state is HostState.ON
