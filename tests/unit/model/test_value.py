"""Frozen records and maps."""

from __future__ import annotations

import pickle

import pytest

from builders import a_vm
from equipoise.model.value import FrozenMap


def test_a_value_is_frozen_and_returns_changed_copies() -> None:
    vm = a_vm("v1", "h1")
    with pytest.raises(AttributeError):
        vm.vcpus = 4  # type: ignore[misc]
    assert vm.but(vcpus=4).vcpus == 4
    assert vm.vcpus == 1


def test_a_frozen_map_refuses_every_change() -> None:
    frozen = FrozenMap({"a": 1})
    changes: list[tuple[str, tuple[object, ...]]] = [
        ("__setitem__", ("b", 2)),
        ("__delitem__", ("a",)),
        ("__ior__", ({"b": 2},)),
        ("update", ({"b": 2},)),
        ("setdefault", ("b", 2)),
        ("pop", ("a",)),
        ("popitem", ()),
        ("clear", ()),
    ]
    for name, arguments in changes:
        with pytest.raises(TypeError, match="cannot be changed"):
            getattr(frozen, name)(*arguments)
    assert frozen == {"a": 1}


def test_a_frozen_map_returns_changed_copies_and_can_be_pickled() -> None:
    frozen = FrozenMap({"a": 1})
    assert frozen.but({"b": 2}) == {"a": 1, "b": 2}
    copy = pickle.loads(pickle.dumps(frozen))
    assert (type(copy), copy) == (FrozenMap, frozen)
