"""``equipoise jobs``: a workload under a built-in policy, with the result files of Batsim."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from equipoise.api.jobs import JobsRun, simulate_jobs
from equipoise.cli.file_io import check_writable
from equipoise.cli.output import EXIT_OK, console, make_table, print_document


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsOptions:
    """The options of the command."""

    workload: Path
    platform: Path | None
    policy: str
    hosts: int | None
    export: str | None


def run(options: JobsOptions, *, as_json: bool) -> int:
    """Run the jobs and print the summary."""
    if options.export is not None:
        check_writable(Path(f"{options.export}_jobs.csv"))
    jobs_run = simulate_jobs(
        options.platform,
        options.workload,
        policy=options.policy,
        hosts=options.hosts,
        export=options.export,
        keep_jobs=False,
    )
    if as_json:
        print_document(jobs_run.document)
    else:
        _print_figures(jobs_run)
    return EXIT_OK


def _print_figures(jobs_run: JobsRun) -> None:
    table = make_table("measure", "value", right=("value",))
    for key, value in jobs_run.figures.items():
        table.add_row(key, f"{value:,}" if isinstance(value, int) else f"{value:,.3f}")
    console().print(table)
