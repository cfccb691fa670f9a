"""An oracle for networks: it lists all paths and checks every moment.

It is written from the handbook and shares no code with the judge or the planner. It is only for
plans that are valid without a network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from equipoise.model.action import Migrate
from equipoise.model.plan import Step
from equipoise.model.problem.problem import Network, NetworkLink
from equipoise.model.state.snapshot import Snapshot

Leg = tuple[NetworkLink, str]
"""A link, and the end at which it is left: the kind and the name of a node."""


def network_violations(network: Network, initial: Snapshot, steps: Sequence[Step]) -> set[str]:
    """Return what is wrong, as words: no way, too fast, or too much on a lane."""
    moves = [(step, step.action) for step in steps if isinstance(step.action, Migrate)]
    found: set[str] = set()
    taken: list[tuple[range, int, frozenset[tuple[str, str]]]] = []
    for step, move in moves:
        way = plain_path(network, move.source, move.target)
        if way is None:
            found.add("no way")
            continue
        mbps = min(_figures(network, way).values())
        seconds = Fraction(initial.vms[move.vm].memory_mib * 2**20 * 8, mbps * 10**6)
        if Fraction(step.end_ms - step.start_ms, 1000) < seconds:
            found.add("too fast")
        taken.append((range(step.start_ms, step.end_ms), mbps, frozenset(_figures(network, way))))
    limits = {
        key: mbps for *_, keys in taken for key, mbps in _limits(network).items() if key in keys
    }
    for begun, *_ in taken:  # the load grows only when a migration begins
        for part, limit in limits.items():
            sum_mbps = sum(
                mbps for when, mbps, parts in taken if begun.start in when and part in parts
            )
            if sum_mbps > limit:
                found.add("too much")
    return found


def plain_path(network: Network, source: str, target: str) -> list[Leg] | None:
    """Return the shortest simple path; of several, the first."""
    every = list(_ways(network, f"host {source}", f"host {target}", ()))
    order = {link.id: place for place, link in enumerate(network.links)}
    ranked = sorted(every, key=lambda way: (len(way), [order[link.id] for link, _ in way]))
    return ranked[0] if ranked else None


def _ways(network: Network, here: str, end: str, been: tuple[str, ...]) -> Iterator[list[Leg]]:
    if here == end:
        yield []
        return
    for link in network.links:
        ends = _ends(link)
        if here in ends:
            there = ends[1] if ends[0] == here else ends[0]
            if there not in been and there != here:
                for rest in _ways(network, there, end, (*been, here)):
                    yield [(link, there), *rest]


def _ends(link: NetworkLink) -> tuple[str, str]:
    other = f"switch {link.to}" if link.host is None else f"host {link.host}"
    return f"switch {link.switch}", other


def _figures(network: Network, way: list[Leg]) -> dict[tuple[str, str], int]:
    """Return the lanes of a path with their capacity: its links by direction, and its switches."""
    met = {there for _, there in way}
    parts = {(link.id, there): link.capacity_mbps for link, there in way}
    limits = _limits(network)
    return parts | {(place, ""): limits[place, ""] for place in met if (place, "") in limits}


def _limits(network: Network) -> dict[tuple[str, str], int]:
    found = {
        (f"switch {switch.id}", ""): switch.capacity_mbps
        for switch in network.switches
        if switch.capacity_mbps is not None
    }
    for link in network.links:
        found |= {(link.id, end): link.capacity_mbps for end in _ends(link)}
    return found
