"""The properties of the ClusterWare Light specification, and static coverage by counts."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from equipoise.model.quantity import ApplicationId, RoleId, SlotId
from equipoise.model.roles.layout import LayoutElement
from equipoise.roles.meaning import (
    domain,
    image,
    inverse,
    layout_meaning,
    remove_duplicates,
    role_coverage,
)
from role_harness import PROCESSORS, SLOTS, a_team, any_layouts, layouts, preferences
from role_relations import (
    all_different,
    group,
    is_valid_for_all_counts,
    ungroup,
    valid_layout_meaning,
    valid_roles,
    valid_slot_members,
    valid_slots,
)

INTS = st.integers(-3, 3)
MAPPINGS = st.dictionaries(INTS, st.lists(INTS, min_size=1, unique=True)).map(
    lambda some: list(some.items())
)
APPLICATIONS = ("sip", "diameter", "megaco", "snmp", "inets", "perf", "b2bua", "b2bua_sb")
ROLE_NAMES = ("basic", "oam", "active", "standby")


@given(MAPPINGS)
def test_group_inverts_ungroup(mapping: list[tuple[int, list[int]]]) -> None:
    assert group(ungroup(mapping)) == mapping


@given(st.lists(st.tuples(INTS, INTS)))
def test_ungroup_after_group_gives_the_same_pairs(pairs: list[tuple[int, int]]) -> None:
    assert Counter(ungroup(group(pairs))) == Counter(pairs)


@given(st.lists(INTS))
def test_remove_duplicates_leaves_different_items(some: list[int]) -> None:
    assert all_different(remove_duplicates(some))
    assert not all_different(some) or remove_duplicates(some) == some


@given(st.lists(st.tuples(INTS, INTS)), st.lists(INTS, unique=True))
def test_an_image_contains_all_related_elements(
    pairs: list[tuple[int, int]], some: list[int]
) -> None:
    assert Counter(image(some, pairs)) == Counter(y for x, y in pairs if x in some)
    assert set(domain(inverse(pairs))) == {y for _, y in pairs}


@given(st.dictionaries(st.sampled_from(APPLICATIONS), st.sampled_from(ROLE_NAMES)))
def test_roles_made_by_inverting_a_mapping_are_valid(role_of: dict[str, str]) -> None:
    pairs = [(ApplicationId(app), RoleId(role)) for app, role in role_of.items()]
    assert valid_roles(group(inverse(pairs)))


@given(st.data())
def test_duplicate_roles_and_shared_applications_are_found(data: st.DataObject) -> None:
    """The original text removes duplicates before it searches for them, and so finds none."""
    apps = data.draw(st.lists(st.sampled_from(APPLICATIONS), min_size=2, unique=True))
    mine = [ApplicationId(app) for app in apps]
    roles = [(RoleId("basic"), mine[:1]), (RoleId("oam"), mine[1:])]
    assert valid_roles(roles)
    assert not valid_roles([*roles, (RoleId("basic"), [])])
    assert not valid_roles([*roles, (RoleId("active"), [data.draw(st.sampled_from(mine))])])


@given(st.lists(st.sampled_from(SLOTS)), st.lists(st.tuples(st.sampled_from(SLOTS), INTS)))
def test_slots_and_members_are_valid_without_duplicates_and_unknown_names(
    slots: list[SlotId], members: list[tuple[SlotId, int]]
) -> None:
    assert valid_slots(slots) == (len(set(slots)) == len(slots))
    sound = all(
        members.count((s, p)) == 1
        and s in slots
        and sum(s == t for t, _ in members) == 1
        and sum(p == q for _, q in members) == 1
        for s, p in members
    )
    assert valid_slot_members(slots, members) == sound


def plain_meaning(
    members: dict[SlotId, str], layout: tuple[LayoutElement, ...]
) -> list[tuple[str, str]]:
    """Return the meaning of a layout, written independently from the text."""
    pairs: list[tuple[str, str]] = []
    for element in layout:
        count = len(members)
        if element.on_each is not None:
            pairs += [(role, p) for role in element.on_each for p in members.values()]
        elif element.slot is not None:
            pairs += [
                (role, members[element.slot]) for role in element.roles if element.slot in members
            ]
        elif (
            (element.if_active is not None and count == element.if_active)
            or (element.at_least is not None and count >= element.at_least)
            or (element.at_most is not None and count <= element.at_most)
        ):
            pairs += plain_meaning(members, element.layout)
    return pairs


@given(any_layouts(), st.permutations(PROCESSORS), st.sets(st.sampled_from(SLOTS)))
def test_the_meaning_of_a_layout_is_that_of_its_elements(
    layout: tuple[LayoutElement, ...], processors: list[str], filled: set[SlotId]
) -> None:
    members = dict(zip(sorted(filled), processors, strict=False))
    meant = layout_meaning(tuple(members.items()), layout)
    assert Counter(meant) == Counter(plain_meaning(members, layout))
    assert valid_layout_meaning(tuple(members.items()), layout) == (len(set(meant)) == len(meant))


def fillings() -> list[tuple[SlotId, ...]]:
    return list(chain.from_iterable(combinations(SLOTS, n) for n in range(1, len(SLOTS) + 1)))


@given(any_layouts())
def test_validity_by_counts_equals_validity_of_every_filling(
    layout: tuple[LayoutElement, ...],
) -> None:
    valid = all(valid_layout_meaning([(s, s) for s in filled], layout) for filled in fillings())
    assert is_valid_for_all_counts(SLOTS, layout) == valid


@given(layouts(), preferences(), st.booleans())
def test_the_coverage_by_counts_equals_that_of_every_filling(
    layout: tuple[LayoutElement, ...], preferred: tuple[object, ...], packed: bool
) -> None:
    team = a_team(layout, preferred, packed=packed)  # type: ignore[arg-type]
    possible = [filled for filled in fillings() if not packed or filled == SLOTS[: len(filled)]]

    def covered(role: RoleId, filled: tuple[SlotId, ...]) -> bool:
        meant = layout_meaning([(s, s) for s in filled], layout)
        listed = [item.slots for item in team.preferences if item.role == role]
        return any(r == role for r, _ in meant) or any(set(slots) & set(filled) for slots in listed)

    for role, coverage in role_coverage(team).items():
        missing = {len(filled) for filled in possible if not covered(role, filled)}
        assert set(coverage.uncovered_counts()) == missing
        lost = {
            len(filled)
            for filled in possible
            for more in possible
            if len(more) == len(filled) + 1 and set(filled) < set(more)
            if covered(role, filled) and not covered(role, more)
        }
        assert set(coverage.counts_lost_by_joining()) == lost
