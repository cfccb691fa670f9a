"""Type check: walks a tree along the types of the model and reports every value that does not fit.

Runs only after decoding has failed, so it may be slow. It must agree with msgspec on what fits.
Never compares values with each other: ``check`` does that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

import msgspec
from msgspec import inspect

from equipoise.files.document import UNREADABLE
from equipoise.model.diagnostics import (
    Diagnostics,
    KeyPath,
    Replacement,
    describe_value,
    format_value,
    quoted,
)

NumberType = inspect.IntType | inspect.FloatType

_TYPE_NOUNS: Final[dict[type[object], str]] = {
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.StrType: "text",
    inspect.BoolType: "true or false",
    inspect.NoneType: "nothing",
    inspect.EnumType: "a word",
    inspect.VarTupleType: "a list",
    inspect.DictType: "a mapping",
    inspect.StructType: "a mapping",
}


def type_noun(kind: object) -> str:
    """Return the name of a type for a message: ``a whole number``, ``a mapping``."""
    if isinstance(kind, inspect.Metadata):
        return type_noun(kind.type)
    if isinstance(kind, inspect.UnionType):
        return type_noun(kind.types[0])
    return _TYPE_NOUNS[type(kind)]


def expected_value(kind: object) -> str:
    """Return what a file may have at a value of this type."""
    match kind:
        case inspect.IntType() | inspect.FloatType() as number:
            bounded = number.ge is not None or number.le is not None
            return type_noun(number) + (f" from {format_range(number)}" if bounded else "")
        case inspect.EnumType(cls=cls):
            return f"one of {', '.join(str(member.value) for member in cls)}"
        case inspect.VarTupleType(min_length=least) if least:
            return f"a list of at least {least}"
        case inspect.UnionType(
            types=(inspect.FloatType() as number, inspect.StructType(fields=fields), *_)
        ):
            keys = ", ".join(field.encode_name for field in fields)
            return f"{expected_value(number)}, or a mapping of {keys}"
        case inspect.UnionType(types=types):
            return expected_value(types[0])
        case inspect.Metadata(type=inner) as noted:
            note = type_description(noted)
            return f"{expected_value(inner)} of {note}" if note else expected_value(inner)
        case other:
            return type_noun(other)


def format_range(kind: NumberType) -> str:
    """Return the range of a number, both ends included: ``0 to 100``."""
    if kind.le is None:
        return f"{kind.ge} or more"
    return f"{kind.le} or less" if kind.ge is None else f"{kind.ge} to {kind.le}"


def type_description(kind: inspect.Metadata) -> str:
    """Return the description of a type in the model, e.g. which letters a name may have."""
    note = (kind.extra_json_schema or {}).get("description", "")
    assert isinstance(note, str)
    return note


_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,20}")
"""A whole number as a key; keys of a file are always text."""


def check_types(value: Any, file_type: type, diagnostics: Diagnostics) -> None:
    """Report every value of a tree that does not fit the type of the file."""
    _check_type(value, _type_info(file_type), (), diagnostics)


@cache
def _type_info(file_type: type) -> inspect.Type:
    return inspect.type_info(file_type)


def _check_type(value: Any, kind: inspect.Type, path: KeyPath, diagnostics: Diagnostics) -> None:
    if value is not UNREADABLE:
        _CHECKS_BY_TYPE[type(kind)](value, kind, path, diagnostics)


def _check_union(
    value: Any, kind: inspect.UnionType, path: KeyPath, diagnostics: Diagnostics
) -> None:
    branches = [branch for branch in kind.types if not isinstance(branch, inspect.NoneType)]
    if value is None and len(branches) < len(kind.types):
        return
    if len(branches) == 1:
        _check_type(value, branches[0], path, diagnostics)
        return
    words = [branch for branch in branches if isinstance(branch, inspect.EnumType)]
    maps = [branch for branch in branches if isinstance(branch, inspect.DictType)]
    if words and maps:
        # A mapping is checked as a mapping, and everything else as a word.
        _check_type(value, (maps if isinstance(value, dict) else words)[0], path, diagnostics)
        return
    records = [branch for branch in branches if isinstance(branch, inspect.StructType)]
    if len(records) == 1:
        _check_number_or_record(value, kind, path, diagnostics)
        return
    if not records:
        _check_any_of(value, branches, path, diagnostics)
        return
    _check_tagged(value, branches, path, diagnostics)


def _check_tagged(
    value: Any, branches: list[inspect.Type], path: KeyPath, diagnostics: Diagnostics
) -> None:
    """Check a union of records that differ by a tag. All unions that are left are of this kind."""
    tagged = {cast(Any, branch).tag: branch for branch in branches}
    field = cast(Any, branches[0]).tag_field
    if not isinstance(value, dict):
        _report_wrong_type(value, branches[0], path, diagnostics)
        return
    tag = value.get(field)
    if field not in value:
        cure = f"one of {', '.join(tagged)}"
        diagnostics.add((*path, field), "is missing", cure, code="missing-key")
    elif isinstance(tag, str) and tag in tagged:
        if not _fits(value, cast(Any, tagged[tag]).cls):
            _check_type(value, tagged[tag], path, diagnostics)
    elif tag is not UNREADABLE:
        _report_not_allowed(tag, list(tagged), (*path, field), diagnostics)


def _check_any_of(
    value: Any, branches: list[inspect.Type], path: KeyPath, diagnostics: Diagnostics
) -> None:
    """Check a union of scalars: the value must fit one of them."""
    for branch in branches:
        # A trial: only a value that fits no branch is reported, once for all branches.
        attempt = Diagnostics()
        _check_type(value, branch, path, attempt)
        if not attempt:
            return
    kinds = " or ".join(type_noun(branch) for branch in branches)
    what = f"{format_value(value)} does not fit"
    diagnostics.add(path, what, f"write {kinds}", code="wrong-type")


def _check_number_or_record(
    value: Any, kind: inspect.UnionType, path: KeyPath, diagnostics: Diagnostics
) -> None:
    """Check a scalar or a record that describes one: a mapping is meant as the record."""
    record = next(branch for branch in kind.types if isinstance(branch, inspect.StructType))
    number = next(branch for branch in kind.types if branch is not record)
    if isinstance(value, dict):
        _check_type(value, record, path, diagnostics)
    elif _is_number(value) or _is_quoted_number(value):
        _check_type(value, number, path, diagnostics)
    else:
        needed = f"{type_noun(number)} or {type_noun(record)}"
        what = f"found {describe_value(value)} where {needed} is needed"
        diagnostics.add(path, what, expected_value(kind), code="wrong-type")


def _check_struct(
    value: Any, kind: inspect.StructType, path: KeyPath, diagnostics: Diagnostics
) -> None:
    if not isinstance(value, dict):
        _report_wrong_type(value, kind, path, diagnostics)
        return
    # Required keys first: messages list what may be missing before what may be left out.
    in_order = sorted(kind.fields, key=lambda field: not field.required)
    fields = {field.encode_name: field for field in in_order}
    allowed = [*([kind.tag_field] if kind.tag_field else []), *fields]
    guesses = ""
    for key in value:
        if kind.forbid_unknown_fields and key not in allowed:
            guess = diagnostics.suggestion(key, [name for name in allowed if name not in value])
            guesses += guess
            cure = f"{guess}allowed: {', '.join(allowed)}"
            diagnostics.add(
                (*path, key),
                "this key is not known",
                cure,
                code="unknown-key",
                replacement=Replacement(leaves_out=True),
            )
    for name, field in fields.items():
        if name in value:
            _check_type(value[name], field.type, (*path, name), diagnostics)
        # A required key that is misspelled is reported once, as an unknown key.
        elif field.required and quoted(name) not in guesses:
            cure = expected_value(field.type)
            valid = _replacement(field.type)
            diagnostics.add(
                (*path, name), "is missing", cure, code="missing-key", replacement=valid
            )


def _check_list(
    value: Any, kind: inspect.VarTupleType, path: KeyPath, diagnostics: Diagnostics
) -> None:
    if not isinstance(value, list):
        _report_wrong_type(value, kind, path, diagnostics)
        return
    least = kind.min_length or 0
    if len(value) < least:
        what = f"has {len(value)} of at least {least} entries"
        diagnostics.add(path, what, expected_value(kind), code="out-of-range")
    file_type = kind.item_type.cls if isinstance(kind.item_type, inspect.StructType) else None
    for position, entry in enumerate(value):
        # Most elements of a long list are valid, and msgspec checks them 100 times as fast.
        if file_type is None or not _fits(entry, file_type):
            _check_type(entry, kind.item_type, (*path, position), diagnostics)


def _fits(value: Any, file_type: type) -> bool:
    try:
        msgspec.convert(value, file_type, str_keys=True)
    except (msgspec.ValidationError, UnicodeError):  # a lone surrogate cannot be encoded
        return False
    return True


def _check_dict(
    value: Any, kind: inspect.DictType, path: KeyPath, diagnostics: Diagnostics
) -> None:
    if not isinstance(value, dict):
        _report_wrong_type(value, kind, path, diagnostics)
        return
    for key, entry in value.items():
        if not isinstance(kind.key_type, inspect.IntType):
            _check_type(key, kind.key_type, (*path, key), diagnostics)
        elif _NUMBER.fullmatch(key):
            _check_type(int(key), kind.key_type, (*path, key), diagnostics)
        else:
            what = f"{format_value(key)} is not a whole number"
            cure = expected_value(kind.key_type)
            diagnostics.add((*path, key), what, cure, code="wrong-type")
        _check_type(entry, kind.value_type, (*path, key), diagnostics)


def _check_name(
    value: Any, kind: inspect.Metadata, path: KeyPath, diagnostics: Diagnostics
) -> None:
    pattern = getattr(kind.type, "pattern", None)
    if pattern and isinstance(value, str) and not re.search(pattern, value):
        noun = (kind.extra_json_schema or {}).get("title", "name")
        what = f"{format_value(value)} is not an allowed {noun}"
        diagnostics.add(path, what, type_description(kind), code="invalid-name")
    else:
        _check_type(value, kind.type, path, diagnostics)


def _check_text(value: Any, kind: inspect.StrType, path: KeyPath, diagnostics: Diagnostics) -> None:
    if not isinstance(value, str):
        cure = f'put it in quotes: "{format_value(value)}"' if _is_scalar(value) else ""
        _report_wrong_type(value, kind, path, diagnostics, cure)
    elif len(value) < (kind.min_length or 0):
        diagnostics.add(path, "is empty", "write at least one character", code="empty-value")
    elif kind.max_length is not None and len(value) > kind.max_length:
        what = f"has {len(value)} characters"
        diagnostics.add(path, what, f"at most {kind.max_length}", code="out-of-range")


def _check_number(value: Any, kind: NumberType, path: KeyPath, diagnostics: Diagnostics) -> None:
    valid = _replacement(kind)
    if not _is_number(value):
        cure = f"without quotes: {value}" if _is_quoted_number(value) else ""
        _report_wrong_type(value, kind, path, diagnostics, cure)
    elif isinstance(value, float) and not math.isfinite(value):
        what = f"{format_value(value)} is not a finite number"
        diagnostics.add(path, what, expected_value(kind), code="out-of-range", replacement=valid)
    elif isinstance(value, float) and isinstance(kind, inspect.IntType):
        written = "written as " if value.is_integer() else ""
        what = f"{format_value(value)} is not {written}a whole number"
        cure = f"write {format_value(int(value))}" if written else expected_value(kind)
        diagnostics.add(path, what, cure, code="wrong-type", replacement=valid)
    elif kind.ge is not None and value < kind.ge:
        what = f"{format_value(value)} is below the allowed range"
        diagnostics.add(path, what, format_range(kind), code="out-of-range", replacement=valid)
    elif kind.le is not None and value > kind.le:
        what = f"{format_value(value)} is above the allowed range"
        diagnostics.add(path, what, format_range(kind), code="out-of-range", replacement=valid)


def _replacement(kind: object) -> Replacement | None:
    """Return a value that fits a type, if any does as well as another; no name does."""
    match kind:
        case inspect.IntType() | inspect.FloatType() as number:
            least = 0 if number.ge is None else number.ge
            return Replacement(least if number.le is None else min(least, number.le))
        case inspect.EnumType(cls=cls):
            return Replacement(next(iter(cls)).value)
        case inspect.BoolType():
            return Replacement(value=False)
        case inspect.Metadata(type=inner):
            return _replacement(inner)
        case inspect.UnionType(types=types):
            if any(isinstance(branch, inspect.NoneType) for branch in types):
                return Replacement()
            return _replacement(types[0])
        case _:
            return None


def _check_bool(
    value: Any, kind: inspect.BoolType, path: KeyPath, diagnostics: Diagnostics
) -> None:
    if not isinstance(value, bool):
        _report_wrong_type(value, kind, path, diagnostics)


def _check_enum(
    value: Any, kind: inspect.EnumType, path: KeyPath, diagnostics: Diagnostics
) -> None:
    allowed = [member.value for member in kind.cls]
    if not isinstance(value, str) or value not in allowed:
        valid = _replacement(kind)
        _report_not_allowed(value, [str(name) for name in allowed], path, diagnostics, valid)


def _report_not_allowed(
    value: Any,
    allowed: list[str],
    path: KeyPath,
    diagnostics: Diagnostics,
    replacement: Replacement | None = None,
) -> None:
    guess = diagnostics.suggestion(value, allowed) if isinstance(value, str) else ""
    value_text = format_value(value) if isinstance(value, str) else describe_value(value)
    what = f"{value_text} is not one of the allowed words"
    cure = f"{guess}allowed: {', '.join(allowed)}"
    code = "invalid-value" if isinstance(value, str) else "wrong-type"
    diagnostics.add(path, what, cure, code=code, replacement=replacement)


def _report_wrong_type(
    value: Any, kind: Any, path: KeyPath, diagnostics: Diagnostics, cure: str = ""
) -> None:
    what = f"found {describe_value(value)} where {type_noun(kind)} is needed"
    cure, valid = cure or expected_value(kind), _replacement(kind)
    diagnostics.add(path, what, cure, code="wrong-type", replacement=valid)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_quoted_number(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value) is not None


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float)


_CHECKS_BY_TYPE: Final[dict[type[Any], Callable[[Any, Any, KeyPath, Diagnostics], None]]] = {
    inspect.Metadata: _check_name,
    inspect.UnionType: _check_union,
    inspect.StructType: _check_struct,
    inspect.VarTupleType: _check_list,
    inspect.DictType: _check_dict,
    inspect.StrType: _check_text,
    inspect.IntType: _check_number,
    inspect.FloatType: _check_number,
    inspect.EnumType: _check_enum,
    inspect.BoolType: _check_bool,
}
"""Other types do not occur in files. A test walks the types of all files to prove it."""
