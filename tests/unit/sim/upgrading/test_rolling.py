"""Rolling upgrades of a fixed batch size, which ours are compared with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaigns import campaign
from equipoise.errors import InvalidInput
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId, TenantId, VmId
from equipoise.model.resource import Resource, ResourceKind
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import Campaign, Moment, ScalesBy, UpgradeStory
from equipoise.model.upgrade.request import Change, ChangeKind, ChangeSet, Request, RequestId, SetId
from equipoise.report.upgrades.course import course_of
from equipoise.report.upgrades.penalties import penalties_of
from equipoise.sim.upgrading.rolling import roll, tasks_by_host

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


def asking(change: Change) -> Campaign:
    made = campaign({})
    switch = Resource(id=ResourceId("sw"), kind=ResourceKind.SWITCH, version="old")
    resources = (*made.cluster.resources, switch)
    request = Request(id=RequestId("r"), sets=(ChangeSet(id=SetId("s"), changes=(change,)),))
    return made.but(cluster=made.cluster.but(resources=resources), requests=(request,))


@pytest.mark.parametrize(
    "change",
    [
        Change(does=ChangeKind.REMOVE, resources=(ResourceId("h1"),)),
        Change(does=ChangeKind.UPGRADE, resources=(ResourceId("sw"),), version="new"),
    ],
)
def test_what_is_not_on_hosts_is_refused(change: Change) -> None:
    with pytest.raises(InvalidInput, match="rolling upgrade by hosts"):
        tasks_by_host(asking(change))
