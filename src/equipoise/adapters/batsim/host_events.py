"""Reads the external events of Batsim: hosts that leave and return."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from equipoise.adapters.batsim.quantities import read_seconds
from equipoise.errors import InputProblem, InvalidInput
from equipoise.sim.jobs.host_changes import AvailabilityChange
from equipoise.sim.jobs.host_set import parse_host_set

_KINDS: Final = {"machine_available": True, "machine_unavailable": False}


def read_external_events(path: Path) -> list[dict[str, Any]]:
    """Read events, one JSON object per line, and return them in the order of their times."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}".lower()
        raise _problem(path, None, what, "name a file") from None
    events = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            event = msgspec.json.decode(line)
            read_seconds(event["timestamp"], "timestamp")
            if not isinstance(event["type"], str):
                raise TypeError("type is no text")
        except (msgspec.DecodeError, KeyError, TypeError, ValueError, RecursionError):
            cure = "write a JSON object with timestamp and type"
            raise _problem(path, number, "is no event", cure) from None
        events.append(event)
    events.sort(key=lambda event: float(event["timestamp"]))
    return events


def _problem(path: Path, line: int | None, what: str, cure: str) -> InvalidInput:
    return InvalidInput(str(path), [InputProblem(key="", what=what, cure=cure, line=line)])


def read_availability(path: Path, hosts: int) -> list[AvailabilityChange]:
    """Return the events about hosts; other kinds are for schedulers of other processes."""
    changes = []
    for event in read_external_events(path):
        if event["type"] not in _KINDS:
            continue
        at_s = float(event["timestamp"])
        try:
            numbers = parse_host_set(str(event["resources"]))
        except (KeyError, ValueError):
            what = f"has an event at {at_s:g} s without a set of hosts"
            raise _problem(path, None, what, "write resources such as 0-3 7") from None
        if at_s < 0 or (numbers and numbers[-1] >= hosts):
            what = f"has an event at {at_s:g} s for host {numbers[-1]} of {hosts}"
            raise _problem(path, None, what, "write a time from 0 on and hosts of the platform")
        changes.append(AvailabilityChange(at_s, numbers, _KINDS[event["type"]]))
    return changes
