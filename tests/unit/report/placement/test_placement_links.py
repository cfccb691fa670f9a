"""What several migrations share of a network, period by period."""

from __future__ import annotations

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import Migrate
from equipoise.model.plan import Step
from equipoise.model.problem import Network
from equipoise.model.quantity import HostId, VmId
from equipoise.report.placement import PlacementTimeline, draw, placement_text, placement_timeline
from equipoise.report.placement.timeline import LinkUsePeriod, shared_links
from small_networks import a_switch, star


def a_move(vm: str, target: str, start_s: int, end_s: int) -> Step:
    action = Migrate(vm=VmId(vm), source=HostId("h1"), target=HostId(target))
    return a_step(f"s-{vm}", action, 1000 * start_s, 1000 * end_s)


def a_course(network: Network | None) -> PlacementTimeline:
    """v1 and v2 leave h1 by the same link, and are there together from 1 to 2 s."""
    hosts = [a_host(name) for name in ("h1", "h2", "h3")]
    initial = a_cluster(*hosts, vms=[a_vm("v1", "h1"), a_vm("v2", "h1")])
    return placement_timeline(
        initial, [a_move("v1", "h2", 0, 2), a_move("v2", "h3", 1, 4)], network
    )


NETWORK = star("h1", "h2", "h3", h1=3000, h2=2000, switch=a_switch("sw", 2500))


def test_a_link_has_a_lane_if_several_migrations_share_it() -> None:
    parts = shared_links(a_course(NETWORK))
    assert [link.lane for link in parts] == ["link l-h1 towards sw", "switch sw"]
    assert [link.capacity_mbps for link in parts] == [3000, 2500]
    assert parts[0].by_period == (0, 2000, 3000, 1000, 0)
    assert list(parts[0].carried) == [
        LinkUsePeriod(2000, 1, 1),
        LinkUsePeriod(3000, 2, 2),
        LinkUsePeriod(1000, 3, 3),
    ]


def test_without_a_network_nothing_is_shared() -> None:
    assert shared_links(a_course(None)) == []
    assert shared_links(a_course(Network())) == []


def test_full_and_overloaded_links_have_different_classes() -> None:
    drawn = str(draw(a_course(NETWORK), "p"))
    assert drawn.count('class="presence overloaded"') == 1 + 1, "and in the legend"
    assert drawn.count('class="presence carrying"') == 5 + 1
    assert "switch sw: 3000 of 2500 Mbit/s, from 1 s until 2 s" in drawn
    assert "switch sw: up to 3000 of 2500 Mbit/s" in drawn
    assert "link is overloaded" in drawn
    assert "link carries migrations" not in str(draw(a_course(None), "p"))


def test_lines_show_used_and_available_bandwidth() -> None:
    (row,) = (line for line in placement_text(a_course(NETWORK)) if line.startswith("switch"))
    assert row.split()[2:] == ["-", "2000/2500", "3000/2500", "1000/2500", "-"]
