"""Laws of judging: whoever judges a case, and however quickly, comes to the same verdict."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulas
from equipoise.errors import InvalidInput
from equipoise.model.change import transition
from equipoise.model.change.draft import Draft
from equipoise.model.event import ActionFinished, ActionStarted, Event
from equipoise.plan.imagined import Imagined
from equipoise.spec import tally
from equipoise.spec.batch import Batch, judge_cases
from equipoise.spec.case import Case, holds_at_rest, judge_case
from equipoise.spec.demand import Demand
from equipoise.spec.judge import SpecificationJudge
from equipoise.spec.language.print import print_file
from equipoise.spec.language.syntax import Constraint
from equipoise.spec.library import library_constraints
from equipoise.spec.moment import moments
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
    """Arguments for each case; texts are the same in all, as they are in a campaign."""
    constraint = specification.constraints[name]
    every = [rng.choice(arguments(constraint, case.initial, rng) or [{}]) for case in cases]
    texts = [one for one in every[0] if isinstance(every[0][one], str)]
    shared = {
        one.name: every[0][one.name]
        for one in constraint.parameters
        if one.name in texts and getattr(one.domain, "name", "") == "string"
    }
    return [one | shared for one in every]


def askable(specification: Specification, name: str, cases: list[Case]) -> list[Case]:
    """The cases in which a constraint can be asked at all: a VM must be there to be named."""
    constraint = specification.constraints[name]
    rng = Random(0)
    return [case for case in cases if arguments(constraint, case.initial, rng)]


def homes() -> list[tuple[Specification, str]]:
    found = [(library_constraints()[name], name) for name in LIBRARY]
    return found + [(OTHERS, name) for name in OTHERS.constraints]


@pytest.mark.parametrize(("home", "name"), homes(), ids=lambda value: str(value)[:30])
def test_judging_a_batch_is_judging_each_case(home: Specification, name: str) -> None:
    rng, cases = random_cases(sum(map(ord, name)), 24)
    cases = askable(home, name, cases)
    values = some_arguments(home, name, cases, rng)
    for continuous in (True, False):
        verdicts = judge_cases(home, name, cases, values, continuous=continuous)
        for place, case in enumerate(cases):
            fault = judge_case(Demand(home, name, values[place], continuous), case)
            assert verdicts.broken_ms[place] == (-1 if fault is None else fault.at_ms)
            assert verdicts.holds[place] == (fault is None)


@pytest.mark.parametrize(("home", "name"), homes(), ids=lambda value: str(value)[:30])
def test_judging_a_state_is_judging_a_case_in_which_nothing_happens(
    home: Specification, name: str
) -> None:
    rng, cases = random_cases(2 + sum(map(ord, name)), 24)
    cases = askable(home, name, cases)
    for case, values in zip(cases, some_arguments(home, name, cases, rng), strict=True):
        for continuous in (True, False):
            demand = Demand(home, name, values, continuous)
            fault = judge_case(demand, Case(case.initial))
            assert holds_at_rest(demand, case.initial) == (fault is None)


def test_nearly_the_whole_library_is_judged_in_batches() -> None:
    """Whoever is not falls back to one case at a time, and would be noticed here."""
    rng, cases = random_cases(3, 8)
    for name in LIBRARY:
        home = library_constraints()[name]
        some = askable(home, name, cases)
        Batch(some).judge(home, name, some_arguments(home, name, some, rng), continuous=True)


@pytest.mark.parametrize(("home", "name"), homes(), ids=lambda value: str(value)[:30])
def test_judging_only_what_was_touched_is_judging_everything(
    home: Specification, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "WORTHWHILE", 1)
    rng, cases = random_cases(1 + sum(map(ord, name)), 16)
    cases = askable(home, name, cases)
    for case, values in zip(cases, some_arguments(home, name, cases, rng), strict=True):
        demand = Demand(home, name, values, continuous=True)
        court = SpecificationJudge([demand], case.steps)
        told = [violation for moment in moments(*case) for violation in court(moment)]
        fault = judge_case(demand, case)
        assert [one.at_ms for one in told][:1] == ([] if fault is None else [fault.at_ms])
        for violation in told:
            assert violation.detail
            assert violation.step is None or violation.step in {step.id for step in case.steps}


def is_quick(file: tuple[Constraint, ...]) -> bool:
    """Whether few enough variables are bound: subsets of subsets take for ever, whoever judges."""
    text = print_file(file)
    return "<<:" not in text and text.count("<:") <= 1 and text.count(" : ") <= 4


@settings(max_examples=3 * settings().max_examples)
@given(formulas.files, st.integers(0, 10**6))
def test_random_formulas_are_judged_alike_by_all(file: tuple[Constraint, ...], seed: int) -> None:
    home, name = Specification.read(print_file(file)), file[0].name
    _, cases = random_cases(seed, 2, most=3)
    if file[0].parameters or not is_quick(file):
        return
    for continuous in (True, False):
        demand = Demand(home, name, {}, continuous)
        try:
            faults = [judge_case(demand, case) for case in cases]
        except InvalidInput:
            return  # it has no value, and whoever meets that first may tell
        found = judge_cases(home, name, cases, [{}] * len(cases), continuous=continuous)
        assert [int(at) for at in found.broken_ms] == [
            -1 if fault is None else fault.at_ms for fault in faults
        ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally, "WORTHWHILE", 1)
        for case in cases:
            demand = Demand(home, name, {}, continuous=True)
            fault = judge_case(demand, case)
            court = SpecificationJudge([demand], case.steps)
            told = [violation for moment in moments(*case) for violation in court(moment)]
            assert [one.at_ms for one in told][:1] == ([] if fault is None else [fault.at_ms])


@given(st.integers(0, 10**6))
def test_what_is_imagined_is_what_would_be(seed: int) -> None:
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
        transition.change(real, event)
    before = real.freeze()
    imagined = Imagined(real)
    for event in events[half:]:
        transition.change(imagined, event)
    assert real.freeze() == before, "what is imagined changes nothing"
    for event in events[half:]:
        transition.change(real, event)
    assert dict(imagined.vms) == dict(real.vms)
    assert dict(imagined.hosts) == dict(real.hosts)
    assert dict(imagined.in_flight) == dict(real.in_flight)
    for host in real.hosts:
        assert set(imagined.residents(host)) == set(real.residents(host))
        assert set(imagined.running_at(host)) == set(real.running_at(host))
    for vm in real.vms:
        assert set(imagined.running_on(vm)) == set(real.running_on(vm))
