"""Fleets of a campaign file: their members, and problems with the line of the fleet."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.api.loading import read_bytes
from equipoise.errors import InvalidInput
from equipoise.files import json_schema, parse_campaign
from equipoise.model.upgrade.campaign import UpgradeCampaign

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "upgrade" / "openstack.yaml"
TEXT = """name: fleet
catalog:
  descriptions:
    - {component: hypervisor, version: v1}
    - {component: hypervisor, version: v2, upgrade: {duration_s: 20}}
requests:
  - {id: r, sets: [{id: s, changes: [{does: upgrade, resources: [esx-kernel], version: v2}]}]}
fleet:
  hosts:
    - count: 3
      like: {id: esx, cores: 4, mhz_per_core: 1000, memory_mib: 4096}
      resources: [{id: kernel, kind: hypervisor, version: v1}]
  resources:
    - {count: 2, peers: peer_stateless, like: {id: tor, kind: switch, version: v1}}
  vms:
    - {count: 4, hosts: [esx], like: {id: web, vcpus: 1, memory_mib: 64, tenant: t}}
  dependencies:
    - {like: {dependent: esx-kernel, sponsor: tor, kind: communication}, spread: SPREAD}
cluster:
  hosts: [{id: other, cores: 4, mhz_per_core: 1000, memory_mib: 4096}]
  tenants:
    - id: t
      sla: {vms_min: 0, vms_max: 9, cooldown_s: 1}
      anti_affinity: [{id: t, vms: [web], disturbed_max: 2}]
"""


def campaign(spread: str = "all") -> UpgradeCampaign:
    return parse_campaign(TEXT.replace("SPREAD", spread).encode(), "fleet.yaml")


def problem(text: str) -> tuple[int | None, str, str]:
    with pytest.raises(InvalidInput) as caught:
        parse_campaign(text.replace("SPREAD", "all").encode(), "fleet.yaml")
    (one,) = caught.value.problems
    return one.line, one.key, one.code


def test_a_campaign_lists_every_member_of_its_fleets() -> None:
    cluster = campaign().cluster
    assert [host.id for host in cluster.hosts] == ["other", "esx-1", "esx-2", "esx-3"]
    assert {resource.id: resource.host for resource in cluster.resources} == {
        "esx-1-kernel": "esx-1",
        "esx-2-kernel": "esx-2",
        "esx-3-kernel": "esx-3",
        "tor-1": None,
        "tor-2": None,
    }
    assert [(vm.id, vm.host) for vm in cluster.vms] == [
        ("web-1", "esx-1"),
        ("web-2", "esx-2"),
        ("web-3", "esx-3"),
        ("web-4", "esx-1"),
    ]


def test_the_name_of_a_fleet_stands_for_its_members() -> None:
    made = campaign()
    (change,) = made.requests[0].sets[0].changes
    assert change.resources == ("esx-1-kernel", "esx-2-kernel", "esx-3-kernel")
    (group,) = made.cluster.tenants[0].anti_affinity
    assert group.vms == ("web-1", "web-2", "web-3", "web-4")


@pytest.mark.parametrize(
    ("spread", "expected"),
    [
        ("all", {(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)}),
        ("evenly", {(1, 1), (2, 2), (3, 1)}),
        ("pairs", {(1, 1), (2, 2)}),
    ],
)
def test_dependencies_between_fleets(spread: str, expected: set[tuple[int, int]]) -> None:
    found = {
        (int(edge.dependent.split("-")[1]), int(edge.sponsor.split("-")[1]))
        for edge in campaign(spread).cluster.dependencies
        if edge.kind == "communication"
    }
    assert found == expected
    peers = [edge for edge in campaign().cluster.dependencies if edge.kind == "peer_stateless"]
    assert [(peer.dependent, peer.sponsor) for peer in peers] == [("tor-1", "tor-2")]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("count: 3", "count: 0", (10, "fleet.hosts[0].count", "out-of-range")),
        ("cores: 4", "cors: 4", (11, "fleet.hosts[0].like", "")),
        ("[esx-kernel]", "[esx-kernl]", (7, "requests[0].sets[0].changes[0].resources[0]", "")),
        ("tenant: t}", "tenant: u}", (16, "cluster.vms[0].tenant", "unknown-name")),
    ],
)
def test_a_problem_has_the_line_of_its_fleet(
    old: str, new: str, expected: tuple[int, str, str]
) -> None:
    text = TEXT.replace("SPREAD", "all").replace(old, new, 1)
    with pytest.raises(InvalidInput) as caught:
        parse_campaign(text.encode(), "fleet.yaml")
    line, key, code = expected
    first = caught.value.problems[0]
    assert first.line == line
    assert first.key.startswith(key)
    assert not code or first.code == code


def test_a_member_with_a_name_that_exists_is_reported() -> None:
    assert problem(TEXT.replace("id: other", "id: esx-2"))[2] == "duplicate-name"


def test_the_schema_of_a_campaign_has_fleets() -> None:
    schema = json_schema("campaign")
    assert "fleet" in schema["$defs"]["UpgradeCampaign"]["properties"]
    assert "count" in schema["$defs"]["EqualHosts"]["properties"]


def test_the_example_has_22_machines_in_few_lines() -> None:
    made = parse_campaign(read_bytes(EXAMPLE), str(EXAMPLE))
    kinds = [resource.id.rstrip("0123456789") for resource in made.cluster.resources]
    assert len(made.cluster.hosts) == 12
    assert [kinds.count(name) for name in ("controller-", "store-", "switch-")] == [3, 5, 2]
    assert len(EXAMPLE.read_text().splitlines()) < 100


def test_the_reference_of_the_keys_is_current() -> None:
    made = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "campaign_keys.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == (ROOT / "docs" / "upgrade-keys.md").read_text(), (
        "run tools/campaign_keys.py > docs/upgrade-keys.md"
    )
