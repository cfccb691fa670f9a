"""``equipoise whatif`` and ``equipoise place``: advice for a cluster with changes or new VMs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from time import perf_counter
from typing import Final

from equipoise.api.advice import recommendation_of
from equipoise.api.loading import read_amendment, read_inventory_with_warnings
from equipoise.balance.placement import POWER_ON_REASON, PlacementAdvice, StartAdvice, place_vms
from equipoise.balance.run_pass import WhatIfResult, run_whatif
from equipoise.cli.advice.recommend import explain_subjects, show_advice, show_faults
from equipoise.cli.output import console, print_document, print_warnings, printable, text_table
from equipoise.documents.advice import place_document, whatif_document
from equipoise.documents.json_document import warning_rows
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.action import kind_of
from equipoise.model.action_durations import Estimates
from equipoise.model.diagnostics import closest_match
from equipoise.model.inventory import Inventory, amend
from equipoise.model.quantity import HostId, VmId, format_count
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState

ALTERNATIVES_SHOWN: Final = 3


def run(
    path: Path,
    *,
    remove: Sequence[str],
    add: Path | None,
    fail: Sequence[str],
    why: Sequence[str],
    as_json: bool,
) -> int:
    """Print the recommendations; 1 if a VM has no host or a fault remains."""
    inventory, warnings = read_inventory_with_warnings(path)
    new: list[VmId] = []
    if add is not None:
        amendment = read_amendment(add, inventory)
        new = [vm.id for vm in amendment.vms if vm.host is None]
        inventory = amend(inventory, amendment)
    snapshot = Snapshot.of(inventory)
    new = [vm for vm in new if snapshot.vms[vm].state is VmState.READY]
    removed, failed = (_named_hosts(names, snapshot, path) for names in (remove, fail))
    began = perf_counter()
    result = run_whatif(snapshot, Estimates(), remove=removed, fail=failed, new=new)
    wall_s = perf_counter() - began
    explanations = explain_subjects(result.done, why, str(path))
    if as_json:
        rows = warning_rows(str(path), warnings)
        print_document(whatif_document(result, explanations, wall_s=wall_s, warnings=rows))
    else:
        print_warnings(str(path), warnings)
        _show_restarts(result)
        show_advice(recommendation_of(result.done), explanations, why)
    return 1 if result.unplaced or result.done.advice.unresolved else 0


def _named_hosts(names: Sequence[str], snapshot: Snapshot, path: Path) -> list[HostId]:
    """Return the named hosts; an option can name several, separated by commas."""
    wanted = [name for option in names for name in option.split(",") if name]
    _check_names(wanted, snapshot.hosts, "host", path)
    return [HostId(name) for name in dict.fromkeys(wanted)]


def _named_vms(names: Sequence[str], inventory: Inventory, path: Path) -> list[VmId]:
    """Return the named VMs of the inventory."""
    _check_names(names, [vm.id for vm in inventory.vms], "VM", path)
    return [VmId(name) for name in dict.fromkeys(names)]


def _check_names(names: Sequence[str], known: Collection[str], noun: str, path: Path) -> None:
    """Raise for names that the inventory does not have, all at once."""
    problems = []
    for name in names:
        if name not in known:
            near = closest_match(name, known)
            cure = f"did you mean {near}?" if near else f"name a {noun} of the inventory"
            what = f"there is no such {noun}"
            problems.append(InputProblem(key=name, what=what, cure=cure, code="unknown-name"))
    if problems:
        raise InvalidInput(str(path), problems)


def _show_restarts(result: WhatIfResult) -> None:
    out, restarts = console(), result.restarts
    for host in restarts.wakes:
        out.print(f"wake {printable(host)}: {POWER_ON_REASON}")
    for move in restarts.moves:
        vm, source, target = map(printable, (move.vm, move.source, move.target))
        out.print(f"migrate {vm} from {source} to {target}")
    for start in restarts.placed:
        out.print(f"start {printable(start.vm)} on {printable(start.host)}")
    show_faults(restarts.faults)
    if result.unplaced:
        out.print(f"VMs without a host: {printable(', '.join(result.unplaced))}")


def run_place(path: Path, vms: Path | None, names: Sequence[str], *, as_json: bool) -> int:
    """Print the hosts of VMs that start, resume or move; 1 if a VM has none."""
    inventory, warnings = read_inventory_with_warnings(path)
    known = _named_vms(names, inventory, path)
    new: list[VmId] = []
    if vms is not None:
        amendment = read_amendment(vms, inventory)
        new = [vm.id for vm in amendment.vms]
        inventory = amend(inventory, amendment)
    if not new and not known:
        raise InvalidInput.of(
            str(vms or path),
            "there is no VM to place",
            key="vms",
            cure="list new VMs in a file of --vms, or name a VM of the inventory with --vm",
            code="empty-value",
        )
    snapshot = Snapshot.of(inventory)
    advice = place_vms(snapshot, [*new, *known], Estimates(), resident=bool(known))
    if as_json:
        print_document(place_document(advice, warning_rows(str(path), warnings)))
    else:
        print_warnings(str(path), warnings)
        _show_placement(snapshot, advice)
    return 1 if advice.faults else 0


def _show_placement(snapshot: Snapshot, advice: PlacementAdvice) -> None:
    out = console()
    count = format_count(len(advice.placed), "VM")
    out.print(f"[bold]{printable(snapshot.name)}[/bold]: {count} to place")
    for host in advice.wakes:
        out.print(f"first wake {printable(host)}: {POWER_ON_REASON}")
    for move in advice.moves:
        vm, source, target = map(printable, (move.vm, move.source, move.target))
        out.print(f"first migrate {vm} from {source} to {target}")
    if advice.placed:
        rows = (
            (
                start.vm,
                kind_of(start.action),
                start.host,
                f"{start.imbalance:.3f}",
                _demand_text(start),
                _alternatives_text(start),
            )
            for start in advice.placed
        )
        columns = ("VM", "action", "host", "imbalance", "demand", "alternatives")
        out.print(text_table(columns, rows, right=("imbalance",)))
    for warning in advice.warnings:
        out.print(f"[yellow]warning[/yellow] {warning.code}: {printable(warning.detail)}")
    show_faults(advice.faults)


def _demand_text(start: StartAdvice) -> str:
    """Return the demand that the placement counts with."""
    demand = f"{start.demand.cpu_mhz:,} MHz, {start.demand.memory_mib:,} MiB"
    return f"{demand} (estimated)" if start.estimated else demand


def _alternatives_text(start: StartAdvice) -> str:
    alternatives = [
        f"{option.host} ({option.imbalance:.3f})"
        for option in start.alternatives[:ALTERNATIVES_SHOWN]
    ]
    more = len(start.alternatives) - ALTERNATIVES_SHOWN
    return ", ".join([*alternatives, *([f"{more} more"] if more > 0 else [])])
