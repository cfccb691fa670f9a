"""Reads the nodes and pods of a live cluster, and nothing else of it.

Only what a simulation needs is copied, key by key, so that no secret, environment value, command or
annotation of others can be in the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from equipoise.adapters.kubernetes.annotations import PREFIX
from equipoise.adapters.kubernetes.client.cluster_model import (
    inventory_of,
    object_id,
    vm_id,
    vm_of,
)
from equipoise.adapters.kubernetes.client.connection import ApiAddress, ApiConnection
from equipoise.adapters.kubernetes.client.pod_view import (
    NodeView,
    PodView,
    read_node_view,
    read_pod_view,
)
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId

Object = dict[str, Any]
NODES_PATH: Final = "/api/v1/nodes"
PODS_PATH: Final = "/api/v1/pods"
_NODE_SPEC: Final = ("taints", "unschedulable")
_POD_SPEC: Final = (
    "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "priority",
    "preemptionPolicy", "schedulerName", "restartPolicy", "terminationGracePeriodSeconds",
    "activeDeadlineSeconds", "overhead", "schedulingGates",
)  # fmt: skip
_CONTAINER: Final = ("name", "image", "restartPolicy")
_PER_NODE_OWNERS: Final = frozenset({"DaemonSet", "Node"})
_ENDED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCluster:
    """The nodes and pods of a cluster as manifests, and as an inventory."""

    nodes: tuple[Object, ...]
    pods: tuple[Object, ...]
    inventory: Inventory
    warnings: tuple[str, ...]
    """What was left out, each once with a count."""

    def manifests(self) -> Object:
        """Return one list of objects, which is a workload of pods."""
        return {"apiVersion": "v1", "kind": "List", "items": [*self.nodes, *self.pods]}


def import_cluster(address: ApiAddress) -> ImportedCluster:
    """Read the nodes and pods of a cluster.

    :raises WorldError: with a code if the API does not answer, or refuses.
    """
    connection = ApiConnection(address)
    try:
        nodes, _ = connection.list_all(NODES_PATH)
        pods, _ = connection.list_all(PODS_PATH)
    finally:
        connection.close()
    return convert_cluster(nodes, pods)


def convert_cluster(nodes: list[Object], pods: list[Object]) -> ImportedCluster:
    """Return objects of the API as manifests and inventory."""
    warnings: Counter[str] = Counter()
    node_views: dict[str, NodeView] = {}
    node_manifests = []
    for body in nodes:
        view = _read(read_node_view, body, warnings)
        if view is None:
            continue
        node_views[view.name] = view
        node_manifests.append(_node_manifest(body))
        _warn_of_node(body, warnings)
    pod_views, pod_manifests = [], []
    for body in pods:
        if _is_over(body, warnings):
            continue
        pod = _read(read_pod_view, body, warnings)
        if pod is None:
            continue
        if pod.node and pod.node not in node_views:
            warnings["pods are left out, because their node is not in the list"] += 1
            continue
        pod_views.append(pod)
        pod_manifests.append(_pod_manifest(body))
        _warn_of_pod(body, pod, warnings)
    return ImportedCluster(
        nodes=tuple(node_manifests),
        pods=tuple(pod_manifests),
        inventory=_inventory(list(node_views.values()), pod_views),
        warnings=tuple(f"{count:,} {text}" for text, count in warnings.items()),
    )


def _read(reader: Any, body: Object, warnings: Counter[str]) -> Any:
    """Return the view of an object; ``None`` with a warning if it is none."""
    try:
        return reader(body)
    except (KeyError, TypeError, ValueError, AttributeError):
        # The API of a cluster checks its objects, so this is a cluster with an unknown format.
        warnings["objects are left out, because they cannot be read"] += 1
        return None


def _inventory(nodes: list[NodeView], pods: list[PodView]) -> Inventory:
    vms = [
        vm_of(
            pod,
            HostId(object_id(pod.node)) if pod.node else None,
            pinned=bool(pod.node) and pod.owner in _PER_NODE_OWNERS,
            labels=True,
        )
        for pod in pods
    ]
    constrained = [pod for pod in pods if pod.owner not in _PER_NODE_OWNERS]
    return inventory_of(nodes, vms, constrained)


def _is_over(body: Object, warnings: Counter[str]) -> bool:
    phase = (body.get("status") or {}).get("phase")
    if phase in _ENDED:
        warnings[f"pods in phase {phase} are left out"] += 1
        return True
    if (body.get("metadata") or {}).get("deletionTimestamp"):
        warnings["pods that are being deleted are left out"] += 1
        return True
    return False


def _warn_of_node(body: Object, warnings: Counter[str]) -> None:
    status = body.get("status") or {}
    ready = [
        condition
        for condition in status.get("conditions") or ()
        if condition.get("type") == "Ready"
    ]
    if ready and ready[0].get("status") != "True":
        warnings["nodes are not ready; the result has them as working nodes"] += 1
    if (body.get("spec") or {}).get("unschedulable"):
        warnings["nodes are cordoned; in the inventory only rules keep VMs away from them"] += 1


def _warn_of_pod(body: Object, pod: PodView, warnings: Counter[str]) -> None:
    spec = body["spec"]
    if not any(amount for name, amount in pod.requests.items() if name != "pods"):
        warnings["pods request neither CPU nor memory, and take no capacity"] += 1
    if any(volume.get("persistentVolumeClaim") for volume in spec.get("volumes") or ()):
        warnings["pods have persistent volumes, which are left out"] += 1
    if spec.get("priorityClassName"):
        warnings["pods have a priority class, which is left out; the number is kept"] += 1
    if (body.get("metadata") or {}).get("ownerReferences"):
        warnings["pods have an owner, which is left out: nothing creates them again"] += 1
    unknown = pod.unsupported
    if unknown and "volume" not in unknown:
        warnings[f"pods demand {unknown}, which the inventory does not state"] += 1
    if vm_id(pod) != f"{pod.namespace}/{pod.name}":
        warnings["names are longer than ids of the inventory, and are shortened there"] += 1


def _kept(part: Mapping[str, Any], keys: tuple[str, ...]) -> Object:
    return {key: part[key] for key in keys if part.get(key) not in (None, "", [], {}, False)}


def _metadata(body: Object, *, namespaced: bool) -> Object:
    metadata = body["metadata"]
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith(PREFIX)
    }
    return {
        "name": metadata["name"],
        **({"namespace": metadata.get("namespace") or "default"} if namespaced else {}),
        **_kept(metadata, ("labels",)),
        **({"annotations": annotations} if annotations else {}),
    }


def _node_manifest(body: Object) -> Object:
    status, spec = body.get("status") or {}, _kept(body.get("spec") or {}, _NODE_SPEC)
    capacity = status.get("capacity") or status.get("allocatable") or {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(body, namespaced=False),
        **({"spec": spec} if spec else {}),
        "status": {"capacity": capacity, "allocatable": status.get("allocatable") or capacity},
    }


def _pod_manifest(body: Object) -> Object:
    spec = body["spec"]
    content = _kept(spec, ("nodeName", *_POD_SPEC))
    for key in ("initContainers", "containers"):
        if spec.get(key):
            content[key] = [_container(container) for container in spec[key]]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(body, namespaced=True),
        "spec": content,
    }


def _container(container: Object) -> Object:
    kept = _kept(container, _CONTAINER)
    resources = _kept(container.get("resources") or {}, ("requests", "limits"))
    ports = [
        _kept(port, ("containerPort", "hostPort", "protocol"))
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]
    return (
        kept | ({"resources": resources} if resources else {}) | ({"ports": ports} if ports else {})
    )
