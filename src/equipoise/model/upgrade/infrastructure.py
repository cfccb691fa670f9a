"""The infrastructure as a graph: typed resources, dependencies, and redundancy groups.

The kinds are those of chapter 3 of Nabi's thesis. Hosts and VMs of the model appear as resources
whose ``host`` or ``vm`` names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import (
    Count,
    GroupKey,
    HostKey,
    PositiveCount,
    ResourceKey,
    ResourceNameKey,
    VmKey,
)
from equipoise.model.value import Value


class ResourceKind(StrEnum):
    """The kind of a resource."""

    SERVER_CLUSTER = "server_cluster"
    SERVER = "server"
    CPU = "cpu"
    MEMORY = "memory"
    DISK = "disk"
    NIC = "nic"
    PORT = "port"
    SWITCH = "switch"
    ROUTER = "router"
    LINK = "link"
    VLAN = "vlan"
    SHARED_STORAGE = "shared_storage"
    STORAGE_CONTROLLER = "storage_controller"

    HYPERVISOR = "hypervisor"
    HOST_OS = "host_os"
    NIC_FIRMWARE = "nic_firmware"
    SWITCH_FIRMWARE = "switch_firmware"
    ROUTER_FIRMWARE = "router_firmware"
    STORAGE_FIRMWARE = "storage_firmware"
    SWITCH_SOFTWARE = "switch_software"
    ROUTER_SOFTWARE = "router_software"

    VIRTUAL_CLUSTER = "virtual_cluster"
    VIRTUAL_SERVER = "virtual_server"
    VIRTUAL_CPU = "virtual_cpu"
    VIRTUAL_MEMORY = "virtual_memory"
    VIRTUAL_DISK = "virtual_disk"
    VIRTUAL_NIC = "virtual_nic"
    VIRTUAL_PORT = "virtual_port"
    VIRTUAL_SWITCH = "virtual_switch"
    VIRTUAL_ROUTER = "virtual_router"
    VIRTUAL_LINK = "virtual_link"
    VIRTUAL_SHARED_STORAGE = "virtual_shared_storage"


class ResourceSide(StrEnum):
    """Whether the provider uses the resource, or offers it to users as a service."""

    PROVIDER = "provider"
    SERVICE = "service"


class Resource(Value):
    """A part of the infrastructure that can be added, removed or upgraded."""

    id: ResourceKey
    kind: ResourceKind
    side: ResourceSide = ResourceSide.PROVIDER
    version: str = ""
    component: ResourceNameKey | None = None
    """The component of the catalog; by default the one with the name of its kind."""
    components: Mapping[ResourceNameKey, str] = {}
    """Further installed components with their versions."""
    host: HostKey | None = None
    vm: VmKey | None = None


class DependencyKind(StrEnum):
    """Why one resource needs another. The last three kinds connect peers in both directions."""

    CONTAINER = "container"
    MIGRATION = "migration"
    COMPOSITION = "composition"
    AGGREGATION = "aggregation"
    STORAGE = "storage"
    CONTROLLER = "controller"
    VM_SUPPORTING_STORAGE = "vm_supporting_storage"
    VM_SUPPORTING_CONTROLLER = "vm_supporting_controller"
    COMMUNICATION = "communication"
    PEER_STATELESS = "peer_stateless"
    PEER_STATEFUL_DIRECT = "peer_stateful_direct"
    PEER_STATEFUL_INDIRECT = "peer_stateful_indirect"

    @property
    def is_symmetrical(self) -> bool:
        """Whether both resources depend on each other."""
        return self.value.startswith("peer_")

    @property
    def is_vm_supporting(self) -> bool:
        """Whether the VMs of the dependent hosts need the sponsor."""
        return self.value.startswith("vm_supporting_")


class DependencyPresence(StrEnum):
    """When a dependency holds: before the change, after it, or both."""

    CURRENT = "current"
    FUTURE = "future"
    CURRENT_FUTURE = "current_future"


class Dependency(Value):
    """``dependent`` needs ``sponsor``; for the symmetrical kinds each needs the other."""

    dependent: ResourceKey
    sponsor: ResourceKey
    kind: DependencyKind
    presence: DependencyPresence = DependencyPresence.CURRENT
    incompatible: bool = False
    """Whether the two resources cannot work together while only one of them is changed."""
    constituents_min: PositiveCount | None = None
    """For an aggregation: the fewest constituents that stay available."""
    link: ResourceKey | None = None
    """For a communication: the link that realises it. The link may be upgraded as well."""


class ResourceGroupKind(StrEnum):
    """What the members of a group have in common."""

    POTENTIAL_PROTECTION = "potential_protection"
    """Provider resources that can take over an assignment."""
    PROTECTION = "protection"
    """Members of a potential protection group that hold the assignment now."""
    AFFINITY = "affinity"
    """Service resources that the layer above places together."""
    ANTI_AFFINITY = "anti_affinity"
    """Service resources that the layer above places apart."""

    @property
    def protects(self) -> bool:
        """Whether the members are redundant: only some may be out of service at a time."""
        return self in (ResourceGroupKind.POTENTIAL_PROTECTION, ResourceGroupKind.PROTECTION)


class ResourceGroup(Value):
    """A group of redundant resources, or of resources that are placed together or apart."""

    id: GroupKey
    kind: ResourceGroupKind
    resources: Annotated[tuple[ResourceKey, ...], Meta(min_length=1)]
    within: GroupKey | None = None
    """For a protection group: its potential protection group."""
    in_service_min: Count | None = None
    """For protection groups: fewest members in service at any time, with those that can take over.
    Without this and ``out_max``, one fewer than hold the assignment."""
    out_max: PositiveCount | None = None
    """For protection groups: most members out of service at a time."""
