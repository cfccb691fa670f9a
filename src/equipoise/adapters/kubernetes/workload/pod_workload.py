"""A workload of pods, and the objects that it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from equipoise.adapters.kubernetes.annotations import SPEED
from equipoise.adapters.kubernetes.quantity import (
    format_bytes,
    format_milli,
    parse_amount,
    parse_milli,
)
from equipoise.sim.jobs.platform import JobHost, Platform, PowerState

Object = dict[str, Any]
Arrival = tuple[int, Object]
"""A time in milliseconds, and the object that is created then."""

PODS_PER_NODE: Final = 110
UNKNOWN_MEMORY_BYTES: Final = 2**40
"""Of a node whose platform states no memory: more than its pods request."""
SCHEDULER: Final = "default-scheduler"
_NO_NAME: Final = re.compile(r"[^a-z0-9.-]+")
_NAME_MAX: Final = 200
_FIRST_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_MILLI: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PodWorkload:
    """Nodes that are there from the start, and objects in the order of their arrival."""

    name: str
    nodes: list[Object]
    arrivals: list[Arrival]
    platform: Platform = field(repr=False)
    """The nodes as hosts, in the same order, for records and energy."""


def make_workload(
    name: str,
    nodes: Sequence[Object],
    arrivals: Iterable[Arrival],
    platform: Platform | None = None,
) -> PodWorkload:
    """Return a workload with arrivals in order, and with the namespaces that they need."""
    ordered = sorted(arrivals, key=lambda arrival: arrival[0])
    declared = {
        body["metadata"]["name"] for _, body in ordered if body.get("kind") == "Namespace"
    } | _FIRST_NAMESPACES
    needed = {body["metadata"].get("namespace") or "default" for _, body in ordered}
    namespaces: list[Arrival] = [
        (0, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        for namespace in sorted(needed - declared)
    ]
    return PodWorkload(
        name=name,
        nodes=list(nodes),
        arrivals=namespaces + ordered,
        platform=platform or platform_of(nodes),
    )


def object_name(text: str) -> str:
    """Return a name that Kubernetes allows."""
    labels = _NO_NAME.sub("-", text.lower())[:_NAME_MAX].split(".")
    return ".".join(label for part in labels if (label := part.strip("-"))) or "x"


def pod_object(  # noqa: PLR0913  (parts of a manifest, each by its name)
    name: str,
    *,
    cpu_milli: int,
    memory_bytes: int = 0,
    extended: Mapping[str, int] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    deadline_s: int | None = None,
    scheduler: str = SCHEDULER,
) -> Object:
    """Return the manifest of a pod with one container that never restarts."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            **({"labels": dict(labels)} if labels else {}),
            **({"annotations": dict(annotations)} if annotations else {}),
        },
        "spec": pod_spec_object(cpu_milli, memory_bytes, extended, deadline_s, scheduler),
    }


def pod_spec_object(
    cpu_milli: int,
    memory_bytes: int,
    extended: Mapping[str, int] | None,
    deadline_s: int | None,
    scheduler: str,
) -> Object:
    """Return the specification of a pod with one container that never restarts."""
    requests = {"cpu": format_milli(cpu_milli)}
    if memory_bytes:
        requests["memory"] = format_bytes(memory_bytes)
    more = {key: str(amount) for key, amount in (extended or {}).items()}
    resources: Object = {"requests": {**requests, **more}}
    if more:
        # The API demands that extended resources have equal limits.
        resources["limits"] = more
    spec: Object = {
        "schedulerName": scheduler,
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "simulated", "resources": resources}],
    }
    if deadline_s is not None:
        spec["activeDeadlineSeconds"] = deadline_s
    return spec


def node_object(  # noqa: PLR0913  (parts of a manifest, each by its name)
    name: str,
    *,
    cpu_milli: int,
    memory_bytes: int = UNKNOWN_MEMORY_BYTES,
    pods: int = PODS_PER_NODE,
    extended: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
    speed_flops: float | None = None,
) -> Object:
    """Return the manifest of a node."""
    capacity = {
        "cpu": format_milli(cpu_milli),
        "memory": format_bytes(memory_bytes),
        "pods": str(pods),
        **{key: str(amount) for key, amount in (extended or {}).items()},
    }
    metadata: Object = {
        "name": name,
        "labels": {"kubernetes.io/hostname": name, **(labels or {})},
    }
    if speed_flops is not None:
        metadata["annotations"] = {SPEED: str(int(speed_flops))}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"capacity": capacity, "allocatable": dict(capacity)},
    }


def uniform_nodes(
    count: int, cpu: object = "1", memory: object = UNKNOWN_MEMORY_BYTES
) -> list[Object]:
    """Return equal nodes; ``ValueError`` if a quantity is wrong."""
    cpu_milli, memory_bytes = parse_milli(cpu), parse_amount(memory)
    width = len(str(count - 1))
    return [
        node_object(f"node-{number:0{width}d}", cpu_milli=cpu_milli, memory_bytes=memory_bytes)
        for number in range(count)
    ]


def platform_nodes(platform: Platform) -> tuple[list[Object], Platform]:
    """Return the hosts of a platform as nodes, and the platform with the names of the nodes.

    The properties ``core``, ``memory`` and ``pods`` of a host are quantities, as Batkube's
    platforms have them; without the first, a node has the cores of the host.
    """
    nodes, hosts = [], []
    for host in platform.hosts:
        name = object_name(host.name)
        properties = host.properties
        nodes.append(
            node_object(
                name,
                cpu_milli=parse_milli(properties.get("core", host.cores)),
                memory_bytes=parse_amount(properties.get("memory", UNKNOWN_MEMORY_BYTES)),
                pods=parse_amount(properties.get("pods", PODS_PER_NODE)),
                speed_flops=host.power_states[host.initial_state].speed_flops,
            )
        )
        hosts.append(replace(host, name=name))
    return nodes, replace(platform, hosts=hosts)


def platform_of(nodes: Sequence[Object]) -> Platform:
    """Return nodes as hosts without power figures."""
    hosts = [
        JobHost(
            name=node["metadata"]["name"],
            power_states=(PowerState(1.0),),
            cores=max(1, parse_milli(amounts_of(node).get("cpu", 1)) // _MILLI),
        )
        for node in nodes
    ]
    return Platform(hosts=hosts)


def amounts_of(node: Object) -> Mapping[str, Any]:
    """Return what pods may request of a node."""
    status = node.get("status") or {}
    return status.get("allocatable") or status.get("capacity") or {}
