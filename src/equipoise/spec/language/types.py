"""The types of the language, and the type that two of them have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """A type: a plain one, or a collection of another."""

    name: str
    of: Type | None = None

    def __str__(self) -> str:
        return self.name if self.of is None else f"{self.name}<{self.of}>"


INT: Final = Type("int")
BOOL: Final = Type("bool")
STRING: Final = Type("string")
VM: Final = Type("vm")
HOST: Final = Type("host")
VM_STATE: Final = Type("vm state")
HOST_STATE: Final = Type("host state")
ACTION: Final = Type("action")
ANYTHING: Final = Type("anything")
"""The type of the members of an empty collection, and of a term whose error is reported already."""
SIMPLE_TYPES: Final = {
    simple.name: simple for simple in (INT, BOOL, STRING, VM, HOST, VM_STATE, HOST_STATE, ACTION)
}
"""The types other than collections, by name."""


def set_of(member: Type) -> Type:
    """Return the type of sets."""
    return Type("set", member)


def list_of(element: Type) -> Type:
    """Return the type of lists."""
    return Type("list", element)


def packing_of(member: Type) -> Type:
    """Return the type of packings: disjoint groups. A packing can be used as a set of sets."""
    return Type("packing", member)


def type_variable(name: str) -> Type:
    """Return a type that a function leaves open, written with a quote: ``'t``."""
    return Type(f"'{name}")


def members_of(kind: Type) -> Type | None:
    """Return the type of the members of a collection; ``None`` for other types."""
    if kind.name == "packing":
        assert kind.of is not None
        return set_of(kind.of)
    return kind.of


def common_type(left: Type, right: Type) -> Type | None:
    """Return the type that fits both, or ``None`` if there is none."""
    if right in {left, ANYTHING}:
        return left
    if left == ANYTHING:
        return right
    # A packing is a set of sets, so the two have a common type.
    if "packing" in (left.name, right.name) and {left.name, right.name} <= {"packing", "set"}:
        left_members, right_members = members_of(left), members_of(right)
        assert left_members is not None
        assert right_members is not None
        inner = common_type(left_members, right_members)
        return None if inner is None else set_of(inner)
    if left.of is None or right.of is None or left.name != right.name:
        return None
    inner = common_type(left.of, right.of)
    return None if inner is None else Type(left.name, inner)


def match_type(wanted: Type, given: Type, open_types: dict[str, Type]) -> bool:
    """Whether a value fits a parameter; binds the open types of the function in ``open_types``."""
    if wanted.name.startswith("'"):
        known = open_types.get(wanted.name)
        joined = given if known is None else common_type(known, given)
        if joined is not None:
            open_types[wanted.name] = joined
        return joined is not None
    if given == ANYTHING:
        return True
    if wanted.name == "collection":
        inner = members_of(given)
        return inner is not None and match_type(_inner(wanted), inner, open_types)
    if wanted.of is None:
        return wanted == given
    if wanted.name == "set" and given.name == "packing":
        inner = members_of(given)
        return inner is not None and match_type(wanted.of, inner, open_types)
    return (
        wanted.name == given.name
        and given.of is not None
        and match_type(wanted.of, given.of, open_types)
    )


def _inner(kind: Type) -> Type:
    assert kind.of is not None
    return kind.of


def substitute(kind: Type, open_types: dict[str, Type]) -> Type:
    """Return a type with its open types replaced by those that were bound."""
    if kind.name.startswith("'"):
        return open_types.get(kind.name, ANYTHING)
    return kind if kind.of is None else Type(kind.name, substitute(kind.of, open_types))
