"""Scheduled events and random faults: their hosts and VMs exist at that time, and their number is
one that a run can simulate.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, Generic

from equipoise.files.check.inventory import check_ft_pair, check_host, check_vm, check_vm_host
from equipoise.files.check.loads import check_time_spec
from equipoise.files.check.references import (
    FleetIndex,
    InventoryIndex,
    ListElements,
    N,
    NamedElements,
    report_taken_id,
)
from equipoise.files.document import Gap, Gaps, gaps_below
from equipoise.model.diagnostics import Diagnostics, KeyPath, format_number, quoted
from equipoise.model.event import (
    HostFailed,
    HostJoined,
    HostLeft,
    HostRecovered,
    ProcessorLocked,
    ProcessorSuspected,
    ProcessorTrusted,
    ProcessorUnlocked,
    VmArrived,
    VmCrashed,
    VmLeft,
)
from equipoise.model.host import Host, HostState
from equipoise.model.scenario.faults import (
    ControllerLost,
    Faults,
    HostRequested,
    MigrationsSlowed,
    MonitoringLost,
    PowerOnStuck,
    RoleStartsFail,
    ScheduledEvent,
    TenantAutoscaling,
)
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.vm import Vm


def check_scheduled_events(
    scenario: Scenario, index: InventoryIndex, diagnostics: Diagnostics, gap: Gap | None
) -> None:
    """Report events after the end, and events about hosts and VMs that are absent at that time."""
    end_ms = scenario.duration_s * 1000
    # Events of one instant happen in the order of the file, and sorted() is stable.
    scheduled = sorted(ListElements(scenario.events, gap), key=lambda entry: entry[1].at_ms)
    hosts = _PresenceAtTime(index.hosts, gap)
    vms = _PresenceAtTime(index.vms, gap)
    for position, event in scheduled:
        # All arrivals are known first: a host that comes later is not an unknown one.
        if isinstance(event, HostJoined):
            hosts.announce(event.host, ("events", position, "host", "id"))
        elif isinstance(event, VmArrived):
            vms.announce(event.vm, ("events", position, "vm", "id"))
    for position, event in scheduled:
        path: KeyPath = ("events", position)
        if event.at_ms > end_ms:
            what = f"{event.at_ms} is after the end of the scenario"
            cure = f"at most {end_ms}, or raise duration_s"
            diagnostics.add((*path, "at_ms"), what, cure, code="out-of-range")
        if isinstance(event, VmArrived):
            _check_arriving_vm(event.vm, (hosts, vms), index, (*path, "vm"), diagnostics)
        _check_subject(event, (hosts, vms), path, diagnostics)


class _PresenceAtTime(Generic[N]):
    """The hosts, or the VMs, that are present while the events are walked in order of time."""

    def __init__(self, known: NamedElements[N], gap: Gap | None) -> None:
        self.known = known
        """The elements that are there from the start."""
        self._announced: dict[str, tuple[KeyPath, N]] = {}
        self._arrived: dict[str, tuple[KeyPath, N]] = {}
        self._gone: dict[str, KeyPath] = {}
        self._unread = frozenset(gap.unread_ids if gap else ())
        """Ids in events that could not be read, which may bring or remove them."""

    def announce(self, element: N, path: KeyPath) -> None:
        """Note that some event brings an element."""
        self._announced.setdefault(element.id, (path, element))

    def arrive(self, element: N, path: KeyPath, diagnostics: Diagnostics) -> None:
        """Add an element; report it if its id is present already."""
        name = element.id
        # An id may be used again after its owner left, or if an unread event may have removed it.
        if name not in self._gone and name not in self._unread:
            earlier = self._arrived[name][0] if name in self._arrived else self._defined_at(name)
            if earlier is not None:
                report_taken_id(name, path, earlier, diagnostics)
        self._gone.pop(name, None)
        self._arrived[name] = path, element

    def remove(self, name: str, path: KeyPath) -> None:
        """Remove an element, by the event at ``path``."""
        self._gone[name] = path
        self._arrived.pop(name, None)

    def check(self, name: str, path: KeyPath, diagnostics: Diagnostics) -> bool:
        """Return whether an element is present now; report the name if not."""
        if name in self._arrived or name in self._unread:
            return True
        if name in self._gone:
            what, cure = f"{quoted(name)} is removed by", "an earlier at_ms, or leave it out"
            diagnostics.add(path, what, cure, self._gone[name], code="absent-at-time")
            return False
        if name in self.known:
            return True
        if name in self._announced:
            what = f"{quoted(name)} is only added later, by"
            first = self._announced[name][0]
            diagnostics.add(path, what, "a later at_ms", first, code="absent-at-time")
            return False
        return self.known.check(name, path, diagnostics)

    def get(self, name: str) -> N | None:
        """Return an element that is present now."""
        return self._arrived[name][1] if name in self._arrived else self.known.get(name)

    @cached_property
    def ever_present(self) -> NamedElements[N]:
        """All elements that are present at any time; valid once all are announced."""
        items = [*self.known.items, *(element for _, element in self._announced.values())]
        elements = NamedElements(self.known.noun, (), items, None, self.known.fleet_index)
        for name in (*self.known.by_id, *self._unread):
            elements.by_id.setdefault(name, None)
        return elements

    def _defined_at(self, name: str) -> KeyPath | None:
        """Return the path of the element or fleet that has this id, or may give it to a member."""
        key = self.known.path
        fleet = self.known.fleet_index.claiming_fleet(name)
        if fleet is not None:
            return ("fleet", *key, fleet.position, "like", "id")
        if self.known.by_id.get(name) is None:
            return None
        position = next(position for position, element in self.known if element.id == name)
        return ("cluster", *key, position, "id")


class _HostsAssumedOn:
    """The hosts that are present now, as if all were on: only the run knows their state."""

    def __init__(self, hosts: _PresenceAtTime[Host]) -> None:
        self._hosts = hosts

    def check(self, name: str, path: KeyPath, diagnostics: Diagnostics) -> bool:
        return self._hosts.check(name, path, diagnostics)

    def get(self, name: str) -> Host | None:
        host = self._hosts.get(name)
        return None if host is None else host.but(state=HostState.ON)


_HostsAndVms = tuple[_PresenceAtTime[Host], _PresenceAtTime[Vm]]


def _check_arriving_vm(
    vm: Vm, present: _HostsAndVms, index: InventoryIndex, path: KeyPath, diagnostics: Diagnostics
) -> None:
    hosts, vms = present
    check_vm_host(vm, _HostsAssumedOn(hosts), path, diagnostics)
    check_vm(vm, index, path, diagnostics)
    if vm.ft_pair is not None:
        check_ft_pair(vm, vm.ft_pair, vms.ever_present, (*path, "ft_pair"), diagnostics)


def _check_subject(
    event: ScheduledEvent, present: _HostsAndVms, path: KeyPath, diagnostics: Diagnostics
) -> None:
    hosts, vms = present
    match event:
        case HostJoined(host=host):
            check_host(host, (*path, "host"), diagnostics)
            hosts.arrive(host, (*path, "host", "id"), diagnostics)
        case VmArrived(vm=vm):
            vms.arrive(vm, (*path, "vm", "id"), diagnostics)
        case HostLeft(host=name):
            if hosts.check(name, (*path, "host"), diagnostics):
                hosts.remove(name, path)
        case VmLeft(vm=name):
            if vms.check(name, (*path, "vm"), diagnostics):
                vms.remove(name, path)
        case (
            HostFailed(host=name)
            | HostRecovered(host=name)
            | PowerOnStuck(host=name)
            | HostRequested(host=name)
        ):
            hosts.check(name, (*path, "host"), diagnostics)
        case VmCrashed(vm=name):
            vms.check(name, (*path, "vm"), diagnostics)
        case ControllerLost() | MonitoringLost() | MigrationsSlowed():
            pass  # they concern no single host or VM
        case _:
            _check_processor(event, present, path, diagnostics)


def _check_processor(
    event: ScheduledEvent, present: _HostsAndVms, path: KeyPath, diagnostics: Diagnostics
) -> None:
    hosts, vms = present
    match event:
        case (
            ProcessorLocked(processor=name)
            | ProcessorUnlocked(processor=name)
            | ProcessorSuspected(processor=name)
            | ProcessorTrusted(processor=name)
            | RoleStartsFail(processor=name)
        ):
            if name not in vms.known:
                hosts.check(name, (*path, "processor"), diagnostics)


FAULTS_MAX: Final = 10**7
"""The most random faults, on average, of one kind in one run."""

_DAY_S: Final = 24 * 3600
_HOUR_S: Final = 3600


def check_faults(
    scenario: Scenario, index: InventoryIndex, diagnostics: Diagnostics, gaps: Gaps
) -> None:
    """Report faults of fleets and tenants that do not exist, and rates with too many faults."""
    faults = scenario.faults
    diagnostics = diagnostics.below("faults")
    inner = gaps_below(gaps, "faults")
    _check_fault_times(faults, diagnostics, inner)
    for position, hosts in ListElements(faults.hosts, inner.get(("hosts",))):
        _check_fleet_name(
            hosts.fleet, index.hosts.fleet_index, "host", ("hosts", position, "fleet"), diagnostics
        )
    for position, vms in ListElements(faults.vms, inner.get(("vms",))):
        _check_fleet_name(
            vms.fleet, index.vms.fleet_index, "VM", ("vms", position, "fleet"), diagnostics
        )
    for position, scaling in ListElements(faults.scaling, inner.get(("scaling",))):
        _check_scaling(scaling, index, ("scaling", position), diagnostics)
    for path, per_s in _fault_rates(scenario, index, inner):
        expected = per_s * scenario.duration_s
        if expected > FAULTS_MAX:
            what = f"causes about {int(expected)} faults over the whole run"
            cure = f"a lower rate, for at most {FAULTS_MAX}"
            diagnostics.add(path, what, cure, code="too-large")


def _check_fault_times(faults: Faults, diagnostics: Diagnostics, gaps: Gaps) -> None:
    if faults.host_crashes is not None:
        check_time_spec(
            faults.host_crashes.back_after_s, ("host_crashes", "back_after_s"), diagnostics
        )
    if faults.monitoring_gaps is not None:
        check_time_spec(faults.monitoring_gaps.for_s, ("monitoring_gaps", "for_s"), diagnostics)
    for position, hosts in ListElements(faults.hosts, gaps.get(("hosts",))):
        if hosts.stay_s is not None:
            check_time_spec(hosts.stay_s, ("hosts", position, "stay_s"), diagnostics)
    for position, vms in ListElements(faults.vms, gaps.get(("vms",))):
        check_time_spec(vms.stay_s, ("vms", position, "stay_s"), diagnostics)


def _check_fleet_name(
    name: str, fleet_index: FleetIndex[Any], noun: str, path: KeyPath, diagnostics: Diagnostics
) -> bool:
    if name in fleet_index.fleets or name in fleet_index.unread:
        return True
    diagnostics.add_unknown(path, f"{noun} fleet", name, fleet_index.fleets.keys())
    return False


def _check_scaling(
    scaling: TenantAutoscaling, index: InventoryIndex, path: KeyPath, diagnostics: Diagnostics
) -> None:
    is_known = index.tenants.check(scaling.tenant, (*path, "tenant"), diagnostics)
    fleet_index = index.vms.fleet_index
    if (
        _check_fleet_name(scaling.fleet, fleet_index, "VM", (*path, "fleet"), diagnostics)
        and is_known
    ):
        fleet = fleet_index.fleets.get(scaling.fleet)
        owner = None if fleet is None else fleet.like.tenant
        if owner not in (None, scaling.tenant):
            what = f"the VMs of {quoted(scaling.fleet)} belong to the tenant {quoted(owner)}"
            cure = f"name a fleet of {scaling.tenant}"
            diagnostics.add((*path, "fleet"), what, cure, code="contradiction")
    low, high = scaling.in_below_pct, scaling.out_above_pct
    if low >= high:
        what = f"{format_number(low)} is not below out_above_pct {format_number(high)}"
        cure = f"less than {format_number(high)}"
        diagnostics.add((*path, "in_below_pct"), what, cure, code="out-of-range")


def _fault_rates(
    scenario: Scenario, index: InventoryIndex, gaps: Gaps
) -> Iterator[tuple[KeyPath, float]]:
    """Yield the mean number of faults per second, by the path of its rate."""
    faults = scenario.faults
    if faults.host_crashes is not None:
        hosts = len(scenario.cluster.hosts) + sum(fleet.count for fleet in scenario.fleet.hosts)
        per_day = faults.host_crashes.per_host_day * hosts
        yield ("host_crashes", "per_host_day"), per_day / _DAY_S
    if faults.vm_crashes is not None:
        vms = len(scenario.cluster.vms) + sum(fleet.count for fleet in scenario.fleet.vms)
        yield ("vm_crashes", "per_vm_day"), faults.vm_crashes.per_vm_day * vms / _DAY_S
    if faults.monitoring_gaps is not None:
        yield ("monitoring_gaps", "per_day"), faults.monitoring_gaps.per_day / _DAY_S
    for position, joining in ListElements(faults.hosts, gaps.get(("hosts",))):
        yield ("hosts", position, "per_day"), joining.per_day / _DAY_S
    for position, arriving in ListElements(faults.vms, gaps.get(("vms",))):
        yield ("vms", position, "per_hour"), arriving.per_hour / _HOUR_S
