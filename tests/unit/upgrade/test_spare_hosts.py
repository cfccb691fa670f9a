"""Units of hosts with VMs: they start only if the hosts that they deactivate are spare."""

from __future__ import annotations

import pytest

from builders import figures
from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.files import parse_campaign
from equipoise.model.event import Event
from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.model.upgrade.work import TaskKind, UpgradeTask
from equipoise.sim.builtin import builtin_campaign
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from equipoise.upgrade.summary import summarise_campaign
from upgrade_clusters import UpgradeHarness, a_request, a_set, upgrade_of

INCOMPATIBLE = range(1, 5)
"""Hosts that are incompatible with the two sponsors while versions differ."""


def campaign(kind: str, spare: int, least: int = 1) -> UpgradeCampaign:
    hosts = range(1, len(INCOMPATIBLE) + spare + 1)
    mixed = "presence: current_future, incompatible: true"
    dependencies = [f"{{dependent: s1, sponsor: s2, kind: peer_stateless, {mixed}}}"]
    dependencies += [f"{{dependent: h{n}, sponsor: {sponsor}, kind: {kind}, {mixed}}}"
              for n in INCOMPATIBLE for sponsor in ("s1", "s2")]  # fmt: skip
    size = "cores: 8, mhz_per_core: 2000, memory_mib: 16384, capacity: {vms: 3}"
    vms = (("a1", "a", 1), ("a2", "a", 2), ("b1", "b", 2), ("b2", "b", 3))
    sla = f"sla: {{vms_min: {least}, vms_max: 3, cooldown_s: 100}}"
    entries = {
        "hosts": [f"{{id: h{n}, {size}}}" for n in hosts],
        "resources": [f"{{id: {name}, kind: switch, version: old}}" for name in ("s1", "s2")]
        + [f"{{id: h{n}, kind: server, version: old, host: h{n}}}" for n in hosts],
        "dependencies": dependencies,
        "vms": [f"{{id: {id_}, vcpus: 1, memory_mib: 1024, tenant: {tenant}, host: h{n}}}"
                for id_, tenant, n in vms],
        "tenants": [f"{{id: {id_}, {sla}, anti_affinity: [{{id: {id_}, vms: [{id_}1, {id_}2]}}]}}"
                    for id_ in ("a", "b")],
    }  # fmt: skip
    changed = ", ".join(f"h{n}" for n in INCOMPATIBLE)
    text = f"""
name: unit
settings: {{failover_hosts: 1, vm_move_s: 20}}
catalog:
  descriptions:
    - {{component: switch, version: new, upgrade: {{duration_s: 10}}}}
    - {{component: server, version: new, upgrade: {{duration_s: 40}}}}
requests:
  - id: r
    sets:
      - id: s
        changes:
          - {{does: upgrade, resources: [s1, s2], version: new}}
          - {{does: upgrade, resources: [{changed}], version: new}}
cluster:
  name: unit
"""
    for key, lines in entries.items():
        text += f"  {key}:\n" + "".join(f"    - {line}\n" for line in lines)
    return parse_campaign(text.encode(), "unit")


def run(kind: str, spare: int) -> list[Event]:
    unit_campaign = campaign(kind, spare)
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(unit_campaign), journal, unit_campaign).run()
    return list(journal.events())


@pytest.mark.parametrize(("kind", "spare"), [("storage", 2), ("communication", 4)])
def test_a_unit_completes_with_enough_spare_hosts_and_no_vm_on_a_deactivated_host(
    kind: str, spare: int
) -> None:
    events = run(kind, spare)
    end = events[-1]
    assert isinstance(end, past.CampaignEnded)
    assert end.status is CampaignStatus.COMPLETED
    where = {"a1": "h1", "a2": "h2", "b1": "h2", "b2": "h3"}
    targets: dict[str, str] = {}
    off: set[str] = set()
    for event in events:
        match event:
            case past.VmBatchStarted():
                targets = {move.vm: move.target for move in event.batch.moves}
            case past.VmMoved():
                where[event.vm] = targets[event.vm]
            case past.TaskFinished(kind=TaskKind.DEACTIVATE):
                off.add(event.resource)
            case past.TaskFinished(kind=TaskKind.ACTIVATE):
                off.discard(event.resource)
            case _:
                pass
        assert not off & set(where.values())
    assert not off


def test_a_unit_without_enough_spare_hosts_waits_until_a_host_recovers() -> None:
    harness = UpgradeHarness(campaign("communication", 4))
    harness.fail_host("h8")
    harness.run()
    assert not harness.events(past.BatchStarted)
    (waits,) = [event for event in harness.events(past.IterationEnded) if event.paused]
    assert waits.codes == ("no-spare-host",)
    assert figures(waits.paused)[-2:] == [4, 3]
    harness.recover_host("h8")
    harness.run()
    assert harness.outcomes() == {"s": "applied"}


def test_a_unit_that_can_never_start_is_refused() -> None:
    """Two hosts remain, but a tenant may request three VMs on different hosts."""
    events = run("communication", 2)
    assert not any(isinstance(event, past.BatchStarted) for event in events)
    (end,) = [event for event in events if isinstance(event, past.SetEnded)]
    assert (end.outcome, end.code) == (past.SetOutcome.REFUSED, "capacity-too-small")
    for figure in ("unit 1/s1", "4 hosts out", "2 hosts remain", "6 VMs", "request 6", "3 of them"):
        assert figure in end.reason


def test_a_unit_that_lost_its_spare_hosts_is_undone() -> None:
    """A host that the request on the unit could spare fails its own change for good."""

    def fails(task: UpgradeTask) -> str:
        return "lost" if task.resource == "h7" else ""

    harness = UpgradeHarness(campaign("communication", 3), fails=fails)
    lone = a_set("lone", upgrade_of(["h7"], "new", undo_threshold=0), priority=1)
    harness.ask(a_request(lone, name="r2"))
    harness.run()
    assert harness.outcomes() == {"s": "undone", "lone": "applied"}
    assert not harness.coordinator.state.resources.states[ResourceId("h7")].operational
    (undo,) = harness.events(past.SetUndoStarted)
    assert (undo.set, undo.code) == ("s", "capacity-too-small")


@pytest.mark.parametrize(
    ("kind", "spare", "needed", "available"), [("storage", 2, 2, 2), ("communication", 2, 4, 2)]
)
def test_the_summary_contains_the_spare_hosts_that_a_request_needs(
    kind: str, spare: int, needed: int, available: int
) -> None:
    (need,) = summarise_campaign(run(kind, spare)).spare
    assert (need.request, need.needed, need.available) == ("r", needed, available)
    assert need.is_enough is (needed <= available)


def test_the_new_partition_of_a_divided_cluster_needs_a_failover_reserve() -> None:
    campaign_ = builtin_campaign("nabi-compute")
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(campaign_), journal, campaign_).run()
    (need,) = summarise_campaign(journal.events()).spare
    assert need.needed == campaign_.settings.failover_hosts == 1


def test_a_unit_that_deactivates_too_many_hosts_is_refused() -> None:
    made = campaign("communication", 1, least=2)
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(made), journal, made).run()
    (end,) = [event for event in journal.events() if isinstance(event, past.SetEnded)]
    assert end.outcome is past.SetOutcome.REFUSED
    assert end.code == "capacity-too-small"
    for figure in (
        "unit 1/s1",
        "4 hosts out",
        "1 in reserve",
        "capacity for 0 VMs",
        "4 VMs or more",
    ):
        assert figure in end.reason


def test_the_resources_of_a_partition_change_side_by_side() -> None:
    started: dict[str, int] = {}
    durations_ms = []
    for event in run("storage", 2):
        if isinstance(event, past.BatchStarted):
            started[event.batch.id] = event.at_ms
        elif isinstance(event, past.BatchEnded) and event.batch in started:
            durations_ms.append(event.at_ms - started[event.batch])
    assert durations_ms == [40_000, 40_000]
