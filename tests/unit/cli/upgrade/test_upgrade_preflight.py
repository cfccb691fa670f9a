"""The preflight of a campaign: pinned VMs, reserves, unreachable hosts, and enough spare hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from equipoise.cli.upgrade.preflight import check_reachable, predict, with_spare_hosts
from equipoise.errors import WorldError
from equipoise.model.host import Host
from equipoise.model.quantity import HostId
from equipoise.model.rule import Rule, StayOff, StayWithin
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSettings, VmCompatibility
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.model.upgrade.request import SetId
from equipoise.sim.upgrade.engine import SimulatedEngine
from upgrade_clusters import (
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    hypervisors,
    upgrade_of,
)


def cluster(hosts: int = 5, rules: tuple[Rule, ...] = (), **settings: Any) -> UpgradeCampaign:
    names = [f"k{n}" for n in range(1, hosts + 1)]
    return a_campaign(
        a_request(a_set("all", upgrade_of(names, undo_threshold=hosts - 1))),
        hosts=[a_host(n, 3) for n in range(1, hosts + 1)],
        vms=[a_vm("x", 1, "a")],
        tenants=[a_tenant("a", [], most=3, least=1)],
        resources=hypervisors(hosts),
        rules=rules,
        settings=UpgradeSettings(vm_move_s=5, **settings),
    )


def outcome(campaign: UpgradeCampaign) -> tuple[str, str]:
    result = predict(campaign).sets[SetId("all")]
    return result.outcome, result.code


@pytest.mark.parametrize(
    "rule",
    [
        StayWithin(id="r", vms=("x",), hosts=("h1",)),  # type: ignore[arg-type]
        StayOff(id="r", vms=("x",), hosts=("h2", "h3", "h4", "h5")),  # type: ignore[arg-type]
    ],
)
def test_a_set_that_a_pinned_vm_blocks_is_refused_before_any_change(rule: Rule) -> None:
    assert outcome(cluster(rules=(rule,))) == ("refused", "vms-pinned")


def test_a_vm_with_one_other_host_is_not_pinned() -> None:
    rule = StayWithin(id="r", vms=("x",), hosts=("h1", "h2"))  # type: ignore[arg-type]
    assert outcome(cluster(rules=(rule,))) == ("applied", "")
    soft = StayWithin(id="r", vms=("x",), hosts=("h1",), hard=False)  # type: ignore[arg-type]
    assert outcome(cluster(rules=(soft,))) == ("applied", "")


@pytest.mark.parametrize(("failover", "code"), [(5, "capacity-too-small"), (3, "")])
def test_a_reserve_as_large_as_the_cluster_is_refused(failover: int, code: str) -> None:
    assert outcome(cluster(failover_hosts=failover))[1] == code


class Reaching(SimulatedEngine):
    """An engine that cannot reach some hosts."""

    def __init__(self, campaign: UpgradeCampaign, *lost: str) -> None:
        super().__init__(campaign)
        self.lost = lost

    def preflight(self) -> Mapping[str, str]:
        return dict.fromkeys(self.lost, "Connection refused")

    def resources_on(self, host: str, resources: Mapping[str, str | None]) -> list[str]:
        return [id_ for id_, on in resources.items() if on == host]


def test_a_run_starts_only_if_its_sets_survive_the_hosts_that_do_not_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    campaign = cluster()
    check_reachable(Reaching(campaign), campaign)
    assert not capsys.readouterr().err
    check_reachable(Reaching(campaign, "h3"), campaign)
    assert "h3 does not answer: Connection refused" in capsys.readouterr().err
    with pytest.raises(WorldError, match=r"h3, h4 cannot be reached.*3 of 5 are operational, 4"):
        check_reachable(Reaching(campaign, "h3", "h4"), campaign)


def divided(spare: int, failover: int = 1) -> UpgradeCampaign:
    """Two hosts are full; VMs of the old hosts cannot run on the new ones."""
    count = 2 + spare
    names = [f"k{n}" for n in range(1, count + 1)]
    return a_campaign(
        a_request(a_set("all", upgrade_of(names))),
        hosts=[a_host(n, 2) for n in range(1, count + 1)],
        vms=[a_vm(f"{tenant}-{n}", n, tenant) for tenant in "ab" for n in (1, 2)],
        tenants=[a_tenant(tenant, [f"{tenant}-1", f"{tenant}-2"], most=3) for tenant in "ab"],
        resources=hypervisors(count),
        settings=UpgradeSettings(vms=VmCompatibility.DIVIDED, vm_move_s=5, failover_hosts=failover),
    )


@pytest.mark.parametrize("spare", range(1, 8))
def test_spare_hosts_are_enough_exactly_if_the_prediction_completes(spare: int) -> None:
    campaign = divided(spare)
    made = predict(campaign)
    (need,) = with_spare_hosts(campaign, made).spare
    assert need.is_enough is (made.status is CampaignStatus.COMPLETED)


def test_the_missing_hosts_are_the_fewest_with_which_the_campaign_completes() -> None:
    campaign = divided(2)
    made = predict(campaign)
    assert made.status is CampaignStatus.PAUSED
    assert not made.spare[0].is_enough, "also without the search"
    (need,) = with_spare_hosts(campaign, made).spare

    def with_more(number: int) -> CampaignStatus:
        more: tuple[Host, ...] = tuple(
            campaign.cluster.hosts[0].but(id=HostId(f"more{n}")) for n in range(number)
        )
        hosts = (*campaign.cluster.hosts, *more)
        return predict(campaign.but(cluster=campaign.cluster.but(hosts=hosts))).status

    missing = need.needed - need.available
    assert missing > 0
    assert with_more(missing) is CampaignStatus.COMPLETED
    assert with_more(missing - 1) is CampaignStatus.PAUSED
