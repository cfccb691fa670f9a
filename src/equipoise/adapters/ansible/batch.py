"""Performs a batch of jobs in one run of Ansible, and derives the result of each job.

A job is done if its host reached the end marker of its playbook and no count contradicts it. A job
without a report is never a success.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from equipoise.adapters.ansible.job import (
    HostConnection,
    JobOutcome,
    JobResult,
    PlaybookJob,
    RunEnding,
    RunLog,
    RunnerEvent,
    RunnerEventKind,
    RunOptions,
)
from equipoise.adapters.ansible.process import (
    END_MARKER,
    InventoryEntry,
    Listener,
    PlaybookGroup,
    StopSignal,
    files_of,
    groups_of,
    need_ansible,
    run_ansible,
    settings_of,
)

REASON_MAX: Final = 600
"""In characters; a longer reason is cut."""
MASKED: Final = "***"

_FAILURES: Final = (RunnerEventKind.FAILED, RunnerEventKind.UNREACHABLE)
_SPACE: Final = re.compile(r"\s+")
_CLOSED: Final = re.compile(r"onnection to \S+ closed")
"""The last message of every SSH connection, which explains nothing."""
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def job_results(
    groups: Sequence[PlaybookGroup], run_log: RunLog, secrets: Iterable[str] = ()
) -> list[tuple[InventoryEntry, JobResult | None]]:
    """Return the result of each entry; ``None`` if it did not start and needs another run.

    When all hosts of one playbook fail, Ansible does not start the next one.
    """
    hidden = spellings(secrets)
    events_of: dict[str, list[RunnerEvent]] = {}
    for event in run_log.events:
        events_of.setdefault(event.host, []).append(event)
    results: list[tuple[InventoryEntry, JobResult | None]] = []
    for group in groups:
        not_started = (
            run_log.ending is RunEnding.BY_ITSELF
            and run_log.stats is not None
            and bool(events_of)
            and not any(entry.name in events_of for entry in group.entries)
        )
        for entry in group.entries:
            events = events_of.get(entry.name, [])
            job_result = None if not_started else _job_result(entry, events, run_log, hidden)
            results.append((entry, job_result))
    return results


def _job_result(
    entry: InventoryEntry, events: Sequence[RunnerEvent], run_log: RunLog, hidden: Sequence[str]
) -> JobResult:
    outcome, reason = _outcome(entry, events, run_log)
    return JobResult(
        job=entry.job,
        outcome=outcome,
        reason=one_line(reason, hidden),
        is_changed=bool(run_log.count("changed", entry.name))
        or any(event.is_changed for event in events),
    )


def _outcome(
    entry: InventoryEntry, events: Sequence[RunnerEvent], run_log: RunLog
) -> tuple[JobOutcome, str]:
    has_ended = any(
        event.kind is RunnerEventKind.OK and event.task.startswith(END_MARKER) for event in events
    )
    # A playbook may ignore that a step did not reach the host. A host that reached the end marker
    # is back.
    is_unreachable = run_log.count("dark", entry.name) > 0 or (
        not has_ended and any(event.kind is RunnerEventKind.UNREACHABLE for event in events)
    )
    failure = _failure_text(events)
    if is_unreachable:
        return JobOutcome.UNREACHABLE, failure or "the host does not answer"
    if run_log.count("failures", entry.name):
        return JobOutcome.FAILED, failure or "a step failed without a message"
    if has_ended:
        return JobOutcome.DONE, ""
    if run_log.ending is not RunEnding.BY_ITSELF or run_log.stats is None:
        return JobOutcome.UNKNOWN, _unfinished(events, run_log)
    if entry.name not in run_log.stats.get("processed", {}):
        what = "Ansible reports nothing about this host"
        return JobOutcome.UNKNOWN, what + _failure_elsewhere(run_log)
    what = "Ansible stopped before the end of the playbook"
    return JobOutcome.FAILED, _joined(what + _failure_elsewhere(run_log), failure)


def _unfinished(events: Sequence[RunnerEvent], run_log: RunLog) -> str:
    what = {
        RunEnding.TIME_UP: "the run reached its time limit before the playbook ended",
        RunEnding.INTERRUPTED: "the run was interrupted before the playbook ended",
        RunEnding.DIED: "the process of Ansible died",
        RunEnding.BY_ITSELF: f"Ansible ended without a result (code {run_log.rc})",
    }[run_log.ending]
    steps = [event.task for event in events if event.kind is RunnerEventKind.STARTED]
    where = f'the last step was "{steps[-1]}"' if steps else "no step had started"
    tail = run_log.tail if run_log.ending in (RunEnding.DIED, RunEnding.BY_ITSELF) else ""
    return _joined(
        what,
        where if run_log.ending is not RunEnding.BY_ITSELF else "",
        _failure_text(events),
        tail,
    )


def _failure_elsewhere(run_log: RunLog) -> str:
    """Return which step failed on another host, if that made Ansible stop."""
    for event in reversed(run_log.events):
        if event.kind in _FAILURES and not event.is_ignored:
            return f', after "{event.task}" failed on {event.host}'
    return ""


def _failure_text(events: Sequence[RunnerEvent]) -> str:
    """Return the messages of the first failed step, which is the cause, and of the last one."""
    items = {event.task: event for event in events if event.kind is RunnerEventKind.ITEM_FAILED}
    failed = [event for event in events if event.kind in _FAILURES and not event.is_ignored]
    # In a loop, the event of the step says only that an item failed; the item has the message.
    lines = [f'"{step.task}": {message_of(items.get(step.task, step).result)}' for step in failed]
    return _joined(*dict.fromkeys((lines[:1] + lines[-1:]) if lines else ()))


def message_of(result: Any) -> str:
    """Return the message of a result, with the last line of the output of its command."""
    if "censored" in result:
        return "the message is hidden (no_log)"
    message = str(result.get("msg") or "the step failed")
    for key in ("stderr", "module_stderr", "stdout", "module_stdout"):
        lines = [line for line in str(result.get(key) or "").splitlines() if line.strip()]
        lines = [line.strip() for line in lines if not _CLOSED.search(line)]
        if lines and lines[-1] not in message:
            return f"{message} ({lines[-1]})"
    return message


def one_line(text: str, hidden: Sequence[str] = ()) -> str:
    """Return a text as one line of bounded length, without secrets."""
    for secret in hidden:
        text = text.replace(secret, MASKED)
    line = _SPACE.sub(" ", _COLOUR.sub("", text)).strip()
    return line if len(line) <= REASON_MAX else line[: REASON_MAX - 4] + " ..."


def spellings(secrets: Iterable[str]) -> list[str]:
    """Return every form in which a secret may be printed: quoted for a shell, JSON or Python.

    The longest come first, because one form may contain another.
    """
    forms: set[str] = set()
    for secret in secrets:
        lines = [line for line in secret.splitlines() if line.strip()]
        # Reasons quote single lines of output, so a line of a secret can appear alone.
        for part in (secret, *lines):
            forms |= {part, shlex.quote(part), json.dumps(part)[1:-1], repr(part)[1:-1]}
    forms.discard("")
    return sorted(forms, key=lambda form: (-len(form), form))


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


NOT_BEGUN: Final = "the batch was interrupted before the job started"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookBatchResult:
    """The results of a batch, job by job in the order of the batch."""

    results: tuple[JobResult, ...]
    is_interrupted: bool = False
    """Whether the user interrupted the batch (Ctrl-C); the caller should end, too."""


JobListener = Callable[[PlaybookJob, RunnerEvent], object]
"""Receives each event of a step with the job that it belongs to."""


def _by_job(groups: Sequence[PlaybookGroup], listener: JobListener) -> Listener:
    jobs = {entry.name: entry.job for group in groups for entry in group.entries}

    def on_event(event: RunnerEvent) -> None:
        if event.host in jobs:
            listener(jobs[event.host], event)

    return on_event


def perform(
    jobs: Sequence[PlaybookJob],
    connections: Mapping[str, HostConnection],
    run_options: RunOptions,
    stop_signal: StopSignal | None = None,
    listener: Listener = lambda _event: None,
    job_listener: JobListener | None = None,
) -> PlaybookBatchResult:
    """Execute all jobs with Ansible; every outcome is a value.

    One run executes the batch, unless all hosts of one playbook fail: Ansible then skips the
    playbooks that follow, and another run executes them.
    """
    need_ansible()
    assert all(job.host in connections for job in jobs), "every host must have a connection"
    stop_signal = stop_signal or StopSignal()
    results: dict[int, JobResult] = {}
    pending, is_interrupted = dict(enumerate(jobs)), stop_signal.is_set
    while pending and not is_interrupted:
        groups = groups_of(pending)
        run_log = run_ansible(
            files_of(groups, connections, run_options),
            settings_of(groups, run_options, os.environ),
            run_options.timeout_s,
            listener if job_listener is None else _by_job(groups, job_listener),
            stop_signal,
        )
        secrets = [
            secret for job in pending.values() for secret in connections[job.host].secrets.values()
        ]
        for entry, result in job_results(groups, run_log, secrets):
            if result is not None:
                results[entry.index] = result
        rest = {index: job for index, job in pending.items() if index not in results}
        assert len(rest) < len(pending), "every run must yield a result, or the loop never ends"
        pending, is_interrupted = rest, run_log.is_interrupted
    for index, job in pending.items():
        results[index] = JobResult(
            job=job, outcome=JobOutcome.UNKNOWN, reason=NOT_BEGUN, is_begun=False
        )
    ordered = tuple(results[index] for index in range(len(jobs)))
    return PlaybookBatchResult(results=ordered, is_interrupted=is_interrupted)
