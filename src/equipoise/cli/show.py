"""``equipoise show`` and ``equipoise schema``: a cluster at a glance, and the JSON Schema of our
files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from equipoise import files
from equipoise.api.loading import read_inventory_with_warnings
from equipoise.capacity.entitlement import Entitlement, entitlement_per_vm
from equipoise.capacity.ledger import CONFIGURED_MEMORY, CPU, MEMORY, CommittedCapacity
from equipoise.cli.output import (
    console,
    fit_to_terminal,
    format_mib,
    make_table,
    print_document,
    print_json,
    print_warnings,
    printable,
)
from equipoise.documents.cluster import PoolRow, cluster_document, pool_rows
from equipoise.documents.json_document import warning_rows
from equipoise.errors import InvalidInput
from equipoise.files.schema import FileKind
from equipoise.model.quantity import VmId, format_count
from equipoise.model.state.snapshot import Snapshot

if TYPE_CHECKING:
    from rich.table import Table

BAR_CELLS = 5
NAMES_SHOWN = 8


def run(path: Path, *, with_vms: bool, as_json: bool) -> int:
    """Print a cluster."""
    inventory, warnings = read_inventory_with_warnings(path)
    snapshot = Snapshot.of(inventory)
    if as_json:
        print_document(cluster_document(snapshot, warning_rows(str(path), warnings)))
        return 0
    print_warnings(str(path), warnings)
    console().print(cluster_headline(snapshot))
    console().print(host_table(snapshot))
    entitled = entitlement_per_vm(snapshot)
    if snapshot.settings.pools:
        console().print(pool_table(pool_rows(snapshot, entitled)))
    if with_vms:
        console().print(vm_table(snapshot, entitled))
    return 0


def cluster_headline(snapshot: Snapshot) -> str:
    """Return the name and the size of a cluster in one line."""
    settings = snapshot.settings
    counts = {"host": len(snapshot.hosts), "VM": len(snapshot.vms)}
    extras = {"pool": settings.pools, "rule": settings.rules, "tenant": settings.tenants}
    counts |= {word: len(items) for word, items in extras.items() if items}
    summary = ", ".join(map(format_count, counts.values(), counts))
    return f"[bold]{printable(snapshot.name)}[/bold]: {summary}"


def host_table(snapshot: Snapshot) -> Table:
    """Return one row per host: capacity, demand, reservations and configured memory."""
    capacity = CommittedCapacity.of(snapshot)
    columns = (
        "host",
        "state",
        "capacity",
        "CPU demand",
        "mem demand",
        "reserved",
        "mem size",
        "VMs",
    )
    rows = make_table(*columns, right=("capacity", "reserved", "mem size"))
    for host in snapshot.hosts.values():
        guests = [snapshot.vms[vm] for vm in snapshot.residents[host.id]]
        cpu_mhz, memory_mib = host.usable_cpu_mhz, host.usable_memory_mib
        cpu_reserved = format_share(capacity.committed(host.id, CPU.label), cpu_mhz)
        memory_reserved = format_share(capacity.committed(host.id, MEMORY.label), memory_mib)
        configured = capacity.committed(host.id, CONFIGURED_MEMORY.label)
        rows.add_row(
            host.id,
            host.state,
            f"{cpu_mhz / 1000:,.1f} GHz, {format_mib(memory_mib)}",
            usage_bar(sum(vm.demand.cpu_mhz for vm in guests), cpu_mhz),
            usage_bar(sum(vm.demand.memory_mib for vm in guests), memory_mib),
            f"{cpu_reserved} / {memory_reserved}",
            format_share(configured, host.configured_memory_max_mib),
            _vm_names([vm.id for vm in guests]),
        )
    return fit_to_terminal(rows, wrap=False)


def _vm_names(vms: list[VmId]) -> str:
    more = len(vms) - NAMES_SHOWN
    return " ".join(vms[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def pool_table(pools: Sequence[PoolRow]) -> Table:
    """Return one row per pool: reservations, demand of its VMs, and their entitlement."""
    numbers = ("VMs", "MHz res.", "mem res.", "MHz demand", "mem demand", "MHz ent.", "mem ent.")
    rows = make_table("pool", *numbers, right=numbers)
    for pool in pools:
        rows.add_row(
            pool.id,
            str(pool.vms),
            f"{pool.cpu_reserved_mhz:,}",
            format_mib(pool.memory_reserved_mib),
            f"{pool.cpu_demand_mhz:,}",
            format_mib(pool.memory_demand_mib),
            f"{pool.cpu_entitled_mhz:,}",
            format_mib(pool.memory_entitled_mib),
        )
    return fit_to_terminal(rows, wrap=False)


def vm_table(snapshot: Snapshot, entitled: Mapping[VmId, Entitlement]) -> Table:
    """Return one row per VM."""
    numbers = (
        "vCPUs", "memory", "MHz demand", "mem demand", "MHz ent.", "mem ent.", "MHz res.",
        "mem res.",
    )  # fmt: skip
    rows = make_table("VM", "state", "host", *numbers, "pool", right=numbers)
    for vm in snapshot.vms.values():
        rows.add_row(
            vm.id,
            vm.state,
            vm.host or "",
            str(vm.vcpus),
            format_mib(vm.memory_mib),
            f"{vm.demand.cpu_mhz:,}",
            format_mib(vm.demand.memory_mib),
            f"{round(entitled.get(vm.id, (0, 0))[0]):,}",
            format_mib(round(entitled.get(vm.id, (0, 0))[1])),
            f"{vm.cpu.reservation_mhz:,}",
            format_mib(vm.memory.reservation_mib),
            vm.pool or "",
        )
    return fit_to_terminal(rows, wrap=False)


def usage_bar(demand: int, capacity: int) -> str:
    """Return a bar and the share as text: ``████░░░░░░  40%``."""
    cells = min(BAR_CELLS, round(demand / capacity * BAR_CELLS)) if capacity > 0 else 0
    return f"{'█' * cells}{'░' * (BAR_CELLS - cells)} {format_share(demand, capacity):>4}"


def format_share(amount: int, capacity: int) -> str:
    """Return an amount as a share of the capacity."""
    return f"{amount / capacity:.0%}" if capacity > 0 else "-"


FILE_KINDS: tuple[FileKind, ...]
FILE_KINDS = get_args(FileKind)


def run_schema(kind: str, *, as_json: bool) -> int:
    """Print the JSON Schema of a kind of file."""
    for known in FILE_KINDS:
        if kind == known:
            print_json(files.json_schema(known))
            return 0
    raise InvalidInput.of(
        "schema",
        "there is no such kind of file",
        key=kind,
        cure=f"use one of {', '.join(FILE_KINDS)}",
        code="unknown-name",
    )
