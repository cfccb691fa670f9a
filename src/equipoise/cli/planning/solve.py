"""``equipoise solve``: from a wished state to a plan, or to the reason why there is none."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

from equipoise.cli.answer import clock, console, fitted, plain, print_json, progress_console, table
from equipoise.cli.planning.refused import keep_case
from equipoise.cli.planning.write import for_btrplace, write_plan
from equipoise.cli.read import read_problem
from equipoise.cli.write import check_writable, say_written, write_file
from equipoise.errors import InvalidInput
from equipoise.errors import Problem as Mistake
from equipoise.model.action import Move, describe
from equipoise.model.files.collector import undisturbed
from equipoise.model.plan import Step
from equipoise.model.problem import Measure, Problem
from equipoise.model.words import counted
from equipoise.plan.exact.answer import Answer
from equipoise.plan.exact.judging import RefusedPlan
from equipoise.plan.exact.search import Plans
from equipoise.plan.exact.solve import solve
from equipoise.plan.exact.solver.decide import Effort, Progress
from equipoise.plan.exact.task import measures_of

SHOWN = 40
BEAT_S = 0.1


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person asks for besides the problem."""

    repair: bool = False
    optimise: bool = False
    time_limit_s: float | None = None
    seed: int = 0
    output: Path | None = None
    as_btrplace: bool = False
    stream: Path | None = None
    report: Path | None = None


def run(path: Path, wishes: Wishes, *, as_json: bool) -> int:
    """Print the plan, or why there is none; 1 if there is none."""
    _check(wishes)
    began = perf_counter()
    with undisturbed():  # a large problem is a million small values, none of which is garbage
        problem = read_problem(path)
        load_s = perf_counter() - began
        if wishes.as_btrplace:
            problem = for_btrplace(problem, str(path))
        try:
            answer = _Watched(problem, wishes).answer()
        except RefusedPlan as error:
            raise keep_case(problem, error) from error
    if answer.plan is not None and wishes.output is not None:
        write_plan(answer.plan, problem, wishes.output, as_btrplace=wishes.as_btrplace)
    if wishes.report is not None:
        _write_report(wishes.report, answer, problem)
    if as_json:
        times = {"load_s": round(load_s, 4), "wall_s": round(perf_counter() - began, 4)}
        print_json(document(answer, problem) | times)
    else:
        _show(answer, problem, wishes)
    return 0 if answer.plan is not None else 1


def _check(wishes: Wishes) -> None:
    """Refuse files that could not be written: nobody wants to lose what took an hour to find."""
    for path in (wishes.output, wishes.report, wishes.stream):
        if path is not None:
            check_writable(path)
    if wishes.as_btrplace and wishes.output is None:
        what, cure = "there is no file to write the plan into", "name one with -o"
        raise InvalidInput("--btrplace", [Mistake(key="", what=what, cure=cure)])


def document(answer: Answer, problem: Problem) -> dict[str, object]:
    """The answer as the JSON contract wants it."""
    steps = () if answer.plan is None else answer.plan.steps
    values, bounds = _goals(answer, problem), _bounds(answer, problem)
    objective = next((value for name, value in values if name != SOFT), None)
    return {
        "status": answer.status.value,
        "optimal": answer.optimal,
        "objective": objective,
        "goals": [
            {"goal": name, "value": value, "bound": bound}
            for (name, value), bound in zip(values, bounds, strict=True)
        ],
        "actions": len(steps),
        "migrations": sum(isinstance(step.action, Move) for step in steps),
        "makespan_s": max((step.end_ms for step in steps), default=0) / 1000,
        "verified": answer.plan is not None,
        "broken": [claim.rule.id for claim in answer.broken],
        "explanation": [] if answer.conflict is None else list(answer.conflict.why),
        "conflict": []
        if answer.conflict is None
        else [one.title for one in answer.conflict.claims],
        "build_s": round(answer.build_s, 4),
        "solve_s": round(answer.solve_s, 4),
        "steps": [_row(step) for step in steps],
    }


def _row(step: Step) -> dict[str, object]:
    return {
        "id": step.id,
        "start_ms": step.start_ms,
        "end_ms": step.end_ms,
        "action": describe(step.action),
        "after": list(step.after),
    }


# Goals in the units that people count in

SOFT = "soft rules"
_IN_MS = frozenset({Measure.MTTR, Measure.MAKESPAN})


def _goals(answer: Answer, problem: Problem) -> list[tuple[str, float]]:
    names = _names(answer, problem)
    return [(name, _scaled(name, value)) for name, value in zip(names, answer.goals, strict=False)]


def _bounds(answer: Answer, problem: Problem) -> list[float | None]:
    names = _names(answer, problem)[: len(answer.goals)]
    known = [*answer.bounds, *[None] * len(names)]
    return [
        None if bound is None else _scaled(name, bound)
        for name, bound in zip(names, known, strict=False)
    ]


def _names(answer: Answer, problem: Problem) -> list[str]:
    goals = [" + ".join(measures_of(goal)) for goal in problem.objective]
    return [SOFT, *goals] if len(answer.goals) > len(goals) else goals


def _scaled(name: str, value: int) -> float:
    """Seconds, where a goal is nothing but times."""
    return value / 1000 if _is_time(name) else value


def _is_time(name: str) -> bool:
    return all(one in _IN_MS for one in name.split(" + "))


# For people


def _write_report(path: Path, answer: Answer, problem: Problem) -> None:
    from equipoise.report.plans import Goal, plan_page

    goals = [
        Goal(name, value, bound, "s" if _is_time(name) else "")
        for (name, value), bound in zip(
            _goals(answer, problem), _bounds(answer, problem), strict=True
        )
    ]
    write_file(path, plan_page(problem, answer, goals).encode())
    say_written(path)


def _show(answer: Answer, problem: Problem, wishes: Wishes) -> None:
    out = console()
    if answer.plan is None:
        if answer.conflict is None:
            out.print("no plan was found, and none is ruled out")
            return
        out.print("there is no plan: these cannot all be kept")
        for line in answer.conflict.why[:SHOWN]:
            out.print(f"  - {plain(line)}")
        if len(answer.conflict.why) > SHOWN:
            out.print(f"and {len(answer.conflict.why) - SHOWN} more; --json lists them all")
        if not answer.conflict.minimal:
            out.print("whether all of them are needed is not known")
        return
    steps = answer.plan.steps
    lasts = clock(max((step.end_ms for step in steps), default=0))
    out.print(f"{counted(len(steps), 'step')} in {lasts}, judged at every moment")
    _show_goals(answer, problem, optimise=wishes.optimise)
    for claim in answer.broken:
        out.print(f"not kept, as it is soft: {plain(claim.rule.id)}")
    rows = table("start", "end", "step", "does", "after", right=("start", "end"))
    for step in steps[:SHOWN]:
        after = ", ".join(step.after)
        does = plain(describe(step.action))
        rows.add_row(clock(step.start_ms), clock(step.end_ms), step.id, does, after)
    if steps:
        out.print(fitted(rows))
    if len(steps) > SHOWN:
        out.print(f"and {len(steps) - SHOWN} more; -o FILE writes them all")


def _show_goals(answer: Answer, problem: Problem, *, optimise: bool) -> None:
    out = console()
    for (name, value), bound in zip(_goals(answer, problem), _bounds(answer, problem), strict=True):
        best = "" if bound is None or bound == value else f", at least {bound:g}"
        out.print(f"{name} {value:g}{best}")
    if answer.optimal:
        out.print("no plan is better")
    elif optimise:
        out.print("a better plan may exist")


class _Watched:
    """Solves beside, so that whoever watches sees it come on and can stop it at once."""

    def __init__(self, problem: Problem, wishes: Wishes) -> None:
        self._problem = problem
        self._wishes = wishes
        self._effort = Effort.of(wishes.time_limit_s, perf_counter, wishes.seed)
        self._answer: Answer | None = None
        self._error: BaseException | None = None
        self._line: Progress | None = None
        self._done = Event()

    def answer(self) -> Answer:
        """Wait for the answer; an interrupt stops the search, and the best so far is the answer."""
        Thread(target=self._work, daemon=True).start()
        shows = sys.stderr.isatty()
        while not self._done.is_set():
            try:
                self._done.wait(BEAT_S)
                if shows and self._line is not None:
                    self._tell(self._line)
            except KeyboardInterrupt:
                self._effort.stop()
        if self._error is not None:
            raise self._error
        assert self._answer is not None
        return self._answer

    def _work(self) -> None:
        try:
            self._answer = solve(
                self._problem,
                self._effort,
                repair=self._wishes.repair,
                optimise=self._wishes.optimise,
                stream=self._note,
            )
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()

    def _note(self, progress: Progress, plan: Plans) -> None:
        self._line = progress
        if self._wishes.stream is None:
            return
        found = plan()
        if found is not None:
            write_plan(found, self._problem, self._wishes.stream, line=True)

    def _tell(self, progress: Progress) -> None:
        self._line = None
        progress_console().print(
            f"{progress.seconds:.1f} s: best {progress.best:,}, bound {progress.bound:,}, "
            f"gap {progress.gap_pct:.1f} %"
        )
