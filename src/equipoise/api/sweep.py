"""Sweeps: a scenario for many seeds and settings, with means and confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, pi, sqrt, tan
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.api.simulation import import_pandas, simulate
from equipoise.model.scenario.scenario import Scenario

if TYPE_CHECKING:
    from equipoise.sim.plugins import DeciderSource

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
    run = partial(_figures, scenario, tuple(deciders), tuple(without))
    with open_pool(str(workers)) as pool:
        figures = list(pool.run_all(run, iter(tasks)))
    rows = zip(tasks, figures, strict=True)
    return Sweep(tuple(SweepRow(change, seed, found) for (change, seed), found in rows))


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
