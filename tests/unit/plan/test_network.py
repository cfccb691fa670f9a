"""The judge of networks: which way migrations go, what shares what, and how long copying takes."""

from __future__ import annotations

from typing import Any

import pytest

import small_networks
from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.model.action import Boot, Migrate, Reinstantiate
from equipoise.model.event import ActionStarted
from equipoise.model.plan import Step
from equipoise.model.problem import Network
from equipoise.model.problem.network import Switch
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.ledger import Ledger
from equipoise.plan.network import NetworkJudge, Ways
from equipoise.plan.verify import judged
from small_networks import a_link, a_switch

HOSTS = ("h1", "h2", "h3", "h4")


def star(switch: Switch | None = None, **mbps: int) -> Network:
    return small_networks.star(*HOSTS, switch=switch, **mbps)


def a_move(vm: str, source: str, target: str, start_ms: int = 0, lasts_ms: int = 8_389) -> Step:
    """A migration of 1,000 MiB, which take 8,388.6 ms at 1,000 Mbit/s."""
    action = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
    return a_step(f"s-{vm}", action, start_ms, start_ms + lasts_ms)


def a_world(*moves: Step, **fields: Any) -> Snapshot:
    vms = [
        a_vm(one.action.vm, one.action.source, memory_mib=1000, **fields)
        for one in moves
        if isinstance(one.action, Migrate | Reinstantiate)
    ]
    return a_cluster(*(a_host(name, memory_mib=2**20) for name in HOSTS), vms=vms)


def against(network: Network, *moves: Step, timed: tuple[str, ...] = ()) -> list[str]:
    """What the judge says of a plan."""
    judge = NetworkJudge(Ways(network), timed)
    return [one.detail for one in judged(a_world(*moves), a_plan(*moves), [judge])]


def test_who_is_alone_on_its_way_is_as_fast_as_its_narrowest_part() -> None:
    assert against(star(), a_move("v1", "h1", "h2")) == []
    said = "of the 1000 MiB of v1, 500 are copied in 8389 ms at 500 Mbit/s"
    assert against(star(h2=500), a_move("v1", "h1", "h2")) == [said]
    assert against(star(a_switch("sw", 500)), a_move("v1", "h1", "h2")) == [said]
    assert against(star(h2=500), a_move("v1", "h1", "h2", lasts_ms=16_778)) == []


def test_a_millisecond_less_than_the_copying_takes_is_too_little() -> None:
    (said,) = against(star(), a_move("v1", "h1", "h2", lasts_ms=8_388))
    assert said == "of the 1000 MiB of v1, 999 are copied in 8388 ms at 1000 Mbit/s"


def test_of_whom_the_time_is_given_nobody_asks_how_much_is_copied() -> None:
    assert against(star(), a_move("v1", "h1", "h2", lasts_ms=1), timed=("v1",)) == []


def test_those_who_leave_by_the_same_link_share_it() -> None:
    first, second = a_move("v1", "h1", "h2"), a_move("v2", "h1", "h3")
    said = "link l-h1 towards sw carries 2000 of 1000 Mbit/s"
    assert against(star(), first, second) == [said]
    assert against(star(h1=2000), first, second) == []
    assert against(star(), first, a_move("v2", "h1", "h3", 8_388)) == [said]
    assert against(star(), first, a_move("v2", "h1", "h3", 8_389)) == []


def test_those_who_arrive_by_the_same_link_share_it() -> None:
    moves = a_move("v1", "h1", "h3"), a_move("v2", "h2", "h3")
    assert against(star(), *moves) == ["link l-h3 towards h3 carries 2000 of 1000 Mbit/s"]


def test_a_link_carries_as_much_in_each_direction() -> None:
    assert against(star(), a_move("v1", "h1", "h2"), a_move("v2", "h2", "h1")) == []


def test_all_who_meet_in_a_switch_share_what_goes_through_it() -> None:
    moves = a_move("v1", "h1", "h2"), a_move("v2", "h3", "h4")
    assert against(star(a_switch("sw", 2000)), *moves) == []
    said = "switch sw carries 2000 of 1999 Mbit/s"
    assert against(star(a_switch("sw", 1999)), *moves) == [said]


def test_nobody_goes_where_no_links_lead() -> None:
    islands = Network(
        switches=(a_switch("a"), a_switch("b")),
        links=(a_link("l1", "a", host="h1"), a_link("l2", "b", host="h2")),
    )
    assert against(islands, a_move("v1", "h1", "h2")) == ["no links lead from h1 to h2"]
    assert against(islands, a_move("v1", "h1", "h3")) == ["no links lead from h1 to h3"]


@pytest.mark.parametrize("named_first", ["long", "short"])
def test_the_shortest_way_is_taken_wherever_it_is_named(named_first: str) -> None:
    ends = (a_link("l1", "a", 5000, host="h1"), a_link("l2", "c", 5000, host="h2"))
    long = (a_link("a-b", "a", 5000, to="b"), a_link("b-c", "b", 5000, to="c"))
    short = (a_link("c-a", "c", 100, to="a"),)
    links = (*long, *short, *ends) if named_first == "long" else (*short, *ends, *long)
    ways = Ways(Network(switches=tuple(map(a_switch, "abc")), links=links))
    way = ways.between(HostId("h1"), HostId("h2"))
    assert way is not None
    assert way.lanes == ("link l1 towards a", "link c-a towards c", "link l2 towards h2")
    assert way.mbps == 100


def test_of_ways_as_short_as_each_other_the_one_named_first_is_taken() -> None:
    ends = (a_link("l1", "a", host="h1"), a_link("l2", "b", host="h2"))
    twins = (a_link("t1", "a", 300, to="b"), a_link("t2", "b", 700, to="a"))
    for links in ((*ends, *twins), (*twins, *ends)):
        way = Ways(Network(switches=(a_switch("a"), a_switch("b")), links=links)).between(
            HostId("h1"), HostId("h2")
        )
        assert way is not None
        assert way.mbps == 300


def test_what_copies_nothing_needs_no_network() -> None:
    nothing = Network()
    vm, source, target = VmId("v1"), HostId("h1"), HostId("h2")
    anew = a_step("s1", Reinstantiate(vm=vm, source=source, target=target))
    world = a_world(anew, template="image", replaceable=True)
    assert judged(world, a_plan(anew), [NetworkJudge(Ways(nothing))]) == ()
    boot = a_step("s1", Boot(vm=vm, target=target))
    hosts = (a_host("h1"), a_host("h2"))
    assert (
        judged(a_cluster(*hosts, vms=[a_vm()]), a_plan(boot), [NetworkJudge(Ways(nothing))]) == ()
    )


def test_what_is_under_way_already_takes_its_share_and_is_not_judged_itself() -> None:
    old, new = a_move("v1", "h1", "h2", lasts_ms=1), a_move("v2", "h1", "h3")
    ledger = Ledger(a_world(old, new))
    ledger.apply(ActionStarted(at_ms=0, step=old, attempt=1))
    before = ledger.draft.freeze()
    said = judged(before, a_plan(new, base_version=before.version), [NetworkJudge(Ways(star()))])
    assert [one.detail for one in said] == ["link l-h1 towards sw carries 2000 of 1000 Mbit/s"]
