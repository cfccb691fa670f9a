"""How fast and how good planning is, beside BtrPlace on the instances of its own benchmark.

Each side is a process of its own, and both take turns. A side's time is what it says itself:
reading, building and searching, without the start of its interpreter; that of the whole process is
among the figures. What plans cost is counted by one measure for both.

``EQUIPOISE_BTRPLACE_DATA`` names another folder of instances, ``EQUIPOISE_BENCH_RUNS`` says how
often each side runs; the quickest run counts.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from equipoise.adapters.btrplace import java_build
from equipoise.adapters.btrplace.format.plan_actions import PlanCost, cost_of_plan
from equipoise.bench.measure import BenchmarkRow
from equipoise.bench.plan import instances, plan_acceptance
from equipoise.bench.plan.measured_process import ProcessResult, run_measured
from equipoise.errors import InvalidInput, MissingExtra

RUNS_VARIABLE: Final = "EQUIPOISE_BENCH_RUNS"
CHILD_S_MAX: Final = 600
SEARCH_S_MAX: Final = 300
HEAP_MIB: Final = 4096
ERROR_TEXT_MAX: Final = 160
WITHOUT_REPAIR: Final = ("li6", "nr6")
"""Solved without repair by us alone: BtrPlace runs out of memory."""
WITHOUT_REPAIR_S_MAX: Final = 120
WITHOUT_REPAIR_MIB_MAX: Final = 4096
TIME_KEYS: Final = ("load_s", "build_s", "solve_s")
OUR_COMMAND: Final = (sys.executable, "-c", "from equipoise.cli.main import main; main()")


@dataclass(frozen=True, slots=True)
class SolverRun:
    """The result of one run of one solver."""

    ended: ProcessResult
    total_s: float
    times: Mapping[str, float] = field(default_factory=dict)
    amount: PlanCost | None = None
    """``None`` if it found no plan."""
    why: str = ""
    """Why it found no plan; empty if it found one."""
    verified: bool = False


def rows() -> Iterator[BenchmarkRow]:
    """Yield an imposed plan, each instance beside BtrPlace, and large ones without repair."""
    yield from plan_acceptance.rows()
    runs = _runs()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        some = instances.find_instances()
        if not some:
            places = ", ".join(map(str, instances.search_folders()))
            note = (
                f"looked for *{instances.SUFFIX} in {places}; "
                f"{instances.FOLDER_VARIABLE} names another"
            )
            yield BenchmarkRow(
                "no instances of BtrPlace's: two built-in ones instead", 0, "", None, note=note
            )
            some = list(instances.write_builtin_instances(work))
        for instance in some:
            yield _compare_with_btrplace(instance, work / "plan.json", runs)
        for instance in some:
            if _name(instance) in WITHOUT_REPAIR:
                yield _without_repair_row(instance, work / "plan.json")


def _runs() -> int:
    text = os.environ.get(RUNS_VARIABLE, "2")
    if not text.isdecimal() or int(text) == 0:
        raise InvalidInput.of(
            RUNS_VARIABLE, f"{text!r} is no count", cure="write 2", code="invalid-value"
        )
    return int(text)


# Beside BtrPlace


def _compare_with_btrplace(instance: Path, plan: Path, runs: int) -> BenchmarkRow:
    try:
        peer = _BtrPlaceSolver(java_build.require_build())
    except MissingExtra as error:
        ours = _fastest([_run_ours(instance, plan, repair=True) for _ in range(runs)])
        return _row(instance, ours, None, "BtrPlace", [str(error)])
    mine, theirs = [], []
    for _ in range(runs):
        mine.append(_run_ours(instance, plan, repair=True))
        theirs.append(peer.ask(instance, plan))
    notes = [peer.note] if peer.note else []
    if instances.has_network(instance):
        notes.append("the instance has a network: compare what the plans cost before their times")
    return _row(instance, _fastest(mine), _fastest(theirs), peer.title, notes)


def _row(
    instance: Path, ours: SolverRun, theirs: SolverRun | None, title: str, notes: list[str]
) -> BenchmarkRow:
    figures = {"verified": float(ours.verified)} | _figures("", ours)
    if theirs is not None:
        figures |= {"peer_total_s": theirs.total_s} | _figures("peer_", theirs)
        if theirs.ended.wall_s and ours.ended.wall_s:
            figures["ratio_of_processes"] = theirs.ended.wall_s / ours.ended.wall_s
    sides = (("ours", ours), ("BtrPlace", theirs))
    notes += [f"{solver} found no plan: {side.why}" for solver, side in sides if side and side.why]
    comparable = theirs is not None and theirs.amount is not None and ours.amount is not None
    return BenchmarkRow(
        f"plan {_name(instance)}, repair",
        ours.total_s,
        title,
        theirs.total_s if theirs is not None and comparable else None,
        figures=figures,
        note="; ".join(notes),
    )


def _figures(side: str, run: SolverRun) -> dict[str, float]:
    found: dict[str, float] = {}
    if run.amount is not None:
        found = {"ends_s": run.amount.ends_s, "moves": run.amount.moves}
    found |= run.times
    found |= {"process_s": run.ended.wall_s, "peak_mib": run.ended.peak_mib}
    return {f"{side}{name}": value for name, value in found.items()}


def _fastest(tries: Sequence[SolverRun]) -> SolverRun:
    """The fastest run with a plan; without any plan, the fastest run."""
    return min(tries, key=lambda attempt: (attempt.amount is None, attempt.total_s))


# Alone


def _without_repair_row(instance: Path, plan: Path) -> BenchmarkRow:
    ours = _run_ours(instance, plan, repair=False)
    notes = [f"ours found no plan: {ours.why}"] if ours.why else []
    if ours.ended.wall_s > WITHOUT_REPAIR_S_MAX:
        notes.append(f"the process took longer than {WITHOUT_REPAIR_S_MAX} s")
    if ours.ended.peak_mib > WITHOUT_REPAIR_MIB_MAX:
        notes.append(f"it had more than {WITHOUT_REPAIR_MIB_MAX:,} MiB")
    limits = f"at most {WITHOUT_REPAIR_S_MAX} s and {WITHOUT_REPAIR_MIB_MAX:,} MiB"
    return BenchmarkRow(
        f"plan {_name(instance)}, all may move, wanted: {limits}",
        ours.total_s,
        "",
        None,
        figures={"verified": float(ours.verified)} | _figures("", ours),
        note="; ".join(notes),
    )


# The two sides


def _run_ours(instance: Path, plan: Path, *, repair: bool) -> SolverRun:
    options = ["--json", "-o", str(plan), "--btrplace", *(["--repair"] if repair else [])]
    return _run_solver([*OUR_COMMAND, "solve", str(instance), *options], plan, _total_s)


class _BtrPlaceSolver:
    """BtrPlace in repair mode, until that mode fails."""

    def __init__(self, build: java_build.BtrPlaceBuild) -> None:
        self._build = build
        self._repair = True
        self.note = ""

    @property
    def title(self) -> str:
        """The name of the planner and its mode."""
        return f"BtrPlace {self._build.version}{' -r' if self._repair else ''}"

    def ask(self, instance: Path, plan: Path) -> SolverRun:
        """Solve once; after a failure in repair mode, solve without repair."""
        found = self._ask(instance, plan)
        if self._repair and found.ended.code not in (0, None):
            self.note = f"BtrPlace -r broke ({found.why}), so it ran without -r"
            self._repair = False
            found = self._ask(instance, plan)
        return found

    def _ask(self, instance: Path, plan: Path) -> SolverRun:
        line = self._build.line(
            instance, plan, repair=self._repair, search_s_max=SEARCH_S_MAX, heap_mib=HEAP_MIB
        )
        return _run_solver(line, plan, lambda said: float(said["total_s"]))


def _run_solver(
    line: list[str], plan: Path, total_s: Callable[[Mapping[str, Any]], float]
) -> SolverRun:
    plan.unlink(missing_ok=True)  # the plan of the previous run
    ended = run_measured(line, seconds_max=CHILD_S_MAX)
    if ended.code is None:
        return SolverRun(ended, CHILD_S_MAX, why=f"it took longer than {CHILD_S_MAX} s")
    try:
        said = json.loads(ended.stdout_text)
        total, times = total_s(said), {part: float(said[part]) for part in TIME_KEYS}
    except (ValueError, KeyError, TypeError):
        return SolverRun(ended, ended.wall_s, why=_error_text(ended))
    status = said.get("status")
    if status == "error" or not plan.exists():
        return SolverRun(ended, total, times, why=_shortened(str(said.get("error", status))))
    try:
        amount = cost_of_plan(json.loads(plan.read_bytes()))
    except (ValueError, KeyError, TypeError, AttributeError):  # it failed while it wrote
        return SolverRun(ended, total, times, why="its plan cannot be read")
    return SolverRun(ended, total, times, amount, verified=bool(said.get("verified")))


def _total_s(said: Mapping[str, Any]) -> float:
    return sum(float(said[part]) for part in TIME_KEYS)


def _error_text(ended: ProcessResult) -> str:
    """The error of a solver without a valid answer: from its JSON, or its last line."""
    try:
        said = json.loads(ended.stdout_text)
        return _shortened(str(said.get("message") or said["error"]))
    except (ValueError, KeyError, AttributeError):
        lines = (ended.stderr_text or ended.stdout_text).strip().splitlines()
        return _shortened(lines[-1] if lines else f"it ended with code {ended.code}")


def _shortened(words: str) -> str:
    return words if len(words) <= ERROR_TEXT_MAX else f"{words[:ERROR_TEXT_MAX]}..."


def _name(instance: Path) -> str:
    return instance.name.removesuffix(instances.SUFFIX)
