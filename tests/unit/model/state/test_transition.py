"""The effect of single events on the state of the cluster."""

from __future__ import annotations

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    Kill,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionStarted,
    DemandObserved,
    Event,
    HostFailed,
    HostLeft,
    HostRecovered,
    VmCrashed,
)
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, ResourceName, StepId, VmId
from equipoise.model.state.snapshot import HISTORY_MS, Snapshot
from equipoise.model.state.transition import apply, replay
from equipoise.model.vm import Demand, VmState

H1, H2, V1, V2 = HostId("h1"), HostId("h2"), VmId("v1"), VmId("v2")
S = StepId("s")


def cluster(state: str = "running") -> Snapshot:
    host = "h1" if state in {"running", "sleeping"} else None
    vm = a_vm("v1", host, state=VmState(state), template="t")
    return a_cluster(a_host("h1"), a_host("h2"), vms=[vm])


def started(action: Action) -> Event:
    return ActionStarted(at_ms=1, step=a_step("s", action), attempt=1)


def finished(snapshot: Snapshot, action: Action) -> Snapshot:
    return replay(snapshot, [started(action), ActionFinished(at_ms=2, step=S, attempt=1)])


@pytest.mark.parametrize(
    ("before", "action", "state", "host"),
    [
        ("init", Forge(vm=V1), VmState.READY, None),
        ("ready", Boot(vm=V1, target=H2), VmState.RUNNING, H2),
        ("running", Shutdown(vm=V1, source=H1), VmState.READY, None),
        ("running", Migrate(vm=V1, source=H1, target=H2), VmState.RUNNING, H2),
        ("running", Suspend(vm=V1, source=H1), VmState.SLEEPING, H1),
        ("sleeping", Resume(vm=V1, source=H1, target=H2), VmState.RUNNING, H2),
        ("sleeping", Resume(vm=V1, source=H1, target=H1), VmState.RUNNING, H1),
        ("sleeping", Kill(vm=V1), VmState.TERMINATED, None),
        ("ready", Kill(vm=V1), VmState.TERMINATED, None),
    ],
)
def test_a_vm_action_takes_effect_at_its_end(
    before: str, action: Action, state: VmState, host: HostId | None
) -> None:
    snapshot = cluster(before)
    midway = apply(snapshot, started(action))
    assert midway.vms == snapshot.vms
    assert list(midway.in_flight) == ["s"]
    after = finished(snapshot, action)
    assert (after.vms[V1].state, after.vms[V1].host) == (state, host)
    assert not after.in_flight


@pytest.mark.parametrize(
    ("before", "action", "after"),
    [
        (HostState.STANDBY, PowerOn(host=H2), HostState.ON),
        (HostState.ON, PowerOff(host=H2), HostState.STANDBY),
        (HostState.ON, EnterMaintenance(host=H2), HostState.MAINTENANCE),
        (HostState.MAINTENANCE, LeaveMaintenance(host=H2), HostState.ON),
    ],
)
def test_a_host_action_changes_the_state_of_the_host(
    before: HostState, action: Action, after: HostState
) -> None:
    snapshot = a_cluster(a_host("h1"), a_host("h2", state=before))
    assert finished(snapshot, action).hosts[H2].state is after


def test_a_failed_action_has_no_effect() -> None:
    snapshot = cluster()
    after = replay(
        snapshot,
        [
            started(Migrate(vm=V1, source=H1, target=H2)),
            ActionFailed(at_ms=2, step=S, attempt=1, reason="no"),
        ],
    )
    assert after.vms == snapshot.vms
    assert not after.in_flight


def test_an_answer_to_another_attempt_is_ignored() -> None:
    midway = apply(cluster(), started(Migrate(vm=V1, source=H1, target=H2)))
    assert apply(midway, ActionFinished(at_ms=2, step=S, attempt=2)).in_flight == midway.in_flight


def test_an_allocation_changes_the_consumption_of_the_vm() -> None:
    licences = ResourceName("licences")
    after = finished(cluster(), Allocate(vm=V1, resource=licences, amount=3))
    assert after.vms[V1].consumption == {licences: 3}


def test_agent_vms_follow_the_state_of_their_host() -> None:
    snapshot = a_cluster(a_host("h1"), vms=[a_vm("v1", "h1", agent=True)])
    standby = finished(snapshot, PowerOff(host=H1))
    assert (standby.vms[V1].state, standby.vms[V1].host) == (VmState.SLEEPING, H1)
    assert finished(standby, PowerOn(host=H1)).vms[V1].state is VmState.RUNNING


def test_a_failed_host_stops_its_running_vms_and_keeps_the_others() -> None:
    snapshot = a_cluster(
        a_host("h1"),
        a_host("h2"),
        vms=[
            a_vm("v1", "h1"),
            a_vm("v2", "h1", state=VmState.SLEEPING),
            a_vm("v3", "h1", agent=True),
            a_vm("v4", "h2"),
        ],
    )
    after = apply(snapshot, HostFailed(at_ms=5, host=H1))
    assert {name: (vm.state.value, vm.host) for name, vm in after.vms.items()} == {
        "v1": ("ready", None),
        "v2": ("sleeping", "h1"),
        "v3": ("sleeping", "h1"),
        "v4": ("running", "h2"),
    }
    assert after.hosts[H1].state is HostState.FAILED
    back = apply(after, HostRecovered(at_ms=6, host=H1))
    assert back.hosts[H1].state is HostState.ON
    assert back.vms[VmId("v3")].state is VmState.RUNNING


@pytest.mark.parametrize(("failed", "state", "host"), [(H1, "ready", None), (H2, "running", H1)])
def test_a_migration_ends_when_one_of_its_hosts_fails(
    failed: HostId, state: str, host: HostId | None
) -> None:
    midway = apply(cluster(), started(Migrate(vm=V1, source=H1, target=H2)))
    after = apply(midway, HostFailed(at_ms=2, host=failed))
    assert not after.in_flight
    assert (after.vms[V1].state.value, after.vms[V1].host) == (state, host)
    late = apply(after, ActionFinished(at_ms=3, step=S, attempt=1))
    assert late.vms == after.vms


def test_the_vms_of_a_removed_host_become_ready() -> None:
    after = apply(cluster(), HostLeft(at_ms=1, host=H1))
    assert H1 not in after.hosts
    assert (after.vms[V1].state, after.vms[V1].host) == (VmState.READY, None)


def test_a_crashed_vm_becomes_ready_and_its_actions_end() -> None:
    midway = apply(cluster(), started(Migrate(vm=V1, source=H1, target=H2)))
    after = apply(midway, VmCrashed(at_ms=2, vm=V1))
    assert not after.in_flight
    assert (after.vms[V1].state, after.vms[V1].host) == (VmState.READY, None)


def test_the_demand_history_covers_an_hour() -> None:
    snapshot = cluster()
    observations = [
        DemandObserved(at_ms=at, demand={V1: Demand(cpu_mhz=at // 1000)})
        for at in range(0, HISTORY_MS + 600_001, 300_000)
    ]
    after = replay(snapshot, observations)
    assert len(after.history) == 12
    assert [sample.demand[V1].cpu_mhz for sample in after.history][-1] == 4200
    assert after.history[0].at_ms == 900_000
    assert after.vms[V1].demand.cpu_mhz == 4200


def test_time_never_decreases_and_every_event_raises_the_version() -> None:
    after = replay(cluster(), [HostRecovered(at_ms=9, host=H1), HostRecovered(at_ms=3, host=H1)])
    assert (after.version, after.at_ms) == (2, 9)
