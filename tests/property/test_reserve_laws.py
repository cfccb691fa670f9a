"""The laws of what is kept free, against brute force: whatever fails and grows finds a place.

Looked at in the moment in which it is decided that hosts leave service, or VMs begin to move, for
every choice of hosts that may fail, and from the words of the specification alone: none of the sums
of the product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.model.event import Event
from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.tenant import Tenant
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.event import (
    BatchDecided,
    IterationBegan,
    ScalingAnswered,
    VmBatchStarted,
)
from equipoise.model.upgrade.settings import Mixing, UpgradeSettings
from equipoise.upgrade.scene import look_at_sides
from upgrade_worlds import (
    Stage,
    a_campaign,
    a_host,
    a_request,
    a_set,
    a_tenant,
    a_vm,
    hypervisors,
    upgrade_of,
)

COOLDOWNS_S = (7, 20, 100)
CHANGE_S = 10
MOVE_S = 5
RISK_S = 20
"""How long the VMs of an iteration take with all recovery, as far as the reserve goes."""


@st.composite
def clusters(draw: st.DrawFn) -> Campaign:
    """A few hosts, alike or not, and tenants that may grow, each by its own step and limit."""
    chance = Random(draw(st.integers(0, 2**32)))
    places = draw(st.lists(st.integers(1, 3), min_size=4, max_size=7))
    if draw(st.booleans()):
        places = [max(places)] * len(places)
    free = list(places)
    vms, tenants = [], []
    for number, size in enumerate(draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))):
        roomy = [host for host, left in enumerate(free) if left]
        own = [f"t{number}-{count}" for count in range(min(size, len(roomy)))]
        for vm, host in zip(own, chance.sample(roomy[: size + 2], len(own)), strict=True):
            free[host] -= 1
            vms.append(a_vm(vm, host + 1, f"t{number}"))
        if own:
            tenant = a_tenant(f"t{number}", own, most=len(own) + draw(st.integers(0, 3)))
            step, cooldown = draw(st.integers(1, 2)), draw(st.sampled_from(COOLDOWNS_S))
            sla = tenant.sla.but(scaling_vms=step, cooldown_s=cooldown)
            tenants.append(tenant.but(sla=sla))
    return a_campaign(
        a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, len(places) + 1)]))),
        hosts=[a_host(n, size) for n, size in enumerate(places, 1)],
        vms=vms,
        tenants=tenants,
        resources=hypervisors(len(places)),
        settings=UpgradeSettings(
            vm_move_s=MOVE_S,
            vm_risk_s=RISK_S,
            failover_hosts=draw(st.integers(0, 2)),
            vms=draw(st.sampled_from(list(Mixing))),
        ),
    )


@dataclass
class Witness:
    """Looks at each schedule as it starts."""

    stage: Stage
    looked_at: int = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, BatchDecided):
            self._hosts_leave({HostId(f"h{one.removeprefix('k')}") for one in event.batch})
        elif isinstance(event, VmBatchStarted) and not event.why:
            self._vms_move({move.vm: move.target for move in event.batch.moves})
        elif isinstance(event, VmBatchStarted):
            self._vms_make_room({move.vm: move.target for move in event.batch.moves})

    def _hosts_leave(self, out: set[HostId]) -> None:
        if not out:
            return
        state = self.stage.coordinator.state
        sides = look_at_sides(state)
        lasts_s = 2 * CHANGE_S  # once for the change, once for taking it back
        if not sides.divided:
            hosts = [one for one in (*sides.old, *sides.new) if one not in out]
            self._holds(hosts, self._lie(), self._may_come(state.tenants, lasts_s))
            return
        old = [one for one in sides.old if one not in out]
        lie = self._lie()
        on_new = {state.seats[vm].tenant for vm, host in lie.items() if host in sides.new}
        only_old = [one for one in state.tenants if one not in on_new and state.sizes[one]]
        self._holds(old, lie, self._may_come(only_old, lasts_s))
        self._all_fit(old, list(sides.new), only_old, lasts_s)

    def _all_fit(
        self, old: list[HostId], new: list[HostId], only_old: list[TenantId], lasts_s: int
    ) -> None:
        """Who may grow on the new side, or begins anew, finds a place there or else on the old."""
        state = self.stage.coordinator.state
        lie = self._lie()
        free: list[tuple[int, frozenset[str]]] = []
        for host in (*old, *new):
            beside = [state.seats[vm].tenant for vm, there in lie.items() if there == host]
            kinds: frozenset[str] = frozenset(one for one in beside if one is not None)
            # Nobody who has VMs on the old side only goes to the new one.
            kinds |= frozenset(only_old) if host in new else frozenset()
            free.append((state.places[host].places - len(beside), kinds))
        come = sorted(self._may_come(state.tenants, lasts_s), key=lambda one: one not in only_old)
        assert placeable(come, free), f"{come} find no place on either side"

    def _vms_move(self, targets: dict[VmId, HostId]) -> None:
        """Tenants who come to the new side can grow there, and hosts of it can fail."""
        if not targets:  # somebody grew after it was decided, and nobody can move any more
            return
        state = self.stage.coordinator.state
        sides = look_at_sides(state)
        arrived = {**self._lie(), **targets}
        if not sides.divided:
            hosts = [*sides.old, *sides.new]
            self._holds(hosts, arrived, self._may_come(state.tenants, RISK_S))
            return
        on_new = {state.seats[vm].tenant for vm, host in arrived.items() if host in sides.new}
        there = [one for one in state.tenants if one in on_new]
        self._holds(list(sides.new), arrived, self._may_come(there, RISK_S))

    def _vms_make_room(self, targets: Mapping[VmId, HostId]) -> None:
        """VMs on their way take two places, and hosts do not take more than they can."""
        state = self.stage.coordinator.state
        moving = [state.seats[vm].group for vm in targets]
        assert len(moving) == len(set(moving)), "two VMs of a group are disturbed at once"
        twice = [*self._lie().items(), *targets.items()]
        for host, place in state.places.items():
            groups = [state.seats[vm].group for vm, there in twice if there == host]
            assert len(groups) <= place.places
            assert len(groups) == len(set(groups)), "two VMs of a group on one host"

    def _lie(self) -> dict[VmId, HostId]:
        seats = self.stage.coordinator.state.seats.values()
        return {seat.vm: seat.host for seat in seats if seat.host is not None}

    def _may_come(self, tenants: Iterable[TenantId], lasts_s: int) -> list[str]:
        state = self.stage.coordinator.state
        return [
            one
            for one in tenants
            for _ in range(may_grow(state.tenants[one], state.sizes[one], lasts_s))
        ]

    def _holds(self, hosts: Sequence[HostId], lie: Mapping[VmId, HostId], come: list[str]) -> None:
        """For every choice of hosts that fail, their VMs and those that come find places."""
        state = self.stage.coordinator.state
        here = {vm: host for vm, host in lie.items() if host in hosts}
        number = state.settings.failover_hosts if here else 0
        for lost in combinations(hosts, min(number, len(hosts))):
            free: dict[HostId, tuple[int, frozenset[str]]] = {}
            for host in hosts:
                if host not in lost:
                    beside = [state.seats[vm].tenant for vm, there in here.items() if there == host]
                    left = state.places[host].places - len(beside)
                    free[host] = left, frozenset(one for one in beside if one is not None)
            again = [state.seats[vm].tenant for vm, host in here.items() if host in lost]
            wanted = sorted([*come, *(one for one in again if one is not None)])
            assert placeable(wanted, list(free.values())), f"{wanted} find no place without {lost}"
        self.looked_at += 1


def may_grow(tenant: Tenant, size: int, lasts_s: int) -> int:
    """A step at once, and one more each time the cooldown is over before the end."""
    times, at_s = 0, 0
    while at_s < lasts_s:
        times += 1
        at_s += tenant.sla.cooldown_s
    return max(0, min(tenant.sla.scaling_vms * times, tenant.sla.vms_max - size))


def placeable(wanted: list[str], free: list[tuple[int, frozenset[str]]]) -> bool:
    """Whether VMs of these tenants fit on hosts with so many places, none beside its own kind."""
    if not wanted:
        return True
    one, rest = wanted[0], wanted[1:]
    for place, (left, kinds) in enumerate(free):
        if left and one not in kinds:
            after = [*free]
            after[place] = left - 1, kinds | {one}
            if placeable(rest, after):
                return True
    return False


@given(campaign=clusters(), seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_whatever_may_fail_and_grow_finds_a_place_on_its_side(
    campaign: Campaign, seed: int
) -> None:
    """Tenants grow and shrink within their SLAs while all hosts are changed."""
    stage = Stage(campaign)
    witness = Witness(stage)
    stage.watch.append(witness)
    chance = Random(seed)
    grown: set[str] = set()
    for _ in range(300):
        began = len(stage.events(IterationBegan))
        if not stage.step():
            break
        if len(stage.events(IterationBegan)) > began:
            grown = set()
        if chance.random() < 0.1 and campaign.cluster.tenants:
            tenant = chance.choice(campaign.cluster.tenants)
            if tenant.id not in grown:
                grown.add(tenant.id)
                stage.scale(tenant.id, chance.choice((-1, 1)) * tenant.sla.scaling_vms)
    assert all(not one.refused for one in stage.events(ScalingAnswered)) or witness.looked_at == 0
