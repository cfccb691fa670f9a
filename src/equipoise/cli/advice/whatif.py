"""``equipoise whatif``: the pass of ``recommend`` on a changed cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from equipoise.api.loading import read_amendment, read_inventory
from equipoise.balance.placement import POWER_ON_REASON
from equipoise.balance.run_pass import WhatIfResult, run_whatif
from equipoise.cli.advice.recommend import explain_subjects, show_advice, show_faults
from equipoise.cli.output import console, print_document, printable
from equipoise.documents.advice import whatif_document
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.diagnostics import closest_match
from equipoise.model.estimate import Estimates
from equipoise.model.inventory import amend
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfOptions:
    """Changes of the cluster, and explanations."""

    remove: Sequence[str] = ()
    add: Path | None = None
    fail: Sequence[str] = ()
    why: Sequence[str] = ()


def run(path: Path, options: WhatIfOptions, *, as_json: bool) -> int:
    """Print the recommendations; 1 if a VM has no host or a fault remains."""
    inventory = read_inventory(path)
    new: list[VmId] = []
    if options.add is not None:
        amendment = read_amendment(options.add, inventory)
        new = [vm.id for vm in amendment.vms if vm.host is None]
        inventory = amend(inventory, amendment)
    snapshot = Snapshot.of(inventory)
    new = [vm for vm in new if snapshot.vms[vm].state is VmState.READY]
    remove, fail = (_named_hosts(names, snapshot, path) for names in (options.remove, options.fail))
    began = perf_counter()
    result = run_whatif(snapshot, Estimates(), remove=remove, fail=fail, new=new)
    wall_s = perf_counter() - began
    explanations = explain_subjects(result.done, options.why, str(path))
    if as_json:
        print_document(whatif_document(result, explanations, wall_s=wall_s))
    else:
        _show_restarts(result)
        show_advice(result.done, explanations)
    return 1 if result.unplaced or result.done.advice.faults else 0


def _named_hosts(names: Sequence[str], snapshot: Snapshot, path: Path) -> list[HostId]:
    """Return the named hosts; an option can name several, separated by commas."""
    wanted = [name for option in names for name in option.split(",") if name]
    problems = []
    for name in wanted:
        if name not in snapshot.hosts:
            near = closest_match(name, snapshot.hosts)
            cure = f"did you mean {near}?" if near else "name a host of the inventory"
            problems.append(
                InputProblem(key=name, what="there is no such host", cure=cure, code="unknown-name")
            )
    if problems:
        raise InvalidInput(str(path), problems)
    return [HostId(name) for name in dict.fromkeys(wanted)]


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
