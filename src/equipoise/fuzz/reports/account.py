"""The account of a campaign (its report and its settings), and its findings as cases to replay."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from equipoise.fuzz.campaign import CampaignReport, Finding
from equipoise.fuzz.trial import TrialOutcome
from equipoise.fuzz.trial.stored import StoredTrial, case_of, specification_text

ANSWERED = (TrialOutcome.AGREE, TrialOutcome.OVER, TrialOutcome.UNDER, TrialOutcome.CRASH)
"""The outcomes with an answer of the scheduler."""


@dataclass(frozen=True, slots=True)
class CampaignAccount:
    """The report of a campaign and its inputs, for the report files."""

    report: CampaignReport
    asked: Sequence[str] = ()
    """The constraints of the campaign; if empty, those that have trials."""
    version: str = ""
    """The version of the target, if known."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings of the target that differ from its defaults."""

    @property
    def constraints(self) -> tuple[str, ...]:
        """The constraints of the campaign."""
        return tuple(self.asked or dict.fromkeys(name for name, _ in self.report.verdicts))

    def count(self, constraint: str, *outcomes: TrialOutcome) -> int:
        """The number of trials of a constraint with one of the outcomes; by default, with any."""
        verdicts = self.report.verdicts
        return sum(verdicts[constraint, outcome] for outcome in outcomes or TrialOutcome)

    def findings(self, constraint: str) -> list[Finding]:
        """The findings about a constraint."""
        return [finding for finding in self.report.findings if finding.constraint == constraint]

    def seen(self, finding: Finding) -> int:
        """The number of trials that show a finding."""
        return self.report.seen[finding.signature]


def stored_finding(finding: Finding, report: CampaignReport) -> StoredTrial:
    """The shrunk case of a finding, as files store it."""
    return StoredTrial(
        target=report.target,
        constraint=finding.constraint,
        outcome=finding.verdict.outcome,
        message=finding.verdict.message,
        seed=report.seed,
        number=finding.number,
        specification=specification_text(finding.shrunk.demand),
        case=case_of(finding.shrunk),
    )


def replay_command(finding: Finding, account: CampaignAccount) -> str:
    """A shell command that judges the shrunk case of a finding again, without a file."""
    # ASCII only: pages and terminals may show other characters differently.
    stored = stored_finding(finding, account.report).but(settings=account.settings)
    written = json.dumps(without_defaults(stored), separators=(",", ":"))
    target = shlex.quote(account.report.target)
    return f"printf %s {shlex.quote(written)} | equipoise fuzz {target} --replay /dev/stdin"


def without_defaults(value: Any) -> Any:
    """A value as plain data, without fields that have their defaults."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tags = {} if config.tag_field is None else {config.tag_field: config.tag}
        fields = {
            info.encode_name: without_defaults(getattr(value, info.name))
            for info in msgspec.structs.fields(value)
            if getattr(value, info.name) != _default_of(info)
        }
        return {**tags, **fields}
    if isinstance(value, Mapping):
        return {str(key): without_defaults(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [without_defaults(entry) for entry in value]
    return value


def _default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field
