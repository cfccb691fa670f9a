"""The parts of objects that have a path of their own, and requests about the client itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from equipoise.adapters.kubernetes.api import errors
from equipoise.adapters.kubernetes.api.admission.budgets import disruptions_allowed
from equipoise.adapters.kubernetes.api.patch import json_patch, merge_patch
from equipoise.adapters.kubernetes.api.resources import POD_DISRUPTION_BUDGETS, PODS
from equipoise.adapters.kubernetes.api.selectors import selector_of
from equipoise.adapters.kubernetes.api.store import ObjectStore
from equipoise.adapters.kubernetes.api.verbs.request import ApiRequest
from equipoise.adapters.kubernetes.api.verbs.writes import PATCH_TYPES, delete_options

Object = dict[str, Any]
Answer = tuple[int, Object]

_USER: Final = "equipoise"


def bind(request: ApiRequest, store: ObjectStore) -> Answer:
    """Assign a pod to a node."""
    body = _object(request.body)
    target, metadata = _part(body, "target"), _part(body, "metadata")
    name = request.target.name or metadata.get("name")
    if not isinstance(name, str) or not name:
        raise errors.bad_request("metadata.name is required")
    if metadata.get("name") not in (None, "", name):
        text = f"the name of the binding does not match the pod on the URL ({name})"
        raise errors.bad_request(text)
    node = target.get("name")
    causes = []
    if not isinstance(node, str) or not node:
        causes.append(errors.required("target.name"))
    elif target.get("kind") not in (None, "", "Node"):
        text = f'Unsupported value: "{target.get("kind")}": supported values: "Node", "<empty>"'
        causes.append(errors.cause("target.kind", "FieldValueNotSupported", text))
    if causes:
        raise errors.invalid("Binding", "", name, causes)
    uid, annotations = metadata.get("uid"), metadata.get("annotations")
    store.bind(
        request.target.namespace, name, str(node),
        uid=uid if isinstance(uid, str) else "",
        annotations=_texts(annotations),
        dry_run=request.is_dry_run,
    )  # fmt: skip
    return 201, errors.success(code=201)


def _texts(annotations: object) -> dict[str, str] | None:
    if not isinstance(annotations, dict):
        return None
    if not all(isinstance(value, str) for value in annotations.values()):
        raise errors.bad_request("annotations must be texts")
    return annotations


def evict(request: ApiRequest, store: ObjectStore) -> Answer:
    """Delete a pod unless that breaks a disruption budget."""
    target = request.target
    body = _object(request.body)
    pod = store.get(PODS, target.name, target.namespace)
    metadata = pod["metadata"]
    status = pod.get("status") or {}
    ends_anyway = status.get("phase") in ("Pending", "Succeeded", "Failed")
    if not ends_anyway and not metadata.get("deletionTimestamp"):
        for budget in store.list(POD_DISRUPTION_BUDGETS, target.namespace):
            selects = selector_of((budget.get("spec") or {}).get("selector"))
            if selects(metadata.get("labels") or {}) and disruptions_allowed(store, budget) < 1:
                name = budget["metadata"]["name"]
                text = f"The disruption budget {name} does not allow another disruption."
                cause = {"reason": "DisruptionBudget", "message": text}
                raise errors.too_many(
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                    cause=cause,
                )
    request.body = body.get("deleteOptions")
    options = delete_options(request)
    store.delete(PODS, target.name, target.namespace, **options)
    return 201, errors.success(code=201)


def log_of(request: ApiRequest, store: ObjectStore) -> str:
    """Return the log of a pod: the simulation runs no program, so it tells what it did."""
    pod = store.get(PODS, request.target.name, request.target.namespace)
    spec, status = pod["spec"], pod.get("status") or {}
    names = [
        container["name"]
        for container in (*(spec.get("initContainers") or ()), *spec["containers"])
    ]
    container = request.query.get("container") or names[-1]
    if container not in names:
        text = f"container {container} is not valid for pod {request.target.name}"
        raise errors.bad_request(text)
    lines = [f"simulated pod, phase {status.get('phase') or 'Pending'}"]
    if spec.get("nodeName"):
        lines.append(f"assigned to node {spec['nodeName']}")
    if status.get("startTime"):
        lines.append(f"started at {status['startTime']}")
    return "\n".join(lines) + "\n"


# Scale


def get_scale(request: ApiRequest, store: ObjectStore) -> Answer:
    """Return how many replicas an object wants and has."""
    target = request.target
    return 200, _scale(store.get(request.served.resource, target.name, target.namespace))


def put_scale(request: ApiRequest, store: ObjectStore) -> Answer:
    """Set how many replicas an object wants."""
    return _rescale(request, store, _object(request.body))


def patch_scale(request: ApiRequest, store: ObjectStore) -> Answer:
    """Change how many replicas an object wants."""
    target = request.target
    scale = _scale(store.get(request.served.resource, target.name, target.namespace))
    if request.content_type not in PATCH_TYPES:
        raise errors.ApiError(415, "UnsupportedMediaType", "the patch has an unknown format")
    if isinstance(request.body, list):
        return _rescale(request, store, json_patch(scale, request.body))
    return _rescale(request, store, merge_patch(scale, _object(request.body)))


def _scale(stored: Object) -> Object:
    metadata, spec, status = stored["metadata"], stored["spec"], stored.get("status") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = spec.get("selector") or {}
    labels = selector.get("matchLabels", selector)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": {
            "replicas": status.get("replicas") or 0,
            "selector": ",".join(f"{key}={value}" for key, value in labels.items()),
        },
    }


def _rescale(request: ApiRequest, store: ObjectStore, scale: Any) -> Answer:
    target, resource = request.target, request.served.resource
    scale = _object(scale)
    replicas = _part(scale, "spec").get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int) or not 0 <= replicas < 2**31:
        cause = errors.invalid_value("spec.replicas", str(replicas), "must be a count")
        raise errors.invalid("Scale", "autoscaling", target.name, [cause])
    current = store.get(resource, target.name, target.namespace)
    version = _part(scale, "metadata").get("resourceVersion")
    wanted = {**current, "spec": {**current["spec"], "replicas": replicas}}
    wanted["metadata"] = {**current["metadata"]}
    if isinstance(version, str) and version:
        wanted["metadata"]["resourceVersion"] = version
    return 200, _scale(store.replace(resource, wanted, dry_run=request.is_dry_run))


# Requests about the client


def _access_review(body: Object) -> Object:
    return {**body, "status": {"allowed": True, "reason": "the simulation allows everything"}}


def _rules_review(body: Object) -> Object:
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    other = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    status = {"resourceRules": [rule], "nonResourceRules": [other], "incomplete": False}
    return {**body, "status": status}


def _self_review(body: Object) -> Object:
    groups = ["system:masters", "system:authenticated"]
    return {**body, "status": {"userInfo": {"username": _USER, "groups": groups}}}


REVIEWS: Final[Mapping[tuple[str, str, str], tuple[str, Callable[[Object], Object]]]] = {
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"): (
        "SelfSubjectAccessReview", _access_review,
    ),
    ("authorization.k8s.io", "v1", "subjectaccessreviews"): (
        "SubjectAccessReview", _access_review,
    ),
    ("authorization.k8s.io", "v1", "selfsubjectrulesreviews"): (
        "SelfSubjectRulesReview", _rules_review,
    ),
    ("authentication.k8s.io", "v1", "selfsubjectreviews"): ("SelfSubjectReview", _self_review),
}  # fmt: skip
"""What can only be created: questions about the client, which are answered and not stored."""


def review(group: str, version: str, plural: str, body: Any) -> Answer:
    """Answer a question about the client."""
    kind, answer = REVIEWS[group, version, plural]
    asked = _object(body)
    return 201, {**answer(asked), "kind": kind, "apiVersion": f"{group}/{version}"}


def _object(body: Any) -> Object:
    if not isinstance(body, dict):
        raise errors.bad_request("the body of the request must be one object")
    return body


def _part(body: Object, key: str) -> Object:
    """Return an object in an object; an empty one if it is something else."""
    part = body.get(key)
    return part if isinstance(part, dict) else {}
