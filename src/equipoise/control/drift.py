"""Drift: the events that turn the recorded state of the cluster into the observed one.

With them the journal stays complete: replaying it gives what was observed, also after changes
from outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from equipoise.model.event import (
    DemandObserved,
    Event,
    HostChanged,
    HostJoined,
    HostLeft,
    ProcessorLocked,
    ProcessorSuspected,
    ProcessorTrusted,
    ProcessorUnlocked,
    RolesFound,
    SettingsChanged,
    VmArrived,
    VmChanged,
    VmLeft,
)
from equipoise.model.quantity import ProcessorId
from equipoise.model.roles.state import ProcessorStatus
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import equal_except_demand

T = TypeVar("T")


def drift(believed: Snapshot, observed: Snapshot) -> tuple[Event, ...]:
    """Return the events that turn the recorded state into the observed one."""
    # New hosts come first and removed hosts last, so that the host of every VM always exists.
    return (
        *_hosts(believed, observed),
        *_vms(believed, observed),
        *_removed(believed, observed),
        *_settings(believed, observed),
        *_roles(believed, observed),
        *_demand(believed, observed),
    )


def _hosts(believed: Snapshot, observed: Snapshot) -> Iterator[Event]:
    for name, host in observed.hosts.items():
        known = believed.hosts.get(name)
        if known is None:
            yield HostJoined(at_ms=observed.at_ms, host=host)
        elif known != host:
            yield HostChanged(at_ms=observed.at_ms, host=host)


def _vms(believed: Snapshot, observed: Snapshot) -> Iterator[Event]:
    for name, vm in observed.vms.items():
        known = believed.vms.get(name)
        if known is None:
            yield VmArrived(at_ms=observed.at_ms, vm=vm)
        # Identity first: a world often returns the same object, and comparing every VM is slow.
        elif known is not vm and not equal_except_demand(known, vm):
            yield VmChanged(at_ms=observed.at_ms, vm=vm)


def _removed(believed: Snapshot, observed: Snapshot) -> Iterator[Event]:
    for vm in believed.vms:
        if vm not in observed.vms:
            yield VmLeft(at_ms=observed.at_ms, vm=vm)
    for host in believed.hosts:
        if host not in observed.hosts:
            yield HostLeft(at_ms=observed.at_ms, host=host)


def _settings(believed: Snapshot, observed: Snapshot) -> Iterator[Event]:
    if believed.settings != observed.settings:
        yield SettingsChanged(at_ms=observed.at_ms, settings=observed.settings)


def _roles(believed: Snapshot, observed: Snapshot) -> Iterator[Event]:
    """Yield the changes of running roles and of processor status.

    A processor that goes down loses its roles by the transition, so that needs no event here.
    """
    if observed.settings.layout is None:
        return
    at_ms, before, now = observed.at_ms, believed.role_state, observed.role_state
    is_up = Draft(observed).is_up
    for name in _changed_processors(before.held, now.held):
        if not now.held.get(name) and not is_up(name):
            continue
        yield RolesFound(at_ms=at_ms, processor=name, held=now.held.get(name, ()))
    for name in _changed_processors(before.statuses, now.statuses):
        yield from _status_events(at_ms, name, before.status(name), now.status(name))


def _changed_processors(
    before: Mapping[ProcessorId, T], now: Mapping[ProcessorId, T]
) -> list[ProcessorId]:
    """Return the processors with different values in the two maps."""
    if before is now:
        return []
    processors = dict.fromkeys((*now, *before))
    # A missing entry equals an empty one: both mean that the processor runs no role.
    return [name for name in processors if (now.get(name) or ()) != (before.get(name) or ())]


def _status_events(
    at_ms: int, name: ProcessorId, before: ProcessorStatus, status: ProcessorStatus
) -> Iterator[Event]:
    if status.locked != before.locked and status.locked is not None:
        yield ProcessorLocked(at_ms=at_ms, processor=name, reason=status.locked)
    elif status.locked != before.locked:
        yield ProcessorUnlocked(at_ms=at_ms, processor=name)
    if status.suspected_ms is not None and before.suspected_ms is None:
        yield ProcessorSuspected(at_ms=at_ms, processor=name)
    elif status.suspected_ms is None and before.suspected_ms is not None:
        yield ProcessorTrusted(at_ms=at_ms, processor=name)


def _demand(believed: Snapshot, observed: Snapshot) -> Iterator[Event]:
    changed = {
        name: vm.demand
        for name, vm in observed.vms.items()
        if name not in believed.vms or believed.vms[name].demand != vm.demand
    }
    # Recorded also without changes: it marks the end of an observation, and the time of a sample.
    yield DemandObserved(at_ms=observed.at_ms, demand=changed)
