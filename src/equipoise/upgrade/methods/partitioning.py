"""The method and the partitions of a unit: rolling, split, modified split (5.1.4.1).

Split mode divides a unit into two halves, as even as peers and constituents allow. The division is
exact: the reachable differences of the two halves are the bits of an integer. The modified split
divides the second half by communication levels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.graph import ResourceGraph
from equipoise.model.upgrade.infrastructure import DependencyKind
from equipoise.model.upgrade.work import UnitId, UpgradeMethod, UpgradeUnit
from equipoise.upgrade.methods.degradation import worst_degradation
from equipoise.upgrade.methods.structure import BlockIndex, UnitStructure, unit_structure

_BOTH: Final = 3
"""Both sides were seen: 1 for the first, 2 for the second."""
_DIFFERENCE_SLACK: Final = 64
"""How far from even a partial division may be before all differences are tried."""


class UnitHalves(NamedTuple):
    """The blocks of each half."""

    first: tuple[BlockIndex, ...]
    second: tuple[BlockIndex, ...]
    difference: int
    """How many members the first half has more than the second."""


@dataclass(frozen=True, slots=True)
class _LinkedBlocks:
    """Blocks that must be in different halves: one choice decides for all of them."""

    ahead: tuple[BlockIndex, ...]
    """The blocks in the half of the first block."""
    other_side: tuple[BlockIndex, ...]
    """The blocks in the other half."""
    gain: int
    first_of_group: bool
    """Whether it is the first of its peer group."""
    free: bool
    """Whether its peer group is in both halves for every choice."""
    held_back: bool
    """Whether it may only be in the second half."""


def halve(structure: UnitStructure, second: Collection[BlockIndex] = ()) -> UnitHalves | None:
    """Divide a unit: each half has a member of each peer group and at most one constituent of each.

    Blocks in ``second`` are in the second half. ``None`` if there is no such division.
    """
    pieces = _linked_blocks(structure, second)
    if pieces is None:
        return None
    total = sum(len(block) for block in structure.blocks)
    widest = max(abs(piece.gain) for piece in pieces)
    # A narrow window of differences mostly contains the best division and is much faster.
    narrow = min(total, 4 * widest + _DIFFERENCE_SLACK)
    result = _least_difference(pieces, narrow)
    # An even division is optimal: only otherwise the full range can be better.
    if narrow < total and (result is None or abs(result[0]) > total % 2):
        result = _least_difference(pieces, total)
    if result is None:
        return None
    difference, swapped = result
    first = [
        block
        for piece, is_swapped in zip(pieces, swapped, strict=True)
        for block in (piece.other_side if is_swapped else piece.ahead)
    ]
    in_first = set(first)
    rest = tuple(index for index in range(len(structure.blocks)) if index not in in_first)
    return UnitHalves(tuple(sorted(first)), rest, difference)


def _linked_blocks(
    structure: UnitStructure, second: Collection[BlockIndex]
) -> list[_LinkedBlocks] | None:
    layers = structure.sponsor_depths()
    apart: dict[BlockIndex, list[BlockIndex]] = {}
    for pair in structure.constituents:
        if len(pair) == 2:  # noqa: PLR2004  (more than two are not kept apart by halves)
            apart.setdefault(pair[0], []).append(pair[1])
            apart.setdefault(pair[1], []).append(pair[0])
    sizes = [len(block) for block in structure.blocks]
    pieces = []
    # Sponsors first: the search keeps the prefix of the order even, so each layer is divided
    # evenly.
    for peer_group in sorted(structure.peer_groups, key=lambda peers: (layers[peers[0]], peers[0])):
        coloured = list(_two_coloured(peer_group, apart))
        if None in coloured:
            return None
        # A single block has no peer to be apart from, and a part of two colours is in both halves
        # whatever is chosen.
        free = len(peer_group) == 1 or any(len(part) > 1 for part in coloured if part)
        for number, side_of in enumerate(coloured):
            assert side_of is not None
            ahead = tuple(index for index, side in side_of.items() if not side)
            across = tuple(index for index, side in side_of.items() if side)
            if any(index in second for index in across):
                if any(index in second for index in ahead):
                    return None
                # ``held_back`` forbids the unswapped choice only, so the side that must be second
                # is put ahead.
                ahead, across = across, ahead
            pieces.append(
                _LinkedBlocks(
                    ahead,
                    across,
                    gain=sum(sizes[block] for block in ahead)
                    - sum(sizes[block] for block in across),
                    first_of_group=not number,
                    free=free,
                    held_back=any(index in second for index in ahead),
                )
            )
    return pieces


def _two_coloured(
    peer_group: Sequence[BlockIndex], apart: dict[BlockIndex, list[BlockIndex]]
) -> Iterator[dict[BlockIndex, bool] | None]:
    """Yield the parts of a peer group that pairs connect, each divided into two halves.

    ``None`` stands for a part that cannot be divided.
    """
    seen: set[BlockIndex] = set()
    for start in peer_group:
        if start in seen:
            continue
        side_of = {start: False}
        queue = [start]
        for block in queue:
            for other in apart.get(block, ()):
                if other not in side_of:
                    side_of[other] = not side_of[block]
                    queue.append(other)
                elif side_of[other] == side_of[block]:
                    yield None
        seen.update(side_of)
        yield side_of


def _least_difference(
    pieces: Sequence[_LinkedBlocks], widest: int
) -> tuple[int, list[bool]] | None:
    """Return the smallest difference of the halves, and which pieces are swapped.

    Bit ``d + widest`` of an integer says that difference ``d`` is reachable. There is one integer
    for each set of halves that the current peer group has used so far. A piece shifts the bits.
    """
    mask = (1 << (2 * widest + 1)) - 1
    reached: list[dict[int, int]] = []
    now = {_BOTH: 1 << widest}
    for piece in pieces:
        if piece.first_of_group:
            # The previous peer group must be in both halves; then the next one begins with neither.
            now = {_BOTH if piece.free else 0: now.get(_BOTH, 0)}
        reached.append(now)
        after: dict[int, int] = {}
        for used, bits in now.items():
            for swapped in (False, True):
                if swapped or not piece.held_back:
                    step = -piece.gain if swapped else piece.gain
                    moved = (bits << step if step >= 0 else bits >> -step) & mask
                    flag = used | (2 if swapped else 1)
                    after[flag] = after.get(flag, 0) | moved
        now = after
    ends = now.get(_BOTH, 0)
    if not ends:
        return None
    # Of two equally even divisions the larger half goes first: the first half changes while the
    # other still serves.
    difference = min(_differences(ends, widest), key=lambda value: (abs(value), -value))
    return difference, _trace_choices(pieces, reached, difference, widest)


def _differences(bits: int, widest: int) -> Iterator[int]:
    return (index - widest for index in range(2 * widest + 1) if bits >> index & 1)


def _trace_choices(
    pieces: Sequence[_LinkedBlocks], reached: Sequence[dict[int, int]], difference: int, widest: int
) -> list[bool]:
    """Return the choices that lead to a difference and stay close to even all the way.

    So each layer of sponsors is divided evenly.
    """
    swaps: list[bool] = []
    used = _BOTH
    for piece, before in zip(reversed(pieces), reversed(reached), strict=True):
        choices = [
            (abs(previous), -previous, -flag, swapped)
            for flag, bits in before.items()
            for swapped in (False, True)
            if (swapped or not piece.held_back) and flag | (2 if swapped else 1) == used
            if abs(previous := difference + (piece.gain if swapped else -piece.gain)) <= widest
            and bits >> (previous + widest) & 1
        ]
        # The whole tuple is compared, so the choice does not depend on the order of a dictionary.
        _, minus, flag, swapped = min(choices)
        difference, used = -minus, -flag
        if piece.first_of_group:
            used = _BOTH
        swaps.append(swapped)
    return swaps[::-1]


BlockPartition = tuple[BlockIndex, ...]


def halves_for_links(structure: UnitStructure) -> UnitHalves | None:
    """Divide a unit such that sponsors without a peer are in the second half, if that is as even.

    Otherwise the resources that change first lose the only connection to such a sponsor.
    """
    even = halve(structure)
    alone = {peer_group[0] for peer_group in structure.peer_groups if len(peer_group) == 1}
    sponsors = {sponsor for _, sponsor, linked in structure.needs if linked}
    # Sponsors without a peer are forced into the second half.
    later = halve(structure, alone & sponsors)
    if even is None or later is None or abs(later.difference) > abs(even.difference):
        return even
    return later


def communication_levels(
    structure: UnitStructure, rest: Sequence[BlockIndex]
) -> list[BlockPartition] | None:
    """Divide the second half: blocks without dependents by link first, their sponsors next.

    The result has one partition more than the longest chain of links. ``None`` if links form a
    cycle.
    """
    within = set(rest)
    needs = [need for need in structure.needs if need[0] in within and need[1] in within]
    level = dict.fromkeys(rest, 0)
    waiting = dict.fromkeys(rest, 0)
    for _, sponsor, _ in needs:
        waiting[sponsor] += 1
    sponsors: dict[BlockIndex, list[tuple[BlockIndex, bool]]] = {}
    for dependent, sponsor, linked in needs:
        sponsors.setdefault(dependent, []).append((sponsor, linked))
    ready = [index for index in rest if not waiting[index]]
    for index in ready:
        for sponsor, linked in sponsors.get(index, ()):
            # ``linked`` adds 0 or 1: only a link needs an iteration between its ends.
            level[sponsor] = max(level[sponsor], level[index] + linked)
            waiting[sponsor] -= 1
            if not waiting[sponsor]:
                ready.append(sponsor)
    # Blocks in a cycle never become ready.
    if len(ready) < len(rest):
        return None
    return [
        tuple(index for index in rest if level[index] == number)
        for number in range(max(level.values(), default=-1) + 1)
    ]


def constituents_alone(
    structure: UnitStructure, partitions: Sequence[BlockPartition]
) -> list[BlockPartition]:
    """Give each constituent a partition of its own, after the rest of its partition."""
    alone = {index for constituents in structure.constituents for index in constituents}
    found: list[BlockPartition] = []
    for partition in partitions:
        together = tuple(index for index in partition if index not in alone)
        found += [together] if together else []
        found += [(index,) for index in partition if index in alone]
    return found


CONSTITUENTS_IN_HALVES_MAX: Final = 2
"""Two halves keep two constituents of one aggregate apart, not more."""
_SWITCHABLE: Final = (UpgradeMethod.MODIFIED_SPLIT, UpgradeMethod.MODIFIED_SPLIT_CONSTITUENTS)
"""Methods in which links can be switched instead of resources. The partitions stay the same."""


def make_unit(
    graph: ResourceGraph, id_: UnitId, members: Sequence[ResourceId], *, remote_links: bool
) -> UpgradeUnit | None:
    """Choose the method for resources with incompatible dependencies (5.1.4).

    ``members`` are in the order of the graph. ``remote_links`` says whether links can be switched
    remotely. ``None``: no method can change them together.
    """
    structure = unit_structure(graph, members)
    chosen = _choose_method(structure)
    if chosen is None:
        return None
    method, partitions = chosen
    if method in _SWITCHABLE and remote_links and links_suffice(graph, members):
        method = UpgradeMethod.MODIFIED_SPLIT_LINKS
    members_of = [
        [resource for index in partition for resource in structure.blocks[index]]
        for partition in partitions
    ]
    if method is UpgradeMethod.MODIFIED_SPLIT_CONSTITUENTS:
        members_of = _with_minimums(graph, members_of)
    unit = UpgradeUnit(id=id_, method=method, partitions=tuple(map(tuple, members_of)))
    return unit.but(degraded_hosts=worst_degradation(graph, unit) or None)


def _with_minimums(
    graph: ResourceGraph, partitions: list[list[ResourceId]]
) -> list[list[ResourceId]]:
    """Join partitions to the last one until it can serve every aggregate alone.

    All other partitions are off until the last one leaves service.
    """
    last, before = partitions[-1], partitions[:-1]
    inside = {member for partition in partitions for member in partition}
    constituents: dict[ResourceId, list[ResourceId]] = {}
    for edge in graph.edges:
        if edge.kind is DependencyKind.AGGREGATION:
            constituents.setdefault(edge.dependent, []).append(edge.sponsor)
    for aggregate, members in constituents.items():
        vertex = graph.vertices.get(aggregate)
        outside = sum(member not in inside for member in members)
        needed = (0 if vertex is None else vertex.constituents_min) - outside
        for partition in reversed(before):
            if sum(member in last for member in members) >= needed:
                break
            if any(member in partition for member in members):
                last = [*partition, *last]
                before = [other for other in before if other is not partition]
    return [*before, last]


def links_suffice(graph: ResourceGraph, members: Sequence[ResourceId]) -> bool:
    """Return whether switching links keeps versions apart. Peers work together without links."""
    within = set(members)
    return all(
        edge.kind is DependencyKind.COMMUNICATION
        for edge in graph.edges
        if edge.incompatible and edge.dependent in within and edge.sponsor in within
    )


def _choose_method(structure: UnitStructure) -> tuple[UpgradeMethod, list[BlockPartition]] | None:
    """Return the method and its partitions, or None if there is none."""
    if len(structure.blocks) == 1:
        return UpgradeMethod.ROLLING, [(0,)]
    halves = halves_for_links(structure) if structure.has_incompatible_links else halve(structure)
    crowded = any(
        len(constituents) > CONSTITUENTS_IN_HALVES_MAX for constituents in structure.constituents
    )
    if halves is None or crowded:
        return _split_by_constituents(structure)
    if not structure.has_incompatible_links:
        return UpgradeMethod.SPLIT, [halves.first, halves.second]
    rest = communication_levels(structure, halves.second)
    return None if rest is None else (UpgradeMethod.MODIFIED_SPLIT, [halves.first, *rest])


def _split_by_constituents(
    structure: UnitStructure,
) -> tuple[UpgradeMethod, list[BlockPartition]] | None:
    """Return a modified split in which constituents change one at a time."""
    apart = UnitStructure(structure.blocks, structure.peer_groups, (), structure.needs)
    halves = halves_for_links(apart)
    assert halves is not None, "without pairs to keep apart there is always a division"
    rest = communication_levels(structure, halves.second)
    if rest is None:
        return None
    partitions = constituents_alone(structure, [halves.first, *rest])
    return UpgradeMethod.MODIFIED_SPLIT_CONSTITUENTS, partitions
