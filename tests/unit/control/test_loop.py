from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.cli.story import tell
from equipoise.control import Loop
from equipoise.control.drift import drift
from equipoise.errors import Conflict, WorldError
from equipoise.model.action import Migrate, PowerOff
from equipoise.model.change import transition
from equipoise.model.event import (
    Event,
    HostFailed,
    PlanEnded,
    PlanRefused,
    ProposalMade,
    SettingsChanged,
)
from equipoise.model.plan import Intent, Proposal, Purpose, Violation
from equipoise.model.quantity import HostId, RuleId, StepId, VmId
from equipoise.model.rule import KeepApart
from equipoise.model.snapshot import Snapshot
from equipoise.plan import Moment, Refusal, VerifiedPlan
from equipoise.store import MemoryJournal
from memory_world import MemoryWorld, Script
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


def test_a_step_id_is_used_once_in_a_journal() -> None:
    world, journal = MemoryWorld(cluster()), MemoryJournal()
    loop = Loop(world, journal)
    there = a_plan(a_step("m", MOVE), base_version=loop.snapshot().version)
    assert isinstance(loop.carry_out(there), VerifiedPlan)
    back = Migrate(vm=VmId("v1"), source=HostId("h2"), target=HostId("h1"))
    for again in (loop, Loop(world, journal)):
        plan = a_plan(a_step("m", back), base_version=again.snapshot().version)
        refusal = again.carry_out(plan)
        assert isinstance(refusal, Refusal)
        assert "earlier plan" in refusal.violations[0].detail


def test_only_one_plan_at_a_time() -> None:
    loop = Loop(MemoryWorld(cluster()), MemoryJournal(), deciders=[Wants()])
    loop.run(until_ms=5000)
    with pytest.raises(Conflict, match="one at a time"):
        loop.carry_out(a_plan(base_version=loop.snapshot().version))


class Brittle(MemoryJournal):
    """A journal that fails at one append."""

    fails_at = 0

    def append(self, events: Sequence[Event]) -> int:
        self.fails_at -= 1
        if self.fails_at == 0:
            raise WorldError("disk full")
        return super().append(events)


@pytest.mark.parametrize("fails_at", [2, 3, 4])
def test_nothing_is_done_that_could_not_be_written_down(fails_at: int) -> None:
    world, journal = MemoryWorld(cluster()), Brittle()
    journal.fails_at = fails_at
    loop = Loop(world, journal)
    with pytest.raises(WorldError, match="disk full"):
        loop.carry_out(a_plan(a_step("m", MOVE), base_version=1))
    length = len(journal)
    with pytest.raises(Conflict, match="could not be written"):
        loop.run(until_ms=10**6)
    assert len(journal) == length
    survivor = Loop(world, journal)
    survivor.finish()
    assert transition.replay(Snapshot(), journal.events()) == survivor.snapshot()


def test_after_a_lost_action_the_world_is_looked_at_before_the_next_plan() -> None:
    script = Script(silent=frozenset([StepId("m")]))
    world, journal = MemoryWorld(cluster(), script), MemoryJournal()
    loop = Loop(world, journal)
    loop.carry_out(a_plan(a_step("m", MOVE), base_version=1))
    for again in (loop, Loop(world, journal)):
        stale = a_plan(a_step("n", MOVE), base_version=again.snapshot().version)
        refusal = again.carry_out(stale)
        assert isinstance(refusal, Refusal)
        assert refusal.violations[0].constraint == "fresh"


def test_new_rules_and_limits_count_from_then_on_and_the_old_ones_no_more() -> None:
    apart = KeepApart(id=RuleId("r"), vms=(VmId("v1"), VmId("v2")), continuous=True)
    hosts = [a_host("h1"), a_host("h2"), a_host("h3")]
    snapshot = a_cluster(*hosts, vms=[a_vm("v1", "h1"), a_vm("v2", "h2"), a_vm("v3", "h3")])
    strict = SettingsChanged(at_ms=10, settings=snapshot.settings.but(rules=(apart,)))
    loose = SettingsChanged(at_ms=1500, settings=snapshot.settings)
    steps = [
        a_step("a", Migrate(vm=VmId("v3"), source=HostId("h3"), target=HostId("h1")), 0, 1000),
        a_step("b", MOVE, 1000, 2000, "a"),
        a_step("c", Migrate(vm=VmId("v3"), source=HostId("h1"), target=HostId("h3")), 1000, 2000),
    ]
    journal = MemoryJournal()
    loop = Loop(MemoryWorld(snapshot, Script(happenings=(strict, loose))), journal)
    loop.carry_out(a_plan(*steps, base_version=1))
    story = [f"{event.at_ms} {tell(event)}" for event in journal.events()]
    assert "1500 step b started: migrate v1 from h1 to h2" in story
    assert story[-1] == "2500 plan p ended, done: 3 finished"


def test_a_plan_that_is_written_off_accounts_for_every_step() -> None:
    def never(moment: Moment) -> Iterable[Violation]:
        yield Violation(constraint="never", at_ms=moment.at_ms, detail="not today")

    script = Script(failures={StepId("m"): 1})
    world, journal = MemoryWorld(cluster(), script), MemoryJournal()
    loop = Loop(world, journal)
    off = a_step("off", PowerOff(host=HostId("h1")), 1000, 2000, "m")
    plan = a_plan(a_step("m", MOVE), off, base_version=1)
    assert isinstance(loop._submit(plan), VerifiedPlan)
    loop.run(until_ms=11_500)
    Loop(world, journal, judges=[never])
    assert [tell(event) for event in journal.events()][-3:] == [
        "step m unanswered, its outcome is unknown",
        "step off skipped: the plan would not be accepted any more",
        "plan p ended, partial: 0 finished, 1 failed, 1 skipped",
    ]
    assert world.next_event(10**6) is not None, "what was under way was cancelled"
