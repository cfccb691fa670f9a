"""Laws of upgrade methods on random units; the division is compared with brute force."""

from __future__ import annotations

from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from equipoise.model.upgrade.graph import ResourceGraph
from equipoise.model.upgrade.infrastructure import DependencyKind
from equipoise.model.upgrade.work import UnitId, UpgradeMethod, UpgradeUnit
from equipoise.upgrade.methods.degradation import out_of_service
from equipoise.upgrade.methods.partitioning import halve, make_unit
from equipoise.upgrade.methods.structure import UnitStructure, unit_structure
from equipoise.upgrade.methods.switching import switching_states, switchings_of
from upgrade_units import LINK, units


def a_unit(graph: ResourceGraph, *, remote_links: bool) -> UpgradeUnit:
    unit = make_unit(graph, UnitId("u"), list(graph.vertices), remote_links=remote_links)
    assume(unit is not None)
    assert unit is not None
    return unit


@given(units(), st.booleans())
def test_every_member_is_in_exactly_one_partition(graph: ResourceGraph, links: bool) -> None:
    unit = a_unit(graph, remote_links=links)
    assert sorted(unit.resources) == sorted(graph.vertices)
    assert all(unit.partitions)


@given(units(), st.booleans())
def test_incompatible_versions_never_communicate(graph: ResourceGraph, links: bool) -> None:
    unit = a_unit(graph, remote_links=links)
    for now in switching_states(unit, switchings_of(graph, unit)):
        for edge in graph.edges:
            ends = {edge.dependent, edge.sponsor}
            mixed = len(ends & now.new) == 1
            if edge.incompatible and mixed and not ends & now.off:
                assert edge.kind is LINK
                assert (edge.dependent, edge.sponsor) in now.cut


@given(units(), st.booleans())
def test_at_the_end_all_resources_are_new_and_in_service(graph: ResourceGraph, links: bool) -> None:
    unit = a_unit(graph, remote_links=links)
    *_, end = switching_states(unit, switchings_of(graph, unit))
    assert end.new == set(graph.vertices)
    assert not end.off
    assert not end.cut
    assert not out_of_service(graph, end)


@given(units(), st.booleans())
def test_a_peer_stays_in_service_where_the_method_ensures_it(
    graph: ResourceGraph, links: bool
) -> None:
    unit = a_unit(graph, remote_links=links)
    structure = unit_structure(graph, list(graph.vertices))
    for now in switching_states(unit, switchings_of(graph, unit)):
        if (
            unit.method not in (UpgradeMethod.SPLIT, UpgradeMethod.MODIFIED_SPLIT_LINKS)
            or not now.lasts
        ):
            continue
        for peer_group in structure.peer_groups:
            if len(peer_group) > 1:
                assert any(
                    resource not in now.off
                    for block_index in peer_group
                    for resource in structure.blocks[block_index]
                )


@given(units(kinds=(DependencyKind.STORAGE,)))
def test_each_layer_of_sponsors_is_halved(graph: ResourceGraph) -> None:
    structure = unit_structure(graph, list(graph.vertices))
    halves = halve(structure)
    assert halves is not None
    layers = structure.sponsor_depths()
    for layer in set(layers):
        counts = [sum(layers[block] == layer for block in half) for half in halves[:2]]
        assert abs(counts[0] - counts[1]) <= 1


@given(units(), st.booleans())
def test_a_linked_pair_shares_only_the_first_partition(graph: ResourceGraph, links: bool) -> None:
    unit = a_unit(graph, remote_links=links)
    partition_of = {
        resource: index for index, partition in enumerate(unit.partitions) for resource in partition
    }
    blocks = unit_structure(graph, list(graph.vertices)).blocks
    block_of = {resource: index for index, block in enumerate(blocks) for resource in block}
    # Links change the method, not the partitions. Where constituents change one at a time, the
    # first half is several partitions, and the order of later ones says nothing about it.
    if a_unit(graph, remote_links=False).method is not UpgradeMethod.MODIFIED_SPLIT:
        return
    for edge in graph.edges:
        if edge.kind is not LINK or not edge.incompatible:
            continue
        # Resources of one block change at once, so a link inside a block never has mixed versions.
        if block_of[edge.dependent] == block_of[edge.sponsor]:
            continue
        indices = partition_of[edge.dependent], partition_of[edge.sponsor]
        if 0 not in indices:
            assert indices[0] < indices[1]


@given(units())
def test_the_partitions_are_the_longest_chain_of_links_plus_two(graph: ResourceGraph) -> None:
    unit = a_unit(graph, remote_links=False)
    if unit.method is not UpgradeMethod.MODIFIED_SPLIT:
        return
    structure = unit_structure(graph, list(graph.vertices))
    rest = {resource for partition in unit.partitions[1:] for resource in partition}
    blocks = {index for index, block in enumerate(structure.blocks) if set(block) & rest}
    assert len(unit.partitions) == 2 + _longest_chain(structure, blocks)


def _longest_chain(structure: UnitStructure, blocks: set[int]) -> int:
    """Return the longest chain of links, by trying all paths."""

    def longest(block: int) -> int:
        return max(
            (
                longest(sponsor) + linked
                for dependent, sponsor, linked in structure.needs
                if dependent == block and sponsor in blocks
            ),
            default=0,
        )

    return max((longest(dependent) for dependent in blocks), default=0)


@given(units(most=8, kinds=(DependencyKind.STORAGE, DependencyKind.PEER_STATELESS,
                            DependencyKind.CONTAINER, DependencyKind.AGGREGATION)),
       st.sets(st.integers(0, 7), max_size=2))  # fmt: skip
def test_no_valid_division_is_more_even(graph: ResourceGraph, second: set[int]) -> None:
    structure = unit_structure(graph, list(graph.vertices))
    halves = halve(structure, second)
    best = _by_brute_force(structure, second)
    assert (None if halves is None else abs(halves.difference)) == best
    if halves is not None:
        assert _is_legal(
            structure, [block in halves.second for block in range(len(structure.blocks))], second
        )
        sizes = [sum(len(structure.blocks[index]) for index in half) for half in halves[:2]]
        assert sizes[0] - sizes[1] == halves.difference


def _by_brute_force(structure: UnitStructure, second: set[int]) -> int | None:
    sizes = [len(block) for block in structure.blocks]
    legal = [
        abs(sum(-size if later else size for size, later in zip(sizes, sides, strict=True)))
        for sides in product([False, True], repeat=len(sizes))
        if _is_legal(structure, list(sides), second)
    ]
    return min(legal, default=None)


def _is_legal(structure: UnitStructure, later: list[bool], second: set[int]) -> bool:
    separated = all(len({later[block] for block in pair}) == 2
                 for pair in structure.constituents if len(pair) == 2)  # fmt: skip
    covered = all(len(peer_group) == 1 or len({later[block] for block in peer_group}) == 2
                  for peer_group in structure.peer_groups)  # fmt: skip
    return separated and covered and all(later[block] for block in second if block < len(later))
