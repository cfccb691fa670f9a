"""A defect of a layout: what is wrong, where, and the cure."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from equipoise.model.files.words import Path, closest, listed, quoted


class Kind(StrEnum):
    """What kind of defect; the words are stable, for programs."""

    DUPLICATE = "duplicate_definition"
    UNKNOWN = "unknown_name"
    RESERVED = "reserved_slot_name"
    FORM = "unclear_element"
    APPLICATION = "application_in_two_roles"
    PAIR = "duplicate_pair"
    TWICE = "single_role_twice"
    NOBODY = "no_processors"
    CONFLICT = "contradiction"
    UNCOVERED = "uncovered_role"
    JOINING = "coverage_lost_by_joining"
    EMPTY = "list_can_be_empty"

    @property
    def is_doubtful(self) -> bool:
        """Whether the layout still has a meaning."""
        return self in (Kind.UNCOVERED, Kind.JOINING, Kind.EMPTY)


class Defect(NamedTuple):
    """One thing that is wrong."""

    kind: Kind
    path: Path
    """From the layout down."""
    what: str
    cure: str
    first: Path | None = None
    """Where the other half of the contradiction stands."""


def unknown(path: Path, noun: str, name: str, known: Collection[str]) -> Defect:
    """A name that stands for nothing, with a guess which one was meant."""
    near = closest(name, known)
    guess = f"did you mean {quoted(near)}? " if near else ""
    among = f"the {noun}s are: {listed(known)}" if known else f"no {noun} is defined"
    return Defect(Kind.UNKNOWN, path, f"there is no {noun} {quoted(name)}", f"{guess}{among}")


def numbers(some: list[int]) -> str:
    """Say numbers of filled slots: ``1``, ``1 or 2``, ``1 to 4``."""
    if len(some) > 2 and some == list(range(some[0], some[-1] + 1)):  # noqa: PLR2004
        return f"{some[0]} to {some[-1]}"
    return " or ".join(map(str, some))
