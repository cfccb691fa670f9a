"""Nodes as hosts and pods as VMs: the model that placement and balance work on.

A core counts as 1,000 MHz, so that a thousandth of a core is one MHz. Requests are reservations and
the demand. All other resources are named resources of the host.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

from equipoise.adapters.kubernetes.client.pod_view import (
    NodeView,
    PodView,
    are_apart,
    static_refusal,
)
from equipoise.model.host import Host, HostReserve
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import (
    ID_PATTERN,
    OVERCOMMIT_MAX,
    HostId,
    ResourceName,
    RuleId,
    VmId,
)
from equipoise.model.rule import KeepApart, Rule, StayWithin
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from equipoise.sim.pods.spec import CPU, MEMORY

MHZ_PER_CORE: Final = 1000
_MIB: Final = 2**20
_AMOUNT_MAX: Final = 10**12
_ID: Final = re.compile(ID_PATTERN)
_ID_BEGIN: Final = 100
_MOVABLE: Final = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})
"""Kinds of owners that create a pod again at once when it is evicted, and lose no work."""


def object_id(name: str) -> str:
    """Return an id of the model for a name of Kubernetes, which may be longer."""
    if _ID.fullmatch(name):
        return name
    return f"{name[:_ID_BEGIN]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def host_id(node: NodeView) -> HostId:
    """Return the id of a node as a host."""
    return HostId(object_id(node.name))


def vm_id(pod: PodView) -> VmId:
    """Return the id of a pod as a VM."""
    return VmId(object_id(f"{pod.namespace}/{pod.name}"))


def is_movable(pod: PodView) -> bool:
    """Whether the owner of a pod creates it again when it is evicted."""
    return pod.owner in _MOVABLE and not pod.ending


def host_of(node: NodeView, *, labels: bool = False) -> Host:
    """Return a node as a host; what pods may not request is its reserve."""
    allocatable, capacity = node.allocatable, node.capacity
    milli = max(capacity.get(CPU, 0), allocatable.get(CPU, 0))
    cores = max(1, -(-milli // MHZ_PER_CORE))
    memory_mib = max(1, capacity.get(MEMORY, 0) // _MIB)
    return Host(
        id=host_id(node),
        cores=cores,
        mhz_per_core=MHZ_PER_CORE,
        memory_mib=memory_mib,
        reserve=HostReserve(
            cpu_mhz=cores * MHZ_PER_CORE - allocatable.get(CPU, 0),
            memory_mib=max(0, memory_mib - allocatable.get(MEMORY, 0) // _MIB),
        ),
        labels=dict(node.labels) if labels else {},
        capacity=_named(allocatable, round_up=False),
        # Requests limit pods, as reservations do. Pods have no configured memory.
        memory_overcommit=OVERCOMMIT_MAX,
    )


def vm_of(pod: PodView, host: HostId | None, *, pinned: bool, labels: bool = False) -> Vm:
    """Return a pod as a VM on a host, or as one that waits; a pinned one never moves."""
    cpu_mhz = pod.requests.get(CPU, 0)
    memory_mib = -(-pod.requests.get(MEMORY, 0) // _MIB)
    named = _named(pod.requests, round_up=True)
    return Vm(
        id=vm_id(pod),
        vcpus=max(1, -(-cpu_mhz // MHZ_PER_CORE)),
        memory_mib=max(1, memory_mib),
        state=VmState.READY if host is None else VmState.RUNNING,
        host=host,
        cpu=CpuSettings(reservation_mhz=cpu_mhz),
        memory=MemorySettings(reservation_mib=memory_mib),
        demand=Demand(cpu_mhz=cpu_mhz, memory_mib=memory_mib, named=named),
        consumption=named,
        agent=pinned,
        labels=dict(pod.labels) if labels else {},
    )


def _named(amounts: Mapping[str, int], *, round_up: bool) -> dict[ResourceName, int]:
    """Return all resources but CPU and memory; bytes become MiB, as amounts are bounded."""
    named = {}
    for name, amount in amounts.items():
        if name in {CPU, MEMORY} or not _ID.fullmatch(name) or not amount:
            continue
        if name == "ephemeral-storage" or name.startswith("hugepages-"):
            amount = -(-amount // _MIB) if round_up else amount // _MIB  # noqa: PLW2901
        named[ResourceName(name)] = min(amount, _AMOUNT_MAX)
    return named


def inventory_of(
    nodes: Sequence[NodeView],
    placed: Iterable[Vm],
    constrained: Sequence[PodView],
    *,
    name: str = "kubernetes",
) -> Inventory:
    """Return the cluster; the pods that are constrained become rules."""
    return Inventory(
        name=name,
        hosts=tuple(host_of(node, labels=True) for node in nodes),
        vms=tuple(placed),
        rules=tuple(placement_rules(constrained, nodes)),
    )


def placement_rules(pods: Sequence[PodView], nodes: Sequence[NodeView]) -> list[Rule]:
    """Return where pods may run and which of them stay apart, as rules.

    Of pods that have a node and are not among ``pods``, only the nodes count that they close.
    """
    return [*_allowed_hosts(pods, nodes), *_apart(pods)]


def _allowed_hosts(pods: Sequence[PodView], nodes: Sequence[NodeView]) -> list[Rule]:
    chosen = {pod.uid for pod in pods}
    others = {
        node.name: [pod for pod in node.pods.values() if pod.uid not in chosen] for node in nodes
    }
    anti = any(pod.apart for pod in pods) or any(
        pod.apart for there in others.values() for pod in there
    )
    allowed_by_kind: dict[str, tuple[HostId, ...]] = {}
    groups: dict[tuple[HostId, ...], list[VmId]] = {}
    for pod in pods:
        if pod.kind not in allowed_by_kind:
            allowed_by_kind[pod.kind] = tuple(
                host_id(node) for node in nodes if not static_refusal(pod, node)
            )
        hosts = allowed_by_kind[pod.kind]
        if anti:
            closed = {
                object_id(name)
                for name, there in others.items()
                if any(are_apart(pod, other) for other in there)
            }
            hosts = tuple(host for host in hosts if host not in closed)
        # A pod that runs may stay where it is: taints and labels may have changed since.
        here = HostId(object_id(pod.node)) if pod.node else None
        if here is not None and here not in hosts:
            hosts = (*hosts, here)
        if hosts and len(hosts) < len(nodes):
            groups.setdefault(hosts, []).append(vm_id(pod))
    return [
        StayWithin(id=RuleId(f"nodes-{number}"), vms=tuple(vms), hosts=hosts)
        for number, (hosts, vms) in enumerate(groups.items(), 1)
    ]


def _apart(pods: Sequence[PodView]) -> list[Rule]:
    """Return a rule for each anti-affinity among the pods."""
    stated = [pod for pod in pods if pod.apart]
    if not stated:
        return []
    pairs: dict[tuple[str, str], None] = {}
    order = {pod.uid: (number, vm_id(pod)) for number, pod in enumerate(pods)}
    for pod in stated:
        for other in pods:
            if other is not pod and are_apart(pod, other):
                first, second = sorted((order[pod.uid], order[other.uid]))
                pairs[first[1], second[1]] = None
    return [
        KeepApart(id=RuleId(f"apart-{number}"), vms=vms)
        for number, vms in enumerate(_cliques(list(pairs)), 1)
    ]


def _cliques(pairs: list[tuple[str, str]]) -> list[tuple[VmId, ...]]:
    """Return groups that hold all pairs: replicas that exclude each other become one rule."""
    left = dict.fromkeys(pairs)
    groups = []
    for pair in pairs:
        if pair not in left:
            continue
        group = list(pair)
        for first, second in pairs:
            if (
                first in group
                and second not in group
                and all((member, second) in left for member in group)
            ):
                group.append(second)
        for both in combinations(group, 2):
            left.pop(both, None)
        groups.append(tuple(VmId(member) for member in group))
    return groups
