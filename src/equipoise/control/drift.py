"""Drift: how the observed cluster differs from the one we believed in, as events.

So the journal stays complete: replaying it gives what was observed, whoever changed it.
"""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.event import (
    DemandObserved,
    Event,
    HostChanged,
    HostJoined,
    HostLeft,
    SettingsChanged,
    VmArrived,
    VmChanged,
    VmLeft,
)
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import same_but_demand


def drift(believed: Snapshot, observed: Snapshot) -> tuple[Event, ...]:
    """List the events that turn what was believed into what is observed."""
    # Hosts come first and go last, so that no VM is ever on a host that is not there.
    return (
        *_hosts(believed, observed),
        *_vms(believed, observed),
        *_gone(believed, observed),
        *_settings(believed, observed),
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


def _demand(believed: Snapshot, observed: Snapshot) -> Iterator[Event]:
    changed = {
        name: vm.demand
        for name, vm in observed.vms.items()
        if name not in believed.vms or believed.vms[name].demand != vm.demand
    }
    # Also when nothing changed: that demand stayed the same is an observation, too.
    yield DemandObserved(at_ms=observed.at_ms, demand=changed)
