"""``equipoise simulate``: run a scenario in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from equipoise.cli.answer import clock, console, plain, print_json, watched
from equipoise.cli.check import as_rows, show_violations
from equipoise.cli.read import read_scenario
from equipoise.cli.story import tell
from equipoise.control import Loop
from equipoise.errors import InvalidInput, Problem
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.event import ActionFinished, ActionStarted, PlanEnded
from equipoise.model.plan import Violation
from equipoise.model.scenario import Scenario
from equipoise.model.snapshot import Snapshot
from equipoise.plan import Refusal
from equipoise.sim import MemoryWorld, Script
from equipoise.sim.builtin import builtin
from equipoise.store import Journal, MemoryJournal, open_journal

STAGES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came out of a run."""

    scenario: Scenario
    journal: Journal
    snapshot: Snapshot
    ended_ms: int
    violations: tuple[Violation, ...]
    wall_s: float


def run(name: str, *, journal_url: str | None, as_json: bool) -> int:
    """Simulate, and say what came out."""
    scenario = load(name)
    journal = open_journal(journal_url) if journal_url else MemoryJournal()
    with journal:
        if len(journal):
            cure = "name a new file, or look at this one with 'equipoise journal'"
            problem = Problem(key="", what="already has the journal of another run", cure=cure)
            raise InvalidInput(journal.source, [problem])
        result = simulate(scenario, journal)
        if as_json:
            print_json(document(result))
        else:
            _show(result)
    return 1 if result.violations else 0


def load(name: str) -> Scenario:
    """Read a scenario from a file, or a built-in one by its name."""
    path = Path(name)
    looks_like_a_file = path.suffix in {".yaml", ".yml", ".json"} or path.exists()
    return read_scenario(path) if looks_like_a_file else builtin(name)


def simulate(scenario: Scenario, journal: Journal) -> Result:
    """Run a scenario to its end."""
    began = perf_counter()
    world = MemoryWorld(Snapshot.of(scenario.cluster), Script(happenings=scenario.happenings))
    loop = Loop(world, journal)
    violations: tuple[Violation, ...] = ()
    if scenario.plan is not None and loop.idle:
        plan = scenario.plan.but(base_version=loop.snapshot().version)
        verdict = loop.carry_out(plan)
        violations = verdict.violations if isinstance(verdict, Refusal) else ()
    for until_ms in watched(_stages(loop.now_ms, scenario.duration_s * 1000), "simulating", STAGES):
        loop.run(until_ms=until_ms)
    return Result(
        scenario=scenario,
        journal=journal,
        snapshot=loop.snapshot(),
        ended_ms=loop.now_ms,
        violations=violations,
        wall_s=perf_counter() - began,
    )


def _stages(now_ms: int, end_ms: int) -> Iterator[int]:
    """Cut the rest of a run into stages, so that somebody can watch it come on."""
    left_ms = max(0, end_ms - now_ms)
    return (now_ms + left_ms * stage // STAGES for stage in range(1, STAGES + 1))


def document(result: Result) -> dict[str, object]:
    """The result as the JSON contract wants it."""
    counts: Counter[type] = Counter()
    kinds: dict[str, type] = {}
    for event in result.journal.events():
        if isinstance(event, ActionStarted):
            kinds[event.step.id] = type(event.step.action)
        if isinstance(event, ActionFinished):
            counts[kinds[event.step]] += 1
    return {
        "scenario": result.scenario.name,
        "seed": result.scenario.seed,
        "duration_s": result.ended_ms / 1000,
        "migrations": counts[Migrate],
        "power_ons": counts[PowerOn],
        "power_offs": counts[PowerOff],
        "violations": as_rows(result.violations),
        "plans": [
            {
                "plan": event.plan,
                "outcome": event.outcome,
                "finished": event.finished,
                "failed": event.failed,
                "skipped": event.skipped,
            }
            for event in result.journal.events()
            if isinstance(event, PlanEnded)
        ],
        "events": len(result.journal),
        "wall_s": round(result.wall_s, 3),
        "journal_sha256": result.journal.sha256(),
    }


def _show(result: Result) -> None:
    out = console()
    scenario = result.scenario
    out.print(f"[bold]{plain(scenario.name)}[/bold]: {plain(scenario.about)}")
    if result.violations:
        show_violations(result.violations)
    tell_journal(result.journal)
    out.print(
        f"{clock(result.ended_ms)} simulated in {result.wall_s:.2f} s, "
        f"{len(result.journal)} events, sha256 {result.journal.sha256()[:16]}"
    )


def tell_journal(journal: Journal) -> None:
    """Print the story of a journal."""
    out = console()
    for event in journal.events():
        out.print(f"{clock(event.at_ms):>14}  {plain(tell(event))}")
