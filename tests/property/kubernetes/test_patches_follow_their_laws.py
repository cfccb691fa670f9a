"""The laws of the three forms of a patch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.adapters.kubernetes.api.errors import ApiError
from equipoise.adapters.kubernetes.api.patch import json_patch, merge_patch, strategic_merge
from kubernetes_api import APPLY, InProcessApi, a_pod

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd/~"), inner),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd/~"), VALUES, max_size=4)
NAMED = st.dictionaries(st.sampled_from("pqrs"), st.sampled_from("1234"), max_size=4)
LABELS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["", "x", "y"]))


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return value


def patched(target: Any, operations: Any) -> Any:
    """Return the patched value, or the refusal."""
    try:
        return json_patch(target, operations)
    except ApiError as error:
        return error


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_rfc_7386(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


@given(VALUES, VALUES)
def test_a_merge_patch_changes_neither_its_target_nor_itself(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    merge_patch(target, patch)
    assert (target, patch) == before


@given(OBJECTS)
def test_an_object_as_its_own_merge_patch_changes_nothing_but_nulls(target: Any) -> None:
    target = without_nulls(target)
    assert merge_patch(target, target) == target


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_applied_twice_is_a_merge_patch_applied_once(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


@given(NAMED, NAMED)
def test_a_strategic_merge_of_named_items_is_a_merge_of_mappings(
    before: dict[str, str], patch: dict[str, str]
) -> None:
    def of(named: dict[str, str]) -> dict[str, Any]:
        return {"spec": {"containers": [{"name": k, "image": v} for k, v in named.items()]}}

    merged = strategic_merge(of(before), of(patch))
    assert merged == of({**before, **patch})


@given(NAMED, st.lists(st.sampled_from("pqrs"), unique=True))
def test_items_are_deleted_by_name_and_ordered_by_a_list(
    before: dict[str, str], order: list[str]
) -> None:
    items = [{"name": name, "image": image} for name, image in before.items()]
    deleted = [{"name": name, "$patch": "delete"} for name in order]
    merged = strategic_merge({"containers": items}, {"containers": deleted}, "spec")
    assert [each["name"] for each in merged["containers"]] == [
        name for name in before if name not in order
    ]
    patch = {"containers": [], "$setElementOrder/containers": [{"name": name} for name in order]}
    ordered = strategic_merge({"containers": items}, patch, "spec")["containers"]
    names = [each["name"] for each in ordered]
    assert sorted(names) == sorted(before)
    assert [name for name in names if name in order] == [name for name in order if name in before]


@given(OBJECTS, st.lists(st.sampled_from("abcd/~"), min_size=1, max_size=2), VALUES)
def test_a_json_patch_that_adds_then_removes_and_adds_again_keeps_one_value(
    target: Any, path: list[str], value: Any
) -> None:
    pointer = "/" + "/".join(each.replace("~", "~0").replace("/", "~1") for each in path)
    add = {"op": "add", "path": pointer, "value": value}
    before = copy.deepcopy(target)
    once = patched(target, [add, {"op": "test", "path": pointer, "value": value}])
    if isinstance(once, ApiError):
        assert once.code == 422
    else:
        again = json_patch(once, [{"op": "remove", "path": pointer}, add])
        assert again == once
        moved = [
            {"op": "copy", "from": pointer, "path": "/new"},
            {"op": "move", "from": "/new", "path": pointer},
        ]
        assert json_patch(once, moved) == once
    assert target == before


@given(
    OBJECTS,
    st.lists(
        st.fixed_dictionaries(
            {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"])},
            optional={
                "path": st.sampled_from(["", "/", "/a", "/a/0", "/a/-", "/b/c", "a", "/a/b/c/01"]),
                "from": st.sampled_from(["", "/a", "/a/0", "/b", 1]),
                "value": VALUES,
            },
        ),
        max_size=5,
    ),
)
def test_any_json_patch_succeeds_or_is_refused(target: Any, operations: Any) -> None:
    result = patched(target, operations)
    assert not isinstance(result, ApiError) or result.code in (400, 413, 422)


@given(LABELS, LABELS, LABELS)
def test_what_a_manager_no_longer_applies_goes_and_the_rest_stays(
    first: dict[str, str], second: dict[str, str], other: dict[str, str]
) -> None:
    """Managers of disjoint labels never touch each other's."""
    others = {f"other/{key}": value for key, value in other.items()}
    with InProcessApi() as api:
        path = "/api/v1/namespaces/default/pods/p"
        for manager, labels in (("one", first), ("two", others), ("one", second)):
            body = a_pod(labels=labels)
            answer = api.patch(f"{path}?fieldManager={manager}", body, APPLY)
            assert answer.status in (200, 201)
        stored = api.get(path).body["metadata"]
        assert stored.get("labels", {}) == {**second, **others}
        assert [each["manager"] for each in stored["managedFields"]] == ["two", "one"]
        again = api.patch(f"{path}?fieldManager=one", a_pod(labels=second), APPLY).body
        assert again["metadata"]["resourceVersion"] == stored["resourceVersion"]
