"""Laws of the executor in any world: every step is safe, and every plan ends."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise.capacity.ledger import CapacityLedger
from equipoise.control import ControlLoop
from equipoise.control.config import ControlConfig
from equipoise.control.ports import Instruction
from equipoise.model.action import Boot, Migrate
from equipoise.model.event import (
    ActionFinished,
    ActionStarted,
    Event,
    PlanAccepted,
    PlanEnded,
    PlanOutcome,
    encode_event,
)
from equipoise.model.plan import Plan
from equipoise.model.quantity import PlanId, RuleId, StepId
from equipoise.model.rule import Rule, StayOff
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import VerifiedPlan, order, verify
from equipoise.plan.preconditions import failed_preconditions, prerequisites
from equipoise.store import MemoryJournal
from memory_world import MemoryWorld, Script
from plain_breaches import misses
from worlds import clusters, intents, scripts

SHORT_TIMEOUTS = ControlConfig(
    timeout_factor=2, timeout_ms_min=0, cancel_grace_ms=700, attempts_max=3, retry_delay_ms=300
)


@st.composite
def verified_cases(draw: st.DrawFn) -> tuple[Snapshot, Plan, Script]:
    """A cluster, a plan that the gate mostly accepts, and a script of deviations."""
    snapshot = draw(clusters())
    wanted = draw(intents(snapshot))
    ordered = order(replace(snapshot, version=1), wanted, PlanId("p"))
    # The executable part of a refused plan is a plan as well.
    plan = ordered if isinstance(ordered, Plan) else ordered.plan
    script = draw(scripts(snapshot, [step.id for step in plan.steps]))
    arrivals = [step for step in plan.steps if isinstance(step.action, Boot | Migrate)]

    has_rule = draw(st.booleans())
    if arrivals and has_rule:  # the end of the plan breaks this rule
        last = arrivals[-1].footprint
        assert last.vm is not None
        assert last.target is not None
        off = StayOff(id=RuleId("off"), vms=(last.vm,), hosts=(last.target,))
        rules = (*snapshot.settings.rules, off)
        snapshot = replace(snapshot, settings=snapshot.settings.but(rules=rules))
    return snapshot, plan, script


def execute(case: tuple[Snapshot, Plan, Script]) -> list[Event]:
    snapshot, plan, script = case
    journal = MemoryJournal()
    loop = ControlLoop(MemoryWorld(snapshot, script), journal, config=SHORT_TIMEOUTS)
    loop.execute(plan)
    return list(journal.events())


def accepted(events: Sequence[Event]) -> Plan | None:
    return next((event.plan for event in events if isinstance(event, PlanAccepted)), None)


@given(verified_cases())
def test_every_accepted_plan_ends_once_and_accounts_for_every_step(
    case: tuple[Snapshot, Plan, Script],
) -> None:
    events = execute(case)
    plan = accepted(events)
    ends = [event for event in events if isinstance(event, PlanEnded)]
    assert len(ends) == (0 if plan is None else 1)
    for end in ends:
        assert plan is not None
        assert end.finished + end.failed + end.skipped == len(plan.steps)
        assert (end.outcome is PlanOutcome.DONE) == (end.finished == len(plan.steps))


@given(verified_cases())
def test_no_step_starts_before_its_prerequisites_have_succeeded(
    case: tuple[Snapshot, Plan, Script],
) -> None:
    events = execute(case)
    plan = accepted(events)
    needed = prerequisites(plan.steps, case[0].placement) if plan else {}
    succeeded: set[StepId] = set()
    for event in events:
        if isinstance(event, ActionFinished):
            succeeded.add(event.step)
        if isinstance(event, ActionStarted):
            assert set(needed[event.step.id]) <= succeeded


@given(verified_cases())
def test_limits_and_preconditions_hold_at_every_start(
    case: tuple[Snapshot, Plan, Script],
) -> None:
    ledger = CapacityLedger(Snapshot())
    for event in execute(case):
        if isinstance(event, ActionStarted):
            assert failed_preconditions(ledger, event.step.action) == ()
        ledger.apply(event)
        draft = ledger.draft
        limits = draft.settings.limits
        assert len(draft.in_flight) <= limits.actions_total
        for host in draft.hosts:
            assert len(draft.actions_on_host(host)) <= limits.actions_per_host


def broken_elements(rule: Rule, ledger: CapacityLedger) -> set[Hashable]:
    return set(misses(rule, ledger.draft.hosts, ledger.draft.vms))


@given(verified_cases())
def test_no_end_of_an_action_breaks_a_continuous_hard_rule(
    case: tuple[Snapshot, Plan, Script],
) -> None:
    """The rule holds also with late, failed and interrupted actions."""
    ledger = CapacityLedger(Snapshot())
    for event in execute(case):
        rules = [rule for rule in ledger.draft.settings.rules if rule.hard and rule.continuous]
        before = [broken_elements(rule, ledger) for rule in rules]
        ledger.apply(event)
        if isinstance(event, ActionFinished):
            for rule, old in zip(rules, before, strict=True):
                assert broken_elements(rule, ledger) <= old


@given(verified_cases())
def test_an_undisturbed_run_has_the_planned_times(
    case: tuple[Snapshot, Plan, Script],
) -> None:
    snapshot, plan, _ = case
    events = execute((snapshot, plan, Script()))
    if accepted(events) is None:
        return
    planned = {step.id: (step.start_ms, step.end_ms) for step in plan.steps}
    started = {e.step.id: e.at_ms for e in events if isinstance(e, ActionStarted)}
    finished = {e.step: e.at_ms for e in events if isinstance(e, ActionFinished)}
    assert {step: (started[step], finished[step]) for step in started} == planned


@given(verified_cases())
def test_the_believed_state_equals_the_true_state_at_the_end(
    case: tuple[Snapshot, Plan, Script],
) -> None:
    snapshot, plan, script = case
    if script.silent:
        return  # a lost outcome stays unknown until the next observation
    world = MemoryWorld(snapshot, script)
    journal = MemoryJournal()
    loop = ControlLoop(world, journal, config=SHORT_TIMEOUTS)
    loop.execute(plan)
    believed, truth = loop.snapshot(), world.observe()
    assert believed.vms == truth.vms
    assert believed.hosts == truth.hosts
    assert transition.replay(Snapshot(), journal.events()) == believed


class Crash(Exception):
    pass


class Countdown:
    """Makes the loop crash at its n-th call of world or journal, before or after the effect."""

    def __init__(self, world: MemoryWorld, journal: MemoryJournal, contacts: int) -> None:
        self._world, self._journal, self._left = world, journal, contacts

    def _contact(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise Crash

    def observe(self) -> Snapshot:
        return self._world.observe()

    def perform(self, instruction: Instruction) -> None:
        self._contact()
        self._world.perform(instruction)
        self._contact()

    def next_event(self, until_ms: int) -> Event | None:
        event = self._world.next_event(until_ms)
        self._contact()
        return event

    def append(self, events: Sequence[Event]) -> int:
        self._contact()
        length = self._journal.append(events)
        self._contact()
        return length

    def events(self, start: int = 0) -> Iterator[Event]:
        return self._journal.events(start)

    def __len__(self) -> int:
        return len(self._journal)


@given(verified_cases(), st.integers(1, 60))
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_a_crash_at_any_call_loses_no_event(
    case: tuple[Snapshot, Plan, Script], contacts: int
) -> None:
    snapshot, plan, script = case
    world, journal = MemoryWorld(snapshot, script), MemoryJournal()
    shaky = Countdown(world, journal, contacts)
    try:
        ControlLoop(shaky, shaky, config=SHORT_TIMEOUTS).execute(plan)
    except Crash:
        survivor = ControlLoop(world, journal, config=SHORT_TIMEOUTS)
        survivor.finish()
    events = list(journal.events())
    ends = [event for event in events if isinstance(event, PlanEnded)]
    assert len(ends) == (0 if accepted(events) is None else 1)
    starts = [(e.step.id, e.attempt) for e in events if isinstance(e, ActionStarted)]
    assert len(starts) == len(set(starts))
    finished = [event.step for event in events if isinstance(event, ActionFinished)]
    if not script.silent:
        assert len(finished) == len(set(finished))


@given(verified_cases(), st.integers(1, 60))
def test_a_crash_without_a_lost_answer_changes_nothing(
    case: tuple[Snapshot, Plan, Script], length: int
) -> None:
    """The journal is cut at any event, and a new loop continues with the same world."""
    snapshot, plan, _ = case
    whole = execute((snapshot, plan, Script()))
    if accepted(whole) is None:
        return
    world, journal = MemoryWorld(snapshot), MemoryJournal()
    shaky = Countdown(world, journal, length)
    try:
        ControlLoop(shaky, shaky, config=SHORT_TIMEOUTS).execute(plan)
    except Crash:
        if not len(journal):
            return
        loop = ControlLoop(world, journal, config=SHORT_TIMEOUTS)
        loop.finish()
        if accepted(list(journal.events())) is None:
            return
    kinds = [type(event) for event in journal.events()]
    assert sorted(map(str, kinds)) == sorted(str(type(event)) for event in whole)
    assert transition.replay(Snapshot(), journal.events()).vms == (
        transition.replay(Snapshot(), whole).vms
    )


@given(verified_cases())
def test_the_same_case_gives_the_same_journal(case: tuple[Snapshot, Plan, Script]) -> None:
    first = b"\n".join(map(encode_event, execute(case)))
    second = b"\n".join(map(encode_event, execute(case)))
    assert first == second


@given(verified_cases())
def test_the_ordered_plan_passes_the_gate_unless_a_rule_forbids_it(
    case: tuple[Snapshot, Plan, Script],
) -> None:
    snapshot, plan, _ = case
    verdict = verify(snapshot, plan.but(base_version=0))
    if not isinstance(verdict, VerifiedPlan):
        assert all(each.constraint.startswith("rule ") for each in verdict.violations)


def test_the_strategy_covers_the_interesting_cases() -> None:
    """The laws would hold trivially if nothing happened."""
    reached: set[str] = set()

    @given(verified_cases())
    @settings(max_examples=300, derandomize=True, database=None)
    def explore(case: tuple[Snapshot, Plan, Script]) -> None:
        for event in execute(case):
            reached.add(type(event).__name__)
            if isinstance(event, PlanEnded):
                reached.add(f"ended {event.outcome}")

    explore()
    wanted = {
        "ActionFinished", "ActionFailed", "ActionTimedOut", "ActionLost", "ActionSkipped",
        "HostFailed", "VmCrashed", "PlanRefused", "ended done", "ended partial", "ended cancelled",
    }  # fmt: skip
    missing = wanted - reached
    if missing:
        pytest.fail(f"never reached: {', '.join(sorted(missing))}")
