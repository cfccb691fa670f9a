"""Cycles in a graph that should have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

K = TypeVar("K", bound=str)

_SHOWN_MAX: Final = 20


def cycles(edges: Mapping[K, Sequence[K]]) -> Iterator[list[K]]:
    """Give cycles that share no node, until the rest of the graph has none.

    Each starts at its node that comes first in ``edges`` and follows the edges from there.
    """
    rank = {node: place for place, node in enumerate(edges)}
    left = {node: [other for other in others if other in rank] for node, others in edges.items()}
    while _peel(left):
        cycle = _walk(left)
        start = cycle.index(min(cycle, key=rank.__getitem__))
        for node in cycle:
            del left[node]
        yield cycle[start:] + cycle[:start]


def cycle_shown(cycle: Sequence[str]) -> str:
    """Say a cycle so that its end meets its beginning: ``a -> b -> a``."""
    middle = ["..."] if len(cycle) > _SHOWN_MAX else []
    return " -> ".join([*cycle[:_SHOWN_MAX], *middle, cycle[0]])


def _peel(left: dict[K, list[K]]) -> bool:
    """Take away what leads nowhere, again and again; say whether anything is left."""
    used_by: dict[K, list[K]] = {}
    for node, others in left.items():
        others[:] = [other for other in others if other in left]
        for other in others:
            used_by.setdefault(other, []).append(node)
    open_ends = [node for node, others in left.items() if not others]
    count = {node: len(others) for node, others in left.items()}
    for node in open_ends:
        del left[node]
        for user in used_by.get(node, ()):
            count[user] -= 1
            if count[user] == 0:
                open_ends.append(user)
    for others in left.values():
        others[:] = [other for other in others if other in left]
    return bool(left)


def _walk(left: Mapping[K, Sequence[K]]) -> list[K]:
    """Follow the edges until a node comes again; every node here has one."""
    seen: dict[K, int] = {}
    node = next(iter(left))
    while node not in seen:
        seen[node] = len(seen)
        node = left[node][0]
    return list(seen)[seen[node] :]
