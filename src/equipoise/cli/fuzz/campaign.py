"""``equipoise fuzz``: runs a campaign against a scheduler, or judges saved cases again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.adapters.targets.scheduler import Scheduler, SchedulerEntry
from equipoise.api.loading import read_bytes
from equipoise.cli.file_io import check_writable, write_file
from equipoise.cli.fuzz.jobs import JOB_TARGETS, job_target_rows, run_jobs
from equipoise.cli.fuzz.options import (
    FuzzOptions,
    PreparedCampaign,
    prepare_campaign,
    print_progress,
)
from equipoise.cli.output import (
    console,
    fit_to_terminal,
    make_table,
    print_document,
    printable,
    progress_console,
)
from equipoise.documents.fuzz import DefectRow, FuzzDocument, MissingFinding, TargetRow
from equipoise.errors import InternalError, Interrupted, InvalidInput
from equipoise.fuzz.campaign import CampaignReport, Finding
from equipoise.fuzz.campaign.findings import Baseline, judge_baseline
from equipoise.fuzz.campaign.text_report import report_lines
from equipoise.fuzz.campaign.workers import interruptible, open_pool, process_count
from equipoise.fuzz.registry import make_scheduler, registered_schedulers
from equipoise.fuzz.reports import CampaignAccount
from equipoise.fuzz.reports.export import stored_finding
from equipoise.fuzz.trial import OracleFailure, TrialOutcome
from equipoise.fuzz.trial.stored import (
    StoredTrial,
    case_of,
    read_lines,
    specification_text,
    trial_of,
    write_line,
)
from equipoise.model.quantity import format_count

if TYPE_CHECKING:
    from rich.table import Table

Settings = tuple[tuple[str, str], ...]


def replay_cases(
    prepared: PreparedCampaign, stored: Iterable[StoredTrial], *, save: bool
) -> tuple[PreparedCampaign, CampaignReport]:
    """Judge cases again; settings of the command line replace those of a case.

    The returned campaign has the settings that all cases have in common.
    """
    cases: dict[Settings, list[StoredTrial]] = {}
    for case in stored:
        cases.setdefault(_case_settings(prepared, case.settings), []).append(case)
    if save and len(cases) > 1:
        what = "the cases have different settings, but a saved file has one"
        raise InvalidInput.of(
            "--save", what, cure="choose them with --with", code="option-conflict"
        )
    reports = [_replay_report(prepared, settings, group) for settings, group in cases.items()]
    if not reports:
        return prepared, prepared.campaign.replay(())
    common = set.intersection(*map(set, cases))
    settings = {name: value for name, value in next(iter(cases)) if (name, value) in common}
    return replace(prepared, settings=settings), _merge_reports(reports)


def _case_settings(prepared: PreparedCampaign, saved: Mapping[str, str]) -> Settings:
    """Return the settings of the target for a case; those of another target are ignored."""
    able = prepared.known.settings
    own = {name: value for name, value in saved.items() if value in able.get(name, ())}
    usual = {name: values[0] for name, values in able.items()}
    return tuple(sorted({**usual, **own, **prepared.set_by_hand}.items()))


def _replay_report(
    prepared: PreparedCampaign, settings: Settings, cases: Iterable[StoredTrial]
) -> CampaignReport:
    make = partial(make_scheduler, prepared.known.name, settings)
    try:
        return replace(prepared.campaign, scheduler=make).replay(map(trial_of, cases))
    finally:
        _close_scheduler(make)


def _merge_reports(reports: list[CampaignReport]) -> CampaignReport:
    first, *others = reports
    for report in others:
        first.interrupted |= report.interrupted
        first.tests += report.tests
        first.seconds += report.seconds
        first.outcomes.update(report.outcomes)
        first.seen.update(report.seen)
        first.verdicts.update(report.verdicts)
        first.findings.extend(report.findings)
    return first


UNJUDGED_CASES_FILE = Path("equipoise-oracle.jsonl")
"""File of a trial that the specification cannot judge, without ``--save``."""


def run(target: str, requested: FuzzOptions, *, as_json: bool) -> int:
    """Run a campaign or judge saved cases again; 1 if a defect is not known."""
    if target.startswith(JOB_TARGETS):
        return run_jobs(target, requested, as_json=as_json)
    if requested.save is not None:
        check_writable(requested.save)
    requested.files.check()
    # Checked here, because the preparation starts the target, which can take a minute.
    process_count(requested.workers)
    prepared = prepare_campaign(target, requested)
    with ExitStack() as stack:
        if requested.replay is None:  # a replay closes its own schedulers
            stack.callback(_close_scheduler, prepared.make)
        with interruptible(_announce_interrupt):
            prepared, report, known = _run_or_replay(prepared, requested, quiet=as_json)
    unusual = {
        name: value
        for name, value in prepared.settings.items()
        if value != prepared.known.settings[name][0]
    }
    if requested.save is not None:
        lines = (
            write_line(
                stored_finding(finding, report).but(
                    settings=unusual, target_version=prepared.known.version
                )
            )
            for finding in report.findings
        )
        write_file(requested.save, b"".join(lines))
    tested = prepared.campaign.constraints if requested.replay is None else ()
    requested.files.write(CampaignAccount(report, tested, prepared.known.version, unusual))
    if as_json:
        print_document(campaign_document(report, prepared.known, prepared.settings, known))
    else:
        _show(report, known)
    if report.interrupted:
        raise Interrupted
    return 1 if _fails(report, known) else 0


def _run_or_replay(
    prepared: PreparedCampaign, requested: FuzzOptions, *, quiet: bool
) -> tuple[PreparedCampaign, CampaignReport, Baseline | None]:
    try:
        if requested.replay is not None:
            stored = read_lines(read_bytes(requested.replay), str(requested.replay))
            return *replay_cases(prepared, stored, save=requested.save is not None), None
        known = (
            None
            if prepared.known_findings is None
            else judge_baseline(prepared.make(), prepared.known_findings)
        )
        if known is None and prepared.known.version:
            _announce_no_baseline(prepared.known)
        with open_pool(requested.workers) as pool:
            return prepared, prepared.campaign.run(None if quiet else print_progress, pool), known
    except OracleFailure as error:
        path = requested.save or UNJUDGED_CASES_FILE
        demand = error.trial.demand
        kept = StoredTrial(
            target=prepared.known.name, constraint=demand.name, outcome=TrialOutcome.CRASH,
            message=error.why, seed=requested.seed, specification=specification_text(demand),
            case=case_of(error.trial),
        )  # fmt: skip
        write_file(path, write_line(kept))
        if demand.library_name is None:
            raise _constraint_error(error, path) from error
        raise InternalError(f"{error}; please report it, with the case in {path}") from error


def _constraint_error(error: OracleFailure, path: Path) -> InvalidInput:
    """Return the error about a constraint of ``--spec`` that cannot judge a trial."""
    what = f"cannot judge every trial: {error.why}"
    cure = f"the case is in {path}"
    return InvalidInput.of(
        "--spec", what, key=error.trial.demand.name, cure=cure, code="evaluation-failed"
    )


def _close_scheduler(make: Callable[[], Scheduler]) -> None:
    # ``make_scheduler`` is cached, so this is the scheduler that was used.
    close = getattr(make(), "close", None)
    if close is not None:
        close()


def _fails(report: CampaignReport, known: Baseline | None) -> bool:
    if known is None:
        return report.defects > 0
    return bool(known.new(report) or known.disappeared)


def run_list(*, as_json: bool) -> int:
    """List the schedulers that can be tested, and the constraints of each."""
    entries = list(registered_schedulers())
    if as_json:
        print_document([*map(target_row, entries), *job_target_rows()])
        return 0
    table = _targets_table(entries)
    for row in job_target_rows():
        table.add_row(row.target, row.question, str(len(row.constraints)), row.about)
    console().print(table)
    return 0


def _targets_table(entries: Iterable[SchedulerEntry]) -> Table:
    """Return the targets; the last column wraps, so that a narrow output loses nothing."""
    rows = make_table("target", "question", "constraints", "description")
    for entry in entries:
        missing = entry.missing()
        parts = [f"{entry.about} {entry.version}".strip()]
        parts += [f"settings: {_settings_text(entry)}"] if entry.settings else []
        parts += [f"missing: {missing}"] if missing else []
        rows.add_row(
            entry.name,
            entry.question,
            str(len(entry.constraints)) if entry.constraints else "all",
            printable("; ".join(parts)),
        )
    return fit_to_terminal(rows)


def _settings_text(known: SchedulerEntry) -> str:
    return " ".join(f"{name}={'|'.join(values)}" for name, values in known.settings.items())


def _announce_interrupt() -> None:
    # A signal can arrive while a stream writes a line, and streams are not reentrant.
    os.write(2, b"interrupted: printing the findings so far; Ctrl-C again stops at once\n")


def _announce_no_baseline(known: SchedulerEntry) -> None:
    line = f"no known findings of {known.name} {known.version}: every defect counts"
    progress_console().print(printable(line))


def _show(report: CampaignReport, known: Baseline | None) -> None:
    out = console()
    others = {
        outcome.value: count for outcome, count in report.outcomes.items() if outcome != "agree"
    }
    rest = "".join(f", {count:,} {word}" for word, count in sorted(others.items()))
    speed = f"{format_count(report.tests, 'trial')}, {report.tests_per_s:,.0f} per second"
    ended = "; interrupted" if report.interrupted else ""
    out.print(f"{printable(report.target)}: {speed}; {report.agreed:,} agree{rest}{ended}")
    for line in report_lines(report):
        if not line.startswith(" "):
            out.print()
        out.print(line, markup=False, soft_wrap=True)
    if known is not None:
        for line in _baseline_lines(report, known):
            out.print(line, markup=False, soft_wrap=True)


def _baseline_lines(report: CampaignReport, known: Baseline) -> Sequence[str]:
    new = known.new(report)
    found = format_count(len(report.findings), "finding")
    gone = format_count(len(known.disappeared), "known finding")
    lines = ["", f"{found}, {len(new)} of them new; {gone} not found again"]
    lines += [
        f"new: {finding.verdict.outcome}, {finding.constraint}, {finding.mode}" for finding in new
    ]
    lines += [f"gone: {stored.outcome}, {stored.constraint}" for stored in known.disappeared]
    return lines


def campaign_document(
    report: CampaignReport,
    target: SchedulerEntry,
    settings: Mapping[str, str],
    known: Baseline | None,
) -> FuzzDocument:
    """Return the JSON document of ``equipoise fuzz``."""
    gone = () if known is None else known.disappeared
    return FuzzDocument.of(
        report,
        version=target.version,
        settings=settings,
        tests_per_s=round(report.tests_per_s, 1),
        outcomes={outcome.value: count for outcome, count in report.outcomes.items()},
        defects=tuple(_defect_row(finding, report, known) for finding in report.findings),
        gone=tuple(
            MissingFinding(constraint=stored.constraint, outcome=stored.outcome.value)
            for stored in gone
        ),
    )


def _defect_row(finding: Finding, report: CampaignReport, known: Baseline | None) -> DefectRow:
    verdict = finding.verdict
    return DefectRow.of(
        finding,
        outcome=verdict.outcome.value,
        seen=report.seen[finding.signature],
        known=known is not None and finding.kind in known.kinds,
        message=verdict.message,
        harm=verdict.harm,
        cause=finding.cause.letter,
        input_valid=verdict.input_valid,
        broken_at_first=verdict.broken_at_first,
        case=case_of(finding.trial),
        shrunk=case_of(finding.shrunk),
        made=None if verdict.steps is None else case_of(finding.shown).plan,
    )


def target_row(entry: SchedulerEntry) -> TargetRow:
    """Return a row of ``equipoise fuzz --list``."""
    return TargetRow.of(entry, target=entry.name, missing=entry.missing())
