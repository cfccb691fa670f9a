"""Runs without a simulation: records, journals and summaries of any size, by formula.

write(tmp_path / "a", a_run(hosts=30, samples=288))
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from equipoise.documents.simulation import SimulationDocument, read_simulation_document
from equipoise.model.action import Action, Boot, Migrate, PowerOff, PowerOn
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ActionStarted,
    Event,
    HostFailed,
    HostRecovered,
    PlanEnded,
    PlanOutcome,
    PlanRefused,
    ProposalMade,
    ProposalsArbitrated,
    VmCrashed,
)
from equipoise.model.plan import Intent, Plan, Proposal, Purpose, Rejection, Step, Violation
from equipoise.model.quantity import HostId, PlanId, StepId, VmId
from equipoise.report import WrittenRun, write_run
from equipoise.sim.measure.sampling import RunRecord, SampleTable
from equipoise.store import MemoryJournal

DAY_S = 86_400
CPU_MHZ, MEMORY_MIB = 40_000, 262_144


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size and the content of a run."""

    hosts: int = 30
    vms: int = 400
    pools: tuple[str, ...] = ("gold", "silver", "bronze", "batch")
    samples: int = 288
    duration_s: int = DAY_S
    migrations: int = 120
    host_name: str = "esx-{:02d}"
    vm_name: str = "vm-{:04d}"
    powered: bool = True
    seed: int = 7

    @property
    def times(self) -> np.ndarray[Any, Any]:
        return np.linspace(0, self.duration_s, self.samples)

    def host(self, number: int) -> HostId:
        return HostId(self.host_name.format(number + 1))

    def vm(self, number: int) -> VmId:
        return VmId(self.vm_name.format(number + 1))


@dataclass(frozen=True, kw_only=True)
class Given:
    """The arguments of ``write_run``; ``summary`` is the content of summary.json."""

    summary: dict[str, Any]
    record: RunRecord
    journal: MemoryJournal

    @property
    def document(self) -> SimulationDocument:
        return document_of(self.summary)


def document_of(summary: dict[str, Any]) -> SimulationDocument:
    """Return the document of a summary, without the keys that are not known."""
    return read_simulation_document(summary)[0]


def write(folder: Path, given: Given) -> WrittenRun:
    """Write a run; its summary.json has the keys of the summary and no others."""
    written = write_run(folder, given.document, given.record, given.journal)
    (folder / "summary.json").write_text(json.dumps(given.summary))
    return written


def a_run(shape: Shape | None = None, **changes: Any) -> Given:
    """Return a run of a shape."""
    shape = replace(shape or Shape(), **changes)
    rng = np.random.default_rng(shape.seed)
    journal = MemoryJournal()
    journal.append(_events(shape))
    record = _record(shape, rng)
    return Given(summary=_summary(shape, record, journal), record=record, journal=journal)


def _record(shape: Shape, rng: np.random.Generator) -> RunRecord:
    times, count = shape.times, shape.hosts
    wave = 0.55 + 0.3 * np.sin((times / DAY_S - 0.35) * 2 * np.pi)
    lean = 1 + 0.7 * (rng.random(count) - 0.5) * np.exp(-times / DAY_S * 4)[:, None]
    load = np.clip(wave[:, None] * lean + 0.05 * rng.standard_normal((len(times), count)), 0, 1.2)
    state = np.full((len(times), count), "on", dtype=object)
    if count >= 10:
        night = times < 0.2 * shape.duration_s
        state[np.ix_(night, np.arange(count) >= count - 4)] = "standby"
        broken = (times > 0.5 * shape.duration_s) & (times < 0.62 * shape.duration_s)
        state[broken, 3] = "failed"
        state[(times > 0.8 * shape.duration_s), 5] = "maintenance"
    on = state == "on"
    demand, memory = np.where(on, load, 0.0), np.where(on, 0.35 + 0.4 * load, 0.0)
    used = np.minimum(demand, 1.0)
    watts = np.where(on, 120 + 180 * used, np.where(state == "standby", 12, 0))
    saved = np.where(state == "standby", 108, 0)
    watts, saved = (column * shape.powered for column in (watts, saved))
    per_host = max(1, shape.vms // count)
    flat = {
        "at_s": np.repeat(times, count),
        "host": np.tile(np.array([shape.host(n) for n in range(count)], dtype=object), len(times)),
        "state": state.ravel(),
        "vms": np.where(on, per_host, 0).ravel(),
        "cpu_capacity_mhz": np.full(on.size, CPU_MHZ),
        "cpu_demand_mhz": (demand * CPU_MHZ).ravel(),
        "cpu_used_mhz": (used * CPU_MHZ).ravel(),
        "memory_capacity_mib": np.full(on.size, MEMORY_MIB),
        "memory_demand_mib": (memory * MEMORY_MIB).ravel(),
        "memory_used_mib": (memory * MEMORY_MIB).ravel(),
        "ballooned_mib": np.zeros(on.size),
        "swapped_mib": np.zeros(on.size),
        "watts": watts.ravel(),
        "watts_saved": saved.ravel(),
    }
    spread = np.std(np.where(on, load, np.nan), axis=1, where=on)
    cluster = {
        "at_s": times,
        "cpu_capacity_mhz": on.sum(axis=1) * CPU_MHZ,
        "cpu_demand_mhz": demand.sum(axis=1) * CPU_MHZ,
        "cpu_used_mhz": used.sum(axis=1) * CPU_MHZ,
        "memory_capacity_mib": on.sum(axis=1) * MEMORY_MIB,
        "memory_demand_mib": memory.sum(axis=1) * MEMORY_MIB,
        "memory_used_mib": memory.sum(axis=1) * MEMORY_MIB,
        "imbalance": spread,
        "watts": watts.sum(axis=1),
        "watts_saved": saved.sum(axis=1),
        "hosts_on": on.sum(axis=1),
        "vms_running": np.full(len(times), shape.vms),
        "migrations_running": np.zeros(len(times), dtype=int),
    }
    return RunRecord(
        cluster=SampleTable(cluster), hosts=SampleTable(flat), pools=_pools(shape, wave, rng)
    )


def _pools(shape: Shape, wave: Any, rng: np.random.Generator) -> SampleTable:
    names = shape.pools or ("(no pool)",)
    count = len(names)
    drop = 30 * wave[:, None] * (np.arange(count) + 1) / count
    mean = np.clip(104 - drop + rng.standard_normal((len(wave), count)), 0, 100)
    return SampleTable({
        "at_s": np.repeat(shape.times, count),
        "pool": np.tile(np.array(names, dtype=object), len(wave)),
        "vms": np.full(mean.size, shape.vms // count),
        "happiness_pct": mean.ravel(),
        "happy_pct": np.clip(mean * 1.5 - 50, 0, 100).ravel(),
        "cpu_demand_mhz": (wave[:, None] * np.full(count, 9000.0)).ravel(),
        "cpu_used_mhz": (wave[:, None] * np.full(count, 8500.0)).ravel(),
    })  # fmt: skip


def _events(shape: Shape) -> list[Event]:
    rng = Random(shape.seed)
    end_ms = shape.duration_s * 1000
    events: list[Event] = []
    for number in range(shape.migrations):
        at_ms = int(end_ms * (number + 0.5) / shape.migrations * 0.9)
        source, target = rng.sample(range(shape.hosts), 2) if shape.hosts > 1 else (0, 0)
        vm = shape.vm(min(int(rng.expovariate(1) * 20), shape.vms - 1))
        move = Migrate(vm=vm, source=shape.host(source), target=shape.host(target))
        events += _executed(number, at_ms, move, rng)
    events += _around(shape, end_ms)
    return sorted(events, key=lambda event: event.at_ms)


def _executed(number: int, at_ms: int, action: Any, rng: Random) -> list[Event]:
    step = Step(id=StepId(f"p{number}/s"), action=action, end_ms=30_000)
    intent = Intent(id=StepId("s"), action=action, duration_ms=30_000)
    proposal = Proposal(
        decider="balance",
        purpose=Purpose.BALANCE,
        intents=(intent,),
        reason=f"its host is {rng.randint(70, 99)} % full",
        gain={"imbalance": -rng.random() / 10},
        rejected=(Rejection(subject="esx-09", code="no-capacity", detail="not enough memory"),),
    )
    end_ms = at_ms + rng.randint(10_000, 300_000)
    start = ActionStarted(at_ms=at_ms, step=step, attempt=1)
    events: list[Event] = [ProposalMade(at_ms=at_ms, proposal=proposal), start]
    if number % 17 == 5:
        why = "the target ran out of memory"
        events.append(ActionFailed(at_ms=end_ms, step=step.id, attempt=1, reason=why))
    elif number % 41 == 7:
        events.append(ActionLost(at_ms=end_ms, step=step.id, attempt=1))
    elif number % 53 != 11:
        events.append(ActionFinished(at_ms=end_ms, step=step.id, attempt=1))
    outcome = PlanOutcome.PARTIAL if number % 17 == 5 else PlanOutcome.DONE
    ended = PlanEnded(at_ms=end_ms, plan=PlanId(f"plan-{number}"), outcome=outcome, finished=1,
                      failed=0, skipped=0)  # fmt: skip
    return [*events, ended]


def _around(shape: Shape, end_ms: int) -> list[Event]:
    """Return passes without a proposal, a failure, a refusal and power actions."""
    quiet = Proposal(decider="power", purpose=Purpose.SLEEP, reason="every host is needed")
    passes = [
        ProposalMade(at_ms=int(at_s * 1000) + 1, proposal=quiet) for at_s in shape.times.tolist()
    ]
    if shape.migrations == 0:
        return list(passes)
    broken, first = shape.host(min(3, shape.hosts - 1)), shape.host(0)
    step = Step(id=StepId("q/s"), action=Boot(vm=shape.vm(0), target=first), end_ms=5000)
    refused = PlanRefused(
        at_ms=int(end_ms * 0.3),
        plan=Plan(id=PlanId("plan-q"), steps=(step,)),
        violations=(
            Violation(
                constraint="spread(web)", at_ms=0, detail="two of them on esx-01", step=step.id
            ),
            Violation(constraint="capacity", at_ms=0, detail="12 GiB too much on esx-01"),
        ),
    )
    switches: list[Event] = []
    power_actions: list[tuple[Action, float]] = [
        (PowerOn(host=shape.host(shape.hosts - 1)), 0.2),
        (PowerOff(host=first), 0.95),
    ]
    for number, (action, part) in enumerate(power_actions):
        at_ms = int(end_ms * part)
        switch = Step(id=StepId(f"w{number}/s"), action=action, end_ms=180_000)
        switches.append(ActionStarted(at_ms=at_ms, step=switch, attempt=1))
        if part < 0.9:
            switches.append(ActionFinished(at_ms=at_ms + 180_000, step=switch.id, attempt=1))
    dropped = Rejection(subject="vm-0002", code="busy", detail="the host is being upgraded")
    return [
        *passes,
        HostFailed(at_ms=int(end_ms * 0.5), host=broken, reason="power supply"),
        HostRecovered(at_ms=int(end_ms * 0.62), host=broken),
        VmCrashed(at_ms=int(end_ms * 0.7), vm=shape.vm(1), reason="kernel panic"),
        ProposalsArbitrated(at_ms=int(end_ms * 0.35), dropped=(dropped, dropped)),
        refused,
        *switches,
    ]


def _summary(shape: Shape, record: RunRecord, journal: MemoryJournal) -> dict[str, Any]:
    imbalance = record.cluster["imbalance"]
    names = shape.pools or ("",)
    return {
        "scenario": "synthetic-day",
        "about": f"{shape.hosts} hosts and {shape.vms} VMs for a day, by formula.",
        "seed": shape.seed,
        "duration_s": float(shape.duration_s),
        "migrations": shape.migrations,
        "payload_pct": {"cpu": 96.4, "memory": 99.9},
        "satisfied_pct": {"cpu": 97.31, "memory": 99.98},
        "unsatisfied": {"cpu_mhz_h": 415_000.0, "memory_mib_h": 0.0},
        "energy_kwh": 183.25 if shape.powered else 0.0,
        "energy": _energy(shape),
        "imbalance": {
            "initial": float(imbalance[0]), "final": float(imbalance[-1]),
            "target": 0.08, "below_target_at_s": 30_600.0,
        },
        "happiness": [
            {"pool": name, "mean_pct": 90.0 - n, "happy_pct": 80.0 - n, "final_mean_pct": 92.0,
             "final_happy_pct": 85.0}
            for n, name in enumerate(names)
        ],
        "power_ons": 1,
        "power_offs": 0,
        "violations": [],
        "sla": [
            {"tenant": "acme", "violations": 3, "violation_s": 1234.0, "vm_s": 2400.0,
             "vms_missing_most": 4},
        ],
        "downtime_s": 42.5,
        "wall_s": 3.21,
        "journal_sha256": journal.sha256(),
    }  # fmt: skip


def _energy(shape: Shape) -> dict[str, Any]:
    hours = 0.2 * 4 * shape.duration_s / 3600 if shape.hosts >= 10 else 0.0
    kwh, saved = (183.25, 0.108 * hours) if shape.powered else (0.0, 0.0)
    return {
        "kwh": kwh, "saved_kwh": saved, "saved_pct": 100 * saved / ((kwh + saved) or 1.0),
        "price": 0.3 * kwh, "saved_price": 0.3 * saved, "currency": "EUR",
        "co2_kg": 0.4 * kwh, "saved_co2_kg": 0.4 * saved, "host_hours_asleep": hours,
        "price_per_kwh": 0.3, "co2_g_per_kwh": 400,
    }  # fmt: skip
