"""The parts of a claim: each is looked at once, and then left alone unless somebody touches it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.spec.cells import Cell, WatchedView
from equipoise.spec.demand import Demand
from equipoise.spec.language.syntax import Term
from equipoise.spec.view import Frame, Reads, View


@dataclass(slots=True, eq=False)
class Part:
    """A formula that must hold for a claim to be kept, and how it is before the plan."""

    term: Term
    names: Mapping[str, Any]
    cell: Cell | None = None
    holds: bool = True
    reads: Reads | None = None
    """What decided it; nothing if that cannot be said, as of a formula about the plan itself."""

    def is_touched(self, vms: Set[VmId], hosts: Set[HostId]) -> bool:
        """Whether it may change if only these VMs and hosts do."""
        if self.reads is None:
            return True
        return not (self.reads.vms.isdisjoint(vms) and self.reads.hosts.isdisjoint(hosts))


@dataclass(slots=True)
class Parts:
    """The parts of every claim, in one state."""

    snapshot: Snapshot
    _found: dict[Demand, tuple[Part, ...]] = field(default_factory=dict)
    _view: WatchedView | None = None

    def of(self, demand: Demand) -> tuple[Part, ...]:
        """The parts of a demand."""
        if demand not in self._found:
            self._found[demand] = tuple(self._look(demand))
        return self._found[demand]

    def may_change(self, demand: Demand, vms: Set[VmId], hosts: Set[HostId]) -> bool:
        """Whether a demand may be broken, or is, if only these VMs and hosts change."""
        return any(not part.holds or part.is_touched(vms, hosts) for part in self.of(demand))

    def _look(self, demand: Demand) -> Collection[Part]:
        home, name = demand.specification, demand.name
        formula = home.constraints[name].formula
        if home.looks_beyond(name):
            return (Part(formula, demand.arguments),)
        frame = self._frame()
        found = []
        for cell in home.cells(name, demand.arguments, frame):
            reads = cell.judge(frame)
            clear = None if cell.trouble is not None else reads
            found.append(Part(cell.term, cell.names, cell, cell.holds, clear))
        return found

    def _frame(self) -> Frame:
        if self._view is None:
            self._view = WatchedView(View.of(self.snapshot).state)
        return Frame(self._view, self._view, self._view)
