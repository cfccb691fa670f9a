"""What a new object gets besides what the client wrote, and what a later write cannot change.

Values that a scheduler or a controller reads are filled in as the real API does. Functions return
new objects and share the parts that stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from equipoise.adapters.kubernetes.api import errors
from equipoise.adapters.kubernetes.api.resources import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    Resource,
)

Object = dict[str, Any]

_NOT_READY_S: Final = 300
_NOT_READY_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Lookup(Protocol):
    """What defaults need to know of the store."""

    not_ready_tolerations: bool

    def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return an object, or None."""

    def list(self, resource: Resource) -> list[Object]:
        """Return all objects of a collection."""


def complete(resource: Resource, body: Object, store: Lookup) -> Object:
    """Return a new object with its defaults. Its top level may be changed, nothing below."""
    if resource is PODS:
        return _complete_pod(body, store)
    fill = _FILL.get(resource)
    return fill(body) if fill else body


# Pods


def _complete_pod(body: Object, store: Lookup) -> Object:
    spec = pod_spec(body["spec"])
    name = body["metadata"]["name"]
    _resolve_priority(spec, name, store)
    if store.not_ready_tolerations:
        spec["tolerations"] = _with_not_ready(spec.get("tolerations") or [])
    status: Object = {"phase": "Pending", "qosClass": qos_class(spec)}
    return {**body, "spec": spec, "status": {**status, **(body.get("status") or {})}}


def pod_spec(spec: Object) -> Object:
    """Return the specification of a pod, or of a template of pods, with its defaults."""
    filled = {**_POD_SPEC, **{key: value for key, value in spec.items() if value is not None}}
    filled["containers"] = [_container(container) for container in spec.get("containers") or ()]
    if spec.get("initContainers"):
        filled["initContainers"] = [_container(container) for container in spec["initContainers"]]
    return filled


_POD_SPEC: Final[Mapping[str, Any]] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "default",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
_CONTAINER: Final[Mapping[str, Any]] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}


def _container(container: Object) -> Object:
    filled = {**_CONTAINER, **container}
    image = container.get("image") or ""
    if not filled.get("imagePullPolicy"):
        _, _, tag = image.rpartition("/")[2].partition(":")
        filled["imagePullPolicy"] = "Always" if tag in ("", "latest") else "IfNotPresent"
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits"), resources.get("requests") or {}
    if limits and any(name not in requests for name in limits):
        resources = {**resources, "requests": {**limits, **requests}}
    filled["resources"] = resources
    if container.get("ports"):
        filled["ports"] = [{"protocol": "TCP", **port} for port in container["ports"]]
    return filled


def _resolve_priority(spec: Object, name: str, store: Lookup) -> None:
    class_name = spec.get("priorityClassName")
    found: Object | None = None
    if class_name:
        found = store.find(PRIORITY_CLASSES, class_name)
        if found is None:
            why = f"no PriorityClass with name {class_name} was found"
            raise errors.forbidden("", "pods", name, why)
    else:
        # The greatest name wins if several claim to be the default, as good as any other rule.
        for priority_class in store.list(PRIORITY_CLASSES):
            if priority_class.get("globalDefault"):
                found = priority_class
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    priority = found["value"] if found else 0
    if spec.get("priority") is None or class_name:
        spec["priority"] = priority
    elif spec["priority"] != priority and found is not None:
        why = (
            "the integer value of priority must not be provided in pod spec; priority admission"
            f" controller computed {priority} from the given PriorityClass name"
        )
        raise errors.forbidden("", "pods", name, why)
    policy = (found or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    if not spec.get("preemptionPolicy"):
        spec["preemptionPolicy"] = policy


def _with_not_ready(tolerations: list[Object]) -> list[Object]:
    added = [
        {
            "key": key, "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": _NOT_READY_S,
        }
        for key in _NOT_READY_TAINTS
        if not any(
            toleration.get("key") in (key, None, "")
            and toleration.get("effect") in ("NoExecute", None, "")
            for toleration in tolerations
        )
    ]  # fmt: skip
    return [*tolerations, *added]


def qos_class(spec: Object) -> str:
    """Return ``Guaranteed``, ``Burstable`` or ``BestEffort``."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    resources = [container.get("resources") or {} for container in containers]
    if not any(
        _compute(requirements.get("requests")) or _compute(requirements.get("limits"))
        for requirements in resources
    ):
        return "BestEffort"
    for requirements in resources:
        limits = _compute(requirements.get("limits"))
        if set(limits) != {"cpu", "memory"} or _compute(requirements.get("requests")) != limits:
            return "Burstable"
    return "Guaranteed"


def _compute(amounts: Object | None) -> Object:
    return {
        name: amount
        for name, amount in (amounts or {}).items()
        if name in ("cpu", "memory") and amount not in ("0", 0)
    }


# Other kinds


def _with_spec(**defaults: Any) -> Callable[[Object], Object]:
    def fill(body: Object) -> Object:
        spec = {**defaults, **(body.get("spec") or {})}
        template = spec.get("template")
        if template and template.get("spec"):
            spec["template"] = {**template, "spec": pod_spec(template["spec"])}
        return {**body, "spec": spec}

    return fill


def _with_top(**defaults: Any) -> Callable[[Object], Object]:
    return lambda body: {**defaults, **body}


def _node(body: Object) -> Object:
    status = dict(body.get("status") or {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = status["capacity"]
    return {**body, "spec": body.get("spec") or {}, "status": status}


def _namespace(body: Object) -> Object:
    metadata = body["metadata"]
    name = metadata["name"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": name}
    return {
        **body,
        "metadata": {**metadata, "labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _job(body: Object) -> Object:
    """Fill a job. Its pods are selected by its own id, so that jobs never share pods."""
    defaults: Object = {
        "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False,
        "manualSelector": False, "podReplacementPolicy": "TerminatingOrFailed",
    }  # fmt: skip
    given = body.get("spec") or {}
    if given.get("completions") is None and given.get("parallelism") is None:
        defaults["completions"] = 1
    spec = {**defaults, **given}
    metadata = body["metadata"]
    template = spec.get("template") or {}
    if not spec["manualSelector"]:
        uid, name = metadata["uid"], metadata["name"]
        labels = {
            **((template.get("metadata") or {}).get("labels") or {}),
            "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
            "controller-uid": uid, "job-name": name,
        }  # fmt: skip
        template = {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}}
        if not spec.get("selector"):
            spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    spec["template"] = {**template, "spec": pod_spec(template.get("spec") or {})}
    return {**body, "spec": spec, "status": body.get("status") or {}}


_ROLLING: Final = {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
_FILL: Final[Mapping[Resource, Callable[[Object], Object]]] = {
    NODES: _node,
    NAMESPACES: _namespace,
    JOBS: _job,
    PRIORITY_CLASSES: _with_top(preemptionPolicy="PreemptLowerPriority"),
    DEPLOYMENTS: _with_spec(
        replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600,
        strategy={"type": "RollingUpdate", **_ROLLING},
    ),
    REPLICA_SETS: _with_spec(replicas=1),
    REPLICATION_CONTROLLERS: _with_spec(replicas=1),
    STATEFUL_SETS: _with_spec(
        replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady"
    ),
    DAEMON_SETS: _with_spec(revisionHistoryLimit=10),
    CRON_JOBS: _with_spec(
        concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    ),
    SERVICES: _with_spec(type="ClusterIP", sessionAffinity="None"),
    PERSISTENT_VOLUMES: _with_spec(persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem"),
    PERSISTENT_VOLUME_CLAIMS: _with_spec(volumeMode="Filesystem"),
    STORAGE_CLASSES: _with_top(reclaimPolicy="Delete", volumeBindingMode="Immediate"),
}  # fmt: skip

# What a later write keeps

_KEPT: Final = (
    "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
    "resourceVersion",
)  # fmt: skip


def seal(resource: Resource, current: Object, body: Object, subresource: str) -> Object:
    """Return what a write to an object makes of it: each part has its own path.

    A write to ``status`` changes only the status, a write to the object itself all but the status.
    """
    if subresource == "status" and resource.has_status:
        wanted = dict(current)
        if "status" in body:
            wanted["status"] = body["status"]
        else:
            wanted.pop("status", None)
        return wanted
    wanted = {**body, "apiVersion": current["apiVersion"], "kind": current["kind"]}
    if resource.has_status:
        if "status" in current:
            wanted["status"] = current["status"]
        else:
            wanted.pop("status", None)
    metadata = {key: value for key, value in (body["metadata"]).items() if key not in _KEPT}
    before = current["metadata"]
    metadata.update({key: before[key] for key in _KEPT if key in before})
    if metadata == before:
        metadata = before
    wanted["metadata"] = metadata
    return _refilled(resource, current, wanted)


def _refilled(resource: Resource, current: Object, wanted: Object) -> Object:
    """Return a replaced object with the defaults that a client may have left out."""
    if resource is PODS:
        spec = pod_spec(wanted["spec"])
        before = current["spec"]
        for key in ("priority", "preemptionPolicy", "nodeName"):
            if key in before and spec.get(key) is None:
                spec[key] = before[key]
        return {**wanted, "spec": spec}
    if resource is NAMESPACES:
        return {**wanted, "spec": current["spec"]}
    fill = _FILL.get(resource)
    return fill(wanted) if fill and resource is not JOBS else wanted
