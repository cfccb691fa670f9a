"""Penalties of a campaign, in both forms of the thesis, from its events."""

from __future__ import annotations

import pytest

from equipoise.model.event import Event, HostFailed
from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.upgrade import event as past
from equipoise.report.upgrade.history import campaign_history
from equipoise.report.upgrade.penalties import CampaignPenalties, TenantPenalty, campaign_penalties
from upgrade_campaigns import OUTAGE_MS, campaign, moving

SECONDS = OUTAGE_MS / 1000


def penalties(*events: Event, tenants: dict[str, list[int]] | None = None) -> CampaignPenalties:
    made = campaign(tenants or {"a": [1, 2], "b": [1]})
    first: list[Event] = [past.CampaignStarted(at_ms=0, campaign=made)]
    return campaign_penalties(
        campaign_history([*first, past.IterationStarted(at_ms=0, iteration=1), *events])
    )


def of(made: CampaignPenalties, tenant: str) -> TenantPenalty:
    return next(row for row in made.tenants if row.tenant == tenant)


def test_a_move_is_a_violation_as_long_as_the_vm_does_not_answer() -> None:
    made = penalties(*moving(1, 0, {"a1": 3}))
    a, b = of(made, "a"), of(made, "b")
    assert (a.violations, a.impacted, a.violation_s) == (1, (1,), SECONDS)
    assert a.violation_s == a.proportional_s == SECONDS
    assert (b.violations, b.impacted, b.violation_s) == (0, (), 0.0)
    assert made.violation_s == SECONDS / 2
    assert made.moves == 1


def test_two_at_once_are_one_violation_that_costs_twice_in_proportion() -> None:
    made = penalties(*moving(1, 0, {"a1": 3, "a2": 4}))
    a = of(made, "a")
    assert (a.violations, a.impacted) == (1, (2,))
    assert a.violation_s == SECONDS
    assert a.proportional_s == pytest.approx(2 * SECONDS)
    assert a.application_s == SECONDS


def test_one_after_the_other_are_two_violations_and_no_outage_of_the_application() -> None:
    made = penalties(*moving(1, 0, {"a1": 3}), *moving(2, 30_000, {"a2": 4}))
    a = of(made, "a")
    assert (a.violations, a.impacted) == (2, (1, 1))
    assert a.application_s == 0.0


def test_a_vm_without_protection_group_is_no_application_of_several() -> None:
    assert of(penalties(*moving(1, 0, {"b1": 3})), "b").application_s == 0.0


def test_a_failed_host_costs_until_its_vms_run_again() -> None:
    host = HostId("h1")
    restarted = past.VmsRestarted(
        at_ms=9_000, host=host, placed={VmId("a1"): HostId("h3")}, unplaced=(VmId("b1"),)
    )
    end = past.CampaignEnded(at_ms=20_000, status=past.CampaignStatus.COMPLETED)
    made = penalties(HostFailed(at_ms=5_000, host=host), restarted, end)
    assert of(made, "a").violation_s == 4.0
    assert of(made, "b").violation_s == 15.0


def test_a_vm_that_moved_is_lost_with_the_host_it_moved_to() -> None:
    failed = HostFailed(at_ms=30_000, host=HostId("h3"))
    end = past.CampaignEnded(at_ms=40_000, status=past.CampaignStatus.COMPLETED)
    made = penalties(*moving(1, 0, {"a1": 3}), failed, end)
    assert of(made, "a").violation_s == pytest.approx(10.0 + SECONDS)
    assert of(made, "b").violation_s == 0.0


def test_refused_vms_are_counted() -> None:
    refused = past.ScalingAnswered(at_ms=1_000, tenant=TenantId("a"), refused=2)
    made = penalties(refused)
    assert of(made, "a").refused == made.refused == 2
