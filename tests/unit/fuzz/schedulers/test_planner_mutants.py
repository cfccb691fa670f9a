"""A trial tells each mutant from the planner that it was made of."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from random import Random

import pytest

from equipoise.fuzz.schedulers.planner import EQUIVALENT_MUTANTS, MutantPlanner, Planner, mutants
from equipoise.fuzz.schedulers.spec_mutation import MutationRule, well_typed_mutants
from equipoise.fuzz.trial import Trial, TrialOutcome, judge
from equipoise.spec.library import library_constraints
from equipoise.spec.requirement import Case, judge_case
from property.spec.test_library_mutants import EQUIVALENT
from random_trials import trials

TRIALS_MAX = 2_000
"""The number of trials of its constraint within which every mutant has a defect."""
CONSTRAINTS = sorted({mutant.constraint for mutant in mutants().values()})


def evidence(constraint: str) -> dict[str, Trial]:
    """For each mutant of a constraint the first trial that it gets wrong."""
    found: dict[str, Trial] = {}
    alive = {name: mutant for name, mutant in mutants().items() if mutant.constraint == constraint}
    for trial in islice(trials(constraint, Random(constraint)), TRIALS_MAX):
        for name, mutant in list(alive.items()):
            if misreads(mutant, trial) and judge(mutant, trial).outcome.is_defect:
                found[name] = trial
                del alive[name]
        if not alive:
            break
    return found


def misreads(mutant: MutantPlanner, trial: Trial) -> bool:
    """Whether the changed constraint itself says something else; that is quicker to ask."""
    demand = replace(trial.demand, specification=mutant.mutant.specification)
    fault = judge_case(demand, Case(trial.initial, trial.steps))
    return (fault is None) != (trial.violation is None)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_each_mutant_gets_a_trial_wrong_that_the_planner_gets_right(constraint: str) -> None:
    found = evidence(constraint)
    made = {name for name, mutant in mutants().items() if mutant.constraint == constraint}
    assert found.keys() == made, "if it changes nothing, say why in SAME"
    wrong = {judge(mutants()[name], trial).outcome for name, trial in found.items()}
    assert wrong <= {TrialOutcome.OVER, TrialOutcome.UNDER}
    assert {judge(Planner(), trial).outcome for trial in found.values()} == {TrialOutcome.AGREE}


def test_there_are_enough_of_them_of_many_constraints_and_by_every_rule() -> None:
    assert len(mutants()) >= 200
    assert len(CONSTRAINTS) >= 30
    assert {mutant.mutant.rule for mutant in mutants().values()} == set(MutationRule)


def test_those_left_out_are_known_to_change_nothing_and_no_others_are() -> None:
    for name in EQUIVALENT_MUTANTS:
        _, constraint, rule = name.split("-")
        made = well_typed_mutants(library_constraints()[constraint], constraint)
        *_, last = (candidate for candidate in made if candidate.rule == rule)
        assert last.description in EQUIVALENT[constraint], "decided in test_library_mutants"
    for mutant in mutants().values():
        assert mutant.mutant.description not in EQUIVALENT.get(mutant.constraint, {})


def test_a_mutant_reads_all_other_constraints_well() -> None:
    mutant = mutants()["mutant-Spread-comparison"]
    some = list(islice(trials("Gather", Random(1)), 50))
    assert {judge(mutant, trial).outcome for trial in some} <= {
        TrialOutcome.AGREE,
        TrialOutcome.UNSUPPORTED,
    }
    assert {trial.violation is None for trial in some} == {True, False}
