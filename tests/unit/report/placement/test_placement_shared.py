"""What several migrations share of a network, period by period."""

from __future__ import annotations

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import Migrate
from equipoise.model.plan import Step
from equipoise.model.problem import Network
from equipoise.model.quantity import HostId, VmId
from equipoise.report.placement import Course, course_of, draw, lines
from equipoise.report.placement.shared import Carried, shared
from small_networks import a_switch, star


def a_move(vm: str, target: str, start_s: int, end_s: int) -> Step:
    action = Migrate(vm=VmId(vm), source=HostId("h1"), target=HostId(target))
    return a_step(f"s-{vm}", action, 1000 * start_s, 1000 * end_s)


def a_course(network: Network | None) -> Course:
    """v1 and v2 leave h1 by the same link, and are there together from 1 to 2 s."""
    hosts = [a_host(name) for name in ("h1", "h2", "h3")]
    initial = a_cluster(*hosts, vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    return course_of(initial, [a_move("v1", "h2", 0, 2), a_move("v2", "h3", 1, 4)], network)


NETWORK = star("h1", "h2", "h3", h1=3000, h2=2000, switch=a_switch("sw", 2500))


def test_a_part_is_told_of_if_several_ever_share_it() -> None:
    parts = shared(a_course(NETWORK))
    assert [one.lane for one in parts] == ["link l-h1 towards sw", "switch sw"]
    assert [one.capacity_mbps for one in parts] == [3000, 2500]
    assert parts[0].by_period == (0, 2000, 3000, 1000, 0)
    assert list(parts[0].carried) == [Carried(2000, 1, 1), Carried(3000, 2, 2), Carried(1000, 3, 3)]


def test_without_a_network_nothing_is_shared() -> None:
    assert shared(a_course(None)) == []
    assert shared(a_course(Network())) == []


def test_the_picture_tells_full_from_too_full() -> None:
    drawn = str(draw(a_course(NETWORK), "p"))
    assert drawn.count('class="stay overloaded"') == 1 + 1, "and in the legend"
    assert drawn.count('class="stay carrying"') == 5 + 1
    assert "switch sw: 3000 of 2500 Mbit/s, from 1 s until 2 s" in drawn
    assert "switch sw: up to 3000 of 2500 Mbit/s" in drawn
    assert "cannot carry them" in drawn
    assert "carries migrations" not in str(draw(a_course(None), "p"))


def test_lines_tell_how_much_of_how_much() -> None:
    (row,) = (line for line in lines(a_course(NETWORK)) if line.startswith("switch"))
    assert row.split()[2:] == ["-", "2000/2500", "3000/2500", "1000/2500", "-"]
