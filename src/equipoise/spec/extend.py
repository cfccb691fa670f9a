"""Functions of your own: a Python function with a signature, found by its entry point.

In your package, say in ``ages.py``::

    from equipoise.spec.extend import function

    @function("(vm) -> int", "how old the VM is, in days")
    def age(view, vm):
        return int(view.vm(vm).labels.get("age", 0))

and in its ``pyproject.toml``::

    [project.entry-points."equipoise.functions"]
    age = "ages:age"

A formula may then say ``age(v) < 30``. The function must depend on its arguments and on what it
asks of the view, on nothing else: that is how the judge knows when to ask again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final

from equipoise.errors import InvalidInput, Problem
from equipoise.spec.functions import FUNCTIONS
from equipoise.spec.language.types import PLAIN, Type, packing_of
from equipoise.spec.language.vocabulary import SIGNATURES, Signature

GROUP: Final = "equipoise.functions"

_COLLECTIONS: Final = ("set", "list", "packing")
_SIGNATURE: Final = re.compile(r"\((?P<takes>.*)\)\s*->\s*(?P<gives>.+)")


@dataclass(frozen=True, slots=True)
class Function:
    """A function that somebody added, and what it takes and gives."""

    signature: Signature
    act: Callable[..., Any]


def function(signature: str, doc: str) -> Callable[[Callable[..., Any]], Function]:
    """Make a Python function one of the language. It is given the view, then its arguments."""
    found = _SIGNATURE.fullmatch(signature.strip())
    if found is None:
        raise ValueError(f"{signature!r} is not a signature such as '(vm, string) -> int'")
    takes = tuple(map(_type, filter(None, map(str.strip, found["takes"].split(",")))))
    return lambda act: Function(Signature(takes, _type(found["gives"].strip()), doc), act)


def _type(text: str) -> Type:
    if text in PLAIN:
        return PLAIN[text]
    outer, _, inner = text.removesuffix(">").partition("<")
    if not inner or outer not in _COLLECTIONS:
        raise ValueError(f"{text!r} is not a type of the language")
    return packing_of(_type(inner)) if outer == "packing" else Type(outer, _type(inner))


@cache
def extensions() -> dict[str, Function]:
    """The functions that installed packages add, by name."""
    found: dict[str, Function] = {}
    for entry in entry_points(group=GROUP):
        loaded = entry.load()
        if entry.name in SIGNATURES:
            raise _refused(entry.value, f"{entry.name} is already a function of the language")
        if not isinstance(loaded, Function):
            raise _refused(entry.value, f"{entry.name} was not made by @function(...)")
        found[entry.name] = loaded
    return found


def _refused(source: str, what: str) -> InvalidInput:
    cure = f"mend the entry point in the group {GROUP}"
    return InvalidInput(source, [Problem(key="", what=what, cure=cure)])


@cache
def signatures() -> dict[str, Signature]:
    """What every function takes and gives: ours and those that were added."""
    return SIGNATURES | {name: one.signature for name, one in extensions().items()}


@cache
def meanings() -> dict[str, Callable[..., Any]]:
    """What every function does; each takes the state it is asked of, the frame, its arguments."""
    return FUNCTIONS | {name: _unframed(one.act) for name, one in extensions().items()}


def _unframed(act: Callable[..., Any]) -> Callable[..., Any]:
    return lambda view, _frame, *arguments: act(view, *arguments)
