"""``equipoise place``: where new VMs should start, and what has to be done before."""

from __future__ import annotations

from pathlib import Path

from equipoise.balance.placement import WAKING, Placement, place
from equipoise.cli.advice.recommend import as_row, show_faults
from equipoise.cli.answer import console, fitted, plain, print_json, table
from equipoise.cli.read import read_amendment, read_inventory
from equipoise.errors import InvalidInput, Problem
from equipoise.model.amendment import amended
from equipoise.model.estimate import Estimates
from equipoise.model.snapshot import Snapshot
from equipoise.model.words import counted

SHOWN = 3


def run(path: Path, vms: Path, *, as_json: bool) -> int:
    """Print where the VMs should start; 1 if some can start nowhere."""
    inventory = read_inventory(path)
    amendment = read_amendment(vms, inventory)
    if not amendment.vms:
        cure = "list those that are to start under vms"
        raise InvalidInput(str(vms), [Problem(key="vms", what="there is no VM in it", cure=cure)])
    snapshot = Snapshot.of(amended(inventory, amendment))
    found = place(snapshot, [vm.id for vm in amendment.vms], Estimates())
    if as_json:
        print_json(document(found))
    else:
        _show(snapshot, found)
    return 1 if found.faults else 0


def document(found: Placement) -> dict[str, object]:
    """The answer as the JSON contract wants it."""
    return {
        "placements": [
            {
                "vm": one.vm,
                "host": one.host,
                "imbalance": round(one.imbalance, 6),
                "alternatives": [
                    {"host": other.host, "imbalance": round(other.imbalance, 6)}
                    for other in one.alternatives
                ],
            }
            for one in found.placed
        ],
        "prerequisite_moves": [
            {"vm": one.vm, "from": one.source, "to": one.target} for one in found.moves
        ],
        "power_ons": list(found.wakes),
        "faults": [as_row(fault) for fault in found.faults],
    }


def _show(snapshot: Snapshot, found: Placement) -> None:
    out = console()
    out.print(f"[bold]{plain(snapshot.name)}[/bold]: {counted(len(found.placed), 'VM')} to start")
    for host in found.wakes:
        out.print(f"first wake {plain(host)}: {WAKING}")
    for move in found.moves:
        out.print(f"first move {plain(move.vm)} from {plain(move.source)} to {plain(move.target)}")
    if found.placed:
        rows = table("VM", "host", "imbalance then", "or", right=("imbalance then",))
        for one in found.placed:
            others = [f"{plain(o.host)} ({o.imbalance:.3f})" for o in one.alternatives[:SHOWN]]
            more = len(one.alternatives) - SHOWN
            others += [f"{more} more"] if more > 0 else []
            rows.add_row(plain(one.vm), plain(one.host), f"{one.imbalance:.3f}", ", ".join(others))
        out.print(fitted(rows))
    show_faults(found.faults)
