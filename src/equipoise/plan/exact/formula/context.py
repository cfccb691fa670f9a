"""What a formula reads while the plan is undecided: symbolic states, and the bound formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from equipoise.model.quantity import HostId, VmId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.exact.solver.builder import IntExpression, Literal
from equipoise.spec.language.syntax import StateRef, Term
from equipoise.spec.specification import Specification


class SymbolicState(Protocol):
    """What a formula may read of a moment. The snapshot has what no action changes."""

    snapshot: Snapshot

    def names(self, kind: str) -> frozenset[Any]:
        """Return the names of all VMs or of all hosts."""
        ...

    def vm_state(self, vm: VmId) -> Any:
        """Return the state of a VM."""
        ...

    def vm_host(self, vm: VmId) -> Any:
        """Return the host of a VM."""
        ...

    def host_state(self, host: HostId) -> Any:
        """Return the state of a host."""
        ...

    def running(self, host: HostId) -> Any:
        """Return the VMs that run on a host."""
        ...

    def hosted(self, host: HostId) -> Any:
        """Return the VMs that run or sleep on a host, and those on their way to it."""
        ...

    def consumption(self, vm: VmId, resource: str) -> IntExpression:
        """Return the amount of a resource that a VM takes."""
        ...

    def underway_on(self, vm: VmId) -> Any:
        """Return the actions under way on a VM."""
        ...

    def underway_at(self, host: HostId) -> Any:
        """Return the actions under way that touch a host."""
        ...

    def actions_on(self, vm: VmId) -> Any:
        """Return the actions of the plan on a VM, at any time."""
        ...

    def actions_at(self, host: HostId) -> Any:
        """Return the actions of the plan that touch a host, at any time."""
        ...


BoundNames = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SymbolicContext:
    """The states that a formula may read; all of them may be undecided."""

    now: SymbolicState
    initial: SymbolicState
    final: SymbolicState
    moments: Sequence[tuple[SymbolicState, Literal]] = ()
    """All moments of the plan, each with the literal that it exists."""

    def at(self, moment: StateRef) -> SymbolicState:
        """Return the state that a call reads."""
        if moment is StateRef.NOW:
            return self.now
        return self.initial if moment is StateRef.INITIAL else self.final


@dataclass(frozen=True, slots=True)
class BoundFormula:
    """A formula of a specification, in which some names have values."""

    owner: Specification
    term: Term
    names: BoundNames
