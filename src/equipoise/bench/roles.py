"""Benchmarks of the role controller: one event in a large cluster, and many in a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from time import perf_counter, process_time

from equipoise.bench.measure import BenchmarkRow
from equipoise.capacity.ledger import CapacityLedger
from equipoise.model.event import (
    ActionFinished,
    ActionStarted,
    Event,
    HostFailed,
    HostRecovered,
    SlotsFilled,
)
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.plan import ConcurrencyLimits, Proposal, Step
from equipoise.model.quantity import HostId, RoleGroupId, RoleId, SlotId, StepId
from equipoise.model.roles.layout import (
    LayoutElement,
    Role,
    RoleGroup,
    RoleLayout,
    RolePreference,
    Slot,
    SlotChoice,
)
from equipoise.model.scenario.faults import ScheduledEvent
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.draft import TouchedEntities
from equipoise.model.state.snapshot import Snapshot
from equipoise.roles.propose import RoleDecider
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal

GROUPS, EACH, SLOTS = 1000, 10, 8
WORLD_EVENTS = ("host_failed", "host_recovered", "action_finished", "action_failed")
"""Events of the world; the other events are decisions of the controller."""


def rows() -> Iterator[BenchmarkRow]:
    """Yield rows for single events and for a simulated world."""
    yield from _controller_rows(1000)
    yield _simulated_world_row(20_000)


def role_layout(groups: int = GROUPS, each: int = EACH, slots: int = SLOTS) -> RoleLayout:
    """Return groups with spare processors, and roles by layout and by preference."""
    basic, data, active, standby, oam = map(RoleId, ("basic", "data", "active", "standby", "oam"))
    names = tuple(SlotId(f"s{n}") for n in range(slots))
    return RoleLayout(
        roles=tuple(Role(id=role) for role in (basic, data, active, standby, oam)),
        groups=tuple(
            RoleGroup(
                id=RoleGroupId(f"group-{g:04}"),
                hosts=tuple(HostId(f"cp-{g:04}-{n}") for n in range(each)),
                slots=tuple(Slot(id=name) for name in names),
                layout=(
                    LayoutElement(on_each=(basic,)),
                    LayoutElement(
                        at_least=2, layout=(LayoutElement(slot=names[-1], roles=(data,)),)
                    ),
                ),
                preferences=(
                    RolePreference(role=active, slots=names, preempt=True, promotes=standby),
                    RolePreference(role=standby, slots=names),
                    RolePreference(role=oam, slots=names[:4], choose=SlotChoice.ANY),
                ),
                apart=((active, standby),),
            )
            for g in range(groups)
        ),
    )


def hosts_of_layout(layout: RoleLayout) -> Inventory:
    """The hosts of a layout, with limits that allow very many actions at once."""
    hosts = tuple(
        Host(id=name, cores=8, mhz_per_core=2000, memory_mib=32768)
        for team in layout.groups
        for name in team.hosts
    )
    limits = ConcurrencyLimits(actions_per_host=16, actions_total=100_000)
    return Inventory(hosts=hosts, layout=layout, limits=limits)


class _ControllerHarness:
    """The controller alone: events in, proposals out; every proposed action succeeds at once."""

    def __init__(self, inventory: Inventory) -> None:
        self.ledger = CapacityLedger(Snapshot.of(inventory))
        self.roles = RoleDecider()
        self.times: list[float] = []
        self.cpu_times: list[float] = []
        self.at_ms = 0
        self._count = 0
        self.settle(self._ask())

    def tell(self, event: Event) -> None:
        """Apply an event, and measure the time until the proposal."""
        touched = self.ledger.apply(event)
        began, cpu = perf_counter(), process_time()
        self.roles.on_event(event, touched)
        proposal = self._ask()
        self.cpu_times.append(process_time() - cpu)
        self.times.append(perf_counter() - began)
        self.settle(proposal)

    def settle(self, proposal: Proposal | None) -> None:
        """Execute proposals until none is left."""
        while proposal is not None and (proposal.intents or proposal.slot_assignments):
            for filling in proposal.slot_assignments:
                self._happen(
                    SlotsFilled(at_ms=self.at_ms, group=filling.group, slots=filling.slots)
                )
            for intent in proposal.intents:
                self._count += 1
                step = Step(id=StepId(f"s{self._count}"), action=intent.action, end_ms=1)
                self._happen(ActionStarted(at_ms=self.at_ms, step=step, attempt=1))
                self._happen(ActionFinished(at_ms=self.at_ms, step=step.id, attempt=1))
            proposal = self._ask()

    def _happen(self, event: Event) -> None:
        touched: TouchedEntities = self.ledger.apply(event)
        self.roles.on_event(event, touched)

    def _ask(self) -> Proposal | None:
        due_ms = self.roles.due_ms()
        if due_ms is None or due_ms > self.at_ms:
            return None
        return self.roles.propose(replace(self.ledger.draft.freeze(), at_ms=self.at_ms))


def _controller_rows(count: int) -> Iterator[BenchmarkRow]:
    inventory = hosts_of_layout(role_layout())
    began = perf_counter()
    harness = _ControllerHarness(inventory)
    what = f"{GROUPS * EACH:,} processors in {GROUPS:,} groups: all of it filled and started"
    yield BenchmarkRow(what, perf_counter() - began, "", None)
    rng = Random(1)
    names = [host.id for host in inventory.hosts]
    down: list[HostId] = []
    for _ in range(count):
        harness.at_ms += 1000
        if len(down) > 100 or (down and rng.random() < 0.5):  # noqa: PLR2004
            back = down.pop(rng.randrange(len(down)))
            harness.tell(HostRecovered(at_ms=harness.at_ms, host=back))
        else:
            lost = names[rng.randrange(len(names))]
            if lost not in down:
                down.append(lost)
                harness.tell(HostFailed(at_ms=harness.at_ms, host=lost))
    times, cpu_times = sorted(harness.times), sorted(harness.cpu_times)
    figures = {
        "mean_ms": 1000 * sum(times) / len(times),
        "p99_ms": 1000 * times[len(times) * 99 // 100],
        "worst_ms": 1000 * times[-1],
        "mean_cpu_ms": 1000 * sum(cpu_times) / len(cpu_times),
        "worst_cpu_ms": 1000 * cpu_times[-1],
    }
    what = "the same, one event (a processor fails or comes back) until it is decided what follows"
    yield BenchmarkRow(what, sum(times), "", None, count=len(times), figures=figures)


def failure_scenario(processor_events: int, seed: int = 1) -> Scenario:
    """One of ten thousand processors fails every second and recovers later."""
    layout = role_layout()
    inventory = hosts_of_layout(layout)
    names, rng = [host.id for host in inventory.hosts], Random(seed)
    events: list[ScheduledEvent] = []
    free_ms = dict.fromkeys(names, 0)
    at_ms = 60_000
    while len(events) < processor_events:
        at_ms += 1000
        lost = names[rng.randrange(len(names))]
        if free_ms[lost] > at_ms:
            continue
        back_ms = at_ms + rng.randrange(20_000, 120_000)
        free_ms[lost] = back_ms + 10_000
        events.append(HostFailed(at_ms=at_ms, host=lost))
        events.append(HostRecovered(at_ms=back_ms, host=lost))
    end_s = at_ms // 1000 + 200
    return Scenario(
        name="many", seed=seed, duration_s=end_s, pass_s=end_s, deciders=("roles",),
        cluster=inventory, events=tuple(events),
    )  # fmt: skip


def _simulated_world_row(processor_events: int) -> BenchmarkRow:
    scenario, journal = failure_scenario(processor_events), MemoryJournal()
    began, cpu = perf_counter(), process_time()
    play = ScenarioRunner(scenario, journal)
    play.run(1000 * scenario.duration_s)
    seconds, cpu_s = perf_counter() - began, process_time() - cpu
    events = sum(1 for _ in journal.events(kinds=WORLD_EVENTS))
    note = (
        "All parts run: world, loop, gate, executor, journal. Events are those of "
        "the journal; of them, told_by_the_world are failures, returns, roles started and stopped."
    )
    figures = {
        "failures_and_returns": float(len(scenario.events)),
        "told_by_the_world": float(events),
        "cpu_s": cpu_s,
        "cpu_s_per_100000_events": 100_000 * cpu_s / len(journal),
        "cpu_s_per_100000_told": 100_000 * cpu_s / events,
    }
    what = f"{len(journal):,} events in the simulated world, {GROUPS * EACH:,} processors"
    return BenchmarkRow(what, seconds, "", None, count=len(journal), figures=figures, note=note)
