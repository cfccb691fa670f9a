"""Grace, suspicion, retries, isolation, probation: what the controller waits for."""

from __future__ import annotations

from equipoise.model.event import (
    HostChanged,
    LayoutChanged,
    ProcessorSuspected,
    ProcessorTrusted,
    RoleMoveAsked,
)
from equipoise.model.host import HostWish
from equipoise.model.quantity import HostId, ProcessorId, RoleId, SlotId
from equipoise.model.roles.layout import Element, RolePreference, Slot
from role_walks import FREE, GROUP, SLOTS, Desk, a_layout_of, a_team

X = FREE[0]
P1, P2, P5 = (ProcessorId(name) for name in ("p1", "p2", "p5"))
ONE = RolePreference(role=X, slots=SLOTS, preempt=True)


def a_desk(*wanted: RolePreference, **more: object) -> Desk:
    desk = Desk(a_layout_of(a_team((Element(on_each=(RoleId("a"),)),), wanted or (ONE,), **more)))
    desk.settle()
    return desk


def test_a_slot_is_kept_for_its_processor_during_grace_and_filled_by_a_spare_after() -> None:
    desk = a_desk(grace_s=30)
    desk.down(P1)
    desk.wait(29)
    assert SlotId("s1") not in desk.members()
    assert desk.holders(X) == {P2}, "roles do not wait for grace"
    desk.wait(2)
    assert desk.members()[SlotId("s1")] == P5


def test_who_is_back_within_grace_has_its_slot_again() -> None:
    desk = a_desk(grace_s=30)
    desk.down(P1)
    desk.wait(20)
    desk.up(P1)
    desk.wait(60)
    assert desk.members()[SlotId("s1")] == P1
    assert desk.refilled == 1, "only at the very beginning"


def test_a_suspected_processor_keeps_its_roles_for_a_while_and_gets_nothing_new() -> None:
    desk = a_desk(suspect_s=10)
    desk.happen(ProcessorSuspected(at_ms=desk.at_ms, processor=P1))
    desk.wait(9)
    assert desk.holders(X) == {P1}
    desk.wait(2)
    assert desk.holders(X) == {P5}, "the spare has its slot, and the role was stopped before"
    desk.happen(ProcessorTrusted(at_ms=desk.at_ms, processor=P1))
    desk.settle()
    assert desk.holders(X) == {P5}


def test_a_suspected_processor_that_cannot_be_stopped_keeps_a_single_role() -> None:
    desk = a_desk(suspect_s=0, retry_s=5)
    desk.happen(ProcessorSuspected(at_ms=desk.at_ms, processor=P1))
    desk.ask()
    while desk.open:
        stops = [k for k, a in enumerate(desk.open.values()) if a.processor == P1]
        desk.answer(stops[0] if stops else 0, well=not stops)
    desk.ask()
    assert desk.holders(X) == {P1}, "safety before service: it may be alive"
    desk.down(P1)
    desk.settle()
    assert desk.holders(X) == {P5}


def test_what_fails_is_tried_again_and_then_elsewhere() -> None:
    desk = a_desk(attempts_max=2, retry_s=10, isolation_s=100)
    desk.down(P1)
    tried = []
    for _ in range(2):
        desk.ask()
        starts = [k for k, a in enumerate(desk.open.values()) if a.role == X]
        tried.append(list(desk.open.values())[starts[0]].processor)
        desk.answer(starts[0], well=False)
        while desk.open:
            desk.answer()
        desk.at_ms += 10_000
    desk.settle()
    assert tried == [P5, P5]
    assert desk.holders(X) == {P2}, "the next of its list"
    desk.wait(200)
    assert desk.holders(X) == {P5}, "isolation is over, and it is the first of its list"


def test_probation_delays_a_return_but_never_a_failover() -> None:
    desk = a_desk(probation_s=60, grace_s=300)
    desk.down(P1)
    desk.settle()
    assert desk.holders(X) == {P2}
    desk.up(P1)
    desk.wait(59)
    assert desk.holders(X) == {P2}
    desk.wait(2)
    assert desk.holders(X) == {P1}


def test_auto_adjust_gives_the_first_processors_their_slots_back_after_probation() -> None:
    desk = a_desk(auto_adjust=True, probation_s=60)
    desk.down(P1)
    desk.settle()
    assert desk.members()[SlotId("s1")] == P5
    desk.up(P1)
    desk.wait(59)
    assert P1 not in desk.members().values()
    desk.wait(2)
    assert desk.members()[SlotId("s1")] == P1
    assert not any(p == P5 for _, p in desk.running())


def test_a_host_that_is_requested_gives_its_roles_away_first() -> None:
    desk = a_desk()
    host = desk.ledger.draft.hosts[HostId("p1")].but(requested=HostWish.MAINTENANCE)
    desk.happen(HostChanged(at_ms=desk.at_ms, host=host))
    desk.settle()
    assert not any(p == P1 for _, p in desk.running())
    assert desk.holders(X) == {P5}


def test_a_role_that_somebody_moved_stays_until_its_slot_is_empty() -> None:
    desk = a_desk()
    ask = RoleMoveAsked(at_ms=0, group=GROUP, role=X, slot=SlotId("s3"))
    desk.happen(ask)
    desk.settle()
    assert desk.holders(X) == {ProcessorId("p3")}


def test_slots_that_need_a_label_are_filled_by_who_has_it() -> None:
    slots = (Slot(id=SlotId("s1"), needs={"rack": "a"}), Slot(id=SlotId("s2")))
    desk = Desk(a_layout_of(a_team((), (ONE.but(slots=(SlotId("s1"),)),), slots=slots)))
    desk.settle()
    assert SlotId("s1") not in desk.members()
    host = desk.ledger.draft.hosts[HostId("p5")].but(labels={"rack": "a"})
    desk.happen(HostChanged(at_ms=0, host=host))
    desk.settle()
    assert desk.members()[SlotId("s1")] == P5
    assert desk.holders(X) == {P5}


def test_two_groups_that_want_one_spare_get_it_by_priority() -> None:
    mine = a_team((), (ONE,), hosts=(HostId("p1"), HostId("p9")), slots=(Slot(id=SLOTS[0]),))
    other = mine.but(id="h", hosts=(HostId("p2"), HostId("p9")), priority=1)
    desk = Desk(a_layout_of(other, mine))
    desk.settle()
    desk.down(P1)
    desk.down(P2)
    desk.settle()
    slots = desk.ledger.draft.duties.slots
    assert slots[GROUP][SLOTS[0]] == ProcessorId("p9")
    assert desk.ledger.draft.duties.held[ProcessorId("p9")] == ((GROUP, X),)


def test_what_is_taken_out_of_the_layout_is_stopped() -> None:
    desk = a_desk()
    changed = a_layout_of(a_team((), ()))
    desk.layout = changed
    desk.happen(LayoutChanged(at_ms=0, layout=changed))
    desk.settle()
    assert desk.running() == set()
    nothing = changed.but(groups=())
    desk.happen(LayoutChanged(at_ms=0, layout=nothing))
    assert not desk.ask()
