"""Who is wrong about networks is found, by a case in which a network is all that matters."""

from __future__ import annotations

import pytest

from equipoise.adapters.targets.scheduler import Scheduler
from equipoise.adapters.targets.trial import NetworkOptions, PlanSampling, TrialOptions
from equipoise.fuzz.campaign import CampaignLimits, CampaignReport, FuzzCampaign
from equipoise.fuzz.registry import find_scheduler
from equipoise.fuzz.schedulers.faulty import FAULTY_NETWORK, NETWORK_TRIALS
from equipoise.fuzz.schedulers.planner import Planner
from equipoise.fuzz.trial import Trial, TrialOutcome, judge
from equipoise.model.action import Migrate
from equipoise.model.problem.problem import ProblemDurations
from equipoise.plan.exact.timeline.constraints import NetworkConstraints
from equipoise.plan.exact.timeline.schedules import Lane, Routes
from equipoise.plan.network import COPY_TOO_FAST, NETWORK_OVERLOADED


def campaign(
    scheduler: Scheduler, options: TrialOptions = NETWORK_TRIALS, tests: int = 500
) -> CampaignReport:
    return FuzzCampaign(
        "mine", scheduler, ("Spread",), options, 0, CampaignLimits(tests, failures=3)
    ).run()


def moves(trial: Trial) -> int:
    return sum(isinstance(step.action, Migrate) for step in trial.steps)


@pytest.mark.parametrize(
    ("name", "outcome", "messages"),
    [
        ("faulty-unwired", TrialOutcome.UNDER, {NETWORK_OVERLOADED, COPY_TOO_FAST}),
        ("faulty-hurried", TrialOutcome.UNDER, {COPY_TOO_FAST}),
        ("faulty-departing", TrialOutcome.UNDER, {NETWORK_OVERLOADED}),
        ("faulty-simplex", TrialOutcome.OVER, {""}),
    ],
)
def test_each_is_found_and_the_network_is_left_in_the_smallest_case(
    name: str, outcome: TrialOutcome, messages: set[str]
) -> None:
    known = find_scheduler(name)
    assert known is not None
    report = campaign(known.make(), known.options)
    assert report.findings
    for finding in report.findings:
        assert finding.verdict.outcome is outcome
        assert finding.verdict.message in messages
        assert finding.cause.letter == ""
        assert finding.shrunk.network is not None
        assert len(finding.shrunk.network.switches) == 1
        assert len(finding.shrunk.network.links) == len(finding.shrunk.initial.hosts) <= 3
        assert moves(finding.shrunk) == len(finding.shrunk.steps) <= 3
        assert judge(Planner(), finding.shrunk).outcome is TrialOutcome.AGREE


def test_overload_names_the_link_and_short_copies_the_amount() -> None:
    report = campaign(FAULTY_NETWORK["faulty-unwired"](), tests=200)
    told = {finding.verdict.message: finding.why for finding in report.findings}
    assert "Mbit/s" in told[NETWORK_OVERLOADED]
    assert "Mbit/s copy" in told[COPY_TOO_FAST]


def test_half_duplex_assumption_shows_in_careful_plans() -> None:
    report = campaign(
        FAULTY_NETWORK["faulty-simplex"](), NETWORK_TRIALS.but(plans=PlanSampling.CAREFUL)
    )
    assert {finding.verdict.outcome for finding in report.findings} == {TrialOutcome.OVER}


def test_without_a_network_they_are_right() -> None:
    plain = NETWORK_TRIALS.but(network=None)
    for make in FAULTY_NETWORK.values():
        assert campaign(make(), plain, tests=60).defects == 0


class _NoTraffic(NetworkConstraints):
    """Says nothing to the solver."""

    def require(self) -> None:
        pass


class _OneEnd(Routes):
    """Knows of a link only the end at which a VM leaves its host."""

    def __init__(self, network: object) -> None:
        super().__init__(network)  # type: ignore[arg-type]
        self.capacity: dict[Lane, int] = {
            lane: 10**9 if lane[1] == "down" else mbps for lane, mbps in self.capacity.items()
        }


@pytest.mark.parametrize(
    ("where", "what", "wrong"),
    [
        ("equipoise.plan.exact.model", "NetworkConstraints", _NoTraffic),
        ("equipoise.plan.exact.timeline.timeline", "Routes", _OneEnd),
    ],
)
def test_a_planner_that_forgets_links_or_one_end_of_them_is_found(
    where: str, what: str, wrong: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert campaign(Planner(), tests=150).defects == 0
    monkeypatch.setattr(f"{where}.{what}", wrong)
    report = campaign(Planner(), tests=1000)
    assert NETWORK_OVERLOADED in {finding.verdict.message for finding in report.findings}


def test_a_planner_that_does_not_ask_how_long_copying_takes_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ProblemDurations, "copying_ms", lambda *_: 0)
    report = campaign(Planner())
    assert {finding.verdict.message for finding in report.findings} == {COPY_TOO_FAST}


@pytest.mark.parametrize("name", ["balance", "power"])
def test_our_deciders_reject_networks(name: str) -> None:
    known = find_scheduler(name)
    assert known is not None
    usual = {key: values[0] for key, values in known.settings.items()}
    options = known.options.but(network=NetworkOptions())
    report = campaign(known.make(**usual), options, tests=5)
    assert report.outcomes == {TrialOutcome.UNSUPPORTED: 5}


def test_more_at_once_than_the_limits_allow_is_nothing_that_our_planner_makes() -> None:
    options = TrialOptions(plans=PlanSampling.ANY, hosts=(1, 1), vms=(6, 6))
    names = ("ShareableResource",)
    report = FuzzCampaign("planner", Planner(), names, options, 3, CampaignLimits(300)).run()
    assert report.defects == 0
    assert report.outcomes[TrialOutcome.UNSUPPORTED] > 5
