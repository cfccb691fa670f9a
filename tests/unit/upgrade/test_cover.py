"""Hosts that carry roles: an upgrade takes them out only while others cover these."""

from __future__ import annotations

from equipoise.control.upgrading import UpgradeLoop
from equipoise.model.event import Event
from equipoise.model.files import parse_campaign
from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import Campaign, Failing, UpgradeStory
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.model.upgrade.work import Errand
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.store import MemoryJournal


def campaign(carriers: str) -> Campaign:
    """Four hosts without VMs, of which some carry the controller of the cluster."""
    hosts = "".join(
        f"    - {{id: h{n}, cores: 8, mhz_per_core: 2000, memory_mib: 999, capacity: {{vms: 2}}}}\n"
        for n in range(1, 5)
    )
    kernels = "".join(
        f"    - {{id: k{n}, kind: hypervisor, version: old, host: h{n}}}\n" for n in range(1, 5)
    )
    text = f"""
name: covered
settings: {{failover_hosts: 0}}
catalog:
  descriptions:
    - {{component: hypervisor, version: new, upgrade: {{duration_s: 10}}}}
requests:
  - id: r
    sets:
      - id: s
        changes:
          - {{does: upgrade, resources: [k1, k2, k3, k4], version: new}}
cluster:
  name: covered
  hosts:
{hosts}  resources:
{kernels}  layout:
    roles:
      - {{id: controller}}
    groups:
      - id: steering
        slots: [{{id: first}}, {{id: second}}]
        hosts: [{carriers}]
        layout: [{{on_each: [controller]}}]
"""
    return parse_campaign(text.encode(), "covered")


def run(made: Campaign) -> list[Event]:
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(made), journal, made).run()
    return list(journal.events())


def decided(events: list[Event]) -> list[past.BatchDecided]:
    return [one for one in events if isinstance(one, past.BatchDecided)]


def test_hosts_that_carry_a_role_go_one_after_the_other() -> None:
    events = run(campaign("h1, h2"))
    first, second = decided(events)
    assert sorted(first.batch) == ["k2", "k3", "k4"]
    (waits,) = first.eliminated
    assert (waits.rule, waits.vertices) == (0, ("k1",))
    assert waits.reason == "h1 has to stay: controller of steering would be lost"
    assert second.batch == ("k1",)
    end = events[-1]
    assert isinstance(end, past.CampaignEnded)
    assert end.status is CampaignStatus.COMPLETED


def test_a_stand_in_lets_one_more_go() -> None:
    (first, second) = decided(run(campaign("h1, h2, h3")))
    assert len(first.batch) == 3
    assert len(second.batch) == 1


def test_a_role_that_nobody_else_can_take_holds_its_host_back_with_the_reason() -> None:
    events = run(campaign("h1"))
    end = events[-1]
    assert isinstance(end, past.CampaignEnded)
    assert end.status is CampaignStatus.PAUSED
    assert end.reason == "h1 has to stay: controller of steering would be lost"
    done = [one.resource for one in events if isinstance(one, past.TaskFinished)]
    assert sorted(done) == ["k2", "k3", "k4"]


def test_a_carrier_that_is_lost_counts_as_gone() -> None:
    story = UpgradeStory(failing=(Failing(resource=ResourceId("k2"), unreachable=True),))
    made = campaign("h1, h2")
    request = made.requests[0]
    change = request.sets[0].changes[0].but(undo_threshold=0)
    sets = (request.sets[0].but(changes=(change,)),)
    events = run(made.but(story=story, requests=(request.but(sets=sets),)))
    done = [
        one.resource
        for one in events
        if isinstance(one, past.TaskFinished) and one.errand is Errand.APPLY
    ]
    assert sorted(done) == ["k3", "k4"]
