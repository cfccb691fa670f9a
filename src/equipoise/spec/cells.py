"""A demand in small parts, each of which knows what it was decided by.

``!(v : vs) p`` holds if ``p`` holds for each ``v``; so each is a cell of its own, with the VMs and
hosts it looked at. A cell is judged again only when one of these was touched: whatever a formula
says, it can depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from equipoise.errors import InvalidInput
from equipoise.model.change.draft import Touched
from equipoise.model.host import Host
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm
from equipoise.spec.choose import in_order
from equipoise.spec.compile import Closure, Compiler
from equipoise.spec.language.syntax import (
    Binder,
    Binding,
    Call,
    ForAll,
    Let,
    Moment,
    Operation,
    Term,
    names_in,
    parts_of,
)
from equipoise.spec.tally import Memory
from equipoise.spec.view import Frame, Reads, View

T = TypeVar("T")
FEW: Final = 16
"""Up to how many members it is not worth while to judge each pair by itself."""


class WatchedView(View):
    """A view that notes what it is asked for."""

    __slots__ = ()

    def everything(self) -> None:
        """All VMs and hosts are looked at."""
        self.reads.vms |= self.state.vm_names()
        self.reads.hosts |= self.state.host_names()

    def vm(self, name: VmId) -> Vm:
        """A VM, by its name."""
        self.reads.vms.add(name)
        return self.vms[name]

    def host(self, name: HostId) -> Host:
        """A host, by its name."""
        self.reads.hosts.add(name)
        return self.hosts[name]

    def residents(self, host: HostId) -> tuple[VmId, ...]:
        """The VMs that run or sleep on a host; it is touched when one of them changes."""
        self.reads.hosts.add(host)
        return self.state.residents(host)

    def running(self, host: HostId) -> frozenset[VmId]:
        """The VMs that run on a host."""
        self.reads.hosts.add(host)
        return self.state.runners(host)

    def on_vm(self, vm: VmId) -> tuple[Step, ...]:
        """The actions under way on a VM."""
        self.reads.vms.add(vm)
        return super().on_vm(vm)

    def on_host(self, host: HostId) -> tuple[Step, ...]:
        """The actions under way that touch a host."""
        self.reads.hosts.add(host)
        return super().on_host(host)


@dataclass(slots=True, eq=False)
class Cell:
    """One part of a demand: a formula whose variables have values."""

    term: Term
    names: Mapping[str, Any]
    closure: Closure
    places: list[Any]
    holds: bool = True
    trouble: InvalidInput | None = None
    """Why it has no value, if it has none."""
    seen: Reads = field(default_factory=Reads)
    """Everything it has ever looked at itself, not counting the shares of large collections."""
    memory: Memory = field(default_factory=Memory)

    def judge(self, frame: Frame) -> Reads:
        """Judge it in a frame whose present is watched, and say what it looked at this time."""
        frame.now.reads = reads = Reads()
        frame.memory = self.memory
        self.memory.reads = Reads()
        self.trouble = None
        try:
            self.holds = bool(self.closure(frame, self.places))
        except InvalidInput as error:
            self.holds, self.trouble = False, error
        self.seen.add(reads)
        reads.add(self.memory.reads)
        return reads


class CellIndex(Generic[T]):
    """Which cells have looked at which VM and host, each with what it belongs to."""

    def __init__(self) -> None:
        self._by_vm: dict[VmId, dict[Cell, T]] = {}
        self._by_host: dict[HostId, dict[Cell, T]] = {}

    def add(self, cell: Cell, reads: Reads, of: T) -> None:
        """Note what a cell has looked at; what it looked at before is not forgotten."""
        for vm in reads.vms:
            self._by_vm.setdefault(vm, {})[cell] = of
        for host in reads.hosts:
            self._by_host.setdefault(host, {})[cell] = of

    def touching(self, touched: Touched) -> dict[Cell, T]:
        """The cells that may change their mind."""
        found: dict[Cell, T] = {}
        for vm in touched.vms:
            found.update(self._by_vm.get(vm, {}))
        for host in touched.hosts:
            found.update(self._by_host.get(host, {}))
        return found


class Splitter:
    """Splits formulas of one specification; what is the same for many demands is made once."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._closures: dict[tuple[int, tuple[str, ...]], Closure] = {}
        self._rests: dict[int, tuple[str, Term, Term] | None] = {}

    def cells(self, term: Term, names: Mapping[str, Any], frame: Frame) -> Iterator[Cell]:
        """The cells of a formula. The frame is asked only for what no plan can change."""
        match term:
            case Operation(operator="&"):
                yield from self.cells(term.left, names, frame)
                yield from self.cells(term.right, names, frame)
            case Let() if _fixed(term.value):
                value = self.closure(term.value, names)(frame, list(names.values()))
                yield from self.cells(term.body, {**names, term.name: value}, frame)
            case Call(moment=Moment.NOW) if term.function in self._compiler.declared and all(
                map(_fixed, term.arguments)
            ):
                yield from self._called(term, names, frame)
            case ForAll() if (first := self._first(term)) is not None:
                name, domain, rest = first
                members = self.closure(domain, names)(frame, list(names.values()))
                # A hidden name must give way, so that the places stay in the order of the names.
                outer = {known: value for known, value in names.items() if known != name}
                for value in members if isinstance(members, tuple) else in_order(members):
                    inside = {**outer, name: value}
                    if len(members) <= FEW and _goes_over(rest, domain):
                        # Of few, each with all others is looked at faster than all pairs.
                        yield self.cell(rest, inside)
                    else:
                        yield from self.cells(rest, inside, frame)
            case _:
                yield self.cell(term, names)

    def cell(self, term: Term, names: Mapping[str, Any]) -> Cell:
        """One cell for all of a formula."""
        return Cell(term, names, self.closure(term, names), list(names.values()))

    def _called(self, term: Call, names: Mapping[str, Any], frame: Frame) -> Iterator[Cell]:
        constraint = self._compiler.declared[term.function]
        values = list(names.values())
        given = {
            one.name: self.closure(argument, names)(frame, values)
            for one, argument in zip(constraint.parameters, term.arguments, strict=True)
        }
        yield from self.cells(constraint.formula, given, frame)

    def _first(self, term: ForAll) -> tuple[str, Term, Term] | None:
        """The first variable, its domain and what is left, if no plan can change the domain."""
        if id(term) not in self._rests:
            first, *others = term.binders
            name, *more = first.names
            if more:
                others.insert(0, Binder(tuple(more), first.binding, first.domain))
            rest = ForAll(tuple(others), term.body, place=term.place) if others else term.body
            splits = first.binding is Binding.MEMBER and _fixed(first.domain)
            if name in more or (more and name in names_in(first.domain)):
                splits = False  # what comes next would see the new meaning of the name
            self._rests[id(term)] = (name, first.domain, rest) if splits else None
        return self._rests[id(term)]

    def closure(self, term: Term, names: Mapping[str, Any]) -> Closure:
        """The compiled form of a term in which these names have places, in their order."""
        key = id(term), tuple(names)
        found = self._closures.get(key)
        if found is None:
            scope = {name: place for place, name in enumerate(names)}
            found = self._closures[key] = self._compiler.term(term, scope)
        return found


def _goes_over(term: Term, domain: Term) -> bool:
    """Whether a formula is about all of a collection once more."""
    return isinstance(term, ForAll) and term.binders[0].domain is domain


def _fixed(term: Term) -> bool:
    """Whether a term has the same value at every moment of a plan."""
    return not any(isinstance(part, Call) for part in parts_of(term))
