"""``equipoise fuzz``: find where a scheduler disagrees with the specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from equipoise.cli.answer import console, plain, print_json, progress_console, table
from equipoise.cli.fuzzing.files import Files
from equipoise.cli.read import read_bytes
from equipoise.cli.spec import not_in_library
from equipoise.cli.write import check_writable, write_file
from equipoise.errors import InvalidInput, Problem
from equipoise.fuzz.campaign import Campaign, Finding, Limits, Report
from equipoise.fuzz.campaign.words import told
from equipoise.fuzz.generate import Options
from equipoise.fuzz.registry import find_known, registered
from equipoise.fuzz.reports import Account
from equipoise.fuzz.reports.replay import stored_of
from equipoise.fuzz.schedulers.known import Known
from equipoise.fuzz.trial.stored import plain_case, read_lines, trial_of, write_line
from equipoise.model.words import counted
from equipoise.spec.library import library_constraints

EVERY = 500
"""After how many trials the progress is told."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person asks for besides the target."""

    constraints: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    hosts: tuple[int, int] = (1, 4)
    vms: tuple[int, int] = (0, 5)
    save: Path | None = None
    replay: Path | None = None
    files: Files = field(default_factory=Files)


def run(target: str, wishes: Wishes, *, as_json: bool) -> int:
    """Run a campaign, or the trials of a file again; 1 if there are defects."""
    known = _known(target)
    if wishes.save is not None:
        check_writable(wishes.save)
    wishes.files.check()
    campaign = Campaign(
        target,
        known.make(),
        _constraints(wishes.constraints),
        Options(hosts=wishes.hosts, vms=wishes.vms),
        wishes.seed,
        wishes.limits,
    )
    if wishes.replay is not None:
        stored = read_lines(read_bytes(wishes.replay), str(wishes.replay))
        report = campaign.replay(map(trial_of, stored))
    else:
        report = campaign.run(None if as_json else _tell_progress)
    if wishes.save is not None:
        lines = (write_line(stored_of(one, report)) for one in report.findings)
        write_file(wishes.save, b"".join(lines))
    asked = campaign.constraints if wishes.replay is None else ()
    wishes.files.write(Account(report, asked, known.version))
    if as_json:
        print_json(document(report))
    else:
        _show(report)
    return 1 if report.defects else 0


def run_list(*, as_json: bool) -> int:
    """List the schedulers that can be put to the test."""
    found = list(registered())
    if as_json:
        print_json([{"target": one.name, "about": one.about} for one in found])
        return 0
    rows = table("target", "what it is")
    for one in found:
        rows.add_row(one.name, one.about)
    console().print(rows)
    return 0


def _known(target: str) -> Known:
    found = find_known(target)
    if found is None:
        close = get_close_matches(target, [one.name for one in registered()], n=1)
        cure = f"did you mean {close[0]}?" if close else "'equipoise fuzz --list' lists them"
        raise InvalidInput(target, [Problem(key="", what="is no target", cure=cure)])
    return found


def _constraints(asked: Sequence[str]) -> tuple[str, ...]:
    known = library_constraints()
    for name in asked:
        if name not in known:
            raise not_in_library(name)
    return tuple(asked) or tuple(known)


def document(report: Report) -> dict[str, object]:
    """A report as the JSON contract wants it."""
    return {
        "target": report.target,
        "seed": report.seed,
        "tests": report.tests,
        "tests_per_s": round(report.tests_per_s, 1),
        "agreed": report.agreed,
        "outcomes": {outcome.value: count for outcome, count in report.outcomes.items()},
        "defects": [_defect(one, report) for one in report.findings],
    }


def _defect(finding: Finding, report: Report) -> dict[str, object]:
    return {
        "class": finding.verdict.outcome.value,
        "constraint": finding.constraint,
        "mode": finding.mode,
        "seen": report.seen[finding.sort],
        "message": finding.verdict.message,
        "why": finding.why,
        "harm": finding.verdict.harm,
        "input_valid": finding.verdict.input_valid,
        "broken_at_first": finding.verdict.broken_at_first,
        "number": finding.number,
        "case": plain_case(finding.trial),
        "shrunk": plain_case(finding.shrunk),
        "made": None if finding.verdict.steps is None else plain_case(finding.shown)["plan"],
    }


def _tell_progress(report: Report) -> None:
    if report.tests % EVERY == 0:
        defects = counted(report.defects, "defect")
        line = f"{report.tests:,} trials, {report.tests_per_s:,.0f} a second, {defects}"
        progress_console().print(line)


def _show(report: Report) -> None:
    out = console()
    others = {
        outcome.value: count for outcome, count in report.outcomes.items() if outcome != "agree"
    }
    rest = "".join(f", {count:,} {word}" for word, count in sorted(others.items()))
    out.print(
        f"{plain(report.target)}: {report.tests:,} trials, {report.tests_per_s:,.0f} a second; "
        f"{report.agreed:,} agree{rest}"
    )
    for line in told(report):
        if not line.startswith(" "):
            out.print()
        out.print(line, markup=False, soft_wrap=True)
