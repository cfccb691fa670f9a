"""Replaying the journal of an upgrade up to any event gives the state after that event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from equipoise import files
from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.model.event import Event
from equipoise.model.inventory import Inventory
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSimulation
from equipoise.model.upgrade.event import (
    TaskFailed,
    UpgradeCommanded,
    UpgradeRequested,
    UpgradeStatus,
)
from equipoise.model.upgrade.request import CommandKind, SetId, UpgradeCommand
from equipoise.sim.builtin import builtin_campaign
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from equipoise.upgrade import Coordinator
from equipoise.upgrade.inventory_view import campaign_status, current_inventory
from equipoise.upgrade.state import UpgradeState

NAMES = ["nabi-compute", "nabi-ceph-ipv6", "nabi-failure", "nabi-new-request"]


def random_campaign() -> UpgradeCampaign:
    """Tenants scale and attempts fail at random."""
    simulation = UpgradeSimulation(failure_rate=0.2, jitter=0.3, scaling_ms_mean=300_000)
    return builtin_campaign("nabi-compute").but(simulation=simulation, seed=3)


def replayed(events: list[Event]) -> UpgradeState:
    coordinator = Coordinator()
    for event in events:
        coordinator.handle(event)
    return coordinator.state


def without_caches(state: UpgradeState) -> UpgradeState:
    return replace(state, resources=replace(state.resources, grouping=None))


@pytest.mark.parametrize("name", [*NAMES, "random"])
def test_the_journal_leads_to_the_state_of_the_run_after_any_event(name: str) -> None:
    campaign = random_campaign() if name == "random" else builtin_campaign(name)
    journal = MemoryJournal()
    loop = UpgradeLoop(SimulatedEngine(campaign), journal, campaign)
    checked = 0
    while not loop.coordinator.ended:
        loop.step()
        if (len(journal) > checked and len(journal) % 7 == 0) or loop.coordinator.ended:
            checked = len(journal)
            state = replayed(list(journal.events()))
            assert without_caches(state) == without_caches(loop.coordinator.state), (
                f"after {checked}"
            )


def restarted(
    campaign: UpgradeCampaign, commands: MemoryJournal, before: list[Event]
) -> list[Event]:
    """Run to the end with a journal that already has these events."""
    journal = MemoryJournal()
    journal.append(before)
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign, commands).run()
    return list(journal.events())


def without_time(status: UpgradeStatus) -> UpgradeStatus:
    return status.but(at_ms=0)


def a_command(kind: CommandKind, set_: str | None = None, priority: int = 0) -> UpgradeCommanded:
    command = UpgradeCommand(
        order=kind, set=None if set_ is None else SetId(set_), priority=priority
    )
    return UpgradeCommanded(at_ms=0, command=command)


@pytest.mark.parametrize("name", ["nabi-compute", "nabi-failure"])
def test_a_crash_after_any_event_gives_the_same_end_and_records_commands_once(
    name: str,
) -> None:
    campaign = builtin_campaign(name)
    sets = [change_set.id for change_set in campaign.requests[0].sets]
    commands = MemoryJournal()
    commands.append(
        [a_command(CommandKind.PRIORITY, sets[0], 7), a_command(CommandKind.UNDO, "unknown")]
    )
    complete = restarted(campaign, commands, [])
    end = without_time(campaign_status(replayed(complete)))
    numbers = _numbers(complete)
    assert numbers == [1, 2]
    first_append = 1 + len(campaign.requests)
    for crash_at in range(first_append, len(complete)):
        events = restarted(campaign, commands, complete[:crash_at])
        assert without_time(campaign_status(replayed(events))) == end, f"crash after {crash_at}"
        assert _numbers(events) == numbers, f"crash after {crash_at}"


def test_a_crash_does_not_change_random_failures() -> None:
    simulation = UpgradeSimulation(failure_rate=0.15, revert_failure_rate=0.1)
    campaign = builtin_campaign("nabi-ceph-ipv6").but(simulation=simulation, seed=3)
    complete = restarted(campaign, MemoryJournal(), [])
    assert any(isinstance(event, TaskFailed) for event in complete)
    end = without_time(campaign_status(replayed(complete)))
    for crash_at in range(1 + len(campaign.requests), len(complete), 3):
        events = restarted(campaign, MemoryJournal(), complete[:crash_at])
        assert without_time(campaign_status(replayed(events))) == end, f"crash after {crash_at}"


def test_a_campaign_is_recorded_together_with_its_requests() -> None:
    campaign = builtin_campaign("nabi-compute")
    appended: list[int] = []

    class CountingJournal(MemoryJournal):
        def append(self, events: Sequence[Event]) -> int:
            appended.append(len(events))
            return super().append(events)

    UpgradeLoop(SimulatedEngine(campaign), CountingJournal(), campaign)
    assert appended == [1 + len(campaign.requests)], "a crash in between would lose requests"


def _numbers(events: list[Event]) -> list[int]:
    posted = [event for event in events if isinstance(event, UpgradeCommanded | UpgradeRequested)]
    return [event.number for event in posted if event.number]


@pytest.mark.parametrize("name", [*NAMES, "random"])
def test_the_cluster_after_any_event_can_be_written_to_a_file(name: str) -> None:
    campaign = random_campaign() if name == "random" else builtin_campaign(name)
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    coordinator = Coordinator()
    for place, event in enumerate(journal.events()):
        coordinator.handle(event)
        if place % 10 == 0:
            cluster = current_inventory(coordinator.state)
            assert read_back(cluster) == cluster
    versions = {each.version for each in current_inventory(coordinator.state).resources}
    is_changed = versions != {each.version for each in campaign.cluster.resources}
    assert is_changed or name == "random", "the random failures may undo every change"


def read_back(cluster: Inventory) -> Inventory:
    return files.parse_inventory(files.to_yaml(cluster).encode(), "cluster.yaml")
