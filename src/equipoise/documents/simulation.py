"""The result of a simulation: the JSON document of ``equipoise simulate`` and ``summary.json``.

Every field has a default, because the folder of a run may come from another version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from equipoise.documents.json_document import Document, read_leniently, unknown_keys
from equipoise.documents.plan import ViolationRow, violation_rows
from equipoise.model.action import Migrate, PowerOff, PowerOn
from equipoise.sim.measure.measures import Energy, Measures
from equipoise.sim.runner import SimulationResult
from equipoise.store import Journal


class CpuMemory(Document):
    """A figure for CPU and for memory, in percent."""

    cpu: float | None = None
    memory: float | None = None


class ShareClassRow(Document):
    """VMs with the same shares of a resource."""

    resource: str = ""
    shares: int | None = None
    vms: int | None = None
    payload_pct: float | None = None
    satisfied_pct: float | None = None


class UnsatisfiedDemand(Document):
    """Demand of VMs that was not met."""

    cpu_mhz_h: float | None = None
    memory_mib_h: float | None = None


class EnergyFigures(Document):
    """Energy of all hosts, and the energy that standby saved."""

    kwh: float | None = None
    saved_kwh: float | None = None
    saved_pct: float | None = None
    price: float | None = None
    saved_price: float | None = None
    currency: str = ""
    price_per_kwh: float | None = None
    co2_kg: float | None = None
    saved_co2_kg: float | None = None
    co2_g_per_kwh: float | None = None
    host_hours_asleep: float | None = None


class ImbalanceFigures(Document):
    """The imbalance of the hosts at the start and at the end."""

    initial: float | None = None
    final: float | None = None
    below_target_at_s: float | UnsetType | None = UNSET
    """The first time below the target: ``None`` for never, ``UNSET`` if not recorded."""
    target: float | None = None


class HappinessRow(Document):
    """The happiness of the VMs of a pool."""

    pool: str = ""
    mean_pct: float | None = None
    happy_pct: float | None = None
    final_mean_pct: float | None = None
    final_happy_pct: float | None = None


class SlaPenalty(Document):
    """Penalties at a rate of one per second, and of one per second and missing VM."""

    delay_dependent: float | None = None
    proportional: float | None = None


class SlaRow(Document):
    """The violations of the SLA of a tenant."""

    tenant: str = ""
    violations: int | None = None
    violation_s: float | None = None
    vm_s: float | None = None
    vms_missing_most: int | None = None
    penalty: SlaPenalty | UnsetType = UNSET


class PlanRow(Document):
    """The end of a plan."""

    plan: str = ""
    outcome: str = ""
    finished: int | None = None
    failed: int | None = None
    skipped: int | None = None


class SimulationDocument(Document):
    """All figures of a run."""

    scenario: str = ""
    about: str = ""
    seed: int | None = None
    deciders: tuple[str, ...] | None = None
    duration_s: float | None = None
    migrations: int | None = None
    migrations_per_pass: tuple[int, ...] | None = None
    """Migrations of each accepted plan."""
    payload_pct: CpuMemory = CpuMemory()
    """Capacity that VMs used, of all capacity (equation 7 of the DRS paper)."""
    satisfied_pct: CpuMemory = CpuMemory()
    """Demand of VMs that was met."""
    share_classes: tuple[ShareClassRow, ...] = ()
    cpu_ready_pct: float | None = None
    unsatisfied: UnsatisfiedDemand = UnsatisfiedDemand()
    energy_kwh: float | None = None
    energy: EnergyFigures = EnergyFigures()
    imbalance: ImbalanceFigures = ImbalanceFigures()
    happiness: tuple[HappinessRow, ...] = ()
    downtime_s: float | None = None
    sla: tuple[SlaRow, ...] = ()
    power_ons: int | None = None
    power_offs: int | None = None
    violations: tuple[ViolationRow, ...] | None = None
    plans: tuple[PlanRow, ...] | None = None
    events: int | None = None
    wall_s: float | None = None
    journal_sha256: str = ""


class DifferenceRow(Document):
    """One measure of two runs."""

    measure: str
    a: float | None
    b: float | None
    difference: float | None
    better: str
    """``A``, ``B``, ``same``, or empty if the measure has no good direction."""


class CompareDocument(Document):
    """The JSON document of ``equipoise report``."""

    a: str
    b: str
    differences: tuple[DifferenceRow, ...]


class ScenarioRow(Document):
    """A built-in scenario or campaign."""

    name: str
    about: str


class DemoDocument(Document):
    """The JSON document of ``equipoise demo``."""

    runs: tuple[SimulationDocument, ...]
    report: str


def simulation_document(
    result: SimulationResult, journal: Journal, wall_s: float
) -> SimulationDocument:
    """Return the figures of a finished run, rounded as they are printed."""
    measures = result.measures
    return SimulationDocument(
        scenario=result.scenario.name,
        about=result.scenario.about,
        seed=result.scenario.seed,
        deciders=result.scenario.deciders,
        duration_s=result.ended_ms / 1000,
        migrations=result.finished[Migrate],
        migrations_per_pass=result.migrations_per_pass,
        payload_pct=_cpu_memory(measures.payload_cpu_pct, measures.payload_memory_pct),
        satisfied_pct=_cpu_memory(measures.satisfied_cpu_pct, measures.satisfied_memory_pct),
        share_classes=_share_class_rows(measures),
        cpu_ready_pct=round(measures.cpu_ready_pct, 2),
        unsatisfied=UnsatisfiedDemand(
            cpu_mhz_h=round(measures.unsatisfied.cpu_mhz_h, 3),
            memory_mib_h=round(measures.unsatisfied.memory_mib_h, 3),
        ),
        energy_kwh=round(measures.energy_kwh, 3),
        energy=_energy_figures(measures.energy),
        imbalance=ImbalanceFigures(
            initial=round(measures.imbalance_initial, 4),
            final=round(measures.imbalance_final, 4),
            below_target_at_s=measures.below_target_at_s,
            target=measures.imbalance_target,
        ),
        happiness=_happiness_rows(measures),
        downtime_s=round(measures.downtime_s, 1),
        sla=_sla_rows(measures),
        power_ons=result.finished[PowerOn],
        power_offs=result.finished[PowerOff],
        violations=violation_rows(result.violations),
        plans=tuple(map(PlanRow.of, result.plans)),
        events=len(journal),
        wall_s=round(wall_s, 3),
        journal_sha256=journal.sha256(),
    )


def read_simulation_document(
    raw: Mapping[str, Any],
) -> tuple[SimulationDocument, dict[str, Any]]:
    """Return the document of a ``summary.json``, and the keys that only its version knows."""
    return read_leniently(SimulationDocument, raw), unknown_keys(SimulationDocument, raw)


def _share_class_rows(measures: Measures) -> tuple[ShareClassRow, ...]:
    return tuple(
        ShareClassRow.of(
            share_class,
            payload_pct=round(share_class.payload_pct, 2),
            satisfied_pct=round(share_class.satisfied_pct, 2),
        )
        for share_class in measures.share_classes
    )


def _happiness_rows(measures: Measures) -> tuple[HappinessRow, ...]:
    return tuple(
        HappinessRow(
            pool=happiness.pool,
            mean_pct=round(happiness.mean_pct, 2),
            happy_pct=round(happiness.happy_pct, 2),
            final_mean_pct=round(happiness.final_mean_pct, 2),
            final_happy_pct=round(happiness.final_happy_pct, 2),
        )
        for happiness in measures.happiness
    )


def _sla_rows(measures: Measures) -> tuple[SlaRow, ...]:
    return tuple(
        SlaRow(
            tenant=tenant,
            violations=breach.times,
            violation_s=round(breach.seconds, 1),
            vm_s=round(breach.vm_seconds, 1),
            vms_missing_most=breach.vms_missing_max,
            penalty=SlaPenalty(
                delay_dependent=round(breach.seconds, 1),
                proportional=round(breach.vm_seconds, 1),
            ),
        )
        for tenant, breach in measures.breaches.items()
    )


def _energy_figures(energy: Energy) -> EnergyFigures:
    return EnergyFigures(
        kwh=round(energy.kwh, 3),
        saved_kwh=round(energy.saved_kwh, 3),
        saved_pct=round(energy.saved_pct, 2),
        # Four digits, because an hour of a small cluster costs cents.
        price=round(energy.price, 4),
        saved_price=round(energy.saved_price, 4),
        currency=energy.tariff.currency,
        price_per_kwh=energy.tariff.price_per_kwh,
        co2_kg=round(energy.co2_kg, 4),
        saved_co2_kg=round(energy.saved_co2_kg, 4),
        co2_g_per_kwh=energy.tariff.co2_g_per_kwh,
        host_hours_asleep=round(energy.host_hours_asleep, 3),
    )


def _cpu_memory(cpu: float, memory: float) -> CpuMemory:
    return CpuMemory(cpu=round(cpu, 2), memory=round(memory, 2))


class JobsFigures(Document):
    """The figures of a run of jobs; the keys are the columns of ``schedule.csv``.

    Means are over all jobs, also over rejected ones. Times are in seconds.
    """

    policy: str
    consumed_joules: float
    makespan: float
    max_slowdown: float
    max_turnaround_time: float
    max_waiting_time: float
    mean_slowdown: float
    mean_turnaround_time: float
    mean_waiting_time: float
    nb_computing_machines: int
    nb_grouped_switches: int
    nb_jobs: int
    nb_jobs_finished: int
    nb_jobs_killed: int
    nb_jobs_rejected: int
    nb_jobs_success: int
    nb_machine_switches: int
    success_rate: float
    time_computing: float
    time_idle: float
    time_sleeping: float
    time_switching_off: float
    time_switching_on: float
    time_unavailable: float


class JobsDocument(JobsFigures):
    """The JSON document of ``equipoise jobs``."""

    wall_s: float


class JobsReplayDocument(JobsFigures):
    """What ``equipoise replay`` prints for the journal of a run of jobs."""

    workload: str
    complete: bool
    """False if the run was stopped, or if ``--until`` stops before its end."""
    active: int
    """Jobs that wait or run at that time."""
    at_s: float


class BatsimDocument(JobsDocument):
    """The JSON document of ``equipoise batsim``: that of ``jobs``, and what the scheduler did."""

    scheduling_time: float
    """The seconds between messages and their replies, of ``wall_s``."""
    messages: int
    """The messages to the scheduler; each has a reply."""
    scheduler_exit_code: int | None
    """Of a scheduler that ``--scheduler`` started; null if it did not end by itself."""
    differences: tuple[str, ...] = ()
    """What ``--replay`` found: the first message that differs from the record."""


class BatsimScheduleDocument(Document):
    """The JSON document of ``equipoise batsim-schedule``: what a policy decided for a Batsim."""

    policy: str
    protocol: int
    """The version of Batsim's protocol: 4 (also 3) or 5."""
    messages: int
    started: int
    rejected: int
    """Jobs that need more hosts than there are."""


class JobsRunDocument(Document):
    """The file ``summary.json`` in the folder of a run of jobs."""

    kind: str
    """Always ``jobs``: it tells the folder from that of a simulated cluster."""
    workload: str
    hosts: tuple[str, ...]
    """The names of the hosts, in the order of their numbers."""
    journal_sha256: str
    result: JobsDocument
    stopped: str = ""
    """Why the run stopped before its end; empty if it did not."""


class JobsComparisonDocument(Document):
    """The JSON document of ``equipoise jobs`` with several policies."""

    runs: tuple[JobsDocument, ...]
