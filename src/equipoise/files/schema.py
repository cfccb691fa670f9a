"""JSON Schemas of the kinds of file, with which an editor completes and explains their keys."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from inspect import getsource
from textwrap import dedent
from typing import Any, Final, Literal

import msgspec
from msgspec import inspect

from equipoise.model.inventory import Amendment, Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import PlanningProblem
from equipoise.model.problem.problem import CaseFile
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.fleet import CampaignFleets
from equipoise.model.upgrade.request import UpgradeRequest

FileKind = Literal[
    "inventory", "scenario", "plan", "case", "amendment", "problem", "campaign", "request"
]

_FILE_TYPES: Final[dict[FileKind, type[msgspec.Struct]]] = {
    "inventory": Inventory,
    "scenario": Scenario,
    "plan": Plan,
    "case": CaseFile,
    "amendment": Amendment,
    "problem": PlanningProblem,
    "campaign": UpgradeCampaign,
    "request": UpgradeRequest,
}


def json_schema(kind: FileKind) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a kind of file."""
    file_type = _FILE_TYPES[kind]
    schema = describe_fields(msgspec.json.schema(file_type), file_type)
    if kind == "campaign":
        _add_fleets(schema)
    if kind == "scenario":
        # The hosts of an inventory must not be empty, but a fleet may replace those of a scenario.
        hosts = schema["$defs"]["Inventory"]["properties"]["hosts"]
        del hosts["minItems"]
        hosts["description"] = "May be empty if a fleet of the scenario has hosts."
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Equipoise {kind}",
        **schema,
    }


def describe_fields(schema: dict[str, Any], file_type: type[msgspec.Struct]) -> dict[str, Any]:
    """Add the docstrings of all fields to a schema, and return it."""
    for record in _record_types(inspect.type_info(file_type)):
        fields = schema["$defs"][record.__name__]["properties"]
        for name, description in _field_descriptions(record).items():
            fields[name]["description"] = description
    return schema


def _add_fleets(schema: dict[str, Any]) -> None:
    """Add the fleets, which only files have: a campaign that was read lists every member."""
    fleets = describe_fields(msgspec.json.schema(CampaignFleets), CampaignFleets)
    schema["$defs"] |= {
        name: part for name, part in fleets["$defs"].items() if name not in schema["$defs"]
    }
    schema["$defs"]["UpgradeCampaign"]["properties"]["fleet"] = {
        "$ref": "#/$defs/CampaignFleets",
        "description": "Equal hosts, resources, VMs and dependencies, each written once.",
    }


def _record_types(
    kind: object, within: tuple[type[msgspec.Struct], ...] = ()
) -> Iterator[type[msgspec.Struct]]:
    """Yield every class of record that a type contains. A record may contain its own class."""
    match kind:
        case inspect.StructType() if kind.cls not in within:
            yield kind.cls
            for field in kind.fields:
                yield from _record_types(field.type, (*within, kind.cls))
        case inspect.VarTupleType():
            yield from _record_types(kind.item_type, within)
        case inspect.DictType():
            yield from _record_types(kind.value_type, within)
        case inspect.UnionType():
            for branch in kind.types:
                yield from _record_types(branch, within)


def _field_descriptions(record: type[msgspec.Struct]) -> dict[str, str]:
    """Return the docstrings of the fields of a class.

    Python drops them on compilation, so they are read from the source. An installation without
    sources has a schema without descriptions.
    """
    descriptions: dict[str, str] = {}
    for cls in record.__mro__:
        if not cls.__module__.startswith("equipoise.") or cls.__name__ == "Value":
            continue
        try:
            (tree,) = ast.parse(dedent(getsource(cls))).body
        except (OSError, TypeError):
            continue
        assert isinstance(tree, ast.ClassDef)
        # The docstring of a field is the statement below it.
        for field, below in zip(tree.body, tree.body[1:], strict=False):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(note))),
                ):
                    descriptions[name] = " ".join(note.split())
    return descriptions
