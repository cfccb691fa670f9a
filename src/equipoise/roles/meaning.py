"""The meaning of a layout: which role runs on which processor, given the filled slots.

The relations (inverse, domain, image) and the meaning are those of ClusterWare Light, with two
differences: duplicate pairs are kept, so that they can be found, and a condition is an element of a
layout, so that conditions can be nested.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from equipoise.model.quantity import RoleId, SlotId
from equipoise.model.roles.layout import LayoutElement

X = TypeVar("X", bound=Hashable)
Y = TypeVar("Y", bound=Hashable)


def inverse(pairs: Iterable[tuple[X, Y]]) -> list[tuple[Y, X]]:
    """Return the pairs with both elements swapped."""
    return [(y, x) for x, y in pairs]


def remove_duplicates(items: Iterable[X]) -> list[X]:
    """Return each element once, at its first position."""
    return list(dict.fromkeys(items))


def domain(pairs: Iterable[tuple[X, Y]]) -> list[X]:
    """Return the first elements of the pairs, each once."""
    return remove_duplicates(x for x, _ in pairs)


def image(elements: Iterable[X], pairs: Sequence[tuple[X, Y]]) -> list[Y]:
    """Return the second elements that are related to some elements."""
    return [y for x in elements for first, y in pairs if first == x]


P = TypeVar("P", bound=Hashable)

Members = Sequence[tuple[SlotId, P]]
"""Pairs of a slot and the processor that fills it."""


def layout_meaning(members: Members[P], layout: Iterable[LayoutElement]) -> list[tuple[RoleId, P]]:
    """Return the pairs of role and processor of a layout, element by element.

    A pair that two elements give occurs twice.
    """
    return [pair for element in layout for pair in _element_meaning(members, element)]


def _element_meaning(members: Members[P], element: LayoutElement) -> list[tuple[RoleId, P]]:
    if element.on_each is not None:
        processors = domain(inverse(members))
        return [(role, processor) for role in element.on_each for processor in processors]
    if element.slot is not None:
        in_slot = image([element.slot], members)
        return [(role, processor) for processor in in_slot for role in element.roles]
    return layout_meaning(members, element.layout) if condition_holds(element, len(members)) else []


def condition_holds(element: LayoutElement, filled: int) -> bool:
    """Return whether the layout of a condition applies to a number of filled slots."""
    if element.if_active is not None:
        return filled == element.if_active
    if element.at_least is not None:
        return filled >= element.at_least
    return element.at_most is not None and filled <= element.at_most
