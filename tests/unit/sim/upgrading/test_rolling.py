"""Rolling upgrades of a fixed batch size, which ours are compared with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaigns import campaign
from equipoise.errors import InvalidInput
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId, TenantId, VmId
from equipoise.model.resource import Dependency, DependencyKind, Resource, ResourceKind
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import Campaign, Moment, ScalesBy, UpgradeStory
from equipoise.model.upgrade.catalog import ComponentId, Description, Recipe
from equipoise.model.upgrade.request import Change, ChangeKind, ChangeSet, Request, RequestId, SetId
from equipoise.report.upgrades.course import course_of
from equipoise.report.upgrades.penalties import penalties_of
from equipoise.sim.upgrading.builtin import builtin_campaign
from equipoise.sim.upgrading.fallout import Fallout
from equipoise.sim.upgrading.rolling import chunks, roll

TWO = {"a": [1, 2], "b": [1, 2]}


def changed(events: list[Event]) -> list[list[str]]:
    """The hosts of each batch."""
    started = (one for one in events if isinstance(one, past.BatchStarted))
    return [[str(task.host) for task in one.batch.tasks] for one in started]


def test_hosts_without_vms_take_as_long_as_their_batches() -> None:
    for size, rounds in ((1, 5), (2, 3), (3, 2), (4, 2)):
        events = roll(campaign({}, hosts=5), size, seed=1)
        assert events[-1].at_ms == rounds * 40_000
        assert sorted(one for batch in changed(events) for one in batch) == [
            "h1", "h2", "h3", "h4", "h5"
        ]  # fmt: skip
        assert max(map(len, changed(events))) == size


@given(st.integers(1, 4), st.integers(0, 1000), st.sampled_from([TWO, {"a": [1, 2, 3, 4]}]))
def test_vms_run_on_hosts_that_are_not_being_changed_or_are_counted_as_out(
    size: int, seed: int, tenants: dict[str, list[int]]
) -> None:
    made = campaign(tenants)
    host_of = {vm.id: vm.host for vm in made.cluster.vms}
    targets: dict[VmId, HostId] = {}
    out: set[VmId] = set()
    for event in roll(made, size, seed):
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
        assert all(places.count(one) <= 2 for one in set(places))
    assert not out


def test_the_seed_decides_everything() -> None:
    made = campaign(TWO)
    assert roll(made, 2, seed=7) == roll(made, 2, seed=7)
    assert any(roll(made, 2, seed=7) != roll(made, 2, seed=other) for other in range(5))


def test_where_nothing_fits_vms_are_out_as_long_as_the_change_takes() -> None:
    full = campaign({"a": [1, 2], "b": [1, 2]}, hosts=2)
    made = penalties_of(course_of(roll(full, 2, seed=0)))
    assert [one.violation_s for one in made.tenants] == [40.0, 40.0]
    assert [one.proportional_s for one in made.tenants] == [80.0, 80.0]
    assert [one.application_s for one in made.tenants] == [40.0, 40.0]


def test_a_tenant_that_grows_into_a_full_cluster_is_refused() -> None:
    wants = Moment(iteration=1, scaling=(ScalesBy(tenant=TenantId("a"), vms=1),))
    full = campaign({"a": [1, 2], "b": [1, 2]}, hosts=2)
    made = roll(full.but(story=UpgradeStory(moments=(wants,))), 1, seed=0)
    assert penalties_of(course_of(made)).refused == 1
    roomy = campaign({"a": [1, 2], "b": [1, 2]}, hosts=6)
    events = roll(roomy.but(story=UpgradeStory(moments=(wants,))), 1, seed=0)
    assert course_of(events).sizes[TenantId("a")][-1][1] == 3


def with_network(switches: int) -> Campaign:
    """Four hosts, each on so many switches that stand in for each other; both are upgraded."""
    made = campaign({"a": [1, 2]})
    names = [ResourceId(f"sw{n}") for n in range(1, switches + 1)]
    more = [Resource(id=one, kind=ResourceKind.SWITCH, version="old") for one in names]
    links = [
        Dependency(dependent=one.id, sponsor=switch, kind=DependencyKind.COMMUNICATION)
        for one in made.cluster.resources
        for switch in names
    ]
    step = Description(
        component=ComponentId("switch"), version="new", upgrade=Recipe(duration_s=30)
    )
    change = Change(does=ChangeKind.UPGRADE, resources=tuple(names), version="new")
    request = Request(id=RequestId("r"), sets=(ChangeSet(id=SetId("s"), changes=(change,)),))
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
def test_who_depends_on_nothing_else_is_out_with_it(
    switches: int, size: int, lasts_s: int, out_s: int
) -> None:
    events = roll(with_network(switches), size, seed=3)
    made = penalties_of(course_of(events))
    assert made.duration_s == lasts_s
    assert [one.violation_s for one in made.tenants] == [out_s]
    assert [one.application_s for one in made.tenants] == [out_s], "both VMs at once"


def test_fifteen_hosts_keep_their_storage_and_lose_their_routers() -> None:
    made = builtin_campaign("nabi-ceph-ipv6")
    falls = Fallout(made)
    assert not falls.hosts([ResourceId("R37")])
    everything = {one.id for one in made.cluster.hosts}
    assert falls.hosts([ResourceId("R37"), ResourceId("R38")]) == everything
    assert falls.hosts([ResourceId("R31"), ResourceId("R32")]) == {f"host{n}" for n in range(1, 6)}
    six, seven = ([ResourceId(f"R{n}") for n in range(16, 16 + count)] for count in (6, 7))
    assert falls.hosts(six) == {f"host{n}" for n in range(1, 7)}
    assert falls.hosts(seven) == everything, "VSAN takes three of nine"
    assert falls.supported(ResourceId("R46")) == {f"host{n}" for n in range(6, 16)}


def test_what_is_replaced_goes_last_and_its_vms_leave_it_before() -> None:
    events = roll(builtin_campaign("nabi-ceph-ipv6"), 2, seed=1)
    tasks = [task.resource for one in events if isinstance(one, past.BatchStarted)
             for task in one.batch.tasks]  # fmt: skip
    assert tasks.index(ResourceId("R45")) < tasks.index(ResourceId("R46"))
    converted = [
        move.vm
        for one in events
        if isinstance(one, past.VmBatchStarted)
        for move in one.batch.moves
        if move.converted
    ]
    assert sorted(converted) == [f"R{n}" for n in range(39, 45)]


def test_a_request_that_comes_later_is_rolled_as_well() -> None:
    events = roll(builtin_campaign("nabi-new-request"), 1, seed=1)
    routers = [task.resource for one in events if isinstance(one, past.BatchStarted)
               for task in one.batch.tasks if task.resource in ("R37", "R38")]  # fmt: skip
    assert sorted(routers) == ["R37", "R37", "R38", "R38"]


def test_what_cannot_be_taken_out_of_service_is_refused() -> None:
    made = with_network(2)
    link = made.cluster.dependencies[0]
    for change, words in (
        (Change(does=ChangeKind.REMOVE, dependencies=(link,)), "dependencies by themselves"),
        (Change(does=ChangeKind.REMOVE, resources=(ResourceId("nobody"),)), "nobody"),
    ):
        request = Request(id=RequestId("r"), sets=(ChangeSet(id=SetId("s"), changes=(change,)),))
        with pytest.raises(InvalidInput, match=words):
            chunks(made.but(requests=(request,)))
