"""Replaying the journal of an upgrade gives the identical state, wherever it is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from equipoise.control.upgrading import UpgradeLoop
from equipoise.model import files
from equipoise.model.event import Event
from equipoise.model.inventory import Inventory
from equipoise.model.upgrade.campaign import Campaign, UpgradeStory
from equipoise.model.upgrade.event import TaskFailed, UpgradeCommanded, UpgradeRequested
from equipoise.model.upgrade.request import Command, Order, SetId
from equipoise.model.upgrade.standing import CampaignStanding
from equipoise.sim.upgrading.builtin import builtin_campaign
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from equipoise.upgrade import Coordinator
from equipoise.upgrade.cluster import cluster_of, standing_of
from equipoise.upgrade.state import State

NAMES = ["nabi-compute", "nabi-ceph-ipv6", "nabi-failure", "nabi-new-request"]


def restless() -> Campaign:
    """Tenants that scale by chance, and attempts that fail by chance."""
    story = UpgradeStory(failure_rate=0.2, jitter=0.3, scaling_ms_mean=300_000)
    return builtin_campaign("nabi-compute").but(story=story, seed=3)


def replayed(events: list[Event]) -> State:
    coordinator = Coordinator()
    for event in events:
        coordinator.handle(event)
    return coordinator.state


def but_caches(state: State) -> State:
    return replace(state, grouping=None)


@pytest.mark.parametrize("name", [*NAMES, "restless"])
def test_at_any_point_the_journal_leads_to_the_state_that_the_run_is_in(name: str) -> None:
    campaign = restless() if name == "restless" else builtin_campaign(name)
    journal = MemoryJournal()
    loop = UpgradeLoop(SimulatedEngine(campaign), journal, campaign)
    seen = 0
    while not loop.coordinator.ended:
        loop.step()
        if (len(journal) > seen and len(journal) % 7 == 0) or loop.coordinator.ended:
            seen = len(journal)
            again = replayed(list(journal.events()))
            assert but_caches(again) == but_caches(loop.coordinator.state), f"after {seen}"


def survived(campaign: Campaign, orders: MemoryJournal, before: list[Event]) -> list[Event]:
    """Run to the end after a crash that left these events behind."""
    journal = MemoryJournal()
    journal.append(before)
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign, orders).run()
    return list(journal.events())


def timeless(one: CampaignStanding) -> CampaignStanding:
    return one.but(at_ms=0)


def an_order(order: Order, set_: str | None = None, priority: int = 0) -> UpgradeCommanded:
    command = Command(order=order, set=None if set_ is None else SetId(set_), priority=priority)
    return UpgradeCommanded(at_ms=0, command=command)


@pytest.mark.parametrize("name", ["nabi-compute", "nabi-failure"])
def test_a_crash_after_any_event_leads_to_the_same_end_and_takes_each_order_once(
    name: str,
) -> None:
    campaign = builtin_campaign(name)
    sets = [one.id for one in campaign.requests[0].sets]
    orders = MemoryJournal()
    orders.append([an_order(Order.PRIORITY, sets[0], 7), an_order(Order.UNDO, "nobody")])
    whole = survived(campaign, orders, [])
    end = timeless(standing_of(replayed(whole)))
    numbers = _numbers(whole)
    assert numbers == [1, 2]
    beginning = 1 + len(campaign.requests)  # which is written down at once
    for crash_at in range(beginning, len(whole)):
        events = survived(campaign, orders, whole[:crash_at])
        assert timeless(standing_of(replayed(events))) == end, f"crash after {crash_at}"
        assert _numbers(events) == numbers, f"crash after {crash_at}"


def test_a_crash_changes_nothing_of_what_chance_brings() -> None:
    story = UpgradeStory(failure_rate=0.15, revert_failure_rate=0.1)
    campaign = builtin_campaign("nabi-ceph-ipv6").but(story=story, seed=3)
    whole = survived(campaign, MemoryJournal(), [])
    assert any(isinstance(one, TaskFailed) for one in whole)
    end = timeless(standing_of(replayed(whole)))
    for crash_at in range(1 + len(campaign.requests), len(whole), 3):
        events = survived(campaign, MemoryJournal(), whole[:crash_at])
        assert timeless(standing_of(replayed(events))) == end, f"crash after {crash_at}"


def test_a_campaign_begins_together_with_what_it_is_asked_for() -> None:
    campaign = builtin_campaign("nabi-compute")
    appended: list[int] = []

    class Watched(MemoryJournal):
        def append(self, events: Sequence[Event]) -> int:
            appended.append(len(events))
            return super().append(events)

    UpgradeLoop(SimulatedEngine(campaign), Watched(), campaign)
    assert appended == [1 + len(campaign.requests)], "a crash in between would lose requests"


def _numbers(events: list[Event]) -> list[int]:
    told = [one for one in events if isinstance(one, UpgradeCommanded | UpgradeRequested)]
    return [one.number for one in told if one.number]


@pytest.mark.parametrize("name", [*NAMES, "restless"])
def test_the_cluster_on_the_way_is_one_that_a_file_can_describe(name: str) -> None:
    campaign = restless() if name == "restless" else builtin_campaign(name)
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    coordinator = Coordinator()
    for place, event in enumerate(journal.events()):
        coordinator.handle(event)
        if place % 10 == 0:
            cluster = cluster_of(coordinator.state)
            assert read_back(cluster) == cluster
    versions = {one.version for one in cluster_of(coordinator.state).resources}
    is_changed = versions != {one.version for one in campaign.cluster.resources}
    assert is_changed or name == "restless", "so much fails there that all may be taken back"


def read_back(cluster: Inventory) -> Inventory:
    return files.parse_inventory(files.to_yaml(cluster).encode(), "cluster.yaml")
