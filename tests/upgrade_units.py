"""Small upgrade units: graphs by hand, random graphs, and the eight figures of the thesis."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, pairwise

from hypothesis import strategies as st

from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade.graph import Edge, ResourceGraph, Vertex
from equipoise.model.upgrade.infrastructure import DependencyKind, ResourceKind
from equipoise.model.value import FrozenMap

STORAGE, LINK = DependencyKind.STORAGE, DependencyKind.COMMUNICATION
PEER, AGGREGATION = DependencyKind.PEER_STATEFUL_DIRECT, DependencyKind.AGGREGATION
CONTAINER = DependencyKind.CONTAINER

Wire = tuple[int, int, DependencyKind, bool]
"""Dependent, sponsor, kind, and whether versions are incompatible along it."""


def named(number: int) -> ResourceId:
    """Return ``R7`` for 7, as in the figures."""
    return ResourceId(f"R{number}")


def wired(
    count: int, wires: Iterable[Wire], *, hosts: Iterable[int] = (), least: int = 0
) -> ResourceGraph:
    """Return a graph of R1 to Rn; those in ``hosts`` are servers with a host of their own."""
    own = set(hosts)
    vertices = {
        named(number): Vertex(
            named(number),
            ResourceKind.SERVER if number in own else ResourceKind.SWITCH,
            host=HostId(f"h{number}") if number in own else None,
            constituents_min=least,
        )
        for number in range(1, count + 1)
    }
    edges = []
    for dependent, sponsor, kind, incompatible_ in wires:
        edges.append(Edge(named(dependent), named(sponsor), kind, incompatible=incompatible_))
        if kind.is_symmetrical:
            edges.append(Edge(named(sponsor), named(dependent), kind, incompatible=incompatible_))
    return ResourceGraph(FrozenMap(vertices), tuple(edges))


def _peers(*pairs: tuple[int, int]) -> list[Wire]:
    return [(pair, other, PEER, True) for pair, other in pairs]


def _all_need(
    dependents: Iterable[int], sponsors: Iterable[int], kind: DependencyKind
) -> list[Wire]:
    both = tuple(sponsors)
    return [(dependent, sponsor, kind, True) for dependent in dependents for sponsor in both]


_PAIRS = [(1, 2), (3, 4), (5, 6), (7, 8)]
_TREE = [*_peers(*_PAIRS, (9, 10), (11, 12), (13, 14))]


def _two_levels(lower: DependencyKind, upper: DependencyKind) -> list[Wire]:
    """R1 to R4 need R9 and R10, R5 to R8 need R11 and R12, these need R13 and R14."""
    below = [*_all_need(range(1, 5), (9, 10), lower), *_all_need(range(5, 9), (11, 12), lower)]
    return [*_TREE, *below, *_all_need(range(9, 13), (13, 14), upper)]


SPLITS = {
    "a": wired(4, _peers(*combinations(range(1, 5), 2))),
    "b": wired(8, [*_peers((7, 8)), *_all_need(range(1, 7), (7, 8), STORAGE)]),
    "c": wired(8, [*_peers((7, 8), *_PAIRS[:3]), *_all_need(range(1, 7), (7, 8), STORAGE)]),
    "d": wired(14, _two_levels(STORAGE, STORAGE)),
}
"""Figure 5.3."""

MODIFIED = {
    "a": wired(8, [*_peers((7, 8)), *_all_need(range(1, 7), (7, 8), LINK)]),
    "b": wired(8, [*_peers((7, 8), *_PAIRS[:3]), *_all_need(range(1, 7), (7, 8), LINK)]),
    "c": wired(14, _two_levels(LINK, LINK)),
    "d": wired(14, _two_levels(STORAGE, LINK)),
}
"""Figure 5.4."""


@st.composite
def units(
    draw: st.DrawFn, *, most: int = 9, kinds: tuple[DependencyKind, ...] = ()
) -> ResourceGraph:
    """Draw a connected graph without cycles of sponsors; the first resources are the sponsors."""
    count = draw(st.integers(2, most))
    allowed = kinds or (STORAGE, LINK, PEER, CONTAINER)
    wires: list[Wire] = []
    for number in range(2, count + 1):
        for sponsor in draw(st.sets(st.integers(1, number - 1), min_size=1, max_size=3)):
            kind = draw(st.sampled_from(allowed))
            wires.append((number, sponsor, kind, draw(st.booleans()) or kind in (LINK, CONTAINER)))
    for _ in range(draw(st.integers(0, 2)) if AGGREGATION in allowed or not kinds else 0):
        first = draw(st.integers(1, count))
        second = draw(st.integers(1, count))
        aggregate = count + 1 + draw(st.integers(0, 1))
        wires += [(aggregate, number, AGGREGATION, False) for number in sorted({first, second})]
    return wired(count, wires, hosts=draw(st.sets(st.integers(1, count))))


def chain(count: int, kind: DependencyKind) -> ResourceGraph:
    """Return a chain: each resource needs the next one."""
    return wired(
        count,
        [(number, following, kind, True) for number, following in pairwise(range(1, count + 1))],
    )
