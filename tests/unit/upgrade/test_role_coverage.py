"""Hosts with roles: an upgrade takes a host out only while other hosts cover its roles."""

from __future__ import annotations

from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.files import parse_campaign
from equipoise.model.event import Event
from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import InjectedFailure, UpgradeCampaign, UpgradeSimulation
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.model.upgrade.work import TaskKind
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal


def campaign(carriers: str) -> UpgradeCampaign:
    """Four hosts without VMs; some can run the controller of the cluster."""
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


def run(campaign_: UpgradeCampaign) -> list[Event]:
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign_), journal, campaign_).run()
    return list(journal.events())


def decided(events: list[Event]) -> list[past.BatchDecided]:
    return [event for event in events if isinstance(event, past.BatchDecided)]


def test_hosts_with_a_role_change_one_after_the_other() -> None:
    events = run(campaign("h1, h2"))
    first, second = decided(events)
    assert sorted(first.batch) == ["k2", "k3", "k4"]
    (waits,) = first.eliminated
    assert (waits.rule, waits.vertices) == (0, ("k1",))
    assert waits.code == "role-lost"
    assert "h1" in waits.reason
    assert second.batch == ("k1",)
    end = events[-1]
    assert isinstance(end, past.CampaignEnded)
    assert end.status is CampaignStatus.COMPLETED


def test_a_spare_processor_allows_one_more_host() -> None:
    (first, second) = decided(run(campaign("h1, h2, h3")))
    assert len(first.batch) == 3
    assert len(second.batch) == 1


def test_a_host_stays_if_no_other_host_can_run_its_role() -> None:
    events = run(campaign("h1"))
    end = events[-1]
    assert isinstance(end, past.CampaignEnded)
    assert end.status is CampaignStatus.PAUSED
    assert "controller of steering" in end.reason
    ended = [event for event in events if isinstance(event, past.IterationEnded)]
    assert ended[-1].codes == ("role-lost",)
    changed = [event.resource for event in events if isinstance(event, past.TaskFinished)]
    assert sorted(changed) == ["k2", "k3", "k4"]


def test_a_lost_host_counts_as_gone() -> None:
    simulation = UpgradeSimulation(
        failures=(InjectedFailure(resource=ResourceId("k2"), unreachable=True),)
    )
    covered = campaign("h1, h2")
    request = covered.requests[0]
    change = request.sets[0].changes[0].but(undo_threshold=0)
    sets = (request.sets[0].but(changes=(change,)),)
    events = run(covered.but(simulation=simulation, requests=(request.but(sets=sets),)))
    changed = [
        event.resource
        for event in events
        if isinstance(event, past.TaskFinished) and event.kind is TaskKind.APPLY
    ]
    assert sorted(changed) == ["k3", "k4"]
