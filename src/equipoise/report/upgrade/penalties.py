"""The penalties of a campaign: number and length of SLA violations (section 6.1.3 of the thesis).

A violation is a period in which a VM of a tenant does not answer. Its delay penalty counts
seconds, its proportional penalty seconds times missing VMs. An application is down while more VMs
of an anti-affinity group are out at once than the group allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from equipoise.model.quantity import GroupId, TenantId
from equipoise.report.upgrade.history import CampaignHistory, VmOutage


@dataclass(frozen=True, slots=True)
class TenantPenalty:
    """The violations of one tenant."""

    tenant: TenantId
    violations: int
    impacted: tuple[int, ...]
    """For each violation, the largest number of VMs out at once."""
    violation_s: float
    proportional_s: float
    """Seconds times missing VMs."""
    application_s: float
    """Seconds in which too many VMs of an anti-affinity group are out at once."""
    refused: int
    """Number of VMs within the SLA that the tenant did not get."""

    @property
    def delay_penalty(self) -> float:
        """The penalty in units of q, the price of a second."""
        return self.violation_s

    @property
    def proportional_penalty(self) -> float:
        """The penalty in units of q', the price of a second of a VM."""
        return self.proportional_s


@dataclass(frozen=True, slots=True)
class CampaignPenalties:
    """The violations of a whole campaign."""

    duration_s: float
    moves: int
    tenants: tuple[TenantPenalty, ...]

    @property
    def violation_s(self) -> float:
        """Seconds with a violation; mean of all tenants, impacted or not."""
        return fmean([tenant.violation_s for tenant in self.tenants] or [0.0])

    @property
    def proportional_s(self) -> float:
        """Seconds times missing VMs; mean of all tenants."""
        return fmean([tenant.proportional_s for tenant in self.tenants] or [0.0])

    @property
    def application_s(self) -> float:
        """Seconds without the application; mean of all tenants."""
        return fmean([tenant.application_s for tenant in self.tenants] or [0.0])

    @property
    def refused(self) -> int:
        """Number of refused VMs within the SLAs of all tenants."""
        return sum(tenant.refused for tenant in self.tenants)


def campaign_penalties(history: CampaignHistory) -> CampaignPenalties:
    """Return the penalties of all tenants from the outages of a campaign."""
    by_tenant: dict[TenantId, list[VmOutage]] = {tenant: [] for tenant in history.tenants}
    for outage in history.outages:
        by_tenant[outage.tenant].append(outage)
    refused = dict.fromkeys(history.tenants, 0)
    for _, tenant, count in history.refused:
        refused[tenant] += count
    tenants = tuple(
        _tenant(history, tenant, by_tenant[tenant], refused[tenant]) for tenant in history.tenants
    )
    return CampaignPenalties(history.end_ms / 1000, history.moves, tenants)


def _tenant(
    history: CampaignHistory, tenant: TenantId, outages: Sequence[VmOutage], refused: int
) -> TenantPenalty:
    intervals = outage_intervals(outages)
    violations: list[int] = []
    last_ms = -1
    for start_ms, end_ms, count in intervals:
        if start_ms == last_ms:
            violations[-1] = max(violations[-1], count)
        else:
            violations.append(count)
        last_ms = end_ms
    return TenantPenalty(
        tenant,
        len(violations),
        tuple(violations),
        sum(end - start for start, end, _ in intervals) / 1000,
        sum((end - start) * count for start, end, count in intervals) / 1000,
        _application_s(history, tenant, outages),
        refused,
    )


def outage_intervals(outages: Sequence[VmOutage]) -> list[tuple[int, int, int]]:
    """Return the intervals with a constant number of VMs out, and that number."""
    changes: dict[int, int] = {}
    for outage in outages:
        changes[outage.start_ms] = changes.get(outage.start_ms, 0) + 1
        changes[outage.end_ms] = changes.get(outage.end_ms, 0) - 1
    intervals = []
    out = 0
    for (at_ms, change), (next_ms, _) in pairwise(sorted(changes.items())):
        out += change
        if out:
            intervals.append((at_ms, next_ms, out))
    return intervals


def _application_s(
    history: CampaignHistory, tenant: TenantId, outages: Sequence[VmOutage]
) -> float:
    by_group: dict[GroupId, list[VmOutage]] = {}
    for outage in outages:
        if outage.group is not None:
            by_group.setdefault(outage.group, []).append(outage)
    total_ms = 0
    for group in history.tenants[tenant].anti_affinity:
        if len(group.vms) > group.disturbed_max:
            intervals = outage_intervals(by_group.get(group.id, ()))
            total_ms += sum(e - s for s, e, count in intervals if count > group.disturbed_max)
    return total_ms / 1000
