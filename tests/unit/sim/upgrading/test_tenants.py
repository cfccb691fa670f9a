"""Tenants that scale by chance: as fast as they were promised, and not for ever in vain."""

from __future__ import annotations

from itertools import pairwise

from equipoise.control.upgrading import UpgradeLoop
from equipoise.model.upgrade.campaign import Campaign, Moment, ScalesBy, UpgradeStory
from equipoise.model.upgrade.event import CampaignEnded, CampaignStatus, ScalingAsked
from equipoise.model.upgrade.request import Command, Order
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from upgrade_worlds import (
    COOLDOWN_S,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    hypervisors,
    upgrade_of,
)


def held(*moments: Moment) -> Campaign:
    """An administrator pauses it and never comes back, while a tenant goes on to scale."""
    paused = Moment(at_s=0, command=Command(order=Order.PAUSE))
    return a_campaign(
        a_request(a_set("all", upgrade_of(["k1", "k2", "k3"]))),
        hosts=[a_host(n, 1) for n in (1, 2, 3)],
        vms=[a_vm("a", 1, "t")],
        tenants=[a_tenant("t", ["a"], most=2)],
        resources=hypervisors(3),
    ).but(story=UpgradeStory(scaling_ms_mean=1000, moments=(paused, *moments)))


def run(campaign: Campaign) -> MemoryJournal:
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    return journal


def test_a_campaign_that_no_scaling_gets_going_comes_to_an_end() -> None:
    *_, last = run(held()).events()
    assert isinstance(last, CampaignEnded)
    assert last.status is CampaignStatus.PAUSED


def test_after_a_crash_it_ends_at_the_same_event() -> None:
    campaign = held()
    events = list(run(campaign).events())
    for cut in (len(events) // 2, len(events) - 1):
        journal = MemoryJournal()
        journal.append(events[:cut])
        UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
        assert list(journal.events()) == events


def test_a_scaling_of_the_story_does_not_make_a_tenant_scale_twice_as_often() -> None:
    moment = Moment(at_s=1, scaling=(ScalesBy(tenant="t", vms=-1),))  # type: ignore[arg-type]
    journal = run(held(moment))
    _, *by_chance = [one.at_ms for one in journal.events() if isinstance(one, ScalingAsked)]
    waits = [later - sooner for sooner, later in pairwise(by_chance)]
    assert min(waits) > COOLDOWN_S * 1000
