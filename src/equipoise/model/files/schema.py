"""JSON Schemas of the kinds of file, so that an editor completes and explains them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from inspect import getsource
from textwrap import dedent
from typing import Any, Final, Literal

import msgspec
from msgspec import inspect

from equipoise.model.amendment import Amendment
from equipoise.model.case import CaseFile
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import Problem
from equipoise.model.story.scenario import Scenario
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.request import Request

FileKind = Literal[
    "inventory", "scenario", "plan", "case", "amendment", "problem", "campaign", "request"
]

_FORMS: Final[dict[FileKind, type[msgspec.Struct]]] = {
    "inventory": Inventory,
    "scenario": Scenario,
    "plan": Plan,
    "case": CaseFile,
    "amendment": Amendment,
    "problem": Problem,
    "campaign": Campaign,
    "request": Request,
}


def schema(kind: FileKind) -> dict[str, Any]:
    """Give the JSON Schema (draft 2020-12) of a kind of file."""
    form = _FORMS[kind]
    made = msgspec.json.schema(form)
    for record in _records(inspect.type_info(form)):
        fields = made["$defs"][record.__name__]["properties"]
        for name, note in _notes(record).items():
            fields[name]["description"] = note
    if kind == "scenario":
        hosts = made["$defs"]["Inventory"]["properties"]["hosts"]
        del hosts["minItems"]
        hosts["description"] = "May be empty if a fleet of the scenario has hosts."
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Equipoise {kind}",
        **made,
    }


def _records(
    kind: object, within: tuple[type[msgspec.Struct], ...] = ()
) -> Iterator[type[msgspec.Struct]]:
    """Every class of record that a kind is made of; one may be part of itself."""
    match kind:
        case inspect.StructType() if kind.cls not in within:
            yield kind.cls
            for field in kind.fields:
                yield from _records(field.type, (*within, kind.cls))
        case inspect.VarTupleType():
            yield from _records(kind.item_type, within)
        case inspect.DictType():
            yield from _records(kind.value_type, within)
        case inspect.UnionType():
            for branch in kind.types:
                yield from _records(branch, within)


def _notes(record: type[msgspec.Struct]) -> dict[str, str]:
    """The strings below the fields of a class, which Python throws away when it compiles them.

    An installation without sources has a schema without them.
    """
    notes: dict[str, str] = {}
    for cls in record.__mro__:
        if not cls.__module__.startswith("equipoise.") or cls.__name__ == "Value":
            continue
        try:
            (tree,) = ast.parse(dedent(getsource(cls))).body
        except (OSError, TypeError):
            continue
        assert isinstance(tree, ast.ClassDef)
        for field, below in zip(tree.body, tree.body[1:], strict=False):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(note))),
                ):
                    notes[name] = " ".join(note.split())
    return notes
