"""The loop of an upgrade with the simulated engine: restarts, seeds, pauses and failures."""

from __future__ import annotations

import pytest

from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import (
    ScheduledCampaignEvent,
    UpgradeCampaign,
    UpgradeSimulation,
)
from equipoise.model.upgrade.event import CampaignStatus, UpgradeCommanded
from equipoise.model.upgrade.request import CommandKind, SetId, UpgradeCommand
from equipoise.sim.builtin import builtin_campaign
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from equipoise.upgrade.summary import CampaignSummary, summarise_campaign


def run(campaign: UpgradeCampaign, before: list[Event] | None = None) -> MemoryJournal:
    journal = MemoryJournal()
    journal.append(before or [])
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    return journal


def summarised(journal: MemoryJournal) -> CampaignSummary:
    return summarise_campaign(journal.events())


def summary(made: CampaignSummary) -> tuple[object, ...]:
    batches = [(each.z, each.v, each.batch, each.vm_batches) for each in made.iterations]
    return made.status, made.sets, made.isolated, batches, len(made.violations)


@pytest.mark.parametrize("name", ["nabi-compute", "nabi-failure"])
def test_a_crash_after_any_event_changes_only_times(name: str) -> None:
    campaign = builtin_campaign(name)
    events = list(run(campaign).events())
    whole = summary(summarise_campaign(events))
    for length in range(3, len(events), max(1, len(events) // 25)):
        assert summary(summarised(run(campaign, events[:length]))) == whole, f"crash after {length}"


def random_campaign(seed: int) -> UpgradeCampaign:
    """Ten hosts, with tenants that scale and attempts that fail at random."""
    campaign = builtin_campaign("nabi-compute")
    simulation = UpgradeSimulation(failure_rate=0.05, jitter=0.3, scaling_ms_mean=300_000)
    return campaign.but(simulation=simulation, seed=seed)


@pytest.mark.parametrize("seed", range(6))
def test_random_scaling_violates_no_sla(seed: int) -> None:
    made = summarised(run(random_campaign(seed)))
    assert not made.violations
    assert made.status is CampaignStatus.COMPLETED


def test_the_same_seed_gives_the_same_journal() -> None:
    assert run(random_campaign(3)).sha256() == run(random_campaign(3)).sha256()
    assert run(random_campaign(3)).sha256() != run(random_campaign(4)).sha256()


def test_a_campaign_that_only_waits_ends_paused_and_can_be_resumed() -> None:
    campaign = builtin_campaign("nabi-case-a")
    pause = ScheduledCampaignEvent(iteration=1, command=UpgradeCommand(order=CommandKind.PAUSE))
    held = campaign.but(simulation=UpgradeSimulation(events=(pause,)))
    journal = run(held)
    made = summarised(journal)
    assert made.status is CampaignStatus.PAUSED
    assert "paused-by-command" in made.iterations[-1].pause_codes
    orders = MemoryJournal()
    orders.append([UpgradeCommanded(at_ms=0, command=UpgradeCommand(order=CommandKind.RESUME))])
    UpgradeLoop(SimulatedEngine(held), journal, held, orders).run()
    assert summarised(journal).status is CampaignStatus.COMPLETED
    assert summarised(journal).sets == {SetId("hypervisors"): ("applied", "", "")}


def test_the_vms_of_a_host_that_fails_are_restarted() -> None:
    campaign = builtin_campaign("nabi-compute")
    moments = (
        ScheduledCampaignEvent(at_s=20, host_fails=campaign.cluster.hosts[0].id),
        ScheduledCampaignEvent(at_s=4000, host_recovers=campaign.cluster.hosts[0].id),
    )
    made = summarised(run(campaign.but(simulation=UpgradeSimulation(events=moments))))
    assert not made.violations
    assert made.status is CampaignStatus.COMPLETED
    assert made.sets == {SetId("hypervisors"): ("applied", "", "")}
