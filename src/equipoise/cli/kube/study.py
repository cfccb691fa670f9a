"""``equipoise kube study``: how a clock with a timeout changes runs, beside an exact clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from equipoise.adapters.kubernetes.run.clocks import TimeoutOptions
from equipoise.adapters.kubernetes.run.scheduler import SchedulerCommand
from equipoise.adapters.kubernetes.run.session import KubernetesCase
from equipoise.adapters.kubernetes.run.study import (
    StudyPlan,
    StudyPoint,
    StudyRun,
    accuracy,
    distance_s,
    grid,
    study,
)
from equipoise.adapters.kubernetes.workload.load import NodeChoice, read_pod_workload
from equipoise.adapters.kubernetes.workload.pod_workload import PodWorkload
from equipoise.adapters.kubernetes.workload.study_workloads import study_workloads
from equipoise.api.simulation import estimate
from equipoise.cli.file_io import print_page_written, write_file
from equipoise.cli.kube.options import cluster_options
from equipoise.cli.output import (
    EXIT_OK,
    console,
    keep_figures,
    make_table,
    print_document,
    printable,
    with_progress_bar,
)
from equipoise.documents.kubernetes import (
    ClockStudyDocument,
    ClockStudyPointRow,
    ClockStudyReferenceRow,
    ClockStudyRunRow,
    EstimateRow,
)
from equipoise.errors import InputProblem, InvalidInput
from equipoise.report.clock_study import (
    accuracy_words,
    clock_study_csv,
    clock_study_page,
    with_interval,
)

_MS_PER_S: Final = 1000
_REFERENCES: Final = ("virtual", "stock")
_PAGE: Final = "report.html"
_SUMMARY: Final = "study.json"


def run(given: Mapping[str, Any], *, as_json: bool) -> int:
    """Run the study, write its files, and print its figures.

    A run that fails is a result of the study, so the exit code is 0.
    """
    plan, out = _plan(given), given["out"]
    if out is not None:
        _prepare(out)
    began_s = perf_counter()
    runs = list(with_progress_bar(study(plan), "running", plan.run_count))
    document = _document(plan, runs, round(perf_counter() - began_s, 3))
    if out is not None:
        _write(out, document)
    if as_json:
        print_document(document)
    else:
        _print_figures(document)
    return EXIT_OK


def _plan(given: Mapping[str, Any]) -> StudyPlan:
    if given["reference"] not in _REFERENCES:
        what = f"is {given['reference']!r}"
        raise _problem("--reference", what, f"write one of {', '.join(_REFERENCES)}")
    workloads = _workloads(given["workload"] or [], given["platform"] or [])
    min_delays_s = _seconds("--min-delays", given["min_delays"], scale=_MS_PER_S)
    case = KubernetesCase(
        workload=workloads[0],
        schedulers=(
            SchedulerCommand(
                command=given["scheduler"], config=given["config"], log=given["scheduler_log"]
            ),
        ),
        cluster=cluster_options(given),
        timeout=TimeoutOptions(crash_timeout_s=given["crash_timeout"]),
    )
    return StudyPlan(
        workloads=workloads,
        case=case,
        points=grid(
            _seconds("--timeouts", given["timeouts"], scale=_MS_PER_S),
            _seconds("--max-steps", given["max_steps"], above=0.0),
            min_delays_s,
        ),
        repeats=given["repeats"],
        reference_clock=given["reference"],
    )


def _workloads(files: Sequence[Path], platforms: Sequence[Path]) -> tuple[PodWorkload, ...]:
    """Read each workload with its own platform, or with the only one."""
    if not files:
        if platforms:
            raise _problem("--platform", "is given without a workload", "name a file of pods")
        return study_workloads()
    if len(platforms) not in {0, 1, len(files)}:
        what = f"is given {len(platforms)} times, --workload {len(files)} times"
        raise _problem("--platform", what, "name one for all workloads, or one for each")
    given: Sequence[Path | None] = platforms or [None]
    pairs = zip(files, [*given] * (len(files) if len(given) == 1 else 1), strict=True)
    workloads = tuple(read_pod_workload(path, NodeChoice(file=nodes)) for path, nodes in pairs)
    names = Counter(workload.name for workload in workloads)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise _problem("--workload", f"has two files with the name {twice[0]}", "rename one")
    return workloads


def _seconds(key: str, words: str, *, scale: float = 1.0, above: float = -1.0) -> list[float]:
    """Read numbers with commas between them; return each once, in seconds."""
    found = []
    for word in words.split(","):
        try:
            value = float(word)
        except ValueError:
            value = float("nan")
        if not isfinite(value) or value < 0 or value <= above:
            raise _problem(key, f"has {word.strip()!r}", "write numbers such as 1,5,20")
        found.append(value / scale)
    return list(dict.fromkeys(found))


def _problem(key: str, what: str, cure: str) -> InvalidInput:
    problem = InputProblem(key=key, what=what, cure=cure, code="invalid-value")
    return InvalidInput("kube study", [problem])


# The document


def _document(plan: StudyPlan, runs: Sequence[StudyRun], wall_s: float) -> ClockStudyDocument:
    references = {run.workload: run for run in runs if run.point is None}
    sizes = {workload.name: workload for workload in plan.workloads}
    return ClockStudyDocument(
        scheduler=", ".join(scheduler.command for scheduler in plan.case.schedulers),
        reference_clock=plan.reference_clock,
        repeats=plan.repeats,
        references=tuple(
            ClockStudyReferenceRow(
                workload=name,
                pods=_pod_count(sizes[name]),
                nodes=len(sizes[name].nodes),
                makespan_s=run.makespan_s,
                mean_waiting_s=run.mean_waiting_s,
                wall_s=round(run.wall_s, 3),
                over_allocations=run.over_allocations,
            )
            for name, run in references.items()
        ),
        points=tuple(
            _point_row(reference, point, [
                run for run in runs if run.workload == name and run.point == point
            ])
            for name, reference in references.items()
            for point in plan.points
        ),
        runs=tuple(
            _run_row(references[run.workload], run.point, run)
            for run in runs
            if run.point is not None
        ),
        wall_s=wall_s,
    )  # fmt: skip


def _pod_count(workload: PodWorkload) -> int:
    return sum(body.get("kind") != "Namespace" for _, body in workload.arrivals)


def _parameters(point: StudyPoint) -> dict[str, float]:
    return {
        "timeout_ms": round(point.timeout_s * _MS_PER_S, 6),
        "max_step_s": point.max_step_s,
        "min_delay_ms": round(point.min_delay_s * _MS_PER_S, 6),
    }


def _point_row(
    reference: StudyRun, point: StudyPoint, runs: Sequence[StudyRun]
) -> ClockStudyPointRow:
    good = [run for run in runs if not run.failure]
    accuracies = [accuracy(run, reference) for run in good]
    return ClockStudyPointRow(
        workload=reference.workload,
        **_parameters(point),
        runs=len(runs),
        crashes=len(runs) - len(good),
        crash_rate=(len(runs) - len(good)) / len(runs),
        failures=dict(Counter(run.failure for run in runs if run.failure)),
        makespan_s=_estimate([run.makespan_s for run in good]),
        mean_waiting_s=_estimate([run.mean_waiting_s for run in good]),
        wall_s=_estimate([run.wall_s for run in good]),
        distance_s=_estimate([distance_s(run, reference) for run in good]),
        accuracy=_estimate([value for value in accuracies if value is not None]),
        exact_runs=accuracies.count(None),
        over_allocations=sum(run.over_allocations for run in runs),
    )


def _estimate(values: Sequence[float]) -> EstimateRow | None:
    if not values:
        return None
    mean, low, high, count = estimate(values)
    known = isfinite(low)
    return EstimateRow(
        mean=mean, low=low if known else None, high=high if known else None, runs=count
    )


def _run_row(reference: StudyRun, point: StudyPoint, run: StudyRun) -> ClockStudyRunRow:
    found = None if run.failure else accuracy(run, reference)
    return ClockStudyRunRow(
        workload=run.workload,
        **_parameters(point),
        repeat=run.repeat,
        makespan_s=run.makespan_s,
        mean_waiting_s=run.mean_waiting_s,
        wall_s=round(run.wall_s, 3),
        accuracy=found,
        exact=not run.failure and found is None,
        over_allocations=run.over_allocations,
        failure=run.failure,
    )


# Files and figures


def _prepare(out: Path) -> None:
    """Make the folder before the runs, and not after them."""
    if (out / _SUMMARY).exists():
        problem = InputProblem(
            key="--out", what="already holds another study", cure="name a new folder",
            code="already-exists",
        )  # fmt: skip
        raise InvalidInput(str(out), [problem])
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"cannot be made: {(error.strerror or '').lower()}"
        problem = InputProblem(
            key="--out", what=what, cure="name another folder", code="file-not-writable"
        )
        raise InvalidInput(str(out), [problem]) from error


def _write(out: Path, document: ClockStudyDocument) -> None:
    import json

    for name, content in clock_study_csv(document).items():
        write_file(out / name, content.encode())
    write_file(out / _PAGE, clock_study_page(document).encode())
    written = json.dumps(document.to_json_object(), indent=2, ensure_ascii=False) + "\n"
    write_file(out / _SUMMARY, written.encode())
    print_page_written(out / _PAGE)


def _two_lines(figure: str) -> str:
    """Return a figure with its interval below, so that the table fits in 80 columns."""
    return figure.replace(" ± ", "\n± ")


def _print_figures(document: ClockStudyDocument) -> None:
    """Print a table: for each workload the reference, then its points."""
    columns = ("timeout ms", "step s", "wait ms", "makespan s", "mean wait s", "wall s",
               "accuracy", "exact", "crashes")  # fmt: skip
    table = make_table("workload", *columns, right=columns)
    for reference in document.references:
        name = printable(reference.workload)
        table.add_row(
            name, document.reference_clock, "", "", f"{reference.makespan_s:,.3f}",
            f"{reference.mean_waiting_s:,.3f}", f"{reference.wall_s:.1f}", "", "", "",
        )  # fmt: skip
        for row in document.points:
            if row.workload == reference.workload:
                table.add_row(
                    name, f"{row.timeout_ms:g}", f"{row.max_step_s:g}", f"{row.min_delay_ms:g}",
                    *map(_two_lines, (
                        with_interval(row.makespan_s), with_interval(row.mean_waiting_s),
                        with_interval(row.wall_s), accuracy_words(row),
                    )),
                    f"{row.exact_runs} of {row.runs}", f"{row.crashes}",
                )  # fmt: skip
    console().print(keep_figures(table))
    over = sum(row.over_allocations for row in document.points) + sum(
        row.over_allocations for row in document.references
    )
    console().print(f"over-allocations in all runs: {over:,}")
