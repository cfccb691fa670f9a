"""Who makes one unit: those that clash, and whoever would be caught between them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from equipoise.model.quantity import ResourceId
from equipoise.model.resource import Dependency, DependencyKind
from equipoise.upgrade.requests.closure import circles, units_among

STORAGE, PEER = DependencyKind.STORAGE, DependencyKind.PEER_STATELESS


def bond(dependent: str, sponsor: str, kind: DependencyKind = STORAGE) -> Dependency:
    return Dependency(dependent=ResourceId(dependent), sponsor=ResourceId(sponsor), kind=kind)


def units(names: str, bonds: list[Dependency], clashing: list[Dependency]) -> list[str]:
    found = units_among([ResourceId(one) for one in names], [*bonds, *clashing], clashing)
    return ["".join(those) for those in found]


def test_without_a_clash_everybody_is_alone() -> None:
    assert units("abc", [bond("a", "b"), bond("b", "c", PEER)], []) == []


def test_those_that_clash_are_one() -> None:
    assert units("abcd", [], [bond("a", "c"), bond("b", "d")]) == ["ac", "bd"]


def test_whoever_lies_between_members_joins_them() -> None:
    between = [bond("a", "b"), bond("b", "c")]
    assert units("abcd", [*between, bond("d", "a")], [bond("a", "c")]) == ["abc"]


def test_peers_of_members_join_and_so_do_those_between_them() -> None:
    bonds = [bond("c", "d", PEER), bond("d", "e"), bond("e", "a")]
    assert units("abcdef", bonds, [bond("a", "c")]) == ["acde"]


def test_constituents_of_an_aggregate_are_peers() -> None:
    kind = DependencyKind.AGGREGATION
    bonds = [bond("x", "a", kind), bond("x", "b", kind)]
    assert units("abc", bonds, [bond("a", "c")]) == ["abc"]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14))
def test_circles_are_those_who_reach_each_other(pairs: list[tuple[int, int]]) -> None:
    after: dict[int, list[int]] = {one: [] for one in range(7)}
    for one, other in pairs:
        after[one].append(other)
    reach = {one: {one} for one in after}
    for _ in after:
        for one, others in after.items():
            reach[one] = reach[one].union(*(reach[other] for other in others))
    expected = {
        frozenset(other for other in after if other in reach[one] and one in reach[other])
        for one in after
    }
    assert {frozenset(one) for one in circles(after)} == {one for one in expected if len(one) > 1}
