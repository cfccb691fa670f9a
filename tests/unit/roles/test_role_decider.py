"""The role decider: grace, suspicion, retries, isolation, probation."""

from __future__ import annotations

from equipoise.model.event import (
    HostChanged,
    LayoutChanged,
    ProcessorLocked,
    ProcessorSuspected,
    ProcessorTrusted,
    RoleMoveRequested,
)
from equipoise.model.host import RequestedHostState
from equipoise.model.quantity import HostId, ProcessorId, RoleId, SlotId
from equipoise.model.roles.layout import LayoutElement, RolePreference, Slot, SlotChoice
from role_harness import FREE, GROUP, SLOTS, RoleHarness, a_layout_of, a_team

ROLE_X, ROLE_Y = FREE
PROCESSOR_1, PROCESSOR_2, PROCESSOR_5 = (ProcessorId(name) for name in ("p1", "p2", "p5"))
PREEMPTING = RolePreference(role=ROLE_X, slots=SLOTS, preempt=True)


def a_harness(*preferences: RolePreference, **more: object) -> RoleHarness:
    harness = RoleHarness(
        a_layout_of(
            a_team((LayoutElement(on_each=(RoleId("a"),)),), preferences or (PREEMPTING,), **more)
        )
    )
    harness.settle()
    return harness


def test_a_slot_is_kept_during_grace_and_then_filled_by_a_spare() -> None:
    harness = a_harness(grace_s=30)
    harness.down(PROCESSOR_1)
    harness.wait(29)
    assert SlotId("s1") not in harness.members()
    assert harness.holders(ROLE_X) == {PROCESSOR_2}, "roles do not wait for grace"
    harness.wait(2)
    assert harness.members()[SlotId("s1")] == PROCESSOR_5


def test_a_processor_that_returns_within_grace_keeps_its_slot() -> None:
    harness = a_harness(grace_s=30)
    harness.down(PROCESSOR_1)
    harness.wait(20)
    harness.up(PROCESSOR_1)
    harness.wait(60)
    assert harness.members()[SlotId("s1")] == PROCESSOR_1
    assert harness.refilled == 1, "only at the start"


def test_a_suspected_processor_keeps_its_roles_until_the_limit() -> None:
    harness = a_harness(suspect_s=10)
    harness.happen(ProcessorSuspected(at_ms=harness.at_ms, processor=PROCESSOR_1))
    harness.wait(9)
    assert harness.holders(ROLE_X) == {PROCESSOR_1}
    harness.wait(2)
    assert harness.holders(ROLE_X) == {PROCESSOR_5}, (
        "the spare fills the slot, and the role stopped before"
    )
    harness.happen(ProcessorTrusted(at_ms=harness.at_ms, processor=PROCESSOR_1))
    harness.settle()
    assert harness.holders(ROLE_X) == {PROCESSOR_5}


def test_a_suspected_processor_that_cannot_be_stopped_keeps_a_single_role() -> None:
    harness = a_harness(suspect_s=0, retry_s=5)
    harness.happen(ProcessorSuspected(at_ms=harness.at_ms, processor=PROCESSOR_1))
    harness.ask()
    while harness.open:
        stops = [k for k, a in enumerate(harness.open.values()) if a.processor == PROCESSOR_1]
        harness.answer(stops[0] if stops else 0, well=not stops)
    harness.ask()
    assert harness.holders(ROLE_X) == {PROCESSOR_1}, (
        "the processor may be alive: two holders would be worse than none"
    )
    harness.down(PROCESSOR_1)
    harness.settle()
    assert harness.holders(ROLE_X) == {PROCESSOR_5}


def test_a_failed_start_is_retried_and_then_moved_to_another_processor() -> None:
    harness = a_harness(attempts_max=2, retry_s=10, isolation_s=100)
    harness.down(PROCESSOR_1)
    tried = []
    for _ in range(2):
        harness.ask()
        starts = [k for k, a in enumerate(harness.open.values()) if a.role == ROLE_X]
        tried.append(list(harness.open.values())[starts[0]].processor)
        harness.answer(starts[0], well=False)
        while harness.open:
            harness.answer()
        harness.at_ms += 10_000
    harness.settle()
    assert tried == [PROCESSOR_5, PROCESSOR_5]
    assert harness.holders(ROLE_X) == {PROCESSOR_2}, "the next slot of its list"
    harness.wait(200)
    assert harness.holders(ROLE_X) == {PROCESSOR_5}, (
        "the isolation is over, and it is the first slot of its list"
    )


def test_probation_delays_a_return_but_never_a_failover() -> None:
    harness = a_harness(probation_s=60, grace_s=300)
    harness.down(PROCESSOR_1)
    harness.settle()
    assert harness.holders(ROLE_X) == {PROCESSOR_2}
    harness.up(PROCESSOR_1)
    harness.wait(59)
    assert harness.holders(ROLE_X) == {PROCESSOR_2}
    harness.wait(2)
    assert harness.holders(ROLE_X) == {PROCESSOR_1}


def test_auto_adjust_returns_slots_to_the_first_processors_after_probation() -> None:
    harness = a_harness(auto_adjust=True, probation_s=60)
    harness.down(PROCESSOR_1)
    harness.settle()
    assert harness.members()[SlotId("s1")] == PROCESSOR_5
    harness.up(PROCESSOR_1)
    harness.wait(59)
    assert PROCESSOR_1 not in harness.members().values()
    harness.wait(2)
    assert harness.members()[SlotId("s1")] == PROCESSOR_1
    assert not any(p == PROCESSOR_5 for _, p in harness.running())


def test_a_host_requested_into_maintenance_loses_its_roles_first() -> None:
    harness = a_harness()
    host = harness.ledger.draft.hosts[HostId("p1")].but(requested=RequestedHostState.MAINTENANCE)
    harness.happen(HostChanged(at_ms=harness.at_ms, host=host))
    harness.settle()
    assert not any(p == PROCESSOR_1 for _, p in harness.running())
    assert harness.holders(ROLE_X) == {PROCESSOR_5}


def test_a_requested_role_move_lasts_until_the_slot_is_empty() -> None:
    harness = a_harness()
    ask = RoleMoveRequested(at_ms=0, group=GROUP, role=ROLE_X, slot=SlotId("s3"))
    harness.happen(ask)
    harness.settle()
    assert harness.holders(ROLE_X) == {ProcessorId("p3")}


def test_a_slot_with_needs_is_filled_by_a_processor_with_the_label() -> None:
    slots = (Slot(id=SlotId("s1"), needs={"rack": "a"}), Slot(id=SlotId("s2")))
    harness = RoleHarness(
        a_layout_of(a_team((), (PREEMPTING.but(slots=(SlotId("s1"),)),), slots=slots))
    )
    harness.settle()
    assert SlotId("s1") not in harness.members()
    host = harness.ledger.draft.hosts[HostId("p5")].but(labels={"rack": "a"})
    harness.happen(HostChanged(at_ms=0, host=host))
    harness.settle()
    assert harness.members()[SlotId("s1")] == PROCESSOR_5
    assert harness.holders(ROLE_X) == {PROCESSOR_5}


def test_the_group_with_the_lower_priority_number_gets_the_spare() -> None:
    mine = a_team((), (PREEMPTING,), hosts=(HostId("p1"), HostId("p9")), slots=(Slot(id=SLOTS[0]),))
    other = mine.but(id="h", hosts=(HostId("p2"), HostId("p9")), priority=1)
    harness = RoleHarness(a_layout_of(other, mine))
    harness.settle()
    harness.down(PROCESSOR_1)
    harness.down(PROCESSOR_2)
    harness.settle()
    slots = harness.ledger.draft.role_state.slots
    assert slots[GROUP][SLOTS[0]] == ProcessorId("p9")
    assert harness.ledger.draft.role_state.held[ProcessorId("p9")] == ((GROUP, ROLE_X),)


def test_a_role_removed_from_the_layout_stops() -> None:
    harness = a_harness()
    changed = a_layout_of(a_team((), ()))
    harness.layout = changed
    harness.happen(LayoutChanged(at_ms=0, layout=changed))
    harness.settle()
    assert harness.running() == set()
    nothing = changed.but(groups=())
    harness.happen(LayoutChanged(at_ms=0, layout=nothing))
    assert not harness.ask()


def test_a_standby_with_one_possible_slot_is_not_promoted_in_a_loop() -> None:
    """A promotion would lose the standby, and the next move would restore it, without end."""
    preferences = (
        RolePreference(role=ROLE_X, slots=SLOTS[:2], choose=SlotChoice.ANY, promotes=ROLE_Y),
        RolePreference(role=ROLE_Y, slots=SLOTS[:1]),
    )
    harness = RoleHarness(a_layout_of(a_team((), preferences, apart=((ROLE_X, ROLE_Y),))))
    harness.settle()
    assert (harness.holders(ROLE_X), harness.holders(ROLE_Y)) == ({PROCESSOR_2}, {PROCESSOR_1})
    harness.down(PROCESSOR_2)
    harness.settle()
    assert harness.holders(ROLE_X) == {harness.members()[SLOTS[1]]}
    assert harness.holders(ROLE_Y) == {PROCESSOR_1}


def test_an_active_role_does_not_move_to_a_standby_that_has_just_started() -> None:
    """The decision must not change while the role has stopped here and not started there."""
    preferences = (
        RolePreference(role=ROLE_X, slots=SLOTS[:2], promotes=ROLE_Y),
        RolePreference(role=ROLE_Y, slots=SLOTS[:2], count=2),
    )
    harness = RoleHarness(a_layout_of(a_team((), preferences, apart=((ROLE_X, ROLE_Y),))))
    harness.settle()
    for name in (PROCESSOR_1, PROCESSOR_2):
        harness.happen(ProcessorLocked(at_ms=0, processor=name))
    harness.settle()  # settle checks that no action is undone
    members = harness.members()
    assert harness.holders(ROLE_X) == {members[SLOTS[0]]}
    assert harness.holders(ROLE_Y) == {members[SLOTS[1]]}
