"""Dividing by shares once more, for oracles: in chunks as in the paper, and exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import pstdev
from typing import Literal, NamedTuple

from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Pool
from equipoise.model.quantity import PoolId, VmId
from equipoise.model.vm import Vm

Resource = Literal["cpu", "memory"]
HAIR = 1e-9
"""What the last bits of a load may be wrong by."""


class Claim(NamedTuple):
    floor: float
    ceiling: float
    shares: float


def in_chunks(amount: float, claims: Sequence[Claim], chunk: float) -> list[float]:
    """As in the paper: floors first, then chunk by chunk to who has the least for its shares."""
    got = [claim.floor for claim in claims]
    left = amount - sum(got)
    if left < 0:
        return [part * amount / sum(got) for part in got]
    while left > 0:
        hungry = [n for n, claim in enumerate(claims) if got[n] < claim.ceiling]
        if not hungry:
            break
        least = min(hungry, key=lambda n: (got[n] / claims[n].shares, n))
        piece = min(chunk, left, claims[least].ceiling - got[least])
        got[least] += piece
        left -= piece
    return got


def by_level(amount: float, claims: Sequence[Claim]) -> list[float]:
    """The limit of small chunks: every claim gets the same amount per share."""
    floors = sum(claim.floor for claim in claims)
    if amount < floors:
        return [claim.floor * amount / floors for claim in claims]
    if amount >= sum(claim.ceiling for claim in claims):
        return [claim.ceiling for claim in claims]

    def at(level: float) -> list[float]:
        return [min(c.ceiling, max(c.floor, level * c.shares)) for c in claims]

    low, high = 0.0, max(claim.ceiling / claim.shares for claim in claims)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle)) < amount else (low, middle)
    return at(low)


def shares_of(one: Vm | Pool, resource: Resource) -> int:
    return one.cpu.shares if resource == "cpu" else one.memory.shares


def weights(running: Iterable[Vm], pools: Iterable[Pool], resource: Resource) -> dict[VmId, float]:
    """What each running VM counts for in the whole cluster."""
    vms, known = list(running), {pool.id: pool for pool in pools}
    alive: set[PoolId] = set()
    for vm in vms:
        alive.update(chain(vm.pool, known))

    def inside(pool: PoolId) -> float:
        direct = sum(shares_of(vm, resource) for vm in vms if vm.pool == pool)
        return direct + sum(
            beside(known[claimant]) for claimant in alive if known[claimant].parent == pool
        )

    def beside(claimant: Vm | Pool) -> float:
        """What it counts for beside its siblings; a scalable pool, for so much per VM."""
        each = isinstance(claimant, Pool) and claimant.scalable
        return shares_of(claimant, resource) * (inside(PoolId(claimant.id)) / 1000 if each else 1)

    def of(claimant: Vm | Pool) -> float:
        parent = claimant.pool if isinstance(claimant, Vm) else claimant.parent
        if parent is None:
            return beside(claimant)
        return of(known[parent]) * beside(claimant) / inside(parent)

    return {vm.id: of(vm) for vm in vms}


def chain(pool: PoolId | None, known: Mapping[PoolId, Pool]) -> Iterator[PoolId]:
    """A pool and all above it."""
    while pool is not None:
        yield pool
        pool = known[pool].parent


class Tree(NamedTuple):
    """A cluster, a host, a pool in one of them, or a VM."""

    claim: Claim
    vm: VmId | None
    below: tuple[Tree, ...]


def guaranteed(own: float, members: Iterable[Tree], most: float) -> float:
    """What a pool guarantees: expandable, at least what its members are guaranteed."""
    return min(most, max(own, sum(member.claim.floor for member in members)))


def tree(
    claims: Mapping[VmId, Claim], homes: Mapping[VmId, PoolId | None], pools: Sequence[Pool]
) -> Tree:
    """The tree of a host from the claims of its VMs, whose shares are their weights."""
    known = {pool.id: pool for pool in pools}

    def node(pool: PoolId | None) -> Tree:
        here = [Tree(claims[vm], vm, ()) for vm in claims if homes[vm] == pool]
        inner = [child.id for child in pools if child.parent == pool]
        here += [
            node(child) for child in inner if any(child in chain(homes[v], known) for v in claims)
        ]
        ceiling = sum(child.claim.ceiling for child in here)
        shares = sum(child.claim.shares for child in here)
        floor = guaranteed(0, here, ceiling)  # nothing is reserved for pools themselves
        return Tree(Claim(floor, ceiling, shares), None, tuple(here))

    return node(None)


def cluster_tree(running: Sequence[Vm], pools: Sequence[Pool], resource: Resource) -> Tree:
    """The tree of a whole cluster, where reservations count without being asked for."""

    def leaf(vm: Vm) -> Tree:
        least, most = bounds_of(vm, resource)
        asked = vm.demand.cpu_mhz if resource == "cpu" else vm.demand.memory_mib
        if resource == "memory":
            most = min(most, vm.memory_mib)
        claim = Claim(min(least, most), min(max(least, asked), most), shares_of(vm, resource))
        return Tree(claim, vm.id, ())

    def inside(pool: PoolId | None) -> tuple[Tree, ...]:
        inner = [node(child) for child in pools if child.parent == pool]
        return (
            *(leaf(vm) for vm in running if vm.pool == pool),
            *(child for child in inner if child),
        )

    def node(pool: Pool) -> Tree | None:
        below = inside(pool.id)
        if not below:  # the pool has no VMs
            return None
        least, most = bounds_of(pool, resource)
        asked = max(least, sum(child.claim.ceiling for child in below))
        each = sum(child.claim.shares for child in below) / 1000 if pool.scalable else 1
        floor, shares = guaranteed(least, below, most), shares_of(pool, resource) * each
        return Tree(Claim(floor, min(asked, most), shares), None, below)

    return Tree(Claim(0, float("inf"), 1), None, inside(None))


def bounds_of(one: Vm | Pool, resource: Resource) -> tuple[float, float]:
    """Reservation and limit."""
    cpu, memory = one.cpu, one.memory
    least = cpu.reservation_mhz if resource == "cpu" else memory.reservation_mib
    most = cpu.limit_mhz if resource == "cpu" else memory.limit_mib
    return least, float("inf") if most is None else most


def divided(
    amount: float, node: Tree, divide: Callable[[float, Sequence[Claim]], list[float]] = by_level
) -> dict[VmId, float]:
    """What each VM gets, level by level."""
    if node.vm is not None:
        return {node.vm: amount}
    got: dict[VmId, float] = {}
    parts = divide(amount, [child.claim for child in node.below])
    for child, part in zip(node.below, parts, strict=True):
        got |= divided(part, child, divide)
    return got


def is_tight(loads: Sequence[float]) -> bool:
    """Whether a host would have to give more than it has."""
    return max(loads, default=0.0) > 1 + HAIR


def spread(
    cpu: Sequence[float], memory: Sequence[float], tight_lately: tuple[bool, bool] = (False, False)
) -> float:
    """How unevenly hosts are loaded.

    What was tight lately counts as tight until every host has a tenth of it to spare.
    """
    if not cpu:
        return 0.0
    of_cpu_lately, of_memory_lately = tight_lately
    tight = (
        is_tight(cpu) or (of_cpu_lately and max(cpu) > 0.9),
        is_tight(memory) or (of_memory_lately and max(memory) > 0.9),
    )
    of_cpu, of_memory = {(True, False): (1, 1 / 3), (False, True): (1 / 3, 1)}.get(
        tight, (2 / 3, 2 / 3)
    )
    return of_cpu * pstdev(cpu) + of_memory * pstdev(memory)


def watts_saved(host: Host) -> float:
    """What a host that sleeps would draw more if it were on and had nothing to do."""
    if host.state is not HostState.STANDBY or not any(curve_of(host)):
        return 0
    return curve_of(host)[0] - watts_of(host, 0)


def curve_of(host: Host) -> tuple[int, ...]:
    """What a host draws when it is on, from no use to full use."""
    power = host.power
    return power.managed_watts if power.managed else (power.idle_watts, power.peak_watts)


def watts_of(host: Host, used_mhz: float) -> float:
    """What a host draws."""
    power = host.power
    if host.state is HostState.FAILED:
        return 0
    if host.state is HostState.STANDBY:
        return power.standby_watts
    if host.state is HostState.MAINTENANCE:
        return power.idle_watts
    curve = curve_of(host)
    at = min(1.0, used_mhz / host.cpu_mhz) * (len(curve) - 1)
    left = min(int(at), len(curve) - 2)
    return curve[left] + (at - left) * (curve[left + 1] - curve[left])
