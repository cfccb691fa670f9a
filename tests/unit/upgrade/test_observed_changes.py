"""Observations of the real cluster during an upgrade, and what comes with a later request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from equipoise.control.upgrade_loop import RunContext, UpgradeLoop
from equipoise.errors import WorldError
from equipoise.model.event import Event
from equipoise.model.host import HostState
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, ResourceId, VmId
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSettings
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.event import BatchStarted, CommandRejected, SetEnded, VmBatchStarted
from equipoise.model.upgrade.infrastructure import Resource, ResourceKind
from equipoise.model.upgrade.request import NewInfrastructure
from equipoise.model.upgrade.work import TaskKind, UpgradeTask, VmBatch
from equipoise.model.vm import Vm
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from equipoise.upgrade.vms.observed import observed_events
from upgrade_clusters import (
    UpgradeHarness,
    a_campaign,
    a_description,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    hypervisors,
    upgrade_of,
)


def campaign(hosts: int = 4) -> UpgradeCampaign:
    names = [f"k{n}" for n in range(1, hosts + 1)]
    return a_campaign(
        a_request(a_set("all", upgrade_of(names))),
        hosts=[a_host(n, 3) for n in range(1, hosts + 1)],
        vms=[a_vm("x", 1, "a"), a_vm("y", 2, "a")],
        tenants=[a_tenant("a", [], most=4)],
        resources=hypervisors(hosts),
        settings=UpgradeSettings(vm_move_s=5, failover_hosts=0),
    )


def seen(harness: UpgradeHarness, **changes: Any) -> list[tuple[str, str]]:
    inventory = harness.campaign.cluster.but(**changes)
    events = observed_events(harness.coordinator.state, inventory, harness.now_ms)
    for event in events:
        harness.record(event)
    return [(type(event).__name__, _subject(event)) for event in events]


def _subject(event: Any) -> str:
    subject = getattr(event, "host", None) or event.vm
    return str(getattr(subject, "id", subject))


def test_an_observation_without_a_change_is_no_event() -> None:
    harness = UpgradeHarness(campaign())
    assert seen(harness) == []


def test_vms_that_came_went_moved_or_stopped_are_events() -> None:
    harness = UpgradeHarness(campaign())
    vms = [a_vm("x", 3, "a"), a_vm("z", 2, "a")]
    assert seen(harness, vms=tuple(vms)) == [
        ("VmChanged", "x"),
        ("VmArrived", "z"),
        ("VmLeft", "y"),
    ]
    cluster = harness.coordinator.state.cluster
    assert {vm: placed.host for vm, placed in cluster.placements.items()} == {"x": "h3", "z": "h2"}
    assert cluster.vm_counts == {"a": 2}
    assert seen(harness, vms=tuple(vms)) == [], "the same again is no event"
    assert seen(harness, vms=(vms[0].but(state="ready", host=None), vms[1])) == [("VmChanged", "x")]


def test_hosts_that_failed_recovered_or_joined_are_events() -> None:
    harness = UpgradeHarness(campaign())
    hosts = harness.campaign.cluster.hosts
    down = (hosts[0].but(state=HostState.FAILED), *hosts[1:3])
    assert seen(harness, hosts=down) == [("HostFailed", "h1"), ("HostFailed", "h4")]
    harness.settle()
    assert harness.coordinator.state.cluster.placements[VmId("x")].host != "h1", "restarted"
    vms = tuple(
        vm.but(host=harness.coordinator.state.cluster.placements[vm.id].host)
        for vm in harness.campaign.cluster.vms
    )
    assert seen(harness, hosts=(*hosts, a_host(9, 3)), vms=vms) == [
        ("HostRecovered", "h1"),
        ("HostRecovered", "h4"),
        ("HostJoined", "h9"),
    ]


def test_what_the_open_schedule_works_on_is_left_to_the_engine() -> None:
    harness = UpgradeHarness(campaign())
    while not harness.events(BatchStarted):
        harness.decide()
    hosts = harness.campaign.cluster.hosts
    changing = {task.host for task in harness.events(BatchStarted)[0].batch.tasks}
    assert changing
    restarting = tuple(
        host.but(state=HostState.FAILED) if host.id in changing else host for host in hosts
    )
    assert seen(harness, hosts=restarting) == []
    while not harness.events(VmBatchStarted):
        harness.step()
    batch = harness.events(VmBatchStarted)[0].batch
    assert isinstance(batch, VmBatch)
    half_way = tuple(vm.but(host=HostId("h4")) for vm in harness.campaign.cluster.vms)
    moved = {move.vm for move in batch.moves}
    assert not {subject for _, subject in seen(harness, vms=half_way)} & moved


class RealEngine(SimulatedEngine):
    """The simulated engine with the methods of an engine in real time."""

    time_ms = 0

    def next_event(self, until_ms: int | None) -> Event | None:
        event = super().next_event(until_ms)
        self.time_ms = max(self.time_ms, event.at_ms if event else until_ms or 0)
        return event

    def now_ms(self) -> int:
        return self.time_ms

    def poll_ms(self) -> int:
        return 1000

    def is_idle(self) -> bool:
        return self.due_ms() is None


class Script:
    """An observation that changes with every call; the last one stays."""

    def __init__(self, inventories: Sequence[Inventory | None]) -> None:
        self.left = list(inventories)
        self.calls = 0

    def observe(self) -> Inventory:
        self.calls += 1
        inventory = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if inventory is None:
            raise WorldError("no answer")
        return inventory


def live(made: UpgradeCampaign, script: Script) -> list[Event]:
    journal = MemoryJournal()
    context = RunContext(source=script)
    UpgradeLoop(RealEngine(made), journal, made, MemoryJournal(), context).run()
    return list(journal.events())


def test_a_run_starts_from_what_is_observed() -> None:
    """Both VMs have moved to the last host by hand: it changes last, and no VM moves away first."""
    made = campaign()
    vms: tuple[Vm, ...] = tuple(vm.but(host=HostId("h4")) for vm in made.cluster.vms)
    events = live(made, Script([made.cluster.but(vms=vms)]))
    first = next(event for event in events if isinstance(event, BatchStarted))
    assert {task.host for task in first.batch.tasks} == {"h1", "h2", "h3"}


def test_a_run_does_not_start_blind_and_survives_a_later_silence() -> None:
    made = campaign()
    with pytest.raises(WorldError):
        live(made, Script([None]))
    slow = made.but(settings=made.settings.but(calculation_ms=60_000))
    script = Script([slow.cluster, None])
    events = live(slow, script)
    assert script.calls > 2
    assert [event.outcome for event in events if isinstance(event, SetEnded)] == ["applied"]


def joined() -> NewInfrastructure:
    kernel = Resource(
        id=ResourceId("k9"), kind=ResourceKind.HYPERVISOR, version="v2", host=HostId("h9")
    )
    return NewInfrastructure(hosts=(a_host(9, 3),), resources=(kernel,))


def test_versions_and_hosts_come_with_a_request() -> None:
    harness = UpgradeHarness(campaign())
    harness.run()
    catalog = Catalog(descriptions=(a_description("hypervisor", "v9"),))
    change = upgrade_of(["k1", "k9"], version="v9")
    request = a_request(a_set("newer", change), name="r2").but(catalog=catalog, new=joined())
    harness.ask(request)
    harness.run()
    assert harness.outcomes() == {"all": "applied", "newer": "applied"}
    assert [harness.version(name) for name in ("k1", "k2", "k9")] == ["v9", "v2", "v9"]
    assert "h9" in harness.coordinator.state.cluster.compute_hosts


def test_a_request_cannot_change_the_catalog_or_take_a_name() -> None:
    harness = UpgradeHarness(campaign())
    harness.run()
    other = a_description("hypervisor", "v3").but(constituents_min=5)
    first = a_request(a_set("one", upgrade_of(["k1"], version="v3")), name="r2")
    harness.ask(first.but(catalog=Catalog(descriptions=(other,))))
    taken = NewInfrastructure(hosts=(a_host(1, 3),))
    harness.ask(a_request(a_set("two", upgrade_of(["k1"], "v3")), name="r3").but(new=taken))
    harness.run()
    codes = [event.code for event in harness.events(CommandRejected)]
    assert codes == ["catalog-conflict", "name-taken"]


def test_a_failing_new_version_goes_back() -> None:
    def fails(task: UpgradeTask) -> str:
        is_new = any(work.after == "v9" for work in task.works)
        return "broken" if is_new and task.kind is TaskKind.APPLY else ""

    harness = UpgradeHarness(campaign(), fails=fails)
    catalog = Catalog(descriptions=(a_description("hypervisor", "v9"),))
    request = a_request(a_set("newer", upgrade_of(["k1"], version="v9")), name="r2")
    harness.ask(request.but(catalog=catalog))
    harness.run()
    assert harness.outcomes()["newer"] == "undone"
    assert harness.version("k1") == "v2"
