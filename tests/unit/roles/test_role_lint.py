"""The lint: each defect in the smallest layout that has it, and none in a sound layout."""

from __future__ import annotations

import msgspec
import pytest

from equipoise.model.roles.layout import RoleLayout
from equipoise.roles.lint import lint_layout

ROLES = [{"id": "a", "applications": ["x"]}, {"id": "b"}, {"id": "one", "single": True}]
GROUP = {"id": "g", "hosts": ["h1", "h2"], "slots": [{"id": "s"}, {"id": "t"}]}


def found(**group: object) -> list[tuple[str, str]]:
    """Return the codes and paths of the defects of a layout of one group."""
    whole = {"roles": ROLES, "groups": [{**GROUP, **group}]}
    layout = msgspec.convert(whole, RoleLayout)
    defects = lint_layout(layout, ["h1", "h2"], ["v1"])
    assert all(defect.what and defect.cure for defect in defects)
    return [(defect.kind.value, ".".join(map(str, defect.path[2:]))) for defect in defects]


def test_a_sound_group_has_no_defects() -> None:
    on_each = {"layout": [{"on_each": ["a"]}]}
    assert found(**on_each, preferences=[{"role": "b", "slots": ["t", "s"], "choose": "any"}]) == []
    pair = {"model": "2n", "workloads": [{"active": "one", "standby": "b"}]}
    assert found(redundancy=pair) == []


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ({"hosts": []}, ("no-processors", "")),
        ({"vms": ["v1"]}, ("no-processors", "")),
        ({"hosts": ["h1", "h3"]}, ("unknown-name", "hosts.1")),
        ({"hosts": ["h1", "h1"]}, ("duplicate-definition", "hosts.1")),
        ({"slots": [{"id": "s"}, {"id": "s"}]}, ("duplicate-definition", "slots.1.id")),
        ({"slots": [{"id": "on_each"}]}, ("reserved-slot-name", "slots.0.id")),
        ({"slots": [{"id": "at_most"}]}, ("reserved-slot-name", "slots.0.id")),
        (
            {"packed": True, "slots": [{"id": "s"}, {"id": "t", "needs": {"rack": "1"}}]},
            ("contradiction", "slots.1"),
        ),
        ({"layout": [{}]}, ("unclear-element", "layout.0")),
        ({"layout": [{"if_active": 1, "at_least": 1}]}, ("unclear-element", "layout.0")),
        ({"layout": [{"on_each": ["a"], "roles": ["b"]}]}, ("unclear-element", "layout.0.roles")),
        (
            {"layout": [{"on_each": ["a"], "layout": [{"on_each": ["b"]}]}]},
            ("unclear-element", "layout.0.layout"),
        ),
        ({"layout": [{"slot": "u", "roles": ["a"]}]}, ("unknown-name", "layout.0.slot")),
        ({"layout": [{"on_each": ["c"]}]}, ("unknown-name", "layout.0.on_each.0")),
        ({"layout": [{"at_least": 3, "layout": []}]}, ("contradiction", "layout.0.at_least")),
        ({"layout": [{"on_each": ["a", "a"]}]}, ("duplicate-pair", "layout.0.on_each")),
        ({"layout": [{"on_each": ["one"]}]}, ("single-role-twice", "layout.0.on_each")),
        ({"layout": [{"slot": "s", "roles": ["a"]}]}, ("uncovered-role", "layout.0.roles")),
        (
            {"layout": [{"if_active": 1, "layout": [{"on_each": ["a"]}]}]},
            ("coverage-lost-by-joining", "layout.0.layout.0.on_each"),
        ),
        (
            {"preferences": [{"role": "a", "slots": []}]},
            ("list-can-be-empty", "preferences.0.slots"),
        ),
        (
            {"preferences": [{"role": "a", "slots": ["t"]}]},
            ("list-can-be-empty", "preferences.0.slots"),
        ),
        (
            {"preferences": [{"role": "one", "slots": ["s", "t"], "count": 2}]},
            ("single-role-twice", "preferences.0.slots"),
        ),
        (
            {
                "preferences": [
                    {"role": "a", "slots": ["s", "t"]},
                    {"role": "a", "slots": ["s", "t"]},
                ]
            },
            ("duplicate-definition", "preferences.1.role"),
        ),
        (
            {"preferences": [{"role": "a", "slots": ["s", "t"], "promotes": "z"}]},
            ("unknown-name", "preferences.0.promotes"),
        ),
        ({"together": [["a"]]}, ("unclear-element", "together.0")),
        ({"together": [["a", "b"]], "apart": [["b", "a"]]}, ("contradiction", "together.0")),
        (
            {"redundancy": {"model": "2n", "workloads": [{"active": "a"}]}},
            ("contradiction", "redundancy.workloads.0"),
        ),
        (
            {
                "redundancy": {
                    "model": "no-redundancy",
                    "workloads": [{"active": "a", "standby": "b"}],
                }
            },
            ("contradiction", "redundancy.workloads.0"),
        ),
        (
            {"redundancy": {"model": "n-way-active", "actives": 3, "workloads": [{"active": "a"}]}},
            ("contradiction", "redundancy"),
        ),
    ],
)
def test_a_defect_is_found_at_its_path(group: dict[str, object], expected: tuple[str, str]) -> None:
    assert expected in found(**group)


def test_roles_and_groups_are_defined_once_and_applications_are_in_one_role() -> None:
    roles = [{"id": "a", "applications": ["x"]}, {"id": "a"}, {"id": "b", "applications": ["x"]}]
    whole = {"roles": roles, "groups": [GROUP, GROUP]}
    defects = lint_layout(msgspec.convert(whole, RoleLayout), ["h1", "h2"], [])
    assert [(defect.kind.value, defect.path) for defect in defects] == [
        ("duplicate-definition", ("roles", 1, "id")),
        ("duplicate-definition", ("groups", 1, "id")),
        ("application-in-two-roles", ("roles", 2, "applications", 0)),
    ]


def test_an_optional_role_may_be_without_a_holder() -> None:
    layout = msgspec.convert(
        {
            "roles": [{"id": "a", "optional": True}],
            "groups": [{**GROUP, "layout": [{"slot": "s", "roles": ["a"]}]}],
        },
        RoleLayout,
    )
    assert lint_layout(layout, ["h1", "h2"], []) == []
