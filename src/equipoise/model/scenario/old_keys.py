"""Old keys: names that keys of files had in earlier versions, each with its new name.

Readers rename the keys of a document before they decode it, so that old files load. Writers use
only the new names. Journals have a table of their own in ``model/event.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_Path = tuple[str | int, ...]

EACH: Final = "*"
"""As a step of a path: every entry of a list or mapping."""

_Rename = tuple[tuple[str, ...], str]

OLD_KEYS: Final[Mapping[str, tuple[_Rename, ...]]] = {
    "scenario": (
        (("happenings",), "events"),
        (("unrest",), "faults"),
        (("events", EACH, "wish"), "requested"),
        (("fleet", "vms", EACH, "start", "dealt"), "assigned"),
    ),
    # Renames apply in this order, so that a path is written with the keys that are new by then.
    "campaign": (
        (("story",), "simulation"),
        (("simulation", "moments"), "events"),
        (("simulation", "failing"), "failures"),
    ),
}
"""By the kind of document: the path of each old key, and its new name."""


def rename_old_keys(document: Any, kind: str) -> tuple[Any, dict[_Path, str]]:
    """Return a document with new keys, and the old key of each path that was renamed.

    A key is not renamed if the document has the new one as well: the reader then reports it.
    """
    renamed: dict[_Path, str] = {}
    for path, new in OLD_KEYS.get(kind, ()):
        document = _rename(document, path, new, (), renamed)
    return document, renamed


def replace_old_steps(kind: str, steps: Sequence[str]) -> Sequence[str]:
    """Return the steps of a path with the new name in place of every old one."""
    for path, new in OLD_KEYS.get(kind, ()):
        is_below = len(steps) >= len(path) and all(
            step in (EACH, given) for step, given in zip(path, steps, strict=False)
        )
        if is_below:
            steps = (*steps[: len(path) - 1], new, *steps[len(path) :])
    return steps


def _rename(
    node: Any, path: tuple[str, ...], new: str, above: _Path, renamed: dict[_Path, str]
) -> Any:
    step, *rest = path
    if rest:
        changed = {
            key: _rename(part, tuple(rest), new, (*above, key), renamed)
            for key, part in _entries(node)
            if step in (EACH, key)
        }
        if isinstance(node, list):
            return [changed.get(position, part) for position, part in enumerate(node)]
        return {**node, **changed} if changed else node
    if not isinstance(node, dict) or step not in node or new in node:
        return node
    renamed[(*above, new)] = step
    return {new if key == step else key: part for key, part in node.items()}


def _entries(node: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(node, dict):
        yield from node.items()
    elif isinstance(node, list):
        yield from enumerate(node)
