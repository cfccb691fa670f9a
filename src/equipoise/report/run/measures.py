"""The measures of a run: each figure of its document with a name, a unit and a good direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final, NamedTuple

from msgspec import UNSET

from equipoise.documents.simulation import (
    HappinessRow,
    ShareClassRow,
    SimulationDocument,
    SlaRow,
)
from equipoise.report.format import NO_VALUE, format_duration, with_unit
from equipoise.report.run.data import pool_label

HIGHER: Final = 1
LOWER: Final = -1
NEITHER: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasure:
    """One figure of a run."""

    path: str
    """Identifies the measure in every run."""
    label: str
    unit: str = ""
    better: int = NEITHER
    value: float | None = None
    words: str = NO_VALUE
    """The value as text; some measures are text only."""

    def say(self, value: float | None) -> str:
        """Format a value of this measure, or a difference of two values."""
        return format_duration(value) if self.unit == "s" else with_unit(value, self.unit)


class _Figure(NamedTuple):
    """One figure of a document, before it is a measure."""

    path: str
    label: str
    unit: str
    better: int
    value: float | None


_MONEY: Final = "money"
"""Stands for the currency of the run."""


def _load_figures(run: SimulationDocument) -> tuple[_Figure, ...]:
    met, used, missed = run.satisfied_pct, run.payload_pct, run.unsatisfied
    violations = None if run.violations is None else len(run.violations)
    return (
        _Figure("satisfied_pct.cpu", "CPU demand met", "%", HIGHER, met.cpu),
        _Figure("satisfied_pct.memory", "memory demand met", "%", HIGHER, met.memory),
        _Figure("payload_pct.cpu", "CPU utilisation", "%", HIGHER, used.cpu),
        _Figure("payload_pct.memory", "memory utilisation", "%", HIGHER, used.memory),
        _Figure("cpu_ready_pct", "CPU ready time of VMs", "%", LOWER, run.cpu_ready_pct),
        _Figure("imbalance.initial", "imbalance at the start", "", NEITHER, run.imbalance.initial),
        _Figure("imbalance.final", "imbalance at the end", "", LOWER, run.imbalance.final),
        _Figure("imbalance.target", "imbalance target", "", NEITHER, run.imbalance.target),
        _Figure("migrations", "migrations", "", LOWER, run.migrations),
        _Figure("downtime_s", "downtime of VMs", "s", LOWER, run.downtime_s),
        _Figure("violations", "constraints violated", "", LOWER, violations),
        _Figure("unsatisfied.cpu_mhz_h", "CPU demand not met", "MHz h", LOWER, missed.cpu_mhz_h),
        _Figure(
            "unsatisfied.memory_mib_h", "memory demand not met", "MiB h", LOWER, missed.memory_mib_h
        ),
    )


def _energy_figures(run: SimulationDocument) -> tuple[_Figure, ...]:
    energy = run.energy
    return (
        _Figure("energy_kwh", "energy", "kWh", LOWER, run.energy_kwh),
        _Figure("energy.price", "price of the energy", _MONEY, LOWER, energy.price),
        _Figure("energy.co2_kg", "CO2 of the energy", "kg", LOWER, energy.co2_kg),
        _Figure("energy.price_per_kwh", "price of a kWh", _MONEY, NEITHER, energy.price_per_kwh),
        _Figure("energy.co2_g_per_kwh", "CO2 of a kWh", "g", NEITHER, energy.co2_g_per_kwh),
        # More energy saved is not better: the run may have used more energy all the same.
        _Figure("energy.saved_kwh", "energy saved by standby", "kWh", NEITHER, energy.saved_kwh),
        _Figure("energy.saved_pct", "share of energy saved", "%", NEITHER, energy.saved_pct),
        _Figure("energy.saved_price", "price saved by standby", _MONEY, NEITHER,
                energy.saved_price),
        _Figure("energy.saved_co2_kg", "CO2 saved by standby", "kg", NEITHER, energy.saved_co2_kg),
        _Figure(
            "energy.host_hours_asleep", "standby time of all hosts", "h", NEITHER,
            energy.host_hours_asleep,
        ),
        _Figure("power_ons", "hosts powered on", "", NEITHER, run.power_ons),
        _Figure("power_offs", "hosts powered off", "", NEITHER, run.power_offs),
    )  # fmt: skip


def _happiness_figures(row: HappinessRow) -> tuple[_Figure, ...]:
    end_mean, end_share = "mean happiness at the end", "share of happy VMs at the end"
    return (
        _Figure("mean_pct", "mean happiness", "%", HIGHER, row.mean_pct),
        _Figure("happy_pct", "share of happy VMs", "%", HIGHER, row.happy_pct),
        _Figure("final_mean_pct", end_mean, "%", HIGHER, row.final_mean_pct),
        _Figure("final_happy_pct", end_share, "%", HIGHER, row.final_happy_pct),
    )


def _sla_figures(row: SlaRow) -> tuple[_Figure, ...]:
    most = row.vms_missing_most
    return (
        _Figure("violation_s", "SLA violated", "s", LOWER, row.violation_s),
        _Figure("violations", "number of SLA violations", "", LOWER, row.violations),
        _Figure("vm_s", "VM time missing", "s", LOWER, row.vm_s),
        _Figure("vms_missing_most", "most VMs missing at once", "", LOWER, most),
    )


def _share_class_figures(row: ShareClassRow) -> tuple[_Figure, ...]:
    return (
        _Figure("satisfied_pct", "demand met", "%", HIGHER, row.satisfied_pct),
        _Figure("payload_pct", "utilisation", "%", HIGHER, row.payload_pct),
    )


_SUFFIXES: Final = {"s": "s", "pct": "%", "kwh": "kWh", "watts": "W", "mhz": "MHz", "mib": "MiB"}


def run_measures(
    document: SimulationDocument, extra: Mapping[str, Any] | None = None
) -> list[RunMeasure]:
    """Return every figure of a run in a fixed order; ``extra`` has keys of other versions."""
    return [
        *_cluster_measures(document),
        *_happiness_measures(document.happiness),
        *_sla_measures(document.sla),
        *_share_class_measures(document.share_classes),
        *_other_measures(extra or {}, ""),
        *_run_facts(document),
    ]


def _cluster_measures(document: SimulationDocument) -> Iterator[RunMeasure]:
    for figure in (*_load_figures(document), *_energy_figures(document)):
        unit = document.energy.currency if figure.unit == _MONEY else figure.unit
        if figure.value is not None:
            yield _measure(*figure._replace(unit=unit))
        if figure.path == "imbalance.target":
            yield from _below_target(document)


def _below_target(document: SimulationDocument) -> Iterator[RunMeasure]:
    below = document.imbalance.below_target_at_s
    if below is not UNSET:
        path, label = "imbalance.below_target_at_s", "imbalance first below its target"
        yield _measure(path, label, "s", LOWER, below, words="never" if below is None else None)


def _happiness_measures(rows: tuple[HappinessRow, ...]) -> Iterator[RunMeasure]:
    for row in rows:
        pool = pool_label(row.pool, alone=len(rows) == 1)
        yield from _row_measures(f"happiness.{pool}", pool, _happiness_figures(row))


def _sla_measures(rows: tuple[SlaRow, ...]) -> Iterator[RunMeasure]:
    for row in rows:
        yield from _row_measures(f"sla.{row.tenant}", f"tenant {row.tenant}", _sla_figures(row))


def _share_class_measures(rows: tuple[ShareClassRow, ...]) -> Iterator[RunMeasure]:
    for row in rows:
        path = f"share_classes.{row.resource}.{row.shares}"
        name = f"VMs of {row.shares} {row.resource} shares"
        yield from _row_measures(path, name, _share_class_figures(row))


def _row_measures(path: str, name: str, figures: tuple[_Figure, ...]) -> Iterator[RunMeasure]:
    for figure in figures:
        if figure.value is not None:
            label = f"{figure.label}, {name}"
            yield _measure(*figure._replace(path=f"{path}.{figure.path}", label=label))


def _run_facts(document: SimulationDocument) -> Iterator[RunMeasure]:
    """Yield what identifies the run and how long it took."""
    if document.plans is not None:
        yield _measure("plans", "plans", "", NEITHER, len(document.plans))
    if document.migrations_per_pass is not None:
        passes = len(document.migrations_per_pass)
        yield _measure("migrations_per_pass", "plans accepted", "", NEITHER, passes)
    if document.events is not None:
        yield _measure("events", "events of the journal", "", NEITHER, document.events)
    if document.duration_s is not None:
        yield _measure("duration_s", "simulated time", "s", NEITHER, document.duration_s)
    if document.wall_s is not None:
        yield _measure("wall_s", "wall time of the simulation", "s", NEITHER, document.wall_s)
    facts = (
        ("deciders", ", ".join(document.deciders or ())),
        ("scenario", document.scenario),
        ("about", document.about),
        ("seed", "" if document.seed is None else str(document.seed)),
        ("journal_sha256", document.journal_sha256),
    )
    for path, words in facts:
        if words:
            yield _measure(path, path.replace("_", " "), "", NEITHER, None, words=words)


def _measure(
    path: str,
    label: str,
    unit: str,
    better: int,
    value: float | None,
    *,
    words: str | None = None,
) -> RunMeasure:
    value = None if value is None else float(value)
    bare = RunMeasure(path=path, label=label, unit=unit, better=better, value=value)
    return RunMeasure(
        path=path,
        label=label,
        unit=unit,
        better=better,
        value=value,
        words=bare.say(value) if words is None else words,
    )


def _other_measures(extra: Mapping[str, Any], prefix: str) -> Iterator[RunMeasure]:
    """Yield the keys that only another version knows, under their own names."""
    for key, value in extra.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _other_measures(value, f"{path}.")
            continue
        unit = _SUFFIXES.get(str(key).rpartition("_")[2], "") if "_" in str(key) else ""
        label = path.replace("_", " ").replace(".", ", ").removesuffix(" s")
        yield _other_measure(path, label, unit, value)


def _other_measure(path: str, label: str, unit: str, value: Any) -> RunMeasure:
    if isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            return _measure(path, label, unit, NEITHER, None, words=", ".join(value))
        return _measure(path, label, unit, NEITHER, float(len(value)))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _measure(path, label, unit, NEITHER, float(value) if isfinite(value) else None)
    return _measure(
        path, label, unit, NEITHER, None, words=NO_VALUE if value is None else str(value)
    )
