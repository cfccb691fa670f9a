"""Partitions of the modified split: what comes behind the first half, link by link (5.1.4.1)."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.upgrade.methods.anatomy import Anatomy, Place
from equipoise.upgrade.methods.halves import Halves, halve

Partition = tuple[Place, ...]


def halves_for_links(anatomy: Anatomy) -> Halves | None:
    """Divide a unit so that sponsors nobody stands in for are left for later, if that is as even.

    Whoever is changed first is cut off from them otherwise, and nobody else reaches them.
    """
    even = halve(anatomy)
    alone = {family[0] for family in anatomy.families if len(family) == 1}
    sponsors = {sponsor for _, sponsor, linked in anatomy.needs if linked}
    later = halve(anatomy, alone & sponsors)
    if even is None or later is None or abs(later.difference) > abs(even.difference):
        return even
    return later


def levels(anatomy: Anatomy, rest: Sequence[Place]) -> list[Partition] | None:
    """Divide the second half: those that depend on nobody's link first, their sponsors next.

    One partition more than there are links in a row. ``None`` if links go in a circle.
    """
    within = set(rest)
    needs = [one for one in anatomy.needs if one[0] in within and one[1] in within]
    level = dict.fromkeys(rest, 0)
    waiting = dict.fromkeys(rest, 0)
    for _, sponsor, _ in needs:
        waiting[sponsor] += 1
    sponsors: dict[Place, list[tuple[Place, bool]]] = {}
    for dependent, sponsor, linked in needs:
        sponsors.setdefault(dependent, []).append((sponsor, linked))
    ready = [place for place in rest if not waiting[place]]
    for place in ready:
        for sponsor, linked in sponsors.get(place, ()):
            level[sponsor] = max(level[sponsor], level[place] + linked)
            waiting[sponsor] -= 1
            if not waiting[sponsor]:
                ready.append(sponsor)
    if len(ready) < len(rest):
        return None
    return [
        tuple(place for place in rest if level[place] == one)
        for one in range(max(level.values(), default=-1) + 1)
    ]


def one_at_a_time(anatomy: Anatomy, partitions: Sequence[Partition]) -> list[Partition]:
    """Give each constituent a partition of its own, behind what shared the partition with it."""
    alone = {place for family in anatomy.constituents for place in family}
    found: list[Partition] = []
    for partition in partitions:
        together = tuple(place for place in partition if place not in alone)
        found += [together] if together else []
        found += [(place,) for place in partition if place in alone]
    return found
