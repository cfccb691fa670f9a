"""From a scenario to its cast: every host and VM by name, where it starts, and what drives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import HostId, VmId
from equipoise.model.story.fleet import Dealing, HostFleet, Start, VmFleet, member_id
from equipoise.model.story.load import Load
from equipoise.model.story.scenario import Scenario
from equipoise.model.vm import Vm, VmState
from equipoise.sim.chance import Dice


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Who takes part from the start, and what newcomers are like."""

    inventory: Inventory
    loads: Mapping[VmId, Load]
    host_fleets: Mapping[str, HostFleet]
    vm_fleets: Mapping[str, VmFleet]


def unfold(scenario: Scenario) -> Cast:
    """Give every host and VM of the fleets a name and a place."""
    fleet = scenario.fleet
    members = {one.like.id: tuple(_hosts(one)) for one in fleet.hosts}
    hosts = (*scenario.cluster.hosts, *(host for group in members.values() for host in group))
    known = {str(host.id): (host,) for host in hosts} | {str(k): v for k, v in members.items()}
    vms = list(scenario.cluster.vms)
    here = {vm.id for vm in vms}  # a load may also wait for a VM that is still to come
    loads = {vm: scenario.loads[load] for vm, load in scenario.vm_loads.items() if vm in here}
    for one in fleet.vms:
        places = _places(one, known, scenario.seed)
        for number in range(one.count):
            vm = numbered_vm(one, number + 1, places[number] if places else None)
            vms.append(vm)
            if one.load is not None:
                loads[vm.id] = scenario.loads[one.load]
    return Cast(
        inventory=scenario.cluster.but(hosts=hosts, vms=tuple(vms)),
        loads=loads,
        host_fleets={str(one.like.id): one for one in fleet.hosts},
        vm_fleets={str(one.like.id): one for one in fleet.vms},
    )


def numbered_host(fleet: HostFleet, number: int) -> Host:
    """The host of a fleet with a number, counted from 1."""
    return fleet.like.but(id=HostId(member_id(fleet.like.id, number, fleet.count)))


def numbered_vm(fleet: VmFleet, number: int, host: HostId | None) -> Vm:
    """The VM of a fleet with a number, counted from 1, on its host or on none."""
    state = VmState.READY if host is None else VmState.RUNNING
    name = VmId(member_id(fleet.like.id, number, fleet.count))
    return fleet.like.but(id=name, state=state, host=host)


def _hosts(fleet: HostFleet) -> Iterator[Host]:
    return (numbered_host(fleet, number) for number in range(1, fleet.count + 1))


def _places(fleet: VmFleet, known: Mapping[str, tuple[Host, ...]], seed: int) -> list[HostId]:
    """Where the VMs of a fleet start; nowhere if the fleet does not say."""
    if fleet.start is None:
        return []
    hosts = _start_hosts(fleet.start, known)
    if fleet.start.dealt is Dealing.EVENLY:
        return [hosts[number % len(hosts)] for number in range(fleet.count)]
    dice = Dice(seed, "start", fleet.like.id)
    return [hosts[dice.choose(len(hosts))] for _ in range(fleet.count)]


def _start_hosts(start: Start, known: Mapping[str, tuple[Host, ...]]) -> list[HostId]:
    hosts = [host.id for name in start.hosts for host in known[name]]
    return hosts[: start.first] if start.first else hosts
