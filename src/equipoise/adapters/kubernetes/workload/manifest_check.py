"""What is wrong with a manifest: the parts that the simulation reads, and the rules of the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from equipoise.adapters.kubernetes.annotations import check_annotations
from equipoise.adapters.kubernetes.api.admission.validation import check_new
from equipoise.adapters.kubernetes.api.errors import ApiError
from equipoise.adapters.kubernetes.api.resources import ALL_RESOURCES, BY_KIND
from equipoise.adapters.kubernetes.api.schema.types import WrongType, check_types
from equipoise.adapters.kubernetes.quantity import parse_quantity
from equipoise.model.diagnostics import KeyPath

Object = dict[str, Any]
KINDS: Final = {resource.kind: resource for resource in ALL_RESOURCES}
_TEMPLATED: Final = frozenset({"Job", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]+)\]")


class WrongManifest(Exception):
    """A part of an object is wrong."""

    def __init__(self, at: KeyPath, what: str, cure: str, code: str = "invalid-value") -> None:
        self.at, self.what, self.cure, self.code = at, what, cure, code


def checked(body: Any) -> Object:
    """Return an object as the API would store it, or raise ``WrongManifest``.

    First the parts that the simulation reads, with their own cures, then the rules of the API.
    """
    _check(body)
    served = BY_KIND[body["apiVersion"], body["kind"]]
    try:
        typed, unknown = check_types(served, body)
        if unknown:
            at = _path_of(unknown[0].partition('"')[2].rstrip('"'))
            raise WrongManifest(
                at, "is no field of this kind", "correct or remove it", "unknown-key"
            )
        check_new(served.resource, _named(served.to_stored(typed)))
    except WrongType as error:
        what, cure = f"is {error.found}", f"write {error.wanted}"
        raise WrongManifest(_path_of(error.path), what, cure, "wrong-type") from None
    except ApiError as error:
        (cause, *_) = (error.details or {})["causes"]
        raise WrongManifest(_path_of(cause["field"]), cause["message"], "correct it") from None
    return typed


def _named(body: Object) -> Object:
    """Return an object with a name as the API would make it, if it only says how it begins."""
    metadata = body["metadata"]
    if metadata.get("name"):
        return body
    return {**body, "metadata": {**metadata, "name": f"{metadata['generateName']}xxxxx"}}


def _path_of(field: str) -> KeyPath:
    """Return the path of a field as the API writes it: ``spec.containers[0].name``."""
    return tuple(
        int(inner) if inner.isdigit() else inner or plain for plain, inner in _STEP.findall(field)
    )


def _check(body: Any) -> None:
    if not isinstance(body, dict) or not isinstance(body.get("kind"), str):
        raise WrongManifest((), "is no object with a kind", "write apiVersion, kind and metadata")
    resource = KINDS.get(body["kind"])
    if resource is None:
        raise WrongManifest(
            ("kind",), f"is {body['kind']!r:.40}, which is not offered", "leave it out"
        )
    if body.get("apiVersion") != resource.api_version:
        what = f"is {body.get('apiVersion')!r:.40}"
        raise WrongManifest(("apiVersion",), what, f"write {resource.api_version}")
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not (
        isinstance(metadata.get("name") or metadata.get("generateName"), str)
    ):
        raise WrongManifest(("metadata",), "has no name", "write metadata.name")
    _check_annotations(metadata, ("metadata",))
    if body["kind"] == "Node":
        status = body.get("status")
        if not isinstance(status, dict):
            raise WrongManifest((), "states no capacity", "write status.capacity")
        for key in ("capacity", "allocatable"):
            _check_amounts(status.get(key) or {}, ("status", key))
    elif body["kind"] == "Pod":
        _check_pod_spec(body.get("spec"), ("spec",))
    elif body["kind"] in _TEMPLATED:
        _check_template(body)


def _check_template(body: Object) -> None:
    spec = body.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(template, dict):
        raise WrongManifest(("spec",), "has no template", "write spec.template")
    metadata = template.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise WrongManifest(("spec", "template", "metadata"), "is no mapping", "write labels in it")
    _check_annotations(metadata, ("spec", "template", "metadata"))
    _check_pod_spec(template.get("spec"), ("spec", "template", "spec"))


def _check_annotations(metadata: Mapping[str, Any], at: KeyPath) -> None:
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, dict):
        raise WrongManifest(
            (*at, "annotations"), "is no mapping", "write annotations with their values"
        )
    for key, value in annotations.items():
        if not isinstance(value, str):
            what = f"is {value!r:.40}, not text"
            raise WrongManifest((*at, "annotations", key), what, f'write "{value}" in quotes')
    try:
        check_annotations(annotations)
    except ValueError as error:
        name = str(error).partition(":")[0]
        cure = "write seconds, such as 90 or 2.5, or 1m30s"
        if not name.endswith(("arrival", "duration", "stop")):
            cure = "docs/kubernetes-workloads.md has the form of every annotation"
        raise WrongManifest((*at, "annotations", name), str(error), cure) from None


def _check_pod_spec(spec: Any, at: KeyPath) -> None:
    if not isinstance(spec, dict) or not isinstance(spec.get("containers"), list):
        raise WrongManifest(at, "has no list of containers", "write spec.containers")
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            place = (*at, key, index)
            if not isinstance(container, dict):
                raise WrongManifest(place, "is no container", "write name, image and resources")
            resources = container.get("resources") or {}
            if not isinstance(resources, dict):
                raise WrongManifest(
                    (*place, "resources"), "is no mapping", "write requests and limits"
                )
            for part in ("requests", "limits"):
                _check_amounts(resources.get(part) or {}, (*place, "resources", part))
    _check_amounts(spec.get("overhead") or {}, (*at, "overhead"))


def _check_amounts(amounts: Any, at: KeyPath) -> None:
    if not isinstance(amounts, dict):
        raise WrongManifest(at, "is no mapping", "write amounts such as cpu: 500m")
    for name, amount in amounts.items():
        try:
            negative = parse_quantity(amount) < 0
        except ValueError as error:
            raise WrongManifest((*at, name), str(error), "write 500m, 2 or 1Gi") from None
        if negative:
            raise WrongManifest((*at, name), f"{amount!r:.40} is below 0", "write 500m, 2 or 1Gi")
