"""The collections of objects that the API serves, with every name by which clients know them.

A collection is stored once. Some are served under several group versions: events through ``v1``
and ``events.k8s.io``, and beta versions that older schedulers ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Object = dict[str, Any]

ALL_VERBS: Final = (
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ApiResource:
    """A collection: what it is called, and what its objects have. Compared by identity."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    subresources: tuple[str, ...] = ()
    """Those besides ``status``."""
    generation: bool = False
    """Whether ``metadata.generation`` counts the changes of ``spec``."""

    @property
    def singular(self) -> str:
        """Return the name of one object: ``pod``."""
        return self.kind.lower()

    @property
    def list_kind(self) -> str:
        """Return the kind of a list of these objects."""
        return f"{self.kind}List"

    @property
    def api_version(self) -> str:
        """Return the ``apiVersion`` of stored objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __repr__(self) -> str:
        return f"<{self.plural} {self.api_version}>"


# Inside this package the short name is clear; an upgrade has resources of its own.
Resource = ApiResource


def _core(plural: str, kind: str, *short_names: str, **options: Any) -> Resource:
    return Resource(
        group="", version="v1", plural=plural, kind=kind, short_names=short_names, **options
    )


def _of(group: str, plural: str, kind: str, *short_names: str, **options: Any) -> Resource:
    return Resource(
        group=group, version="v1", plural=plural, kind=kind, short_names=short_names, **options
    )


_ALL: Final = ("all",)
_WORKLOAD: Final[Mapping[str, Any]] = {
    "has_status": True, "generation": True, "categories": _ALL,
}  # fmt: skip
_STORAGE: Final = "storage.k8s.io"

NAMESPACES: Final = _core("namespaces", "Namespace", "ns", namespaced=False, has_status=True)
NODES: Final = _core("nodes", "Node", "no", namespaced=False, has_status=True)
PODS: Final = _core(
    "pods", "Pod", "po", has_status=True, categories=_ALL, generation=True,
    subresources=("binding", "eviction", "log"),
)  # fmt: skip
EVENTS: Final = _core("events", "Event", "ev")
SERVICES: Final = _core("services", "Service", "svc", has_status=True, categories=_ALL)
REPLICATION_CONTROLLERS: Final = _core(
    "replicationcontrollers", "ReplicationController", "rc", subresources=("scale",), **_WORKLOAD
)
PERSISTENT_VOLUMES: Final = _core(
    "persistentvolumes", "PersistentVolume", "pv", namespaced=False, has_status=True
)
PERSISTENT_VOLUME_CLAIMS: Final = _core(
    "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", has_status=True
)
CONFIG_MAPS: Final = _core("configmaps", "ConfigMap", "cm")
SECRETS: Final = _core("secrets", "Secret")
SERVICE_ACCOUNTS: Final = _core("serviceaccounts", "ServiceAccount", "sa")
ENDPOINTS: Final = _core("endpoints", "Endpoints", "ep")
LIMIT_RANGES: Final = _core("limitranges", "LimitRange", "limits")
RESOURCE_QUOTAS: Final = _core("resourcequotas", "ResourceQuota", "quota", has_status=True)
DEPLOYMENTS: Final = _of(
    "apps", "deployments", "Deployment", "deploy", subresources=("scale",), **_WORKLOAD
)
REPLICA_SETS: Final = _of(
    "apps", "replicasets", "ReplicaSet", "rs", subresources=("scale",), **_WORKLOAD
)
STATEFUL_SETS: Final = _of(
    "apps", "statefulsets", "StatefulSet", "sts", subresources=("scale",), **_WORKLOAD
)
DAEMON_SETS: Final = _of("apps", "daemonsets", "DaemonSet", "ds", **_WORKLOAD)
JOBS: Final = _of("batch", "jobs", "Job", **_WORKLOAD)
CRON_JOBS: Final = _of("batch", "cronjobs", "CronJob", "cj", **_WORKLOAD)
POD_DISRUPTION_BUDGETS: Final = _of(
    "policy", "poddisruptionbudgets", "PodDisruptionBudget", "pdb",
    has_status=True, generation=True,
)  # fmt: skip
LEASES: Final = _of("coordination.k8s.io", "leases", "Lease")
ENDPOINT_SLICES: Final = _of("discovery.k8s.io", "endpointslices", "EndpointSlice")
PRIORITY_CLASSES: Final = _of(
    "scheduling.k8s.io", "priorityclasses", "PriorityClass", "pc",
    namespaced=False, generation=True,
)  # fmt: skip
RUNTIME_CLASSES: Final = _of("node.k8s.io", "runtimeclasses", "RuntimeClass", namespaced=False)
STORAGE_CLASSES: Final = _of(_STORAGE, "storageclasses", "StorageClass", "sc", namespaced=False)
CSI_NODES: Final = _of(_STORAGE, "csinodes", "CSINode", namespaced=False)
CSI_DRIVERS: Final = _of(_STORAGE, "csidrivers", "CSIDriver", namespaced=False)
CSI_STORAGE_CAPACITIES: Final = _of(_STORAGE, "csistoragecapacities", "CSIStorageCapacity")
VOLUME_ATTACHMENTS: Final = _of(
    _STORAGE, "volumeattachments", "VolumeAttachment", namespaced=False, has_status=True
)
RESOURCE_CLAIMS: Final = _of("resource.k8s.io", "resourceclaims", "ResourceClaim", has_status=True)
RESOURCE_CLAIM_TEMPLATES: Final = _of(
    "resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"
)
RESOURCE_SLICES: Final = _of("resource.k8s.io", "resourceslices", "ResourceSlice", namespaced=False)
DEVICE_CLASSES: Final = _of("resource.k8s.io", "deviceclasses", "DeviceClass", namespaced=False)

ALL_RESOURCES: Final[tuple[Resource, ...]] = (
    CONFIG_MAPS, ENDPOINTS, EVENTS, LIMIT_RANGES, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES, PODS, REPLICATION_CONTROLLERS, RESOURCE_QUOTAS, SECRETS,
    SERVICE_ACCOUNTS, SERVICES, DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, CRON_JOBS,
    JOBS, LEASES, ENDPOINT_SLICES, RUNTIME_CLASSES, POD_DISRUPTION_BUDGETS, DEVICE_CLASSES,
    RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES, PRIORITY_CLASSES, CSI_DRIVERS,
    CSI_NODES, CSI_STORAGE_CAPACITIES, STORAGE_CLASSES, VOLUME_ATTACHMENTS,
)  # fmt: skip
"""Every collection that is stored, by group."""

RESOURCES: Final[Mapping[tuple[str, str], Resource]] = {
    **{(resource.group, resource.plural): resource for resource in ALL_RESOURCES},
    ("events.k8s.io", "events"): EVENTS,
}
"""The collections by group and plural. Events have two groups and are one collection."""

# The fields of an event that have another name in events.k8s.io.
_EVENT_FIELDS: Final = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("source", "deprecatedSource"),
)
_TO_EVENTS_GROUP: Final = dict(_EVENT_FIELDS)
_FROM_EVENTS_GROUP: Final = {served: stored for stored, served in _EVENT_FIELDS}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServedVersion:
    """One group version under which a collection is served. Compared by identity."""

    resource: Resource
    group: str
    version: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Top-level fields of a stored object that have another name here."""
    stored_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def api_version(self) -> str:
        """Return the ``apiVersion`` of the objects as they are served here."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_stored_version(self) -> bool:
        """Return whether objects are served here as they are stored."""
        return self.group == self.resource.group and self.version == self.resource.version

    def to_served(self, stored: Object) -> Object:
        """Return a stored object as it is served here."""
        if self.is_stored_version:
            return stored
        names = self.renamed
        served = {names.get(key, key): value for key, value in stored.items()}
        served["apiVersion"] = self.api_version
        return served

    def to_stored(self, served: Object) -> Object:
        """Return an object of a client as it is stored."""
        if self.is_stored_version:
            return served
        names = self.stored_names
        stored = {names.get(key, key): value for key, value in served.items()}
        stored["apiVersion"] = self.resource.api_version
        return stored


def _also(resource: Resource, group: str, version: str) -> ServedVersion:
    if resource is EVENTS:
        return ServedVersion(
            resource=resource, group=group, version=version,
            renamed=_TO_EVENTS_GROUP, stored_names=_FROM_EVENTS_GROUP,
        )  # fmt: skip
    return ServedVersion(resource=resource, group=group, version=version)


SERVED_VERSIONS: Final[Mapping[tuple[str, str, str], ServedVersion]] = {
    (served.group, served.version, served.resource.plural): served
    for served in (
        *(_also(resource, resource.group, resource.version) for resource in ALL_RESOURCES),
        _also(EVENTS, "events.k8s.io", "v1"),
        # Schedulers before 1.25 ask for these.
        _also(EVENTS, "events.k8s.io", "v1beta1"),
        _also(POD_DISRUPTION_BUDGETS, "policy", "v1beta1"),
        _also(CSI_STORAGE_CAPACITIES, _STORAGE, "v1beta1"),
    )
}
"""What is served, by group, version and plural."""


BY_KIND: Final[Mapping[tuple[str, str], ServedVersion]] = {
    (served.api_version, served.resource.kind): served for served in SERVED_VERSIONS.values()
}
"""What is served, by ``apiVersion`` and ``kind``: how an object names its collection."""
