"""The words of the language: predefined sets, states and functions, and the paper's names for them.

A function is declared here by its signature; ``functions`` implements it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from equipoise.model.host import HostState
from equipoise.model.vm import VmState
from equipoise.spec.language.types import (
    ACTION,
    BOOL,
    HOST,
    HOST_STATE,
    INT,
    STRING,
    VM,
    VM_STATE,
    Type,
    list_of,
    set_of,
    type_variable,
)

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
