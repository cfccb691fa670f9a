"""Simulation: one run of a scenario in virtual time, with deciders of your own if you like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise import files
from equipoise.api.loading import check_cluster, load
from equipoise.errors import InputProblem, InvalidInput, MissingExtra
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.model.scenario.scenario import Scenario

if TYPE_CHECKING:
    from equipoise.sim.plugins import DeciderSource
    from equipoise.sim.runner import SimulationResult
    from equipoise.store import Journal


@dataclass(frozen=True, slots=True)
class SimulationRun:
    """A finished run: its figures, its samples over time and its journal."""

    result: SimulationResult
    journal: Journal
    wall_s: float

    @property
    def figures(self) -> dict[str, float]:
        """The figures that a sweep averages, by name."""
        measures, finished = self.result.measures, self.result.finished
        return {
            "migrations": finished[Migrate],
            "payload_cpu_pct": measures.payload_cpu_pct,
            "payload_memory_pct": measures.payload_memory_pct,
            "satisfied_cpu_pct": measures.satisfied_cpu_pct,
            "satisfied_memory_pct": measures.satisfied_memory_pct,
            "energy_kwh": measures.energy_kwh,
            "imbalance_final": measures.imbalance_final,
            "power_ons": finished[PowerOn],
            "power_offs": finished[PowerOff],
            "violations": len(self.result.violations),
            "downtime_s": measures.downtime_s,
        }

    def frame(self, table: str = "cluster") -> Any:
        """Return the samples over time as a pandas ``DataFrame``.

        :param table: ``cluster``, ``hosts`` or ``pools``.
        """
        return import_pandas("the samples of a run as a DataFrame").DataFrame(
            dict(getattr(self.result.record, table).columns)
        )

    def __str__(self) -> str:
        lines = [f"{self.result.scenario.name}, seed {self.result.scenario.seed}"]
        lines += [f"  {name}: {value:g}" for name, value in self.figures.items()]
        return "\n".join(lines)


def simulate(
    scenario: Scenario | str | Path,
    *,
    deciders: Sequence[DeciderSource] = (),
    without: Sequence[str] = (),
    seed: int | None = None,
    settings: Mapping[str, object] | None = None,
) -> SimulationRun:
    """Run a scenario to its end.

    :param scenario: a scenario, a file, or the name of a built-in scenario.
    :param deciders: deciders of your own, besides those that the scenario names.
    :param without: names of deciders of the scenario that do not take part.
    :param settings: values of the scenario to change, as ``{"cluster.power.threshold": 4}``.
    """
    from equipoise.sim.plugins import make_decider
    from equipoise.sim.runner import ScenarioRunner
    from equipoise.store import MemoryJournal

    changed, folder = _changed(scenario, without, seed, settings)
    extra = [make_decider(source, changed) for source in deciders]
    journal, began = MemoryJournal(), perf_counter()
    runner = ScenarioRunner(changed, journal, folder=folder, deciders=extra)
    runner.run(1000 * changed.duration_s)
    return SimulationRun(runner.result(), journal, perf_counter() - began)


def _changed(
    scenario: Scenario | str | Path,
    without: Sequence[str],
    seed: int | None,
    settings: Mapping[str, object] | None,
) -> tuple[Scenario, Path | None]:
    """Return the scenario with its changes, and the folder of its traces."""
    folder: Path | None = None
    if not isinstance(scenario, Scenario):
        loaded = load(scenario)
        if not isinstance(loaded, Scenario):
            what = f"is no scenario but a {type(loaded).__name__}"
            raise InvalidInput(str(scenario), [InputProblem(key="", what=what)])
        folder = Path(scenario).parent if Path(scenario).exists() else None
        scenario = loaded
    if settings:
        changes = [f"{key}={value}" for key, value in settings.items()]
        scenario = files.override_scenario(scenario, changes, scenario.name, check_cluster)
    unknown = [name for name in without if name not in scenario.deciders]
    if unknown:
        cure = f"it has {', '.join(scenario.deciders) or 'none'}"
        problems = [
            InputProblem(key="without", what=f"there is no decider {name!r}", cure=cure)
            for name in unknown
        ]
        raise InvalidInput(scenario.name, problems)
    kept = tuple(name for name in scenario.deciders if name not in without)
    return scenario.but(deciders=kept, seed=scenario.seed if seed is None else seed), folder


def import_pandas(needed_for: str) -> Any:
    """Return pandas, or raise with the name of the extra."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("pandas", needed_for) from None
    return pd
