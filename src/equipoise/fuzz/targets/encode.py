"""A cluster as the workers read it: plain values in the units of the house.

Rules, pools and reservations are not told, because the targets have no words for most of them: who
compares judges every answer with the gate.
"""

from __future__ import annotations

from typing import Any, TypedDict

from equipoise.model.host import HostState
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState


class HostEntry(TypedDict):
    """A host that can take VMs."""

    id: str
    cores: int
    mhz_per_core: int
    memory_mib: int


class VmEntry(TypedDict):
    """A running VM, and what it uses now."""

    id: str
    host: str
    vcpus: int
    memory_mib: int
    cpu_mhz: float
    memory_used_mib: float


class Cluster(TypedDict):
    """What a worker is asked about; the options are those of its target."""

    hosts: list[HostEntry]
    vms: list[VmEntry]
    options: dict[str, Any]


def cluster_of(snapshot: Snapshot, **options: Any) -> Cluster:
    """The hosts that are on and the VMs that run there; demand counts as use."""
    hosts = [host for host in snapshot.hosts.values() if host.state is HostState.ON]
    able = {host.id for host in hosts}
    return {
        "hosts": [
            {
                "id": host.id,
                "cores": host.cores,
                "mhz_per_core": host.mhz_per_core,
                "memory_mib": host.memory_mib,
            }
            for host in hosts
        ],
        "vms": [
            {
                "id": vm.id,
                "host": vm.host,
                "vcpus": vm.vcpus,
                "memory_mib": vm.memory_mib,
                "cpu_mhz": vm.demand.cpu_mhz,
                "memory_used_mib": vm.demand.memory_mib,
            }
            for vm in snapshot.vms.values()
            if vm.host is not None and vm.host in able and vm.state is VmState.RUNNING
        ],
        "options": options,
    }
