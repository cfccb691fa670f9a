"""The types of the language, and how two of them are brought together."""

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
"""What the members of an empty collection are, and what a mistake that was told already is."""
PLAIN: Final = {
    one.name: one for one in (INT, BOOL, STRING, VM, HOST, VM_STATE, HOST_STATE, ACTION)
}
"""The types that are no collections, by name."""


def set_of(member: Type) -> Type:
    """The type of sets."""
    return Type("set", member)


def list_of(element: Type) -> Type:
    """The type of lists."""
    return Type("list", element)


def packing_of(member: Type) -> Type:
    """The type of packings: groups that have nothing in common. It may stand for a set of sets."""
    return Type("packing", member)


def variable(name: str) -> Type:
    """A type that a function leaves open; it is written with a quote, like ``'t``."""
    return Type(f"'{name}")


def members_of(kind: Type) -> Type | None:
    """What the members of a collection are; ``None`` if it has none."""
    if kind.name == "packing":
        assert kind.of is not None
        return set_of(kind.of)
    return kind.of


def join(one: Type, other: Type) -> Type | None:
    """The type that both are, or ``None`` if they have nothing in common."""
    if other in {one, ANYTHING}:
        return one
    if one == ANYTHING:
        return other
    if "packing" in (one.name, other.name) and {one.name, other.name} <= {"packing", "set"}:
        mine, yours = members_of(one), members_of(other)
        assert mine is not None
        assert yours is not None
        inner = join(mine, yours)
        return None if inner is None else set_of(inner)
    if one.of is None or other.of is None or one.name != other.name:
        return None
    inner = join(one.of, other.of)
    return None if inner is None else Type(one.name, inner)


def match(wanted: Type, given: Type, open_types: dict[str, Type]) -> bool:
    """Whether a value may stand for a parameter; fills in what the function leaves open."""
    if wanted.name.startswith("'"):
        known = open_types.get(wanted.name)
        joined = given if known is None else join(known, given)
        if joined is not None:
            open_types[wanted.name] = joined
        return joined is not None
    if given == ANYTHING:
        return True
    if wanted.name == "collection":
        inner = members_of(given)
        return inner is not None and match(_inner(wanted), inner, open_types)
    if wanted.of is None:
        return wanted == given
    if wanted.name == "set" and given.name == "packing":
        inner = members_of(given)
        return inner is not None and match(wanted.of, inner, open_types)
    return (
        wanted.name == given.name
        and given.of is not None
        and match(wanted.of, given.of, open_types)
    )


def _inner(kind: Type) -> Type:
    assert kind.of is not None
    return kind.of


def settle(kind: Type, open_types: dict[str, Type]) -> Type:
    """Put what was found out in place of what was left open."""
    if kind.name.startswith("'"):
        return open_types.get(kind.name, ANYTHING)
    return kind if kind.of is None else Type(kind.name, settle(kind.of, open_types))
