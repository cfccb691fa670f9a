"""A document as it was read: plain values, and the line of each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from equipoise.model.files.findings import Finding, LineOf
from equipoise.model.files.words import Path


class _Broken:
    """Stands where a value could not be read; what is wrong with it has been said already."""

    def __repr__(self) -> str:
        return "BROKEN"


BROKEN: Final = _Broken()


@dataclass(frozen=True, slots=True)
class Tree:
    """Mappings, lists and scalars, with what was found wrong while reading them."""

    root: Any
    line_of: LineOf
    findings: list[Finding] = field(default_factory=list)


class Gap(NamedTuple):
    """What was left out of a list: the places that remain, and the names of what is missing."""

    places: tuple[int, ...]
    lost_ids: tuple[str, ...]


Gaps = dict[Path, Gap]
"""By the path of the list; lists that are whole are not in it."""


def without(tree: Tree, paths: list[Path]) -> tuple[Any, Gaps] | None:
    """Leave out each key and list element in which something is wrong, if that does not mislead.

    An element here is one of an outermost list: a host, a VM, a rule, a step. ``None`` if one of
    these lists is itself no list: what refers to it would look wrong as well.
    """
    spoilt: dict[Path, dict[int, None]] = {}
    root, gaps = tree.root, {}
    for full in paths:
        path = _cut(full)
        depth = next((d for d, step in enumerate(path) if isinstance(step, int)), None)
        if depth is None:
            if _is_referred_to(path):
                return None
            root = _dropped(root, path)
            continue
        place = path[depth]
        assert isinstance(place, int)
        spoilt.setdefault(path[:depth], {})[place] = None
    for path, places in spoilt.items():
        elements = _at(tree.root, path)
        if elements is None:  # what was wrong did not even become part of the tree
            return None
        if _at(root, path) is None:  # it went with a key that is not known
            continue
        rest = tuple(place for place in range(len(elements)) if place not in places)
        gaps[path] = Gap(rest, _ids([elements[place] for place in places if place < len(elements)]))
        root = _replaced(root, path, [elements[place] for place in rest])
    return root, gaps


_REFERRED_TO: Final = frozenset(
    (
        "cluster", "hosts", "vms", "pools", "tenants", "resources", "groups", "plan", "steps",
        "fleet", "loads", "switches",
    )
)  # fmt: skip
_OPTIONAL: Final = frozenset(("physics", "unrest"))
"""Nobody refers to what is in these, and each part of them may be missing as a whole."""


def _is_referred_to(path: Path) -> bool:
    """Whether other parts of the file would look wrong if this one were left out."""
    if not path or path[0] in _OPTIONAL:
        return not path
    return path[-1] in _REFERRED_TO or path[:-1] == ("loads",)


def _cut(path: Path) -> Path:
    """What to leave out for something that is wrong at a path: the record, if it may be missing."""
    if not path or path[0] not in _OPTIONAL or any(isinstance(step, int) for step in path[2:3]):
        return path
    return path[:2]


def _dropped(node: Any, path: Path) -> Any:
    """The tree without one key, or as it is if the key is not there."""
    key = path[0]
    if not isinstance(node, dict) or key not in node:
        return node
    if len(path) == 1:
        return {name: value for name, value in node.items() if name != key}
    return {**node, key: _dropped(node[key], path[1:])}


def _at(node: Any, path: Path) -> list[Any] | None:
    for step in path:
        node = node.get(step) if isinstance(node, dict) else None
    return node if isinstance(node, list) else None


def _replaced(node: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    return {**node, path[0]: _replaced(node[path[0]], path[1:], value)}


def _ids(elements: list[Any]) -> tuple[str, ...]:
    names = map(_id, elements)
    return tuple(name for name in names if isinstance(name, str))


def _id(element: Any) -> Any:
    """An element's id; a fleet has that of its template, a happening that of whom it befalls."""
    if not isinstance(element, dict):
        return None
    if "id" in element:
        return element["id"]
    inner = next((element[key] for key in ("like", "host", "vm") if key in element), None)
    return inner.get("id") if isinstance(inner, dict) else inner
