"""The reserve for failing hosts, from their failure rate."""

from __future__ import annotations

from random import Random

import pytest

from equipoise.model.upgrade.campaign import UpgradeSettings
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.failure_rate import HostFailures
from equipoise.upgrade.requests.planned import planned_state
from upgrade_clusters import (
    a_campaign,
    a_description,
    a_host,
    a_request,
    a_set,
    hypervisors,
    upgrade_of,
)

YEAR_H = 8760.0


@pytest.mark.parametrize(
    ("hosts", "lasting_s", "mtbf_h", "level_pct", "reserve"),
    [
        (1000, 0, YEAR_H, 99.999, 0),  # nothing fails in no time
        (1, 3600, 1e9, 99.999, 0),
        (1000, 3600, YEAR_H, 99.999, 3),  # rate 0.114: P(X <= 2) = 0.99977, P(X <= 3) = 0.999993
        (1000, 3600, YEAR_H, 99.9, 2),
        (1000, 3600, YEAR_H, 89, 0),
        (10, 3600, 0.001, 99.999, 10),  # never more than there are
    ],
)
def test_the_reserve_covers_the_failures_of_the_period(
    hosts: int, lasting_s: int, mtbf_h: float, level_pct: float, reserve: int
) -> None:
    assert HostFailures(mtbf_h=mtbf_h, level_pct=level_pct).reserve(hosts, lasting_s) == reserve


def test_the_reserve_holds_in_random_periods() -> None:
    """Of 4,000 periods with independent failures, few exceed the reserve."""
    failures, hosts, rng = HostFailures(mtbf_h=500, mttr_h=2, level_pct=95), 60, Random(5)
    reserve = failures.reserve(hosts, 3600)
    chance = (1 + failures.mttr_h) / failures.mtbf_h

    def share_within(number: int) -> float:
        periods = 4000
        return (
            sum(sum(rng.random() < chance for _ in range(hosts)) <= number for _ in range(periods))
            / periods
        )

    assert share_within(reserve) >= 0.94
    assert share_within(reserve - 1) < 0.95, "one host fewer is not enough"


def test_a_host_is_available_except_while_it_is_repaired() -> None:
    assert HostFailures(mtbf_h=1000, mttr_h=1).host_availability == pytest.approx(0.999)


def test_a_campaign_reserves_what_the_longest_change_needs() -> None:
    long = a_description("hypervisor", "v2")
    assert long.upgrade is not None
    catalog = Catalog(
        descriptions=(
            a_description("hypervisor", "v1"),
            long.but(upgrade=long.upgrade.but(duration_s=1800)),
        )
    )
    campaign = a_campaign(
        a_request(a_set("s", upgrade_of(["k1"]))),
        hosts=[a_host(n, 2) for n in range(1, 41)],
        resources=hypervisors(40),
        catalog=catalog,
        settings=UpgradeSettings(failover_hosts=1, host_failures=HostFailures(mtbf_h=400)),
    )
    expected = HostFailures(mtbf_h=400).reserve(40, 3600)  # the change and its recovery
    assert expected > 1
    assert planned_state(campaign).settings.failover_hosts == expected
    at_least = campaign.but(settings=campaign.settings.but(failover_hosts=7))
    assert planned_state(at_least).settings.failover_hosts == 7
