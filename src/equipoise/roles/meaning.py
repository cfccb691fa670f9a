"""The meaning of a layout: which role on which processor, given who fills which slot.

As Clusterware Light defines it, with two differences that its text asks for: validity compares the
pairs as they are (with duplicates taken out first, nothing is ever twice), and a condition is an
element of a layout, so that it can be nested.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from equipoise.model.quantity import ApplicationId, RoleId, SlotId
from equipoise.model.roles.layout import Element
from equipoise.roles.relation import different, domain, image, inverse, ungroup

P = TypeVar("P", bound=Hashable)

Members = Sequence[tuple[SlotId, P]]
"""Who fills which slot, as pairs."""


def valid_roles(roles: Sequence[tuple[RoleId, Sequence[ApplicationId]]]) -> bool:
    """Whether each role is defined once, and each application is in one role, once."""
    applications = [application for _, application in ungroup(roles)]
    return different([name for name, _ in roles]) and different(applications)


def valid_slots(slots: Sequence[SlotId]) -> bool:
    """Whether each slot is there once."""
    return different(slots)


def valid_slot_members(slots: Sequence[SlotId], members: Members[P]) -> bool:
    """Whether each slot that is filled exists, is filled once, and by a processor of its own."""
    filled = [slot for slot, _ in members]
    known = set(slots)
    return (
        all(slot in known for slot in filled)
        and different(filled)
        and different([processor for _, processor in members])
    )


def layout_meaning(members: Members[P], layout: Iterable[Element]) -> list[tuple[RoleId, P]]:
    """The pairs of a layout, element by element; a pair that is said twice is there twice."""
    return [pair for element in layout for pair in _element_meaning(members, element)]


def _element_meaning(members: Members[P], element: Element) -> list[tuple[RoleId, P]]:
    if element.on_each is not None:
        everybody = domain(inverse(members))
        return [(role, processor) for role in element.on_each for processor in everybody]
    if element.slot is not None:
        here = image([element.slot], members)
        return [(role, processor) for processor in here for role in element.roles]
    return layout_meaning(members, element.layout) if counts(element, len(members)) else []


def counts(element: Element, filled: int) -> bool:
    """Whether what is in a condition counts, with so many slots filled."""
    if element.if_active is not None:
        return filled == element.if_active
    if element.at_least is not None:
        return filled >= element.at_least
    return element.at_most is not None and filled <= element.at_most


def valid_layout_meaning(members: Members[P], layout: Iterable[Element]) -> bool:
    """Whether no role is given to one processor twice."""
    return different(layout_meaning(members, layout))
