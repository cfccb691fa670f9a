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
    for path in paths:
        depth = next((d for d, step in enumerate(path) if isinstance(step, int)), None)
        if depth is None:
            if not path or path[-1] in _REFERRED_TO:
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
    ("cluster", "hosts", "vms", "pools", "tenants", "resources", "groups", "plan", "steps")
)


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
    names = (element.get("id") for element in elements if isinstance(element, dict))
    return tuple(name for name in names if isinstance(name, str))
