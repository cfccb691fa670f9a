"""Scenarios: fleets and their start hosts, VMs that fit on some host, and the deciders.

Never judges the placement: an overloaded host is a state, which a scenario may start with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from equipoise.files.check.events import check_faults, check_scheduled_events
from equipoise.files.check.inventory import check_host, check_named_resources, check_vm
from equipoise.files.check.loads import check_loads
from equipoise.files.check.references import (
    FleetIndexes,
    InventoryIndex,
    ListElements,
    NamedElements,
    report_repeated,
    report_taken_id,
)
from equipoise.files.document import Gaps
from equipoise.model.diagnostics import Diagnostics, KeyPath, format_list, quoted
from equipoise.model.event import HostJoined, VmArrived
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory
from equipoise.model.rule import Argument, Satisfy
from equipoise.model.scenario.scenario import (
    FleetPlacement,
    Fleets,
    HostFleet,
    Scenario,
    VmFleet,
    fleet_member_id,
)
from equipoise.model.vm import Vm, VmState

_MEMBER_ID_LENGTH_MAX: Final = 128


def check_fleets(
    fleet: Fleets, index: InventoryIndex, diagnostics: Diagnostics, gaps: Gaps
) -> None:
    """Check the fleets of a scenario: their names, templates and start hosts."""
    hosts = ListElements(fleet.hosts, gaps.get(("fleet", "hosts")))
    vms = ListElements(fleet.vms, gaps.get(("fleet", "vms")))
    _check_fleet_names(hosts, index.hosts, ("fleet", "hosts"), diagnostics)
    _check_fleet_names(vms, index.vms, ("fleet", "vms"), diagnostics)
    for position, host_fleet in hosts:
        check_host(host_fleet.like, ("fleet", "hosts", position, "like"), diagnostics)
    for position, vm_fleet in vms:
        path: KeyPath = ("fleet", "vms", position)
        _check_vm_template(vm_fleet, (*path, "like"), diagnostics)
        check_vm(vm_fleet.like, index, (*path, "like"), diagnostics)
        if vm_fleet.start is not None:
            _check_start(vm_fleet.like, vm_fleet.start, index.hosts, path, diagnostics)


def _check_fleet_names(
    fleets: ListElements[HostFleet] | ListElements[VmFleet],
    listed: NamedElements[Any],
    path: KeyPath,
    diagnostics: Diagnostics,
) -> None:
    """Report ids of fleets that are taken, or that make the ids of members too long."""
    members_by_id = listed.fleet_index.fleets
    for position, fleet in fleets:
        name = fleet.like.id
        here: KeyPath = (*path, position, "like", "id")
        first = members_by_id[name].position
        if first != position:
            report_taken_id(name, here, (*path, first, "like", "id"), diagnostics)
        longest = fleet_member_id(name, fleet.count, fleet.count)
        if len(longest) > _MEMBER_ID_LENGTH_MAX:
            what = f"the ids of its members have {len(longest)} characters"
            cure = f"a shorter id, for at most {_MEMBER_ID_LENGTH_MAX}"
            diagnostics.add(here, what, cure, code="invalid-name")
    if not members_by_id:
        return
    for position, element in listed:
        id_ = element.id
        owner = members_by_id.get(id_) or listed.fleet_index.claiming_fleet(id_)
        if owner is not None:
            earlier: KeyPath = (*path, owner.position, "like", "id")
            report_taken_id(id_, ("cluster", *listed.path, position, "id"), earlier, diagnostics)


def _check_vm_template(fleet: VmFleet, path: KeyPath, diagnostics: Diagnostics) -> None:
    """Report settings that a single VM may have, but not all VMs of a fleet."""
    vm, start = fleet.like, fleet.start
    if vm.host is not None:
        what = "the start of a fleet determines the hosts of its VMs"
        cure = f"leave it out, and write start: {{hosts: [{vm.host}]}}"
        diagnostics.add((*path, "host"), what, cure, code="contradiction")
    if vm.ft_pair is not None:
        what = "the VMs of a fleet cannot all be the pair of one VM"
        cure = "list the two VMs in the cluster"
        diagnostics.add((*path, "ft_pair"), what, cure, code="contradiction")
    if vm.agent and start is None:
        what = "an agent belongs to a host, but the fleet has no start"
        cure = "give the fleet a start, or leave agent out"
        diagnostics.add((*path, "agent"), what, cure, code="contradiction")
    allowed = (VmState.RUNNING,) if start else (VmState.RUNNING, VmState.READY)
    if vm.state not in allowed:
        what = f"the VMs of a fleet cannot be {vm.state} at the start"
        cure = "leave it out: with a start the VMs run, without one they are ready"
        diagnostics.add((*path, "state"), what, cure, code="contradiction")


def _check_start(
    vm: Vm,
    start: FleetPlacement,
    hosts: NamedElements[Host],
    path: KeyPath,
    diagnostics: Diagnostics,
) -> None:
    path = (*path, "start", "hosts")
    start_hosts = _start_hosts(start, hosts, path, diagnostics)
    if start_hosts is None:
        return
    host_count = sum(count for _, count, _ in start_hosts)
    if not host_count:
        cure = "name a host, or a fleet of at least one"
        diagnostics.add(path, "names no host", cure, code="empty-value")
    if start.first is not None and start.first > host_count > 0:
        what = f"{start.first} is more than the number of hosts"
        cure = f"at most {host_count}"
        diagnostics.add((*path[:-1], "first"), what, cure, code="out-of-range")
    remaining = host_count if start.first is None else start.first
    for position, count, host in start_hosts:
        if count and remaining > 0:
            _check_start_host(vm, host, (*path, position), diagnostics)
        remaining -= count


def _check_start_host(vm: Vm, host: Host, path: KeyPath, diagnostics: Diagnostics) -> None:
    if host.state is not HostState.ON:
        what = f"the VMs run from the start, but {quoted(host.id)} is {host.state}"
        cure = "name hosts that are on, or leave start out"
        diagnostics.add(path, what, cure, code="contradiction")
    check_named_resources(vm, host, (*path[:-3], "like"), diagnostics)


def _start_hosts(
    start: FleetPlacement, hosts: NamedElements[Host], path: KeyPath, diagnostics: Diagnostics
) -> list[tuple[int, int, Host]] | None:
    """Return position, number and template of the start hosts; ``None`` if one is not known."""
    start_hosts: list[tuple[int, int, Host]] = []
    fleets, mentions = hosts.fleet_index.fleets, _FirstMention({}, {})
    for position, name in enumerate(start.hosts):
        members = hosts.fleet_index.fleet_of(name)
        first = mentions.seen(name, members.like.id if members else None, position)
        host = fleets[name].like if name in fleets else hosts.get(name)
        if first is not None:
            report_repeated(name, (*path, position), (*path, first), diagnostics)
        elif host is not None:
            start_hosts.append((position, fleets[name].count if name in fleets else 1, host))
        elif name not in hosts and name not in hosts.fleet_index.unread:
            what = f"there is no host or fleet {quoted(name)}"
            suggestion = diagnostics.suggestion(name, [*fleets, *hosts.known])
            cure = f"{suggestion}the names are: {format_list([*hosts.by_id, *fleets])}"
            diagnostics.add((*path, position), what, cure, code="unknown-name")
    return start_hosts if len(start_hosts) == len(start.hosts) else None


class _FirstMention(NamedTuple):
    """The first mention of each host and fleet in a list. A fleet mentions all its hosts."""

    names: dict[str, int]
    fleets_of: dict[str, int]

    def seen(self, name: str, fleet: str | None, position: int) -> int | None:
        """Return the position of an earlier mention of a host or fleet, and remember this one."""
        before = self.names.get(name, self.fleets_of.get(name))
        if fleet is not None:
            before = self.names.get(fleet) if before is None else before
            self.fleets_of.setdefault(fleet, position)
        self.names.setdefault(name, position)
        return before


class _HostSize(NamedTuple):
    """The capacity that a host has for VMs."""

    cpu_mhz: int
    memory_mib: int


def check_capacity(
    scenario: Scenario, index: InventoryIndex, diagnostics: Diagnostics, gaps: Gaps
) -> None:
    """Report VMs that no host can hold, if all hosts are known."""
    scheduled = ListElements(scenario.events, gaps.get(("events",)))
    # A host that could not be read might be the one that is large enough.
    if not (index.hosts.is_whole and index.hosts.fleet_index.is_whole and scheduled.is_whole):
        return
    # Thousands of hosts have few sizes, and every VM is compared with each of them.
    hosts = map(scenario.cluster.overcommitted, _host_kinds(scenario, index))
    sizes = list(dict.fromkeys(map(_host_size, hosts)))
    if not sizes:
        return
    for path, vm in _scenario_vms(scenario, index):
        _check_vm_fits(vm, sizes, scenario.physics.overhead_mib, path, diagnostics)
    _check_fleet_reservations(scenario, index, diagnostics, gaps)


def _host_size(host: Host) -> _HostSize:
    # Overcommitment shares memory among VMs; a single VM is never larger than the memory.
    memory_mib = min(host.usable_memory_mib, host.configured_memory_max_mib)
    return _HostSize(host.usable_cpu_mhz, memory_mib)


def _host_kinds(scenario: Scenario, index: InventoryIndex) -> Iterator[Host]:
    """Yield a host of each kind that is there or may join."""
    yield from scenario.cluster.hosts
    growing = {churn.fleet for churn in scenario.faults.hosts}
    for name, members in index.hosts.fleet_index.fleets.items():
        if members.count or name in growing:
            yield members.like
    yield from (event.host for event in scenario.events if isinstance(event, HostJoined))


def _scenario_vms(scenario: Scenario, index: InventoryIndex) -> Iterator[tuple[KeyPath, Vm]]:
    for position, vm in index.vms:
        if vm.state is not VmState.TERMINATED:
            yield ("cluster", "vms", position), vm
    for members in index.vms.fleet_index.fleets.values():
        yield ("fleet", "vms", members.position, "like"), members.like
    for position, event in enumerate(scenario.events):
        if isinstance(event, VmArrived):
            yield ("events", position, "vm"), event.vm


def _check_vm_fits(
    vm: Vm, sizes: list[_HostSize], overhead: int, path: KeyPath, diagnostics: Diagnostics
) -> None:
    cpu, memory = vm.cpu.reservation_mhz, vm.memory_mib + overhead
    if any(cpu <= size.cpu_mhz and memory <= size.memory_mib for size in sizes):
        return
    cpu_max = max(size.cpu_mhz for size in sizes)
    memory_max = max(size.memory_mib for size in sizes)
    if memory > memory_max:
        with_overhead = f" with overhead_mib {overhead}" if overhead else ""
        what = f"{vm.memory_mib}{with_overhead} is more than any host has for VMs"
        limit = memory_max - overhead
        cure = f"at most {limit}, or a larger host" if limit > 0 else "a larger host"
        diagnostics.add((*path, "memory_mib"), what, cure, code="no-capacity")
    if cpu > cpu_max:
        what, cure = (
            f"{cpu} is more than any host has for VMs",
            f"at most {cpu_max}, or a larger host",
        )
        diagnostics.add((*path, "cpu", "reservation_mhz"), what, cure, code="no-capacity")
    if memory <= memory_max and cpu <= cpu_max:
        what = "no host with enough memory has enough CPU for the reservation"
        cure = "reserve less, or add a larger host"
        diagnostics.add((*path, "cpu", "reservation_mhz"), what, cure, code="no-capacity")


def _check_fleet_reservations(
    scenario: Scenario, index: InventoryIndex, diagnostics: Diagnostics, gaps: Gaps
) -> None:
    """Report fleets that run from the start with higher reservations than all hosts have left.

    Fleets take their reservations in the order of the file.
    """
    free_mhz = sum(host.usable_cpu_mhz for host in scenario.cluster.hosts)
    free_mib = sum(host.usable_memory_mib for host in scenario.cluster.hosts)
    for members in index.hosts.fleet_index.fleets.values():
        free_mhz += members.count * members.like.usable_cpu_mhz
        free_mib += members.count * members.like.usable_memory_mib
    for position, fleet in ListElements(scenario.fleet.vms, gaps.get(("fleet", "vms"))):
        if fleet.start is None or not fleet.count:
            continue
        count, path = fleet.count, ("fleet", "vms", position, "like")
        each_mhz, each_mib = fleet.like.cpu.reservation_mhz, fleet.like.memory.reservation_mib
        if count * each_mhz > free_mhz:
            what = f"{each_mhz} for each of {count} VMs is more than all hosts can guarantee"
            cure = f"at most {free_mhz // count}"
            diagnostics.add((*path, "cpu", "reservation_mhz"), what, cure, code="no-capacity")
        if count * each_mib > free_mib:
            what = f"{each_mib} for each of {count} VMs is more than all hosts can guarantee"
            cure = f"at most {free_mib // count}"
            diagnostics.add((*path, "memory", "reservation_mib"), what, cure, code="no-capacity")
        # A fleet that does not fit takes all, so that the next one is reported with its own figure.
        free_mhz = max(free_mhz - count * each_mhz, 0)
        free_mib = max(free_mib - count * each_mib, 0)


def check_scenario(
    scenario: Scenario, index: InventoryIndex, diagnostics: Diagnostics, gaps: Gaps
) -> None:
    """Check a scenario apart from its cluster and its plan."""
    _check_has_hosts(scenario, diagnostics, gaps)
    _check_deciders(scenario, diagnostics, gaps)
    check_fleets(scenario.fleet, index, diagnostics, gaps)
    check_loads(scenario, index, diagnostics, gaps)
    check_capacity(scenario, index, diagnostics, gaps)
    check_scheduled_events(scenario, index, diagnostics, gaps.get(("events",)))
    check_faults(scenario, index, diagnostics, gaps)


def cluster_with_named_members(scenario: Scenario) -> Inventory:
    """Return the cluster with the members of fleets that its ``satisfy`` rules and layout name.

    Only these members are created, because a fleet may have millions and checks need no others.
    """
    cluster, fleet_indexes = scenario.cluster, FleetIndexes.of(scenario, {})
    rules = [rule for rule in cluster.rules if isinstance(rule, Satisfy)]
    named = dict.fromkeys(
        name
        for rule in rules
        for argument in rule.arguments.values()
        for name in _argument_names(argument)
    )
    if cluster.layout is not None:
        named |= dict.fromkeys(name for group in cluster.layout.groups for name in group.processors)
    hosts = [host for host in map(fleet_indexes.hosts.get, named) if host is not None]
    vms = [
        vm.but(state=VmState.READY) for vm in map(fleet_indexes.vms.get, named) if vm is not None
    ]
    return cluster.but(hosts=(*cluster.hosts, *hosts), vms=(*cluster.vms, *vms))


def _argument_names(argument: Argument) -> Iterator[str]:
    if isinstance(argument, str):
        yield argument
    elif not isinstance(argument, int):
        for part in argument:
            yield from _argument_names(part)


def _check_has_hosts(scenario: Scenario, diagnostics: Diagnostics, gaps: Gaps) -> None:
    is_whole = ("cluster", "hosts") not in gaps and ("fleet", "hosts") not in gaps
    has_fleet = any(fleet.count for fleet in scenario.fleet.hosts)
    if is_whole and not scenario.cluster.hosts and not has_fleet:
        cure = "list at least one, or write fleet: {hosts: ...}"
        diagnostics.add(("cluster", "hosts"), "there is no host", cure, code="empty-value")


def _check_deciders(scenario: Scenario, diagnostics: Diagnostics, gaps: Gaps) -> None:
    first: dict[str, int] = {}
    for position, name in ListElements(scenario.deciders, gaps.get(("deciders",))):
        if name in first:
            earlier: KeyPath = ("deciders", first[name])
            report_repeated(name, ("deciders", position), earlier, diagnostics)
        first.setdefault(name, position)
