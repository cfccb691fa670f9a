"""Playbook jobs: a playbook for one host, its connection, the events of a run, the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias

Scalar: TypeAlias = str | int | float | bool


class JobOutcome(StrEnum):
    """The outcome of a job. Only the first is a success."""

    DONE = "done"
    """The playbook ran to its end on this host."""
    FAILED = "failed"
    """A step failed, or Ansible stopped before the end; the host answers."""
    UNREACHABLE = "unreachable"
    """The host did not answer, from the beginning or from some step on."""
    UNKNOWN = "unknown"
    """The progress is unknown: the time limit was reached, or Ansible died or was interrupted."""

    @property
    def code(self) -> str:
        """The key of ``errors.CODES``; empty for a success."""
        return _OUTCOME_CODES[self]


_OUTCOME_CODES: Final = {
    JobOutcome.DONE: "",
    JobOutcome.FAILED: "playbook-failed",
    JobOutcome.UNREACHABLE: "host-unreachable",
    JobOutcome.UNKNOWN: "outcome-unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookJob:
    """A playbook for one host."""

    host: str
    """The name of the host in the access file."""
    action: str
    """The purpose in one or two words; it is part of reasons and a variable of the playbook."""
    playbook: Path
    variables: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The outcome of one job, with its reason."""

    job: PlaybookJob
    outcome: JobOutcome
    reason: str = ""
    """One line; empty only for a success."""
    is_begun: bool = True
    """Whether the job may have changed the host."""
    is_changed: bool = False
    """Whether a step reported a change of the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConnection:
    """The SSH connection to one host."""

    host: str
    address: str
    port: int
    user: str | None = None
    key_file: Path | None = None
    python: str | None = None
    is_root_needed: bool = False
    """Whether steps run as root although the login is another user's."""
    variables: Mapping[str, Scalar] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secret variables: only the playbook may see their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options for all hosts of a run."""

    known_hosts: Path | None = None
    """The file of trusted host keys; without it, SSH's own. Other keys are refused."""
    connect_timeout_s: int = 10
    timeout_s: int = 1800
    """The time limit of a run as a whole."""
    forks_max: int = 50
    """The maximum number of hosts at the same time."""


class RunEnding(StrEnum):
    """How a run ended."""

    BY_ITSELF = "by itself"
    TIME_UP = "time up"
    INTERRUPTED = "interrupted"
    DIED = "died"
    """The process ended without a final report."""


class RunnerEventKind(StrEnum):
    """The kind of an event of ansible-runner."""

    STARTED = "runner_on_start"
    OK = "runner_on_ok"
    SKIPPED = "runner_on_skipped"
    FAILED = "runner_on_failed"
    UNREACHABLE = "runner_on_unreachable"
    ITEM_FAILED = "runner_item_on_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerEvent:
    """An event of one step on one host."""

    kind: RunnerEventKind
    host: str
    """The name of the entry in the inventory."""
    task: str
    is_changed: bool = False
    is_ignored: bool = False
    """Whether the playbook ignores a failure of this step."""
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLog:
    """All events of one run, and its end."""

    ending: RunEnding
    events: tuple[RunnerEvent, ...] = ()
    stats: Mapping[str, Mapping[str, int]] | None = None
    """The number of steps by result and host; ``None`` if Ansible ended before it counted them."""
    rc: int | None = None
    tail: str = ""
    """The last output."""
    is_interrupted: bool = False
    """Whether the user interrupted the run (Ctrl-C), even if it ended by itself just then."""

    def count(self, result: str, host: str) -> int:
        """Return the number of steps of a host with this result."""
        return (self.stats or {}).get(result, {}).get(host, 0)


def runner_event(document: Mapping[str, Any]) -> RunnerEvent:
    """Return the event of a JSON document of the worker process."""
    return RunnerEvent(
        kind=RunnerEventKind(document["kind"]),
        host=document["host"],
        task=document["task"],
        is_changed=document["changed"],
        is_ignored=document["ignored"],
        result=document["result"],
    )
