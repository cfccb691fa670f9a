"""A real record: the nodes and pods of the openb trace, as hosts and VMs that come and go."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from equipoise.model.event import VmArrived, VmLeft
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.scenario.load import Distribution, Load, NoiseLoad
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal
from placement_auditor import PlacementAuditor

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "openb"
MHZ = 2500
DAY_S = 86_400
FROM_DAY, DAYS = 147, 2
"""The busiest days of the record are the last."""


def rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


def scenario() -> Scenario:
    """Some of the nodes, and all pods without GPUs that were made in the chosen days."""
    hosts = [
        Host(
            id=HostId(row["sn"]),
            cores=int(row["cpu_milli"]) // 1000,
            mhz_per_core=MHZ,
            memory_mib=int(row["memory_mib"]),
        )
        for row in rows("openb_node_list_all_node.csv")[::10]
    ]
    start_s, end_s = FROM_DAY * DAY_S, (FROM_DAY + DAYS) * DAY_S
    events: list[VmArrived | VmLeft] = []
    loads = {}
    for row in rows("openb_pod_list_default.csv"):
        came, gone = int(row["creation_time"]) - start_s, int(row["deletion_time"] or 0) - start_s
        if not 0 <= came < end_s - start_s or gone <= came:
            continue
        vm = Vm(
            id=VmId(row["name"]),
            vcpus=max(1, int(row["cpu_milli"]) // 1000),
            memory_mib=max(1, int(row["memory_mib"])),
            state=VmState.READY,
            demand=Demand(memory_mib=int(row["memory_mib"]) // 2),
        )
        loads[vm.id] = "busy"
        events.append(VmArrived(at_ms=1000 * came, vm=vm))
        if gone < end_s - start_s:
            events.append(VmLeft(at_ms=1000 * gone, vm=vm.id))
    busy = Load(cpu_mhz=(NoiseLoad(level=Distribution(low=200, high=5000), period_s=600),))
    return Scenario(
        name="openb",
        duration_s=DAYS * DAY_S,
        deciders=("restart",),
        cluster=Inventory(hosts=tuple(hosts)),
        loads={"busy": busy},
        vm_loads=loads,
        events=tuple(events),
    )


@pytest.mark.skipif(
    not FOLDER.exists(), reason=f"no openb trace at {FOLDER.name} beside the project"
)
def test_a_day_of_a_real_cluster_is_simulated_and_every_vm_is_accounted_for() -> None:
    replayed = scenario()
    arrivals = sum(isinstance(event, VmArrived) for event in replayed.events)
    assert arrivals > 1000
    journal = MemoryJournal()
    play = ScenarioRunner(replayed, journal)
    play.run(1000 * replayed.duration_s)
    result = play.result()
    auditor = PlacementAuditor()
    auditor.read(journal.events())
    assert auditor.findings == []
    assert len(auditor.seen) == arrivals
    running = {vm: host for vm, host in auditor.runs_on.items() if host is not None}
    assert running == {
        vm.id: vm.host for vm in result.truth.vms.values() if vm.state is VmState.RUNNING
    }
    assert len(running) > 5
    assert result.measures.satisfied_cpu_pct > 90
