"""Walks a tree along the types of the model and finds every value that does not fit.

Only called when decoding has failed, so it may be slow; it must agree with msgspec on what fits.
Never looks at what values mean together: that is what ``check`` is for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

import msgspec
from msgspec import inspect

from equipoise.model.files.findings import Findings
from equipoise.model.files.kinds import NumberKind, note_of, noun, range_of, wanted
from equipoise.model.files.tree import BROKEN
from equipoise.model.files.words import (
    Path,
    kind_of,
    quoted,
    shown,
)

_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,20}")
"""How a key says a number: keys of a file are always text."""


def examine(value: Any, form: type, found: Findings) -> None:
    """Find everything in a tree that does not fit the form."""
    _examine(value, _kind_of_form(form), (), found)


@cache
def _kind_of_form(form: type) -> inspect.Type:
    return inspect.type_info(form)


def _examine(value: Any, kind: inspect.Type, path: Path, found: Findings) -> None:
    if value is not BROKEN:
        _EXAMINERS[type(kind)](value, kind, path, found)


def _examine_union(value: Any, kind: inspect.UnionType, path: Path, found: Findings) -> None:
    branches = [branch for branch in kind.types if not isinstance(branch, inspect.NoneType)]
    if value is None and len(branches) < len(kind.types):
        return
    if len(branches) == 1:
        _examine(value, branches[0], path, found)
        return
    words = [branch for branch in branches if isinstance(branch, inspect.EnumType)]
    maps = [branch for branch in branches if isinstance(branch, inspect.DictType)]
    if words and maps:
        # Who writes a mapping means one; everything else was to be a word.
        _examine(value, (maps if isinstance(value, dict) else words)[0], path, found)
        return
    records = [branch for branch in branches if isinstance(branch, inspect.StructType)]
    if len(records) == 1:
        _examine_level(value, kind, path, found)
        return
    if not records:
        _examine_either(value, branches, path, found)
        return
    _examine_tagged(value, branches, path, found)


def _examine_tagged(value: Any, branches: list[inspect.Type], path: Path, found: Findings) -> None:
    """All other unions are of records that are told apart by a tag."""
    tagged = {cast(Any, branch).tag: branch for branch in branches}
    field = cast(Any, branches[0]).tag_field
    if not isinstance(value, dict):
        _find_misfit(value, branches[0], path, found)
        return
    tag = value.get(field)
    if field not in value:
        found.add((*path, field), "is missing", f"one of {', '.join(tagged)}")
    elif isinstance(tag, str) and tag in tagged:
        if not _fits(value, cast(Any, tagged[tag]).cls):
            _examine(value, tagged[tag], path, found)
    elif tag is not BROKEN:
        _find_not_among(tag, list(tagged), (*path, field), found)


def _examine_either(value: Any, branches: list[inspect.Type], path: Path, found: Findings) -> None:
    """A value that may be of several kinds fits if it fits one of them."""
    for branch in branches:
        tried = Findings()
        _examine(value, branch, path, tried)
        if not tried:
            return
    kinds = " or ".join(noun(branch) for branch in branches)
    found.add(path, f"{shown(value)} does not fit", f"give {kinds}")


def _examine_level(value: Any, kind: inspect.UnionType, path: Path, found: Findings) -> None:
    """A number, or a record that says how to draw one: which of them was meant is plain to see."""
    number, record = kind.types[:2]
    if isinstance(value, dict):
        _examine(value, record, path, found)
    elif _is_number(value) or _is_quoted_number(value):
        _examine(value, number, path, found)
    else:
        what = f"found {kind_of(value)} where {noun(number)} or {noun(record)} is needed"
        found.add(path, what, wanted(kind))


def _examine_struct(value: Any, kind: inspect.StructType, path: Path, found: Findings) -> None:
    if not isinstance(value, dict):
        _find_misfit(value, kind, path, found)
        return
    in_order = sorted(kind.fields, key=lambda field: not field.required)
    fields = {field.encode_name: field for field in in_order}
    allowed = [*([kind.tag_field] if kind.tag_field else []), *fields]
    guesses = ""
    for key in value:
        if kind.forbid_unknown_fields and key not in allowed:
            guess = found.guess(key, [name for name in allowed if name not in value])
            guesses += guess
            cure = f"{guess}allowed: {', '.join(allowed)}"
            found.add((*path, key), "this key is not known", cure)
    for name, field in fields.items():
        if name in value:
            _examine(value[name], field.type, (*path, name), found)
        # Who misspells a key has not forgotten it: one slip is one problem.
        elif field.required and quoted(name) not in guesses:
            found.add((*path, name), "is missing", wanted(field.type))


def _examine_list(value: Any, kind: inspect.VarTupleType, path: Path, found: Findings) -> None:
    if not isinstance(value, list):
        _find_misfit(value, kind, path, found)
        return
    least = kind.min_length or 0
    if len(value) < least:
        found.add(path, f"has {len(value)} of at least {least} entries", wanted(kind))
    form = kind.item_type.cls if isinstance(kind.item_type, inspect.StructType) else None
    for place, entry in enumerate(value):
        # Most elements of a long list are right, and msgspec knows it a hundred times faster.
        if form is None or not _fits(entry, form):
            _examine(entry, kind.item_type, (*path, place), found)


def _fits(value: Any, form: type) -> bool:
    try:
        msgspec.convert(value, form, str_keys=True)
    except (msgspec.ValidationError, UnicodeError):  # half a character is no word at all
        return False
    return True


def _examine_dict(value: Any, kind: inspect.DictType, path: Path, found: Findings) -> None:
    if not isinstance(value, dict):
        _find_misfit(value, kind, path, found)
        return
    for key, entry in value.items():
        if not isinstance(kind.key_type, inspect.IntType):
            _examine(key, kind.key_type, (*path, key), found)
        elif _NUMBER.fullmatch(key):
            _examine(int(key), kind.key_type, (*path, key), found)
        else:
            what = f"{shown(key)} is not a whole number"
            found.add((*path, key), what, wanted(kind.key_type))
        _examine(entry, kind.value_type, (*path, key), found)


def _examine_name(value: Any, kind: inspect.Metadata, path: Path, found: Findings) -> None:
    pattern = getattr(kind.type, "pattern", None)
    if pattern and isinstance(value, str) and not re.search(pattern, value):
        noun = (kind.extra_json_schema or {}).get("title", "name")
        found.add(path, f"{shown(value)} is not an allowed {noun}", note_of(kind))
    else:
        _examine(value, kind.type, path, found)


def _examine_text(value: Any, kind: inspect.StrType, path: Path, found: Findings) -> None:
    if not isinstance(value, str):
        cure = f'put it in quotes: "{shown(value)}"' if _is_scalar(value) else ""
        _find_misfit(value, kind, path, found, cure)
    elif len(value) < (kind.min_length or 0):
        found.add(path, "is empty", "write something")
    elif kind.max_length is not None and len(value) > kind.max_length:
        found.add(path, f"has {len(value)} letters", f"at most {kind.max_length}")


def _examine_number(value: Any, kind: NumberKind, path: Path, found: Findings) -> None:
    if not _is_number(value):
        cure = f"without quotes: {value}" if _is_quoted_number(value) else ""
        _find_misfit(value, kind, path, found, cure)
    elif isinstance(value, float) and not math.isfinite(value):
        found.add(path, f"{shown(value)} is not a finite number", wanted(kind))
    elif isinstance(value, float) and isinstance(kind, inspect.IntType):
        written = "written as " if value.is_integer() else ""
        cure = f"write {shown(int(value))}" if written else wanted(kind)
        found.add(path, f"{shown(value)} is not {written}a whole number", cure)
    elif kind.ge is not None and value < kind.ge:
        found.add(path, f"{shown(value)} is below the allowed range", range_of(kind))
    elif kind.le is not None and value > kind.le:
        found.add(path, f"{shown(value)} is above the allowed range", range_of(kind))


def _examine_bool(value: Any, kind: inspect.BoolType, path: Path, found: Findings) -> None:
    if not isinstance(value, bool):
        _find_misfit(value, kind, path, found)


def _examine_enum(value: Any, kind: inspect.EnumType, path: Path, found: Findings) -> None:
    allowed = [member.value for member in kind.cls]
    if not isinstance(value, str) or value not in allowed:
        _find_not_among(value, [str(name) for name in allowed], path, found)


def _find_not_among(value: Any, allowed: list[str], path: Path, found: Findings) -> None:
    guess = found.guess(value, allowed) if isinstance(value, str) else ""
    said = shown(value) if isinstance(value, str) else kind_of(value)
    found.add(
        path, f"{said} is not one of the allowed words", f"{guess}allowed: {', '.join(allowed)}"
    )


def _find_misfit(value: Any, kind: Any, path: Path, found: Findings, cure: str = "") -> None:
    found.add(path, f"found {kind_of(value)} where {noun(kind)} is needed", cure or wanted(kind))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_quoted_number(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value) is not None


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float)


_EXAMINERS: Final[dict[type[Any], Callable[[Any, Any, Path, Findings], None]]] = {
    inspect.Metadata: _examine_name,
    inspect.UnionType: _examine_union,
    inspect.StructType: _examine_struct,
    inspect.VarTupleType: _examine_list,
    inspect.DictType: _examine_dict,
    inspect.StrType: _examine_text,
    inspect.IntType: _examine_number,
    inspect.FloatType: _examine_number,
    inspect.EnumType: _examine_enum,
    inspect.BoolType: _examine_bool,
}
"""Other kinds do not occur in files; a test walks all forms to see to it."""
