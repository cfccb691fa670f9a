"""Spare hosts: how many a request needs beyond what is promised, and are there (5.1.4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.upgrade.request import RequestId
from equipoise.upgrade.methods import spare_hosts
from equipoise.upgrade.scene import scene_of
from equipoise.upgrade.select import spared
from equipoise.upgrade.state import Progress, State


@dataclass(frozen=True, slots=True)
class Spare:
    """What a request needs so that none of its units has to wait for tenants to shrink."""

    request: RequestId
    needed: int
    """For the unit that keeps most hosts off, and for failures on the new side of a division."""
    available: int
    """Hosts that nobody misses, however far the tenants grow within their SLAs."""

    @property
    def enough(self) -> bool:
        """Whether there are so many."""
        return self.available >= self.needed


def spare_for(state: State, request: RequestId, order: int) -> Spare:
    """Reckon the spare hosts of a request that was just taken up, as the ``order``-th."""
    units = [unit for unit in state.units.values() if unit.id.startswith(f"{order}/")]
    sets = [
        one
        for one in state.standings.values()
        if one.order == order and one.progress is Progress.SCHEDULED
    ]
    divides = any(one.divides and one.id not in state.refused for one in sets)
    failover = state.settings.failover_hosts if divides else 0
    available = len(spared(scene_of(state, with_vms=False), (), None))
    return Spare(request, spare_hosts(units, failover_new=failover), available)
