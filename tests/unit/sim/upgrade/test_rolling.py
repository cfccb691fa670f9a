"""Rolling upgrades with a fixed batch size, the baseline of comparisons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import coded
from equipoise.errors import InvalidInput
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId, TenantId, VmId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import (
    ScalingStep,
    ScheduledCampaignEvent,
    UpgradeCampaign,
    UpgradeSimulation,
)
from equipoise.model.upgrade.catalog import ComponentDescription, ComponentId, Recipe
from equipoise.model.upgrade.infrastructure import (
    Dependency,
    DependencyKind,
    Resource,
    ResourceKind,
)
from equipoise.model.upgrade.request import (
    ChangeKind,
    ChangeSet,
    RequestedChange,
    RequestId,
    SetId,
    UpgradeRequest,
)
from equipoise.report.upgrade.history import campaign_history
from equipoise.report.upgrade.penalties import campaign_penalties
from equipoise.sim.builtin import builtin_campaign
from equipoise.sim.upgrade.rolling import count_rolling_units, run_rolling_upgrade
from equipoise.sim.upgrade.rolling_cluster import OutageSpread
from upgrade_campaigns import campaign

TWO = {"a": [1, 2], "b": [1, 2]}


def changed(events: list[Event]) -> list[list[str]]:
    """The hosts of each batch."""
    started = (event for event in events if isinstance(event, past.BatchStarted))
    return [[str(task.host) for task in event.batch.tasks] for event in started]


def test_hosts_without_vms_take_as_long_as_their_batches() -> None:
    for size, rounds in ((1, 5), (2, 3), (3, 2), (4, 2)):
        events = run_rolling_upgrade(campaign({}, hosts=5), size, seed=1)
        assert events[-1].at_ms == rounds * 40_000
        assert sorted(host for batch in changed(events) for host in batch) == [
            "h1", "h2", "h3", "h4", "h5"
        ]  # fmt: skip
        assert max(map(len, changed(events))) == size


@given(st.integers(1, 4), st.integers(0, 1000), st.sampled_from([TWO, {"a": [1, 2, 3, 4]}]))
def test_vms_run_on_unchanged_hosts_or_count_as_down(
    size: int, seed: int, tenants: dict[str, list[int]]
) -> None:
    made = campaign(tenants)
    host_of = {vm.id: vm.host for vm in made.cluster.vms}
    targets: dict[VmId, HostId] = {}
    out: set[VmId] = set()
    for event in run_rolling_upgrade(made, size, seed):
        match event:
            case past.VmBatchStarted():
                targets = {move.vm: move.target for move in event.batch.moves}
            case past.VmMoved():
                host_of[event.vm] = targets[event.vm]
            case past.VmsRestarted():
                out |= set(event.unplaced)
                out -= set(event.placed)
            case past.BatchStarted():
                leaving = {task.host for task in event.batch.tasks}
                assert {vm for vm, host in host_of.items() if host in leaving} == out
            case _:
                pass
        places = list(host_of.values())
        assert all(places.count(place) <= 2 for place in set(places))
    assert not out


def test_the_seed_determines_the_run() -> None:
    made = campaign(TWO)
    assert run_rolling_upgrade(made, 2, seed=7) == run_rolling_upgrade(made, 2, seed=7)
    assert any(
        run_rolling_upgrade(made, 2, seed=7) != run_rolling_upgrade(made, 2, seed=other)
        for other in range(5)
    )


def test_vms_without_a_host_are_down_during_the_change() -> None:
    full = campaign({"a": [1, 2], "b": [1, 2]}, hosts=2)
    made = campaign_penalties(campaign_history(run_rolling_upgrade(full, 2, seed=0)))
    assert [tenant.violation_s for tenant in made.tenants] == [40.0, 40.0]
    assert [tenant.proportional_s for tenant in made.tenants] == [80.0, 80.0]
    assert [tenant.application_s for tenant in made.tenants] == [40.0, 40.0]


def test_scaling_out_in_a_full_cluster_is_refused() -> None:
    wants = ScheduledCampaignEvent(iteration=1, scaling=(ScalingStep(tenant=TenantId("a"), vms=1),))
    full = campaign({"a": [1, 2], "b": [1, 2]}, hosts=2)
    made = run_rolling_upgrade(full.but(simulation=UpgradeSimulation(events=(wants,))), 1, seed=0)
    assert campaign_penalties(campaign_history(made)).refused == 1
    roomy = campaign({"a": [1, 2], "b": [1, 2]}, hosts=6)
    events = run_rolling_upgrade(
        roomy.but(simulation=UpgradeSimulation(events=(wants,))), 1, seed=0
    )
    assert campaign_history(events).sizes[TenantId("a")][-1][1] == 3


def with_network(switches: int) -> UpgradeCampaign:
    """Four hosts, each on so many switches that stand in for each other; both are upgraded."""
    made = campaign({"a": [1, 2]})
    names = [ResourceId(f"sw{n}") for n in range(1, switches + 1)]
    more = [Resource(id=name, kind=ResourceKind.SWITCH, version="old") for name in names]
    links = [
        Dependency(dependent=resource.id, sponsor=switch, kind=DependencyKind.COMMUNICATION)
        for resource in made.cluster.resources
        for switch in names
    ]
    step = ComponentDescription(
        component=ComponentId("switch"), version="new", upgrade=Recipe(duration_s=30)
    )
    change = RequestedChange(does=ChangeKind.UPGRADE, resources=tuple(names), version="new")
    request = UpgradeRequest(id=RequestId("r"), sets=(ChangeSet(id=SetId("s"), changes=(change,)),))
    return made.but(
        cluster=made.cluster.but(
            resources=(*made.cluster.resources, *more), dependencies=tuple(links)
        ),
        catalog=made.catalog.but(descriptions=(*made.catalog.descriptions, step)),
        requests=(request,),
    )


@pytest.mark.parametrize(
    ("switches", "size", "lasts_s", "out_s"),
    [(1, 1, 30, 30), (2, 1, 60, 0), (2, 2, 30, 30), (4, 2, 60, 0), (4, 4, 30, 30)],
)
def test_a_dependent_without_alternative_is_down_too(
    switches: int, size: int, lasts_s: int, out_s: int
) -> None:
    events = run_rolling_upgrade(with_network(switches), size, seed=3)
    made = campaign_penalties(campaign_history(events))
    assert made.duration_s == lasts_s
    assert [tenant.violation_s for tenant in made.tenants] == [out_s]
    assert [tenant.application_s for tenant in made.tenants] == [out_s], "both VMs at once"


def test_fifteen_hosts_keep_their_storage_and_lose_their_routers() -> None:
    made = builtin_campaign("nabi-ceph-ipv6")
    falls = OutageSpread(made)
    assert not falls.hosts([ResourceId("R37")])
    everything = {host.id for host in made.cluster.hosts}
    assert falls.hosts([ResourceId("R37"), ResourceId("R38")]) == everything
    assert falls.hosts([ResourceId("R31"), ResourceId("R32")]) == {f"host{n}" for n in range(1, 6)}
    six, seven = ([ResourceId(f"R{n}") for n in range(16, 16 + count)] for count in (6, 7))
    assert falls.hosts(six) == {f"host{n}" for n in range(1, 7)}
    assert falls.hosts(seven) == everything, "VSAN takes three of nine"
    assert falls.supported(ResourceId("R46")) == {f"host{n}" for n in range(6, 16)}


def test_a_replaced_resource_goes_last_and_its_vms_leave_first() -> None:
    events = run_rolling_upgrade(builtin_campaign("nabi-ceph-ipv6"), 2, seed=1)
    tasks = [task.resource for event in events if isinstance(event, past.BatchStarted)
             for task in event.batch.tasks]  # fmt: skip
    assert tasks.index(ResourceId("R45")) < tasks.index(ResourceId("R46"))
    converted = [
        move.vm
        for event in events
        if isinstance(event, past.VmBatchStarted)
        for move in event.batch.moves
        if move.converted
    ]
    assert sorted(converted) == [f"R{n}" for n in range(39, 45)]


def test_a_later_request_is_rolled_too() -> None:
    events = run_rolling_upgrade(builtin_campaign("nabi-new-request"), 1, seed=1)
    routers = [task.resource for event in events if isinstance(event, past.BatchStarted)
               for task in event.batch.tasks if task.resource in ("R37", "R38")]  # fmt: skip
    assert sorted(routers) == ["R37", "R37", "R38", "R38"]


def test_unsupported_changes_are_refused() -> None:
    made = with_network(2)
    link = made.cluster.dependencies[0]
    for change in (
        RequestedChange(does=ChangeKind.REMOVE, dependencies=(link,)),
        RequestedChange(does=ChangeKind.REMOVE, resources=(ResourceId("missing"),)),
    ):
        request = UpgradeRequest(
            id=RequestId("r"), sets=(ChangeSet(id=SetId("s"), changes=(change,)),)
        )
        with pytest.raises(InvalidInput, check=coded("rolling-unsupported")):
            count_rolling_units(made.but(requests=(request,)))
