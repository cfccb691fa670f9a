"""Dynamic entitlement: the cluster's capacity divided down the tree of pools.

First demands add up from the VMs to the root, each held between reservation and limit. Then what
there is flows down: at each pool it is divided among its children by shares, nobody below what is
guaranteed and nobody above the demand. If all demands can be met, everybody is entitled to theirs.

Guarantees add up from below as well: pools are expandable, so that one guarantees what is reserved
inside of it even if it reserves less itself. So do the shares of a scalable pool, which follow from
who runs in it. A pool in which nobody runs is not there: nobody could use what it reserves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from equipoise.model.host import Host, HostState
from equipoise.model.pool import Pool, scaled_shares
from equipoise.model.quantity import PoolId, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.place.fill import Claim, fill


class _Controls(NamedTuple):
    """What is guaranteed, what is the most, and the weight when it is scarce."""

    reservation: float
    limit: float
    shares: float


class Resource(NamedTuple):
    """How CPU or memory is asked for."""

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


CPU: Final = Resource(
    of_vm=_cpu,
    of_pool=_cpu,
    demand=lambda vm: vm.demand.cpu_mhz,
    capacity=lambda host: host.usable_cpu_mhz,
)
MEMORY: Final = Resource(
    of_vm=lambda vm: _memory(vm, vm.memory_mib),
    of_pool=lambda pool: _memory(pool, float("inf")),
    demand=lambda vm: vm.demand.memory_mib,
    capacity=lambda host: host.usable_memory_mib,
)


def entitlements(
    hosts: Iterable[Host], vms: Iterable[Vm], pools: Iterable[Pool], resource: Resource
) -> dict[VmId, float]:
    """What each running VM deserves now of what the hosts that are on have together."""
    capacity = sum(resource.capacity(host) for host in hosts if host.state is HostState.ON)
    root = _tree([vm for vm in vms if vm.state is VmState.RUNNING], tuple(pools), resource)
    found: dict[VmId, float] = {}
    _divide(root, capacity, found)
    return found


@dataclass(slots=True)
class _Node:
    """A pool or a VM, with what it and all below it ask for."""

    controls: _Controls
    demand: float
    vm: VmId | None = None
    scalable: bool = False
    guaranteed: float = 0
    children: list[_Node] = field(default_factory=list)


def _tree(vms: Iterable[Vm], pools: tuple[Pool, ...], resource: Resource) -> _Node:
    root = _Node(_Controls(0, float("inf"), 1), 0)
    nodes: dict[PoolId | None, _Node] = {
        pool.id: _Node(resource.of_pool(pool), 0, scalable=pool.scalable) for pool in pools
    }
    for pool in pools:
        nodes.get(pool.parent, root).children.append(nodes[pool.id])
    for vm in vms:
        leaf = _Node(resource.of_vm(vm), resource.demand(vm), vm.id)
        nodes.get(vm.pool, root).children.append(leaf)
    _prune(root)
    _ask(root)
    return root


def _prune(node: _Node) -> bool:
    """Take away pools in which nobody runs, and say whether anybody is left."""
    node.children = [child for child in node.children if _prune(child)]
    return node.vm is not None or bool(node.children)


def _ask(node: _Node) -> None:
    """Add up demands, guarantees and shares, from below.

    What is asked for and what is guaranteed are at least the reservation and at most the limit. A
    limit below the reservation is refused in files; here the limit wins.
    """
    for child in node.children:
        _ask(child)
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


def _divide(node: _Node, amount: float, found: dict[VmId, float]) -> None:
    if node.vm is not None:
        found[node.vm] = amount
        return
    claims = [
        Claim(child.guaranteed, child.demand, child.controls.shares) for child in node.children
    ]
    for child, share in zip(node.children, fill(amount, claims), strict=True):
        _divide(child, share, found)
