"""The oracle of entitlements: a short recursion in plain Python.

Demands add up from the VMs to the root, each between reservation and limit. Then the capacity is
divided down the tree: each pool divides by shares, at least the guarantee and at most the demand.
Guarantees add up from below, because pools are expandable. A pool without running VMs is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from equipoise.capacity.waterfill import ShareClaim, fill_by_shares
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Pool, scaled_shares
from equipoise.model.quantity import PoolId, VmId
from equipoise.model.vm import Vm, VmState


class _Controls(NamedTuple):
    """Reservation, limit and shares."""

    reservation: float
    limit: float
    shares: float


class EntitlementResource(NamedTuple):
    """How CPU or memory is read."""

    of_vm: Callable[[Vm], _Controls]
    of_pool: Callable[[Pool], _Controls]
    demand: Callable[[Vm], float]
    capacity: Callable[[Host], float]


def _cpu(claimant: Vm | Pool) -> _Controls:
    claims = claimant.cpu
    limit = float("inf") if claims.limit_mhz is None else claims.limit_mhz
    return _Controls(claims.reservation_mhz, limit, claims.shares)


def _memory(claimant: Vm | Pool, most: float) -> _Controls:
    claims = claimant.memory
    limit = most if claims.limit_mib is None else min(most, claims.limit_mib)
    return _Controls(claims.reservation_mib, limit, claims.shares)


CPU: Final = EntitlementResource(
    of_vm=_cpu,
    of_pool=_cpu,
    demand=lambda vm: vm.demand.cpu_mhz,
    capacity=lambda host: host.usable_cpu_mhz,
)
MEMORY: Final = EntitlementResource(
    of_vm=lambda vm: _memory(vm, vm.memory_mib),
    of_pool=lambda pool: _memory(pool, float("inf")),
    demand=lambda vm: vm.demand.memory_mib,
    capacity=lambda host: host.usable_memory_mib,
)


def entitlements(
    hosts: Iterable[Host], vms: Iterable[Vm], pools: Iterable[Pool], resource: EntitlementResource
) -> dict[VmId, float]:
    """Return the entitlement of each running VM to the capacity of the hosts that are on."""
    capacity = sum(resource.capacity(host) for host in hosts if host.state is HostState.ON)
    root = _tree([vm for vm in vms if vm.state is VmState.RUNNING], tuple(pools), resource)
    amounts: dict[VmId, float] = {}
    _divide(root, capacity, amounts)
    return amounts


@dataclass(slots=True)
class _ClaimNode:
    """A pool or a VM, with the sums over all below it."""

    controls: _Controls
    demand: float
    vm: VmId | None = None
    scalable: bool = False
    guaranteed: float = 0
    children: list[_ClaimNode] = field(default_factory=list)


def _tree(vms: Iterable[Vm], pools: tuple[Pool, ...], resource: EntitlementResource) -> _ClaimNode:
    root = _ClaimNode(_Controls(0, float("inf"), 1), 0)
    nodes: dict[PoolId | None, _ClaimNode] = {
        pool.id: _ClaimNode(resource.of_pool(pool), 0, scalable=pool.scalable) for pool in pools
    }
    for pool in pools:
        nodes.get(pool.parent, root).children.append(nodes[pool.id])
    for vm in vms:
        leaf = _ClaimNode(resource.of_vm(vm), resource.demand(vm), vm.id)
        nodes.get(vm.pool, root).children.append(leaf)
    _prune(root)
    _sum_demands(root)
    return root


def _prune(node: _ClaimNode) -> bool:
    """Remove pools without running VMs; return whether a VM is left."""
    node.children = [child for child in node.children if _prune(child)]
    return node.vm is not None or bool(node.children)


def _sum_demands(node: _ClaimNode) -> None:
    """Add up demands, guarantees and shares from below.

    Demand and guarantee are at least the reservation and at most the limit. Files with a limit
    below the reservation are refused; here the limit wins.
    """
    for child in node.children:
        _sum_demands(child)
    if node.vm is None:
        node.demand = sum(child.demand for child in node.children)
        node.guaranteed = sum(child.guaranteed for child in node.children)
    if node.scalable:
        inside = sum(child.controls.shares for child in node.children)
        shares = scaled_shares(node.controls.shares, inside)
        node.controls = node.controls._replace(shares=shares)
    reservation, limit, _ = node.controls
    node.demand = min(max(node.demand, reservation), limit)
    node.guaranteed = min(max(node.guaranteed, reservation), limit)


def _divide(node: _ClaimNode, amount: float, amounts: dict[VmId, float]) -> None:
    if node.vm is not None:
        amounts[node.vm] = amount
        return
    claims = [
        ShareClaim(child.guaranteed, child.demand, child.controls.shares) for child in node.children
    ]
    for child, share in zip(node.children, fill_by_shares(amount, claims), strict=True):
        _divide(child, share, amounts)
