"""Room: what is kept free for tenants that grow and for hosts that fail.

Two ways to reckon it: by whole empty hosts, as equations 3 to 6 have it, or by placing every VM
that a tenant may still ask for, host by host.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from equipoise.model.quantity import GroupId, HostId, TenantId
from equipoise.upgrade.state import State


def up_to(amount: int, part: int) -> int:
    """How many parts an amount takes, the last one perhaps not whole."""
    return -(-amount // part)


def steps(state: State, tenant: TenantId, lasting_s: int) -> int:
    """By how many VMs a tenant may grow within a time, whatever its limit."""
    sla = state.tenants[tenant].sla
    return sla.scaling_vms * (up_to(lasting_s, sla.cooldown_s) if sla.cooldown_s else 1)


def largest_step(state: State, lasting_s: int) -> int:
    """S of equation 3: the largest growth of any tenant within a time."""
    return max((steps(state, one, lasting_s) for one in state.tenants), default=0)


def growth(state: State, tenants: Iterable[TenantId], lasting_s: int | None) -> dict[TenantId, int]:
    """By how many VMs each tenant may grow within a time, up to what it was promised.

    Without a time: as far as it was promised.
    """
    most = {one: left_of(state, one) for one in tenants}
    if lasting_s is not None:
        most = {one: min(steps(state, one, lasting_s), more) for one, more in most.items()}
    return {one: more for one, more in most.items() if more > 0}


def left_of(state: State, tenant: TenantId) -> int:
    """How many VMs a tenant may still ask for."""
    return max(0, state.tenants[tenant].sla.vms_max - state.sizes[tenant])


def whole_hosts(state: State, hosts: Sequence[HostId], tenants: int, lasting_s: int) -> int:
    """Equation 5: how many hosts are kept empty for tenants that grow."""
    if not tenants or not hosts:
        return 0
    least = min(state.places[one].places for one in hosts)
    return largest_step(state, lasting_s) * up_to(tenants, least)


def growing_group(state: State, tenant: TenantId) -> GroupId | None:
    """The anti-affinity group that a tenant's new VMs join."""
    groups = state.tenants[tenant].anti_affinity
    return groups[0].id if groups else None


class Seating:
    """Free places on some hosts, and which groups are on which host already."""

    def __init__(self, state: State, hosts: Iterable[HostId]) -> None:
        """The places as they are, with those taken to which VMs are on their way."""
        self._state = state
        self.free: dict[HostId, int] = {one: state.free(one) for one in hosts}
        self._groups: dict[HostId, set[GroupId]] = {}
        for vm, target in state.on_their_way():
            if target in self.free:
                self.take(target, state.seats[vm].group)

    def add(self, hosts: Iterable[HostId]) -> None:
        """Take further hosts into account, as they are."""
        self.free |= {one: self._state.free(one) for one in hosts}

    def _on(self, host: HostId) -> set[GroupId]:
        """The groups on a host, looked up when somebody asks."""
        found = self._groups.get(host)
        if found is None:
            seats = (self._state.seats[vm] for vm in self._state.residents.get(host, ()))
            found = {seat.group for seat in seats if seat.group is not None}
            self._groups[host] = found
        return found

    def takes(self, host: HostId, group: GroupId | None) -> bool:
        """Whether a VM of a group could run on a host."""
        return self.free[host] > 0 and (group is None or group not in self._on(host))

    def take(self, host: HostId, group: GroupId | None) -> None:
        """Let a VM of a group run on a host."""
        self.free[host] -= 1
        if group is not None:
            self._on(host).add(group)


@dataclass(frozen=True, slots=True)
class Reserve:
    """Which hosts are kept: for growth, and for failures; ``short`` if that is not enough."""

    kept: dict[HostId, None]
    short: bool
    missing: dict[TenantId, int]
    """How many VMs that a tenant may ask for found no place."""


def reserve(
    state: State,
    seating: Seating,
    wanted: dict[TenantId, int],
    *,
    busy: Sequence[HostId],
    empty: Sequence[HostId],
    failover: int,
) -> Reserve:
    """Place all that may be asked for: first where VMs run, then on as few empty hosts as will do.

    ``empty`` hosts are taken from the end, so that those at the beginning stay free for a change.
    ``failover`` of them are kept for hosts that fail: each takes whatever could be on one by then.
    """
    kept: dict[HostId, None] = {}
    homeless: dict[TenantId, int] = {}
    more_vms = sum(wanted.values())
    fullest = max(
        (
            min(state.places[one].places, state.places[one].places - seating.free[one] + more_vms)
            for one in busy
        ),
        default=0,
    )
    spare = [one for one in reversed(empty) if state.places[one].places >= fullest]
    for host in spare[:failover]:
        kept[host] = None
    short = len(kept) < failover and bool(busy)
    if short:  # the largest there are, which is better than nothing
        kept |= dict.fromkeys([*reversed(empty)][:failover])
    # A host that is kept for growth may fail as well: no more on it than can be taken elsewhere.
    taken_back = min((state.places[one].places for one in kept), default=None)
    open_ = deque(one for one in busy if seating.free[one] > 0)
    rest = [one for one in reversed(empty) if one not in kept]
    for tenant, more in sorted(wanted.items(), key=lambda one: -one[1]):
        missing = more - _seat_some(seating, open_, growing_group(state, tenant), more)
        while missing > 0 and rest:
            host = rest.pop(0)
            kept[host] = None
            if taken_back is not None:
                seating.free[host] = min(seating.free[host], taken_back)
            open_.append(host)
            missing -= _seat_some(seating, [host], growing_group(state, tenant), 1)
        if missing > 0:
            short, homeless[tenant] = True, missing
        while open_ and seating.free[open_[0]] <= 0:
            open_.popleft()
    return Reserve(kept, short, homeless)


def _seat_some(
    seating: Seating, hosts: Iterable[HostId], group: GroupId | None, number: int
) -> int:
    """Place VMs of a group, at most so many; of a group, each on a host of its own."""
    seated = 0
    for host in hosts:
        while seated < number and seating.takes(host, group):
            seating.take(host, group)
            seated += 1
        if seated == number:
            break
    return seated
