"""``equipoise place``: hosts for new VMs, and the actions that must come first."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from equipoise.api.loading import read_amendment, read_inventory
from equipoise.balance.placement import POWER_ON_REASON, PlacementAdvice, place_vms
from equipoise.cli.advice.recommend import show_faults
from equipoise.cli.output import console, fit_to_terminal, make_table, print_document, printable
from equipoise.documents.advice import place_document
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.estimate import Estimates
from equipoise.model.inventory import amend
from equipoise.model.quantity import format_count
from equipoise.model.state.snapshot import Snapshot

ALTERNATIVES_SHOWN: Final = 3


def run(path: Path, vms: Path, *, as_json: bool) -> int:
    """Print the hosts of the new VMs; 1 if a VM has none."""
    inventory = read_inventory(path)
    amendment = read_amendment(vms, inventory)
    if not amendment.vms:
        problem = InputProblem(
            key="vms",
            what="the file has no VM",
            cure="list the VMs to start under vms",
            code="empty-value",
        )
        raise InvalidInput(str(vms), [problem])
    snapshot = Snapshot.of(amend(inventory, amendment))
    advice = place_vms(snapshot, [vm.id for vm in amendment.vms], Estimates())
    if as_json:
        print_document(place_document(advice))
    else:
        _show(snapshot, advice)
    return 1 if advice.faults else 0


def _show(snapshot: Snapshot, advice: PlacementAdvice) -> None:
    out = console()
    count = format_count(len(advice.placed), "VM")
    out.print(f"[bold]{printable(snapshot.name)}[/bold]: {count} to start")
    for host in advice.wakes:
        out.print(f"first wake {printable(host)}: {POWER_ON_REASON}")
    for move in advice.moves:
        vm, source, target = map(printable, (move.vm, move.source, move.target))
        out.print(f"first migrate {vm} from {source} to {target}")
    if advice.placed:
        rows = make_table("VM", "host", "imbalance", "alternatives", right=("imbalance",))
        for start in advice.placed:
            alternatives = [
                f"{printable(option.host)} ({option.imbalance:.3f})"
                for option in start.alternatives[:ALTERNATIVES_SHOWN]
            ]
            more = len(start.alternatives) - ALTERNATIVES_SHOWN
            alternatives += [f"{more} more"] if more > 0 else []
            rows.add_row(
                printable(start.vm),
                printable(start.host),
                f"{start.imbalance:.3f}",
                ", ".join(alternatives),
            )
        out.print(fit_to_terminal(rows))
    show_faults(advice.faults)
