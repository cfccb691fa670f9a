"""What random walks once found wrong, in the smallest form."""

from __future__ import annotations

from equipoise.model.event import ProcessorLocked
from equipoise.model.quantity import ProcessorId
from equipoise.model.roles.layout import Choose, RolePreference
from role_walks import FREE, SLOTS, Desk, a_layout_of, a_team

X, Y = FREE
P1, P2 = ProcessorId("p1"), ProcessorId("p2")


def test_a_standby_that_can_only_be_in_one_place_is_not_promoted_away_for_ever() -> None:
    """To promote it would lose it, to move the active one brought it back, and so on."""
    wanted = (
        RolePreference(role=X, slots=SLOTS[:2], choose=Choose.ANY, promotes=Y),
        RolePreference(role=Y, slots=SLOTS[:1]),
    )
    desk = Desk(a_layout_of(a_team((), wanted, apart=((X, Y),))))
    desk.settle()
    assert (desk.holders(X), desk.holders(Y)) == ({P2}, {P1})
    desk.down(P2)
    desk.settle()
    assert desk.holders(X) == {desk.members()[SLOTS[1]]}
    assert desk.holders(Y) == {P1}


def test_an_active_role_is_not_drawn_to_a_standby_that_has_just_begun() -> None:
    """While it was stopped here and not yet started there, it changed its mind."""
    wanted = (
        RolePreference(role=X, slots=SLOTS[:2], promotes=Y),
        RolePreference(role=Y, slots=SLOTS[:2], count=2),
    )
    desk = Desk(a_layout_of(a_team((), wanted, apart=((X, Y),))))
    desk.settle()
    for name in (P1, P2):
        desk.happen(ProcessorLocked(at_ms=0, processor=name))
    desk.settle()  # which sees to it that nothing is done only to be undone
    members = desk.members()
    assert desk.holders(X) == {members[SLOTS[0]]}
    assert desk.holders(Y) == {members[SLOTS[1]]}
