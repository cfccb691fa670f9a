"""The validity conditions of the ClusterWare Light specification: the oracle of the role tests."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from equipoise.model.quantity import ApplicationId, RoleId, SlotId
from equipoise.model.roles.layout import LayoutElement
from equipoise.roles.meaning import Members, layout_meaning, roles_by_slot

X = TypeVar("X", bound=Hashable)
Y = TypeVar("Y", bound=Hashable)
P = TypeVar("P", bound=Hashable)


def group(pairs: Iterable[tuple[X, Y]]) -> list[tuple[X, list[Y]]]:
    """Return each first element once, in order, with all elements related to it."""
    grouped: dict[X, list[Y]] = {}
    for x, y in pairs:
        grouped.setdefault(x, []).append(y)
    return list(grouped.items())


def ungroup(grouped: Iterable[tuple[X, Iterable[Y]]]) -> list[tuple[X, Y]]:
    """Return one pair for each element of each group: the inverse of ``group``."""
    return [(x, y) for x, ys in grouped for y in ys]


def all_different(items: Sequence[Hashable]) -> bool:
    """Return whether no element occurs twice."""
    return len(set(items)) == len(items)


def valid_roles(roles: Sequence[tuple[RoleId, Sequence[ApplicationId]]]) -> bool:
    """Return whether each role is defined once, and each application is in one role, once."""
    applications = [application for _, application in ungroup(roles)]
    return all_different([name for name, _ in roles]) and all_different(applications)


def valid_slots(slots: Sequence[SlotId]) -> bool:
    """Return whether each slot occurs once."""
    return all_different(slots)


def valid_slot_members(slots: Sequence[SlotId], members: Members[P]) -> bool:
    """Return whether each filled slot exists, is filled once, and has its own processor."""
    filled = [slot for slot, _ in members]
    known = set(slots)
    return (
        all(slot in known for slot in filled)
        and all_different(filled)
        and all_different([processor for _, processor in members])
    )


def valid_layout_meaning(members: Members[P], layout: Iterable[LayoutElement]) -> bool:
    """Return whether no role is given to one processor twice."""
    return all_different(layout_meaning(members, layout))


def is_valid_for_all_counts(slots: Sequence[SlotId], layout: Sequence[LayoutElement]) -> bool:
    """Return whether no filling gives a role to one slot twice."""
    return not any(
        times > 1
        for filled in range(1, len(slots) + 1)
        for roles in roles_by_slot(slots, layout, filled).values()
        for times in roles.values()
    )
