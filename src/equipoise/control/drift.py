"""Drift: how the observed cluster differs from the one we believed in, as events.

So the journal stays complete: replaying it gives what was observed, whoever changed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from equipoise.model.change.draft import Draft
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
from equipoise.model.roles.duty import Mark
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import same_but_demand

T = TypeVar("T")


def drift(believed: Snapshot, observed: Snapshot) -> tuple[Event, ...]:
    """List the events that turn what was believed into what is observed."""
    # Hosts come first and go last, so that no VM is ever on a host that is not there.
    return (
        *_hosts(believed, observed),
        *_vms(believed, observed),
        *_gone(believed, observed),
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
        elif known is not vm and not same_but_demand(known, vm):
            yield VmChanged(at_ms=observed.at_ms, vm=vm)


def _gone(believed: Snapshot, observed: Snapshot) -> Iterator[Event]:
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
    """What processors really run, and what was said of them while nobody listened.

    What they lost because they went down or left follows from that.
    """
    if observed.settings.layout is None:
        return
    at_ms, before, now = observed.at_ms, believed.duties, observed.duties
    up = Draft(observed).is_up
    for name in _different(before.held, now.held):
        if not now.held.get(name) and not up(name):
            continue  # it follows from that it is down
        yield RolesFound(at_ms=at_ms, processor=name, held=now.held.get(name, ()))
    for name in _different(before.marks, now.marks):
        yield from _marks(at_ms, name, before.mark(name), now.mark(name))


def _different(before: Mapping[ProcessorId, T], now: Mapping[ProcessorId, T]) -> list[ProcessorId]:
    """The processors of whom the two say different things."""
    if before is now:
        return []
    everybody = dict.fromkeys((*now, *before))
    return [name for name in everybody if (now.get(name) or ()) != (before.get(name) or ())]


def _marks(at_ms: int, name: ProcessorId, was: Mark, mark: Mark) -> Iterator[Event]:
    if mark.locked != was.locked and mark.locked is not None:
        yield ProcessorLocked(at_ms=at_ms, processor=name, reason=mark.locked)
    elif mark.locked != was.locked:
        yield ProcessorUnlocked(at_ms=at_ms, processor=name)
    if mark.suspected_ms is not None and was.suspected_ms is None:
        yield ProcessorSuspected(at_ms=at_ms, processor=name)
    elif mark.suspected_ms is None and was.suspected_ms is not None:
        yield ProcessorTrusted(at_ms=at_ms, processor=name)


def _demand(believed: Snapshot, observed: Snapshot) -> Iterator[Event]:
    changed = {
        name: vm.demand
        for name, vm in observed.vms.items()
        if name not in believed.vms or believed.vms[name].demand != vm.demand
    }
    # Also when nothing changed: that demand stayed the same is an observation, too.
    yield DemandObserved(at_ms=observed.at_ms, demand=changed)
