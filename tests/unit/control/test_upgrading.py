"""The loop of an upgrade: with the simulated engine, after a crash, twice the same."""

from __future__ import annotations

import pytest

from equipoise.control.upgrading import UpgradeLoop
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import Campaign, Moment, UpgradeStory
from equipoise.model.upgrade.event import CampaignStatus, UpgradeCommanded
from equipoise.model.upgrade.request import Command, Order, SetId
from equipoise.sim.upgrading.builtin import builtin_campaign
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from equipoise.upgrade.account import Account, account


def run(campaign: Campaign, before: list[Event] | None = None) -> MemoryJournal:
    journal = MemoryJournal()
    journal.append(before or [])
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    return journal


def told(journal: MemoryJournal) -> Account:
    return account(journal.events())


def summary(made: Account) -> tuple[object, ...]:
    batches = [(one.z, one.v, one.batch, one.vm_batches) for one in made.iterations]
    return made.status, made.sets, made.isolated, batches, len(made.violations)


@pytest.mark.parametrize("name", ["nabi-compute", "nabi-failure"])
def test_a_crash_at_any_point_changes_nothing_but_time(name: str) -> None:
    campaign = builtin_campaign(name)
    events = list(run(campaign).events())
    whole = summary(account(events))
    for length in range(3, len(events), max(1, len(events) // 25)):
        assert summary(told(run(campaign, events[:length]))) == whole, f"crash after {length}"


def restless(seed: int) -> Campaign:
    """Ten hosts under tenants that scale by chance, with attempts that fail by chance."""
    campaign = builtin_campaign("nabi-compute")
    story = UpgradeStory(failure_rate=0.05, jitter=0.3, scaling_ms_mean=300_000)
    return campaign.but(story=story, seed=seed)


@pytest.mark.parametrize("seed", range(6))
def test_tenants_that_scale_by_chance_are_never_turned_away(seed: int) -> None:
    made = told(run(restless(seed)))
    assert not made.violations
    assert made.status is CampaignStatus.COMPLETED


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert run(restless(3)).sha256() == run(restless(3)).sha256()
    assert run(restless(3)).sha256() != run(restless(4)).sha256()


def test_a_campaign_that_waits_for_ever_ends_paused_and_can_be_continued() -> None:
    campaign = builtin_campaign("nabi-case-a")
    pause = Moment(iteration=1, command=Command(order=Order.PAUSE))
    held = campaign.but(story=UpgradeStory(moments=(pause,)))
    journal = run(held)
    made = told(journal)
    assert made.status is CampaignStatus.PAUSED
    assert "paused by command" in made.reason
    orders = MemoryJournal()
    orders.append([UpgradeCommanded(at_ms=0, command=Command(order=Order.RESUME))])
    UpgradeLoop(SimulatedEngine(held), journal, held, orders).run()
    assert told(journal).status is CampaignStatus.COMPLETED
    assert told(journal).sets == {SetId("hypervisors"): ("applied", "")}


def test_a_host_that_fails_meanwhile_has_its_vms_restarted() -> None:
    campaign = builtin_campaign("nabi-compute")
    moments = (
        Moment(at_s=20, host_fails=campaign.cluster.hosts[0].id),
        Moment(at_s=4000, host_recovers=campaign.cluster.hosts[0].id),
    )
    made = told(run(campaign.but(story=UpgradeStory(moments=moments))))
    assert not made.violations
    assert made.status is CampaignStatus.COMPLETED
    assert made.sets == {SetId("hypervisors"): ("applied", "")}
