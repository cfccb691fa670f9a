"""Tenants that scale at random times during an upgrade, within their SLA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from equipoise.model.event import Event
from equipoise.model.inventory import Tenant
from equipoise.model.quantity import TenantId
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.event import (
    BatchStarted,
    CampaignEnded,
    ScalingAnswered,
    ScalingRequested,
    VmBatchStarted,
)

IDLE_SCALINGS_MAX: Final = 1_000
"""After so many scalings without a new batch, scaling will not restart a campaign that waits."""


class TenantAutoscalers:
    """One autoscaler per tenant: up or down by one step, not sooner than its cooldown allows."""

    def __init__(self, campaign: UpgradeCampaign) -> None:
        self._mean_ms = campaign.simulation.scaling_ms_mean
        self._tenants = {tenant.id: tenant for tenant in campaign.cluster.tenants}
        self._sizes: dict[TenantId, int] = dict.fromkeys(self._tenants, 0)
        self._rngs = {id_: Random(f"{campaign.seed} tenant {id_}") for id_ in self._tenants}
        self._next_requests: dict[TenantId, ScalingRequested] = {}
        """The next random scaling of each tenant."""
        self._idle_scalings = 0
        self._has_ended = False
        for vm in campaign.cluster.vms:
            if vm.tenant is not None:
                self._sizes[vm.tenant] += 1

    def first(self) -> Iterator[tuple[int, ScalingRequested]]:
        """Yield the first random scaling of each tenant, if the campaign has random scaling."""
        if self._mean_ms:
            for tenant in self._tenants.values():
                event = self._draw_request(tenant, 0)
                yield event.at_ms, event

    def next(self, last: ScalingRequested) -> ScalingRequested | None:
        """Return the scaling after a random one; ``None`` after a scheduled one or at the end."""
        if self._has_ended or self._next_requests.get(last.tenant) != last:
            return None
        return self._draw_request(self._tenants[last.tenant], last.at_ms)

    def _draw_request(self, tenant: Tenant, now_ms: int) -> ScalingRequested:
        rng, sla = self._rngs[tenant.id], tenant.sla
        wait_ms = max(sla.cooldown_s * 1000, round(rng.expovariate(1 / self._mean_ms)))
        size = self._sizes[tenant.id]
        up = size <= sla.vms_min or (size < sla.vms_max and rng.random() < 1 / 2)
        step = sla.scaling_vms if up else -sla.scaling_vms
        request = ScalingRequested(at_ms=now_ms + wait_ms + 1, tenant=tenant.id, vms=step)
        self._next_requests[tenant.id] = request
        return request

    def only_idle_scalings_left(self, coming: Iterable[Event]) -> bool:
        """Return whether only random scalings are to come, and many had no effect.

        Such a campaign is stuck. Random scalings go on for ever, so it would never end.
        """
        return self._idle_scalings >= IDLE_SCALINGS_MAX and all(
            isinstance(event, ScalingRequested) and self._next_requests.get(event.tenant) == event
            for event in coming
        )

    def on_event(self, event: Event) -> None:
        """Update the size of a tenant, and the number of scalings since the last batch."""
        if isinstance(event, ScalingAnswered):
            self._sizes[event.tenant] += len(event.added) - len(event.removed)
            self._idle_scalings += 1
        elif isinstance(event, BatchStarted | VmBatchStarted):
            self._idle_scalings = 0
        elif isinstance(event, CampaignEnded):
            self._has_ended = True
