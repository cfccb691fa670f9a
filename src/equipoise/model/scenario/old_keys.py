"""Old keys: names that keys of files and journals had in earlier versions, with their new names.

Readers rename the keys of a document before they decode it, so that old files and journals load.
Writers use only the new names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_Path = tuple[str | int, ...]
_Rename = tuple[tuple[str, ...], str]

EACH: Final = "*"
"""As a step of a path: every entry of a list or mapping."""

_PLAN: Final[tuple[_Rename, ...]] = ((("mends",), "repairs"),)
# Renames apply in their order, so that a path is written with the keys that are new by then.
_CAMPAIGN: Final[tuple[_Rename, ...]] = (
    (("story",), "simulation"),
    (("simulation", "moments"), "events"),
    (("simulation", "failing"), "failures"),
)


def _below(key: str, renames: tuple[_Rename, ...]) -> tuple[_Rename, ...]:
    """Return the renames of a document that is the value of ``key`` in a larger one."""
    return tuple(((key, *path), new) for path, new in renames)


OLD_KEYS: Final[Mapping[str, tuple[_Rename, ...]]] = {
    "plan": _PLAN,
    "case": _below("plan", _PLAN),
    "scenario": (
        (("happenings",), "events"),
        (("unrest",), "faults"),
        (("events", EACH, "wish"), "requested"),
        (("fleet", "vms", EACH, "start", "dealt"), "assigned"),
        *_below("plan", _PLAN),
    ),
    "campaign": _CAMPAIGN,
    # Events of a journal, by their present tags.
    "campaign_started": _below("campaign", _CAMPAIGN),
    "command_rejected": ((("order",), "command"),),
    "plan_accepted": _below("plan", _PLAN),
    "plan_refused": _below("plan", _PLAN),
    "proposal_made": (
        (("proposal", "whole"), "all_or_nothing"),
        (("proposal", "fillings"), "slot_assignments"),
        (("proposal", "mends"), "repairs"),
    ),
}
"""By the kind of file or event: the path of each old key, and its new name."""


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
