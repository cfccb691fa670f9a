"""Laws of roles in the whole house: crashes, the order of an instant, flapping, one holder."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.model.action import StartRole
from equipoise.model.change import transition
from equipoise.model.change.draft import Draft, Touched
from equipoise.model.event import Event, ProcessorLocked, ProposalMade
from equipoise.model.plan import Proposal
from equipoise.model.quantity import ProcessorId
from equipoise.model.roles.duty import Duty, table_of
from equipoise.model.roles.layout import RoleLayout, RolePreference
from equipoise.model.snapshot import Snapshot
from equipoise.model.story.unrest import ControllerLost, Happening
from equipoise.roles.leave import may_leave
from equipoise.roles.propose import Roles
from role_stories import UNRELIABLE, a_story, deeds, happenings, played, role_layouts
from role_walks import FREE, GROUP, PROCESSORS, SLOTS, Desk, a_layout_of, a_team

FEW = settings(max_examples=15)


def wanted(proposal: Proposal) -> tuple[list[str], list[object]]:
    """What is asked for, without the names of steps."""
    acts = sorted(str(one.action) for one in proposal.intents)
    return acts, [(one.group, dict(one.slots)) for one in proposal.fillings]


def newborn(events: Iterable[Event]) -> tuple[Roles, Draft]:
    """A controller that has only read the journal, and the state it leads to."""
    roles, draft = Roles(), Draft(Snapshot())
    for event in events:
        transition.change(draft, event)
        draft.take_touched()
        roles.heed(event, Touched((), ()))
    return roles, draft


@given(role_layouts(groups=2), happenings())
@FEW
def test_who_reads_the_journal_up_to_any_point_decides_what_was_decided_there(
    layout: RoleLayout, told: list[Happening]
) -> None:
    _, journal = played(a_story(layout, *told, physics=UNRELIABLE))
    events = list(journal.events())
    for place, event in enumerate(events):
        if isinstance(event, ProposalMade):
            roles, draft = newborn(events[:place])
            draft.at_ms = event.at_ms
            assert wanted(roles.propose(draft.freeze())) == wanted(event.proposal)


@given(role_layouts(groups=2), happenings(), st.lists(st.integers(1, 120), min_size=1, max_size=3))
@FEW
def test_a_controller_that_dies_and_comes_back_leads_to_the_same_end(
    layout: RoleLayout, told: list[Happening], crashes: list[int]
) -> None:
    deaths = [ControllerLost(at_ms=1000 * s + 250, for_ms=1) for s in sorted(set(crashes))]
    plain, _ = played(a_story(layout, *told))
    crashed, _ = played(a_story(layout, *told, *deaths))
    one, other = plain.snapshot().duties, crashed.snapshot().duties
    assert other.epoch == 1 + len(deaths)
    assert one.slots == other.slots
    assert {p: set(h) for p, h in one.held.items()} == {p: set(h) for p, h in other.held.items()}


@given(role_layouts(groups=2), happenings(), st.randoms(use_true_random=False))
@FEW
def test_the_order_of_what_happens_at_one_instant_does_not_matter(
    layout: RoleLayout, told: list[Happening], chance: object
) -> None:
    first: dict[tuple[int, str], Happening] = {}
    for one in told:  # of one processor only one thing at a time, or the order is a matter of fact
        name = str(getattr(one, "host", None) or getattr(one, "processor", None))
        first.setdefault((one.at_ms, name), one)
    kept = list(first.values())
    shuffled = list(kept)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    shuffled.sort(key=lambda one: one.at_ms)
    _, journal = played(a_story(layout, *kept))
    _, again = played(a_story(layout, *shuffled))
    assert deeds(journal) == deeds(again)


@given(role_layouts(groups=2), happenings())
@FEW
def test_the_journal_never_has_two_holders_of_a_single_role(
    layout: RoleLayout, told: list[Happening]
) -> None:
    """Also where starts fail, stops fail, processors are suspected, and plans overlap."""
    _, journal = played(a_story(layout, *told, physics=UNRELIABLE))
    draft, single = Draft(Snapshot()), table_of(layout).single
    for event in journal.events():
        transition.change(draft, event)
        busy = [(d, p) for p, held in draft.duties.held.items() for d in held if d in single]
        for running in draft.in_flight.values():
            action = running.step.action
            if isinstance(action, StartRole) and action.duty in single:
                busy.append((action.duty, action.processor))
        assert len({duty for duty, _ in busy}) == len(set(busy))


@given(
    st.integers(2, 30), st.integers(1, 40), st.integers(1, 40), st.sampled_from(["p1", "p2", "p4"])
)
@settings(max_examples=40)
def test_who_flaps_faster_than_grace_and_probation_moves_nobody(
    times: int, down_s: int, up_s: int, name: str
) -> None:
    who, role = ProcessorId(name), FREE[0]
    one = RolePreference(role=role, slots=SLOTS, preempt=True)
    desk = Desk(a_layout_of(a_team((), (one,), grace_s=20, probation_s=20)))
    desk.wait(100)
    desk.refilled, desk.asked = 0, []
    for _ in range(times):
        desk.down(who)
        desk.wait(down_s)
        desk.up(who)
        desk.wait(up_s)
    starts = sum(isinstance(action, StartRole) for action in desk.asked)
    if down_s < 20:
        assert desk.refilled == 0, "its slot was kept for it"
    else:
        assert desk.refilled <= times
    if down_s < 20 and up_s < 20:
        assert starts <= 1, "away once, and no return while it is on probation"
    # Whatever it does: at most one move away for each loss, and one return after each probation.
    assert starts <= 2 * times
    assert len(desk.holders(role)) == 1
    assert desk.team().id == GROUP


@given(role_layouts(groups=2), st.data())
@FEW
def test_who_may_leave_is_missed_by_no_role_and_who_may_not_is(
    layout: RoleLayout, data: st.DataObject
) -> None:
    desk = Desk(layout)
    desk.settle()
    for name in data.draw(st.lists(st.sampled_from(PROCESSORS), max_size=3)):
        desk.down(name)
        desk.wait(60)
    wanted_to = data.draw(st.permutations(PROCESSORS))
    leave = may_leave(desk.snapshot, wanted_to)
    table = table_of(layout)
    counts = {
        Duty(group, one.role): one.count
        for group, team in table.teams.items()
        for one in team.preferences
    }

    def covered() -> dict[Duty, int]:
        found: dict[Duty, int] = {}
        for held in desk.snapshot.duties.held.values():
            for duty in held:
                found[duty] = min(counts.get(duty, 1), found.get(duty, 0) + 1)
        return found

    before = covered()
    for name in leave.may:
        desk.happen(ProcessorLocked(at_ms=desk.at_ms, processor=name))
    desk.settle()
    after = covered()
    assert all(after.get(duty, 0) >= many for duty, many in before.items()), "nobody misses them"
    for name in leave.stay:
        one_more = may_leave(desk.snapshot, [name])
        assert name in one_more.stay
