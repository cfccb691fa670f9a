"""``equipoise show``: a cluster at one glance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.cli.answer import console, fitted, mib, plain, print_json, table
from equipoise.cli.read import read_inventory
from equipoise.model.quantity import VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.words import counted
from equipoise.plan.ledger import Ledger

if TYPE_CHECKING:
    from rich.table import Table

BAR_CELLS = 5
NAMES_SHOWN = 8


def run(path: Path, *, with_vms: bool, as_json: bool) -> int:
    """Print the cluster."""
    snapshot = Snapshot.of(read_inventory(path))
    if as_json:
        print_json(_document(snapshot))
        return 0
    console().print(headline(snapshot))
    console().print(host_table(snapshot))
    if with_vms:
        console().print(vm_table(snapshot))
    return 0


def headline(snapshot: Snapshot) -> str:
    """The cluster in one line."""
    settings = snapshot.settings
    counts = {"host": len(snapshot.hosts), "VM": len(snapshot.vms)}
    extras = {"pool": settings.pools, "rule": settings.rules, "tenant": settings.tenants}
    counts |= {word: len(some) for word, some in extras.items() if some}
    return (
        f"[bold]{plain(snapshot.name)}[/bold]: {', '.join(map(counted, counts.values(), counts))}"
    )


def host_table(snapshot: Snapshot) -> Table:
    """One row per host: what it has, what is asked for, what is reserved."""
    ledger = Ledger(snapshot)
    columns = ("host", "state", "size", "CPU asked", "mem asked", "reserved", "VMs")
    rows = table(*columns, right=("size", "reserved"))
    for host in snapshot.hosts.values():
        guests = [snapshot.vms[vm] for vm in snapshot.residents[host.id]]
        held, cpu_mhz, memory_mib = (
            ledger.usage(host.id),
            host.usable_cpu_mhz,
            host.usable_memory_mib,
        )
        rows.add_row(
            host.id,
            host.state,
            f"{cpu_mhz / 1000:,.1f} GHz, {mib(memory_mib)}",
            bar(sum(vm.demand.cpu_mhz for vm in guests), cpu_mhz),
            bar(sum(vm.demand.memory_mib for vm in guests), memory_mib),
            f"{share(held.cpu_mhz, cpu_mhz)} / {share(held.memory_mib, memory_mib)}",
            _names([vm.id for vm in guests]),
        )
    return fitted(rows, wrap=False)


def _names(vms: list[VmId]) -> str:
    more = len(vms) - NAMES_SHOWN
    return " ".join(vms[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def vm_table(snapshot: Snapshot) -> Table:
    """One row per VM."""
    numbers = ("vCPUs", "memory", "MHz asked", "mem asked", "MHz res.", "mem res.")
    rows = table("VM", "state", "host", *numbers, "pool", right=numbers)
    for vm in snapshot.vms.values():
        rows.add_row(
            vm.id,
            vm.state,
            vm.host or "",
            str(vm.vcpus),
            mib(vm.memory_mib),
            f"{vm.demand.cpu_mhz:,}",
            mib(vm.demand.memory_mib),
            f"{vm.cpu.reservation_mhz:,}",
            mib(vm.memory.reservation_mib),
            vm.pool or "",
        )
    return fitted(rows, wrap=False)


def bar(asked: int, capacity: int) -> str:
    """A bar with the share in words: ``████░░░░░░  40%``."""
    cells = min(BAR_CELLS, round(asked / capacity * BAR_CELLS)) if capacity > 0 else 0
    return f"{'█' * cells}{'░' * (BAR_CELLS - cells)} {share(asked, capacity):>4}"


def share(amount: int, capacity: int) -> str:
    """An amount as a share of what there is."""
    return f"{amount / capacity:.0%}" if capacity > 0 else "-"


def _document(snapshot: Snapshot) -> dict[str, object]:
    ledger = Ledger(snapshot)
    return {
        "name": snapshot.name,
        "hosts": [
            {
                "id": host.id,
                "state": host.state,
                "cpu_mhz": host.usable_cpu_mhz,
                "memory_mib": host.usable_memory_mib,
                "cpu_reserved_mhz": ledger.usage(host.id).cpu_mhz,
                "memory_reserved_mib": ledger.usage(host.id).memory_mib,
                "vms": list(snapshot.residents[host.id]),
            }
            for host in snapshot.hosts.values()
        ],
        "vms": [{"id": vm.id, "state": vm.state, "host": vm.host} for vm in snapshot.vms.values()],
    }
