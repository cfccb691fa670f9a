"""The control loop: passes, refusals, recovery after a crash, drift and lost actions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given

from builders import a_cluster, a_host, a_plan, a_step, a_vm, event_facts
from equipoise.control import ControlLoop
from equipoise.control.drift import drift
from equipoise.errors import Conflict, WorldError
from equipoise.model.action import Migrate, PowerOff
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
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import Refusal, VerifiedPlan
from equipoise.spec.moments import PlanMoment
from equipoise.store import MemoryJournal
from memory_world import MemoryWorld, Script
from worlds import clusters

MOVE = Migrate(vm=VmId("v1"), source=HostId("h1"), target=HostId("h2"))


def cluster() -> Snapshot:
    return a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1")])


class Mover:
    """A decider that moves v1 from h1 to h2."""

    def propose(self, snapshot: Snapshot) -> Proposal:
        host = snapshot.vms[VmId("v1")].host
        if host != "h1":
            return Proposal(decider="mover", purpose=Purpose.BALANCE, reason="v1 is on h2")
        return Proposal(
            decider="mover",
            purpose=Purpose.BALANCE,
            intents=(Intent(id=StepId("1"), action=MOVE, duration_ms=20_000),),
            reason="h2 is preferred",
        )


def recorded(journal: MemoryJournal) -> list[str]:
    """Return the time in seconds and the facts of every event."""
    return [f"{event.at_ms // 1000} {event_facts(event)}" for event in journal.events()]


def refuse_all(moment: PlanMoment) -> Iterable[Violation]:
    """A judge that refuses every plan."""
    yield Violation(constraint="never", at_ms=moment.at_ms, detail="refused by the test")


def test_a_pass_executes_a_proposal_or_records_why_there_is_none() -> None:
    journal = MemoryJournal()
    loop = ControlLoop(MemoryWorld(cluster()), journal, deciders=[Mover()])
    loop.run(until_ms=400_000)
    assert recorded(journal) == [
        "0 cluster_loaded",
        "0 demand_observed",
        "0 proposal_made",
        "0 plan_accepted plan-3",
        "0 action_started plan-3/mover/1 1",
        "20 action_finished plan-3/mover/1 1",
        "20 plan_ended plan-3 done 1 0 0",
        "300 demand_observed",
        "300 proposal_made",
    ]
    first, second = journal.events(kinds=("proposal_made",))
    assert isinstance(first, ProposalMade)
    assert isinstance(second, ProposalMade)
    assert [intent.action for intent in first.proposal.intents] == [MOVE]
    assert second.proposal.intents == ()
    assert second.proposal.reason == "v1 is on h2"
    assert loop.now_ms == 400_000
    assert journal.snapshot() == loop.snapshot()


def test_a_judge_can_refuse_the_plan_of_a_decider() -> None:
    journal = MemoryJournal()
    loop = ControlLoop(MemoryWorld(cluster()), journal, deciders=[Mover()], judges=[refuse_all])
    loop.run(until_ms=1000)
    assert isinstance(list(journal.events())[-1], PlanRefused)
    assert loop.idle


def test_a_second_loop_continues_the_plan_of_the_first() -> None:
    uninterrupted, first = MemoryJournal(), MemoryJournal()
    ControlLoop(MemoryWorld(cluster()), uninterrupted, deciders=[Mover()]).run(until_ms=10_000)
    world = MemoryWorld(cluster())
    ControlLoop(world, first, deciders=[Mover()]).run(until_ms=10_000)
    second = ControlLoop(world, first, deciders=[Mover()])
    assert not second.idle
    second.finish()
    assert isinstance(list(first.events())[-1], PlanEnded)
    assert list(first.lines())[: len(uninterrupted)] == list(uninterrupted.lines())


def test_a_plan_that_new_judges_refuse_is_ended_after_a_crash() -> None:
    world, journal = MemoryWorld(cluster()), MemoryJournal()
    ControlLoop(world, journal, deciders=[Mover()]).run(until_ms=10_000)
    loop = ControlLoop(world, journal, judges=[refuse_all])
    assert loop.idle
    assert [line.split(" ", 1)[1] for line in recorded(journal)[-2:]] == [
        "action_lost plan-3/mover/1 1",
        "plan_ended plan-3 partial 0 1 0",
    ]
    assert ControlLoop(world, journal).idle


def test_changes_from_outside_are_observed_and_recorded() -> None:
    class Drifting(MemoryWorld):
        """A world in which an operator moves v1 by hand, without an event."""

        moved = False

        def observe(self) -> Snapshot:
            snapshot = super().observe()
            if not self.moved:
                return snapshot
            vm = snapshot.vms[VmId("v1")].but(host=HostId("h2"))
            return dataclasses.replace(snapshot, vms=snapshot.vms.but({vm.id: vm}))

    world, journal = Drifting(cluster()), MemoryJournal()
    loop = ControlLoop(world, journal)
    world.moved = True
    loop.run(until_ms=1000)
    assert "0 vm_changed v1" in recorded(journal)
    assert loop.snapshot().vms[VmId("v1")].host == "h2"


def test_events_between_passes_are_applied() -> None:
    script = Script(events=(HostFailed(at_ms=5000, host=HostId("h1")),))
    journal = MemoryJournal()
    loop = ControlLoop(MemoryWorld(cluster(), script), journal)
    loop.run(until_ms=6000)
    assert loop.snapshot().vms[VmId("v1")].host is None


def test_a_running_plan_can_be_cancelled() -> None:
    journal = MemoryJournal()
    loop = ControlLoop(MemoryWorld(cluster()), journal, deciders=[Mover()])
    loop.run(until_ms=5000)
    loop.cancel(abort=True, reason="operator")
    loop.finish()
    assert recorded(journal)[-1] == "5 plan_ended plan-3 cancelled 0 1 0"
    loop.cancel()  # without a running plan this does nothing
    assert recorded(journal)[-1] == "5 plan_ended plan-3 cancelled 0 1 0"


def test_a_refused_plan_changes_nothing() -> None:
    journal = MemoryJournal()
    loop = ControlLoop(MemoryWorld(cluster()), journal)
    backwards = Migrate(vm=VmId("v1"), source=HostId("h2"), target=HostId("h1"))
    loop.execute(a_plan(a_step("a", backwards), base_version=1))
    assert loop.idle
    assert [type(event) for event in journal.events()][-1] is PlanRefused
    assert not any(isinstance(event, ProposalMade) for event in journal.events())


@given(clusters(), clusters())
def test_drift_leads_from_any_recorded_state_to_any_observed_state(
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
    loop = ControlLoop(world, journal)
    there = a_plan(a_step("m", MOVE), base_version=loop.snapshot().version)
    assert isinstance(loop.execute(there), VerifiedPlan)
    back = Migrate(vm=VmId("v1"), source=HostId("h2"), target=HostId("h1"))
    for same_or_restarted in (loop, ControlLoop(world, journal)):
        plan = a_plan(a_step("m", back), base_version=same_or_restarted.snapshot().version)
        refusal = same_or_restarted.execute(plan)
        assert isinstance(refusal, Refusal)
        assert refusal.violations[0].code == "duplicate-step"


def test_a_second_plan_is_refused_while_one_runs() -> None:
    loop = ControlLoop(MemoryWorld(cluster()), MemoryJournal(), deciders=[Mover()])
    loop.run(until_ms=5000)
    with pytest.raises(Conflict) as caught:
        loop.execute(a_plan(base_version=loop.snapshot().version))
    assert caught.value.code == "plan-running"


class FailingJournal(MemoryJournal):
    """A journal that fails at one append."""

    fails_at = 0

    def append(self, events: Sequence[Event]) -> int:
        self.fails_at -= 1
        if self.fails_at == 0:
            raise WorldError("disk full")
        return super().append(events)


@pytest.mark.parametrize("fails_at", [2, 3, 4])
def test_no_action_starts_that_could_not_be_recorded(fails_at: int) -> None:
    world, journal = MemoryWorld(cluster()), FailingJournal()
    journal.fails_at = fails_at
    loop = ControlLoop(world, journal)
    with pytest.raises(WorldError, match="disk full"):
        loop.execute(a_plan(a_step("m", MOVE), base_version=1))
    length = len(journal)
    with pytest.raises(Conflict) as caught:
        loop.run(until_ms=10**6)
    assert caught.value.code == "journal-failed"
    assert len(journal) == length
    restarted = ControlLoop(world, journal)
    restarted.finish()
    assert transition.replay(Snapshot(), journal.events()) == restarted.snapshot()


def test_a_lost_action_causes_an_observation_before_the_next_plan() -> None:
    script = Script(silent=frozenset([StepId("m")]))
    world, journal = MemoryWorld(cluster(), script), MemoryJournal()
    loop = ControlLoop(world, journal)
    loop.execute(a_plan(a_step("m", MOVE), base_version=1))
    for same_or_restarted in (loop, ControlLoop(world, journal)):
        stale = a_plan(a_step("n", MOVE), base_version=same_or_restarted.snapshot().version)
        refusal = same_or_restarted.execute(stale)
        assert isinstance(refusal, Refusal)
        assert refusal.violations[0].constraint == "fresh"


def test_changed_rules_apply_to_the_steps_that_start_later() -> None:
    apart = KeepApart(id=RuleId("r"), vms=(VmId("v1"), VmId("v2")), continuous=True)
    hosts = [a_host("h1"), a_host("h2"), a_host("h3")]
    snapshot = a_cluster(*hosts, vms=[a_vm("v1", "h1"), a_vm("v2", "h2"), a_vm("v3", "h3")])
    stricter = SettingsChanged(at_ms=10, settings=snapshot.settings.but(rules=(apart,)))
    original = SettingsChanged(at_ms=1500, settings=snapshot.settings)
    steps = [
        a_step("a", Migrate(vm=VmId("v3"), source=HostId("h3"), target=HostId("h1")), 0, 1000),
        a_step("b", MOVE, 1000, 2000, "a"),
        a_step("c", Migrate(vm=VmId("v3"), source=HostId("h1"), target=HostId("h3")), 1000, 2000),
    ]
    journal = MemoryJournal()
    loop = ControlLoop(MemoryWorld(snapshot, Script(events=(stricter, original))), journal)
    loop.execute(a_plan(*steps, base_version=1))
    facts = [f"{event.at_ms} {event_facts(event)}" for event in journal.events()]
    assert "1500 action_started b 1" in facts
    assert facts[-1] == "2500 plan_ended p done 3 0 0"


def test_a_plan_ended_after_a_crash_accounts_for_every_step() -> None:
    script = Script(failures={StepId("m"): 1})
    world, journal = MemoryWorld(cluster(), script), MemoryJournal()
    loop = ControlLoop(world, journal)
    off = a_step("off", PowerOff(host=HostId("h1")), 1000, 2000, "m")
    plan = a_plan(a_step("m", MOVE), off, base_version=1)
    assert isinstance(loop._submit(plan), VerifiedPlan)
    loop.run(until_ms=11_500)
    ControlLoop(world, journal, judges=[refuse_all])
    assert [event_facts(event) for event in journal.events()][-3:] == [
        "action_lost m 2",
        "action_skipped off plan-not-resumable",
        "plan_ended p partial 0 1 1",
    ]
    assert world.next_event(10**6) is not None, "the running action was cancelled"
