"""Copies and links in isolation: duration, rate and order."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.scenario.physics import MigrationPhysics
from equipoise.sim.world.migration import MigrationCopy, MigrationLinks

LINK_MBPS = 838.8608
"""100 MiB per second."""


def a_copy(name: str, source: str = "h1", target: str = "h2", **fields: Any) -> MigrationCopy:
    return MigrationCopy(
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


def names(copies: list[MigrationCopy]) -> list[str]:
    return [copy.step for copy in copies]


def test_a_single_copy_gets_the_whole_link() -> None:
    links, copy = MigrationLinks(physics()), a_copy("a")
    assert names(links.add(copy, 0)) == ["a"]
    assert copy.rate_mib_per_ms == pytest.approx(0.1)
    assert copy.next_change_in_ms() == 10_000


def test_copies_share_the_busier_of_their_two_hosts() -> None:
    links = MigrationLinks(physics())
    a, b, c = a_copy("a", "h1", "h2"), a_copy("b", "h3", "h2"), a_copy("c", "h3", "h4")
    for copy in (a, b, c):
        links.add(copy, 0)
    assert [copy.rate_mib_per_ms for copy in (a, b, c)] == pytest.approx([0.05, 0.05, 0.05])
    changed = links.drop(a.step, 1000)
    assert names(changed) == ["b"], "c shares h3 with b as before"
    assert [copy.rate_mib_per_ms for copy in (b, c)] == pytest.approx([0.05, 0.05])
    assert names(links.drop(b.step, 2000)) == ["c"]
    assert c.rate_mib_per_ms == pytest.approx(0.1)
    assert c.remaining_mib == pytest.approx(1000 - 0.05 * 2000)


def test_events_scheduled_at_the_old_speed_are_void() -> None:
    links, first = MigrationLinks(physics()), a_copy("a")
    links.add(first, 0)
    revision = first.revision
    links.add(a_copy("b"), 4000)
    assert first.revision != revision
    assert first.remaining_mib == pytest.approx(600)
    assert first.next_change_in_ms() == 12_000


def test_waiting_copies_start_in_order_unless_a_host_is_full() -> None:
    links = MigrationLinks(physics(per_host_max=1))
    assert names(links.add(a_copy("a", "h1", "h2"), 0)) == ["a"]
    assert links.add(a_copy("b", "h1", "h3"), 0) == []
    assert links.add(a_copy("c", "h4", "h1"), 0) == []
    assert names(links.add(a_copy("d", "h3", "h4"), 0)) == ["d"], "b only waits: h3 is free"
    assert links.drop(StepId("a"), 1000) == [], "b lacks h3, c lacks h4"
    assert set(links.copies) == {"d"}
    assert names(links.drop(StepId("d"), 2000)) == ["b"], "c asked later, and both want h1"
    assert names(links.drop(StepId("b"), 3000)) == ["c"]


def test_a_waiting_copy_starts_with_no_progress() -> None:
    links = MigrationLinks(physics(per_host_max=1))
    links.add(a_copy("a"), 0)
    late = a_copy("b", dirty_mib_per_s=10)
    links.add(late, 0)
    links.drop(StepId("a"), 7000)
    assert late.remaining_mib == 1000
    assert late.dirty_mib == 0
    assert late.next_change_in_ms() == 10_000


def test_dropping_a_waiting_copy_changes_no_rate() -> None:
    links = MigrationLinks(physics(per_host_max=1))
    first = a_copy("a")
    links.add(first, 0)
    links.add(a_copy("b"), 0)
    revision = first.revision
    assert links.drop(StepId("b"), 1000) == []
    assert first.revision == revision
    assert links.drop(StepId("a"), 2000) == []
    assert links.drop(StepId("a"), 2000) == [], "twice is as good as once"


def test_two_waiting_copies_start_together_and_share() -> None:
    links = MigrationLinks(physics(per_host_max=2))
    for name in ("a", "b"):
        links.add(a_copy(name, "h1", "h2"), 0)
    links.add(a_copy("c", "h1", "h3"), 0)
    links.add(a_copy("d", "h4", "h2"), 0)
    began = links.drop(StepId("a"), 1000)
    assert set(names(began)) == {"b", "c", "d"}
    assert {step: copy.rate_mib_per_ms for step, copy in links.copies.items()} == pytest.approx(
        {"b": 0.05, "c": 0.05, "d": 0.05}
    )
    assert links.copies[StepId("b")].remaining_mib == pytest.approx(950)


def test_all_links_become_slower_together() -> None:
    links, copy = MigrationLinks(physics()), a_copy("a")
    links.add(copy, 0)
    assert names(links.set_speed(0.25, 4000)) == ["a"]
    assert copy.next_change_in_ms() == 24_000
    late = a_copy("b", "h3", "h4")
    links.add(late, 5000)
    assert late.next_change_in_ms() == 40_000
    links.set_speed(1.0, 8000)
    assert copy.remaining_mib == pytest.approx(500)
    assert copy.next_change_in_ms() == 5000


def test_a_round_copies_the_dirty_pages_of_the_previous_round() -> None:
    links, copy = MigrationLinks(physics()), a_copy("a", dirty_mib_per_s=20)
    links.add(copy, 0)
    copy.advance(10_000)
    copy.next_round(physics())
    assert (copy.round, copy.stopped) == (1, False)
    assert copy.remaining_mib == pytest.approx(200)
    assert copy.next_change_in_ms() == 2000
    copy.advance(12_000)
    copy.next_round(physics())
    assert copy.stopped, "40 MiB take 400 ms, which is little enough"
    assert copy.next_change_in_ms() == 500, "with the switch"
    copy.advance(12_500)
    assert copy.dirty_mib == 0, "a VM that is stopped writes nothing"


def test_dirty_pages_have_a_maximum() -> None:
    links, copy = MigrationLinks(physics()), a_copy("a", dirty_mib_per_s=90, dirty_mib_max=300)
    links.add(copy, 0)
    copy.advance(3000)
    copy.advance(10_000)
    copy.next_round(physics())
    assert copy.remaining_mib == 300


@pytest.mark.parametrize(
    ("dirty_mib_per_s", "rounds_max", "stops"), [(95, 30, True), (94, 30, False), (10, 1, True)]
)
def test_a_copy_that_does_not_converge_stops_the_vm(
    dirty_mib_per_s: float, rounds_max: int, stops: bool
) -> None:
    links = MigrationLinks(physics())
    copy = a_copy("a", dirty_mib_per_s=dirty_mib_per_s, dirty_mib_max=1000)
    links.add(copy, 0)
    copy.advance(10_000)
    copy.next_round(physics(rounds_max=rounds_max))
    assert copy.stopped is stops


def test_a_speed_change_does_not_repeat_the_switch() -> None:
    links, copy = MigrationLinks(physics()), a_copy("a", dirty_mib_per_s=3)
    links.add(copy, 0)
    copy.advance(10_000)
    copy.next_round(physics())
    assert copy.next_change_in_ms() == 400, "30 MiB, then the switch"
    links.set_speed(0.5, 10_350)
    assert copy.remaining_mib == 0
    assert copy.next_change_in_ms() == 50
    links.set_speed(1.0, 10_390)
    assert copy.next_change_in_ms() == 10


def test_a_failing_copy_fails_at_its_given_remainder() -> None:
    links = MigrationLinks(physics())
    copy = a_copy("a", fails_at_mib=400)
    links.add(copy, 0)
    assert copy.next_change_in_ms() == 6000
    copy.advance(5000)
    assert not copy.has_failed
    links.set_speed(0.5, 5000)
    assert copy.next_change_in_ms() == 2000
    copy.advance(7000)
    assert copy.has_failed
