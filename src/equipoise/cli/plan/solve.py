"""``equipoise solve``: an exact plan to the desired state, written to files; or the reason why
there is none.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import lcm
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

from equipoise.adapters.btrplace import format as btrplace
from equipoise.api.loading import read_plan, read_problem
from equipoise.cli.file_io import check_writable, print_page_written, write_file
from equipoise.cli.output import (
    console,
    format_time_ms,
    print_document,
    printable,
    progress_console,
    text_table,
)
from equipoise.documents.plan import fullest_hosts, goal_rows, solve_document
from equipoise.errors import InputProblem, InvalidInput
from equipoise.files import to_json, to_yaml
from equipoise.model.action import describe
from equipoise.model.host import Host, HostState, RequestedHostState
from equipoise.model.plan import Plan
from equipoise.model.problem import DesiredHostState, PlanningProblem
from equipoise.model.problem.problem import problem_reaching
from equipoise.model.quantity import PlanId, format_count
from equipoise.model.value import pause_gc
from equipoise.plan.exact.broken_rules import solve_with_broken_rules
from equipoise.plan.exact.judge import RefusedPlan
from equipoise.plan.exact.result import ConditionConflict, PlanningResult
from equipoise.plan.exact.solve import JudgedPlan
from equipoise.plan.exact.solver import SearchBudget, SearchProgress


def save_refused_case(problem: PlanningProblem, error: RefusedPlan) -> AssertionError:
    """Write the problem and the refused plan to files; return the error that names them."""
    folder = Path.cwd()
    problem_path = folder / "refused.problem.json"
    plan_path = folder / "refused.plan.json"
    try:
        problem_path.write_text(to_json(problem))
        plan_path.write_text(to_json(error.plan))
    except OSError:
        return AssertionError(str(error))
    return AssertionError(f"{error}; the case is saved in {problem_path.name}, {plan_path.name}")


def write_plan(
    plan: Plan,
    problem: PlanningProblem,
    path: Path,
    *,
    as_btrplace: bool = False,
    line: bool = False,
) -> None:
    """Write a plan, compressed for .gz; with ``line`` append it as one line."""
    if as_btrplace:
        content = btrplace.write_plan(plan, problem)
    elif line or _is_json(path):
        content = to_json(plan, indent=0 if line else 2).encode()
    else:
        content = to_yaml(plan).encode()
    if path.suffix == ".gz":
        import gzip

        # Without a time stamp, equal plans give equal files.
        content = gzip.compress(content, mtime=0)
    write_file(path, content, append=line)


def in_btrplace_terms(problem: PlanningProblem, source: str) -> PlanningProblem:
    """Return the problem in whole seconds, the unit of BtrPlace plans.

    A problem that BtrPlace cannot express is rejected here, before a long search.
    """
    cluster = problem.cluster
    problems = [
        InputProblem(
            key=f"hosts.{host.id}",
            what="BtrPlace plans cannot express maintenance",
            cure="remove it, or leave out --btrplace",
            code="unsupported-feature",
        )
        for host in cluster.hosts
        if _changes_maintenance(host, problem)
    ]
    if problems:
        raise InvalidInput(source, problems)
    # Only VMs on hosts that are off can be rejected; writing all VMs would take long.
    off = {host.id for host in cluster.hosts if host.state is not HostState.ON}
    there = cluster.but(vms=tuple(vm for vm in cluster.vms if vm.host in off))
    btrplace.write_plan(Plan(id=PlanId("none"), steps=()), problem.but(cluster=there))
    # Times on this grid are whole seconds and still on the grid of the problem.
    return problem.but(grid_ms=lcm(problem.grid_ms, 1000))


def _changes_maintenance(host: Host, problem: PlanningProblem) -> bool:
    """Return whether a host enters or leaves maintenance."""
    requested = (
        DesiredHostState.MAINTENANCE if host.requested is RequestedHostState.MAINTENANCE else None
    )
    aim = problem.hosts.get(host.id, requested)
    is_in = host.state is HostState.MAINTENANCE
    return aim is (DesiredHostState.ONLINE if is_in else DesiredHostState.MAINTENANCE)


def _is_json(path: Path) -> bool:
    return path.suffix == ".json" or path.suffixes[-2:] == [".json", ".gz"]


STEPS_SHOWN = 40
FULLEST_SHOWN = 5
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """Settings of the search, and outputs."""

    repair: bool = False
    optimise: bool = False
    plan: Path | None = None
    """A plan whose final state is the desired one."""
    time_limit_s: float | None = None
    seed: int = 0
    output: Path | None = None
    as_btrplace: bool = False
    stream: Path | None = None
    report: Path | None = None


def run(path: Path, options: SolveOptions, *, as_json: bool) -> int:
    """Print the plan, or the reason why none exists; 1 without a plan."""
    _check_options(options)
    began = perf_counter()
    with pause_gc():  # a large problem is a million small values and no garbage
        problem = read_problem(path)
        if options.plan is not None:
            problem = problem_reaching(problem, _read_known_plan(options.plan, problem))
        load_s = perf_counter() - began
        if options.as_btrplace:
            problem = in_btrplace_terms(problem, str(path))
        try:
            result = _InterruptibleSolve(problem, options).result()
        except RefusedPlan as error:
            raise save_refused_case(problem, error) from error
    if result.plan is not None and options.output is not None:
        write_plan(result.plan, problem, options.output, as_btrplace=options.as_btrplace)
    if options.report is not None:
        _write_report(options.report, result, problem)
    if as_json:
        wall_s = perf_counter() - began
        print_document(solve_document(result, problem, load_s=load_s, wall_s=wall_s))
    else:
        _show(result, problem, options)
    return 0 if result.plan is not None else 1


def _read_known_plan(path: Path, problem: PlanningProblem) -> Plan:
    """Read a plan, and reject names that the cluster lacks."""
    plan = read_plan(path, problem)
    known = {*(host.id for host in problem.cluster.hosts), *(vm.id for vm in problem.cluster.vms)}
    problems = [
        InputProblem(
            key=f"steps.{step.id}.{name}",
            what="the cluster has no such host or VM",
            cure="name the inventory that the plan was made for",
            code="unknown-name",
        )
        for step in plan.steps
        for name in (step.footprint.vm, *step.footprint.hosts)
        if name is not None and name not in known
    ]
    if problems:
        raise InvalidInput(str(path), problems)
    return plan


def _check_options(options: SolveOptions) -> None:
    """Reject files that cannot be written, before a search that can take an hour."""
    for path in (options.output, options.report, options.stream):
        if path is not None:
            check_writable(path)
    if options.as_btrplace and options.output is None:
        what, cure = "the option needs an output file", "add -o FILE"
        raise InvalidInput.of("--btrplace", what, cure=cure, code="option-conflict")


def _write_report(path: Path, result: PlanningResult, problem: PlanningProblem) -> None:
    from equipoise.report.plan_page import plan_page

    write_file(path, plan_page(problem, result, goal_rows(result, problem)).encode())
    print_page_written(path)


def _show(result: PlanningResult, problem: PlanningProblem, options: SolveOptions) -> None:
    out = console()
    if result.plan is None:
        _show_conflict(result.conflict)
        return
    steps = result.plan.steps
    lasts = format_time_ms(max((step.end_ms for step in steps), default=0))
    out.print(f"{format_count(len(steps), 'step')} in {lasts}, verified at every moment")
    for goal in goal_rows(result, problem):
        least = "" if goal.bound in {None, goal.value} else f", at least {goal.bound:g}"
        out.print(f"{goal.goal} {goal.value:g}{least}")
    if result.optimal:
        out.print("no plan is better")
    elif options.optimise:
        out.print("a better plan may exist")
    for condition in result.broken:
        out.print(f"soft rule violated: {printable(condition.rule.id)}")
    for rule in result.unrepaired:
        out.print(f"rule {printable(rule)} was broken before and stays so: no plan repairs it")
    _show_fullest(result, problem)
    if steps:
        rows = (
            (
                format_time_ms(step.start_ms),
                format_time_ms(step.end_ms),
                step.id,
                describe(step.action),
                ", ".join(step.after),
            )
            for step in steps[:STEPS_SHOWN]
        )
        columns = ("start", "end", "step", "action", "after")
        out.print(text_table(columns, rows, right=("start", "end")))
    if len(steps) > STEPS_SHOWN:
        out.print(f"and {len(steps) - STEPS_SHOWN} more; -o FILE writes them all")


def _show_fullest(result: PlanningResult, problem: PlanningProblem) -> None:
    """Print the fullest hosts before and after the plan, if the VMs demand anything."""
    loads = fullest_hosts(result, problem, FULLEST_SHOWN)
    if not loads:
        return
    rows = (
        (
            load.host,
            f"{load.cpu_before:.0%}",
            f"{load.memory_before:.0%}",
            f"{load.cpu_after:.0%}",
            f"{load.memory_after:.0%}",
        )
        for load in loads
    )
    columns = ("fullest hosts", "CPU before", "memory before", "CPU after", "memory after")
    console().print(text_table(columns, rows, right=columns[1:]))
    if result.overload:
        console().print("hosts stay overloaded: no plan without overload serves the goals as well")


def _show_conflict(conflict: ConditionConflict | None) -> None:
    out = console()
    if conflict is None:
        out.print("no plan was found; one may exist")
        return
    out.print("no plan exists: these conditions cannot be satisfied together")
    for line in conflict.why[:STEPS_SHOWN]:
        out.print(f"  - {printable(line)}")
    if len(conflict.why) > STEPS_SHOWN:
        out.print(f"and {len(conflict.why) - STEPS_SHOWN} more; --json lists them all")
    if not conflict.minimal:
        out.print("the list may contain conditions that are not part of the conflict")


class _InterruptibleSolve:
    """Solves in a thread, so that the main thread shows progress and handles an interrupt."""

    def __init__(self, problem: PlanningProblem, options: SolveOptions) -> None:
        self._problem = problem
        self._options = options
        self._budget = SearchBudget.of(options.time_limit_s, perf_counter, options.seed)
        self._result: PlanningResult | None = None
        self._error: BaseException | None = None
        self._line: SearchProgress | None = None
        self._done = Event()

    def result(self) -> PlanningResult:
        """Wait for the result; after an interrupt it is the best plan so far."""
        Thread(target=self._work, daemon=True).start()
        shows = sys.stderr.isatty()
        while not self._done.is_set():
            try:
                self._done.wait(POLL_S)
                if shows and self._line is not None:
                    self._show_progress(self._line)
            except KeyboardInterrupt:
                self._budget.stop()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def _work(self) -> None:
        try:
            self._result = solve_with_broken_rules(
                self._problem,
                self._budget,
                repair=self._options.repair,
                optimise=self._options.optimise,
                stream=self._on_better_plan,
            )
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()

    def _on_better_plan(self, progress: SearchProgress, plan: JudgedPlan) -> None:
        self._line = progress
        if self._options.stream is None:
            return
        better = plan()
        if better is not None:
            write_plan(better, self._problem, self._options.stream, line=True)

    def _show_progress(self, progress: SearchProgress) -> None:
        self._line = None
        progress_console().print(
            f"{progress.seconds:.1f} s: best {progress.best:,}, bound {progress.bound:,}, "
            f"gap {progress.gap_pct:.1f} %"
        )
