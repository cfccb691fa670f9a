"""What was heard of a run, as values. Never says what it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Ending(StrEnum):
    """How a run came to its end."""

    BY_ITSELF = "by itself"
    TIME_UP = "time up"
    INTERRUPTED = "interrupted"
    DIED = "died"
    """Its process ended without saying how."""


class Kind(StrEnum):
    """What happened to a step on a host."""

    STARTED = "runner_on_start"
    OK = "runner_on_ok"
    SKIPPED = "runner_on_skipped"
    FAILED = "runner_on_failed"
    UNREACHABLE = "runner_on_unreachable"
    ITEM_FAILED = "runner_item_on_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to one step on one host."""

    kind: Kind
    host: str
    """The name of the entry in the inventory."""
    task: str
    is_changed: bool = False
    is_ignored: bool = False
    """Whether the playbook says that its failure does not matter."""
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """All that was heard of one run."""

    ending: Ending
    events: tuple[Event, ...] = ()
    stats: Mapping[str, Mapping[str, int]] | None = None
    """How many steps of each host went how; none if Ansible did not come to count them."""
    rc: int | None = None
    tail: str = ""
    """The last that was said."""
    is_interrupted: bool = False
    """Whether somebody wanted it to end (Ctrl-C), even if it did so by itself just then."""

    def count(self, word: str, host: str) -> int:
        """How many steps of a host went this way."""
        return (self.stats or {}).get(word, {}).get(host, 0)


def event_of(document: Mapping[str, Any]) -> Event:
    """Read an event as the process told it."""
    return Event(
        kind=Kind(document["kind"]),
        host=document["host"],
        task=document["task"],
        is_changed=document["changed"],
        is_ignored=document["ignored"],
        result=document["result"],
    )
