"""Units of hosts that run VMs: they begin only if the hosts they keep off are not missed."""

from __future__ import annotations

import pytest

from equipoise.control.upgrading import UpgradeLoop
from equipoise.model.event import Event
from equipoise.model.files import parse_campaign
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.model.upgrade.work import Errand
from equipoise.sim.upgrading.builtin import builtin_campaign
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from equipoise.upgrade.account import account

CLASHING = range(1, 5)
"""Hosts that do not understand the two sponsors of another version."""


def campaign(kind: str, spare: int, least: int = 1) -> Campaign:
    hosts = range(1, len(CLASHING) + spare + 1)
    clash = "presence: current_future, incompatible: true"
    bonds = [f"{{dependent: s1, sponsor: s2, kind: peer_stateless, {clash}}}"]
    bonds += [f"{{dependent: h{n}, sponsor: {sponsor}, kind: {kind}, {clash}}}"
              for n in CLASHING for sponsor in ("s1", "s2")]  # fmt: skip
    size = "cores: 8, mhz_per_core: 2000, memory_mib: 16384, capacity: {vms: 3}"
    vms = (("a1", "a", 1), ("a2", "a", 2), ("b1", "b", 2), ("b2", "b", 3))
    sla = f"sla: {{vms_min: {least}, vms_max: 3, cooldown_s: 100}}"
    parts = {
        "hosts": [f"{{id: h{n}, {size}}}" for n in hosts],
        "resources": [f"{{id: {one}, kind: switch, version: old}}" for one in ("s1", "s2")]
        + [f"{{id: h{n}, kind: server, version: old, host: h{n}}}" for n in hosts],
        "dependencies": bonds,
        "vms": [f"{{id: {id_}, vcpus: 1, memory_mib: 1024, tenant: {whose}, host: h{n}}}"
                for id_, whose, n in vms],
        "tenants": [f"{{id: {one}, {sla}, anti_affinity: [{{id: {one}, vms: [{one}1, {one}2]}}]}}"
                    for one in ("a", "b")],
    }  # fmt: skip
    changed = ", ".join(f"h{n}" for n in CLASHING)
    written = f"""
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
    for key, lines in parts.items():
        written += f"  {key}:\n" + "".join(f"    - {line}\n" for line in lines)
    return parse_campaign(written.encode(), "unit")


def run(kind: str, spare: int) -> list[Event]:
    made = campaign(kind, spare)
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(made), journal, made).run()
    return list(journal.events())


@pytest.mark.parametrize(("kind", "spare"), [("storage", 2), ("communication", 4)])
def test_with_enough_spare_hosts_a_unit_gets_through_while_vms_are_elsewhere(
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
            case past.TaskFinished(errand=Errand.DEACTIVATE):
                off.add(event.resource)
            case past.TaskFinished(errand=Errand.ACTIVATE):
                off.discard(event.resource)
            case _:
                pass
        assert not off & set(where.values())
    assert not off


def test_a_unit_does_not_begin_what_it_could_not_end() -> None:
    events = run("communication", 2)
    assert not any(isinstance(one, past.BatchStarted) for one in events)
    end = events[-1]
    assert isinstance(end, past.CampaignEnded)
    assert end.status is CampaignStatus.PAUSED
    assert "keeps 4 hosts off, and 2 are spare" in end.reason


@pytest.mark.parametrize(
    ("kind", "spare", "needed", "available"), [("storage", 2, 2, 2), ("communication", 2, 4, 2)]
)
def test_the_account_says_how_many_spare_hosts_a_request_needs(
    kind: str, spare: int, needed: int, available: int
) -> None:
    (one,) = account(run(kind, spare)).spare
    assert (one.request, one.needed, one.available) == ("r", needed, available)
    assert one.enough is (needed <= available)


def test_of_a_divided_cluster_the_new_side_needs_a_reserve_for_failures() -> None:
    made = builtin_campaign("nabi-compute")
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(made), journal, made).run()
    (one,) = account(journal.events()).spare
    assert one.needed == made.settings.failover_hosts == 1


def test_a_unit_that_keeps_more_hosts_off_than_can_ever_be_spared_is_refused() -> None:
    made = campaign("communication", 1, least=2)
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(made), journal, made).run()
    (end,) = [one for one in journal.events() if isinstance(one, past.SetEnded)]
    assert end.outcome is past.SetOutcome.REFUSED
    assert end.reason == (
        "unit 1/s1 keeps 4 hosts off: with 4 hosts out and 1 in reserve, 0 hosts with 0 places "
        "are left; tenants have 4 VMs or more"
    )


def test_a_partition_is_changed_side_by_side() -> None:
    started: dict[str, int] = {}
    lasted = []
    for event in run("storage", 2):
        if isinstance(event, past.BatchStarted):
            started[event.batch.id] = event.at_ms
        elif isinstance(event, past.BatchEnded) and event.batch in started:
            lasted.append(event.at_ms - started[event.batch])
    assert lasted == [40_000, 40_000]
