"""The words of this room: what a host is asked to do by a playbook, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool


class Outcome(StrEnum):
    """What came of a chore. Only the first is good."""

    DONE = "done"
    """Its playbook ran to its end on this host."""
    FAILED = "failed"
    """A step failed, or Ansible stopped before the end; the host answers."""
    UNREACHABLE = "unreachable"
    """The host did not answer, from the beginning or from some step on."""
    UNKNOWN = "unknown"
    """Nobody knows how far it came: time was up, or Ansible died or was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """A playbook for one host."""

    host: str
    """As the access file calls it."""
    action: str
    """What it is for, in a word or two; told in reasons, and to the playbook."""
    playbook: Path
    variables: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of one chore, and why."""

    chore: Chore
    outcome: Outcome
    reason: str = ""
    """Empty only if it was done; what went wrong otherwise, in one line."""
    is_begun: bool = True
    """Whether the host may have been touched, as far as anybody knows."""
    is_changed: bool = False
    """Whether a step changed something on the host, as far as was heard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How Ansible gets to one host."""

    host: str
    address: str
    port: int
    user: str | None = None
    key_file: Path | None = None
    python: str | None = None
    is_root_needed: bool = False
    """Whether steps are taken as root although the login is another user's."""
    variables: Mapping[str, Scalar] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that must not be seen by anybody but the playbook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """What holds for all hosts of a run."""

    known_hosts: Path | None = None
    """Whose keys are trusted; without it SSH's own list. Other keys are refused."""
    connect_timeout_s: int = 10
    timeout_s: int = 1800
    """How long a run may take as a whole."""
    forks_max: int = 50
    """How many hosts are worked on at the same time."""
