"""Writing: create, update, patch and delete, of objects and of their status."""

from __future__ import annotations

from typing import Any, Final

from equipoise.adapters.kubernetes.api import errors
from equipoise.adapters.kubernetes.api.patch import json_patch, merge_patch, strategic_merge
from equipoise.adapters.kubernetes.api.resources import NODES
from equipoise.adapters.kubernetes.api.schema.types import check_types
from equipoise.adapters.kubernetes.api.selectors import selector
from equipoise.adapters.kubernetes.api.store import DeleteOptions, ObjectStore
from equipoise.adapters.kubernetes.api.verbs.apply import Applier, apply
from equipoise.adapters.kubernetes.api.verbs.reads import rendering_of
from equipoise.adapters.kubernetes.api.verbs.request import ApiRequest

Object = dict[str, Any]
Answer = tuple[int, Object]

_JSON_PATCH: Final = "application/json-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
PATCH_TYPES: Final = (_JSON_PATCH, _MERGE_PATCH, _STRATEGIC, _APPLY)
_POLICIES: Final = ("", "Orphan", "Background", "Foreground")


def create(request: ApiRequest, store: ObjectStore) -> Answer:
    """Store a new object."""
    stored = store.create(
        request.served.resource,
        _without_status(request, _typed(request, request.body)),
        request.target.namespace,
        dry_run=request.is_dry_run,
    )
    return 201, rendering_of(request, store).item(stored)


def update(request: ApiRequest, store: ObjectStore) -> Answer:
    """Replace an object, its status or its scale."""
    body = _typed(request, request.body)
    _name_in_body(request, body)
    stored = store.replace(
        request.served.resource,
        body,
        subresource=request.target.subresource,
        dry_run=request.is_dry_run,
    )
    return 200, rendering_of(request, store).item(stored)


def patch(request: ApiRequest, store: ObjectStore) -> Answer:
    """Change parts of an object, or create it by applying it."""
    target, served = request.target, request.served
    resource = served.resource
    if request.content_type not in PATCH_TYPES:
        listed = ", ".join(PATCH_TYPES)
        text = (
            "the body of the request was in an unknown format - accepted media types include:"
            f" {listed}"
        )
        raise errors.ApiError(415, "UnsupportedMediaType", text)
    if request.content_type == _APPLY:
        return _apply(request, store)
    current = store.get(resource, target.name, target.namespace)
    patched = _patched(request, served.to_served(current))
    body = _typed(request, patched)
    _name_in_body(request, body)
    stored = store.replace(
        resource, body, subresource=target.subresource, dry_run=request.is_dry_run
    )
    return 200, rendering_of(request, store).item(stored)


def _patched(request: ApiRequest, current: Object) -> Any:
    body = request.body
    if request.content_type == _JSON_PATCH:
        return json_patch(current, body)
    if not isinstance(body, dict):
        raise errors.bad_request("a merge patch must be an object")
    if request.content_type == _MERGE_PATCH:
        return merge_patch(current, body)
    return strategic_merge(current, body)


def _apply(request: ApiRequest, store: ObjectStore) -> Answer:
    """Create or merge an object that a manager applies; what it no longer has goes."""
    target, resource = request.target, request.served.resource
    name = request.query.get("fieldManager", "")
    if not name:
        raise errors.bad_request("fieldManager is required for apply patch")
    body = _typed(request, request.body)
    _name_in_body(request, body)
    current = store.find(resource, target.name, target.namespace)
    if current is None and target.subresource:
        raise errors.not_found(resource.group, resource.plural, target.name)
    manager = Applier(name, target.subresource, force=request.flag("force"))
    applied = apply(current, body, manager, store.timestamp())
    # Applying what is there already changes nothing but the time, so it changes nothing.
    applied = _typed(request, request.served.to_served(applied))
    if current is None:
        applied = _without_status(request, applied)
        stored = store.create(resource, applied, target.namespace, dry_run=request.is_dry_run)
        return 201, rendering_of(request, store).item(stored)
    stored = store.replace(
        resource, applied, subresource=target.subresource, dry_run=request.is_dry_run
    )
    return 200, rendering_of(request, store).item(stored)


def delete(request: ApiRequest, store: ObjectStore) -> Answer:
    """Delete one object, at once or after its grace period."""
    target, resource = request.target, request.served.resource
    options = delete_options(request)
    before = store.get(resource, target.name, target.namespace)
    stored = store.delete(resource, target.name, target.namespace, **options)
    is_gone = store.find(resource, target.name, target.namespace) is None
    if not is_gone or resource.plural == "pods":
        return 200, rendering_of(request, store).item(stored)
    details = {"name": target.name, "kind": resource.plural, "uid": before["metadata"]["uid"]}
    if resource.group:
        details["group"] = resource.group
    return 200, errors.success(details)


def delete_collection(request: ApiRequest, store: ObjectStore) -> Answer:
    """Delete the objects of a collection that selectors select."""
    resource, query, target = request.served.resource, request.query, request.target
    matches = selector(
        request.served, query.get("labelSelector", ""), query.get("fieldSelector", "")
    )
    options = delete_options(request)
    deleted = []
    for stored in store.list(resource, target.namespace, matches):
        metadata = stored["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace") or ""
        # A listener may have deleted it with the one before.
        if store.find(resource, name, namespace) is not None:
            deleted.append(store.delete(resource, name, namespace, **options))
    metadata = {"resourceVersion": str(store.version)}
    return 200, rendering_of(request, store).list(deleted, metadata)


def delete_options(request: ApiRequest) -> dict[str, Any]:
    """Return the options of a deletion, from its body and its query."""
    body = request.body if request.body is not None else {}
    if not isinstance(body, dict):
        raise errors.bad_request("DeleteOptions must be an object")
    grace = body.get("gracePeriodSeconds")
    if grace is None:
        grace = request.number("gracePeriodSeconds")
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise errors.bad_request("gracePeriodSeconds must be a number")
    policy = body.get("propagationPolicy") or request.query.get("propagationPolicy") or ""
    orphan = body.get("orphanDependents")
    if orphan is not None and not policy:
        policy = "Orphan" if orphan else "Background"
    if policy not in _POLICIES:
        cause = errors.invalid_value("propagationPolicy", str(policy), "is not known")
        raise errors.invalid("DeleteOptions", "meta.k8s.io", "", [cause])
    conditions = body.get("preconditions")
    conditions = conditions if isinstance(conditions, dict) else {}
    return {
        "grace_s": None if grace is None else min(max(grace, 0), 2**31),
        "uid": _text(conditions.get("uid")),
        "options": DeleteOptions(
            version=_text(conditions.get("resourceVersion")),
            propagation=policy,
            dry_run=request.is_dry_run or bool(body.get("dryRun")),
        ),
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _typed(request: ApiRequest, body: Any) -> Object:
    """Return an object of a client as it is stored, after a check of its kind and its types."""
    if not isinstance(body, dict):
        raise errors.bad_request("the body of the request must be one object")
    served = request.served
    kind, version = body.get("kind"), body.get("apiVersion")
    if (kind and kind != served.resource.kind) or (version and version != served.api_version):
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {served.resource.kind}, version"
            f" {served.api_version})"
        )
    mode = request.query.get("fieldValidation") or "Ignore"
    if mode not in ("Ignore", "Warn", "Strict"):
        cause = errors.invalid_value("fieldValidation", mode, "must be Ignore, Warn or Strict")
        raise errors.invalid("CreateOptions", "meta.k8s.io", "", [cause])
    typed, unknown = check_types(served, body)
    if unknown:
        if mode == "Strict":
            raise errors.bad_request("strict decoding error: " + ", ".join(unknown))
        if mode == "Warn":
            request.warnings += unknown
    return served.to_stored(typed)


def _without_status(request: ApiRequest, body: Object) -> Object:
    """Drop the status that a client gives to a new object: only nodes may come with theirs."""
    resource = request.served.resource
    if resource.has_status and resource is not NODES:
        body.pop("status", None)
    return body


def _name_in_body(request: ApiRequest, body: Object) -> None:
    """Put the name of the path into the body, or refuse another one."""
    target = request.target
    metadata = dict(body.get("metadata") or {})
    for key, wanted in (("name", target.name), ("namespace", target.namespace)):
        if not wanted:
            metadata.pop(key, None)
        elif (metadata.get(key) or wanted) != wanted:
            raise errors.bad_request(
                f"the {key} of the object ({metadata[key]}) does not match the {key} on the URL"
                f" ({wanted})"
            )
        else:
            metadata[key] = wanted
    body["metadata"] = metadata
