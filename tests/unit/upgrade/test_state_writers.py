"""Each part of the upgrade state is written by its own module and by no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final

import pytest

import equipoise
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.cluster import UpgradeCluster
from equipoise.upgrade.state.iteration import OpenBatch, UpgradeAttempts, UpgradeIteration
from equipoise.upgrade.state.requests import UpgradeRequests
from equipoise.upgrade.state.resources import UpgradeResources

SOURCES: Final = Path(equipoise.__file__).parent
PARTS: Final = {
    "attempts": UpgradeAttempts,
    "cluster": UpgradeCluster,
    "iteration": UpgradeIteration,
    "requests": UpgradeRequests,
    "resources": UpgradeResources,
}
WRITER: Final = {
    **{part: f"upgrade/state/{part}.py" for part in PARTS},
    "attempts": "upgrade/state/iteration.py",
    "state": "upgrade/state/__init__.py",
    "open_batch": "upgrade/state/iteration.py",
}
OWNER_OF_CLASS: Final = {
    **{class_.__name__: part for part, class_ in PARTS.items()},
    UpgradeState.__name__: "state",
    OpenBatch.__name__: "open_batch",
}
MUTATORS: Final = frozenset(
    {
        "add",
        "append",
        "clear",
        "commit",
        "discard",
        "extend",
        "insert",
        "pop",
        "popitem",
        "release",
        "remove",
        "reverse",
        "setdefault",
        "sort",
        "update",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
        "__setitem__",
    }
)


class WriteFinder:
    """Finds the writes of one function or module to parts of the state."""

    def __init__(self, scope: ast.AST) -> None:
        self._aliases: dict[str, str] = {}
        self._scope = scope
        for node in ast.walk(scope):
            if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
                name = node.arg if isinstance(node, ast.arg) else getattr(node.target, "id", "")
                for class_, owner in OWNER_OF_CLASS.items():
                    if class_ in _names(node.annotation):
                        self._aliases[name] = owner
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target, part = node.targets[0], self._owner(node.value)
                if isinstance(target, ast.Name) and part is not None:
                    self._aliases[target.id] = part

    def _owner(self, expression: ast.AST) -> str | None:
        """Return the part that an expression is, or that it reads a container of."""
        match expression:
            case ast.Name(id=name):
                return self._aliases.get(name)
            case ast.Attribute(attr="open_batch"):
                return "open_batch"
            case ast.Attribute(value=base, attr=name) if self._owner(base) in (None, "state"):
                is_state = self._owner(base) == "state" or _names(base) & {"state", "_state"}
                return name if name in PARTS and is_state else None
            case ast.Attribute(value=base) | ast.Subscript(value=base):
                return self._owner(base)
            case ast.Call(func=ast.Attribute(value=base, attr="setdefault" | "get")):
                return self._owner(base)
            case _:
                return None

    def writes(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the owner of each write."""
        for node in ast.walk(self._scope):
            for written in _written(node):
                owner = self._owner(written)
                if owner is not None:
                    yield getattr(node, "lineno", 0), owner


def _names(expression: ast.AST) -> set[str]:
    """Return the names and attributes in an expression; annotations may be strings."""
    return {
        name
        for node in ast.walk(expression)
        for name in (getattr(node, "id", None), getattr(node, "attr", None))
        if name is not None
    }


def _written(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions whose value a node changes: the base of what is assigned."""
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            unpacked = [leaf for target in targets for leaf in _leaves(target)]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            unpacked = [target]
        case ast.For(target=target):
            unpacked = list(_leaves(target))
        case ast.Call(func=ast.Attribute(value=base, attr=name)) if name in MUTATORS:
            yield base
            return
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[base, *_]):
            yield base
            return
        case _:
            return
    for target in unpacked:
        if isinstance(target, ast.Attribute | ast.Subscript):
            yield target.value


def _leaves(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _leaves(element)
    else:
        yield target


def foreign_writes(source: str, path: str) -> list[tuple[int, str]]:
    """Return the line and part of each write outside the module that writes the part."""
    tree = ast.parse(source)
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = {write for scope in scopes for write in WriteFinder(scope).writes()}
    return sorted((line, part) for line, part in found if WRITER[part] != path)


def test_each_part_is_written_by_its_own_module_only() -> None:
    paths = [
        path
        for path in SOURCES.rglob("*.py")
        if path.is_relative_to(SOURCES / "upgrade") or "equipoise.upgrade" in path.read_text()
    ]
    assert len(paths) > 40
    foreign = {
        name: writes
        for path in paths
        if (writes := foreign_writes(path.read_text(), name := str(path.relative_to(SOURCES))))
    }
    assert foreign == {}


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("state.cluster.vms_added += 1", "cluster"),
        ("state.cluster.residents[host][vm] = None", "cluster"),
        ("state.cluster.residents.setdefault(host, {}).pop(vm)", "cluster"),
        ("state.cluster.capacity.commit(ONE_VM, host)", "cluster"),
        ("del state.resources.states[id_]", "resources"),
        ("self.coordinator.state.resources.grouping = None", "resources"),
        ("state.requests.pending.append(request)", "requests"),
        ("state.iteration.phase, other = phase, 1", "iteration"),
        ("state.iteration.open_batch.failed.add(vertex)", "open_batch"),
        ("attempts = state.attempts\n    attempts.to_revert.clear()", "attempts"),
        ("states = state.resources.states\n    states[id_] = new", "resources"),
        ("setattr(state.requests, name, value)", "requests"),
        ("state.at_ms = 3", "state"),
        ("part.paused_by_command = True", "requests"),
    ],
)
def test_a_write_of_another_module_is_found(statement: str, part: str) -> None:
    source = (
        f"def write(state: UpgradeState, part: UpgradeRequests | None) -> None:\n    {statement}"
    )
    assert [found for _, found in foreign_writes(source, "upgrade/apply.py")] == [part]
    assert foreign_writes(source, WRITER[part]) == []


def test_reads_and_methods_are_no_writes() -> None:
    source = """
def read(state: UpgradeState) -> None:
    placements = dict(state.cluster.placements)
    placements.pop(vm)
    state.cluster.move_vm(vm, host, counts=True)
    own = [state.requests.pending[0]]
    own.append(state.iteration.number)
"""
    assert foreign_writes(source, "upgrade/apply.py") == []


def test_every_field_belongs_to_one_part() -> None:
    names = [field.name for class_ in PARTS.values() for field in fields(class_)]
    assert len(names) == len(set(names))
    assert {field.name for field in fields(UpgradeState)} > set(PARTS)
