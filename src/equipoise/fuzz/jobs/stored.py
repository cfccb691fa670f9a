"""Workloads of findings in files: one line of JSON each, with its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from equipoise.errors import InputProblem, InvalidInput
from equipoise.fuzz.jobs.campaign import JobCampaignReport, is_valid
from equipoise.fuzz.jobs.trial import JobTrial


def job_case(trial: JobTrial) -> dict[str, Any]:
    """Return a trial as documents and files have it."""
    case = msgspec.to_builtins(trial)
    assert isinstance(case, dict)
    return case


def job_lines(report: JobCampaignReport) -> Iterator[bytes]:
    """Yield a line for each finding, with its smallest workload."""
    for finding in report.schedules:
        line = {
            "target": report.target, "constraint": finding.verdict.rule,
            "outcome": finding.verdict.outcome.value, "message": finding.verdict.message,
            "seed": report.seed, "number": finding.number, "case": finding.shrunk,
        }  # fmt: skip
        yield msgspec.json.encode(line) + b"\n"


def read_job_lines(content: bytes, source: str) -> Iterator[JobTrial]:
    """Yield the workloads of a file; ``InvalidInput`` names the number of an invalid line."""
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            trial = msgspec.convert(msgspec.json.decode(line)["case"], JobTrial)
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
            raise _problem(source, number, f"is no saved workload: {error}") from None
        if not is_valid(trial):
            raise _problem(source, number, "has constraints that do not fit its hosts")
        yield trial


def _problem(source: str, number: int, what: str) -> InvalidInput:
    cure = "save the case again"
    return InvalidInput(source, [InputProblem(key="", what=what, cure=cure, line=number)])
