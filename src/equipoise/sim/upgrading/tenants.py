"""Tenants that scale by chance, within what they were promised, while an upgrade goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from equipoise.model.event import Event
from equipoise.model.quantity import TenantId
from equipoise.model.tenant import Tenant
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.event import (
    BatchStarted,
    CampaignEnded,
    ScalingAnswered,
    ScalingAsked,
    VmBatchStarted,
)

IN_VAIN_MAX: Final = 1_000
"""After so many scalings in a row of which nothing came, tenants will not get it going again."""


class Autoscalers:
    """One autoscaler per tenant: up or down by one step, not sooner than its cooldown allows."""

    def __init__(self, campaign: Campaign) -> None:
        self._mean_ms = campaign.story.scaling_ms_mean
        self._tenants = {one.id: one for one in campaign.cluster.tenants}
        self._sizes: dict[TenantId, int] = dict.fromkeys(self._tenants, 0)
        self._chances = {one: Random(f"{campaign.seed} tenant {one}") for one in self._tenants}
        self._ahead: dict[TenantId, ScalingAsked] = {}
        """What each of them asks for next."""
        self._in_vain = 0
        self._over = False
        for vm in campaign.cluster.vms:
            if vm.tenant is not None:
                self._sizes[vm.tenant] += 1

    def first(self) -> Iterator[tuple[int, ScalingAsked]]:
        """The first scaling of each tenant, if tenants scale by chance."""
        if self._mean_ms:
            for tenant in self._tenants.values():
                event = self._ask(tenant, 0)
                yield event.at_ms, event

    def next(self, last: ScalingAsked) -> ScalingAsked | None:
        """The scaling that follows one that was asked for by chance, not by the story."""
        if self._over or self._ahead.get(last.tenant) != last:
            return None
        return self._ask(self._tenants[last.tenant], last.at_ms)

    def _ask(self, tenant: Tenant, now_ms: int) -> ScalingAsked:
        chance, sla = self._chances[tenant.id], tenant.sla
        wait_ms = max(sla.cooldown_s * 1000, round(chance.expovariate(1 / self._mean_ms)))
        size = self._sizes[tenant.id]
        up = size <= sla.vms_min or (size < sla.vms_max and chance.random() < 1 / 2)
        step = sla.scaling_vms if up else -sla.scaling_vms
        asked = ScalingAsked(at_ms=now_ms + wait_ms + 1, tenant=tenant.id, vms=step)
        self._ahead[tenant.id] = asked
        return asked

    def all_in_vain(self, coming: Iterable[Event]) -> bool:
        """Whether nothing is to come but scalings by chance, and so many of them led nowhere."""
        return self._in_vain >= IN_VAIN_MAX and all(
            isinstance(one, ScalingAsked) and self._ahead.get(one.tenant) == one for one in coming
        )

    def witness(self, event: Event) -> None:
        """Remember how large a tenant is now, and since when nothing was begun."""
        if isinstance(event, ScalingAnswered):
            self._sizes[event.tenant] += len(event.added) - len(event.removed)
            self._in_vain += 1
        elif isinstance(event, BatchStarted | VmBatchStarted):
            self._in_vain = 0
        elif isinstance(event, CampaignEnded):
            self._over = True
