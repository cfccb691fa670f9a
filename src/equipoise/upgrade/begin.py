"""The state at the beginning of a campaign, made of its cluster and its catalog."""

from __future__ import annotations

from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import GroupId, HostId, ResourceName, VmId
from equipoise.model.resource import DependencyKind, Presence, Resource, ResourceGroupKind
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.catalog import ComponentId
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState
from equipoise.upgrade.state import Bond, Part, Place, Seat, State, main_component

PLACES = ResourceName("vms")
"""The capacity of a host, in VMs: ``capacity: {vms: 3}``."""


def begin(campaign: Campaign) -> State:
    """Give the state before anything has happened."""
    cluster = campaign.cluster
    state = State(
        campaign=campaign,
        settings=campaign.settings,
        catalog={(one.component, one.version): one for one in campaign.catalog.descriptions},
        parts={one.id: a_part(one) for one in cluster.resources},
        bonds=[],
        tenants={one.id: one for one in cluster.tenants},
        places=_places(cluster),
        seats={},
        hosts={one.id: one for one in cluster.hosts},
        vms={one.id: one for one in cluster.vms},
    )
    for one in cluster.dependencies:
        if one.kind is not DependencyKind.MIGRATION and one.presence is not Presence.FUTURE:
            state.bind(Bond(one))
    _seat_vms(state, cluster)
    return state


def a_part(resource: Resource, *, present: bool = True) -> Part:
    """A resource with what is installed on it."""
    installed = {ComponentId(name): version for name, version in resource.components.items()}
    main = {main_component(resource): resource.version} if present else {}
    return Part(resource, FrozenMap(main | installed), present=present, active=present)


def _places(cluster: Inventory) -> dict[HostId, Place]:
    largest_mib = max((vm.memory_mib for vm in cluster.vms), default=1)
    return {
        host.id: Place(host.id, _capacity(host, largest_mib), host.state is HostState.ON)
        for host in cluster.hosts
    }


def _capacity(host: Host, largest_mib: int) -> int:
    """How many VMs a host takes: as it says, or as many of the largest as its memory holds."""
    said = host.capacity.get(PLACES)
    return host.usable_memory_mib // largest_mib if said is None else said


def _apart(state: State, cluster: Inventory) -> dict[VmId, GroupId]:
    """The groups of VMs that the layer above wants apart, where they are listed as resources."""
    vm_of = {one.id: one.vm for one in cluster.resources if one.vm is not None}
    found: dict[VmId, GroupId] = {}
    for group in cluster.groups:
        if group.kind is ResourceGroupKind.ANTI_AFFINITY:
            vms = [vm_of[one] for one in group.resources if one in vm_of]
            found |= dict.fromkeys(vms, group.id)
            state.disturbed_max[group.id] = 1
    return found


def _seat_vms(state: State, cluster: Inventory) -> None:
    group_of = _apart(state, cluster)
    for tenant in cluster.tenants:
        state.sizes[tenant.id] = 0
        for group in tenant.anti_affinity:
            state.disturbed_max[group.id] = group.disturbed_max
            group_of |= dict.fromkeys(group.vms, group.id)
    for vm in cluster.vms:
        host = vm.host if vm.state is VmState.RUNNING else None
        state.seats[vm.id] = Seat(vm.id, vm.tenant, group_of.get(vm.id), host)
        if vm.tenant is not None:
            state.sizes[vm.tenant] += 1
        if host is not None:
            state.residents.setdefault(host, {})[vm.id] = None
