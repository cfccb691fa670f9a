"""The laws of consolidation, against brute force: all ways in which VMs could come to lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.model.quantity import HostId, VmId
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.event import BatchDecided, IterationBegan, VmBatchStarted
from equipoise.model.upgrade.settings import Mixing, UpgradeSettings
from equipoise.model.upgrade.work import VmMove
from equipoise.upgrade.moves.packing import fewest
from equipoise.upgrade.moves.rounds import imagined
from equipoise.upgrade.scene import scene_of
from equipoise.upgrade.select import select
from equipoise.upgrade.state import State
from upgrade_worlds import (
    Stage,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    hypervisors,
    upgrade_of,
)

MOST_STATES = 4000
"""Worlds in which VMs can come to lie in more ways are left to those that are smaller."""


@st.composite
def full_clusters(draw: st.DrawFn) -> Campaign:
    """A few hosts of a few places, VMs scattered over most of them."""
    chance = Random(draw(st.integers(0, 2**32)))
    places = draw(st.lists(st.integers(1, 3), min_size=3, max_size=5))
    if draw(st.booleans()):
        places = [2] * len(places)
    free = list(places)
    vms, tenants = [], []
    for number, size in enumerate(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))):
        roomy = [host for host, left in enumerate(free) if left]
        own = []
        for count, host in enumerate(chance.sample(roomy, min(size, len(roomy)))):
            free[host] -= 1
            own.append(f"t{number}-{count}")
            vms.append(a_vm(own[-1], host + 1, f"t{number}"))
        most = len(own) + draw(st.integers(0, 1))
        tenants.append(a_tenant(f"t{number}", own, most=most, least=len(own)))
    return a_campaign(
        a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, len(places) + 1)]))),
        hosts=[a_host(n, size) for n, size in enumerate(places, 1)],
        vms=vms,
        tenants=[one for one in tenants if one.anti_affinity],
        resources=hypervisors(len(places)),
        settings=UpgradeSettings(
            vm_move_s=5,
            failover_hosts=draw(st.integers(0, 2)),
            vms=draw(st.sampled_from(list(Mixing))),
        ),
    )


def within_reach(state: State) -> list[tuple[HostId, ...]] | None:
    """Every way in which VMs can lie if they move one after the other; nothing if too many."""
    groups = [seat.group for seat in state.seats.values()]
    start = tuple(seat.host for seat in state.seats.values() if seat.host is not None)
    seen, queue = {start: None}, [start]
    for lies in queue:
        for vm, host in product(range(len(lies)), state.places):
            beside = [other for other, there in enumerate(lies) if there == host]
            full = len(beside) >= state.places[host].places
            if not full and all(groups[other] != groups[vm] for other in beside):
                then = (*lies[:vm], host, *lies[vm + 1 :])
                if then not in seen:
                    seen[then] = None
                    queue.append(then)
        if len(seen) > MOST_STATES:
            return None
    return queue


def batches(state: State, ways: Sequence[tuple[HostId, ...]]) -> Iterator[int]:
    """What could be changed if VMs lay like that; who of a group lies where does not matter."""
    known = set()
    for lies in ways:
        seats = list(zip(state.seats.values(), lies, strict=True))
        alike = frozenset((seat.group or seat.vm, host) for seat, host in seats)
        if alike not in known:
            known.add(alike)
            moves = [
                VmMove(vm=seat.vm, source=seat.host, target=host)
                for seat, host in seats
                if seat.host is not None and seat.host != host
            ]
            yield len(select(scene_of(imagined(state, moves), with_vms=False)).batch)


@given(full_clusters())
@settings(max_examples=120, deadline=None)
def test_if_some_consolidation_lets_hosts_be_changed_the_best_is_found(campaign: Campaign) -> None:
    """Of hosts of different sizes a few orders are tried, which are not all that there are."""
    stage = Stage(campaign)
    while not stage.events(IterationBegan):
        stage.step()
    state = stage.coordinator.state
    refused = bool(state.refused)
    ways = None if refused else within_reach(state)
    if ways is None or select(scene_of(state, with_vms=False)).batch:
        return
    best = max(batches(state, ways))
    while not stage.events(BatchDecided):
        assert stage.step()
    decided = stage.events(BatchDecided)[0]
    moved = [move.vm for one in stage.events(VmBatchStarted) for move in one.batch.moves]
    assert len(moved) == len(set(moved)), "a VM made room twice"
    assert bool(moved) <= bool(decided.batch), "VMs moved for nothing"
    room = sum(state.places[HostId(f"h{one[1:]}")].places for one in decided.batch)
    assert len(decided.batch) <= best
    if len({one.places for one in state.places.values()}) == 1:
        assert len(decided.batch) == best or room >= len(state.seats)


@given(
    groups=st.lists(st.integers(1, 4), max_size=4),
    places=st.lists(st.integers(0, 4), max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_how_many_hosts_are_needed_is_known_from_sizes_alone(
    groups: list[int], places: list[int]
) -> None:
    """Against trying: each group in turn, on every choice of hosts."""

    def fits(rest: list[int], free: list[int]) -> bool:
        if not rest:
            return True
        for chosen in product((0, 1), repeat=len(free)):
            left = [one - taken for one, taken in zip(free, chosen, strict=True)]
            if sum(chosen) == rest[0] and min(left, default=0) >= 0 and fits(rest[1:], left):
                return True
        return False

    tried = (count for count in range(len(places) + 1) if fits(groups, places[:count]))
    assert fewest(groups, places) == next(tried, None)


def test_two_hosts_that_may_fail_do_not_stop_a_full_cluster() -> None:
    """Sixty hosts without an empty one, nine places of ten taken: no host alone would help."""
    hosts, places, size = 60, 8, 6
    chance = Random(7)
    free = [places] * hosts
    vms, tenants = [], []
    for number in range(hosts * places * 9 // 10 // size):
        name = f"t{number}"
        order = sorted(range(hosts), key=lambda host: (-free[host], chance.random()))
        own = [f"{name}-{count}" for count in range(size)]
        for vm, host in zip(own, order, strict=False):
            free[host] -= 1
            vms.append(a_vm(vm, host + 1, name))
        tenants.append(a_tenant(name, own, most=size, least=size))
    assert max(free) < places
    stage = Stage(
        a_campaign(
            a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, hosts + 1)]))),
            hosts=[a_host(n, places) for n in range(1, hosts + 1)],
            vms=vms,
            tenants=tenants,
            resources=hypervisors(hosts),
            settings=UpgradeSettings(vm_move_s=5, failover_hosts=2),
        )
    )
    stage.run()
    assert stage.outcomes() == {"hosts": "applied"}
    rooms = stage.events(VmBatchStarted)
    assert {VmId(move.vm) for one in rooms if not one.why for move in one.batch.moves} == {
        vm.id for vm in vms
    }, "each leaves for a changed host"
    assert {one.batch.id.split("/")[0] for one in rooms if one.why} == {"1"}, "it is done once"
    for one in rooms:
        own = [move.vm.split("-")[0] for move in one.batch.moves]
        assert len(own) == len(set(own)), "two VMs of a group are disturbed at once"
    assert sum(bool(one.why) for one in rooms) > 1, "it takes several rounds"
    assert max(seat.moves for seat in stage.coordinator.state.seats.values()) == 2
    # Six hosts' worth of places are free, two of them for hosts that fail: four at a time.
    sizes = [len(one.batch) for one in stage.events(BatchDecided)]
    assert sizes[0] == 4
    assert len(sizes) <= 17
