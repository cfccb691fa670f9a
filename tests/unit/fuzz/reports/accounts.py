"""Accounts of campaigns for tests: findings of each class, with names of any kind."""

from __future__ import annotations

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.campaign import CampaignReport, Finding
from equipoise.fuzz.reports import CampaignAccount
from equipoise.fuzz.trial import Trial, TrialOutcome, TrialVerdict
from equipoise.model.action import Migrate
from equipoise.model.quantity import HostId, VmId
from equipoise.spec.library import library_constraints
from equipoise.spec.requirement import Requirement

NASTY = "</script></failure>]]><img src=x onerror=alert(1)>&\"'\x00\x1b[31m\ud800\ufffe"


def a_trial(constraint: str = "Spread", *, vm: str = "v1", host: str = "h1") -> Trial:
    """One VM joins another: wrong for Spread, in which both are, and right for Gather."""
    initial = a_cluster(a_host(host), a_host("h2"), vms=[a_vm(vm, host), a_vm("v2", "h2")])
    both = frozenset({VmId(vm), VmId("v2")})
    demand = Requirement(library_constraints()[constraint], constraint, {"vs": both})
    move = Migrate(vm=VmId(vm), source=HostId(host), target=HostId("h2"))
    return Trial(demand, initial, (a_step("s1", move),))


def a_finding(outcome: TrialOutcome, trial: Trial | None = None, message: str = "") -> Finding:
    trial = trial or a_trial()
    return Finding(TrialVerdict(outcome, message), 7, trial, trial)


def an_account(
    *findings: Finding, target: str = "mine", asked: tuple[str, ...] = (), version: str = ""
) -> CampaignAccount:
    """An account in which each finding was seen twice, among agreement about Fence."""
    report = CampaignReport(target, 3, tests=100, seconds=2.0, findings=list(findings))
    for finding in findings:
        report.seen[finding.signature] += 2
        report.outcomes[finding.verdict.outcome] += 2
        report.verdicts[finding.constraint, finding.verdict.outcome] += 2
    left = report.tests - sum(report.outcomes.values())
    report.outcomes[TrialOutcome.AGREE] += left
    report.verdicts["Fence", TrialOutcome.AGREE] += left
    return CampaignAccount(report, asked, version)
