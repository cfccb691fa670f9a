"""Copies and links by themselves: how long, how fast, in which order."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.story.physics import MigrationPhysics
from equipoise.sim.migration import Copy, Links

LINK_MBPS = 838.8608
"""100 MiB per second."""


def a_copy(name: str, source: str = "h1", target: str = "h2", **fields: Any) -> Copy:
    return Copy(
        step=StepId(name),
        attempt=1,
        vm=VmId(name),
        source=HostId(source),
        target=HostId(target),
        memory_mib=fields.pop("memory_mib", 1000.0),
        dirty_mib_per_s=fields.pop("dirty_mib_per_s", 0.0),
        dirty_mib_max=fields.pop("dirty_mib_max", 500.0),
        **fields,
    )


def physics(per_host_max: int = 8, rounds_max: int = 30) -> MigrationPhysics:
    return MigrationPhysics(
        link_mbps=LINK_MBPS, per_host_max=per_host_max, rounds_max=rounds_max, downtime_ms_max=500
    )


def names(copies: list[Copy]) -> list[str]:
    return [copy.step for copy in copies]


def test_a_copy_alone_has_the_whole_link() -> None:
    links, copy = Links(physics()), a_copy("a")
    assert names(links.add(copy, 0)) == ["a"]
    assert copy.rate == pytest.approx(0.1)
    assert copy.wait_ms() == 10_000


def test_copies_share_the_busier_of_their_two_hosts() -> None:
    links = Links(physics())
    a, b, c = a_copy("a", "h1", "h2"), a_copy("b", "h3", "h2"), a_copy("c", "h3", "h4")
    for copy in (a, b, c):
        links.add(copy, 0)
    assert [copy.rate for copy in (a, b, c)] == pytest.approx([0.05, 0.05, 0.05])
    changed = links.drop(a.step, 1000)
    assert names(changed) == ["b"], "c shares h3 with b as before"
    assert [copy.rate for copy in (b, c)] == pytest.approx([0.05, 0.05])
    assert names(links.drop(b.step, 2000)) == ["c"]
    assert c.rate == pytest.approx(0.1)
    assert c.left_mib == pytest.approx(1000 - 0.05 * 2000)


def test_what_was_foreseen_at_the_old_speed_is_void() -> None:
    links, first = Links(physics()), a_copy("a")
    links.add(first, 0)
    turn = first.turn
    links.add(a_copy("b"), 4000)
    assert first.turn != turn
    assert first.left_mib == pytest.approx(600)
    assert first.wait_ms() == 12_000


def test_those_who_wait_begin_in_their_order_unless_one_of_their_hosts_is_full() -> None:
    links = Links(physics(per_host_max=1))
    assert names(links.add(a_copy("a", "h1", "h2"), 0)) == ["a"]
    assert links.add(a_copy("b", "h1", "h3"), 0) == []
    assert links.add(a_copy("c", "h4", "h1"), 0) == []
    assert names(links.add(a_copy("d", "h3", "h4"), 0)) == ["d"], "b only waits: h3 is free"
    assert links.drop(StepId("a"), 1000) == [], "b lacks h3, c lacks h4"
    assert set(links.copies) == {"d"}
    assert names(links.drop(StepId("d"), 2000)) == ["b"], "c asked later, and both want h1"
    assert names(links.drop(StepId("b"), 3000)) == ["c"]


def test_a_copy_that_waited_begins_with_nothing_done() -> None:
    links = Links(physics(per_host_max=1))
    links.add(a_copy("a"), 0)
    late = a_copy("b", dirty_mib_per_s=10)
    links.add(late, 0)
    links.drop(StepId("a"), 7000)
    assert late.left_mib == 1000
    assert late.written_mib == 0
    assert late.wait_ms() == 10_000


def test_dropping_one_that_waits_changes_nobody() -> None:
    links = Links(physics(per_host_max=1))
    first = a_copy("a")
    links.add(first, 0)
    links.add(a_copy("b"), 0)
    turn = first.turn
    assert links.drop(StepId("b"), 1000) == []
    assert first.turn == turn
    assert links.drop(StepId("a"), 2000) == []
    assert links.drop(StepId("a"), 2000) == [], "twice is as good as once"


def test_two_who_waited_for_both_ends_begin_at_once_and_share() -> None:
    links = Links(physics(per_host_max=2))
    for name in ("a", "b"):
        links.add(a_copy(name, "h1", "h2"), 0)
    links.add(a_copy("c", "h1", "h3"), 0)
    links.add(a_copy("d", "h4", "h2"), 0)
    began = links.drop(StepId("a"), 1000)
    assert set(names(began)) == {"b", "c", "d"}
    assert {step: copy.rate for step, copy in links.copies.items()} == pytest.approx(
        {"b": 0.05, "c": 0.05, "d": 0.05}
    )
    assert links.copies[StepId("b")].left_mib == pytest.approx(950)


def test_all_links_become_slower_together() -> None:
    links, copy = Links(physics()), a_copy("a")
    links.add(copy, 0)
    assert names(links.set_speed(0.25, 4000)) == ["a"]
    assert copy.wait_ms() == 24_000
    late = a_copy("b", "h3", "h4")
    links.add(late, 5000)
    assert late.wait_ms() == 40_000
    links.set_speed(1.0, 8000)
    assert copy.left_mib == pytest.approx(500)
    assert copy.wait_ms() == 5000


def test_a_round_copies_what_was_written_in_the_one_before() -> None:
    links, copy = Links(physics()), a_copy("a", dirty_mib_per_s=20)
    links.add(copy, 0)
    copy.go_on(10_000)
    copy.next_round(physics())
    assert (copy.round, copy.stopped) == (1, False)
    assert copy.left_mib == pytest.approx(200)
    assert copy.wait_ms() == 2000
    copy.go_on(12_000)
    copy.next_round(physics())
    assert copy.stopped, "40 MiB take 400 ms, which is little enough"
    assert copy.wait_ms() == 500, "with the switch"
    copy.go_on(12_500)
    assert copy.written_mib == 0, "a VM that is stopped writes nothing"


def test_what_is_written_has_a_bound_however_long_a_round_takes() -> None:
    links, copy = Links(physics()), a_copy("a", dirty_mib_per_s=90, dirty_mib_max=300)
    links.add(copy, 0)
    copy.go_on(3000)
    copy.go_on(10_000)
    copy.next_round(physics())
    assert copy.left_mib == 300


@pytest.mark.parametrize(
    ("dirty_mib_per_s", "rounds_max", "stops"), [(95, 30, True), (94, 30, False), (10, 1, True)]
)
def test_going_on_must_be_of_use(dirty_mib_per_s: float, rounds_max: int, stops: bool) -> None:
    links = Links(physics())
    copy = a_copy("a", dirty_mib_per_s=dirty_mib_per_s, dirty_mib_max=1000)
    links.add(copy, 0)
    copy.go_on(10_000)
    copy.next_round(physics(rounds_max=rounds_max))
    assert copy.stopped is stops


def test_a_switch_is_not_done_twice_when_the_speed_changes_in_it() -> None:
    links, copy = Links(physics()), a_copy("a", dirty_mib_per_s=3)
    links.add(copy, 0)
    copy.go_on(10_000)
    copy.next_round(physics())
    assert copy.wait_ms() == 400, "30 MiB, then the switch"
    links.set_speed(0.5, 10_350)
    assert copy.left_mib == 0
    assert copy.wait_ms() == 50
    links.set_speed(1.0, 10_390)
    assert copy.wait_ms() == 10


def test_a_failing_copy_breaks_when_so_much_is_left() -> None:
    links = Links(physics())
    copy = a_copy("a", fails_at_mib=400)
    links.add(copy, 0)
    assert copy.wait_ms() == 6000
    copy.go_on(5000)
    assert not copy.is_broken
    links.set_speed(0.5, 5000)
    assert copy.wait_ms() == 2000
    copy.go_on(7000)
    assert copy.is_broken
