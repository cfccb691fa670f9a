"""``equipoise jobs``: a workload under built-in policies, with the result files of Batsim."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from equipoise.adapters.batsim.outputs import output_files
from equipoise.adapters.batsim.swf import STATUSES, SwfChoices
from equipoise.api.jobs import JobsRun, simulate_jobs
from equipoise.cli.file_io import check_writable, open_new_journal, print_page_written, write_file
from equipoise.cli.output import (
    EXIT_OK,
    console,
    figure_text,
    keep_figures,
    make_table,
    print_document,
    printable,
)
from equipoise.documents.simulation import JobsComparisonDocument
from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.policies import POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsOptions:
    """The options of the command."""

    workload: Path
    platform: Path | None
    policies: tuple[str, ...]
    hosts: int | None
    export: str | None
    output_layout: int = 4
    model: str = "fluid"
    out: Path | None = None
    journal_url: str | None = None
    parquet: bool = False
    shutdown_after_s: float | None = None
    keep_awake: int = 0
    events: Path | None = None
    swf_requested: bool = False
    swf_skip: str | None = None

    def swf_choices(self) -> SwfChoices:
        """Return what a job takes from its record."""
        names = [name.strip() for name in (self.swf_skip or "").split(",") if name.strip()]
        for name in names:
            if name not in STATUSES:
                what, cure = f"{name!r} is no status", f"write {', '.join(STATUSES)}"
                problem = InputProblem(key="--swf-skip", what=what, cure=cure, code="unknown-name")
                raise InvalidInput("jobs", [problem])
        return SwfChoices(requested_processors=self.swf_requested, skip=frozenset(names))


def run(options: JobsOptions, *, as_json: bool) -> int:
    """Run the jobs and print the summary."""
    _check(options)
    if len(options.policies) > 1:
        return _compare(options, as_json=as_json)
    jobs_run = _simulate(options, options.policies[0], options.out)
    if as_json:
        print_document(jobs_run.document)
    else:
        _print_figures([jobs_run])
    if options.out is not None:
        print_page_written(options.out / "report.html")
    return EXIT_OK


def _check(options: JobsOptions) -> None:
    """Reject what cannot work before a long run, and not after it."""
    if options.export is not None:
        check_writable(output_files(options.export, options.output_layout)[0])
    if options.parquet:
        from equipoise.report.jobs import require_parquet

        require_parquet()
        if options.export is None and options.out is None:
            raise _contradiction("--parquet", "has no place to write to", "add --out or --export")
    if len(options.policies) == 1:
        return
    for name in options.policies:
        if name not in POLICIES or options.policies.count(name) > 1:
            code = "duplicate-name" if name in POLICIES else "unknown-name"
            what = f"{name!r} is no policy, or is named twice"
            raise _contradiction("--policy", what, f"write some of {', '.join(POLICIES)}", code)
    if options.export is not None or options.journal_url is not None:
        what = "belongs to one run, and several policies are named"
        key = "--journal" if options.export is None else "--export"
        raise _contradiction(key, what, "name a folder with --out instead")


def _contradiction(key: str, what: str, cure: str, code: str = "contradiction") -> InvalidInput:
    return InvalidInput("jobs", [InputProblem(key=key, what=what, cure=cure, code=code)])


def _simulate(options: JobsOptions, policy: str, out: Path | None) -> JobsRun:
    with ExitStack() as stack:
        url = options.journal_url
        journal = None if url is None else stack.enter_context(open_new_journal(url))
        jobs_run = simulate_jobs(
            options.platform,
            options.workload,
            policy=policy,
            hosts=options.hosts,
            export=options.export,
            output_layout=options.output_layout,
            out=out,
            journal=journal,
            keep_jobs=options.parquet,
            model=options.model,
            shutdown_after_s=options.shutdown_after_s,
            keep_awake=options.keep_awake,
            events=options.events,
            swf=options.swf_choices(),
        )
    if options.parquet:
        for place in (options.export, out):
            if place is not None:
                jobs_run.write_parquet(place)
    return jobs_run


def _compare(options: JobsOptions, *, as_json: bool) -> int:
    """Run every policy, in a folder of its own; write a page that compares them."""
    out = options.out
    runs = [
        _simulate(options, policy, None if out is None else out / policy)
        for policy in options.policies
    ]
    if out is not None:
        from equipoise.report.jobs import compare_jobs_page, read_jobs_folder

        saved = [read_jobs_folder(out / policy) for policy in options.policies]
        write_file(out / "report.html", compare_jobs_page(saved).encode())
    if as_json:
        print_document(JobsComparisonDocument(runs=tuple(run.document for run in runs)))
    else:
        _print_figures(runs)
    if out is not None:
        print_page_written(out / "report.html")
    return EXIT_OK


def _print_figures(runs: list[JobsRun]) -> None:
    names = ["value"] if len(runs) == 1 else [printable(run.policy) for run in runs]
    table = make_table("measure", *names, right=tuple(names))
    for key in runs[0].figures:
        values = [run.figures[key] for run in runs]
        table.add_row(key, *map(figure_text, values))
    console().print(keep_figures(table))
