"""``equipoise simulate`` and ``equipoise scenarios``: run a scenario in virtual time, list the
built-in ones.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Final

from equipoise import files
from equipoise.api.loading import check_cluster, read_scenario
from equipoise.api.simulation import SimulationRun
from equipoise.cli.file_io import open_new_journal, print_page_written
from equipoise.cli.output import (
    console,
    format_time_ms,
    make_table,
    print_document,
    printable,
    progress_console,
    show_spinner,
    text_table,
)
from equipoise.cli.plan.check import show_violations
from equipoise.documents.event_text import describe_event
from equipoise.documents.simulation import ScenarioRow, SimulationDocument, simulation_document
from equipoise.errors import InvalidInput
from equipoise.model.action import Migrate
from equipoise.model.event import EVENT_KINDS, event_kind
from equipoise.model.quantity import format_count
from equipoise.model.scenario.scenario import Scenario
from equipoise.sim.builtin import builtin_campaigns, builtin_scenario, builtin_scenarios
from equipoise.sim.measure.measures import Measures
from equipoise.sim.plugins import decider_names
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import Journal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PROGRESS_STEPS: Final = 200
"""Steps of the progress bar."""
PACE_STEP_S: Final = 0.1
"""Real time between two steps of a paced run."""


def run_to_end(runner: ScenarioRunner, *, pace: float | None) -> None:
    """Run a scenario to its end, with ``pace`` virtual seconds per real second at most."""
    end_ms = 1000 * runner.scenario.duration_s
    step_ms = max(1, end_ms // PROGRESS_STEPS if pace is None else round(1000 * pace * PACE_STEP_S))
    bar = _ProgressBar(end_ms) if sys.stderr.isatty() else None
    began, start_ms = perf_counter(), runner.now_ms
    try:
        while runner.now_ms < end_ms:
            runner.run(min(end_ms, runner.now_ms + step_ms))
            if pace is not None:
                due_s = (runner.now_ms - start_ms) / 1000 / pace
                sleep(max(0.0, due_s - (perf_counter() - began)))
            if bar is not None:
                bar.show(
                    runner.now_ms, (runner.now_ms - start_ms) / 1000 / (perf_counter() - began)
                )
    finally:
        if bar is not None:
            bar.close()


class _ProgressBar:
    """Shows simulated time, speed relative to real time, and remaining time."""

    def __init__(self, end_ms: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._end = format_time_ms(end_ms)
        self._progress: Progress = Progress(
            TextColumn("simulating"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=progress_console(),
            transient=True,
        )
        self._progress.start()
        self._task: TaskID = self._progress.add_task("", total=end_ms)

    def show(self, now_ms: int, factor: float) -> None:
        """Update the bar."""
        seconds = now_ms // 1000 * 1000
        text = f"{format_time_ms(seconds)} of {self._end}, {factor:,.0f} times real time"
        self._progress.update(self._task, completed=now_ms, description=text)

    def close(self) -> None:
        """Remove the bar."""
        self._progress.stop()


def run_scenarios(*, as_json: bool) -> int:
    """List the built-in scenarios."""
    listed = [ScenarioRow.of(builtin) for builtin in (*builtin_scenarios(), *builtin_campaigns())]
    if as_json:
        print_document(listed)
        return 0
    console().print(text_table(("name", "about"), ((row.name, row.about) for row in listed)))
    return 0


_LISTED_KINDS: Final = tuple(kind for kind in EVENT_KINDS if kind != "demand_observed")
EVENTS_LISTED_MAX: Final = 60
"""A journal with more events is summarised by kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """Changes to the scenario, and outputs."""

    seed: int | None = None
    changes: tuple[str, ...] = ()
    """New values of the scenario, as ``KEY=VALUE``."""
    with_deciders: tuple[str, ...] = ()
    without_deciders: tuple[str, ...] = ()
    pace: float | None = None
    journal_url: str | None = None
    out: Path | None = None


def run(name: str, options: SimulateOptions, *, as_json: bool) -> int:
    """Simulate and print the result; 1 if the plan of the scenario is refused."""
    scenario, folder = load_scenario(name)
    if options.out is not None:
        from equipoise.report import check_folder

        check_folder(options.out)
    with open_new_journal(options.journal_url) as journal:
        outcome = simulate(
            apply_options(scenario, options), journal, folder=folder, pace=options.pace
        )
        # The folder comes first: the reader of standard output may stop at any time.
        parquet = options.out is None or _write_folder(options.out, outcome)
        if as_json:
            print_document(document_of(outcome))
        else:
            _show(outcome)
        if options.out is not None:
            _print_written(options.out, parquet=parquet)
    return 1 if outcome.result.violations else 0


def load_scenario(name: str) -> tuple[Scenario, Path | None]:
    """Return a scenario and the folder of its traces; a built-in scenario has no folder."""
    path = Path(name)
    # A name with such an ending is meant as a file, so that a missing file is reported as one.
    is_file = path.suffix in {".yaml", ".yml", ".json"} or path.exists()
    return (read_scenario(path), path.parent) if is_file else (builtin_scenario(name), None)


def apply_options(scenario: Scenario, options: SimulateOptions) -> Scenario:
    """Return the scenario with the seed, the deciders and the values of the options."""
    if options.changes:
        scenario = files.override_scenario(scenario, options.changes, scenario.name, check_cluster)
    for name in options.without_deciders:
        if name not in (*scenario.deciders, *decider_names()):
            cure = f"it has {', '.join(scenario.deciders)}" if scenario.deciders else "leave it out"
            raise InvalidInput.of(
                scenario.name,
                f"there is no decider {name!r}",
                key="--without",
                cure=cure,
                code="unknown-name",
            )
    selected = dict.fromkeys((*scenario.deciders, *options.with_deciders))
    deciders = tuple(name for name in selected if name not in options.without_deciders)
    seed = scenario.seed if options.seed is None else options.seed
    return scenario.but(deciders=deciders, seed=seed)


def simulate(
    scenario: Scenario, journal: Journal, *, folder: Path | None = None, pace: float | None = None
) -> SimulationRun:
    """Run a scenario to its end."""
    began = perf_counter()
    with show_spinner("preparing the scenario"):
        runner = ScenarioRunner(scenario, journal, folder=folder)
    run_to_end(runner, pace=pace)
    wall_s = perf_counter() - began
    return SimulationRun(runner.result(), journal, wall_s)


def document_of(outcome: SimulationRun) -> SimulationDocument:
    """Return the JSON document of a run."""
    return simulation_document(outcome.result, outcome.journal, outcome.wall_s)


def _write_folder(out: Path, outcome: SimulationRun) -> bool:
    from equipoise.report import write_run

    written = write_run(out, document_of(outcome), outcome.result.record, outcome.journal)
    return bool(written.parquet)


def _print_written(out: Path, *, parquet: bool) -> None:
    print_page_written(out / "report.html")
    if not parquet:
        progress_console().print("no Parquet files: pip install 'equipoise[parquet]' adds them")


def _show(outcome: SimulationRun) -> None:
    out, result = console(), outcome.result
    scenario = result.scenario
    out.print(f"[bold]{printable(scenario.name)}[/bold]: {printable(scenario.about)}")
    if result.violations:
        show_violations(result.violations)
    if sum(1 for _ in outcome.journal.events(kinds=_LISTED_KINDS)) <= EVENTS_LISTED_MAX:
        print_journal(outcome.journal)
    else:
        _show_counts(outcome.journal)
    _show_measures(outcome)
    out.print(
        f"{format_time_ms(result.ended_ms)} simulated in {outcome.wall_s:.2f} s, "
        f"{format_count(len(outcome.journal), 'event')}, sha256 {outcome.journal.sha256()[:16]}"
    )


def _show_counts(journal: Journal) -> None:
    kinds = Counter(event_kind(event) for event in journal.events())
    rows = make_table("event", "count", right=("count",))
    for kind, count in kinds.most_common():
        rows.add_row(kind.replace("_", " "), f"{count:,}")
    console().print(rows)


def _show_measures(outcome: SimulationRun) -> None:
    measures = outcome.result.measures
    below = measures.below_target_at_s
    rows = make_table("measure", "value", right=("value",))
    for name, value in (
        ("CPU utilisation", f"{measures.payload_cpu_pct:.2f} %"),
        ("memory utilisation", f"{measures.payload_memory_pct:.2f} %"),
        ("CPU demand met", f"{measures.satisfied_cpu_pct:.2f} %"),
        ("memory demand met", f"{measures.satisfied_memory_pct:.2f} %"),
        ("imbalance at the start", f"{measures.imbalance_initial:.3f}"),
        ("imbalance at the end", f"{measures.imbalance_final:.3f}"),
        (
            "imbalance first below its target",
            "never" if below is None else format_time_ms(round(below * 1000)),
        ),
        ("energy", f"{measures.energy_kwh:.2f} kWh" if measures.energy_kwh else "unknown"),
        *_standby_rows(measures),
        ("downtime of VMs", f"{measures.downtime_s:,.1f} s"),
        ("migrations", f"{outcome.result.finished[Migrate]:,}"),
    ):
        rows.add_row(name, value)
    for happiness in measures.happiness:
        pool = "" if len(measures.happiness) == 1 else f", {printable(happiness.pool)}"
        rows.add_row(f"happy VMs{pool}", f"{happiness.happy_pct:.1f} %")
    for tenant, breach in measures.breaches.items():
        rows.add_row(f"SLA of {printable(tenant)} violated", f"{breach.seconds:,.1f} s")
    console().print(rows)


def _standby_rows(measures: Measures) -> list[tuple[str, str]]:
    """Return savings and unmet demand, if any host was in standby."""
    energy, missed = measures.energy, measures.unsatisfied
    if not energy.host_hours_asleep:
        return []
    price = f"{energy.saved_price:,.2f} {printable(energy.tariff.currency)}"
    saved = [
        ("energy saved by standby", f"{energy.saved_kwh:.2f} kWh, {energy.saved_pct:.1f} %"),
        ("price and CO2 saved", f"{price}, {energy.saved_co2_kg:,.2f} kg"),
    ]
    return [
        ("standby time of all hosts", f"{energy.host_hours_asleep:,.2f} h"),
        *(saved if energy.kwh else []),
        ("CPU demand not met", f"{missed.cpu_mhz_h:,.0f} MHz h"),
        ("memory demand not met", f"{missed.memory_mib_h:,.0f} MiB h"),
    ]


def print_journal(journal: Journal) -> None:
    """Print the events of a journal, except the periodic demand observations."""
    out = console()
    for event in journal.events(kinds=_LISTED_KINDS):
        out.print(f"{format_time_ms(event.at_ms):>14}  {printable(describe_event(event))}")
