"""What a request names: the collection, the object, the part, and the options of its query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl

from equipoise.adapters.kubernetes.api import errors
from equipoise.adapters.kubernetes.api.resources import SERVED_VERSIONS, ServedVersion
from equipoise.adapters.kubernetes.api.verbs.rendering import View

Object = dict[str, Any]

JSON: Final = "application/json"
_QUERY_FIELDS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Target:
    """The collection, the object and the part of it that a path names."""

    served: ServedVersion
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False
    """Whether the path is one of the old paths of watches."""
    rest: tuple[str, ...] = ()


@dataclass(slots=True)
class ApiRequest:
    """One request, read whole."""

    method: str
    path: str
    target: Target
    query: Mapping[str, str]
    view: View = View.OBJECT
    content_type: str = ""
    body: Any = None
    """The decoded body; None without one."""
    user_agent: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def served(self) -> ServedVersion:
        """Return the collection, under the group version that the client asked."""
        return self.target.served

    def flag(self, name: str) -> bool:
        """Return a truth value of the query."""
        text = self.query.get(name, "")
        if text.lower() in ("", "false", "0", "f"):
            return False
        if text.lower() in ("true", "1", "t"):
            return True
        raise errors.bad_request(f"invalid value {text!r} of {name}")

    def number(self, name: str) -> int | None:
        """Return a number of the query that is not negative, or None."""
        text = self.query.get(name, "")
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 18):  # noqa: PLR2004
            raise errors.bad_request(f"invalid value {text!r} of {name}: it must be a number")
        return int(text)

    @property
    def is_dry_run(self) -> bool:
        """Return whether nothing may be stored."""
        text = self.query.get("dryRun", "")
        if text not in ("", "All"):
            raise errors.bad_request(f'Invalid value: "{text}": dryRun must be "All"')
        return text == "All"


def parse_query(raw: bytes) -> dict[str, str]:
    """Return the options of a query; of an option that is given twice, the first counts."""
    if not raw:
        return {}
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, max_num_fields=_QUERY_FIELDS_MAX
        )
    except (UnicodeDecodeError, ValueError):
        raise errors.bad_request("the query of the request cannot be read") from None
    query: dict[str, str] = {}
    for name, value in pairs:
        query.setdefault(name, value)
    return query


@lru_cache(4096)
def parse_path(path: str) -> Target | None:
    """Return what a path below ``/api`` and ``/apis`` names; None if nothing is there."""
    parts = path.split("/")[1:]
    if parts and parts[-1] == "":
        parts.pop()
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest] if group:
            pass
        case _:
            return None
    return _parse_rest(group, version, rest) if all(rest) else None


def _parse_rest(group: str, version: str, rest: list[str]) -> Target | None:
    is_watch = rest[:1] == ["watch"]
    if is_watch:
        rest = rest[1:]
    namespace = ""
    match rest:
        case ["namespaces", namespace, plural, *names] if not (
            plural in ("status", "finalize") and (group, len(rest)) == ("", 3)
        ):
            pass
        case [plural, *names]:
            namespace = ""
        case _:
            return None
    served = SERVED_VERSIONS.get((group, version, plural))
    if served is None:
        return None
    resource = served.resource
    if bool(namespace) != resource.namespaced and (namespace or names):
        # Cluster-wide lists of namespaced collections are served; single objects need both.
        return None
    name, subresource, *more = [*names, "", ""][: max(len(names), 2)]
    return Target(served, namespace, name, subresource, is_watch, tuple(more))


@lru_cache(256)
def parse_accept(accept: str) -> tuple[View, str] | None:
    """Return the view and the included part of an ``Accept`` header; None if none is served."""
    if not accept.strip():
        return View.OBJECT, JSON
    for offer in accept.split(","):
        media, *parameters = [part.strip() for part in offer.split(";")]
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        if media not in (JSON, "*/*", "application/*", "application/yaml"):
            continue
        form = "application/yaml" if media == "application/yaml" else JSON
        match options.get("as"):
            case None:
                return View.OBJECT, form
            case "Table" if options.get("g") == "meta.k8s.io":
                return View.TABLE, form
            case "PartialObjectMetadata" | "PartialObjectMetadataList":
                return View.METADATA, form
    return None
