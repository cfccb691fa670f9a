"""Relations as lists of pairs, in the words of the specification that roles come from."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

X = TypeVar("X", bound=Hashable)
Y = TypeVar("Y", bound=Hashable)


def group(pairs: Iterable[tuple[X, Y]]) -> list[tuple[X, list[Y]]]:
    """Each first element once, in order, with all that it is related to."""
    found: dict[X, list[Y]] = {}
    for x, y in pairs:
        found.setdefault(x, []).append(y)
    return list(found.items())


def ungroup(grouped: Iterable[tuple[X, Iterable[Y]]]) -> list[tuple[X, Y]]:
    """The opposite: one pair for each that something is related to."""
    return [(x, y) for x, ys in grouped for y in ys]


def inverse(pairs: Iterable[tuple[X, Y]]) -> list[tuple[Y, X]]:
    """The same, read from right to left."""
    return [(y, x) for x, y in pairs]


def remove_duplicates(items: Iterable[X]) -> list[X]:
    """Each element once, where it came first."""
    return list(dict.fromkeys(items))


def domain(pairs: Iterable[tuple[X, Y]]) -> list[X]:
    """What is related to something, each once."""
    return remove_duplicates(x for x, _ in pairs)


def image(some: Iterable[X], pairs: Sequence[tuple[X, Y]]) -> list[Y]:
    """What some elements are related to."""
    return [y for x in some for other, y in pairs if other == x]


def different(items: Sequence[Hashable]) -> bool:
    """Whether no element is there twice."""
    return len(set(items)) == len(items)
