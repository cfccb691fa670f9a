"""What the API says about itself: versions, collections, health and types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from equipoise.adapters.kubernetes.api.resources import (
    ALL_VERBS,
    SERVED_VERSIONS,
    Resource,
    ServedVersion,
)
from equipoise.adapters.kubernetes.api.schema import openapi
from equipoise.adapters.kubernetes.api.schema.openapi_protobuf import (
    CONTENT_TYPE,
    MEDIA,
    document_protobuf,
)
from equipoise.adapters.kubernetes.api.verbs.rendering import encode
from equipoise.adapters.kubernetes.api.verbs.subresources import REVIEWS

Object = dict[str, Any]

VERSION: Final = "v1.36.0"
"""The version of Kubernetes whose API this is."""
_JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"
_AGGREGATED: Final = ("v2", "v2beta1")
_CHECKS: Final = ("ping", "store", "watches")
_ACTS: Final[Mapping[str, tuple[str, ...]]] = {
    "status": ("get", "patch", "update"),
    "scale": ("get", "patch", "update"),
    "binding": ("create",),
    "eviction": ("create",),
    "log": ("get",),
}
_KINDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
}
"""The kinds of subresources that are not the kind of their object."""


class Discovery:
    """The documents of the API, each made when a client first asks."""

    def __init__(self) -> None:
        self._documents: dict[tuple[str, str], tuple[bytes, str]] = {}
        self._paths: dict[str, Callable[[], Object]] = {
            "/version": _version,
            "/api": lambda: {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": _groups,
            "/": _roots,
            "/openapi/v2": partial(openapi.document_v2, VERSION),
            "/openapi/v3": lambda: openapi.index(group_versions()),
        }
        for group, version in group_versions():
            path = f"/apis/{group}/{version}" if group else "/api/v1"
            self._paths[path] = partial(_collections, group, version)
            self._paths[f"/openapi/v3{path}"] = partial(
                openapi.document_v3, group, version, VERSION
            )
            if group:
                self._paths[f"/apis/{group}"] = partial(_group, group)

    def answer(self, path: str, accept: str, query: dict[str, str]) -> tuple[bytes, str] | None:
        """Return the document of a path and its content type; None if it has none."""
        if path in ("/healthz", "/livez", "/readyz"):
            return _health(path, verbose="verbose" in query), _TEXT
        path = path.rstrip("/") or "/"
        if path not in self._paths:
            return None
        version = _aggregated_version(accept) if path in ("/api", "/apis") else ""
        if path == "/openapi/v2" and MEDIA in accept and _JSON not in accept:
            return self._types_in_protobuf(), CONTENT_TYPE
        key = (path, version)
        if key not in self._documents:
            if version:
                document = encode(_aggregated(version, core=path == "/api"))
                media = (
                    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                )
            else:
                document, media = encode(self._paths[path]()), _JSON
            self._documents[key] = (document, media)
        return self._documents[key]

    def _types_in_protobuf(self) -> bytes:
        key = ("/openapi/v2", "protobuf")
        if key not in self._documents:
            document = document_protobuf(openapi.document_v2(VERSION))
            self._documents[key] = (document, CONTENT_TYPE)
        return self._documents[key][0]


def group_versions() -> list[tuple[str, str]]:
    """Return the groups and versions that are served, the best version of a group first."""
    found = {(group, version): None for group, version, _ in (*SERVED_VERSIONS, *REVIEWS)}
    return sorted(found, key=lambda pair: (pair[0], "beta" in pair[1], pair[1]))


def _version() -> Object:
    return {
        "major": "1",
        "minor": VERSION.split(".")[1],
        "gitVersion": f"{VERSION}+equipoise",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


def _roots() -> Object:
    paths = ["/api", "/api/v1", "/apis"]
    paths += [f"/apis/{group}/{version}" for group, version in group_versions() if group]
    return {
        "paths": [*paths, "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
    }


def _health(path: str, *, verbose: bool) -> bytes:
    if not verbose:
        return b"ok"
    lines = [f"[+]{check} ok" for check in _CHECKS]
    return "\n".join([*lines, f"{path[1:]} check passed", ""]).encode()


# Plain discovery


def _groups() -> Object:
    names = dict.fromkeys(group for group, _ in group_versions() if group)
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_of_group(name) for name in names],
    }


def _group(name: str) -> Object:
    return {"kind": "APIGroup", "apiVersion": "v1", **_of_group(name)}


def _of_group(name: str) -> Object:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for group, version in group_versions()
        if group == name
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def served_of(group: str, version: str) -> list[ServedVersion]:
    """Return the collections of a group version."""
    return [
        served
        for (served_group, served_version, _), served in SERVED_VERSIONS.items()
        if (served_group, served_version) == (group, version)
    ]


def _reviews_of(group: str, version: str) -> Iterable[tuple[str, str]]:
    for (review_group, review_version, plural), (kind, _) in REVIEWS.items():
        if (review_group, review_version) == (group, version):
            yield plural, kind
    if (group, version) == ("", "v1"):
        yield "bindings", "Binding"


def _subresources(resource: Resource) -> list[str]:
    return [*(["status"] if resource.has_status else []), *resource.subresources]


def _collections(group: str, version: str) -> Object:
    listed: list[Object] = []
    for served in served_of(group, version):
        resource = served.resource
        entry: Object = {
            "name": resource.plural, "singularName": resource.singular,
            "namespaced": resource.namespaced, "kind": resource.kind, "verbs": list(ALL_VERBS),
        }  # fmt: skip
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        listed.append(entry)
        for name in _subresources(resource):
            part: Object = {
                "name": f"{resource.plural}/{name}", "singularName": "",
                "namespaced": resource.namespaced, "kind": resource.kind,
                "verbs": list(_ACTS[name]),
            }  # fmt: skip
            if name in _KINDS:
                part["group"], part["version"], part["kind"] = _KINDS[name]
            listed.append(part)
    for plural, kind in _reviews_of(group, version):
        listed.append(
            {
                "name": plural, "singularName": kind.lower(), "namespaced": plural == "bindings",
                "kind": kind, "verbs": ["create"],
            }
        )  # fmt: skip
    listed.sort(key=lambda entry: entry["name"])
    name = f"{group}/{version}" if group else version
    return {
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": listed,
    }  # fmt: skip


# Aggregated discovery


def _aggregated_version(accept: str) -> str:
    """Return the version of aggregated discovery that a client accepts; empty for plain."""
    for offer in accept.split(","):
        parts = {part.strip() for part in offer.split(";")}
        if _JSON in parts and "g=apidiscovery.k8s.io" in parts:
            for version in _AGGREGATED:
                if f"v={version}" in parts:
                    return version
        elif _JSON in parts:
            return ""
    return ""


def _aggregated(version: str, *, core: bool) -> Object:
    names = dict.fromkeys(group for group, _ in group_versions() if (group == "") is core)
    items: list[Object] = []
    for name in names:
        versions = [
            {
                "version": version_name,
                "resources": _discovered(name, version_name),
                "freshness": "Current",
            }
            for group, version_name in group_versions()
            if group == name
        ]
        metadata = (
            {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None}
        )
        items.append({"metadata": metadata, "versions": versions})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _discovered(group: str, version: str) -> list[Object]:
    listed: list[Object] = []
    for served in served_of(group, version):
        resource = served.resource
        entry: Object = {
            "resource": resource.plural,
            "responseKind": {"group": group, "version": version, "kind": resource.kind},
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "singularResource": resource.singular,
            "verbs": list(ALL_VERBS),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        parts = []
        for name in _subresources(resource):
            kind = _KINDS.get(name, (group, version, resource.kind))
            response = dict(zip(("group", "version", "kind"), kind, strict=True))
            parts.append(
                {"subresource": name, "responseKind": response, "verbs": list(_ACTS[name])}
            )
        if parts:
            entry["subresources"] = parts
        listed.append(entry)
    for plural, kind_name in _reviews_of(group, version):
        listed.append(
            {
                "resource": plural,
                "responseKind": {"group": group, "version": version, "kind": kind_name},
                "scope": "Namespaced" if plural == "bindings" else "Cluster",
                "singularResource": kind_name.lower(),
                "verbs": ["create"],
            }
        )
    return listed
