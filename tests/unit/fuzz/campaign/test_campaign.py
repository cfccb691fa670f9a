"""Campaigns: what is counted, when they end, and what they show of a defect."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.fuzz.campaign import Campaign, Limits, Report
from equipoise.fuzz.campaign.pace import SMALLEST
from equipoise.fuzz.campaign.words import told
from equipoise.fuzz.generate import Options
from equipoise.fuzz.reports import Account, page_of
from equipoise.fuzz.schedulers import TooLate, Unsupported
from equipoise.fuzz.schedulers.planner import Planner
from equipoise.fuzz.trial import Outcome, Trial
from equipoise.model.action import Migrate
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.vm import VmState
from equipoise.spec.library import library_constraints


class Right:
    """It says what the specification says."""

    def accepts(self, trial: Trial) -> bool:
        return not trial.objections and trial.fault is None


class Blind:
    """It accepts everything."""

    def accepts(self, trial: Trial) -> bool:
        return True


class Anxious:
    """It refuses whatever moves anybody."""

    def accepts(self, trial: Trial) -> bool:
        return not trial.steps and trial.fault is None


class Fragile:
    """It breaks on an empty set, and tells how many VMs there were."""

    def accepts(self, trial: Trial) -> bool:
        if not trial.demand.arguments["vs"]:
            raise ValueError(f"nobody among {len(trial.initial.vms)} VMs")
        return Right().accepts(trial)


class Slow:
    """It never answers in time, or has no words."""

    def accepts(self, trial: Trial) -> bool:
        raise TooLate if trial.steps else Unsupported("a plan without steps")


def found(scheduler: object, *names: str, **fields: object) -> Report:
    limits = Limits(**{"tests": 120, **fields})  # type: ignore[arg-type]
    return Campaign("t", scheduler, names or ("Spread",), limits=limits).run()  # type: ignore[arg-type]


def test_who_is_right_has_no_defects() -> None:
    report = found(Right(), "Spread", "Fence", "Root")
    assert (report.tests, report.agreed, report.defects) == (120, 120, 0)
    assert report.findings == []
    assert report.tests_per_s > 0


def test_who_accepts_everything_lets_through_what_is_wrong() -> None:
    report = found(Blind())
    assert report.outcomes[Outcome.UNDER] == report.defects > 0
    assert {finding.mode for finding in report.findings} == {"continuous", "discrete"}
    for finding in report.findings:
        assert finding.verdict.outcome is Outcome.UNDER
        assert finding.why.startswith("it accepts a plan that breaks the constraint at")
        assert len(finding.shrunk.initial.vms) == 2
        assert len(finding.shrunk.initial.hosts) <= 2
    assert sum(report.seen.values()) == report.defects


def test_who_refuses_too_much_is_shown_a_plan_that_is_right() -> None:
    report = found(Anxious())
    assert {finding.verdict.outcome for finding in report.findings} == {Outcome.OVER}
    for finding in report.findings:
        assert len(finding.shrunk.steps) == 1
        assert finding.shrunk.fault is None
        assert not finding.shrunk.objections
        assert "refuses a plan" in finding.why


def test_crashes_that_differ_in_a_number_only_are_one_finding() -> None:
    report = found(Fragile())
    assert [finding.mode for finding in report.findings].count("continuous") == 1
    assert len(report.findings) == 2
    for finding in report.findings:
        assert finding.why == "it breaks: ValueError: nobody among 0 VMs"
    assert report.outcomes[Outcome.CRASH] > 2


def test_no_answer_is_no_defect() -> None:
    report = found(Slow())
    assert set(report.outcomes) == {Outcome.TIMEOUT, Outcome.UNSUPPORTED}
    assert report.defects == 0


def test_it_ends_at_whatever_comes_first() -> None:
    assert found(Blind(), failures=3).defects == 3
    assert found(Right(), tests=None, seconds=0.0).tests == SMALLEST  # what is done counts
    assert found(Right(), tests=0).tests == 0


def test_the_same_seed_finds_the_same() -> None:
    one, other = found(Blind()), found(Blind())
    assert one.outcomes == other.outcomes
    assert [(each.number, each.shrunk.steps) for each in one.findings] == [
        (each.number, each.shrunk.steps) for each in other.findings
    ]


def test_trials_are_judged_again() -> None:
    report = found(Blind())
    again = Campaign("t", Right(), ("Spread",)).replay(one.shrunk for one in report.findings)
    assert (again.tests, again.agreed) == (len(report.findings), len(report.findings))
    blind = Campaign("t", Blind(), ("Spread",)).replay(one.shrunk for one in report.findings)
    assert blind.defects == len(report.findings)


def test_larger_clusters_are_shrunk_as_well() -> None:
    options = Options(hosts=(5, 6), vms=(6, 8))
    report = Campaign("t", Blind(), ("Spread",), options, limits=Limits(failures=1)).run()
    (finding,) = report.findings
    assert len(finding.trial.initial.vms) >= 6
    assert len(finding.shrunk.initial.vms) == 2


def test_our_planner_stands_a_campaign_of_all_constraints() -> None:
    names = tuple(library_constraints())
    report = Campaign("planner", Planner(), names, seed=3, limits=Limits(tests=300)).run()
    assert (report.tests, report.agreed) == (300, 300)


class Idle:
    """It is asked for a plan, and never does anything."""

    def plan(self, trial: Trial) -> tuple[Step, ...]:
        return ()


class Packing:
    """It puts whatever runs on the first host, whether that is wanted or not."""

    def plan(self, trial: Trial) -> tuple[Step, ...]:
        first = min(trial.initial.hosts)
        moving = [
            Migrate(vm=vm.id, source=vm.host, target=first)
            for vm in trial.initial.vms.values()
            if vm.state is VmState.RUNNING and vm.host is not None and vm.host != first
        ]
        return tuple(
            Step(id=StepId(f"s{n}"), action=action, start_ms=1000 * n, end_ms=1000 * (n + 1))
            for n, action in enumerate(moving)
        )


WITHOUT_PLANS = Options(actions=(0, 0), switched=0, continuous=False, agents=0, paired=0)


def test_who_does_nothing_leaves_in_place_what_was_broken() -> None:
    report = Campaign("t", Idle(), ("Spread",), WITHOUT_PLANS, 0, Limits(tests=200)).run()
    (finding,) = report.findings
    assert (finding.verdict.outcome, finding.verdict.harm) == (Outcome.UNDER, "left in place")
    assert len(finding.shrunk.initial.vms) == 2
    assert finding.why.startswith("it makes a plan that breaks the constraint at 0 ms")


def test_who_makes_a_wrong_plan_is_shown_it() -> None:
    options = WITHOUT_PLANS.but(host_states={HostState.ON: 1}, resources={})
    report = Campaign("t", Packing(), ("Spread",), options, 0, Limits(tests=200)).run()
    (finding,) = [one for one in report.findings if one.verdict.harm == "introduced"]
    assert finding.shrunk.steps == ()
    assert [type(step.action) for step in finding.shown.steps] == [Migrate]
    assert (len(finding.shrunk.initial.vms), len(finding.shrunk.initial.hosts)) == (2, 2)
    assert "under-filtering, introduced: Spread" in "\n".join(told(report))


class Babbling:
    """Its plans are words."""

    def plan(self, trial: Trial) -> list[Step]:
        return ["to bed"]  # type: ignore[list-item]


class Forgetful(Right):
    """Asked about many plans, it forgets all but one."""

    def accepts_many(self, trials: Sequence[Trial]) -> list[bool]:
        return [True]


def test_nonsense_is_a_crash_of_the_scheduler_and_not_of_ours() -> None:
    whys = {one.why for one in found(Babbling()).findings}
    assert whys == {"it breaks: its plan has str where a step should be"}
    assert found(Forgetful()).defects == 0


class Elsewhere:
    """It moves a VM that nobody knows to a host that nobody knows."""

    def plan(self, trial: Trial) -> list[Step]:
        action = Migrate(vm=VmId("ghost"), source=HostId("x"), target=HostId("y"))
        return [Step(id=StepId("s"), action=action, start_ms=0, end_ms=1000)]


def test_a_plan_for_machines_that_are_not_there_is_told() -> None:
    report = found(Elsewhere())
    assert set(report.outcomes) == {Outcome.UNDER}
    assert "ghost" in "\n".join(told(report))
    assert "ghost" in page_of(Account(report))


def test_defects_of_one_sort_with_different_causes_are_different_findings() -> None:
    report = found(Blind(), "Spread", "Among", "RunningCapacity", tests=400)
    told_apart = [(one.sort, one.cause) for one in report.findings]
    assert len(set(told_apart)) == len(told_apart)
    assert len({sort for sort, _ in told_apart}) < len(told_apart)
    for sort, count in report.seen.items():
        assert count >= sum(one == sort for one, _ in told_apart) >= 1
