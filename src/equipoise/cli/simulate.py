"""``equipoise simulate``: run a scenario in virtual time."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from equipoise.cli.answer import (
    clock,
    console,
    patience,
    plain,
    print_json,
    progress_console,
    table,
)
from equipoise.cli.check import as_rows, show_violations
from equipoise.cli.pace import run_to_end
from equipoise.cli.read import check_cluster, read_scenario
from equipoise.cli.story import tell
from equipoise.cli.write import say_written
from equipoise.errors import InvalidInput, Problem
from equipoise.model import files
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.event import KINDS, kind_of
from equipoise.model.story.scenario import Scenario
from equipoise.model.words import counted
from equipoise.sim.builtin import builtin
from equipoise.sim.deciders import decider_names
from equipoise.sim.measure.energy import Energy
from equipoise.sim.measure.measures import Measures
from equipoise.sim.play import Play, Result
from equipoise.store import Journal, MemoryJournal, open_journal

_STORY_KINDS: Final = tuple(kind for kind in KINDS if kind != "demand_observed")
STORY: Final = 60
"""A journal with more events than this is summed up instead of told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the person wants different from the scenario."""

    seed: int | None = None
    changes: tuple[str, ...] = ()
    """Figures of the scenario to be changed, as ``KEY=VALUE``."""
    with_deciders: tuple[str, ...] = ()
    without_deciders: tuple[str, ...] = ()
    pace: float | None = None
    journal_url: str | None = None
    out: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A result, with the journal it left and the time it took."""

    result: Result
    journal: Journal
    wall_s: float


def run(name: str, wishes: Wishes, *, as_json: bool) -> int:
    """Simulate, and say what came out."""
    scenario, folder = load(name)
    if wishes.out is not None:
        from equipoise.report import check_folder

        check_folder(wishes.out)
    journal = open_journal(wishes.journal_url) if wishes.journal_url else MemoryJournal()
    with journal:
        if len(journal):
            cure = "name a new file, or look at this one with 'equipoise journal'"
            problem = Problem(key="", what="already has the journal of another run", cure=cure)
            raise InvalidInput(journal.source, [problem])
        outcome = simulate(as_wished(scenario, wishes), journal, folder=folder, pace=wishes.pace)
        # First the folder: who reads the answer may stop reading at any time.
        parquet = wishes.out is None or _write(wishes.out, outcome)
        if as_json:
            print_json(document(outcome))
        else:
            _show(outcome)
        if wishes.out is not None:
            _say_written(wishes.out, parquet=parquet)
    return 1 if outcome.result.violations else 0


def load(name: str) -> tuple[Scenario, Path | None]:
    """Read a scenario from a file, and say where its traces are, or a built-in one by its name."""
    path = Path(name)
    looks_like_a_file = path.suffix in {".yaml", ".yml", ".json"} or path.exists()
    return (read_scenario(path), path.parent) if looks_like_a_file else (builtin(name), None)


def as_wished(scenario: Scenario, wishes: Wishes) -> Scenario:
    """The scenario with another seed, with other deciders, or with other figures."""
    if wishes.changes:
        scenario = files.assigned(scenario, wishes.changes, scenario.name, check_cluster)
    for name in wishes.without_deciders:
        if name not in (*scenario.deciders, *decider_names()):
            cure = f"it has {', '.join(scenario.deciders)}" if scenario.deciders else "leave it out"
            problem = Problem(key="--without", what=f"there is no decider {name!r}", cure=cure)
            raise InvalidInput(scenario.name, [problem])
    wanted = dict.fromkeys((*scenario.deciders, *wishes.with_deciders))
    deciders = tuple(name for name in wanted if name not in wishes.without_deciders)
    seed = scenario.seed if wishes.seed is None else wishes.seed
    return scenario.but(deciders=deciders, seed=seed)


def simulate(
    scenario: Scenario, journal: Journal, *, folder: Path | None = None, pace: float | None = None
) -> Outcome:
    """Run a scenario to its end."""
    began = perf_counter()
    with patience("setting the scene"):
        play = Play(scenario, journal, folder=folder)
    run_to_end(play, pace=pace)
    return Outcome(result=play.result(), journal=journal, wall_s=perf_counter() - began)


def document(outcome: Outcome) -> dict[str, object]:
    """The result as the JSON contract wants it."""
    result, measures = outcome.result, outcome.result.measures
    return {
        "scenario": result.scenario.name,
        "about": result.scenario.about,
        "seed": result.scenario.seed,
        "deciders": list(result.scenario.deciders),
        "duration_s": result.ended_ms / 1000,
        "migrations": result.finished[Migrate],
        "migrations_per_pass": list(result.migrations_per_pass),
        **_figures(measures),
        "power_ons": result.finished[PowerOn],
        "power_offs": result.finished[PowerOff],
        "violations": as_rows(result.violations),
        "plans": [
            {
                "plan": event.plan,
                "outcome": event.outcome,
                "finished": event.finished,
                "failed": event.failed,
                "skipped": event.skipped,
            }
            for event in result.plans
        ],
        "events": len(outcome.journal),
        "wall_s": round(outcome.wall_s, 3),
        "journal_sha256": outcome.journal.sha256(),
    }


def _figures(measures: Measures) -> dict[str, object]:
    return {
        "payload_pct": _both(measures.payload_cpu_pct, measures.payload_memory_pct),
        "satisfied_pct": _both(measures.satisfied_cpu_pct, measures.satisfied_memory_pct),
        "share_classes": [_rounded(asdict(one)) for one in measures.share_classes],
        "cpu_ready_pct": round(measures.cpu_ready_pct, 2),
        "unsatisfied": {
            "cpu_mhz_h": round(measures.unsatisfied.cpu_mhz_h, 3),
            "memory_mib_h": round(measures.unsatisfied.memory_mib_h, 3),
        },
        "energy_kwh": round(measures.energy_kwh, 3),
        "energy": _energy(measures.energy),
        "imbalance": {
            "initial": round(measures.imbalance_initial, 4),
            "final": round(measures.imbalance_final, 4),
            "below_target_at_s": measures.below_target_at_s,
            "target": measures.imbalance_target,
        },
        "happiness": [_rounded(asdict(one)) for one in measures.happiness],
        "downtime_s": round(measures.downtime_s, 1),
        "sla": [
            {
                "tenant": tenant,
                "violations": breach.times,
                "violation_s": round(breach.seconds, 1),
                "vm_s": round(breach.vm_seconds, 1),
                "vms_missing_most": breach.vms_most,
                # For rates of one per second, and of one per second and VM that is missing.
                "penalty": {
                    "delay_dependent": round(breach.seconds, 1),
                    "proportional": round(breach.vm_seconds, 1),
                },
            }
            for tenant, breach in measures.breaches.items()
        ],
    }


def _energy(energy: Energy) -> dict[str, object]:
    return {
        "kwh": round(energy.kwh, 3),
        "saved_kwh": round(energy.saved_kwh, 3),
        "saved_pct": round(energy.saved_pct, 2),
        # Four digits, because an hour of a small cluster costs cents.
        "price": round(energy.price, 4),
        "saved_price": round(energy.saved_price, 4),
        "currency": energy.tariff.currency,
        "price_per_kwh": energy.tariff.price_per_kwh,
        "co2_kg": round(energy.co2_kg, 4),
        "saved_co2_kg": round(energy.saved_co2_kg, 4),
        "co2_g_per_kwh": energy.tariff.co2_g_per_kwh,
        "host_hours_asleep": round(energy.host_hours_asleep, 3),
    }


def _both(cpu: float, memory: float) -> dict[str, float]:
    return {"cpu": round(cpu, 2), "memory": round(memory, 2)}


def _rounded(figures: dict[str, Any]) -> dict[str, object]:
    return {name: round(one, 2) if isinstance(one, float) else one for name, one in figures.items()}


def _write(out: Path, outcome: Outcome) -> bool:
    from equipoise.report import write_run

    written = write_run(out, document(outcome), outcome.result.record, outcome.journal, tell)
    return bool(written.parquet)


def _say_written(out: Path, *, parquet: bool) -> None:
    say_written(out / "report.html")
    if not parquet:
        progress_console().print("no Parquet files: install equipoise[parquet] for them")


def _show(outcome: Outcome) -> None:
    out, result = console(), outcome.result
    scenario = result.scenario
    out.print(f"[bold]{plain(scenario.name)}[/bold]: {plain(scenario.about)}")
    if result.violations:
        show_violations(result.violations)
    if sum(1 for _ in outcome.journal.events(kinds=_STORY_KINDS)) <= STORY:
        tell_journal(outcome.journal)
    else:
        _show_counts(outcome.journal)
    _show_measures(outcome)
    out.print(
        f"{clock(result.ended_ms)} simulated in {outcome.wall_s:.2f} s, "
        f"{counted(len(outcome.journal), 'event')}, sha256 {outcome.journal.sha256()[:16]}"
    )


def _show_counts(journal: Journal) -> None:
    kinds = Counter(kind_of(event) for event in journal.events())
    rows = table("event", "times", right=("times",))
    for kind, times in kinds.most_common():
        rows.add_row(kind.replace("_", " "), f"{times:,}")
    console().print(rows)


def _show_measures(outcome: Outcome) -> None:
    measures = outcome.result.measures
    below = measures.below_target_at_s
    rows = table("measure", "value", right=("value",))
    for name, value in (
        ("CPU used, of all there was", f"{measures.payload_cpu_pct:.2f} %"),
        ("memory used, of all there was", f"{measures.payload_memory_pct:.2f} %"),
        ("CPU demand met", f"{measures.satisfied_cpu_pct:.2f} %"),
        ("memory demand met", f"{measures.satisfied_memory_pct:.2f} %"),
        ("imbalance at the start", f"{measures.imbalance_initial:.3f}"),
        ("imbalance at the end", f"{measures.imbalance_final:.3f}"),
        ("below the target from", "never" if below is None else clock(round(below * 1000))),
        ("energy", f"{measures.energy_kwh:.2f} kWh" if measures.energy_kwh else "not known"),
        *_slept(measures),
        ("downtime of VMs", f"{measures.downtime_s:,.1f} s"),
        ("migrations", f"{outcome.result.finished[Migrate]:,}"),
    ):
        rows.add_row(name, value)
    for one in measures.happiness:
        where = "" if len(measures.happiness) == 1 else f", {plain(one.pool)}"
        rows.add_row(f"happy VMs{where}", f"{one.happy_pct:.1f} %")
    for tenant, breach in measures.breaches.items():
        rows.add_row(f"SLA of {plain(tenant)} broken", f"{breach.seconds:,.1f} s")
    console().print(rows)


def _slept(measures: Measures) -> list[tuple[str, str]]:
    """What sleep saved and what VMs missed, if any host slept."""
    energy, missed = measures.energy, measures.unsatisfied
    if not energy.host_hours_asleep:
        return []
    price = f"{energy.saved_price:,.2f} {plain(energy.tariff.currency)}"
    saved = [
        ("saved by sleep", f"{energy.saved_kwh:.2f} kWh, {energy.saved_pct:.1f} %"),
        ("saved price and CO2", f"{price}, {energy.saved_co2_kg:,.2f} kg"),
    ]
    return [
        ("sleep of all hosts", f"{energy.host_hours_asleep:,.2f} h"),
        *(saved if energy.kwh else []),
        ("CPU demand not met", f"{missed.cpu_mhz_h:,.0f} MHz h"),
        ("memory demand not met", f"{missed.memory_mib_h:,.0f} MiB h"),
    ]


def tell_journal(journal: Journal) -> None:
    """Print the story of a journal, without the measuring of demand that goes on all the time."""
    out = console()
    for event in journal.events(kinds=_STORY_KINDS):
        out.print(f"{clock(event.at_ms):>14}  {plain(tell(event))}")
