"""Plans that take long are looked at again, and a host that does not wake makes the loop think."""

from __future__ import annotations

from collections.abc import Sequence

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.cli.story import tell
from equipoise.control import Loop
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.host import HostState
from equipoise.model.plan import Intent, Proposal, Purpose, Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.store import MemoryJournal
from memory_world import MemoryWorld, Script

H1, H2, V1, V2 = HostId("h1"), HostId("h2"), VmId("v1"), VmId("v2")
SLOW_MS = 400_000


class Empties:
    """Wants h1 empty and asleep, one VM after the other; may change its mind."""

    def __init__(self, why: str = "") -> None:
        self.why = why
        self.asked: list[list[str]] = []

    def propose(self, snapshot: Snapshot) -> Proposal:
        if snapshot.at_ms > 0:
            return Proposal(decider="empties", purpose=Purpose.SLEEP, reason="done")
        moves = [Migrate(vm=vm, source=H1, target=H2) for vm in (V1, V2)]
        first, second = (
            Intent(id=StepId(one.vm), action=one, duration_ms=SLOW_MS) for one in moves
        )
        off = Intent(
            id=StepId("off"),
            action=PowerOff(host=H1),
            duration_ms=1000,
            after=(first.id, second.id),
        )
        return Proposal(
            decider="empties",
            purpose=Purpose.SLEEP,
            intents=(first, second.but(after=(first.id,)), off),
        )

    def reconsider(self, snapshot: Snapshot, left: Sequence[Step]) -> str:
        assert snapshot.history, "it is shown what was observed just now"
        self.asked.append([one.id.rsplit("/", 1)[1] for one in left])
        return self.why


def told(decider: Empties) -> list[str]:
    cluster = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    journal = MemoryJournal()
    Loop(MemoryWorld(cluster), journal, deciders=[decider]).run(until_ms=1_000_000)
    return [f"{event.at_ms // 1000} {tell(event)}" for event in journal.events()]


def test_a_plan_that_is_still_right_goes_on() -> None:
    decider = Empties()
    assert "801 plan plan-3 ended, done: 3 finished" in told(decider)
    assert decider.asked == [["v2", "off"], ["off"]], "while anything waits"


def test_what_is_left_of_a_plan_is_dropped_once_it_is_no_longer_right() -> None:
    said = told(Empties("demand has risen"))
    assert "300 plan plan-3 cancelled: demand has risen" in said
    assert "400 step plan-3/empties/v1 finished" in said, "what runs comes to its end"
    assert "400 plan plan-3 ended, cancelled: 1 finished, 2 skipped" in said
    assert "400 empties proposed nothing, because done" in said, "and it thinks again at once"


class Wakes:
    """Wants a host on, another one after a failure."""

    def propose(self, snapshot: Snapshot) -> Proposal:
        if any(host.state is HostState.ON for host in snapshot.hosts.values()):
            return Proposal(decider="wakes", purpose=Purpose.WAKE, reason="one is on")
        host = next(one for one in snapshot.hosts if one not in snapshot.switches)
        wish = Intent(id=StepId(host), action=PowerOn(host=host), duration_ms=60_000)
        return Proposal(decider="wakes", purpose=Purpose.WAKE, intents=(wish,))


def test_a_host_that_does_not_wake_is_given_up_at_once_and_another_one_is_woken() -> None:
    cluster = a_cluster(
        a_host("h1", state=HostState.STANDBY), a_host("h2", state=HostState.STANDBY)
    )
    script = Script(failures={StepId("plan-3/wakes/h1"): 1})
    journal = MemoryJournal()
    loop = Loop(MemoryWorld(cluster, script), journal, deciders=[Wakes()])
    loop.run(until_ms=200_000)
    starts = [
        (event.at_ms // 1000, tell(event)) for event in journal.events() if "started" in tell(event)
    ]
    assert [(at, said.split(": ")[1]) for at, said in starts] == [
        (0, "power on h1"),
        (60, "power on h2"),
    ]
    found = loop.snapshot().switches
    assert (found[H1].on, found[H1].failed) == (True, True)
    assert (found[H2].on, found[H2].failed) == (True, False)


def test_a_plan_that_somebody_else_made_is_not_looked_at_again() -> None:
    decider = Empties("never mind")
    cluster = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    loop = Loop(MemoryWorld(cluster), MemoryJournal(), deciders=[decider])
    slow = Migrate(vm=V1, source=H1, target=H2)
    loop.submit(
        a_plan(
            a_step("a", slow, 0, SLOW_MS),
            a_step("b", slow.but(vm=V2), SLOW_MS, 2 * SLOW_MS, "a"),
            base_version=1,
        )
    )
    loop.run(until_ms=900_000)
    assert decider.asked == []
    assert loop.snapshot().vms[V2].host == "h2"


def test_a_loop_goes_on_after_a_crash_with_a_host_that_has_woken() -> None:
    cluster = a_cluster(a_host("h1"), a_host("h2", state=HostState.STANDBY), vms=[a_vm("v1", "h1")])
    world, journal = MemoryWorld(cluster), MemoryJournal()
    first = Loop(world, journal)
    first.submit(
        a_plan(
            a_step("on", PowerOn(host=H2), 0, 1000),
            a_step("move", Migrate(vm=V1, source=H1, target=H2), 1000, 9000, "on"),
            base_version=1,
        )
    )
    first.run(until_ms=5000)
    second = Loop(world, journal)
    assert not second.idle
    second.finish()
    assert second.snapshot().vms[V1].host == "h2"


def test_after_a_crash_the_plan_under_way_is_still_looked_at_again() -> None:
    cluster = a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    world, journal = MemoryWorld(cluster), MemoryJournal()
    Loop(world, journal, deciders=[Empties()]).run(until_ms=10_000)
    decider = Empties("demand has risen")
    Loop(world, journal, deciders=[decider]).run(until_ms=1_000_000)
    assert decider.asked
    assert world.observe().hosts[H1].state is HostState.ON
