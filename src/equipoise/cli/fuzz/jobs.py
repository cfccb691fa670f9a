"""``equipoise fuzz jobs-...``: a campaign against a batch scheduler."""

from __future__ import annotations

from typing import Final

from equipoise.api.loading import read_bytes
from equipoise.cli.file_io import check_writable, write_file
from equipoise.cli.fuzz.options import FuzzOptions, print_progress
from equipoise.cli.output import console, print_document, printable
from equipoise.documents.fuzz import ScheduleDefectRow, ScheduleFuzzDocument, TargetRow
from equipoise.errors import Interrupted, InvalidInput
from equipoise.fuzz.campaign.workers import interruptible, open_pool, process_count
from equipoise.fuzz.jobs.batsim_target import BATSIM_TARGET
from equipoise.fuzz.jobs.campaign import (
    JobCampaign,
    JobCampaignReport,
    JobFinding,
    find_batch_scheduler,
)
from equipoise.fuzz.jobs.judge import PROMISES
from equipoise.fuzz.jobs.schedulers import BATCH_SCHEDULERS
from equipoise.fuzz.jobs.stored import job_case, job_lines, read_job_lines
from equipoise.fuzz.jobs.trial import JOB_CONSTRAINTS
from equipoise.model.diagnostics import closest_match
from equipoise.model.quantity import format_count

JOB_TARGETS: Final = ("jobs-", BATSIM_TARGET)
"""How the names of batch schedulers begin."""


def run_jobs(target: str, requested: FuzzOptions, *, as_json: bool) -> int:
    """Run a campaign or judge saved workloads again; 1 if there is a defect."""
    campaign = _campaign(target, requested)
    if requested.save is not None:
        check_writable(requested.save)
    process_count(requested.workers)
    with interruptible(lambda: None):
        if requested.replay is not None:
            lines = read_bytes(requested.replay)
            report = campaign.replay(list(read_job_lines(lines, str(requested.replay))))
        else:
            with open_pool(requested.workers) as pool:
                report = campaign.run(None if as_json else print_progress, pool)
    if requested.save is not None:
        write_file(requested.save, b"".join(job_lines(report)))
    if as_json:
        print_document(_document(report))
    else:
        _show(report)
    if report.interrupted:
        raise Interrupted
    return 1 if report.defects else 0


def job_target_rows() -> list[TargetRow]:
    """Return the rows of batch schedulers in ``equipoise fuzz --list``."""
    return [
        TargetRow(
            target=scheduler.name, about=scheduler.about, version="", question="schedule",
            constraints=JOB_CONSTRAINTS, settings={}, missing="",
        )
        for scheduler in BATCH_SCHEDULERS.values()
    ] + [
        TargetRow(
            target=f"{BATSIM_TARGET}COMMAND", about="a Batsim scheduler, started for each trial",
            version="", question="schedule", constraints=JOB_CONSTRAINTS,
            settings={"promise": tuple(filter(None, PROMISES))}, missing="",
        )
    ]  # fmt: skip


def _campaign(target: str, requested: FuzzOptions) -> JobCampaign:
    if find_batch_scheduler(target) is None:
        near = closest_match(target, BATCH_SCHEDULERS)
        cure = f"did you mean {near}?" if near else "'equipoise fuzz --list' lists them"
        what = "there is no such scheduler"
        raise InvalidInput.of(target, what, cure=cure, code="unknown-name")
    unused = {
        "--group": requested.groups, "--spec": requested.spec,
        "--vms": requested.vms, "--set": requested.changes, "--known": requested.known,
        "--report": requested.files.page, "--csv": requested.files.csv,
        "--junit": requested.files.junit,
    }  # fmt: skip
    for option, value in unused.items():
        if value:
            what = "does not apply to a batch scheduler"
            raise InvalidInput.of(option, what, cure="leave it out", code="option-conflict")
    for name in requested.constraints:
        if name not in JOB_CONSTRAINTS:
            what = f"trials of batch schedulers do not draw {name}"
            cure = f"write one of {', '.join(JOB_CONSTRAINTS)}"
            raise InvalidInput.of("--constraint", what, cure=cure, code="unknown-constraint")
    hosts = requested.hosts or (1, 5)
    if hosts[0] < 1:
        what = "a platform has a host at least"
        raise InvalidInput.of("--hosts", what, cure="begin at 1", code="out-of-range")
    return JobCampaign(
        target=target,
        constraints=requested.constraints or _usual_constraints(target),
        hosts=hosts,
        seed=requested.seed,
        limits=requested.limits,
        promise=_promise(requested.settings),
    )


def _usual_constraints(target: str) -> tuple[str, ...]:
    """Return what trials draw by default; a Batsim scheduler knows no constraints."""
    return () if target.startswith(BATSIM_TARGET) else JOB_CONSTRAINTS


def _promise(settings: tuple[str, ...]) -> str | None:
    promise = None
    for setting in settings:
        name, _, promise = setting.partition("=")
        if name != "promise" or promise not in PROMISES:
            known = ", ".join(filter(None, PROMISES))
            what = f"{setting!r} is no setting"
            raise InvalidInput.of("--with", what, cure=f"promise={known}", code="unknown-name")
    return promise


def _row(finding: JobFinding, report: JobCampaignReport) -> ScheduleDefectRow:
    signature = finding.verdict.signature
    return ScheduleDefectRow(
        outcome=finding.verdict.outcome.value,
        constraint=finding.verdict.rule,
        mode="continuous",
        seen=0 if signature is None else report.seen[signature],
        message=finding.verdict.message,
        number=finding.number,
        case=job_case(finding.trial),
        shrunk=job_case(finding.shrunk),
    )


def _document(report: JobCampaignReport) -> ScheduleFuzzDocument:
    return ScheduleFuzzDocument.of(
        report,
        tests_per_s=round(report.tests_per_s, 1),
        outcomes={outcome.value: count for outcome, count in report.outcomes.items()},
        defects=tuple(_row(finding, report) for finding in report.schedules),
    )


def _show(report: JobCampaignReport) -> None:
    out = console()
    speed = f"{format_count(report.tests, 'trial')}, {report.tests_per_s:,.0f} per second"
    out.print(f"{printable(report.target)}: {speed}; {report.agreed:,} agree")
    for finding in report.schedules:
        verdict = finding.verdict
        out.print()
        out.print(f"{verdict.outcome}: {verdict.message}", markup=False, soft_wrap=True)
        out.print(f"  racks of the hosts: {list(finding.shrunk.racks)}", markup=False)
        for job in finding.shrunk.jobs:
            rules = ", ".join(
                f"{constraint.constraint}({dict(constraint.arguments)})"
                for constraint in job.constraints
            )
            limit = "" if job.walltime_s is None else f", walltime {job.walltime_s} s"
            text = f"  job {job.id}: at {job.submit_s} s, {job.hosts} hosts, {job.seconds} s{limit}"
            out.print(f"{text}  {rules}", markup=False, soft_wrap=True)
