"""Laws of judging: all judges, simple or fast, come to the same verdict."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulas
from batch_verdicts import judge_cases
from equipoise.errors import InvalidInput
from equipoise.model.event import ActionFinished, ActionStarted, Event
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import RunningAction
from equipoise.plan.interleavings import OverlayDraft
from equipoise.spec.batch.judge import CaseBatch
from equipoise.spec.evaluate import incremental
from equipoise.spec.judge import SpecificationJudge
from equipoise.spec.language.print import print_file
from equipoise.spec.language.syntax import Constraint
from equipoise.spec.library import library_constraints
from equipoise.spec.moments import moments
from equipoise.spec.requirement import Case, Requirement, holds_in_state, judge_case
from equipoise.spec.specification import Specification
from small_worlds import VARIANTS, a_random_plan, a_random_state, arguments

LIBRARY = sorted(library_constraints())
OTHERS = Specification.read(
    """
    Ahead ::= !(v : vms) $runs(v) --> always vmState(v) /= terminated
    Once ::= ?(v : vms) sometime runs(v) & host(v) = $host(v)
    Nested ::= card({card({v . v : vms, host(v) = n}) . n : hosts}) <= 2
    Lists ::= !(n : hosts) largest([cons(v, "licences") . v : vms, host(v) = n], 1) /= [2]
    Places ::= [label(n, "zone") . n : hosts] /= ["a", "b"]
    Shared ::= let all = {host(v) . v : vms, runs(v)} in card(all) <= 2 | all = hosts
    Divided ::= card(vms) > 0 --> 6 / card(vms) >= card({n . n : hosts, hostState(n) = on}) / 2
    Groups ::= !(s <: hosts) card(s) = 2 --> ?(v : vms) host(v) : s | vmState(v) = ready
    Packed ::= ?(p <<: hosts) card(p) = 1 & !(g : p) card(g) > 1
    """
)


def random_cases(seed: int, count: int, most: int = 5) -> tuple[Random, list[Case]]:
    rng = Random(seed)
    cases = []
    for _ in range(count):
        vms, hosts = rng.randint(0, most), rng.randint(1, most)
        state = a_random_state(rng, vms, hosts, rng.randrange(VARIANTS))
        cases.append(Case(state, a_random_plan(rng, state)))
    return rng, cases


def some_arguments(
    specification: Specification, name: str, cases: list[Case], rng: Random
) -> list[dict[str, Any]]:
    """Return arguments for each case; texts are the same in all, as they are in a campaign."""
    constraint = specification.constraints[name]
    every = [rng.choice(arguments(constraint, case.initial, rng) or [{}]) for case in cases]
    texts = [key for key in every[0] if isinstance(every[0][key], str)]
    shared = {
        parameter.name: every[0][parameter.name]
        for parameter in constraint.parameters
        if parameter.name in texts and getattr(parameter.domain, "name", "") == "string"
    }
    return [values | shared for values in every]


def applicable(specification: Specification, name: str, cases: list[Case]) -> list[Case]:
    """Return the cases that have arguments for a constraint, such as a VM to name."""
    constraint = specification.constraints[name]
    rng = Random(0)
    return [case for case in cases if arguments(constraint, case.initial, rng)]


def homes() -> list[tuple[Specification, str]]:
    of_library = [(library_constraints()[name], name) for name in LIBRARY]
    return of_library + [(OTHERS, name) for name in OTHERS.constraints]


@pytest.mark.parametrize(("home", "name"), homes(), ids=lambda value: str(value)[:30])
def test_a_batch_is_judged_like_its_cases(home: Specification, name: str) -> None:
    rng, cases = random_cases(sum(map(ord, name)), 24)
    cases = applicable(home, name, cases)
    values = some_arguments(home, name, cases, rng)
    for continuous in (True, False):
        verdicts = judge_cases(home, name, cases, values, continuous=continuous)
        for number, case in enumerate(cases):
            violation = judge_case(Requirement(home, name, values[number], continuous), case)
            assert verdicts.broken_ms[number] == (-1 if violation is None else violation.at_ms)
            assert verdicts.holds[number] == (violation is None)


@pytest.mark.parametrize(("home", "name"), homes(), ids=lambda value: str(value)[:30])
def test_a_state_is_judged_like_a_case_without_a_plan(home: Specification, name: str) -> None:
    rng, cases = random_cases(2 + sum(map(ord, name)), 24)
    cases = applicable(home, name, cases)
    for case, values in zip(cases, some_arguments(home, name, cases, rng), strict=True):
        for continuous in (True, False):
            requirement = Requirement(home, name, values, continuous)
            violation = judge_case(requirement, Case(case.initial))
            assert holds_in_state(requirement, case.initial) == (violation is None)


def test_the_whole_library_is_judged_in_batches() -> None:
    """A constraint without an array form would raise here."""
    rng, cases = random_cases(3, 8)
    for name in LIBRARY:
        home = library_constraints()[name]
        chosen = applicable(home, name, cases)
        values = some_arguments(home, name, chosen, rng)
        CaseBatch(chosen).judge(home, name, values, continuous=True)


@pytest.mark.parametrize(("home", "name"), homes(), ids=lambda value: str(value)[:30])
def test_judging_what_was_touched_is_judging_everything(
    home: Specification, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incremental, "INCREMENTAL_SIZE_MIN", 1)
    rng, cases = random_cases(1 + sum(map(ord, name)), 16)
    cases = applicable(home, name, cases)
    for case, values in zip(cases, some_arguments(home, name, cases, rng), strict=True):
        requirement = Requirement(home, name, values, continuous=True)
        judge = SpecificationJudge([requirement], case.steps)
        found = [violation for moment in moments(*case) for violation in judge(moment)]
        expected = judge_case(requirement, case)
        first_ms = [violation.at_ms for violation in found][:1]
        assert first_ms == ([] if expected is None else [expected.at_ms])
        for violation in found:
            assert violation.detail
            assert violation.step is None or violation.step in {step.id for step in case.steps}


def is_quick(file: tuple[Constraint, ...]) -> bool:
    """Whether few variables are bound: subsets of subsets take too long for every judge."""
    text = print_file(file)
    return "<<:" not in text and text.count("<:") <= 1 and text.count(" : ") <= 4


@settings(max_examples=3 * settings().max_examples)
@given(formulas.files, st.integers(0, 10**6))
def test_random_formulas_have_one_verdict(file: tuple[Constraint, ...], seed: int) -> None:
    home, name = Specification.read(print_file(file)), file[0].name
    _, cases = random_cases(seed, 2, most=3)
    if file[0].parameters or not is_quick(file):
        return
    for continuous in (True, False):
        requirement = Requirement(home, name, {}, continuous)
        try:
            expected = [judge_case(requirement, case) for case in cases]
        except InvalidInput:
            return  # the formula has no value; the judges may meet that at different terms
        verdicts = judge_cases(home, name, cases, [{}] * len(cases), continuous=continuous)
        assert [int(at_ms) for at_ms in verdicts.broken_ms] == [
            -1 if violation is None else violation.at_ms for violation in expected
        ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incremental, "INCREMENTAL_SIZE_MIN", 1)
        for case in cases:
            requirement = Requirement(home, name, {}, continuous=True)
            first = judge_case(requirement, case)
            judge = SpecificationJudge([requirement], case.steps)
            found = [violation for moment in moments(*case) for violation in judge(moment)]
            first_ms = [violation.at_ms for violation in found][:1]
            assert first_ms == ([] if first is None else [first.at_ms])


def unmeasured(actions: Iterable[RunningAction]) -> set[RunningAction]:
    """Actions without the measured sharing of links: an overlay measures nothing."""
    return {action._replace(sharing=1) for action in actions}


@given(st.integers(0, 10**6))
def test_an_overlay_is_like_the_real_state(seed: int) -> None:
    rng, (case,) = random_cases(seed, 1)
    events: list[Event] = []
    for step in case.steps:
        events.append(ActionStarted(at_ms=step.start_ms, step=step, attempt=1))
        if rng.random() < 0.7:
            events.append(ActionFinished(at_ms=step.end_ms, step=step.id, attempt=1))
    events.sort(key=lambda event: event.at_ms)
    half = rng.randint(0, len(events))
    real = Draft(case.initial)
    for event in events[:half]:
        transition.apply_to_draft(real, event)
    before = real.freeze()
    overlay = OverlayDraft(real)
    for event in events[half:]:
        transition.apply_to_draft(overlay, event)
    assert real.freeze() == before, "the overlay does not change the draft below"
    for event in events[half:]:
        transition.apply_to_draft(real, event)
    assert dict(overlay.vms) == dict(real.vms)
    assert dict(overlay.hosts) == dict(real.hosts)
    assert unmeasured(overlay.in_flight.values()) == unmeasured(real.in_flight.values())
    for host in real.hosts:
        assert set(overlay.residents(host)) == set(real.residents(host))
        assert unmeasured(overlay.actions_on_host(host)) == unmeasured(real.actions_on_host(host))
    for vm in real.vms:
        assert unmeasured(overlay.actions_on_vm(vm)) == unmeasured(real.actions_on_vm(vm))
