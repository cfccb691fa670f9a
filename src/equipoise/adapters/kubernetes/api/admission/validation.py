"""Which new and changed objects are refused, with every cause: the rules that clients meet.

Types are checked before (``types``), so these rules rely on them. Objects that the simulation
makes itself pass here too.
"""

from __future__ import annotations

import re
from typing import Any, Final

from equipoise.adapters.kubernetes.api import errors
from equipoise.adapters.kubernetes.api.resources import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)

Object = dict[str, Any]

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)
_QUALIFIED: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_NAME_MAX: Final = 253
_QUANTITY: Final = re.compile(
    r"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})"
    r"(?:[eE][-+]?[0-9]{1,3}|[numkMGTPE]|[KMGTPE]i)?"
)
_LABEL_CURE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character"
)
_SUBDOMAIN_CURE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character"
)
_LABEL_VALUE_CURE: Final = (
    "a valid label must be an empty string or consist of at most 63 alphanumeric characters, '-',"
    " '_' or '.', and must start and end with an alphanumeric character"
)
_KEY_CURE: Final = "name part must consist of alphanumeric characters, '-', '_' or '.'"
_SELECTED: Final = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS)
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_RESTARTS: Final = ("Always", "OnFailure", "Never")
_SYSTEM_PRIORITY: Final = 1_000_000_000
_PODS_MAX: Final = 150_000
"""Pods of one object: as many as Kubernetes supports in a cluster. All are made at one instant."""


def is_quantity(text: object) -> bool:
    """Return whether a value is an amount such as ``500m`` or ``2Gi``."""
    if isinstance(text, int):
        return not isinstance(text, bool)
    return isinstance(text, str) and _QUANTITY.fullmatch(text) is not None


def check_new(resource: Resource, body: Object) -> None:
    """Raise ``ApiError`` 422 if a new object breaks a rule."""
    causes = [*_metadata_causes(resource, body["metadata"]), *_causes(resource, body)]
    if causes:
        name = body["metadata"].get("name") or ""
        raise errors.invalid(resource.kind, resource.group, name, causes)


def check_replaced(
    resource: Resource, current: Object, wanted: Object, subresource: str = ""
) -> None:
    """Raise ``ApiError`` 422 if the new state of an object breaks a rule."""
    if subresource == "status":
        # A scheduler would believe amounts that the simulation does not take.
        status_causes = _node_causes(wanted) if resource is NODES else []
        if status_causes:
            name = current["metadata"]["name"]
            raise errors.invalid(resource.kind, resource.group, name, status_causes)
        return
    causes = [] if wanted["metadata"] is current["metadata"] else _metadata_causes(
        resource, wanted["metadata"]
    )  # fmt: skip
    spec = wanted.get("spec")
    if spec is not current.get("spec"):
        causes += _causes(resource, wanted)
    causes += _immutable_causes(resource, current, wanted)
    if causes:
        raise errors.invalid(resource.kind, resource.group, current["metadata"]["name"], causes)


def _metadata_causes(resource: Resource, metadata: Object) -> list[Object]:
    causes = []
    name = metadata.get("name") or ""
    if not name:
        text = "name or generateName is required"
        causes.append(errors.required("metadata.name", text))
    elif problem := name_problem(resource, name):
        causes.append(errors.invalid_value("metadata.name", name, problem))
    namespace = metadata.get("namespace") or ""
    if namespace and not _LABEL.fullmatch(namespace):
        causes.append(errors.invalid_value("metadata.namespace", namespace, _LABEL_CURE))
    causes += _label_causes(metadata)
    for index, owner in enumerate(metadata.get("ownerReferences") or ()):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                where = f"metadata.ownerReferences[{index}].{field}"
                causes.append(errors.required(where, "must not be empty"))
    return causes


def _label_causes(metadata: Object) -> list[Object]:
    causes = []
    for key, value in (metadata.get("labels") or {}).items():
        if not is_qualified_name(key):
            causes.append(errors.invalid_value("metadata.labels", key, _KEY_CURE))
        if value and not _QUALIFIED.fullmatch(value):
            causes.append(errors.invalid_value("metadata.labels", value, _LABEL_VALUE_CURE))
    causes += [
        errors.invalid_value("metadata.annotations", key, _KEY_CURE)
        for key in metadata.get("annotations") or ()
        if not is_qualified_name(key.lower())
    ]
    return causes


def name_problem(resource: Resource, name: str) -> str:
    """Return what is wrong with the name of an object; empty if nothing is."""
    if resource in (NAMESPACES, SERVICES):
        return "" if _LABEL.fullmatch(name) else _LABEL_CURE
    if len(name) > _NAME_MAX:
        return f"must be no more than {_NAME_MAX} characters"
    return "" if _SUBDOMAIN.fullmatch(name) else _SUBDOMAIN_CURE


def is_qualified_name(key: str) -> bool:
    """Return whether a text can be the key of a label: ``name`` or ``domain/name``."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _NAME_MAX or not _SUBDOMAIN.fullmatch(prefix)):
        return False
    return _QUALIFIED.fullmatch(name) is not None


def _causes(resource: Resource, body: Object) -> list[Object]:
    spec = body.get("spec") or {}
    if resource is PODS:
        return _pod_causes(spec, "spec")
    if resource is NODES:
        return _node_causes(body)
    if resource in _SELECTED:
        return _selected_causes(resource, spec)
    if resource is JOBS:
        return _job_causes(spec)
    if resource is CRON_JOBS:
        return [] if spec.get("schedule") else [errors.required("spec.schedule")]
    if resource is PRIORITY_CLASSES:
        return _priority_causes(body)
    return []


def _pod_causes(spec: Object, path: str, *, restarts: tuple[str, ...] = _RESTARTS) -> list[Object]:
    causes = []
    containers = spec.get("containers") or []
    if not containers:
        causes.append(errors.required(f"{path}.containers"))
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            causes += _container_causes(container, f"{path}.{field}[{index}]", names)
    policy = spec.get("restartPolicy") or "Always"
    if policy not in restarts:
        listed = ", ".join(f'"{restart}"' for restart in restarts)
        text = f'Unsupported value: "{policy}": supported values: {listed}'
        where = f"{path}.restartPolicy"
        causes.append(errors.cause(where, "FieldValueNotSupported", text))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        effect = toleration.get("effect")
        if effect and effect not in _EFFECTS:
            text = f'Unsupported value: "{effect}"'
            where = f"{path}.tolerations[{index}].effect"
            causes.append(errors.cause(where, "FieldValueNotSupported", text))
    for field in ("activeDeadlineSeconds", "terminationGracePeriodSeconds"):
        value = spec.get(field)
        if value is not None and value < (field == "activeDeadlineSeconds"):
            text = "must be greater than or equal to 0"
            causes.append(errors.invalid_value(f"{path}.{field}", value, text))
    return causes


def _container_causes(container: Object, path: str, names: set[str]) -> list[Object]:
    causes = []
    name = container.get("name") or ""
    if not name:
        causes.append(errors.required(f"{path}.name"))
    elif not _LABEL.fullmatch(name):
        causes.append(errors.invalid_value(f"{path}.name", name, _LABEL_CURE))
    elif name in names:
        text = f'Duplicate value: "{name}"'
        causes.append(errors.cause(f"{path}.name", "FieldValueDuplicate", text))
    names.add(name)
    if not container.get("image"):
        causes.append(errors.required(f"{path}.image"))
    resources = container.get("resources") or {}
    for part in ("requests", "limits"):
        for resource, amount in (resources.get(part) or {}).items():
            where = f"{path}.resources.{part}"
            if not is_qualified_name(resource):
                causes.append(errors.invalid_value(where, resource, "must be a resource name"))
            causes += _amount_causes(f"{where}[{resource}]", amount)
    return causes


def _amount_causes(where: str, amount: object) -> list[Object]:
    if not is_quantity(amount):
        text = "quantities must match the regular expression of resource.Quantity"
        return [errors.invalid_value(where, str(amount), text)]
    if str(amount).startswith("-"):
        text = "must be greater than or equal to 0"
        return [errors.invalid_value(where, str(amount), text)]
    return []


def _node_causes(body: Object) -> list[Object]:
    causes = []
    for index, taint in enumerate((body.get("spec") or {}).get("taints") or ()):
        where = f"spec.taints[{index}]"
        if not taint.get("key"):
            causes.append(errors.required(f"{where}.key"))
        if taint.get("effect") not in _EFFECTS:
            text = f'Unsupported value: "{taint.get("effect")}"'
            causes.append(errors.cause(f"{where}.effect", "FieldValueNotSupported", text))
    status = body.get("status") or {}
    for part in ("capacity", "allocatable"):
        for resource, amount in (status.get(part) or {}).items():
            causes += _amount_causes(f"status.{part}[{resource}]", amount)
    return causes


def _selected_causes(resource: Resource, spec: Object) -> list[Object]:
    causes = []
    selector = spec.get("selector") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not selector:
        causes.append(errors.required("spec.selector"))
    elif any(
        labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()
    ):
        text = "`selector` does not match template `labels`"
        causes.append(errors.invalid_value("spec.template.metadata.labels", str(labels), text))
    causes += _count_causes(spec, "replicas")
    template = (spec.get("template") or {}).get("spec") or {}
    return causes + _pod_causes(template, "spec.template.spec", restarts=("Always",))


def _count_causes(spec: Object, field: str) -> list[Object]:
    """Return what is wrong with a number of pods that a controller makes at once."""
    count = spec.get(field)
    if count is None or 0 <= count <= _PODS_MAX:
        return []
    text = "must be greater than or equal to 0"
    if count > 0:
        text = f"must be less than or equal to {_PODS_MAX}, the most pods of one object here"
    return [errors.invalid_value(f"spec.{field}", count, text)]


def _job_causes(spec: Object) -> list[Object]:
    causes = _count_causes(spec, "parallelism")
    for field in ("completions", "backoffLimit", "activeDeadlineSeconds"):
        value = spec.get(field)
        if value is not None and value < 0:
            text = "must be greater than or equal to 0"
            causes.append(errors.invalid_value(f"spec.{field}", value, text))
    template = (spec.get("template") or {}).get("spec") or {}
    # The default of a pod, Always, is not allowed in a job: the user has to choose.
    return causes + _pod_causes(template, "spec.template.spec", restarts=("OnFailure", "Never"))


def _priority_causes(body: Object) -> list[Object]:
    value = body.get("value") or 0
    name = body["metadata"].get("name") or ""
    if value > _SYSTEM_PRIORITY and not name.startswith("system-"):
        text = f"maximum allowed value of a user defined priority is {_SYSTEM_PRIORITY}"
        return [errors.cause("value", "FieldValueForbidden", f"Forbidden: {text}")]
    return []


_POD_MUTABLE: Final = (
    "activeDeadlineSeconds", "containers", "initContainers", "ephemeralContainers",
    "schedulingGates", "terminationGracePeriodSeconds", "tolerations",
)  # fmt: skip


def _immutable_causes(resource: Resource, current: Object, wanted: Object) -> list[Object]:
    before, after = current.get("spec") or {}, wanted.get("spec") or {}
    if resource is PODS and before is not after:
        return _pod_update_causes(before, after)
    fixed: tuple[str, ...] = ()
    if resource in _SELECTED:
        fixed = ("selector",)
    elif resource is JOBS:
        fixed = ("selector", "completionMode") if before.get("suspend") else (
            "selector", "completionMode", "template",
        )  # fmt: skip
    causes = [
        errors.invalid_value(f"spec.{field}", "", "field is immutable")
        for field in fixed
        if before.get(field) != after.get(field)
    ]
    if resource is PRIORITY_CLASSES and current.get("value") != wanted.get("value"):
        text = "Forbidden: may not be changed in an update."
        causes.append(errors.cause("value", "FieldValueForbidden", text))
    return causes


def _pod_update_causes(before: Object, after: Object) -> list[Object]:
    """Return what a change of a pod may not touch: all but images, tolerations and deadlines."""
    fixed = {
        key
        for key in {*before, *after} - set(_POD_MUTABLE)
        if before.get(key) != after.get(key) and (key, before.get(key)) != ("nodeName", None)
    }
    if before.get("nodeName") is None and after.get("nodeName"):
        fixed.add("nodeName")
    for field in ("containers", "initContainers"):
        if _without_images(before.get(field)) != _without_images(after.get(field)):
            fixed.add(field)
    kept = all(
        toleration in (after.get("tolerations") or ())
        for toleration in before.get("tolerations") or ()
    )
    if not kept:
        fixed.add("tolerations")
    if not fixed:
        return []
    text = (
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        " `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only"
        " additions to existing tolerations), `spec.terminationGracePeriodSeconds`; changed: "
        + ", ".join(sorted(fixed))
    )
    return [errors.cause("spec", "FieldValueForbidden", text)]


def _without_images(containers: list[Object] | None) -> list[Object]:
    return [{**container, "image": "", "imagePullPolicy": ""} for container in containers or ()]
