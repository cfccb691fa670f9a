"""From what was heard of a run to what came of each chore. Never takes silence for success.

A chore is done if its host said the last word of its playbook and no count speaks against it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Final

from equipoise.hosts.ansible.heard import Ending, Event, Heard, Kind
from equipoise.hosts.ansible.layout import LAST_WORD, Entry, Group
from equipoise.hosts.ansible.words import Outcome, Verdict

REASON_MAX: Final = 600
"""In characters; the rest of a longer reason is left out."""
HIDDEN: Final = "***"

_BAD: Final = (Kind.FAILED, Kind.UNREACHABLE)
_SPACE: Final = re.compile(r"\s+")
_CLOSED: Final = re.compile(r"onnection to \S+ closed")
"""What SSH says at the end of everything."""
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def verdicts(
    groups: Sequence[Group], heard: Heard, secrets: Iterable[str] = ()
) -> list[tuple[Entry, Verdict | None]]:
    """Say of each entry what came of it; ``None`` if its turn never came and it can be run anew.

    When all hosts of one playbook fail, Ansible does not begin with the next one.
    """
    hidden = _spellings(secrets)
    begun: dict[str, list[Event]] = {}
    for event in heard.events:
        begun.setdefault(event.host, []).append(event)
    judged: list[tuple[Entry, Verdict | None]] = []
    for group in groups:
        waits = (
            heard.ending is Ending.BY_ITSELF
            and heard.stats is not None
            and bool(begun)
            and not any(entry.name in begun for entry in group.entries)
        )
        for entry in group.entries:
            events = begun.get(entry.name, [])
            verdict = None if waits else _verdict(entry, events, heard, hidden)
            judged.append((entry, verdict))
    return judged


def _verdict(entry: Entry, events: Sequence[Event], heard: Heard, hidden: Sequence[str]) -> Verdict:
    outcome, reason = _outcome(entry, events, heard)
    return Verdict(
        chore=entry.chore,
        outcome=outcome,
        reason=said(reason, hidden),
        is_changed=bool(heard.count("changed", entry.name))
        or any(event.is_changed for event in events),
    )


def _outcome(entry: Entry, events: Sequence[Event], heard: Heard) -> tuple[Outcome, str]:
    has_ended = any(event.kind is Kind.OK and event.task.startswith(LAST_WORD) for event in events)
    is_dark = heard.count("dark", entry.name) > 0 or (
        not has_ended and any(event.kind is Kind.UNREACHABLE for event in events)
    )
    if is_dark:
        return Outcome.UNREACHABLE, _told(events) or "it does not answer"
    if heard.count("failures", entry.name):
        return Outcome.FAILED, _told(events) or "a step failed, and nothing was said about it"
    if has_ended:
        return Outcome.DONE, ""
    if heard.ending is not Ending.BY_ITSELF or heard.stats is None:
        return Outcome.UNKNOWN, _unfinished(events, heard)
    if entry.name not in heard.stats.get("processed", {}):
        return Outcome.UNKNOWN, f"Ansible says nothing about this host{_culprit(heard)}"
    what = "Ansible stopped before the end of its playbook"
    return Outcome.FAILED, _joined(what + _culprit(heard), _told(events))


def _unfinished(events: Sequence[Event], heard: Heard) -> str:
    what = {
        Ending.TIME_UP: "time was up before its playbook had ended",
        Ending.INTERRUPTED: "the run was interrupted before its playbook had ended",
        Ending.DIED: "the process that runs Ansible died",
        Ending.BY_ITSELF: f"Ansible ended without a result (code {heard.rc})",
    }[heard.ending]
    steps = [event.task for event in events if event.kind is Kind.STARTED]
    where = f'the last step was "{steps[-1]}"' if steps else "it had not begun"
    tail = heard.tail if heard.ending in (Ending.DIED, Ending.BY_ITSELF) else ""
    return _joined(what, where if heard.ending is not Ending.BY_ITSELF else "", _told(events), tail)


def _culprit(heard: Heard) -> str:
    """Who failed, if Ansible stopped on account of somebody else."""
    for event in reversed(heard.events):
        if event.kind in _BAD and not event.is_ignored:
            return f', after "{event.task}" had failed on {event.host}'
    return ""


def _told(events: Sequence[Event]) -> str:
    """What the failed steps of a host said: the first is the cause, the last what became of it."""
    items = {event.task: event for event in events if event.kind is Kind.ITEM_FAILED}
    bad = [event for event in events if event.kind in _BAD and not event.is_ignored]
    lines = [f'"{one.task}": {_message(items.get(one.task, one).result)}' for one in bad]
    return _joined(*dict.fromkeys((lines[:1] + lines[-1:]) if lines else ()))


def _message(result: Any) -> str:
    """The gist of a result: what it says, and the end of what its command complained about."""
    if "censored" in result:
        return "what it said is kept secret (no_log)"
    said = str(result.get("msg") or "it failed")
    for key in ("stderr", "module_stderr", "stdout", "module_stdout"):
        lines = [line for line in str(result.get(key) or "").splitlines() if line.strip()]
        lines = [line.strip() for line in lines if not _CLOSED.search(line)]
        if lines and lines[-1] not in said:
            return f"{said} ({lines[-1]})"
    return said


def said(text: str, hidden: Sequence[str] = ()) -> str:
    """One line of bounded length, without secrets."""
    for secret in hidden:
        text = text.replace(secret, HIDDEN)
    line = _SPACE.sub(" ", _COLOUR.sub("", text)).strip()
    return line if len(line) <= REASON_MAX else line[: REASON_MAX - 4] + " ..."


def _spellings(secrets: Iterable[str]) -> list[str]:
    """Every way in which a secret may be written; the longest first, for one may hold another."""
    spelt: set[str] = set()
    for secret in secrets:
        lines = [line for line in secret.splitlines() if line.strip()]
        for part in (secret, *lines):
            spelt |= {part, shlex.quote(part), json.dumps(part)[1:-1], repr(part)[1:-1]}
    spelt.discard("")
    return sorted(spelt, key=lambda part: (-len(part), part))


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
