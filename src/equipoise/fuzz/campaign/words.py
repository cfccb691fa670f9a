"""Findings in a few lines that a person can read."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.fuzz.campaign.findings import Finding, Report
from equipoise.fuzz.trial import Trial
from equipoise.model.action import describe
from equipoise.model.vm import Vm
from equipoise.model.words import counted
from equipoise.spec.explain import shown


def told(report: Report) -> Iterator[str]:
    """Every finding of a report, each by its smallest case."""
    for finding in report.findings:
        seen = counted(report.seen[finding.sort], "time")
        harm = finding.verdict.harm and f", {finding.verdict.harm}"
        yield f"{finding.verdict.outcome}{harm}: {finding.constraint}, {finding.mode}, seen {seen}"
        yield f"  {finding.why}"
        yield from (f"  {line}" for line in _trial(finding.shown))
        yield from (f"  {line}" for line in _further(finding))


def _trial(trial: Trial) -> Iterator[str]:
    demand = trial.demand
    given = ", ".join(f"{name} = {shown(value)}" for name, value in demand.arguments.items())
    yield f"{demand.name}({given})"
    hosts = ", ".join(f"{host.id} {host.state}" for host in trial.initial.hosts.values())
    yield f"hosts: {hosts or 'none'}"
    yield f"VMs: {', '.join(map(_vm, trial.initial.vms.values())) or 'none'}"
    for step in trial.steps:
        yield f"{step.start_ms / 1000:g} to {step.end_ms / 1000:g} s: {describe(step.action)}"


def _vm(vm: Vm) -> str:
    where = "" if vm.host is None else f" on {vm.host}"
    return f"{vm.id} {vm.state}{where}"


def _further(finding: Finding) -> Iterator[str]:
    if finding.verdict.broken_at_first:
        yield "the constraint is broken before the plan begins"
    if not finding.verdict.input_valid:
        yield "machines could not carry the plan out"
