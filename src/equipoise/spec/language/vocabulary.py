"""The types and the words of the language: sets, states, functions, and the paper's names for them.

A function is declared here by its signature; ``functions`` implements it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from equipoise.model.host import HostState
from equipoise.model.vm import VmState


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
    # A term whose error is reported fits everything: one mistake gives one message.
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


T: Final = type_variable("t")
COLLECTION: Final = Type("collection", T)
ELEMENT: Final = Type("element")
"""A VM or a host."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of the parameters and of the result, and a description."""

    parameters: tuple[Type, ...]
    result: Type
    doc: str

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parameters))}) -> {self.result}"


SIGNATURES: Final[dict[str, Signature]] = {
    "host": Signature(
        (VM,), HOST, "the host on which the VM runs or sleeps; while it migrates, its source"
    ),
    "hosted": Signature(
        (HOST,), set_of(VM), "the VMs that run or sleep on the host or are on their way to it"
    ),
    "running": Signature((HOST,), set_of(VM), "the VMs that run on the host"),
    "colocated": Signature(
        (VM,), set_of(VM), "the VMs that run on the host of the running VM, with the VM itself"
    ),
    "runs": Signature((VM,), BOOL, "whether the VM is running"),
    "vmState": Signature((VM,), VM_STATE, "the state of the VM"),
    "hostState": Signature((HOST,), HOST_STATE, "the state of the host"),
    "cons": Signature((VM, STRING), INT, "the amount of a resource that the VM takes"),
    "capa": Signature((HOST, STRING), INT, "the amount of a resource that the host has"),
    "demand": Signature((VM, STRING), INT, "the amount of a resource that the VM would use now"),
    "label": Signature((ELEMENT, STRING), STRING, "the label of a VM or host, or the empty text"),
    "pool": Signature((VM,), STRING, "the pool of the VM, or the empty text"),
    "tenant": Signature((VM,), STRING, "the tenant of the VM, or the empty text"),
    "agent": Signature((VM,), BOOL, "whether the VM is part of its host's platform"),
    "ftPair": Signature(
        (VM,), set_of(VM), "the other VM of the fault-tolerant pair; empty if there is none"
    ),
    "card": Signature((COLLECTION,), INT, "the number of members"),
    "sum": Signature((list_of(INT),), INT, "the sum of the numbers"),
    "largest": Signature(
        (list_of(INT), INT), list_of(INT), "the largest numbers, at most as many as given"
    ),
    "range": Signature((list_of(T),), list_of(INT), "the positions of a list, from 0 on"),
    "lists": Signature((set_of(T),), set_of(list_of(T)), "all orders of the members"),
    "actions": Signature(
        (ELEMENT,), list_of(ACTION), "the plan's actions on a VM or host, in order of time"
    ),
    "underway": Signature((ELEMENT,), set_of(ACTION), "the actions under way on a VM or host"),
    "kind": Signature(
        (ACTION,), STRING, 'what the action does: "migrate", "boot", "power_off", ...'
    ),
    "source": Signature((ACTION,), HOST, "the host on which the action frees capacity, if any"),
    "target": Signature((ACTION,), HOST, "the host on which the action takes capacity, if any"),
    "begin": Signature((ACTION,), INT, "the start of the action, in milliseconds of the plan"),
    "end": Signature((ACTION,), INT, "the end of the action, in milliseconds of the plan"),
}

SYNONYMS: Final = {"nodes": "hosts", "nodeState": "hostState", "online": "on", "offline": "standby"}
"""The paper's names, so that its listings can be used as printed."""

KEYWORDS: Final = frozenset(
    {"let", "in", "not", "always", "sometime", "true", "false", "hard", "soft", "discrete"}
    | {"continuous", "documented", "as_coded", "int", "string"}
)
"""Words that cannot name a constraint, although the grammar could tell some of them apart."""

START_SENSITIVE_FUNCTIONS: Final = frozenset({"hosted", "underway"})
"""Functions whose value changes when an action starts; for all others only its end matters."""
PLAN_CONSTANT_FUNCTIONS: Final = frozenset(
    {"capa", "demand", "label", "pool", "tenant", "agent", "ftPair"}
    | {"card", "sum", "largest", "range", "lists"}
)
"""Functions whose value for the same arguments no plan changes."""
PLACEMENT_FREE_FUNCTIONS: Final = PLAN_CONSTANT_FUNCTIONS | {
    "runs",
    "vmState",
    "hostState",
    "cons",
}
"""Functions whose value is the same wherever VMs run, and while they migrate."""
SETS: Final[dict[str, Type]] = {"vms": set_of(VM), "hosts": set_of(HOST)}
STATES: Final[dict[str, Type]] = {
    **{state.value: VM_STATE for state in VmState},
    **{state.value: HOST_STATE for state in HostState},
}
DOMAINS: Final[dict[str, Type]] = {"int": INT, "string": STRING}
"""Types that a parameter may range over."""


def canonical_name(name: str) -> str:
    """Return our name for a name of the paper; any other name stays."""
    return SYNONYMS.get(name, name)
