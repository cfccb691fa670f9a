"""Reading: one object, and lists with pages, versions and selectors."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from bisect import bisect_right
from typing import Any

import msgspec

from equipoise.adapters.kubernetes.api import errors
from equipoise.adapters.kubernetes.api.selectors import selector
from equipoise.adapters.kubernetes.api.store import ObjectStore, object_key
from equipoise.adapters.kubernetes.api.verbs.rendering import Rendering
from equipoise.adapters.kubernetes.api.verbs.request import ApiRequest
from equipoise.adapters.kubernetes.api.watch import WatchRequest, parse_version

Object = dict[str, Any]


def rendering_of(request: ApiRequest, store: ObjectStore) -> Rendering:
    """Return the form in which the client wants objects."""
    included = request.query.get("includeObject") or "Metadata"
    if included not in ("None", "Metadata", "Object"):
        raise errors.bad_request(f"invalid value {included!r} of includeObject")
    return Rendering(request.served, request.view, _wall_ms_of(store), included)


def _wall_ms_of(store: ObjectStore) -> Any:
    return store.read_wall_ms


def get(request: ApiRequest, store: ObjectStore) -> Object:
    """Return one object."""
    target = request.target
    if version := request.query.get("resourceVersion"):
        _check_reached(store, parse_version(version))
    stored = store.get(request.served.resource, target.name, target.namespace)
    return rendering_of(request, store).item(stored)


def list_objects(request: ApiRequest, store: ObjectStore) -> Object:
    """Return the objects of a collection that selectors select, or a page of them."""
    resource, query = request.served.resource, request.query
    matches = selector(
        request.served, query.get("labelSelector", ""), query.get("fieldSelector", "")
    )
    namespace = request.target.namespace
    limit = request.number("limit") or 0
    start = ""
    if query.get("continue"):
        if query.get("resourceVersionMatch"):
            raise errors.bad_request("resourceVersionMatch is forbidden with continue")
        if query.get("resourceVersion", "0") not in ("", "0"):
            text = "specifying resource version is not allowed when using continue"
            raise errors.bad_request(text)
        version, start = _parse_continue(query["continue"])
        objects = _objects_at(store, request, version)
    else:
        version = _version(request, store, limit)
        if version == store.version:
            # The usual case: nothing of the past is needed.
            objects = store.list(resource, namespace, None if limit else matches)
        else:
            objects = store.list_at(resource, version, namespace)
    if start:
        objects = objects[bisect_right(objects, start, key=object_key) :]
    if matches is not None:
        objects = [stored for stored in objects if matches(stored)]
    metadata: Object = {"resourceVersion": str(version)}
    if limit and len(objects) > limit:
        remaining = len(objects) - limit
        objects = objects[:limit]
        metadata["continue"] = _continue(version, object_key(objects[-1]))
        if matches is None:
            metadata["remainingItemCount"] = remaining
    return rendering_of(request, store).list(objects, metadata)


def _version(request: ApiRequest, store: ObjectStore, limit: int) -> int:
    """Return the version at which a list is read, by the rules of ``resourceVersionMatch``."""
    text = request.query.get("resourceVersion", "")
    match = request.query.get("resourceVersionMatch", "")
    if match not in ("", "Exact", "NotOlderThan"):
        raise _invalid_match(f'Unsupported value: "{match}"')
    if not text:
        if match:
            raise _invalid_match("resourceVersionMatch is forbidden unless resourceVersion is set")
        return store.version
    version = parse_version(text)
    if match == "Exact" and version == 0:
        raise _invalid_match('resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
    _check_reached(store, version)
    # An old meaning of the real API: a page of a given version is exactly of that version.
    if match == "Exact" or (not match and limit and version):
        return version
    return store.version


def _check_reached(store: ObjectStore, version: int) -> None:
    if version > store.version:
        raise errors.not_reached(version, store.version)


def _invalid_match(text: str) -> errors.ApiError:
    causes = [errors.cause("resourceVersionMatch", "FieldValueForbidden", f"Forbidden: {text}")]
    return errors.invalid("ListOptions", "meta.k8s.io", "", causes)


def _objects_at(store: ObjectStore, request: ApiRequest, version: int) -> list[Object]:
    try:
        return store.list_at(request.served.resource, version, request.target.namespace)
    except errors.ApiError:
        raise errors.gone(
            "The provided continue parameter is too old to display a consistent list result. You"
            " must start a new list without the continue parameter."
        ) from None


def _continue(version: int, key: str) -> str:
    token = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": version, "start": key})
    return urlsafe_b64encode(token).decode().rstrip("=")


class _Token(msgspec.Struct):
    v: str
    rv: int
    start: str


def _parse_continue(text: str) -> tuple[int, str]:
    try:
        padded = text + "=" * (-len(text) % 4)
        token = msgspec.json.decode(urlsafe_b64decode(padded.encode("ascii")), type=_Token)
    except (Base64Error, UnicodeEncodeError, ValueError, msgspec.MsgspecError):
        raise errors.bad_request("continue key is not valid") from None
    if token.v != "meta.k8s.io/v1" or token.rv < 0 or not token.start:
        raise errors.bad_request("continue key is not valid")
    return token.rv, token.start


def watch_request(request: ApiRequest, store: ObjectStore, client: str = "") -> WatchRequest:
    """Return what a watch shows, and to whom."""
    query, target = request.query, request.target
    fields = query.get("fieldSelector", "")
    if target.name:
        # The old way to watch one object.
        fields = f"metadata.name={target.name}" + (f",{fields}" if fields else "")
    initial = request.flag("sendInitialEvents")
    match = query.get("resourceVersionMatch", "")
    if "sendInitialEvents" in query and match != "NotOlderThan":
        raise _invalid_match(
            'sendInitialEvents requires setting resourceVersionMatch to "NotOlderThan"'
        )
    if match and "sendInitialEvents" not in query:
        raise _invalid_match(
            "resourceVersionMatch is forbidden for watch without sendInitialEvents"
        )
    version = query.get("resourceVersion", "")
    if version:
        parse_version(version)
    return WatchRequest(
        rendering=rendering_of(request, store),
        namespace=target.namespace,
        matches=selector(request.served, query.get("labelSelector", ""), fields),
        version=version,
        bookmarks=request.flag("allowWatchBookmarks"),
        initial_events=initial,
        timeout_s=float(request.number("timeoutSeconds") or 0),
        client=client,
    )
