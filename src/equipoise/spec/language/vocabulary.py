"""The words of the language: predefined sets, states and functions, and the paper's names for them.

A function is declared here by its signature only; ``functions`` says what it means.
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
    variable,
)

T: Final = variable("t")
COLLECTION: Final = Type("collection", T)
ELEMENT: Final = Type("element")
"""A VM or a host."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives."""

    parameters: tuple[Type, ...]
    result: Type
    doc: str

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parameters))}) -> {self.result}"


SIGNATURES: Final[dict[str, Signature]] = {
    "host": Signature((VM,), HOST, "where the VM runs or sleeps; while it migrates, its source"),
    "hosted": Signature(
        (HOST,), set_of(VM), "the VMs that lie on the host or are on their way to it"
    ),
    "running": Signature((HOST,), set_of(VM), "the VMs that run on the host"),
    "colocated": Signature((VM,), set_of(VM), "the VMs that run where the VM runs, itself too"),
    "runs": Signature((VM,), BOOL, "whether the VM is running"),
    "vmState": Signature((VM,), VM_STATE, "the state of the VM"),
    "hostState": Signature((HOST,), HOST_STATE, "the state of the host"),
    "cons": Signature((VM, STRING), INT, "what the VM takes of a resource"),
    "capa": Signature((HOST, STRING), INT, "what the host has of a resource"),
    "demand": Signature((VM, STRING), INT, "what the VM would use of a resource now"),
    "label": Signature((ELEMENT, STRING), STRING, "the label of a VM or host, or nothing"),
    "pool": Signature((VM,), STRING, "the pool of the VM, or nothing"),
    "tenant": Signature((VM,), STRING, "the tenant of the VM, or nothing"),
    "agent": Signature((VM,), BOOL, "whether the VM is part of its host's platform"),
    "ftPair": Signature((VM,), set_of(VM), "the other half of a fault-tolerant pair, if it is one"),
    "card": Signature((COLLECTION,), INT, "how many there are"),
    "sum": Signature((list_of(INT),), INT, "all of them together"),
    "largest": Signature((list_of(INT), INT), list_of(INT), "the largest few, or all there are"),
    "range": Signature((list_of(T),), list_of(INT), "the positions of a list, from 0 on"),
    "lists": Signature((set_of(T),), set_of(list_of(T)), "all orders of the members"),
    "actions": Signature(
        (ELEMENT,), list_of(ACTION), "the plan's actions on a VM or host, in order"
    ),
    "underway": Signature((ELEMENT,), set_of(ACTION), "the actions under way on a VM or host"),
    "kind": Signature(
        (ACTION,), STRING, 'what the action does: "migrate", "boot", "power_off", ...'
    ),
    "source": Signature((ACTION,), HOST, "the host the action frees, if any"),
    "target": Signature((ACTION,), HOST, "the host the action fills, if any"),
    "begin": Signature((ACTION,), INT, "when the action starts, in milliseconds of the plan"),
    "end": Signature((ACTION,), INT, "when the action ends, in milliseconds of the plan"),
}

SYNONYMS: Final = {"nodes": "hosts", "nodeState": "hostState", "online": "on", "offline": "standby"}
"""The paper's names, so that its listings can be typed as printed."""

KEYWORDS: Final = frozenset(
    {"let", "in", "not", "always", "sometime", "true", "false", "hard", "soft", "discrete"}
    | {"continuous", "documented", "as_coded", "int", "string"}
)
"""Words that cannot name a constraint, though some could be told apart by where they stand."""

SETS: Final[dict[str, Type]] = {"vms": set_of(VM), "hosts": set_of(HOST)}
STATES: Final[dict[str, Type]] = {
    **{state.value: VM_STATE for state in VmState},
    **{state.value: HOST_STATE for state in HostState},
}
DOMAINS: Final[dict[str, Type]] = {"int": INT, "string": STRING}
"""Types that may stand where a parameter's collection stands."""


def plain(name: str) -> str:
    """Our name for one of the paper's."""
    return SYNONYMS.get(name, name)
