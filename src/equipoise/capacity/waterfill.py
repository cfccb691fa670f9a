"""Water-filling: divide an amount by shares between a floor and a ceiling per claim.

The array form divides down a tree of claims: the capacity of the cluster over pools and VMs, or the
capacity of a host over its VMs. Nodes are record arrays, parents before children and pools before
VMs; VMs are the leaves. It is plain arithmetic, so that it can be compiled. ``fill_by_shares`` is
the scalar form for one level; it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Records = NDArray[np.void]

NO_INDEX: Final = -1
"""A row that does not exist; ``None`` for compiled code."""
RELATIVE_TOLERANCE: Final = 1e-9
"""Differences below this part of the amount are rounding."""

TREE_DTYPE: Final = np.dtype([("parent", "i8"), ("child", "i8"), ("sibling", "i8"), ("vm", "i8")])
"""Per node the row of the parent, the first child and the next sibling, or ``NO_INDEX``.

A leaf has the row of its VM.
"""

CLAIM_DTYPE: Final = np.dtype(
    [(name, "f8") for name in ("floor", "ceiling", "shares", "want", "least", "got")]
)
"""Per node reservation (``floor``), limit (``ceiling``), shares, demand, guarantee and result.

``want`` is the demand of a leaf, and after ``sum_demands`` also of inner nodes. ``least`` is the
guarantee, computed only when the amount is scarce. ``got`` is the part of the node.
"""


def sum_demands(
    tree: Records, claims: Records, first: int, end: int, counts_reserved: bool
) -> None:
    """Sum the demands up to the node ``first``; each demand is at most the limit of its node.

    With ``counts_reserved``, a demand is at least the reservation: an entitlement includes a
    reservation that is not used. Without it, demands are what is really used.
    """
    parent, vm = tree["parent"], tree["vm"]
    want, floor, ceiling = claims["want"], claims["floor"], claims["ceiling"]
    for node in range(first, end):
        if vm[node] == NO_INDEX:
            # Only leaves bring a demand; inner nodes still hold the sums of an earlier call.
            want[node] = 0.0
    for node in range(end - 1, first - 1, -1):
        asked = want[node]
        if counts_reserved and asked < floor[node]:
            asked = floor[node]
        asked = min(asked, ceiling[node])
        want[node] = asked
        if node > first:
            want[parent[node]] += asked


def divide_down(tree: Records, claims: Records, first: int, end: int, amount: float) -> None:
    """Divide an amount from the node ``first`` down to the leaves, after ``sum_demands``."""
    child, want, got = tree["child"], claims["want"], claims["got"]
    if amount >= want[first] and (end == first + 1 or tree["vm"][first + 1] != NO_INDEX):
        # The usual case: enough for all demands, and no pool whose limit could matter.
        for node in range(first, end):
            got[node] = want[node]
        return
    sum_guarantees(tree, claims, first, end)
    # Parents come before children, so that the part of a node is final when it is divided.
    got[first] = min(amount, want[first])
    for node in range(first, end):
        if child[node] != NO_INDEX:
            divide_among_siblings(tree, claims, child[node], got[node])


def sum_guarantees(tree: Records, claims: Records, first: int, end: int) -> None:
    """Sum the guarantees below the node ``first``: the reservation, but at most the demand.

    Pools are expandable: a pool that reserves less than its members guarantees as much as they do.
    Otherwise the reservation of a VM would be lost if its pool reserves nothing.
    """
    parent, floor = tree["parent"], claims["floor"]
    want, least = claims["want"], claims["least"]
    for node in range(first, end):
        least[node] = 0.0
    for node in range(end - 1, first, -1):
        least[node] = min(max(floor[node], least[node]), want[node])
        least[parent[node]] += least[node]


def divide_among_siblings(tree: Records, claims: Records, first_child: int, amount: float) -> None:
    """Divide an amount among siblings: at least the guarantee, at most the demand, by shares."""
    sibling, least, want = tree["sibling"], claims["least"], claims["want"]
    guaranteed, wants = 0.0, 0.0
    node = first_child
    while node != NO_INDEX:
        guaranteed += least[node]
        wants += want[node]
        node = sibling[node]
    if amount >= wants:
        give_parts(tree, claims, first_child, 1.0, 0.0)
    elif amount <= guaranteed:
        give_parts(tree, claims, first_child, 0.0, amount / guaranteed if guaranteed > 0.0 else 0.0)
    else:
        fill_to_level(tree, claims, first_child, amount)


def give_parts(
    tree: Records, claims: Records, first_child: int, of_want: float, of_least: float
) -> None:
    """Give every sibling a fraction of its demand plus a fraction of its guarantee."""
    sibling, least, want, got = tree["sibling"], claims["least"], claims["want"], claims["got"]
    node = first_child
    while node != NO_INDEX:
        got[node] = want[node] * of_want + least[node] * of_least
        node = sibling[node]


def fill_to_level(tree: Records, claims: Records, first_child: int, amount: float) -> None:
    """Divide an amount by shares: find the level (amount per share) that uses it up.

    At a trial level every sibling gets its part, between guarantee and demand. If the sum is too
    large, the true level is lower, and siblings at their guarantee stay there. If it is too small,
    siblings at their demand stay there. The rest is divided among the others in the next round.
    """
    sibling, shares, got = tree["sibling"], claims["shares"], claims["got"]
    width = 0.0
    node = first_child
    while node != NO_INDEX:
        got[node] = -1.0  # not fixed yet
        width += shares[node]
        node = sibling[node]
    rest = amount
    while width > 0.0:
        level = rest / width
        over = excess_at_level(tree, claims, first_child, level, rest)
        # Without the tolerance, rounding could alternate between too much and too little for ever.
        if abs(over) <= RELATIVE_TOLERANCE * amount:
            over = 0.0
        given, width, count = fix_at_bounds(tree, claims, first_child, level, over)
        if count == 0:  # only rounding prevents progress: this is the level
            given, width, count = fix_at_bounds(tree, claims, first_child, level, 0.0)
        rest -= given


def excess_at_level(
    tree: Records, claims: Records, first_child: int, level: float, rest: float
) -> float:
    """Return by how much the siblings that are not fixed would exceed ``rest`` at this level."""
    sibling, least, want = tree["sibling"], claims["least"], claims["want"]
    shares, got = claims["shares"], claims["got"]
    given = 0.0
    node = first_child
    while node != NO_INDEX:
        if got[node] < 0.0:
            part = max(level * shares[node], least[node])
            given += min(part, want[node])
        node = sibling[node]
    return given - rest


def fix_at_bounds(
    tree: Records, claims: Records, first_child: int, level: float, over: float
) -> tuple[float, float, int]:
    """Fix siblings at their guarantee if ``over`` > 0, at their demand if < 0, all if 0.

    Returns what they get, the sum of the shares of the others, and how many were fixed. The shares
    are summed again each time: subtracting from a sum of floats leaves a remainder.
    """
    sibling, least, want = tree["sibling"], claims["least"], claims["want"]
    shares, got = claims["shares"], claims["got"]
    given, width, count = 0.0, 0.0, 0
    node = first_child
    while node != NO_INDEX:
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


WATERFILL_FUNCTIONS: Final[tuple[Any, ...]] = (
    give_parts,
    excess_at_level,
    fix_at_bounds,
    fill_to_level,
    divide_among_siblings,
    sum_demands,
    sum_guarantees,
    divide_down,
)
"""Callee before caller, for ``KernelSet``."""


class ShareClaim(NamedTuple):
    """The bounds and shares of one claim."""

    floor: float
    ceiling: float
    """At least the floor."""
    shares: float


def fill_by_shares(amount: float, claims: Sequence[ShareClaim]) -> list[float]:
    """Divide an amount by shares; what exceeds all ceilings is not given out.

    The level is the amount per share at which everything is divided. If the amount does not cover
    the floors, every claim gets the same fraction of its floor.
    """
    floors = sum(claim.floor for claim in claims)
    if amount <= floors:
        part = amount / floors if floors else 0.0
        return [claim.floor * part for claim in claims]
    level = _find_level(amount - floors, claims)
    return [_amount_at(level, claim) for claim in claims]


def _amount_at(level: float, claim: ShareClaim) -> float:
    """Return the part of a claim at a level."""
    if not claim.shares:
        return claim.floor
    return min(claim.ceiling, max(claim.floor, level * claim.shares))


def _find_level(more: float, claims: Sequence[ShareClaim]) -> float:
    """Return the level at which ``more`` than the sum of the floors is divided."""
    # The total is piecewise linear in the level. It bends where a claim leaves its floor or
    # reaches its ceiling; ``width`` is the slope, the shares of the claims that grow.
    bends = []
    for claim in claims:
        if claim.shares and claim.ceiling > claim.floor:
            shares = _exact_shares(claim.shares)
            bends.append((claim.floor / claim.shares, shares))
            bends.append((claim.ceiling / claim.shares, -shares))
    bends.sort()
    width: int | Fraction = 0
    level = 0.0
    for bend, change in bends:  # between two bends, the same claims grow
        rise = (bend - level) * width
        if width and rise >= more:
            return level + more / width
        more -= rise
        width, level = width + change, bend
    return level


def _exact_shares(shares: float) -> int | Fraction:
    """Return shares as an exact number: in floats, 1e16 + 1 - 1e16 is 0."""
    return int(shares) if shares == int(shares) else Fraction(shares)
