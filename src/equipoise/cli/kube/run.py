"""``equipoise kube run``: pods under a Kubernetes scheduler, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from equipoise.adapters.batsim.outputs import output_files
from equipoise.adapters.kubernetes.run.external import BatsimPodRunner
from equipoise.adapters.kubernetes.run.session import (
    KubernetesCase,
    KubernetesOutcome,
    RunStopped,
    simulate_pods,
)
from equipoise.api.job_records import JobRecords, RecordOptions
from equipoise.cli.file_io import check_writable, open_new_journal, print_page_written, write_file
from equipoise.cli.kube.options import KubeRunOptions, check_simulator, run_options
from equipoise.cli.output import (
    EXIT_OK,
    EXIT_REFUSED,
    console,
    make_table,
    print_document,
    printable,
    progress_console,
    show_spinner,
    write_note,
)
from equipoise.documents.kubernetes import (
    KubernetesComparisonDocument,
    KubernetesRunDocument,
    OverAllocationRow,
    PendingPodRow,
)
from equipoise.documents.simulation import JobsDocument, JobsRunDocument
from equipoise.report.jobs import compare_jobs_page, read_jobs_folder, write_jobs_folder

_LISTED_MAX = 20


def run(given: Mapping[str, Any], *, as_json: bool) -> int:
    """Run the pods and print the figures."""
    endpoint = given["simulator"]
    if endpoint is None:
        return _run(run_options(given), as_json=as_json)
    check_simulator(given)
    with closing(BatsimPodRunner(endpoint, version("equipoise"), write_note)) as runner:
        return _run(run_options(given, runner), as_json=as_json)


def _run(options: KubeRunOptions, *, as_json: bool) -> int:
    if options.export is not None:
        check_writable(output_files(options.export, 4)[0])
    documents = [
        _run_case(options, name, case, many=len(options.cases) > 1) for name, case in options.cases
    ]
    if len(documents) > 1 and options.out is not None:
        saved = [read_jobs_folder(options.out / name) for name, _ in options.cases]
        write_file(options.out / "report.html", compare_jobs_page(saved).encode())
        print_page_written(options.out / "report.html")
    if not as_json:
        _print_figures([name for name, _ in options.cases], documents)
    elif len(documents) == 1:
        print_document(documents[0])
    else:
        print_document(KubernetesComparisonDocument(runs=tuple(documents)))
    return EXIT_OK if all(map(_is_good, documents)) else EXIT_REFUSED


def _is_good(document: KubernetesRunDocument) -> bool:
    return (
        not document.pending_count
        and not document.over_allocations
        and document.repeated is not False
    )


def _run_case(
    options: KubeRunOptions, name: str, case: KubernetesCase, *, many: bool
) -> KubernetesRunDocument:
    """Run one configuration, and write its files."""
    out = options.out / name if many and options.out is not None else options.out
    if many and out is not None:
        case = replace(case, record=out / "decisions.jsonl")
    with show_spinner("simulating"), ExitStack() as files:
        journal = (
            None
            if options.journal is None
            else files.enter_context(open_new_journal(options.journal))
        )
        kept = RecordOptions(export=options.export, out=out, journal=journal, keep_jobs=False)
        records = JobRecords(kept, case.workload.platform, files)
        try:
            outcome = simulate_pods(
                case,
                recorder=records.recorder(),
                journal=records.begin_journal(options.source, _policy(case)),
            )
        except RunStopped as error:
            _finish(options, out, records, error.outcome, stopped=str(error))
            raise
        _finish(options, out, records, outcome)
        repeated = None
        if options.twice:
            repeated = _repeats(case, outcome)
    return _document(outcome, repeated)


def _policy(case: KubernetesCase) -> str:
    return ", ".join(scheduler.command for scheduler in case.schedulers) or "replay"


def _repeats(case: KubernetesCase, outcome: KubernetesOutcome) -> bool:
    """Run the case once more; return whether every binding is the same."""
    again = simulate_pods(replace(case, record=None))
    return again.bindings_sha256 == outcome.bindings_sha256


def _finish(
    options: KubeRunOptions,
    out: Path | None,
    records: JobRecords,
    outcome: KubernetesOutcome,
    stopped: str = "",
) -> None:
    """Write the summary, and the page of a run with a folder."""
    records.finish(outcome.figures, outcome.wall_s)
    if out is None:
        return
    document = JobsRunDocument(
        kind="jobs",
        workload=options.source,
        hosts=records.host_names,
        journal_sha256=records.sha256,
        result=JobsDocument.of(_document(outcome, None)),
        stopped=stopped,
    )
    records.close()
    print_page_written(write_jobs_folder(out, document))


def _document(outcome: KubernetesOutcome, repeated: bool | None) -> KubernetesRunDocument:
    return KubernetesRunDocument(
        policy=outcome.scheduler,
        **outcome.figures,
        wall_s=round(outcome.wall_s, 3),
        clock=outcome.clock,
        exact=not outcome.notes,
        notes=outcome.notes,
        bindings=outcome.bindings,
        requests=outcome.requests,
        steps=outcome.steps,
        bindings_sha256=outcome.bindings_sha256,
        cpu_requested_pct=outcome.cpu_requested_pct,
        cpu_used_pct=outcome.cpu_used_pct,
        fragmentation_pct=outcome.fragmentation_pct,
        pending=tuple(PendingPodRow(pod=pod.name, reason=pod.reason) for pod in outcome.pending),
        pending_count=outcome.pending_count,
        over_allocations=tuple(
            OverAllocationRow(
                at_s=over.at_ms / 1000,
                node=over.node,
                resource=over.resource,
                requested=over.requested,
                allocatable=over.allocatable,
                pod=over.pod,
                rejected=over.rejected,
            )
            for over in outcome.over_allocations
        ),
        repeated=repeated,
    )


def _print_figures(names: list[str], documents: list[KubernetesRunDocument]) -> None:
    """Print the figures side by side, then what went wrong."""
    titles = ["value"] if len(documents) == 1 else [printable(name) for name in names]
    table = make_table("measure", *titles, right=tuple(titles))
    keys = [
        *(key for key in JobsDocument.__struct_fields__ if key not in {"policy", "wall_s"}),
        *("cpu_requested_pct", "cpu_used_pct", "fragmentation_pct"),
        *("bindings", "requests", "steps", "pending_count", "wall_s"),
    ]
    for key in keys:
        values = [getattr(document, key) for document in documents]
        table.add_row(
            key, *(f"{value:,}" if isinstance(value, int) else f"{value:,.3f}" for value in values)
        )
    console().print(table)
    for document in documents:
        _print_notes(document)


def _print_notes(document: KubernetesRunDocument) -> None:
    for row in document.pending:
        console().print(
            f"{printable(row.pod)} has no node: {printable(row.reason)}", soft_wrap=True
        )
    if document.pending_count > len(document.pending):
        console().print(f"and {document.pending_count - len(document.pending):,} more pods")
    for over in document.over_allocations[:_LISTED_MAX]:
        console().print(
            f"{over.at_s:g} s: {printable(over.pod)} on {printable(over.node)}: "
            f"{over.requested:,} of {over.allocatable:,} {printable(over.resource)}"
            + (", rejected by the node" if over.rejected else ""),
            soft_wrap=True,
        )
    if document.repeated is not None:
        same = "made the same bindings" if document.repeated else "made other bindings"
        console().print(f"the second run {same}")
    for note in document.notes:
        progress_console().print(f"approximate: {note}", soft_wrap=True)
