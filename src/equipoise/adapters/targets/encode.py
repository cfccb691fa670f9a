"""A cluster as workers read it: plain values in the units of the model.

Rules, pools and reservations are left out, because most targets cannot express them. Callers verify
every answer at the gate.
"""

from __future__ import annotations

from typing import Any, TypedDict

from equipoise.model.host import HostState
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState


class HostMessage(TypedDict):
    """A host that is on."""

    id: str
    cores: int
    mhz_per_core: int
    memory_mib: int


class VmMessage(TypedDict):
    """A running VM and its current use."""

    id: str
    host: str
    vcpus: int
    memory_mib: int
    cpu_mhz: float
    memory_used_mib: float


class ClusterMessage(TypedDict):
    """The question to a worker; the options are those of its target."""

    hosts: list[HostMessage]
    vms: list[VmMessage]
    options: dict[str, Any]


def encode_cluster(snapshot: Snapshot, **options: Any) -> ClusterMessage:
    """Encode the hosts that are on and the VMs that run there; demand counts as use."""
    hosts = [host for host in snapshot.hosts.values() if host.state is HostState.ON]
    ids = {host.id for host in hosts}
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
            if vm.host is not None and vm.host in ids and vm.state is VmState.RUNNING
        ],
        "options": options,
    }
