"""Random scaling of tenants respects the cooldown and ends with a stuck campaign."""

from __future__ import annotations

from itertools import pairwise

from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.model.upgrade.campaign import (
    ScalingStep,
    ScheduledCampaignEvent,
    UpgradeCampaign,
    UpgradeSimulation,
)
from equipoise.model.upgrade.event import CampaignEnded, CampaignStatus, ScalingRequested
from equipoise.model.upgrade.request import CommandKind, UpgradeCommand
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from upgrade_clusters import (
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


def held(*moments: ScheduledCampaignEvent) -> UpgradeCampaign:
    """An administrator pauses the campaign for ever, while a tenant continues to scale."""
    paused = ScheduledCampaignEvent(at_s=0, command=UpgradeCommand(order=CommandKind.PAUSE))
    return a_campaign(
        a_request(a_set("all", upgrade_of(["k1", "k2", "k3"]))),
        hosts=[a_host(n, 1) for n in (1, 2, 3)],
        vms=[a_vm("a", 1, "t")],
        tenants=[a_tenant("t", ["a"], most=2)],
        resources=hypervisors(3),
    ).but(simulation=UpgradeSimulation(scaling_ms_mean=1000, events=(paused, *moments)))


def run(campaign: UpgradeCampaign) -> MemoryJournal:
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign), journal, campaign).run()
    return journal


def test_a_campaign_that_scaling_cannot_continue_ends() -> None:
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


def test_a_scheduled_scaling_does_not_add_random_scalings() -> None:
    moment = ScheduledCampaignEvent(at_s=1, scaling=(ScalingStep(tenant="t", vms=-1),))  # type: ignore[arg-type]
    journal = run(held(moment))
    _, *random_times = [
        event.at_ms for event in journal.events() if isinstance(event, ScalingRequested)
    ]
    waits = [later - sooner for sooner, later in pairwise(random_times)]
    assert min(waits) > COOLDOWN_S * 1000
