"""Campaigns: what is counted, when they end, and what they show of a defect."""

from __future__ import annotations

from collections.abc import Sequence

from builders import figures
from equipoise.adapters.targets.scheduler import SchedulerTimeout, UnsupportedTrial
from equipoise.fuzz.campaign import CampaignLimits, CampaignReport, FuzzCampaign
from equipoise.fuzz.campaign.batch import SIZE_MIN
from equipoise.fuzz.campaign.text_report import report_lines
from equipoise.fuzz.generate import TrialOptions
from equipoise.fuzz.reports import CampaignAccount, render_page
from equipoise.fuzz.schedulers.planner import Planner
from equipoise.fuzz.trial import Trial, TrialOutcome
from equipoise.model.action import Migrate
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.vm import VmState
from equipoise.spec.library import library_constraints


class Right:
    """It says what the specification says."""

    def accepts(self, trial: Trial) -> bool:
        return not trial.objections and trial.violation is None


class Blind:
    """It accepts everything."""

    def accepts(self, trial: Trial) -> bool:
        return True


class Anxious:
    """It rejects every plan with a step."""

    def accepts(self, trial: Trial) -> bool:
        return not trial.steps and trial.violation is None


class Fragile:
    """It breaks on an empty set, and tells how many VMs there were."""

    def accepts(self, trial: Trial) -> bool:
        if not trial.demand.arguments["vs"]:
            raise ValueError(f"none of {len(trial.initial.vms)} VMs")
        return Right().accepts(trial)


class Slow:
    """It never answers in time, or has no words."""

    def accepts(self, trial: Trial) -> bool:
        raise SchedulerTimeout if trial.steps else UnsupportedTrial("a plan without steps")


def found(scheduler: object, *names: str, **fields: object) -> CampaignReport:
    limits = CampaignLimits(**{"tests": 120, **fields})  # type: ignore[arg-type]
    return FuzzCampaign("t", scheduler, names or ("Spread",), limits=limits).run()  # type: ignore[arg-type]


def test_a_right_scheduler_has_no_defects() -> None:
    report = found(Right(), "Spread", "Fence", "Root")
    assert (report.tests, report.agreed, report.defects) == (120, 120, 0)
    assert report.findings == []
    assert report.tests_per_s > 0


def test_a_scheduler_that_accepts_everything_has_under_filtering() -> None:
    report = found(Blind())
    assert report.outcomes[TrialOutcome.UNDER] == report.defects > 0
    assert {finding.mode for finding in report.findings} == {"continuous", "discrete"}
    for finding in report.findings:
        assert finding.verdict.outcome is TrialOutcome.UNDER
        assert finding.verdict.code == "under-filtering"
        assert len(finding.shrunk.initial.vms) == 2
        assert len(finding.shrunk.initial.hosts) <= 2
    assert sum(report.seen.values()) == report.defects


def test_a_scheduler_that_rejects_too_much_has_over_filtering() -> None:
    report = found(Anxious())
    assert {finding.verdict.outcome for finding in report.findings} == {TrialOutcome.OVER}
    for finding in report.findings:
        assert len(finding.shrunk.steps) == 1
        assert finding.shrunk.violation is None
        assert not finding.shrunk.objections
        assert finding.verdict.code == "over-filtering"


def test_crashes_that_differ_in_a_number_only_are_one_finding() -> None:
    report = found(Fragile())
    assert [finding.mode for finding in report.findings].count("continuous") == 1
    assert len(report.findings) == 2
    for finding in report.findings:
        assert finding.why.endswith("ValueError: none of 0 VMs")
        assert finding.verdict.code == "scheduler-crashed"
    assert report.outcomes[TrialOutcome.CRASH] > 2


def test_no_answer_is_no_defect() -> None:
    report = found(Slow())
    assert set(report.outcomes) == {TrialOutcome.TIMEOUT, TrialOutcome.UNSUPPORTED}
    assert report.defects == 0


def test_it_ends_at_whatever_comes_first() -> None:
    assert found(Blind(), failures=3).defects == 3
    assert found(Right(), tests=None, seconds=0.0).tests == SIZE_MIN  # what is done counts
    assert found(Right(), tests=0).tests == 0


def test_the_same_seed_finds_the_same() -> None:
    first, other = found(Blind()), found(Blind())
    assert first.outcomes == other.outcomes
    assert [(each.number, each.shrunk.steps) for each in first.findings] == [
        (each.number, each.shrunk.steps) for each in other.findings
    ]


def test_trials_are_judged_again() -> None:
    report = found(Blind())
    again = FuzzCampaign("t", Right(), ("Spread",)).replay(
        finding.shrunk for finding in report.findings
    )
    assert (again.tests, again.agreed) == (len(report.findings), len(report.findings))
    blind = FuzzCampaign("t", Blind(), ("Spread",)).replay(
        finding.shrunk for finding in report.findings
    )
    assert blind.defects == len(report.findings)


def test_larger_clusters_are_shrunk_as_well() -> None:
    options = TrialOptions(hosts=(5, 6), vms=(6, 8))
    report = FuzzCampaign(
        "t", Blind(), ("Spread",), options, limits=CampaignLimits(failures=1)
    ).run()
    (finding,) = report.findings
    assert len(finding.trial.initial.vms) >= 6
    assert len(finding.shrunk.initial.vms) == 2


def test_our_planner_stands_a_campaign_of_all_constraints() -> None:
    names = tuple(library_constraints())
    report = FuzzCampaign(
        "planner", Planner(), names, seed=3, limits=CampaignLimits(tests=300)
    ).run()
    assert (report.tests, report.agreed) == (300, 300)


class Idle:
    """It makes plans, and all of them are empty."""

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


WITHOUT_PLANS = TrialOptions(actions=(0, 0), switched=0, continuous=False, agents=0, paired=0)


def test_a_planner_that_does_nothing_leaves_violations_in_place() -> None:
    report = FuzzCampaign(
        "t", Idle(), ("Spread",), WITHOUT_PLANS, 0, CampaignLimits(tests=200)
    ).run()
    (finding,) = report.findings
    assert (finding.verdict.outcome, finding.verdict.harm) == (TrialOutcome.UNDER, "left in place")
    assert len(finding.shrunk.initial.vms) == 2
    assert (finding.verdict.code, figures(finding.why)[0]) == ("under-filtering", 0)


def test_the_finding_of_a_wrong_plan_has_that_plan() -> None:
    options = WITHOUT_PLANS.but(host_states={HostState.ON: 1}, resources={})
    report = FuzzCampaign("t", Packing(), ("Spread",), options, 0, CampaignLimits(tests=200)).run()
    (finding,) = [finding for finding in report.findings if finding.verdict.harm == "introduced"]
    assert finding.shrunk.steps == ()
    assert [type(step.action) for step in finding.shown.steps] == [Migrate]
    assert (len(finding.shrunk.initial.vms), len(finding.shrunk.initial.hosts)) == (2, 2)
    assert "under-filtering, introduced: Spread" in "\n".join(report_lines(report))


class Babbling:
    """Its plans are words."""

    def plan(self, trial: Trial) -> list[Step]:
        return ["to bed"]  # type: ignore[list-item]


class Forgetful(Right):
    """Asked about many plans, it forgets all but one."""

    def accepts_many(self, trials: Sequence[Trial]) -> list[bool]:
        return [True]


def test_an_invalid_plan_is_a_crash_of_the_scheduler() -> None:
    whys = {finding.why for finding in found(Babbling()).findings}
    (why,) = whys
    assert "str" in why.split()
    assert found(Forgetful()).defects == 0


class Elsewhere:
    """It moves an unknown VM to an unknown host."""

    def plan(self, trial: Trial) -> list[Step]:
        action = Migrate(vm=VmId("ghost"), source=HostId("x"), target=HostId("y"))
        return [Step(id=StepId("s"), action=action, start_ms=0, end_ms=1000)]


def test_a_plan_for_unknown_machines_is_a_defect() -> None:
    report = found(Elsewhere())
    assert set(report.outcomes) == {TrialOutcome.UNDER}
    assert "ghost" in "\n".join(report_lines(report))
    assert "ghost" in render_page(CampaignAccount(report))


def test_defects_with_different_causes_are_different_findings() -> None:
    report = found(Blind(), "Spread", "Among", "RunningCapacity", tests=400)
    told_apart = [(finding.signature, finding.cause) for finding in report.findings]
    assert len(set(told_apart)) == len(told_apart)
    assert len({signature for signature, _ in told_apart}) < len(told_apart)
    for signature, count in report.seen.items():
        assert count >= sum(other == signature for other, _ in told_apart) >= 1
