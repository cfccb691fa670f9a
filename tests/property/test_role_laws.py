"""Laws of roles in the whole system: crashes, order within an instant, flapping, one holder."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.model.action import StartRole
from equipoise.model.event import Event, ProcessorLocked, ProposalMade
from equipoise.model.plan import Proposal
from equipoise.model.quantity import ProcessorId
from equipoise.model.roles.layout import RoleLayout, RolePreference
from equipoise.model.roles.state import GroupRole, layout_index
from equipoise.model.scenario.faults import ControllerLost, ScheduledEvent
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft, TouchedEntities
from equipoise.model.state.snapshot import Snapshot
from equipoise.roles.propose import RoleDecider
from equipoise.roles.removal import check_removal
from role_harness import FREE, GROUP, PROCESSORS, SLOTS, RoleHarness, a_layout_of, a_team
from role_scenarios import (
    UNRELIABLE,
    a_role_scenario,
    role_actions,
    role_layouts,
    run_scenario,
    scheduled_events,
)

FEW = settings(max_examples=15)


def decisions(proposal: Proposal) -> tuple[list[str], list[object]]:
    """Return the steps and slot assignments of a proposal, without ids of steps."""
    actions = sorted(str(item.action) for item in proposal.intents)
    return actions, [(item.group, dict(item.slots)) for item in proposal.slot_assignments]


def replayed_decider(events: Iterable[Event]) -> tuple[RoleDecider, Draft]:
    """Return a decider that has only read the journal, and the state of the journal."""
    roles, draft = RoleDecider(), Draft(Snapshot())
    for event in events:
        transition.apply_to_draft(draft, event)
        draft.pop_touched()
        roles.on_event(event, TouchedEntities((), ()))
    return roles, draft


@given(role_layouts(groups=2), scheduled_events())
@FEW
def test_a_decider_replayed_to_any_point_makes_the_same_decision(
    layout: RoleLayout, faults: list[ScheduledEvent]
) -> None:
    _, journal = run_scenario(a_role_scenario(layout, *faults, physics=UNRELIABLE))
    events = list(journal.events())
    for index, event in enumerate(events):
        if isinstance(event, ProposalMade):
            roles, draft = replayed_decider(events[:index])
            draft.at_ms = event.at_ms
            assert decisions(roles.propose(draft.freeze())) == decisions(event.proposal)


@given(
    role_layouts(groups=2),
    scheduled_events(),
    st.lists(st.integers(1, 120), min_size=1, max_size=3),
)
@FEW
def test_a_run_with_controller_crashes_has_the_same_end(
    layout: RoleLayout, faults: list[ScheduledEvent], crashes: list[int]
) -> None:
    losses = [ControllerLost(at_ms=1000 * s + 250, for_ms=1) for s in sorted(set(crashes))]
    plain, _ = run_scenario(a_role_scenario(layout, *faults))
    crashed, _ = run_scenario(a_role_scenario(layout, *faults, *losses))
    expected, actual = plain.snapshot().role_state, crashed.snapshot().role_state
    assert actual.epoch == 1 + len(losses)
    assert expected.slots == actual.slots
    assert {p: set(held_roles) for p, held_roles in expected.held.items()} == {
        p: set(held_roles) for p, held_roles in actual.held.items()
    }


@given(role_layouts(groups=2), scheduled_events(), st.randoms(use_true_random=False))
@FEW
def test_the_order_of_events_at_one_instant_does_not_matter(
    layout: RoleLayout, faults: list[ScheduledEvent], randomness: object
) -> None:
    first: dict[tuple[int, str], ScheduledEvent] = {}
    for event in faults:  # one event per processor and instant: otherwise the order has a meaning
        name = str(getattr(event, "host", None) or getattr(event, "processor", None))
        first.setdefault((event.at_ms, name), event)
    kept = list(first.values())
    shuffled = list(kept)
    randomness.shuffle(shuffled)  # type: ignore[attr-defined]
    shuffled.sort(key=lambda event: event.at_ms)
    _, journal = run_scenario(a_role_scenario(layout, *kept))
    _, again = run_scenario(a_role_scenario(layout, *shuffled))
    assert role_actions(journal) == role_actions(again)


@given(role_layouts(groups=2), scheduled_events())
@FEW
def test_the_journal_never_has_two_holders_of_a_single_role(
    layout: RoleLayout, faults: list[ScheduledEvent]
) -> None:
    """This holds also if starts and stops fail, processors are suspected, and plans overlap."""
    _, journal = run_scenario(a_role_scenario(layout, *faults, physics=UNRELIABLE))
    draft, single = Draft(Snapshot()), layout_index(layout).single
    for event in journal.events():
        transition.apply_to_draft(draft, event)
        busy = [
            (group_role, p)
            for p, held in draft.role_state.held.items()
            for group_role in held
            if group_role in single
        ]
        for running in draft.in_flight.values():
            action = running.step.action
            if isinstance(action, StartRole) and action.group_role in single:
                busy.append((action.group_role, action.processor))
        assert len({group_role for group_role, _ in busy}) == len(set(busy))


@given(
    st.integers(2, 30), st.integers(1, 40), st.integers(1, 40), st.sampled_from(["p1", "p2", "p4"])
)
@settings(max_examples=40)
def test_a_flapping_processor_within_grace_and_probation_moves_no_role_twice(
    times: int, down_s: int, up_s: int, name: str
) -> None:
    processor, role = ProcessorId(name), FREE[0]
    preference = RolePreference(role=role, slots=SLOTS, preempt=True)
    harness = RoleHarness(a_layout_of(a_team((), (preference,), grace_s=20, probation_s=20)))
    harness.wait(100)
    harness.refilled, harness.asked = 0, []
    for _ in range(times):
        harness.down(processor)
        harness.wait(down_s)
        harness.up(processor)
        harness.wait(up_s)
    starts = sum(isinstance(action, StartRole) for action in harness.asked)
    if down_s < 20:
        assert harness.refilled == 0, "its slot was kept"
    else:
        assert harness.refilled <= times
    if down_s < 20 and up_s < 20:
        assert starts <= 1, "the role leaves once, and does not return during probation"
    # In all cases: at most one move away per failure, and one return per probation.
    assert starts <= 2 * times
    assert len(harness.holders(role)) == 1
    assert harness.team().id == GROUP


@given(role_layouts(groups=2), st.data())
@FEW
def test_allowed_removals_lose_no_role_and_blocked_ones_do(
    layout: RoleLayout, data: st.DataObject
) -> None:
    harness = RoleHarness(layout)
    harness.settle()
    for name in data.draw(st.lists(st.sampled_from(PROCESSORS), max_size=3)):
        harness.down(name)
        harness.wait(60)
    order = data.draw(st.permutations(PROCESSORS))
    check = check_removal(harness.snapshot, order)
    table = layout_index(layout)
    counts = {
        GroupRole(group, preference.role): preference.count
        for group, team in table.groups.items()
        for preference in team.preferences
    }

    def covered() -> dict[GroupRole, int]:
        counts_held: dict[GroupRole, int] = {}
        for held in harness.snapshot.role_state.held.values():
            for group_role in held:
                counts_held[group_role] = min(
                    counts.get(group_role, 1), counts_held.get(group_role, 0) + 1
                )
        return counts_held

    before = covered()
    for name in check.allowed:
        harness.happen(ProcessorLocked(at_ms=harness.at_ms, processor=name))
    harness.settle()
    after = covered()
    assert all(after.get(group_role, 0) >= count for group_role, count in before.items()), (
        "no role has lost a holder"
    )
    for name in check.blocked:
        one_more = check_removal(harness.snapshot, [name])
        assert name in one_more.blocked
