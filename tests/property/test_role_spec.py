"""The properties of the specification that roles come from, and that numbers tell all fillings."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from equipoise.model.quantity import ApplicationId, RoleId, SlotId
from equipoise.model.roles.layout import Element
from equipoise.roles.meaning import (
    layout_meaning,
    valid_layout_meaning,
    valid_roles,
    valid_slot_members,
    valid_slots,
)
from equipoise.roles.relation import (
    different,
    domain,
    group,
    image,
    inverse,
    remove_duplicates,
    ungroup,
)
from equipoise.roles.static import coverages, static_valid
from role_walks import PROCESSORS, SLOTS, a_team, any_layouts, layouts, preferences

INTS = st.integers(-3, 3)
MAPPINGS = st.dictionaries(INTS, st.lists(INTS, min_size=1, unique=True)).map(
    lambda some: list(some.items())
)
APPLICATIONS = ("sip", "diameter", "megaco", "snmp", "inets", "perf", "b2bua", "b2bua_sb")
ROLE_NAMES = ("basic", "oam", "active", "standby")


@given(MAPPINGS)
def test_grouping_what_was_ungrouped_gives_it_back(mapping: list[tuple[int, list[int]]]) -> None:
    assert group(ungroup(mapping)) == mapping


@given(st.lists(st.tuples(INTS, INTS)))
def test_ungrouping_what_was_grouped_gives_the_same_pairs(pairs: list[tuple[int, int]]) -> None:
    assert Counter(ungroup(group(pairs))) == Counter(pairs)


@given(st.lists(INTS))
def test_without_duplicates_all_are_different_and_who_is_different_stays(some: list[int]) -> None:
    assert different(remove_duplicates(some))
    assert not different(some) or remove_duplicates(some) == some


@given(st.lists(st.tuples(INTS, INTS)), st.lists(INTS, unique=True))
def test_an_image_is_what_is_related_to_somebody(
    pairs: list[tuple[int, int]], some: list[int]
) -> None:
    assert Counter(image(some, pairs)) == Counter(y for x, y in pairs if x in some)
    assert set(domain(inverse(pairs))) == {y for _, y in pairs}


@given(st.dictionaries(st.sampled_from(APPLICATIONS), st.sampled_from(ROLE_NAMES)))
def test_roles_made_by_inverting_a_mapping_are_valid(role_of: dict[str, str]) -> None:
    pairs = [(ApplicationId(app), RoleId(role)) for app, role in role_of.items()]
    assert valid_roles(group(inverse(pairs)))


@given(st.data())
def test_a_role_defined_twice_or_an_application_in_two_is_noticed(data: st.DataObject) -> None:
    """The original text takes duplicates out before it looks for them, and so finds none."""
    apps = data.draw(st.lists(st.sampled_from(APPLICATIONS), min_size=2, unique=True))
    mine = [ApplicationId(app) for app in apps]
    roles = [(RoleId("basic"), mine[:1]), (RoleId("oam"), mine[1:])]
    assert valid_roles(roles)
    assert not valid_roles([*roles, (RoleId("basic"), [])])
    assert not valid_roles([*roles, (RoleId("active"), [data.draw(st.sampled_from(mine))])])


@given(st.lists(st.sampled_from(SLOTS)), st.lists(st.tuples(st.sampled_from(SLOTS), INTS)))
def test_slots_and_members_are_valid_if_nothing_is_twice_or_unknown(
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


def plain_meaning(members: dict[SlotId, str], layout: tuple[Element, ...]) -> list[tuple[str, str]]:
    """The meaning again, as somebody would write it who has only read the text."""
    said: list[tuple[str, str]] = []
    for one in layout:
        n = len(members)
        if one.on_each is not None:
            said += [(role, p) for role in one.on_each for p in members.values()]
        elif one.slot is not None:
            said += [(role, members[one.slot]) for role in one.roles if one.slot in members]
        elif (
            (one.if_active is not None and n == one.if_active)
            or (one.at_least is not None and n >= one.at_least)
            or (one.at_most is not None and n <= one.at_most)
        ):
            said += plain_meaning(members, one.layout)
    return said


@given(any_layouts(), st.permutations(PROCESSORS), st.sets(st.sampled_from(SLOTS)))
def test_a_layout_means_what_its_elements_mean_pair_by_pair(
    layout: tuple[Element, ...], processors: list[str], filled: set[SlotId]
) -> None:
    members = dict(zip(sorted(filled), processors, strict=False))
    meant = layout_meaning(tuple(members.items()), layout)
    assert Counter(meant) == Counter(plain_meaning(members, layout))
    assert valid_layout_meaning(tuple(members.items()), layout) == (len(set(meant)) == len(meant))


def fillings() -> list[tuple[SlotId, ...]]:
    return list(chain.from_iterable(combinations(SLOTS, n) for n in range(1, len(SLOTS) + 1)))


@given(any_layouts())
def test_looking_at_each_number_once_is_as_good_as_trying_every_filling(
    layout: tuple[Element, ...],
) -> None:
    tried = all(valid_layout_meaning([(s, s) for s in some], layout) for some in fillings())
    assert static_valid(SLOTS, layout) == tried


@given(layouts(), preferences(), st.booleans())
def test_where_a_role_may_be_lost_is_foretold_and_nowhere_else(
    layout: tuple[Element, ...], wanted: tuple[object, ...], packed: bool
) -> None:
    team = a_team(layout, wanted, packed=packed)  # type: ignore[arg-type]
    possible = [some for some in fillings() if not packed or some == SLOTS[: len(some)]]

    def covered(role: RoleId, some: tuple[SlotId, ...]) -> bool:
        meant = layout_meaning([(s, s) for s in some], layout)
        listed = [one.slots for one in team.preferences if one.role == role]
        return any(r == role for r, _ in meant) or any(set(one) & set(some) for one in listed)

    for role, foretold in coverages(team).items():
        missing = {len(some) for some in possible if not covered(role, some)}
        assert set(foretold.uncovered()) == missing
        lost = {
            len(some)
            for some in possible
            for more in possible
            if len(more) == len(some) + 1 and set(some) < set(more)
            if covered(role, some) and not covered(role, more)
        }
        assert set(foretold.lost_by_joining()) == lost
