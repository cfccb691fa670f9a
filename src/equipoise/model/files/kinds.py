"""The kinds of value that the model is made of, and how they are said to a person."""

from __future__ import annotations

from typing import Final

from msgspec import inspect

NumberKind = inspect.IntType | inspect.FloatType

_NOUNS: Final[dict[type[object], str]] = {
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


def noun(kind: object) -> str:
    """Name a kind in a word or two."""
    if isinstance(kind, inspect.Metadata):
        return noun(kind.type)
    if isinstance(kind, inspect.UnionType):
        return noun(kind.types[0])
    return _NOUNS[type(kind)]


def wanted(kind: object) -> str:
    """Say what may be written in a place of this kind."""
    match kind:
        case inspect.IntType() | inspect.FloatType() as number:
            bounded = number.ge is not None or number.le is not None
            return noun(number) + (f" from {range_of(number)}" if bounded else "")
        case inspect.EnumType(cls=cls):
            return f"one of {', '.join(str(member.value) for member in cls)}"
        case inspect.VarTupleType(min_length=least) if least:
            return f"a list of at least {least}"
        case inspect.UnionType(
            types=(inspect.FloatType() as number, inspect.StructType(fields=fields), *_)
        ):
            keys = ", ".join(field.encode_name for field in fields)
            return f"{wanted(number)}, or a mapping of {keys}"
        case inspect.UnionType(types=types):
            return wanted(types[0])
        case inspect.Metadata(type=inner) as noted:
            note = note_of(noted)
            return f"{wanted(inner)} of {note}" if note else wanted(inner)
        case other:
            return noun(other)


def range_of(kind: NumberKind) -> str:
    """Say between which two numbers, both included, a number must lie."""
    if kind.le is None:
        return f"{kind.ge} or more"
    return f"{kind.le} or less" if kind.ge is None else f"{kind.ge} to {kind.le}"


def note_of(kind: inspect.Metadata) -> str:
    """The description that the model gives to a kind, e.g. which letters a name may have."""
    note = (kind.extra_json_schema or {}).get("description", "")
    assert isinstance(note, str)
    return note
