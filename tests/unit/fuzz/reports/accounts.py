"""Accounts of campaigns for tests: findings of each class, with names of any kind."""

from __future__ import annotations

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.fuzz.campaign import Finding, Report
from equipoise.fuzz.reports import Account
from equipoise.fuzz.trial import Outcome, Trial, Verdict
from equipoise.model.action import Migrate
from equipoise.model.quantity import HostId, VmId
from equipoise.spec.demand import Demand
from equipoise.spec.library import library_constraints

NASTY = "</script></failure>]]><img src=x onerror=alert(1)>&\"'\x00\x1b[31m\ud800\ufffe"


def a_trial(constraint: str = "Spread", *, vm: str = "v1", host: str = "h1") -> Trial:
    """One VM joins another: wrong for Spread, in which both are, and right for Gather."""
    initial = a_cluster(a_host(host), a_host("h2"), vms=[a_vm(vm, host), a_vm("v2", "h2")])
    both = frozenset({VmId(vm), VmId("v2")})
    demand = Demand(library_constraints()[constraint], constraint, {"vs": both})
    move = Migrate(vm=VmId(vm), source=HostId(host), target=HostId("h2"))
    return Trial(demand, initial, (a_step("s1", move),))


def a_finding(outcome: Outcome, trial: Trial | None = None, message: str = "") -> Finding:
    trial = trial or a_trial()
    return Finding(Verdict(outcome, message), 7, trial, trial)


def an_account(
    *findings: Finding, target: str = "mine", asked: tuple[str, ...] = (), version: str = ""
) -> Account:
    """An account in which each finding was seen twice, among agreement about Fence."""
    report = Report(target, 3, tests=100, seconds=2.0, findings=list(findings))
    for one in findings:
        report.seen[one.sort] += 2
        report.outcomes[one.verdict.outcome] += 2
        report.verdicts[one.constraint, one.verdict.outcome] += 2
    left = report.tests - sum(report.outcomes.values())
    report.outcomes[Outcome.AGREE] += left
    report.verdicts["Fence", Outcome.AGREE] += left
    return Account(report, asked, version)
