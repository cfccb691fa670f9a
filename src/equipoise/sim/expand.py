"""Expands a scenario: every host and VM of its fleets by name, with its first host and its load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.scenario.load import Load
from equipoise.model.scenario.scenario import (
    FleetPlacement,
    FleetPlacementOrder,
    HostFleet,
    Scenario,
    VmFleet,
    fleet_member_id,
)
from equipoise.model.vm import Vm, VmState
from equipoise.sim.random_streams import RandomStream


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedScenario:
    """The hosts, VMs and loads at the start, and the fleets from which more arrive later."""

    inventory: Inventory
    loads: Mapping[VmId, Load]
    host_fleets: Mapping[str, HostFleet]
    vm_fleets: Mapping[str, VmFleet]


def expand(scenario: Scenario) -> ExpandedScenario:
    """Give every host and VM of the fleets a name, and every VM its first host."""
    fleet = scenario.fleet
    members = {hosts.like.id: tuple(_fleet_hosts(hosts)) for hosts in fleet.hosts}
    hosts = (*scenario.cluster.hosts, *(host for group in members.values() for host in group))
    known = {str(host.id): (host,) for host in hosts} | {str(k): v for k, v in members.items()}
    vms = list(scenario.cluster.vms)
    present = {vm.id for vm in vms}  # a load may name a VM that arrives later
    loads = {vm: scenario.loads[load] for vm, load in scenario.vm_loads.items() if vm in present}
    for vm_fleet in fleet.vms:
        initial_hosts = _initial_hosts(vm_fleet, known, scenario.seed)
        for number in range(vm_fleet.count):
            host = initial_hosts[number] if initial_hosts else None
            vm = numbered_vm(vm_fleet, number + 1, host)
            vms.append(vm)
            if vm_fleet.load is not None:
                loads[vm.id] = scenario.loads[vm_fleet.load]
    return ExpandedScenario(
        inventory=scenario.cluster.but(hosts=hosts, vms=tuple(vms)),
        loads=loads,
        host_fleets={str(hosts.like.id): hosts for hosts in fleet.hosts},
        vm_fleets={str(vms.like.id): vms for vms in fleet.vms},
    )


def numbered_host(fleet: HostFleet, number: int) -> Host:
    """Return the host with this number in a fleet; numbers start at 1."""
    return fleet.like.but(id=HostId(fleet_member_id(fleet.like.id, number, fleet.count)))


def numbered_vm(fleet: VmFleet, number: int, host: HostId | None) -> Vm:
    """Return the VM with this number in a fleet: running on ``host``, or ready without one."""
    state = VmState.READY if host is None else VmState.RUNNING
    name = VmId(fleet_member_id(fleet.like.id, number, fleet.count))
    return fleet.like.but(id=name, state=state, host=host)


def _fleet_hosts(fleet: HostFleet) -> Iterator[Host]:
    return (numbered_host(fleet, number) for number in range(1, fleet.count + 1))


def _initial_hosts(
    fleet: VmFleet, known: Mapping[str, tuple[Host, ...]], seed: int
) -> list[HostId]:
    """Return the first host of each VM of a fleet; empty if the fleet names no hosts."""
    if fleet.start is None:
        return []
    hosts = _start_hosts(fleet.start, known)
    if fleet.start.assigned is FleetPlacementOrder.EVENLY:
        return [hosts[number % len(hosts)] for number in range(fleet.count)]
    rng = RandomStream(seed, "start", fleet.like.id)
    return [hosts[rng.randrange(len(hosts))] for _ in range(fleet.count)]


def _start_hosts(start: FleetPlacement, known: Mapping[str, tuple[Host, ...]]) -> list[HostId]:
    hosts = [host.id for name in start.hosts for host in known[name]]
    return hosts[: start.first] if start.first else hosts
