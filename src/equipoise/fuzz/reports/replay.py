"""Findings in the form in which they can be judged again: a line of a file, or of a shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from equipoise.fuzz.campaign import Finding, Report
from equipoise.fuzz.reports.account import Account
from equipoise.fuzz.trial.stored import Stored, case_of, text_of


def stored_of(finding: Finding, report: Report) -> Stored:
    """The shrunk case of a finding, as files have it."""
    return Stored(
        target=report.target,
        constraint=finding.constraint,
        outcome=finding.verdict.outcome,
        message=finding.verdict.message,
        seed=report.seed,
        number=finding.number,
        specification=text_of(finding.shrunk.demand),
        case=case_of(finding.shrunk),
    )


def replay_line(finding: Finding, account: Account) -> str:
    """A line for a shell that judges the shrunk case of a finding again, without any file."""
    # Other than ASCII, a page or a terminal might show something else than it has.
    stored = stored_of(finding, account.report).but(settings=account.settings)
    written = json.dumps(terse(stored), separators=(",", ":"))
    target = shlex.quote(account.report.target)
    return f"printf %s {shlex.quote(written)} | equipoise fuzz {target} --replay /dev/stdin"


def terse(value: Any) -> Any:
    """A value as a file may have it, without what is as usual anyway."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tags = {} if config.tag_field is None else {config.tag_field: config.tag}
        unusual = {
            one.encode_name: terse(getattr(value, one.name))
            for one in msgspec.structs.fields(value)
            if getattr(value, one.name) != _usual(one)
        }
        return {**tags, **unusual}
    if isinstance(value, Mapping):
        return {str(key): terse(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [terse(one) for one in value]
    return value


def _usual(field: msgspec.structs.FieldInfo) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field
