"""Dividing an amount down a tree of claims, as water fills vessels, on arrays.

The same as ``fill``, for a tree at once: the cluster's capacity among pools and VMs, or a host's
among those who run on it. Nodes stand in record arrays, parents before their children and
pools before VMs, which are the leaves. All is plain arithmetic, so that it can be compiled.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Records = NDArray[np.void]

NOBODY: Final = -1
TINY: Final = 1e-9

TREE: Final = np.dtype([("parent", "i8"), ("child", "i8"), ("sibling", "i8"), ("vm", "i8")])
"""Who hangs under whom: the parent, the first child, the next sibling, or ``NOBODY``. Of a leaf,
the row of its VM."""

CLAIMS: Final = np.dtype(
    [(name, "f8") for name in ("floor", "ceiling", "shares", "want", "least", "got")]
)
"""Reservation, limit and shares of each node; what a leaf asks for, and all below an inner node
once ``add_up`` has run; what each is guaranteed, found when there is not enough; what each gets."""


def add_up(tree: Records, claims: Records, first: int, end: int, counts_reserved: bool) -> None:
    """Add wants up to the node ``first``, each held to its limit.

    Who is entitled to a reservation is so without a want for it: ``counts_reserved``. Who uses a
    resource uses no more than wanted.
    """
    parent, vm = tree["parent"], tree["vm"]
    want, floor, ceiling = claims["want"], claims["floor"], claims["ceiling"]
    for node in range(first, end):
        if vm[node] == NOBODY:
            want[node] = 0.0
    for node in range(end - 1, first - 1, -1):
        asked = want[node]
        if counts_reserved and asked < floor[node]:
            asked = floor[node]
        asked = min(asked, ceiling[node])
        want[node] = asked
        if node > first:
            want[parent[node]] += asked


def flow_down(tree: Records, claims: Records, first: int, end: int, amount: float) -> None:
    """Divide an amount from the node ``first`` down to the leaves, by ``add_up``'s wants."""
    child, want, got = tree["child"], claims["want"], claims["got"]
    if amount >= want[first] and (end == first + 1 or tree["vm"][first + 1] != NOBODY):
        # As it is most of the time: enough for all, and no pool whose limit could be in the way.
        for node in range(first, end):
            got[node] = want[node]
        return
    guarantee(tree, claims, first, end)
    got[first] = min(amount, want[first])
    for node in range(first, end):
        if child[node] != NOBODY:
            share(tree, claims, child[node], got[node])


def guarantee(tree: Records, claims: Records, first: int, end: int) -> None:
    """Add up what each node below ``first`` is guaranteed: its floor, but no more than its want.

    Pools are expandable: one that reserves less than those in it are guaranteed together
    guarantees as much as they are. Else what is reserved inside of it would be lost at its door.
    """
    parent, floor = tree["parent"], claims["floor"]
    want, least = claims["want"], claims["least"]
    for node in range(first, end):
        least[node] = 0.0
    for node in range(end - 1, first, -1):
        least[node] = min(max(floor[node], least[node]), want[node])
        least[parent[node]] += least[node]


def share(tree: Records, claims: Records, eldest: int, amount: float) -> None:
    """Divide an amount among siblings: what is guaranteed, at most the want, by shares between."""
    sibling, least, want = tree["sibling"], claims["least"], claims["want"]
    guaranteed, wants = 0.0, 0.0
    node = eldest
    while node != NOBODY:
        guaranteed += least[node]
        wants += want[node]
        node = sibling[node]
    if amount >= wants:
        give(tree, claims, eldest, 1.0, 0.0)
    elif amount <= guaranteed:
        give(tree, claims, eldest, 0.0, amount / guaranteed if guaranteed > 0.0 else 0.0)
    else:
        settle(tree, claims, eldest, amount)


def give(tree: Records, claims: Records, eldest: int, of_want: float, of_least: float) -> None:
    """Give every sibling a part of its want, or of what it is guaranteed."""
    sibling, least, want, got = tree["sibling"], claims["least"], claims["want"], claims["got"]
    node = eldest
    while node != NOBODY:
        got[node] = want[node] * of_want + least[node] * of_least
        node = sibling[node]


def settle(tree: Records, claims: Records, eldest: int, amount: float) -> None:
    """Find the level of the water by fixing, round after round, those that are surely at an end.

    At a trial level all get their part, held between what is guaranteed and the want. If that is
    more than there is, the true level is lower, and whoever has no more than is guaranteed stays
    there; if it is less, the same goes for those at their want. What is left is divided anew among
    the others.
    """
    sibling, shares, got = tree["sibling"], claims["shares"], claims["got"]
    width = 0.0
    node = eldest
    while node != NOBODY:
        got[node] = -1.0  # not fixed yet
        width += shares[node]
        node = sibling[node]
    left = amount
    while width > 0.0:
        level = left / width
        over = excess(tree, claims, eldest, level, left)
        if abs(over) <= TINY * amount:
            over = 0.0
        given, width, count = fix(tree, claims, eldest, level, over)
        if count == 0:  # only the last bits are in the way: this is the level
            given, width, count = fix(tree, claims, eldest, level, 0.0)
        left -= given


def excess(tree: Records, claims: Records, eldest: int, level: float, left: float) -> float:
    """How much more than there is left would be given out at this level."""
    sibling, least, want = tree["sibling"], claims["least"], claims["want"]
    shares, got = claims["shares"], claims["got"]
    given = 0.0
    node = eldest
    while node != NOBODY:
        if got[node] < 0.0:
            part = max(level * shares[node], least[node])
            given += min(part, want[node])
        node = sibling[node]
    return given - left


def fix(
    tree: Records, claims: Records, eldest: int, level: float, over: float
) -> tuple[float, float, int]:
    """Fix those at their least if too much was given, at their want if too little, else all.

    Says what they get, what shares the others have together, and how many were fixed. The shares
    are added up anew each time: ten millions more and less are not exactly nothing.
    """
    sibling, least, want = tree["sibling"], claims["least"], claims["want"]
    shares, got = claims["shares"], claims["got"]
    given, width, count = 0.0, 0.0, 0
    node = eldest
    while node != NOBODY:
        if got[node] < 0.0:
            part = level * shares[node]
            low, high = least[node], want[node]
            if over == 0.0 or (over > 0.0 and part <= low) or (over < 0.0 and part >= high):
                got[node] = min(max(part, low), high)
                given += got[node]
                count += 1
            else:
                width += shares[node]
        node = sibling[node]
    return given, width, count


FUNCTIONS: Final[tuple[Any, ...]] = (
    give,
    excess,
    fix,
    settle,
    share,
    add_up,
    guarantee,
    flow_down,
)
"""Callee before caller, for ``Kernels``."""
