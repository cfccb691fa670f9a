"""The measures of a run: each figure of its document with a name, a unit and a good direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


class RunMeasure(NamedTuple):
    """One figure of a run."""

    path: str
    """Identifies the measure in every run."""
    label: str
    unit: str = ""
    better: int = NEITHER
    value: float | None = None
    text: str | None = None
    """Stands for the value; some measures are text only."""

    @property
    def words(self) -> str:
        """The value as text."""
        return self.say(self.value) if self.text is None else self.text

    def say(self, value: float | None) -> str:
        """Format a value of this measure, or a difference of two values."""
        return format_duration(value) if self.unit == "s" else with_unit(value, self.unit)


_MONEY: Final = "money"
"""Stands for the currency of the run."""


def _load_figures(run: SimulationDocument) -> tuple[RunMeasure, ...]:
    met, used, missed = run.satisfied_pct, run.payload_pct, run.unsatisfied
    violations = None if run.violations is None else len(run.violations)
    return (
        RunMeasure("satisfied_pct.cpu", "CPU demand met", "%", HIGHER, met.cpu),
        RunMeasure("satisfied_pct.memory", "memory demand met", "%", HIGHER, met.memory),
        RunMeasure("payload_pct.cpu", "CPU utilisation", "%", HIGHER, used.cpu),
        RunMeasure("payload_pct.memory", "memory utilisation", "%", HIGHER, used.memory),
        RunMeasure("cpu_ready_pct", "CPU ready time of VMs", "%", LOWER, run.cpu_ready_pct),
        RunMeasure(
            "imbalance.initial", "imbalance at the start", "", NEITHER, run.imbalance.initial
        ),
        RunMeasure("imbalance.final", "imbalance at the end", "", LOWER, run.imbalance.final),
        RunMeasure("imbalance.target", "imbalance target", "", NEITHER, run.imbalance.target),
        RunMeasure("migrations", "migrations", "", LOWER, run.migrations),
        RunMeasure("downtime_s", "downtime of VMs", "s", LOWER, run.downtime_s),
        RunMeasure("violations", "constraints violated", "", LOWER, violations),
        RunMeasure("unsatisfied.cpu_mhz_h", "CPU demand not met", "MHz h", LOWER, missed.cpu_mhz_h),
        RunMeasure(
            "unsatisfied.memory_mib_h", "memory demand not met", "MiB h", LOWER, missed.memory_mib_h
        ),
    )


def _energy_figures(run: SimulationDocument) -> tuple[RunMeasure, ...]:
    energy = run.energy
    return (
        RunMeasure("energy_kwh", "energy", "kWh", LOWER, run.energy_kwh),
        RunMeasure("energy.price", "price of the energy", _MONEY, LOWER, energy.price),
        RunMeasure("energy.co2_kg", "CO2 of the energy", "kg", LOWER, energy.co2_kg),
        RunMeasure("energy.price_per_kwh", "price of a kWh", _MONEY, NEITHER, energy.price_per_kwh),
        RunMeasure("energy.co2_g_per_kwh", "CO2 of a kWh", "g", NEITHER, energy.co2_g_per_kwh),
        # More energy saved is not better: the run may have used more energy all the same.
        RunMeasure("energy.saved_kwh", "energy saved by standby", "kWh", NEITHER, energy.saved_kwh),
        RunMeasure("energy.saved_pct", "share of energy saved", "%", NEITHER, energy.saved_pct),
        RunMeasure(
            "energy.saved_price", "price saved by standby", _MONEY, NEITHER, energy.saved_price
        ),
        RunMeasure(
            "energy.saved_co2_kg", "CO2 saved by standby", "kg", NEITHER, energy.saved_co2_kg
        ),
        RunMeasure(
            "energy.host_hours_asleep",
            "standby time of all hosts",
            "h",
            NEITHER,
            energy.host_hours_asleep,
        ),
        RunMeasure("power_ons", "hosts powered on", "", NEITHER, run.power_ons),
        RunMeasure("power_offs", "hosts powered off", "", NEITHER, run.power_offs),
    )


def _happiness_figures(row: HappinessRow) -> tuple[RunMeasure, ...]:
    end_mean, end_share = "mean happiness at the end", "share of happy VMs at the end"
    return (
        RunMeasure("mean_pct", "mean happiness", "%", HIGHER, row.mean_pct),
        RunMeasure("happy_pct", "share of happy VMs", "%", HIGHER, row.happy_pct),
        RunMeasure("final_mean_pct", end_mean, "%", HIGHER, row.final_mean_pct),
        RunMeasure("final_happy_pct", end_share, "%", HIGHER, row.final_happy_pct),
    )


def _sla_figures(row: SlaRow) -> tuple[RunMeasure, ...]:
    most = row.vms_missing_most
    return (
        RunMeasure("violation_s", "SLA violated", "s", LOWER, row.violation_s),
        RunMeasure("violations", "number of SLA violations", "", LOWER, row.violations),
        RunMeasure("vm_s", "VM time missing", "s", LOWER, row.vm_s),
        RunMeasure("vms_missing_most", "most VMs missing at once", "", LOWER, most),
    )


def _share_class_figures(row: ShareClassRow) -> tuple[RunMeasure, ...]:
    return (
        RunMeasure("satisfied_pct", "demand met", "%", HIGHER, row.satisfied_pct),
        RunMeasure("payload_pct", "utilisation", "%", HIGHER, row.payload_pct),
    )


_SUFFIXES: Final = {"s": "s", "pct": "%", "kwh": "kWh", "watts": "W", "mhz": "MHz", "mib": "MiB"}


def run_measures(
    document: SimulationDocument, extra: Mapping[str, Any] | None = None
) -> list[RunMeasure]:
    """Return every figure of a run in a fixed order; ``extra`` has keys of other versions."""
    found = (
        *_cluster_measures(document),
        *_happiness_measures(document.happiness),
        *_sla_measures(document.sla),
        *_share_class_measures(document.share_classes),
        *_other_measures(extra or {}, ""),
        *_run_facts(document),
    )
    return [
        measure if measure.value is None else measure._replace(value=float(measure.value))
        for measure in found
    ]


def _cluster_measures(document: SimulationDocument) -> Iterator[RunMeasure]:
    for figure in (*_load_figures(document), *_energy_figures(document)):
        unit = document.energy.currency if figure.unit == _MONEY else figure.unit
        if figure.value is not None:
            yield figure._replace(unit=unit)
        if figure.path == "imbalance.target":
            yield from _below_target(document)


def _below_target(document: SimulationDocument) -> Iterator[RunMeasure]:
    below = document.imbalance.below_target_at_s
    if below is not UNSET:
        path, label = "imbalance.below_target_at_s", "imbalance first below its target"
        yield RunMeasure(path, label, "s", LOWER, below, "never" if below is None else None)


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


def _row_measures(path: str, name: str, figures: tuple[RunMeasure, ...]) -> Iterator[RunMeasure]:
    for figure in figures:
        if figure.value is not None:
            label = f"{figure.label}, {name}"
            yield figure._replace(path=f"{path}.{figure.path}", label=label)


def _run_facts(document: SimulationDocument) -> Iterator[RunMeasure]:
    """Yield what identifies the run and how long it took."""
    plans, passes = document.plans, document.migrations_per_pass
    figures = (
        RunMeasure("plans", "plans", value=None if plans is None else len(plans)),
        RunMeasure(
            "migrations_per_pass", "plans accepted", value=None if passes is None else len(passes)
        ),
        RunMeasure("events", "events of the journal", value=document.events),
        RunMeasure("duration_s", "simulated time", "s", value=document.duration_s),
        RunMeasure("wall_s", "wall time of the simulation", "s", value=document.wall_s),
    )
    yield from (figure for figure in figures if figure.value is not None)
    facts = (
        ("deciders", ", ".join(document.deciders or ())),
        ("scenario", document.scenario),
        ("about", document.about),
        ("seed", "" if document.seed is None else str(document.seed)),
        ("journal_sha256", document.journal_sha256),
    )
    for path, words in facts:
        if words:
            yield RunMeasure(path, path.replace("_", " "), text=words)


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
            return RunMeasure(path, label, unit, text=", ".join(value))
        return RunMeasure(path, label, unit, value=len(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return RunMeasure(path, label, unit, value=value if isfinite(value) else None)
    return RunMeasure(path, label, unit, text=NO_VALUE if value is None else str(value))
