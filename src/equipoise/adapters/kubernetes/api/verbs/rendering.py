"""How objects are written for a client: whole, only their metadata, or as rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from equipoise.adapters.kubernetes.api.resources import ServedVersion
from equipoise.adapters.kubernetes.api.tables import columns, definitions, row

Object = dict[str, Any]

encode: Final = msgspec.json.Encoder().encode
"""Return the JSON of an object, the one encoder of the server."""

_META_VERSION: Final = "meta.k8s.io/v1"


class View(StrEnum):
    """The form in which a client wants objects."""

    OBJECT = "object"
    METADATA = "metadata"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Rendering:
    """A collection in the form that one client wants. Equal renderings give equal bytes."""

    served: ServedVersion
    view: View
    wall_ms: Callable[[], int]
    """The time of day of the cluster, for ages."""
    include_object: str = "Metadata"
    """What a row of a table has of its object: ``None``, ``Metadata`` or ``Object``."""

    def item(self, stored: Object) -> Object:
        """Return one object as an answer."""
        if self.view is View.TABLE:
            return self._table([stored], {"resourceVersion": stored["metadata"]["resourceVersion"]})
        if self.view is View.METADATA:
            return _partial(stored)
        return self.served.to_served(stored)

    def list(self, objects: Iterable[Object], metadata: Object) -> Object:
        """Return a list of objects as an answer."""
        if self.view is View.TABLE:
            return self._table(objects, metadata)
        if self.view is View.METADATA:
            kind, version = "PartialObjectMetadataList", _META_VERSION
            items = [_partial(stored) for stored in objects]
        else:
            kind, version = self.served.resource.list_kind, self.served.api_version
            if self.served.is_stored_version:
                items = list(objects)
            else:
                items = [self.served.to_served(stored) for stored in objects]
        return {"kind": kind, "apiVersion": version, "metadata": metadata, "items": items}

    def event(self, kind: str, stored: Object) -> bytes:
        """Return one event of a watch as a line."""
        return encode({"type": kind, "object": self.item(stored)}) + b"\n"

    def bookmark(self, metadata: Object) -> bytes:
        """Return a bookmark as a line: an object of which only the version matters."""
        if self.view is View.TABLE:
            shown = self._table([], metadata)
        elif self.view is View.METADATA:
            shown = {"kind": "PartialObjectMetadata", "apiVersion": _META_VERSION}
            shown["metadata"] = metadata
        else:
            shown = {"kind": self.served.resource.kind, "apiVersion": self.served.api_version}
            shown["metadata"] = metadata
        return encode({"type": "BOOKMARK", "object": shown}) + b"\n"

    def _table(self, objects: Iterable[Object], metadata: Object) -> Object:
        resource = self.served.resource
        shown, now = columns(resource), self.wall_ms()
        rows: list[Object] = []
        for stored in objects:
            cells: Object = {"cells": row(shown, stored, now)}
            if self.include_object == "Metadata":
                cells["object"] = _partial(stored)
            elif self.include_object == "Object":
                cells["object"] = self.served.to_served(stored)
            rows.append(cells)
        return {
            "kind": "Table",
            "apiVersion": _META_VERSION,
            "metadata": metadata,
            "columnDefinitions": definitions(resource),
            "rows": rows,
        }


def _partial(stored: Object) -> Object:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": _META_VERSION,
        "metadata": stored["metadata"],
    }
