"""The experiments of the paper, with schedulers of which one knows what they get wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from equipoise.adapters.targets.scheduler import (
    AcceptanceAnswer,
    SchedulerCrash,
    SchedulerEntry,
    SchedulerTimeout,
    UnsupportedTrial,
)
from equipoise.errors import WorldError
from equipoise.fuzz.experiments import (
    EXPERIMENTS,
    ExperimentResult,
    ResultTable,
    Subject,
    subject_of,
)
from equipoise.fuzz.experiments.subject import TOTAL
from equipoise.fuzz.trial import Trial
from equipoise.fuzz.trial.stored import case_of
from equipoise.model.action import Migrate
from equipoise.model.plan import Step

SETTINGS = {"repair": ("off", "on")}


@dataclass
class Scripted:
    """Says what the specification says, but for what a test wants."""

    repair: str = "off"
    asked: list[Trial] = field(default_factory=list)
    closed: bool = False

    def accepts(self, trial: Trial) -> bool:
        self.asked.append(trial)
        return trial.is_acceptable

    def checks_many(self, trials: Sequence[Trial]) -> list[AcceptanceAnswer]:
        return [trial.is_acceptable for trial in trials]

    def plans_many(self, trials: Sequence[Trial]) -> list[Any]:
        return [trial.steps for trial in trials]

    def close(self) -> None:
        self.closed = True


def known(make: Any, *names: str) -> SchedulerEntry:
    constraints = names or ("Spread", "Lonely")
    return SchedulerEntry(
        name="some", about="some", make=make, settings=SETTINGS, has_checker=True,
        constraints=constraints,
    )  # fmt: skip


def subject(make: Any, *names: str, tests: int = 120) -> Subject:
    some = known(make, *names)
    return subject_of(some, some.constraints, tests=tests, seed=3)


def run(name: str, made: Subject) -> ExperimentResult:
    return EXPERIMENTS[name].run(made)


def row(table: ResultTable, first: str) -> Mapping[str, Any]:
    (found,) = [row for row in table.rows if row[table.columns[0]] == first]
    return found


class TestSubject:
    def test_a_sample_has_its_size_and_depends_on_the_seed(self) -> None:
        first, other = subject(Scripted, tests=33), subject(Scripted, tests=33)
        assert len(first.trials) == 33
        assert [trial.demand.name for trial in first.trials[:3]] == ["Spread", "Lonely", "Spread"]
        third = subject_of(first.known, first.known.constraints, tests=33, seed=4)
        cases, again, different = (
            list(map(case_of, some.trials)) for some in (first, other, third)
        )
        assert cases == again
        assert cases != different

    def test_a_scheduler_is_closed_also_if_something_goes_wrong(self) -> None:
        made = Scripted()
        with (
            pytest.raises(ValueError, match="wrong"),
            subject(lambda **_: made).scheduler(repair="on"),
        ):
            raise ValueError("wrong")
        assert made.closed

    def test_a_timeout_of_one_trial_keeps_the_other_answers(self) -> None:
        some = subject(Scripted, tests=6)

        def slow(trials: Sequence[Trial]) -> list[bool]:
            if some.trials[2] in trials:
                raise SchedulerTimeout("it thinks and thinks")
            return [True for _ in trials]

        answers = some.each(slow, some.trials, "arm")
        assert [answer is True for answer in answers] == [True, True, False, True, True, True]
        assert isinstance(answers[2], SchedulerTimeout)

    def test_a_trial_that_ends_the_worker_raises(self) -> None:
        def dying(trials: Sequence[Trial]) -> list[bool]:
            raise WorldError("it died")

        some = subject(Scripted, tests=2)
        with pytest.raises(WorldError):
            some.each(dying, some.trials, "arm")


class Timeless(Scripted):
    """It checks only the end, in both modes."""

    def accepts(self, trial: Trial) -> bool:
        super().accepts(trial)
        demand = replace(trial.demand, continuous=False)
        return replace(trial, demand=demand).is_acceptable


class WordlessInOneMode(Scripted):
    """It has no words for every moment of Lonely."""

    def accepts(self, trial: Trial) -> bool:
        if trial.demand.name == "Lonely" and trial.demand.continuous:
            raise UnsupportedTrial("never continuous")
        return super().accepts(trial)


class TestModes:
    def test_a_scheduler_that_ignores_time_fails_only_in_continuous_mode(self) -> None:
        made = Timeless()
        by_constraint, by_verdict, by_cause = run(
            "modes", subject(lambda **_: made, tests=60)
        ).tables
        total = row(by_constraint, TOTAL)
        assert (total["trials"], total["discrete"]) == (60, 0)
        assert total["continuous"] > 0
        assert row(by_verdict, "under-filtering")["continuous"] == total["continuous"]
        assert sum(int(row["continuous"]) for row in by_cause.rows) == total["continuous"]

    def test_both_arms_are_the_same_trials_but_for_the_mode(self) -> None:
        made = Scripted()
        run("modes", subject(lambda **_: made, tests=20))
        discrete, continuous = made.asked[:20], made.asked[20:]
        assert {trial.demand.continuous for trial in discrete} == {False}
        as_continuous = [case_of(trial).but(continuous=True) for trial in discrete]
        assert as_continuous == list(map(case_of, continuous))

    def test_trials_without_an_answer_in_both_modes_do_not_count(self) -> None:
        result = run("modes", subject(WordlessInOneMode, tests=40))
        assert [row["constraint"] for row in result.tables[0].rows] == ["Spread", TOTAL]
        assert row(result.tables[0], TOTAL)["trials"] == 20
        assert [note.endswith(": Lonely.") for note in result.notes].count(True) == 1

    def test_only_constraints_with_both_modes_are_compared(self) -> None:
        wanted = EXPERIMENTS["modes"].constraints
        assert wanted(known(Scripted, "Spread", "Root", "NoDelay", "Fence")) == ("Spread", "Fence")
        assert "MaxOnline" in wanted(replace(known(Scripted), constraints=()))


class Stuck(Scripted):
    """With repair it moves no VM, and rejects plans with moves."""

    def accepts(self, trial: Trial) -> bool:
        return super().accepts(trial) and not (self.repair == "on" and _moves(trial.steps))

    def plans_many(self, trials: Sequence[Trial]) -> list[Any]:
        stuck = self.repair == "on"
        return [None if stuck and _moves(trial.steps) else trial.steps for trial in trials]


def _moves(steps: Sequence[Step]) -> int:
    return sum(isinstance(step.action, Migrate) for step in steps)


class TestRepair:
    def test_each_arm_is_made_with_its_own_setting(self) -> None:
        made: list[str] = []

        def make(repair: str) -> Scripted:
            made.append(repair)
            return Scripted(repair)

        run("repair", subject(make, tests=4))
        assert made == ["off", "on"]

    def test_differences_of_repair_are_listed_for_both_questions(self) -> None:
        some = subject(Stuck)
        imposed, apart, ways, ways_apart = run("repair", some).tables
        moving = sum(bool(_moves(trial.steps)) for trial in some.trials if trial.is_acceptable)
        assert moving > 0
        assert row(imposed, "over-filtering") == {
            "verdict": "over-filtering", "repair off": 0, "repair on": moving,
        }  # fmt: skip
        assert sum(int(row["trials"]) for row in apart.rows) == moving
        assert row(ways, "finds none")["repair on"] == moving
        assert row(ways, "makes a right plan")["repair off"] == sum(
            trial.is_acceptable for trial in some.trials
        )
        assert sum(int(row["trials"]) for row in ways_apart.rows) == moving

    def test_no_difference_of_repair_lists_no_trial(self) -> None:
        _, apart, _, ways_apart = run("repair", subject(Scripted, tests=30)).tables
        assert not apart.rows
        assert not ways_apart.rows


class Blind(Scripted):
    """It accepts everything, and breaks where there is nothing to do; its checker knows Spread."""

    def accepts(self, trial: Trial) -> bool:
        if not trial.steps:
            raise SchedulerCrash("nothing to do")
        return True

    def checks_many(self, trials: Sequence[Trial]) -> list[AcceptanceAnswer]:
        return [trial.is_acceptable if trial.demand.name == "Spread" else True for trial in trials]


class TestOracle:
    def test_defects_are_counted_by_judge(self) -> None:
        some = subject(Blind)
        by_verdict, by_constraint = run("oracle", some).tables
        busy = [trial for trial in some.trials if trial.steps]
        wrong = [trial for trial in busy if not trial.is_acceptable]
        seen = [admit for admit in wrong if admit.demand.name == "Spread"]
        assert 0 < len(seen) < len(wrong)
        assert row(by_verdict, "under-filtering") == {
            "verdict": "under-filtering", "specification": len(wrong), "checker": len(seen),
            "both": len(seen), "only the specification": len(wrong) - len(seen),
            "only the checker": 0, "both, at run time": len(seen),
        }  # fmt: skip
        assert row(by_verdict, "crash")["both"] == len(some.trials) - len(busy)
        assert row(by_verdict, "over-filtering")["checker"] == 0
        assert row(by_constraint, TOTAL)["specification"] == row(by_verdict, TOTAL)["specification"]

    def test_an_alarm_of_a_strict_checker_is_counted_separately(self) -> None:
        class Strict(Scripted):
            def checks_many(self, trials: Sequence[Trial]) -> list[AcceptanceAnswer]:
                return [False for _ in trials]

        some = subject(Strict, tests=40)
        by_verdict, _ = run("oracle", some).tables
        right = sum(trial.is_acceptable for trial in some.trials)
        assert row(by_verdict, TOTAL)["specification"] == 0
        assert row(by_verdict, "under-filtering")["only the checker"] == right


class Fragile(Scripted):
    """It breaks on an empty set."""

    def accepts(self, trial: Trial) -> bool:
        if not trial.demand.arguments["vs"]:
            raise SchedulerCrash("no VM is named")
        return super().accepts(trial)


class TestCauses:
    def test_defects_are_counted_by_their_cause_beside_the_figures_of_the_paper(self) -> None:
        some = subject(Fragile)
        by_cause, by_verdict = run("causes", some).tables
        empty = sum(not trial.demand.arguments["vs"] for trial in some.trials)
        assert empty > 0
        total = row(by_cause, TOTAL)
        assert (total["B"], total["sum"]) == (empty, empty)
        assert row(by_cause, "constraints")["B"] == 2
        assert row(by_cause, "paper: trials")["A"] == 704
        assert row(by_cause, "paper: trials")["sum"] == 1431
        assert row(by_verdict, "crash")["trials"] == empty
        assert sum(int(row["paper: trials"]) for row in by_verdict.rows) == 1641


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("modes", {"question": "plan"}, "makes plans"),
        ("causes", {"question": "place"}, "makes plans"),
        ("repair", {"settings": {}}, "has no setting 'repair'"),
        ("oracle", {"has_checker": False}, "has no checker"),
    ],
)
def test_an_experiment_says_why_it_cannot_be_made(
    name: str, change: dict[str, Any], why: str
) -> None:
    lacks = EXPERIMENTS[name].lacks
    assert lacks(known(Scripted)) == ""
    assert why in lacks(replace(known(Scripted), **change))
