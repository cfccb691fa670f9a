"""The laws of the reserves, against brute force: after any failure and scaling all VMs fit.

The check runs when hosts leave service and when VMs start to move, for every choice of failing
hosts. It uses the specification only, none of the formulas of the product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.model.event import Event
from equipoise.model.inventory import Tenant
from equipoise.model.quantity import HostId, TenantId, VmId
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSettings, VmCompatibility
from equipoise.model.upgrade.event import (
    BatchDecided,
    IterationStarted,
    ScalingAnswered,
    VmBatchStarted,
)
from equipoise.upgrade.graph.iteration_view import partition_hosts
from upgrade_clusters import (
    UpgradeHarness,
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
"""The duration of the VM moves of an iteration with all recovery, for the reserve."""


@st.composite
def clusters(draw: st.DrawFn) -> UpgradeCampaign:
    """Draw a few hosts, equal or not, and tenants that may scale by their own step and limit."""
    random = Random(draw(st.integers(0, 2**32)))
    capacities = draw(st.lists(st.integers(1, 3), min_size=4, max_size=7))
    if draw(st.booleans()):
        capacities = [max(capacities)] * len(capacities)
    free = list(capacities)
    vms, tenants = [], []
    for number, size in enumerate(draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))):
        with_capacity = [host for host, left in enumerate(free) if left]
        names = [f"t{number}-{count}" for count in range(min(size, len(with_capacity)))]
        for vm, host in zip(
            names, random.sample(with_capacity[: size + 2], len(names)), strict=True
        ):
            free[host] -= 1
            vms.append(a_vm(vm, host + 1, f"t{number}"))
        if names:
            tenant = a_tenant(f"t{number}", names, most=len(names) + draw(st.integers(0, 3)))
            step, cooldown = draw(st.integers(1, 2)), draw(st.sampled_from(COOLDOWNS_S))
            sla = tenant.sla.but(scaling_vms=step, cooldown_s=cooldown)
            tenants.append(tenant.but(sla=sla))
    return a_campaign(
        a_request(a_set("hosts", upgrade_of([f"k{n}" for n in range(1, len(capacities) + 1)]))),
        hosts=[a_host(n, size) for n, size in enumerate(capacities, 1)],
        vms=vms,
        tenants=tenants,
        resources=hypervisors(len(capacities)),
        settings=UpgradeSettings(
            vm_move_s=MOVE_S,
            vm_risk_s=RISK_S,
            failover_hosts=draw(st.integers(0, 2)),
            vms=draw(st.sampled_from(list(VmCompatibility))),
        ),
    )


@dataclass
class Witness:
    """Checks each schedule at its start."""

    harness: UpgradeHarness
    looked_at: int = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, BatchDecided):
            self._hosts_leave({HostId(f"h{vertex.removeprefix('k')}") for vertex in event.batch})
        elif isinstance(event, VmBatchStarted) and not event.why:
            self._vms_move({move.vm: move.target for move in event.batch.moves})
        elif isinstance(event, VmBatchStarted):
            self._vms_make_room({move.vm: move.target for move in event.batch.moves})

    def _hosts_leave(self, out: set[HostId]) -> None:
        if not out:
            return
        state = self.harness.coordinator.state
        host_partitions = partition_hosts(state)
        duration_s = 2 * CHANGE_S  # once for the change, once for its revert
        if not host_partitions.divided:
            hosts = [
                host for host in (*host_partitions.old, *host_partitions.new) if host not in out
            ]
            self._holds(
                hosts, self._placements_now(), self._may_come(state.cluster.tenants, duration_s)
            )
            return
        old = [host for host in host_partitions.old if host not in out]
        placed = self._placements_now()
        on_new = {
            state.cluster.placements[vm].tenant
            for vm, host in placed.items()
            if host in host_partitions.new
        }
        only_old = [
            tenant
            for tenant in state.cluster.tenants
            if tenant not in on_new and state.cluster.vm_counts[tenant]
        ]
        self._holds(old, placed, self._may_come(only_old, duration_s))
        self._all_fit(old, list(host_partitions.new), only_old, duration_s)

    def _all_fit(
        self, old: list[HostId], new: list[HostId], only_old: list[TenantId], duration_s: int
    ) -> None:
        """Check that VMs that scale in the new partition fit there, or else in the old one."""
        state = self.harness.coordinator.state
        placed = self._placements_now()
        free: list[tuple[int, frozenset[str]]] = []
        for host in (*old, *new):
            beside = [
                state.cluster.placements[vm].tenant for vm, there in placed.items() if there == host
            ]
            kinds: frozenset[str] = frozenset(tenant for tenant in beside if tenant is not None)
            # A tenant with VMs in the old partition only does not start VMs in the new one.
            kinds |= frozenset(only_old) if host in new else frozenset()
            free.append((state.cluster.compute_hosts[host].vms_max - len(beside), kinds))
        expected = sorted(
            self._may_come(state.cluster.tenants, duration_s),
            key=lambda tenant: tenant not in only_old,
        )
        assert placeable(expected, free), f"{expected} fit in neither partition"

    def _vms_move(self, targets: dict[VmId, HostId]) -> None:
        """Check that tenants can scale in the new partition, and its hosts can fail."""
        if not targets:  # a tenant scaled after the decision, so no VM can move any more
            return
        state = self.harness.coordinator.state
        host_partitions = partition_hosts(state)
        arrived = {**self._placements_now(), **targets}
        if not host_partitions.divided:
            hosts = [*host_partitions.old, *host_partitions.new]
            self._holds(hosts, arrived, self._may_come(state.cluster.tenants, RISK_S))
            return
        on_new = {
            state.cluster.placements[vm].tenant
            for vm, host in arrived.items()
            if host in host_partitions.new
        }
        there = [tenant for tenant in state.cluster.tenants if tenant in on_new]
        self._holds(list(host_partitions.new), arrived, self._may_come(there, RISK_S))

    def _vms_make_room(self, targets: Mapping[VmId, HostId]) -> None:
        """Check that hosts have capacity for moving VMs, which count on two hosts."""
        state = self.harness.coordinator.state
        moving = [state.cluster.placements[vm].group for vm in targets]
        assert len(moving) == len(set(moving)), "two VMs of a group are disturbed at once"
        both_placements = [*self._placements_now().items(), *targets.items()]
        for host, compute_host in state.cluster.compute_hosts.items():
            groups = [
                state.cluster.placements[vm].group for vm, there in both_placements if there == host
            ]
            assert len(groups) <= compute_host.vms_max
            assert len(groups) == len(set(groups)), "two VMs of a group on one host"

    def _placements_now(self) -> dict[VmId, HostId]:
        placements = self.harness.coordinator.state.cluster.placements.values()
        return {item.vm: item.host for item in placements if item.host is not None}

    def _may_come(self, tenants: Iterable[TenantId], duration_s: int) -> list[str]:
        state = self.harness.coordinator.state
        return [
            tenant
            for tenant in tenants
            for _ in range(
                may_grow(state.cluster.tenants[tenant], state.cluster.vm_counts[tenant], duration_s)
            )
        ]

    def _holds(
        self, hosts: Sequence[HostId], placed: Mapping[VmId, HostId], expected: list[str]
    ) -> None:
        """Check that for every choice of failing hosts, their VMs and expected VMs fit."""
        state = self.harness.coordinator.state
        here = {vm: host for vm, host in placed.items() if host in hosts}
        number = state.settings.failover_hosts if here else 0
        for lost in combinations(hosts, min(number, len(hosts))):
            free: dict[HostId, tuple[int, frozenset[str]]] = {}
            for host in hosts:
                if host not in lost:
                    beside = [
                        state.cluster.placements[vm].tenant
                        for vm, there in here.items()
                        if there == host
                    ]
                    left = state.cluster.compute_hosts[host].vms_max - len(beside)
                    free[host] = left, frozenset(tenant for tenant in beside if tenant is not None)
            restarted = [
                state.cluster.placements[vm].tenant for vm, host in here.items() if host in lost
            ]
            wanted = sorted([*expected, *(tenant for tenant in restarted if tenant is not None)])
            assert placeable(wanted, list(free.values())), f"{wanted} do not fit without {lost}"
        self.looked_at += 1


def may_grow(tenant: Tenant, size: int, duration_s: int) -> int:
    """Return a step at once, and one more for each cooldown that ends in time."""
    times, at_s = 0, 0
    while at_s < duration_s:
        times += 1
        at_s += tenant.sla.cooldown_s
    return max(0, min(tenant.sla.scaling_vms * times, tenant.sla.vms_max - size))


def placeable(wanted: list[str], free: list[tuple[int, frozenset[str]]]) -> bool:
    """Return whether VMs of these tenants fit on the hosts, one per tenant and host."""
    if not wanted:
        return True
    tenant, rest = wanted[0], wanted[1:]
    for index, (capacity, kinds) in enumerate(free):
        if capacity and tenant not in kinds:
            after = [*free]
            after[index] = capacity - 1, kinds | {tenant}
            if placeable(rest, after):
                return True
    return False


@given(campaign=clusters(), seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_all_vms_fit_in_their_partition_after_failures_and_scaling(
    campaign: UpgradeCampaign, seed: int
) -> None:
    """Tenants scale within their SLAs while all hosts change."""
    harness = UpgradeHarness(campaign)
    on_event = Witness(harness)
    harness.watch.append(on_event)
    random = Random(seed)
    scaled: set[str] = set()
    for _ in range(300):
        iterations = len(harness.events(IterationStarted))
        if not harness.step():
            break
        if len(harness.events(IterationStarted)) > iterations:
            scaled = set()
        if random.random() < 0.1 and campaign.cluster.tenants:
            tenant = random.choice(campaign.cluster.tenants)
            if tenant.id not in scaled:
                scaled.add(tenant.id)
                harness.scale(tenant.id, random.choice((-1, 1)) * tenant.sla.scaling_vms)
    assert (
        all(not event.refused for event in harness.events(ScalingAnswered))
        or on_event.looked_at == 0
    )
