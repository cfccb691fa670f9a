"""A requirement split into cells, each of which records what it has read.

``!(v : vs) p`` holds if ``p`` holds for each ``v``: each is a cell, with the VMs and hosts that it
has read. A cell is judged again only when one of these was touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from equipoise.errors import InvalidInput
from equipoise.model.host import Host
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.draft import TouchedEntities
from equipoise.model.vm import Vm
from equipoise.spec.evaluate.breaches import Breaches, BreachFinder, BreachSource
from equipoise.spec.evaluate.compile import Closure, Compiler
from equipoise.spec.evaluate.domains import in_order
from equipoise.spec.evaluate.incremental import CollectionCache
from equipoise.spec.evaluate.view import EvaluationContext, ReadSet, StateView
from equipoise.spec.language import syntax
from equipoise.spec.language.syntax import Binding, StateRef, Term, names_in, subterms

T = TypeVar("T")
PAIRWISE_MAX: Final = 16
"""Up to this many members, one cell for each member is faster than one cell for each pair."""


class TrackingView(StateView):
    """A view that records what a formula reads."""

    __slots__ = ()

    def read_all(self) -> None:
        """Record that all VMs and hosts are read."""
        self.reads.vms |= self.state.vm_names()
        self.reads.hosts |= self.state.host_names()

    def vm(self, name: VmId) -> Vm:
        """Return a VM by its name."""
        self.reads.vms.add(name)
        return self.vms[name]

    def host(self, name: HostId) -> Host:
        """Return a host by its name."""
        self.reads.hosts.add(name)
        return self.hosts[name]

    def residents(self, host: HostId) -> tuple[VmId, ...]:
        """Return the VMs that run or sleep on a host; a change of one of them touches the host."""
        self.reads.hosts.add(host)
        return self.state.residents(host)

    def running(self, host: HostId) -> frozenset[VmId]:
        """Return the VMs that run on a host."""
        self.reads.hosts.add(host)
        return self.state.running_vms(host)

    def on_vm(self, vm: VmId) -> tuple[Step, ...]:
        """Return the actions under way on a VM."""
        self.reads.vms.add(vm)
        return super().on_vm(vm)

    def on_host(self, host: HostId) -> tuple[Step, ...]:
        """Return the actions under way that touch a host."""
        self.reads.hosts.add(host)
        return super().on_host(host)


@dataclass(slots=True, eq=False)
class FormulaCell:
    """One part of a requirement: a formula whose variables have values."""

    term: Term
    names: Mapping[str, Any]
    closure: Closure
    bindings: list[Any]
    holds: bool = True
    error: InvalidInput | None = None
    """Why the formula has no value; ``None`` if it has one."""
    seen: ReadSet = field(default_factory=ReadSet)
    """Everything that it has ever read, except the contributions to large collections."""
    collections: CollectionCache = field(default_factory=CollectionCache)

    def judge(self, context: EvaluationContext) -> ReadSet:
        """Evaluate the cell in a context with a tracking view; return what it read this time."""
        # Each cell records its reads alone; the view is shared by all cells of a moment.
        context.now.reads = reads = ReadSet()
        context.collections = self.collections
        self.collections.reads = ReadSet()
        self.error = None
        try:
            self.holds = bool(self.closure(context, self.bindings))
        except InvalidInput as error:
            self.holds, self.error = False, error
        # ``seen`` grows: an earlier evaluation may have taken another branch of the formula.
        self.seen.add(reads)
        reads.add(self.collections.reads)
        return reads

    def breaches(self, owner: BreachSource, context: EvaluationContext) -> tuple[Breaches, ReadSet]:
        """Return what violates the cell in a context with a tracking view, and what it read.

        A formula stops at the first violated element; its breaches are read to the last one.
        """
        context.now.reads = reads = ReadSet()
        context.collections = self.collections
        self.collections.reads = ReadSet()
        breaches = BreachFinder(owner, context).find(self.term, self.names)
        context.collections = None
        self.seen.add(reads)
        reads.add(self.collections.reads)
        return breaches, reads


class CellIndex(Generic[T]):
    """The cells that have read each VM and host, each with its owner."""

    def __init__(self) -> None:
        self._by_vm: dict[VmId, dict[FormulaCell, T]] = {}
        self._by_host: dict[HostId, dict[FormulaCell, T]] = {}

    def add(self, cell: FormulaCell, reads: ReadSet, owner: T) -> None:
        """Add what a cell has read; earlier entries of the cell stay."""
        for vm in reads.vms:
            self._by_vm.setdefault(vm, {})[cell] = owner
        for host in reads.hosts:
            self._by_host.setdefault(host, {})[cell] = owner

    def touching(self, touched: TouchedEntities) -> dict[FormulaCell, T]:
        """Return the cells that may have changed because of what was touched."""
        # A dict, not a set: cells are judged in a fixed order, so reports do not depend on hashes.
        cells: dict[FormulaCell, T] = {}
        for vm in touched.vms:
            cells.update(self._by_vm.get(vm, {}))
        for host in touched.hosts:
            cells.update(self._by_host.get(host, {}))
        return cells


class FormulaSplitter:
    """Splits the formulas of one specification; requirements share the compiled parts."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._closures: dict[tuple[int, tuple[str, ...]], Closure] = {}
        self._first_binders: dict[int, tuple[str, Term, Term] | None] = {}

    def cells(
        self, term: Term, names: Mapping[str, Any], context: EvaluationContext
    ) -> Iterator[FormulaCell]:
        """Yield the cells of a formula; the context is read only for what no plan can change."""
        match term:
            # A conjunction holds if both sides hold, so each side is a cell of its own.
            case syntax.Operation(operator="&"):
                yield from self.cells(term.left, names, context)
                yield from self.cells(term.right, names, context)
            # A constant name can be substituted; any other one must be computed in each state.
            case syntax.Let() if _is_constant(term.value):
                value = self.closure(term.value, names)(context, list(names.values()))
                yield from self.cells(term.body, {**names, term.name: value}, context)
            case syntax.Call(moment=StateRef.NOW) if (
                term.function in self._compiler.declared and all(map(_is_constant, term.arguments))
            ):
                yield from self._called(term, names, context)
            # A quantifier over a constant domain splits into one cell for each value.
            case syntax.ForAll() if (first := self._first(term)) is not None:
                name, domain, rest = first
                members = self.closure(domain, names)(context, list(names.values()))
                # A name that hides an outer one replaces it, so that the bindings keep their order.
                outer = {known: value for known, value in names.items() if known != name}
                for value in members if isinstance(members, tuple) else in_order(members):
                    inside = {**outer, name: value}
                    if len(members) <= PAIRWISE_MAX and _iterates_again(rest, domain):
                        # For few members, one cell with an inner loop is faster than all pairs.
                        yield self.cell(rest, inside)
                    else:
                        yield from self.cells(rest, inside, context)
            case _:
                yield self.cell(term, names)

    def cell(self, term: Term, names: Mapping[str, Any]) -> FormulaCell:
        """Return one cell for the whole formula."""
        return FormulaCell(term, names, self.closure(term, names), list(names.values()))

    def _called(
        self, term: syntax.Call, names: Mapping[str, Any], context: EvaluationContext
    ) -> Iterator[FormulaCell]:
        constraint = self._compiler.declared[term.function]
        values = list(names.values())
        given = {
            parameter.name: self.closure(argument, names)(context, values)
            for parameter, argument in zip(constraint.parameters, term.arguments, strict=True)
        }
        yield from self.cells(constraint.formula, given, context)

    def _first(self, term: syntax.ForAll) -> tuple[str, Term, Term] | None:
        """Return the first variable, its domain and the rest, if no plan can change the domain."""
        if id(term) not in self._first_binders:
            first, *others = term.binders
            name, *more = first.names
            if more:
                others.insert(0, syntax.Binder(tuple(more), first.binding, first.domain))
            rest = (
                syntax.ForAll(tuple(others), term.body, place=term.place) if others else term.body
            )
            splits = first.binding is Binding.MEMBER and _is_constant(first.domain)
            if name in more or (more and name in names_in(first.domain)):
                splits = False  # the next variable would see the new meaning of the name
            self._first_binders[id(term)] = (name, first.domain, rest) if splits else None
        return self._first_binders[id(term)]

    def closure(self, term: Term, names: Mapping[str, Any]) -> Closure:
        """Return the compiled form of a term in which these names are bound, in their order."""
        key = id(term), tuple(names)
        closure = self._closures.get(key)
        if closure is None:
            scope = {name: index for index, name in enumerate(names)}
            closure = self._closures[key] = self._compiler.term(term, scope)
        return closure


def _iterates_again(term: Term, domain: Term) -> bool:
    """Whether a formula ranges over the same collection once more."""
    return isinstance(term, syntax.ForAll) and term.binders[0].domain is domain


def _is_constant(term: Term) -> bool:
    """Whether a term has the same value at every moment of a plan."""
    # Any call counts as a read of the state, also ``card`` and ``range``, which read only terms.
    return not any(isinstance(part, syntax.Call) for part in subterms(term))
