"""``equipoise whatif``: the same pass on a cluster with hosts gone, lost or new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from equipoise.balance.placement import WAKING
from equipoise.balance.whatif import Imagined, imagine
from equipoise.cli.advice.recommend import as_row, document, explained, show, show_faults
from equipoise.cli.answer import console, plain, print_json
from equipoise.cli.read import read_amendment, read_inventory
from equipoise.errors import InvalidInput, Problem
from equipoise.model.amendment import amended
from equipoise.model.estimate import Estimates
from equipoise.model.files.words import closest
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is to be otherwise."""

    remove: Sequence[str] = ()
    add: Path | None = None
    fail: Sequence[str] = ()
    why: Sequence[str] = ()


def run(path: Path, wishes: Changes, *, as_json: bool) -> int:
    """Print what would be done; 1 if a VM would run nowhere or a fault would stay."""
    inventory = read_inventory(path)
    new: list[VmId] = []
    if wishes.add is not None:
        amendment = read_amendment(wishes.add, inventory)
        new = [vm.id for vm in amendment.vms if vm.host is None]
        inventory = amended(inventory, amendment)
    snapshot = Snapshot.of(inventory)
    new = [vm for vm in new if snapshot.vms[vm].state is VmState.READY]
    remove, fail = (_hosts(names, snapshot, path) for names in (wishes.remove, wishes.fail))
    began = perf_counter()
    found = imagine(snapshot, Estimates(), remove=remove, fail=fail, new=new)
    wall_s = perf_counter() - began
    told = explained(found.done, wishes.why, str(path))
    if as_json:
        print_json(document(found.done, told) | _more(found) | {"wall_s": round(wall_s, 4)})
    else:
        _show_restarts(found)
        show(found.done, told)
    return 1 if found.unplaced or found.done.advice.faults else 0


def _hosts(names: Sequence[str], snapshot: Snapshot, path: Path) -> list[HostId]:
    """The hosts that were named, also several with commas between them."""
    wanted = [name for some in names for name in some.split(",") if name]
    problems = []
    for name in wanted:
        if name not in snapshot.hosts:
            near = closest(name, snapshot.hosts)
            cure = f"did you mean {near}?" if near else "name a host of the inventory"
            problems.append(Problem(key=name, what="there is no such host", cure=cure))
    if problems:
        raise InvalidInput(str(path), problems)
    return [HostId(name) for name in dict.fromkeys(wanted)]


def _more(found: Imagined) -> dict[str, object]:
    restarts = found.restarts
    return {
        "restarts": [{"vm": one.vm, "host": one.host} for one in restarts.placed],
        "prerequisite_moves": [
            {"vm": one.vm, "from": one.source, "to": one.target} for one in restarts.moves
        ],
        "power_ons": list(restarts.wakes),
        "unplaced": list(found.unplaced),
        "restart_faults": [as_row(fault) for fault in restarts.faults],
    }


def _show_restarts(found: Imagined) -> None:
    out = console()
    for host in found.restarts.wakes:
        out.print(f"wake {plain(host)}: {WAKING}")
    for move in found.restarts.moves:
        out.print(f"move {plain(move.vm)} from {plain(move.source)} to {plain(move.target)}")
    for one in found.restarts.placed:
        out.print(f"start {plain(one.vm)} on {plain(one.host)}")
    show_faults(found.restarts.faults)
    if found.unplaced:
        out.print(f"without a place: {plain(', '.join(found.unplaced))}")
