"""The penalties of a campaign: how often and how long tenants had less than they had (6.1.3).

A violation is a stretch of time in which some VM of a tenant does not answer. Its delay penalty
counts seconds, its proportional penalty seconds times missing VMs. An application goes down when
more VMs of an anti-affinity group are out at once than it was said to survive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from equipoise.model.quantity import GroupId, TenantId
from equipoise.report.upgrades.course import Course, Outage


@dataclass(frozen=True, slots=True)
class TenantPenalty:
    """What one tenant went through."""

    tenant: TenantId
    violations: int
    impacted: tuple[int, ...]
    """Of each violation: how many VMs were out at the worst moment."""
    violation_s: float
    proportional_s: float
    """Seconds, each as often as VMs were missing."""
    application_s: float
    """How long too many VMs of a group were out at once; only where VMs protect each other."""
    refused: int
    """How many VMs it was promised and did not get."""

    @property
    def delay_penalty(self) -> float:
        """In units of q, the price of a second."""
        return self.violation_s

    @property
    def proportional_penalty(self) -> float:
        """In units of q', the price of a VM's second."""
        return self.proportional_s


@dataclass(frozen=True, slots=True)
class Penalties:
    """A whole campaign."""

    duration_s: float
    moves: int
    tenants: tuple[TenantPenalty, ...]

    @property
    def violations(self) -> tuple[int, int]:
        """The fewest and the most violations of a tenant."""
        return _least_and_most([one.violations for one in self.tenants])

    @property
    def impacted(self) -> tuple[int, int]:
        """The fewest and the most VMs that were out in a violation."""
        return _least_and_most([count for one in self.tenants for count in one.impacted])

    @property
    def violation_s(self) -> float:
        """The mean over all tenants, impacted or not; so are the two below."""
        return fmean([one.violation_s for one in self.tenants] or [0.0])

    @property
    def proportional_s(self) -> float:
        """Seconds of missing VMs."""
        return fmean([one.proportional_s for one in self.tenants] or [0.0])

    @property
    def application_s(self) -> float:
        """Seconds without the application, of tenants whose VMs protect each other."""
        return fmean([one.application_s for one in self.tenants] or [0.0])

    @property
    def refused(self) -> int:
        """How many VMs were promised and not given."""
        return sum(one.refused for one in self.tenants)


def penalties_of(course: Course) -> Penalties:
    """Add up the outages of a campaign."""
    mine: dict[TenantId, list[Outage]] = {tenant: [] for tenant in course.tenants}
    for outage in course.outages:
        mine[outage.tenant].append(outage)
    refused = dict.fromkeys(course.tenants, 0)
    for _, tenant, count in course.refused:
        refused[tenant] += count
    tenants = tuple(_tenant(course, one, mine[one], refused[one]) for one in course.tenants)
    return Penalties(course.end_ms / 1000, course.moves, tenants)


def _tenant(
    course: Course, tenant: TenantId, outages: Sequence[Outage], refused: int
) -> TenantPenalty:
    stretches = out_at_once(outages)
    violations: list[int] = []
    last_ms = -1
    for start_ms, end_ms, count in stretches:
        if start_ms == last_ms:
            violations[-1] = max(violations[-1], count)
        else:
            violations.append(count)
        last_ms = end_ms
    return TenantPenalty(
        tenant,
        len(violations),
        tuple(violations),
        sum(end - start for start, end, _ in stretches) / 1000,
        sum((end - start) * count for start, end, count in stretches) / 1000,
        _application_s(course, tenant, outages),
        refused,
    )


def out_at_once(outages: Sequence[Outage]) -> list[tuple[int, int, int]]:
    """The stretches of time in which the same number of VMs is out, and that number."""
    changes: dict[int, int] = {}
    for one in outages:
        changes[one.start_ms] = changes.get(one.start_ms, 0) + 1
        changes[one.end_ms] = changes.get(one.end_ms, 0) - 1
    found = []
    out = 0
    for (at_ms, change), (next_ms, _) in pairwise(sorted(changes.items())):
        out += change
        if out:
            found.append((at_ms, next_ms, out))
    return found


def _application_s(course: Course, tenant: TenantId, outages: Sequence[Outage]) -> float:
    by_group: dict[GroupId, list[Outage]] = {}
    for one in outages:
        if one.group is not None:
            by_group.setdefault(one.group, []).append(one)
    total_ms = 0
    for group in course.tenants[tenant].anti_affinity:
        if len(group.vms) > group.disturbed_max:
            stretches = out_at_once(by_group.get(group.id, ()))
            total_ms += sum(e - s for s, e, count in stretches if count > group.disturbed_max)
    return total_ms / 1000


def _least_and_most(counts: Sequence[int]) -> tuple[int, int]:
    return (min(counts), max(counts)) if counts else (0, 0)
