"""A demand: a constraint that somebody wants to hold, with its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.errors import InvalidInput
from equipoise.spec.explain import Why, shown
from equipoise.spec.language.syntax import Term
from equipoise.spec.library import library_constraints, own
from equipoise.spec.specification import Specification
from equipoise.spec.view import Frame


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """A constraint that is to hold, with its arguments."""

    specification: Specification
    name: str
    arguments: Mapping[str, Any]
    continuous: bool = False
    title: str = ""
    """What it is called in reports; without one, by its name and arguments."""
    mended: bool = False
    """Whether what is broken of it at the start may be so until the end."""

    def __str__(self) -> str:
        return self.title or f"{self.name}({', '.join(map(shown, self.arguments.values()))})"

    @property
    def library_name(self) -> str | None:
        """The constraint of the library that it is; one's own may only be called the same."""
        is_library = library_constraints().get(self.name) is self.specification
        return self.name if is_library else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process by name: what the library says is known there too."""
        known = self.arguments, self.continuous, self.title, self.mended
        if self.library_name is not None:
            return _of_library, (self.name, *known)
        text = self.specification.text
        if not text:
            raise TypeError(f"{self.name} was never written down, and cannot leave this process")
        return _of_own, (text, self.name, *known)

    def fault(self, frame: Frame) -> Why | None:
        """Say why it does not hold at the moment a frame looks at; nothing if it does."""
        specification = self.specification
        try:
            if specification.holds(self.name, self.arguments, frame):
                return None
        except InvalidInput as error:
            return _trouble(error)
        return self.why(specification.constraints[self.name].formula, self.arguments, frame)

    def why(self, term: Term, names: Mapping[str, Any], frame: Frame) -> Why:
        """Say why a part of it is false; what has no value is not so."""
        try:
            return self.specification.why(term, names, frame)
        except InvalidInput as error:
            return _trouble(error)


def _of_library(name: str, *known: Any) -> Demand:
    return Demand(library_constraints()[name], name, *known)


def _of_own(text: str, name: str, *known: Any) -> Demand:
    return Demand(own(text), name, *known)


def _trouble(error: InvalidInput) -> Why:
    (problem, *_) = error.problems
    line = problem.excerpt.split("\n")[0].strip()
    return Why(f"{line}: {problem.what}" if line else problem.what)
