"""Whole runs with power decisions: hosts that do not wake, and plans that take too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from builders import a_host, a_vm, an_inventory
from equipoise.model.action import PowerOff, PowerOn
from equipoise.model.action_durations import Estimates
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ActionStarted,
    PlanAccepted,
    PlanCancelled,
)
from equipoise.model.host import HostState
from equipoise.model.policy.power import PowerPolicy
from equipoise.model.quantity import HostId
from equipoise.model.scenario.faults import PowerOnStuck
from equipoise.model.scenario.load import ConstantLoad, Load, LoadPoint, StepLoad
from equipoise.model.scenario.physics import MigrationPhysics, Physics, PowerPhysics
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.sim.runner import ScenarioRunner, SimulationResult
from equipoise.store import MemoryJournal
from power_worlds import KNOWN

HOURS = 3600
SURGE_S = 2 * HOURS


def a_surge(policy: PowerPolicy, low: int = 300, high: int = 1500, **fields: Any) -> Scenario:
    """Four hosts with eight VMs that have little to do for two hours, and then much."""
    hosts = [a_host(f"h{n}", power=KNOWN) for n in range(4)]
    vms = [a_vm(f"v{n}", f"h{n % 4}", vcpus=2) for n in range(8)]
    steps = StepLoad(points=(LoadPoint(at_s=0, level=low), LoadPoint(at_s=SURGE_S, level=high)))
    load = Load(cpu_mhz=(steps,), memory_mib=(ConstantLoad(level=500),))
    given: dict[str, Any] = {
        "duration_s": 5 * HOURS,
        "deciders": ("balance", "power"),
        "cluster": an_inventory(*hosts, vms=vms, power=policy),
        "loads": {"surge": load},
        "vm_loads": {vm.id: "surge" for vm in vms},
        "physics": Physics(switching=PowerPhysics()),
    }
    return Scenario(name="surge", **given | fields)


def played(scenario: Scenario) -> tuple[SimulationResult, MemoryJournal]:
    journal = MemoryJournal()
    play = ScenarioRunner(scenario, journal)
    play.run(1000 * scenario.duration_s)
    return play.result(), journal


def switched(journal: MemoryJournal, kind: type[Any]) -> list[tuple[int, HostId]]:
    """When which hosts received the command to wake or to sleep."""
    return [
        (event.at_ms // 1000, event.step.action.host)
        for event in journal.events()
        if isinstance(event, ActionStarted) and isinstance(event.step.action, kind)
    ]


def failed_wakes(journal: MemoryJournal) -> list[HostId]:
    """The hosts that did not wake, in the order in which that was seen."""
    waking: dict[str, HostId] = {}
    found = []
    for event in journal.events():
        if isinstance(event, ActionStarted) and isinstance(event.step.action, PowerOn):
            waking[event.step.id] = event.step.action.host
        if isinstance(event, ActionFailed | ActionLost) and event.step in waking:
            found.append(waking[event.step])
    return found


def lacking(state: Snapshot) -> list[HostId]:
    """The hosts whose VMs ask for more than there is."""
    found = []
    for host in state.hosts.values():
        some = [state.vms[vm] for vm in state.residents[host.id]]
        asked = sum(vm.demand.cpu_mhz for vm in some if vm.state is VmState.RUNNING)
        if asked > host.usable_cpu_mhz:
            found.append(host.id)
    return found


def asleep_at_the_surge(journal: MemoryJournal) -> Sequence[HostId]:
    return [host for at_s, host in switched(journal, PowerOff) if at_s < SURGE_S]


EAGER = PowerPolicy(hosts_on_min=1, benefit_times=10)


def test_unneeded_hosts_go_into_standby_and_wake_for_a_surge() -> None:
    result, journal = played(a_surge(EAGER))
    assert len(asleep_at_the_surge(journal)) >= 2
    assert all(host.state is HostState.ON for host in result.truth.hosts.values())
    assert lacking(result.truth) == []
    assert not failed_wakes(journal)


def test_if_a_host_hangs_the_next_one_wakes_and_demand_is_met() -> None:
    """The first wake hangs, whichever host it is: all hosts but one hang once."""
    low, high = 300, 900
    stuck = tuple(PowerOnStuck(at_ms=1000 * SURGE_S - 1, host=HostId(f"h{n}")) for n in (0, 1))
    result, journal = played(a_surge(EAGER, low, high, events=stuck))
    assert {"h0", "h1"} & set(asleep_at_the_surge(journal))
    failed = failed_wakes(journal)
    assert failed
    woken = [host for at_s, host in switched(journal, PowerOn) if at_s >= SURGE_S]
    assert woken[woken.index(failed[0]) + 1 :], "another one is tried"
    first, again = [at_s for at_s, _ in switched(journal, PowerOn)][:2]
    assert again - first < 600, "without waiting for long"
    assert lacking(result.truth) == []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_if_many_wakes_fail_wakes_continue_until_demand_is_met(seed: int) -> None:
    physics = Physics(switching=PowerPhysics(failed_pct=60))
    result, journal = played(a_surge(EAGER, physics=physics, seed=seed))
    assert asleep_at_the_surge(journal)
    assert lacking(result.truth) == []


def test_if_all_wakes_fail_they_are_repeated_and_reported() -> None:
    """No wake can succeed, but the decider does not give up."""
    hosts = [a_host("h0", power=KNOWN), a_host("h1", power=KNOWN, state=HostState.STANDBY)]
    vms = [a_vm(f"v{n}", "h0", vcpus=2) for n in range(4)]
    scenario = a_surge(
        EAGER,
        duration_s=HOURS,
        cluster=an_inventory(*hosts, vms=vms, power=EAGER),
        vm_loads={vm.id: "full" for vm in vms},
        loads={"full": Load(cpu_mhz=(ConstantLoad(level=1500),))},
        physics=Physics(switching=PowerPhysics(failed_pct=100)),
    )
    result, journal = played(scenario)
    assert len(failed_wakes(journal)) >= 3
    assert result.truth.hosts[HostId("h1")].state is HostState.STANDBY


def test_a_host_whose_wake_failed_does_not_go_into_standby_again() -> None:
    """Those who slept and hung once wake in the end, and are needed no more at night."""
    stuck = tuple(PowerOnStuck(at_ms=1000 * SURGE_S - 1, host=HostId(f"h{n}")) for n in range(4))
    _, journal = played(a_surge(EAGER, events=stuck))
    failed: dict[HostId, bool] = {}
    kinds: dict[str, tuple[HostId, bool]] = {}
    for event in journal.events():
        if isinstance(event, ActionStarted):
            action = event.step.action
            if isinstance(action, PowerOn | PowerOff):
                kinds[event.step.id] = action.host, isinstance(action, PowerOn)
                assert isinstance(action, PowerOn) or not failed.get(action.host)
        if isinstance(event, ActionFailed | ActionLost | ActionFinished) and event.step in kinds:
            host, on = kinds[event.step]
            failed[host] = on and not isinstance(event, ActionFinished)
    assert failed


# A long evacuation

SLOW = Estimates(migration_mib_per_s=10)
LINK = Physics(migration=MigrationPhysics(link_mbps=400, dirty_mib_per_ghz=0))


def a_long_farewell(rises_at_s: int | None) -> Scenario:
    """Two hosts with many VMs each, of which one is emptied for a quarter of an hour."""
    hosts = [a_host(f"h{n}", power=KNOWN, memory_mib=65536) for n in range(2)]
    vms = [a_vm(f"v{n}", f"h{n % 2}", memory_mib=4096) for n in range(16)]
    points = [LoadPoint(at_s=0, level=100)]
    points += [] if rises_at_s is None else [LoadPoint(at_s=rises_at_s, level=400)]
    load = Load(cpu_mhz=(StepLoad(points=tuple(points)),), memory_mib=(ConstantLoad(level=100),))
    policy = PowerPolicy(hosts_on_min=1, benefit_times=1, threshold=5)
    return Scenario(
        name="farewell",
        duration_s=2 * HOURS,
        deciders=("balance", "power"),
        cluster=an_inventory(*hosts, vms=vms, power=policy),
        loads={"all": load},
        vm_loads={vm.id: "all" for vm in vms},
        estimates=SLOW,
        physics=LINK,
    )


def test_a_long_evacuation_ends_in_standby_if_demand_stays() -> None:
    result, journal = played(a_long_farewell(None))
    assert len(switched(journal, PowerOff)) == 1
    states = sorted(host.state for host in result.truth.hosts.values())
    assert states == [HostState.ON, HostState.STANDBY]


@pytest.mark.parametrize("rises_at_s", [100, 400])
def test_a_long_evacuation_stops_if_demand_rises(rises_at_s: int) -> None:
    result, journal = played(a_long_farewell(rises_at_s))
    plans = [event for event in journal.events() if isinstance(event, PlanAccepted)]
    assert any(isinstance(step.action, PowerOff) for step in plans[0].plan.steps)
    cancelled = [event for event in journal.events() if isinstance(event, PlanCancelled)]
    assert len(cancelled) == 1
    assert "demand has risen" in cancelled[0].reason
    assert cancelled[0].plan == plans[0].plan.id
    assert not cancelled[0].abort
    assert switched(journal, PowerOff) == []
    assert all(host.state is HostState.ON for host in result.truth.hosts.values())
    assert lacking(result.truth) == []
