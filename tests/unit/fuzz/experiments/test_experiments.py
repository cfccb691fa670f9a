"""The experiments of the paper, with schedulers of which one knows what they get wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from equipoise.errors import WorldError
from equipoise.fuzz.experiments import EXPERIMENTS, Result, Subject, Table, subject_of
from equipoise.fuzz.experiments.table import ALL
from equipoise.fuzz.schedulers import Crash, TooLate, Unsupported
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.schedulers.scheduler import YesOrNo
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
        return trial.is_right

    def checks_many(self, trials: Sequence[Trial]) -> list[YesOrNo]:
        return [trial.is_right for trial in trials]

    def plans_many(self, trials: Sequence[Trial]) -> list[Any]:
        return [trial.steps for trial in trials]

    def close(self) -> None:
        self.closed = True


def known(make: Any, *names: str) -> Known:
    constraints = names or ("Spread", "Lonely")
    return Known(
        name="some", about="some", make=make, settings=SETTINGS, has_checker=True,
        constraints=constraints,
    )  # fmt: skip


def subject(make: Any, *names: str, tests: int = 120) -> Subject:
    some = known(make, *names)
    return subject_of(some, some.constraints, tests=tests, seed=3)


def run(name: str, made: Subject) -> Result:
    return EXPERIMENTS[name].run(made)


def row(table: Table, first: str) -> Mapping[str, Any]:
    (found,) = [one for one in table.rows if one[table.columns[0]] == first]
    return found


class TestSubject:
    def test_a_sample_is_as_large_as_asked_for_and_the_same_for_the_same_seed(self) -> None:
        one, other = subject(Scripted, tests=33), subject(Scripted, tests=33)
        assert len(one.trials) == 33
        assert [trial.demand.name for trial in one.trials[:3]] == ["Spread", "Lonely", "Spread"]
        third = subject_of(one.known, one.known.constraints, tests=33, seed=4)
        first, again, different = (list(map(case_of, some.trials)) for some in (one, other, third))
        assert first == again
        assert first != different

    def test_a_scheduler_is_closed_also_if_something_goes_wrong(self) -> None:
        made = Scripted()
        with (
            pytest.raises(ValueError, match="wrong"),
            subject(lambda **_: made).scheduler(repair="on"),
        ):
            raise ValueError("wrong")
        assert made.closed

    def test_one_that_takes_too_long_spoils_no_other(self) -> None:
        some = subject(Scripted, tests=6)

        def slow(trials: Sequence[Trial]) -> list[bool]:
            if some.trials[2] in trials:
                raise TooLate("it thinks and thinks")
            return [True for _ in trials]

        answers = some.each(slow, some.trials, "arm")
        assert [one is True for one in answers] == [True, True, False, True, True, True]
        assert isinstance(answers[2], TooLate)

    def test_one_that_ends_the_worker_is_not_passed_over(self) -> None:
        def dying(trials: Sequence[Trial]) -> list[bool]:
            raise WorldError("it died")

        some = subject(Scripted, tests=2)
        with pytest.raises(WorldError):
            some.each(dying, some.trials, "arm")


class Timeless(Scripted):
    """It looks at the end only, whatever it is asked for."""

    def accepts(self, trial: Trial) -> bool:
        super().accepts(trial)
        demand = replace(trial.demand, continuous=False)
        return replace(trial, demand=demand).is_right


class WordlessInOneMode(Scripted):
    """It has no words for every moment of Lonely."""

    def accepts(self, trial: Trial) -> bool:
        if trial.demand.name == "Lonely" and trial.demand.continuous:
            raise Unsupported("never continuous")
        return super().accepts(trial)


class TestModes:
    def test_who_ignores_time_is_wrong_in_one_mode_only(self) -> None:
        made = Timeless()
        by_constraint, by_verdict, by_cause = run(
            "modes", subject(lambda **_: made, tests=60)
        ).tables
        total = row(by_constraint, ALL)
        assert (total["trials"], total["discrete"]) == (60, 0)
        assert total["continuous"] > 0
        assert row(by_verdict, "under-filtering")["continuous"] == total["continuous"]
        assert sum(int(one["continuous"]) for one in by_cause.rows) == total["continuous"]

    def test_both_arms_are_the_same_trials_but_for_the_mode(self) -> None:
        made = Scripted()
        run("modes", subject(lambda **_: made, tests=20))
        discrete, continuous = made.asked[:20], made.asked[20:]
        assert {trial.demand.continuous for trial in discrete} == {False}
        as_continuous = [case_of(one).but(continuous=True) for one in discrete]
        assert as_continuous == list(map(case_of, continuous))

    def test_what_is_answered_in_one_mode_only_does_not_count(self) -> None:
        result = run("modes", subject(WordlessInOneMode, tests=40))
        assert [one["constraint"] for one in result.tables[0].rows] == ["Spread", ALL]
        assert row(result.tables[0], ALL)["trials"] == 20
        assert "Never answered in both modes: Lonely." in result.notes

    def test_only_constraints_with_both_modes_are_compared(self) -> None:
        wanted = EXPERIMENTS["modes"].constraints
        assert wanted(known(Scripted, "Spread", "Root", "NoDelay", "Fence")) == ("Spread", "Fence")
        assert "MaxOnline" in wanted(replace(known(Scripted), constraints=()))


class Stuck(Scripted):
    """If it repairs it moves nobody, and refuses whoever does."""

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

    def test_where_it_matters_is_told_for_both_questions(self) -> None:
        some = subject(Stuck)
        imposed, apart, ways, ways_apart = run("repair", some).tables
        moving = sum(bool(_moves(one.steps)) for one in some.trials if one.is_right)
        assert moving > 0
        assert row(imposed, "over-filtering") == {
            "verdict": "over-filtering", "repair off": 0, "repair on": moving,
        }  # fmt: skip
        assert sum(int(one["trials"]) for one in apart.rows) == moving
        assert row(ways, "finds none")["repair on"] == moving
        assert row(ways, "makes a right plan")["repair off"] == sum(
            one.is_right for one in some.trials
        )
        assert sum(int(one["trials"]) for one in ways_apart.rows) == moving

    def test_where_it_does_not_matter_no_trial_is_told(self) -> None:
        _, apart, _, ways_apart = run("repair", subject(Scripted, tests=30)).tables
        assert not apart.rows
        assert not ways_apart.rows


class Blind(Scripted):
    """It accepts everything, and breaks where there is nothing to do; its checker knows Spread."""

    def accepts(self, trial: Trial) -> bool:
        if not trial.steps:
            raise Crash("nothing to do")
        return True

    def checks_many(self, trials: Sequence[Trial]) -> list[YesOrNo]:
        return [trial.is_right if trial.demand.name == "Spread" else True for trial in trials]


class TestOracle:
    def test_who_finds_what(self) -> None:
        some = subject(Blind)
        by_verdict, by_constraint = run("oracle", some).tables
        busy = [one for one in some.trials if one.steps]
        wrong = [one for one in busy if not one.is_right]
        seen = [one for one in wrong if one.demand.name == "Spread"]
        assert 0 < len(seen) < len(wrong)
        assert row(by_verdict, "under-filtering") == {
            "verdict": "under-filtering", "specification": len(wrong), "checker": len(seen),
            "both": len(seen), "only the specification": len(wrong) - len(seen),
            "only the checker": 0, "both, at run time": len(seen),
        }  # fmt: skip
        assert row(by_verdict, "crash")["both"] == len(some.trials) - len(busy)
        assert row(by_verdict, "over-filtering")["checker"] == 0
        assert row(by_constraint, ALL)["specification"] == row(by_verdict, ALL)["specification"]

    def test_a_checker_that_is_too_strict_is_told_apart_from_a_defect(self) -> None:
        class Strict(Scripted):
            def checks_many(self, trials: Sequence[Trial]) -> list[YesOrNo]:
                return [False for _ in trials]

        some = subject(Strict, tests=40)
        by_verdict, _ = run("oracle", some).tables
        right = sum(one.is_right for one in some.trials)
        assert row(by_verdict, ALL)["specification"] == 0
        assert row(by_verdict, "under-filtering")["only the checker"] == right


class Fragile(Scripted):
    """It breaks on an empty set."""

    def accepts(self, trial: Trial) -> bool:
        if not trial.demand.arguments["vs"]:
            raise Crash("nobody is named")
        return super().accepts(trial)


class TestCauses:
    def test_defects_are_counted_by_their_cause_beside_the_figures_of_the_paper(self) -> None:
        some = subject(Fragile)
        by_cause, by_verdict = run("causes", some).tables
        empty = sum(not one.demand.arguments["vs"] for one in some.trials)
        assert empty > 0
        total = row(by_cause, ALL)
        assert (total["B"], total["sum"]) == (empty, empty)
        assert row(by_cause, "constraints")["B"] == 2
        assert row(by_cause, "paper: trials")["A"] == 704
        assert row(by_cause, "paper: trials")["sum"] == 1431
        assert row(by_verdict, "crash")["trials"] == empty
        assert sum(int(one["paper: trials"]) for one in by_verdict.rows) == 1641


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("modes", {"question": "plan"}, "makes plans"),
        ("causes", {"question": "place"}, "makes plans"),
        ("repair", {"settings": {}}, "has no setting 'repair'"),
        ("oracle", {"has_checker": False}, "has no checker of its own"),
    ],
)
def test_an_experiment_says_why_it_cannot_be_made(
    name: str, change: dict[str, Any], why: str
) -> None:
    lacks = EXPERIMENTS[name].lacks
    assert lacks(known(Scripted)) == ""
    assert why in lacks(replace(known(Scripted), **change))
