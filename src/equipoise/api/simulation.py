"""Runs in virtual time: one scenario, and sweeps of many variants in processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, pi, sqrt, tan
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

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
    # Loading the deciders is not part of the measured time.
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
            raise InvalidInput.of(str(scenario), what, code="wrong-type")
        folder = Path(scenario).parent if Path(scenario).exists() else None
        scenario = loaded
    if settings:
        changes = [f"{key}={value}" for key, value in settings.items()]
        scenario = files.override_scenario(scenario, changes, scenario.name, check_cluster)
    unknown = [name for name in without if name not in scenario.deciders]
    if unknown:
        cure = f"it has {', '.join(scenario.deciders) or 'none'}"
        problems = [
            InputProblem(
                key="without",
                what=f"there is no decider {name!r}",
                cure=cure,
                code="unknown-name",
            )
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


Settings = Mapping[str, object]


class Estimate(NamedTuple):
    """A mean over seeds, with the interval that holds the true mean with the given confidence."""

    mean: float
    low: float
    high: float
    runs: int

    def __str__(self) -> str:
        return f"{self.mean:g} [{self.low:g}, {self.high:g}]"


@dataclass(frozen=True, slots=True)
class SweepRow:
    """The figures of one run."""

    settings: Settings
    seed: int
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Sweep:
    """The runs of a sweep, in the order of settings and seeds."""

    rows: tuple[SweepRow, ...]

    def estimate(
        self, figure: str, settings: Settings | None = None, *, confidence: float = 0.95
    ) -> Estimate:
        """Return mean and confidence interval of a figure, over the runs with these settings."""
        wanted = {} if settings is None else dict(settings)
        values = [row.figures[figure] for row in self.rows if dict(row.settings) == wanted]
        if not values:
            message = f"no run has the settings {wanted}"
            raise KeyError(message)
        return estimate(values, confidence)

    def frame(self) -> Any:
        """Return one row per run as a pandas ``DataFrame``."""
        records = [{**row.settings, "seed": row.seed, **row.figures} for row in self.rows]
        return import_pandas("the runs of a sweep as a DataFrame").DataFrame(records)

    def __str__(self) -> str:
        lines = []
        for settings in _distinct(row.settings for row in self.rows):
            shown = ", ".join(f"{key}={value}" for key, value in settings.items())
            lines.append(shown or "the scenario as it is")
            lines += [f"  {name}: {self.estimate(name, settings)}" for name in self.rows[0].figures]
        return "\n".join(lines)


def sweep(
    scenario: Scenario | str | Path,
    *,
    seeds: Iterable[int] = range(10),
    settings: Sequence[Settings] = ({},),
    deciders: Sequence[DeciderSource] = (),
    without: Sequence[str] = (),
    workers: int | str = 1,
) -> Sweep:
    """Run a scenario for every combination of settings and seed.

    :param deciders: classes or functions; each run makes deciders of its own.
    :param workers: a number of processes, or the address of a Dask scheduler (``tcp://...``).
    """
    from equipoise.fuzz.campaign.workers import open_pool

    tasks = [(dict(change), seed) for change in settings for seed in seeds]
    # A partial of a module's function, not a lambda: other processes have to unpickle it.
    run = partial(_figures, scenario, tuple(deciders), tuple(without))
    with open_pool(str(workers)) as pool:
        figures = list(pool.run_all(run, iter(tasks)))
    rows = zip(tasks, figures, strict=True)
    return Sweep(tuple(SweepRow(change, seed, measured) for (change, seed), measured in rows))


def _figures(
    scenario: Scenario | str | Path,
    deciders: Sequence[DeciderSource],
    without: Sequence[str],
    task: tuple[Settings, int],
) -> dict[str, float]:
    change, seed = task
    return simulate(
        scenario, deciders=deciders, without=without, seed=seed, settings=change
    ).figures


def _distinct(every: Iterable[Settings]) -> Iterator[Settings]:
    # A list: settings are dicts, which have no hash.
    seen: list[Settings] = []
    for settings in every:
        if settings not in seen:
            seen.append(settings)
            yield settings


def estimate(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return the mean with its confidence interval by Student's t; unbounded for one value."""
    mean, count = fmean(values), len(values)
    if count == 1:
        return Estimate(mean, -inf, inf, 1)
    reach = t_quantile(0.5 + confidence / 2, count - 1) * stdev(values) / sqrt(count)
    return Estimate(mean, mean - reach, mean + reach, count)


def t_quantile(probability: float, freedom: int) -> float:
    """Return a quantile of Student's t distribution.

    Exact for 1 and 2 degrees of freedom; else the expansion of Cornish and Fisher around the normal
    quantile, whose error is below 1 % at the usual confidences from 3 degrees on.
    """
    if freedom == 1:
        return tan(pi * (probability - 0.5))
    if freedom == 2:  # noqa: PLR2004
        share = 2 * probability - 1
        return share * sqrt(2 / (1 - share * share))
    z: float = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom**power) for power, term in enumerate(terms, 1))
