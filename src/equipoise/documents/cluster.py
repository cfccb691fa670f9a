"""The JSON documents of ``show``, ``journal`` and ``wake``."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import UNSET, UnsetType

from equipoise.capacity.entitlement import Entitlement, entitlement_per_vm
from equipoise.capacity.ledger import CONFIGURED_MEMORY, CPU, MEMORY, VCPUS, CommittedCapacity
from equipoise.documents.event_text import describe_event
from equipoise.documents.json_document import Document, ProblemRow
from equipoise.model.event import event_kind
from equipoise.model.quantity import VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.store import Journal


class HostRow(Document):
    """A host with its capacity, its reservations and its VMs."""

    id: str
    state: str
    cpu_mhz: int
    memory_mib: int
    cpu_reserved_mhz: int
    memory_reserved_mib: int
    memory_configured_mib: int
    """The configured memory of the VMs on the host, and of those on their way to it."""
    memory_configured_max_mib: int
    """The limit of it: the usable memory times the factor of overcommitment."""
    vcpus: int
    vcpus_max: int | None
    vms: tuple[str, ...]


class VmRow(Document):
    """A VM, its host, its demand, and what it is entitled to of the capacity of the cluster."""

    id: str
    state: str
    host: str | None
    pool: str | None
    cpu_demand_mhz: int
    memory_demand_mib: int
    cpu_entitled_mhz: int
    memory_entitled_mib: int


class PoolRow(Document):
    """A pool: what it reserves, what its VMs demand, and what they are entitled to."""

    id: str
    parent: str | None
    vms: int
    """The running VMs in the pool and in the pools below it."""
    cpu_reserved_mhz: int
    memory_reserved_mib: int
    cpu_demand_mhz: int
    memory_demand_mib: int
    cpu_entitled_mhz: int
    memory_entitled_mib: int


class ClusterDocument(Document):
    """The JSON document of ``equipoise show``."""

    name: str
    hosts: tuple[HostRow, ...]
    vms: tuple[VmRow, ...]
    pools: tuple[PoolRow, ...] = ()
    warnings: tuple[ProblemRow, ...] = ()
    """Values that are allowed and probably wrong."""


def cluster_document(snapshot: Snapshot, warnings: tuple[ProblemRow, ...] = ()) -> ClusterDocument:
    """Return the hosts and VMs of a cluster."""
    capacity = CommittedCapacity.of(snapshot)
    hosts = tuple(
        HostRow(
            id=host.id,
            state=host.state,
            cpu_mhz=host.usable_cpu_mhz,
            memory_mib=host.usable_memory_mib,
            # By the ledger of the gate, so that actions under way count here as they do there.
            cpu_reserved_mhz=capacity.committed(host.id, CPU.label),
            memory_reserved_mib=capacity.committed(host.id, MEMORY.label),
            memory_configured_mib=capacity.committed(host.id, CONFIGURED_MEMORY.label),
            memory_configured_max_mib=host.configured_memory_max_mib,
            vcpus=capacity.committed(host.id, VCPUS.label),
            vcpus_max=host.vcpus_max,
            vms=tuple(snapshot.residents[host.id]),
        )
        for host in snapshot.hosts.values()
    )
    entitled = entitlement_per_vm(snapshot)
    return ClusterDocument(
        name=snapshot.name,
        hosts=hosts,
        vms=vm_rows(snapshot, entitled),
        pools=pool_rows(snapshot, entitled),
        warnings=warnings,
    )


def vm_rows(snapshot: Snapshot, entitled: Mapping[VmId, Entitlement]) -> tuple[VmRow, ...]:
    """Return the VMs with their demand and their entitlement; a VM that does not run has none."""
    rows = []
    for vm in snapshot.vms.values():
        cpu, memory = entitled.get(vm.id, (0.0, 0.0))
        rows.append(
            VmRow.of(
                vm,
                cpu_demand_mhz=vm.demand.cpu_mhz,
                memory_demand_mib=vm.demand.memory_mib,
                cpu_entitled_mhz=round(cpu),
                memory_entitled_mib=round(memory),
            )
        )
    return tuple(rows)


def pool_rows(snapshot: Snapshot, entitled: Mapping[VmId, Entitlement]) -> tuple[PoolRow, ...]:
    """Return the pools, each with all VMs below it."""
    pools = {pool.id: pool for pool in snapshot.settings.pools}
    sums = {pool: [0.0] * 5 for pool in pools}
    for vm, (cpu, memory) in entitled.items():
        known = snapshot.vms[vm]
        figures = (1.0, known.demand.cpu_mhz, known.demand.memory_mib, cpu, memory)
        above = known.pool
        while above is not None:
            so_far = zip(sums[above], figures, strict=True)
            sums[above] = [total + figure for total, figure in so_far]
            above = pools[above].parent
    return tuple(
        PoolRow(
            id=pool.id,
            parent=pool.parent,
            vms=round(sums[pool.id][0]),
            cpu_reserved_mhz=pool.cpu.reservation_mhz,
            memory_reserved_mib=pool.memory.reservation_mib,
            cpu_demand_mhz=round(sums[pool.id][1]),
            memory_demand_mib=round(sums[pool.id][2]),
            cpu_entitled_mhz=round(sums[pool.id][3]),
            memory_entitled_mib=round(sums[pool.id][4]),
        )
        for pool in pools.values()
    )


class EventRow(Document):
    """An event of a journal."""

    at_ms: int
    kind: str
    text: str


class JournalDocument(Document):
    """The JSON document of ``equipoise journal``."""

    journal: str
    length: int
    """The number of all events, also of those that ``--kind`` leaves out."""
    sha256: str
    events: tuple[EventRow, ...]


def journal_document(journal: Journal, kinds: Collection[str]) -> JournalDocument:
    """Return the events of a journal; all kinds if ``kinds`` is empty."""
    return JournalDocument(
        journal=journal.name,
        length=len(journal),
        sha256=journal.sha256(),
        events=event_rows(journal, kinds),
    )


def event_rows(journal: Journal, kinds: Collection[str] = ()) -> tuple[EventRow, ...]:
    """Return the events of a journal; all kinds if ``kinds`` is empty."""
    return tuple(
        EventRow(at_ms=event.at_ms, kind=event_kind(event), text=describe_event(event))
        for event in journal.events(kinds=kinds)
    )


class AttemptRow(Document):
    """A way to reach a host that failed."""

    by: str
    cause: str
    code: str
    reason: str


class HostPowerRow(Document):
    """The power state of a host, or why it is unknown.

    A host that reaches its state has ``took_s``, ``already`` and ``note``; a reading has ``note``;
    a refusal has ``cause``, ``code`` and ``reason``.
    """

    host: str
    ok: bool
    power: str | None
    by: str
    took_s: float | UnsetType = UNSET
    already: bool | UnsetType = UNSET
    note: str | UnsetType = UNSET
    cause: str | UnsetType = UNSET
    code: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    tried: tuple[AttemptRow, ...]


class WakeDocument(Document):
    """The JSON document of ``equipoise wake``."""

    task: str
    hosts: tuple[HostPowerRow, ...]
