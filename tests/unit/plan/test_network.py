"""The judge of networks: the paths of migrations, shared lanes, and the time that copying takes."""

from __future__ import annotations

from typing import Any

import pytest

import small_networks
from builders import a_cluster, a_host, a_plan, a_step, a_vm, facts
from equipoise.capacity.ledger import CapacityLedger
from equipoise.model.action import Boot, Migrate, Reinstantiate
from equipoise.model.event import ActionStarted
from equipoise.model.plan import Step
from equipoise.model.problem import Network
from equipoise.model.problem.problem import NetworkSwitch
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.network import NetworkJudge, NetworkPaths
from equipoise.plan.verify import replay_violations
from small_networks import a_link, a_switch

HOSTS = ("h1", "h2", "h3", "h4")


def star(switch: NetworkSwitch | None = None, **mbps: int) -> Network:
    return small_networks.star(*HOSTS, switch=switch, **mbps)


def a_move(vm: str, source: str, target: str, start_ms: int = 0, lasts_ms: int = 8_389) -> Step:
    """Return a migration of 1,000 MiB, which takes 8,388.6 ms at 1,000 Mbit/s."""
    action = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
    return a_step(f"s-{vm}", action, start_ms, start_ms + lasts_ms)


def a_world(*moves: Step, **fields: Any) -> Snapshot:
    vms = [
        a_vm(move.action.vm, move.action.source, memory_mib=1000, **fields)
        for move in moves
        if isinstance(move.action, Migrate | Reinstantiate)
    ]
    return a_cluster(*(a_host(name, memory_mib=2**20) for name in HOSTS), vms=vms)


def violations(
    network: Network, *moves: Step, timed: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    """Return the codes and details of what the judge finds in a plan."""
    judge = NetworkJudge(NetworkPaths(network), timed)
    found = replay_violations(a_world(*moves), a_plan(*moves), [judge])
    return [(violation.code, violation.detail) for violation in found]


TOO_FAST = ("copy-too-fast", "v1 has 1000 MiB; 500 Mbit/s copy 500 MiB in 8389 ms")


def overloaded(lane: str, used: int, capacity: int) -> tuple[str, str]:
    return "network-overloaded", f"{lane} carries {used} of {capacity} Mbit/s"


def test_a_single_migration_is_as_fast_as_the_narrowest_part_of_its_path() -> None:
    assert violations(star(), a_move("v1", "h1", "h2")) == []
    assert violations(star(h2=500), a_move("v1", "h1", "h2")) == [TOO_FAST]
    assert violations(star(a_switch("sw", 500)), a_move("v1", "h1", "h2")) == [TOO_FAST]
    assert violations(star(h2=500), a_move("v1", "h1", "h2", lasts_ms=16_778)) == []


def test_a_millisecond_less_than_the_copying_takes_is_too_short() -> None:
    ((code, detail),) = violations(star(), a_move("v1", "h1", "h2", lasts_ms=8_388))
    assert code == "copy-too-fast"
    assert facts(detail) == ["v1", "1000", "1000", "999", "8388"]


def test_a_given_duration_is_not_checked() -> None:
    assert violations(star(), a_move("v1", "h1", "h2", lasts_ms=1), timed=("v1",)) == []


def test_migrations_that_leave_by_one_link_share_it() -> None:
    first, second = a_move("v1", "h1", "h2"), a_move("v2", "h1", "h3")
    shared = overloaded("link l-h1 towards sw", 2000, 1000)
    assert violations(star(), first, second) == [shared]
    assert violations(star(h1=2000), first, second) == []
    assert violations(star(), first, a_move("v2", "h1", "h3", 8_388)) == [shared]
    assert violations(star(), first, a_move("v2", "h1", "h3", 8_389)) == []


def test_migrations_that_arrive_by_one_link_share_it() -> None:
    moves = a_move("v1", "h1", "h3"), a_move("v2", "h2", "h3")
    assert violations(star(), *moves) == [overloaded("link l-h3 towards h3", 2000, 1000)]


def test_a_link_has_its_full_bandwidth_in_each_direction() -> None:
    assert violations(star(), a_move("v1", "h1", "h2"), a_move("v2", "h2", "h1")) == []


def test_migrations_through_one_switch_share_its_capacity() -> None:
    moves = a_move("v1", "h1", "h2"), a_move("v2", "h3", "h4")
    assert violations(star(a_switch("sw", 2000)), *moves) == []
    shared = overloaded("switch sw", 2000, 1999)
    assert violations(star(a_switch("sw", 1999)), *moves) == [shared]


def test_a_migration_without_a_path_is_refused() -> None:
    islands = Network(
        switches=(a_switch("a"), a_switch("b")),
        links=(a_link("l1", "a", host="h1"), a_link("l2", "b", host="h2")),
    )
    for target in ("h2", "h3"):
        ((code, detail),) = violations(islands, a_move("v1", "h1", target))
        assert (code, facts(detail)) == ("no-network-path", ["h1", target])


@pytest.mark.parametrize("named_first", ["long", "short"])
def test_the_shortest_path_is_taken_in_any_order_of_the_links(named_first: str) -> None:
    ends = (a_link("l1", "a", 5000, host="h1"), a_link("l2", "c", 5000, host="h2"))
    long = (a_link("a-b", "a", 5000, to="b"), a_link("b-c", "b", 5000, to="c"))
    short = (a_link("c-a", "c", 100, to="a"),)
    links = (*long, *short, *ends) if named_first == "long" else (*short, *ends, *long)
    paths = NetworkPaths(Network(switches=tuple(map(a_switch, "abc")), links=links))
    path = paths.between(HostId("h1"), HostId("h2"))
    assert path is not None
    assert path.lanes == ("link l1 towards a", "link c-a towards c", "link l2 towards h2")
    assert path.mbps == 100


def test_of_equally_short_paths_the_first_in_the_file_is_taken() -> None:
    ends = (a_link("l1", "a", host="h1"), a_link("l2", "b", host="h2"))
    twins = (a_link("t1", "a", 300, to="b"), a_link("t2", "b", 700, to="a"))
    for links in ((*ends, *twins), (*twins, *ends)):
        paths = NetworkPaths(Network(switches=(a_switch("a"), a_switch("b")), links=links))
        path = paths.between(HostId("h1"), HostId("h2"))
        assert path is not None
        assert path.mbps == 300


def test_an_action_that_copies_nothing_needs_no_network() -> None:
    nothing = Network()
    vm, source, target = VmId("v1"), HostId("h1"), HostId("h2")
    created = a_step("s1", Reinstantiate(vm=vm, source=source, target=target))
    world = a_world(created, template="image", replaceable=True)
    assert replay_violations(world, a_plan(created), [NetworkJudge(NetworkPaths(nothing))]) == ()
    boot = a_step("s1", Boot(vm=vm, target=target))
    hosts = (a_host("h1"), a_host("h2"))
    assert (
        replay_violations(
            a_cluster(*hosts, vms=[a_vm()]), a_plan(boot), [NetworkJudge(NetworkPaths(nothing))]
        )
        == ()
    )


def test_an_action_under_way_uses_bandwidth_and_is_not_judged_itself() -> None:
    old, new = a_move("v1", "h1", "h2", lasts_ms=1), a_move("v2", "h1", "h3")
    ledger = CapacityLedger(a_world(old, new))
    ledger.apply(ActionStarted(at_ms=0, step=old, attempt=1))
    before = ledger.draft.freeze()
    found = replay_violations(
        before, a_plan(new, base_version=before.version), [NetworkJudge(NetworkPaths(star()))]
    )
    assert [(violation.code, violation.detail) for violation in found] == [
        overloaded("link l-h1 towards sw", 2000, 1000)
    ]
