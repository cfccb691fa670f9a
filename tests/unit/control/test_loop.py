from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from hypothesis import given

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.cli.story import tell
from equipoise.control import Loop
from equipoise.control.drift import drift
from equipoise.model import transition
from equipoise.model.action import Migrate
from equipoise.model.event import Event, HostFailed, PlanEnded, PlanRefused, ProposalMade
from equipoise.model.plan import Intent, Proposal, Purpose, Violation
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan import Moment
from equipoise.sim import MemoryWorld, Script
from equipoise.store import MemoryJournal
from worlds import clusters

MOVE = Migrate(vm=VmId("v1"), source=HostId("h1"), target=HostId("h2"))


def cluster() -> Snapshot:
    return a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1")])


class Wants:
    """A decider that wants v1 on h2."""

    def propose(self, snapshot: Snapshot) -> Proposal:
        at = snapshot.vms[VmId("v1")].host
        if at != "h1":
            return Proposal(
                decider="wants", purpose=Purpose.BALANCE, reason="v1 is where it should be"
            )
        return Proposal(
            decider="wants",
            purpose=Purpose.BALANCE,
            intents=(Intent(id=StepId("1"), action=MOVE, duration_ms=20_000),),
            reason="h2 is nicer",
        )


def told(journal: MemoryJournal) -> list[str]:
    return [f"{event.at_ms // 1000} {tell(event)}" for event in journal.events()]


def test_a_pass_goes_from_observation_to_action_and_gives_a_reason_for_inaction() -> None:
    journal = MemoryJournal()
    loop = Loop(MemoryWorld(cluster()), journal, deciders=[Wants()])
    loop.run(until_ms=400_000)
    assert told(journal) == [
        "0 cluster cluster loaded: 2 hosts, 1 VM",
        "0 demand observed, new for 0 VMs",
        "0 wants proposed migrate v1 from h1 to h2, because h2 is nicer",
        "0 plan plan-3 accepted, 1 step",
        "0 step plan-3/wants/1 started: migrate v1 from h1 to h2",
        "20 step plan-3/wants/1 finished",
        "20 plan plan-3 ended, done: 1 finished",
        "300 demand observed, new for 0 VMs",
        "300 wants proposed nothing, because v1 is where it should be",
    ]
    assert loop.now_ms == 400_000
    assert journal.snapshot() == loop.snapshot()


def test_a_judge_can_refuse_what_a_decider_wants() -> None:
    def never(moment: Moment) -> Iterable[Violation]:
        yield Violation(constraint="never", at_ms=moment.at_ms, detail="not today")

    journal = MemoryJournal()
    loop = Loop(MemoryWorld(cluster()), journal, deciders=[Wants()], judges=[never])
    loop.run(until_ms=1000)
    assert isinstance(list(journal.events())[-1], PlanRefused)
    assert loop.idle


def test_two_loops_one_after_the_other_are_as_one() -> None:
    whole, first = MemoryJournal(), MemoryJournal()
    Loop(MemoryWorld(cluster()), whole, deciders=[Wants()]).run(until_ms=10_000)
    world = MemoryWorld(cluster())
    Loop(world, first, deciders=[Wants()]).run(until_ms=10_000)
    second = Loop(world, first, deciders=[Wants()])
    assert not second.idle
    second.finish()
    assert isinstance(list(first.events())[-1], PlanEnded)
    assert list(first.lines())[: len(whole)] == list(whole.lines())


def test_a_plan_that_todays_judges_refuse_is_written_off_after_a_crash() -> None:
    def never(moment: Moment) -> Iterable[Violation]:
        yield Violation(constraint="never", at_ms=moment.at_ms, detail="not today")

    world, journal = MemoryWorld(cluster()), MemoryJournal()
    Loop(world, journal, deciders=[Wants()]).run(until_ms=10_000)
    loop = Loop(world, journal, judges=[never])
    assert loop.idle
    assert [line.split(" ", 1)[1] for line in told(journal)[-2:]] == [
        "step plan-3/wants/1 unanswered, its outcome is unknown",
        "plan plan-3 ended, partial: 0 finished, 1 failed",
    ]
    assert Loop(world, journal).idle


def test_what_others_did_to_the_world_is_found_and_written_down() -> None:
    class Meddled(MemoryWorld):
        """A world in which somebody has moved v1 by hand and nobody was told."""

        meddle = False

        def observe(self) -> Snapshot:
            seen = super().observe()
            if not self.meddle:
                return seen
            moved = seen.vms[VmId("v1")].but(host=HostId("h2"))
            return dataclasses.replace(seen, vms=seen.vms.but({moved.id: moved}))

    world, journal = Meddled(cluster()), MemoryJournal()
    loop = Loop(world, journal)
    world.meddle = True
    loop.run(until_ms=1000)
    assert "0 VM v1 changed, running on h2" in told(journal)
    assert loop.snapshot().vms[VmId("v1")].host == "h2"


def test_events_between_passes_are_taken_in() -> None:
    script = Script(happenings=(HostFailed(at_ms=5000, host=HostId("h1")),))
    journal = MemoryJournal()
    loop = Loop(MemoryWorld(cluster(), script), journal)
    loop.run(until_ms=6000)
    assert loop.snapshot().vms[VmId("v1")].host is None


def test_a_plan_under_way_can_be_cancelled_from_outside() -> None:
    journal = MemoryJournal()
    loop = Loop(MemoryWorld(cluster()), journal, deciders=[Wants()])
    loop.run(until_ms=5000)
    loop.cancel(abort=True, reason="lunch")
    loop.finish()
    assert told(journal)[-1] == "5 plan plan-3 ended, cancelled: 0 finished, 1 failed"
    loop.cancel()  # nothing to cancel: nothing happens
    assert told(journal)[-1] == "5 plan plan-3 ended, cancelled: 0 finished, 1 failed"


def test_a_refused_plan_changes_nothing() -> None:
    journal = MemoryJournal()
    loop = Loop(MemoryWorld(cluster()), journal)
    backwards = Migrate(vm=VmId("v1"), source=HostId("h2"), target=HostId("h1"))
    loop.carry_out(a_plan(a_step("a", backwards), base_version=1))
    assert loop.idle
    assert [type(event) for event in journal.events()][-1] is PlanRefused
    assert not any(isinstance(event, ProposalMade) for event in journal.events())


@given(clusters(), clusters())
def test_drift_leads_from_any_belief_to_any_observation(
    believed: Snapshot, observed: Snapshot
) -> None:
    events: tuple[Event, ...] = drift(believed, observed)
    after = transition.replay(believed, events)
    assert after.hosts == observed.hosts
    assert after.vms == observed.vms
    assert after.settings == observed.settings
    again = drift(after, observed)
    assert [type(event).__name__ for event in again] == ["DemandObserved"]
