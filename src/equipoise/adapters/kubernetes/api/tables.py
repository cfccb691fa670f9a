"""Objects as rows of a ``Table``, with the columns that kubectl prints and ages in virtual time."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Callable, Mapping
from functools import lru_cache
from time import strptime
from typing import Any, Final, NamedTuple

from equipoise.adapters.kubernetes.api.resources import (
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    Resource,
)

Object = dict[str, Any]
Cell = str | int | bool | None

_NONE: Final = "<none>"
_UNKNOWN: Final = "<unknown>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


class Column(NamedTuple):
    """A column: its title, and what an object has in it at a time of day in milliseconds."""

    title: str
    cell: Callable[[Object, int], Cell]
    wide: bool = False
    type: str = "string"


def columns(resource: Resource) -> tuple[Column, ...]:
    """Return the columns of a collection."""
    return _COLUMNS.get(resource, _ONLY_NAME)


@lru_cache(256)
def definitions(resource: Resource) -> list[Object]:
    """Return the columns of a collection as a table describes them."""
    return [
        {
            "name": column.title, "type": column.type,
            "format": "name" if column.title == "Name" else "",
            "description": column.title, "priority": int(column.wide),
        }
        for column in columns(resource)
    ]  # fmt: skip


def row(shown: tuple[Column, ...], stored: Object, now_ms: int) -> list[Cell]:
    """Return the cells of an object."""
    return [column.cell(stored, now_ms) for column in shown]


# Times


def duration(seconds: int) -> str:
    """Return a length of time in one or two units, as kubectl prints it: ``5m10s``, ``3d4h``."""
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < 3 * _HOUR:
        minutes, rest = divmod(seconds, _MINUTE)
        return f"{minutes}m{rest}s" if minutes < 10 and rest else f"{minutes}m"  # noqa: PLR2004
    if seconds < 2 * _DAY:
        hours, rest = divmod(seconds, _HOUR)
        minutes = rest // _MINUTE
        return f"{hours}h{minutes}m" if hours < 8 and minutes else f"{hours}h"  # noqa: PLR2004
    days, rest = divmod(seconds, _DAY)
    hours = rest // _HOUR
    if days < 8 and hours:  # noqa: PLR2004
        return f"{days}d{hours}h"
    if days < 2 * 365:
        return f"{days}d"
    years, rest = divmod(days, 365)
    return f"{years}y{rest}d" if years < 8 and rest else f"{years}y"  # noqa: PLR2004


@lru_cache(4096)
def seconds_of(timestamp: str) -> int | None:
    """Return the seconds since 1970 of a timestamp; None if it is none."""
    try:
        return timegm(strptime(timestamp[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None


def _since(timestamp: object, now_ms: int) -> str:
    start = seconds_of(timestamp) if isinstance(timestamp, str) else None
    return _UNKNOWN if start is None else duration(now_ms // 1000 - start)


def _age(stored: Object, now_ms: int) -> str:
    return _since(stored["metadata"].get("creationTimestamp"), now_ms)


# Parts of objects


def _part(stored: Object, path: str) -> Any:
    value: Any = stored
    for key in path.split("."):
        if not value:
            return None
        value = value.get(key)
    return value


def _field(path: str, absent: Cell = _NONE) -> Callable[[Object, int], Cell]:
    def cell(stored: Object, now_ms: int) -> Cell:
        value = _part(stored, path)
        return absent if value is None or value == "" else value

    return cell


def _length(path: str) -> Callable[[Object, int], Cell]:
    return lambda stored, now_ms: len(_part(stored, path) or ())


def _time(path: str) -> Callable[[Object, int], Cell]:
    return lambda stored, now_ms: _since(_part(stored, path), now_ms)


def _ratio(path: str, of: str, absent: int = 0) -> Callable[[Object, int], Cell]:
    def cell(stored: Object, now_ms: int) -> Cell:
        total = _part(stored, of)
        return f"{_part(stored, path) or 0}/{absent if total is None else total}"

    return cell


def _selector(path: str) -> Callable[[Object, int], Cell]:
    def cell(stored: Object, now_ms: int) -> Cell:
        labels = _part(stored, path) or {}
        return ",".join(f"{key}={value}" for key, value in labels.items()) or _NONE

    return cell


def _from_containers(path: str, field: str) -> Callable[[Object, int], Cell]:
    def cell(stored: Object, now_ms: int) -> Cell:
        return ",".join(container.get(field) or "" for container in _part(stored, path) or ())

    return cell


_NAME: Final = Column("Name", _field("metadata.name"))
_AGE: Final = Column("Age", _age)
_ONLY_NAME: Final = (_NAME, _AGE)

# Pods and nodes


def _pod_ready(pod: Object, now_ms: int) -> str:
    statuses = _part(pod, "status.containerStatuses") or ()
    return f"{sum(bool(status.get('ready')) for status in statuses)}/{len(_containers(pod))}"


def _containers(pod: Object) -> list[Object]:
    return _part(pod, "spec.containers") or []


def _pod_status(pod: Object, now_ms: int) -> str:
    """Return the most telling word: the reason of a container before the phase of the pod."""
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase") or "Unknown"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    running = False
    for container_status in reversed(status.get("containerStatuses") or ()):
        state = container_status.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif ended:
            reason = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
        elif container_status.get("ready") and state.get("running"):
            running = True
    if reason == "Completed" and running:
        reason = "Running"
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _pod_restarts(pod: Object, now_ms: int) -> str:
    statuses = _part(pod, "status.containerStatuses") or ()
    return str(sum(status.get("restartCount") or 0 for status in statuses))


def _readiness_gates(pod: Object, now_ms: int) -> str:
    gates = _part(pod, "spec.readinessGates") or ()
    if not gates:
        return _NONE
    conditions = _part(pod, "status.conditions") or ()
    true = {condition.get("type") for condition in conditions if condition.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"


def _node_status(node: Object, now_ms: int) -> str:
    ready = "Unknown"
    for condition in _part(node, "status.conditions") or ():
        if condition.get("type") == "Ready":
            ready = "Ready" if condition.get("status") == "True" else "NotReady"
    return f"{ready},SchedulingDisabled" if _part(node, "spec.unschedulable") else ready


def _node_roles(node: Object, now_ms: int) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    roles = {label[len(prefix) :] for label in labels if label.startswith(prefix)}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles - {""})) or _NONE


def _node_address(kind: str) -> Callable[[Object, int], Cell]:
    def cell(node: Object, now_ms: int) -> Cell:
        for address in _part(node, "status.addresses") or ():
            if address.get("type") == kind:
                return address.get("address") or _NONE
        return _NONE

    return cell


# Workloads, events and others


def _job_status(job: Object, now_ms: int) -> str:
    for condition in _part(job, "status.conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed"):
            return str(condition["type"])
    if _part(job, "spec.suspend"):
        return "Suspended"
    return "Terminating" if job["metadata"].get("deletionTimestamp") else "Running"


def _job_duration(job: Object, now_ms: int) -> str:
    start = seconds_of(_part(job, "status.startTime") or "")
    if start is None:
        return ""
    end = seconds_of(_part(job, "status.completionTime") or "")
    return duration((now_ms // 1000 if end is None else end) - start)


def _job_completions(job: Object, now_ms: int) -> str:
    done, wanted = _part(job, "status.succeeded") or 0, _part(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallelism = _part(job, "spec.parallelism") or 1
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _event_seen(event: Object, now_ms: int) -> str:
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return _since(last or event["metadata"].get("creationTimestamp"), now_ms)


def _event_first_seen(event: Object, now_ms: int) -> str:
    return _since(event.get("firstTimestamp") or event.get("eventTime"), now_ms)


def _event_object(event: Object, now_ms: int) -> str:
    about = event.get("involvedObject") or {}
    return f"{(about.get('kind') or '').lower()}/{about.get('name') or ''}"


def _event_count(event: Object, now_ms: int) -> int:
    return (event.get("series") or {}).get("count") or event.get("count") or 1


def _event_source(event: Object, now_ms: int) -> str:
    source = event.get("source") or {}
    parts = (source.get("component") or event.get("reportingComponent") or "", source.get("host"))
    return ", ".join(part for part in parts if part)


def _event_message(event: Object, now_ms: int) -> str:
    return (event.get("message") or "").strip()


def _service_ports(service: Object, now_ms: int) -> str:
    ports = _part(service, "spec.ports") or ()
    return (
        ",".join(f"{port.get('port')}/{port.get('protocol') or 'TCP'}" for port in ports) or _NONE
    )


def _workload(*middle: Column, template: str = "spec.template.spec.containers",
              selector: str = "spec.selector.matchLabels") -> tuple[Column, ...]:  # fmt: skip
    return (
        _NAME, *middle, _AGE,
        Column("Containers", _from_containers(template, "name"), wide=True),
        Column("Images", _from_containers(template, "image"), wide=True),
        Column("Selector", _selector(selector), wide=True),
    )  # fmt: skip


_COLUMNS: Final[Mapping[Resource, tuple[Column, ...]]] = {
    PODS: (
        _NAME, Column("Ready", _pod_ready), Column("Status", _pod_status),
        Column("Restarts", _pod_restarts), _AGE,
        Column("IP", _field("status.podIP"), wide=True),
        Column("Node", _field("spec.nodeName"), wide=True),
        Column("Nominated Node", _field("status.nominatedNodeName"), wide=True),
        Column("Readiness Gates", _readiness_gates, wide=True),
    ),
    NODES: (
        _NAME, Column("Status", _node_status), Column("Roles", _node_roles), _AGE,
        Column("Version", _field("status.nodeInfo.kubeletVersion", "")),
        Column("Internal-IP", _node_address("InternalIP"), wide=True),
        Column("External-IP", _node_address("ExternalIP"), wide=True),
        Column("OS-Image", _field("status.nodeInfo.osImage", _UNKNOWN), wide=True),
        Column("Kernel-Version", _field("status.nodeInfo.kernelVersion", _UNKNOWN), wide=True),
        Column(
            "Container-Runtime", _field("status.nodeInfo.containerRuntimeVersion", _UNKNOWN),
            wide=True,
        ),
    ),
    NAMESPACES: (_NAME, Column("Status", _field("status.phase")), _AGE),
    EVENTS: (
        Column("Last Seen", _event_seen), Column("Type", _field("type", "")),
        Column("Reason", _field("reason", "")), Column("Object", _event_object),
        Column("Subobject", _field("involvedObject.fieldPath", ""), wide=True),
        Column("Source", _event_source, wide=True), Column("Message", _event_message),
        Column("First Seen", _event_first_seen, wide=True),
        Column("Count", _event_count, wide=True, type="integer"), _NAME._replace(wide=True),
    ),
    JOBS: _workload(
        Column("Status", _job_status), Column("Completions", _job_completions),
        Column("Duration", _job_duration),
    ),
    CRON_JOBS: (
        _NAME, Column("Schedule", _field("spec.schedule")),
        Column("Timezone", _field("spec.timeZone")),
        Column("Suspend", lambda stored, now_ms: str(bool(_part(stored, "spec.suspend")))),
        Column("Active", _length("status.active"), type="integer"),
        Column("Last Schedule", _time("status.lastScheduleTime")), _AGE,
    ),
    DEPLOYMENTS: _workload(
        Column("Ready", _ratio("status.readyReplicas", "spec.replicas", 1)),
        Column("Up-to-date", _field("status.updatedReplicas", 0), type="integer"),
        Column("Available", _field("status.availableReplicas", 0), type="integer"),
    ),
    REPLICA_SETS: _workload(
        Column("Desired", _field("spec.replicas", 1), type="integer"),
        Column("Current", _field("status.replicas", 0), type="integer"),
        Column("Ready", _field("status.readyReplicas", 0), type="integer"),
    ),
    STATEFUL_SETS: (
        _NAME, Column("Ready", _ratio("status.readyReplicas", "spec.replicas", 1)), _AGE,
    ),
    DAEMON_SETS: _workload(
        Column("Desired", _field("status.desiredNumberScheduled", 0), type="integer"),
        Column("Current", _field("status.currentNumberScheduled", 0), type="integer"),
        Column("Ready", _field("status.numberReady", 0), type="integer"),
    ),
    SERVICES: (
        _NAME, Column("Type", _field("spec.type")), Column("Cluster-IP", _field("spec.clusterIP")),
        Column("External-IP", lambda stored, now_ms: _NONE), Column("Port(s)", _service_ports),
        _AGE, Column("Selector", _selector("spec.selector"), wide=True),
    ),
    PRIORITY_CLASSES: (
        _NAME, Column("Value", _field("value", 0), type="integer"),
        Column("Global-Default", _field("globalDefault", False), type="boolean"), _AGE,
        Column("PreemptionPolicy", _field("preemptionPolicy", "")),
    ),
    LEASES: (_NAME, Column("Holder", _field("spec.holderIdentity", "")), _AGE),
    CONFIG_MAPS: (_NAME, Column("Data", _length("data"), type="integer"), _AGE),
    SECRETS: (
        _NAME, Column("Type", _field("type")), Column("Data", _length("data"), type="integer"),
        _AGE,
    ),
    POD_DISRUPTION_BUDGETS: (
        _NAME, Column("Min Available", _field("spec.minAvailable", "N/A")),
        Column("Max Unavailable", _field("spec.maxUnavailable", "N/A")),
        Column("Allowed Disruptions", _field("status.disruptionsAllowed", 0), type="integer"), _AGE,
    ),
    PERSISTENT_VOLUME_CLAIMS: (
        _NAME, Column("Status", _field("status.phase", "")),
        Column("Volume", _field("spec.volumeName", "")),
        Column("StorageClass", _field("spec.storageClassName", "")), _AGE,
    ),
    STORAGE_CLASSES: (
        _NAME, Column("Provisioner", _field("provisioner", "")),
        Column("ReclaimPolicy", _field("reclaimPolicy", "")),
        Column("VolumeBindingMode", _field("volumeBindingMode", "")), _AGE,
    ),
}  # fmt: skip
