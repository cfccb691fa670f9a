"""A demand: a constraint that somebody wants to hold, with its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.spec.explain import shown
from equipoise.spec.specification import Specification


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """A constraint that is to hold, with its arguments."""

    specification: Specification
    name: str
    arguments: Mapping[str, Any]
    continuous: bool = False
    title: str = ""
    """What it is called in reports; without one, by its name and arguments."""

    def __str__(self) -> str:
        return self.title or f"{self.name}({', '.join(map(shown, self.arguments.values()))})"
