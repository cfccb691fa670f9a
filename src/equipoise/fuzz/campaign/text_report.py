"""Findings as lines of text: the verdict, the smallest case, and the placement while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from equipoise.fuzz.campaign.findings import CampaignReport, Finding
from equipoise.fuzz.trial import Trial
from equipoise.fuzz.trial.shrink import bare_machine
from equipoise.model.action import describe
from equipoise.model.host import Host
from equipoise.model.problem.problem import Network
from equipoise.model.quantity import format_count
from equipoise.model.vm import Vm
from equipoise.report.placement import (
    PlacementTimeline,
    ViolationFlag,
    placement_text,
    placement_timeline,
)
from equipoise.report.placement.timeline import format_seconds
from equipoise.spec.evaluate.explain import format_value
from equipoise.spec.requirement import Requirement

_WIDE_MAX: Final = 110
"""The maximum length of a readable line."""
_SHOWN: Final = frozenset({"state", "host"})


def placement_lines(trial: Trial) -> Iterator[str]:
    """The placement while the plan runs, in lines; none for a plan without steps."""
    if not trial.steps:
        return
    course = placement_timeline(trial.initial, trial.steps, trial.network)
    flag = first_violation_flag(trial, course)
    drawn = placement_text(course, None if flag is None else flag.period)
    if max(map(len, drawn)) <= _WIDE_MAX:
        yield from drawn


def first_violation_flag(trial: Trial, course: PlacementTimeline) -> ViolationFlag | None:
    """The first moment at which the plan cannot be executed or violates the constraint."""
    if trial.objections:
        first = min(trial.objections, key=lambda objection: objection.at_ms)
        return ViolationFlag(course.period_at(first.at_ms), "cannot be executed")
    if trial.violation is None:
        return None
    at_ms = trial.violation.happened_ms
    if at_ms == 0 and trial.is_broken_at_first:
        return ViolationFlag(course.period_at(None), "violated from the start")
    return ViolationFlag(course.period_at(at_ms), f"violated at {format_seconds(at_ms)} s")


def network_rows(network: Network) -> Iterator[tuple[str, str, str]]:
    """The links and switches of a network: id, ends and capacity."""
    for link in network.links:
        end = link.to if link.host is None else link.host
        yield link.id, f"{end}-{link.switch}", str(link.capacity_mbps)
    for switch in network.switches:
        limit = switch.capacity_mbps
        yield switch.id, "", "any" if limit is None else str(limit)


def unusual_fields(machine: Host | Vm) -> str:
    """The fields in which a machine differs from a bare one, without its host and state."""
    bare = bare_machine(machine)
    fields = {
        name: getattr(machine, name)
        for name in machine.__struct_fields__
        if name not in _SHOWN and getattr(machine, name) != getattr(bare, name)
    }
    return ", ".join(_field_text(name, value) for name, value in fields.items())


def _field_text(name: str, value: Any) -> str:
    if value is True:
        return name
    if isinstance(value, Mapping):
        inner = " ".join(f"{key}={_plain_text(entry)}" for key, entry in value.items())
        return f"{name} {inner}"
    return f"{name} {_plain_text(value)}"


def _plain_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def report_lines(report: CampaignReport) -> Iterator[str]:
    """Every finding of a report, with its smallest case."""
    for finding in report.findings:
        yield from finding_lines(finding, report.seen[finding.signature])


def finding_lines(finding: Finding, seen: int) -> Iterator[str]:
    """One finding, with the number of trials that show it."""
    verdict, times = finding.verdict, format_count(seen, "time")
    harm = verdict.harm and f", {verdict.harm}"
    yield f"{verdict.outcome}{harm}: {finding.constraint}, {finding.mode}, seen {times}"
    yield f"  {finding.why}"
    yield from (f"  {line}" for line in _trial_lines(finding.shown))
    yield from (f"  {line}" for line in _remarks(finding))


def _trial_lines(trial: Trial) -> Iterator[str]:
    yield constraint_call(trial.demand)
    yield f"hosts: {', '.join(map(_host_text, trial.initial.hosts.values())) or 'none'}"
    yield f"VMs: {', '.join(map(_vm_text, trial.initial.vms.values())) or 'none'}"
    if trial.network is not None:
        parts = (" ".join(filter(None, row)) for row in network_rows(trial.network))
        yield f"network, in Mbit/s: {', '.join(parts)}"
    for step in trial.steps:
        yield f"{step.start_ms / 1000:g} to {step.end_ms / 1000:g} s: {describe(step.action)}"
    yield from placement_lines(trial)


def constraint_call(demand: Requirement) -> str:
    """A constraint with its arguments by name, as a call."""
    arguments = ", ".join(
        f"{name} = {format_value(value)}" for name, value in demand.arguments.items()
    )
    return f"{demand.name}({arguments})"


def _host_text(host: Host) -> str:
    return f"{host.id} {host.state}{_fields_in_brackets(host)}"


def _vm_text(vm: Vm) -> str:
    where = "" if vm.host is None else f" on {vm.host}"
    return f"{vm.id} {vm.state}{where}{_fields_in_brackets(vm)}"


def _fields_in_brackets(machine: Host | Vm) -> str:
    fields = unusual_fields(machine)
    return f" ({fields})" if fields else ""


def _remarks(finding: Finding) -> Iterator[str]:
    if finding.cause.letter:
        yield f"looks like cause {finding.cause.letter}: {finding.cause.words}"
    if finding.verdict.broken_at_first:
        yield "the constraint is violated before the plan starts"
    if not finding.verdict.input_valid:
        yield "the plan cannot be executed"
