"""Findings in a few lines that a person can read."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.fuzz.campaign.findings import Finding, Report
from equipoise.fuzz.campaign.placed import particulars, placed, wires
from equipoise.fuzz.trial import Trial
from equipoise.model.action import describe
from equipoise.model.host import Host
from equipoise.model.vm import Vm
from equipoise.model.words import counted
from equipoise.spec.demand import Demand
from equipoise.spec.explain import shown


def told(report: Report) -> Iterator[str]:
    """Every finding of a report, each by its smallest case."""
    for finding in report.findings:
        yield from told_one(finding, report.seen[finding.sort])


def told_one(finding: Finding, seen: int) -> Iterator[str]:
    """One finding, and how often it was seen."""
    verdict, times = finding.verdict, counted(seen, "time")
    harm = verdict.harm and f", {verdict.harm}"
    yield f"{verdict.outcome}{harm}: {finding.constraint}, {finding.mode}, seen {times}"
    yield f"  {finding.why}"
    yield from (f"  {line}" for line in _trial(finding.shown))
    yield from (f"  {line}" for line in _further(finding))


def _trial(trial: Trial) -> Iterator[str]:
    yield call_of(trial.demand)
    yield f"hosts: {', '.join(map(_host, trial.initial.hosts.values())) or 'none'}"
    yield f"VMs: {', '.join(map(_vm, trial.initial.vms.values())) or 'none'}"
    if trial.network is not None:
        parts = (" ".join(filter(None, one)) for one in wires(trial.network))
        yield f"network, in Mbit/s: {', '.join(parts)}"
    for step in trial.steps:
        yield f"{step.start_ms / 1000:g} to {step.end_ms / 1000:g} s: {describe(step.action)}"
    yield from placed(trial)


def call_of(demand: Demand) -> str:
    """A constraint with its arguments by name, as one would call it."""
    given = ", ".join(f"{name} = {shown(value)}" for name, value in demand.arguments.items())
    return f"{demand.name}({given})"


def _host(host: Host) -> str:
    return f"{host.id} {host.state}{_besides(host)}"


def _vm(vm: Vm) -> str:
    where = "" if vm.host is None else f" on {vm.host}"
    return f"{vm.id} {vm.state}{where}{_besides(vm)}"


def _besides(machine: Host | Vm) -> str:
    found = particulars(machine)
    return f" ({found})" if found else ""


def _further(finding: Finding) -> Iterator[str]:
    if finding.cause.letter:
        yield f"looks like cause {finding.cause.letter}: {finding.cause.words}"
    if finding.verdict.broken_at_first:
        yield "the constraint is broken before the plan begins"
    if not finding.verdict.input_valid:
        yield "machines could not carry the plan out"
