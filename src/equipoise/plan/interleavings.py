"""Interleavings: the orders in which overlapping actions may end.

The gate judges the moments of a plan as it is timed. During execution, overlapping actions end in
any order, and one of them may fail. So before a step starts, every continuous requirement that it
may affect is judged in each possible state: the step under way or ended, and each other action
under way ended or not. A step that could violate a requirement waits until fewer actions are open.
For sums over large collections the worst case is bounded without trying all orders of ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any, Final, TypeVar

from equipoise.errors import InvalidInput
from equipoise.model.action import Migrate
from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.host import Host
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft, TouchedEntities
from equipoise.model.state.snapshot import LastPowerChange, RunningAction
from equipoise.model.vm import Vm, VmState
from equipoise.plan.preconditions import FailedPrecondition
from equipoise.spec.evaluate.breaches import Breaches, worse_breaches
from equipoise.spec.evaluate.cells import CellIndex, FormulaCell, TrackingView
from equipoise.spec.evaluate.domains import subsets
from equipoise.spec.evaluate.explain import FormulaFailure
from equipoise.spec.evaluate.view import EvaluationContext, ReadSet, StateView
from equipoise.spec.language import syntax
from equipoise.spec.language.syntax import Term
from equipoise.spec.requirement import Requirement

K = TypeVar("K")
V = TypeVar("V")


class _MapOverlay(Mapping[K, V]):
    """A map in which some values replace those of the map below."""

    __slots__ = ("_below", "own")

    def __init__(self, below: Mapping[K, V]) -> None:
        self._below = below
        self.own: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        return self.own[key] if key in self.own else self._below[key]

    def __contains__(self, key: object) -> bool:
        return key in self._below  # an overlay replaces values and adds no keys

    def __iter__(self) -> Iterator[K]:
        return iter(self._below)

    def __len__(self) -> int:
        return len(self._below)


class OverlayDraft(Draft):
    """A draft with hypothetical starts and ends of actions. VMs and hosts stay the same."""

    def __init__(self, base: Draft) -> None:
        self._base = base
        self.version, self.at_ms = base.version, base.at_ms
        self.name, self.settings, self.history = base.name, base.settings, base.history
        self._vms: _MapOverlay[VmId, Vm] = _MapOverlay(base.vms)
        self._hosts: _MapOverlay[HostId, Host] = _MapOverlay(base.hosts)
        vms: Any = self._vms
        hosts: Any = self._hosts
        self.vms, self.hosts = vms, hosts
        started: Any = _InFlightOverlay(base.in_flight)
        self.in_flight = started
        self._by_vm, self._by_host = {}, {}
        self._moved: dict[VmId, HostId | None] = {}
        self.touched_vms, self.touched_hosts = {}, {}

    def note_move(self, running: RunningAction, ended_ms: int) -> None:
        """Ignore the move: a hypothetical one is no measurement of speed."""

    def note_failed_move(self, running: RunningAction, ended_ms: int, *, late: bool) -> None:
        """Ignore the failure: a hypothetical one is no measurement."""

    def note_outside_change(self) -> None:
        """Ignore the change."""

    def link_sharing(self, action: Migrate) -> int:
        """Return 0: no speed is measured here."""
        return 0

    def note_power_change(self, host: HostId, switch: LastPowerChange) -> None:
        """Ignore the switch: a hypothetical one is no measurement."""

    def vm_names(self) -> frozenset[VmId]:
        """The names of all VMs."""
        return self._base.vm_names()

    def host_names(self) -> frozenset[HostId]:
        """The names of all hosts."""
        return self._base.host_names()

    def residents(self, host: HostId) -> tuple[VmId, ...]:
        """The VMs that run or sleep on a host."""
        stayed = (vm for vm in self._base.residents(host) if vm not in self._moved)
        return (*stayed, *(vm for vm, where in self._moved.items() if where == host))

    def running_vms(self, host: HostId) -> frozenset[VmId]:
        """The VMs that run on a host."""
        if host not in self.touched_hosts:
            return self._base.running_vms(host)
        vms = self.vms
        there = self.residents(host)
        return frozenset([vm for vm in there if vms[vm].state is VmState.RUNNING])

    def actions_on_vm(self, vm: VmId) -> tuple[RunningAction, ...]:
        """The actions under way on a VM."""
        begun = self._by_vm.get(vm, {}).values()
        return (*self._still_running(self._base.actions_on_vm(vm)), *begun)

    def actions_on_host(self, host: HostId) -> tuple[RunningAction, ...]:
        """The actions under way that touch a host."""
        begun = self._by_host.get(host, {}).values()
        return (*self._still_running(self._base.actions_on_host(host)), *begun)

    def put_host(self, host: Host) -> None:
        """Replace a host."""
        self._hosts.own[host.id] = host
        self.touched_hosts[host.id] = None

    def put_vm(self, vm: Vm) -> None:
        """Replace a VM."""
        before = self._vms[vm.id].host
        if before != vm.host or vm.id in self._moved:
            self._moved[vm.id] = vm.host
        self._vms.own[vm.id] = vm
        self.touched_vms[vm.id] = None
        hosts = (host for host in (before, vm.host) if host is not None)
        self.touched_hosts.update(dict.fromkeys(hosts))

    def put_action(self, running: RunningAction) -> None:
        """Add an action that is under way."""
        self._in_flight_overlay.own[running.step.id] = running
        self._index(running)
        self._touch(running)

    def drop_action(self, step: StepId) -> RunningAction:
        """Remove an action that has ended."""
        running = self._in_flight_overlay[step]
        if step in self._in_flight_overlay.own:
            del self._in_flight_overlay.own[step]
            self._forget(running)
        else:
            self._in_flight_overlay.ended.add(step)
        self._touch(running)
        return running

    @property
    def _in_flight_overlay(self) -> _InFlightOverlay:
        in_flight: Any = self.in_flight
        assert isinstance(in_flight, _InFlightOverlay)
        return in_flight

    def _still_running(self, actions: tuple[RunningAction, ...]) -> Iterator[RunningAction]:
        ended = self._in_flight_overlay.ended
        return (running for running in actions if running.step.id not in ended)


class _InFlightOverlay(Mapping[StepId, RunningAction]):
    """The actions under way: those below that have not ended, and those that began above."""

    __slots__ = ("_below", "ended", "own")

    def __init__(self, below: Mapping[StepId, RunningAction]) -> None:
        self._below = below
        self.own: dict[StepId, RunningAction] = {}
        self.ended: set[StepId] = set()

    def __getitem__(self, key: StepId) -> RunningAction:
        if key in self.ended:
            raise KeyError(key)
        return self.own[key] if key in self.own else self._below[key]

    def __iter__(self) -> Iterator[StepId]:
        yield from (step for step in self._below if step not in self.ended)
        yield from self.own

    def __len__(self) -> int:
        return len(self._below) - len(self.ended) + len(self.own)


GROUP_MAX: Final = 5
"""Largest group of actions with common contributions of which all orders of ends are tried."""

ContributionKeys = frozenset[Any]
MarginFunction = Callable[[frozenset[StepId]], int]
"""How far a comparison is from false, once a given set of actions has ended."""


def comparison_sides(term: Term) -> tuple[Term, Term] | None:
    """Return the two sides of a comparison of sums, the larger side first; else ``None``."""
    if not isinstance(term, syntax.Operation) or not (_adds_up(term.left) and _adds_up(term.right)):
        return None
    match term.operator:
        case "<=":
            return term.right, term.left
        case ">=":
            return term.left, term.right
        case _:
            return None


def _adds_up(term: Term) -> bool:
    """Whether a number is a sum of contributions, so that changes of several of them add up."""
    match term:
        case syntax.Number() | syntax.Name():
            return True
        case syntax.Minus(term=inner):
            return _adds_up(inner)
        case syntax.Operation(operator="+" | "-"):
            return _adds_up(term.left) and _adds_up(term.right)
        case syntax.Operation(operator="*"):
            plain = isinstance(term.left, syntax.Number | syntax.Name) or isinstance(
                term.right, syntax.Number | syntax.Name
            )
            return plain and _adds_up(term.left) and _adds_up(term.right)
        case syntax.Call(function="sum" | "card", arguments=(syntax.ListWhere(),)):
            return True
        case syntax.Call(
            function="card",
            arguments=(syntax.SetWhere(term=syntax.Name(name=name), binders=(binder,)),),
        ):
            return binder.names == (name,)  # each member counts once, and only for itself
        case _:
            return False


def worst_margin(margin: MarginFunction, contributions: Mapping[StepId, ContributionKeys]) -> int:
    """Return a lower bound of the margin over all sets of ended actions; -1 if a group is large.

    Actions without a common contribution change the margin independently of each other. So the
    worst case of the whole is the sum of the worst cases of the groups.
    """
    before = margin(frozenset())
    least = before
    # Sum of the worst cases of independent groups; each group is tried exhaustively, 2 ** size
    # sets of ended actions. The empty set is among them, so no group raises the bound.
    for group in _groups(contributions):
        if len(group) > GROUP_MAX:
            return -1
        least += min(margin(done) - before for done in subsets(group))
    return least


def _groups(contributions: Mapping[StepId, ContributionKeys]) -> list[list[StepId]]:
    """Return the actions grouped by common contributions, direct or through other actions."""
    groups: list[tuple[list[StepId], set[Any]]] = []
    for step, own in contributions.items():
        joined, touched = [step], set(own)
        separate = []
        for group, contributed in groups:
            if touched.isdisjoint(contributed):
                separate.append((group, contributed))
            else:
                joined, touched = [*group, *joined], touched | contributed
        groups = [*separate, (joined, touched)]
    return [group for group, _ in groups]


OPEN_ACTIONS_MAX: Final = 5
"""Number of other actions of which all orders of ends are tried; with more, a step waits."""


class InterleavingCheck:
    """The continuous requirements, each with what it reads in the current state."""

    def __init__(self, draft: Draft, requirements: Iterable[Requirement]) -> None:
        self._initial = StateView.of(draft.freeze())
        self._index: CellIndex[Requirement] = CellIndex()
        self._stale: dict[FormulaCell, Requirement] = {}
        self._keys: dict[StepId, ReadSet] = {}
        self._at_start: dict[FormulaCell, Breaches] = {}
        """What was violated when the plan began, of the cells for which this was needed."""
        context = EvaluationContext(self._initial, self._initial, self._initial)
        for requirement in requirements:
            if requirement.continuous and _is_about_states(requirement):
                cells = requirement.specification.cells(
                    requirement.name, requirement.arguments, context
                )
                self._stale.update(dict.fromkeys(cells, requirement))

    def mark_touched(self, touched: TouchedEntities) -> None:
        """Mark the cells that read a touched VM or host, so that they are judged again."""
        for cell, requirement in self._index.touching(touched).items():
            cell.collections.touch(touched)
            self._stale[cell] = requirement

    def watched_elements(self, step: StepId) -> tuple[VmId | HostId, ...]:
        """Return the VMs and hosts whose changes may cause or remove the risk of a step."""
        reads = self._keys.get(step)
        return () if reads is None else (*reads.vms, *reads.hosts)

    def risks(self, draft: Draft, step: Step) -> Iterator[FailedPrecondition]:
        """Yield the requirements that a step could violate in some order of ends."""
        self._refresh(draft)
        # Cells that read nothing of what the step touches cannot change by it: a step costs only
        # the rules that it concerns.
        affected = self._index.touching(_touched_by(draft, step))
        if isinstance(step.action, Migrate):
            # Other actions that are open were checked against these when they started.
            affected = {
                cell: requirement
                for cell, requirement in affected.items()
                if requirement.specification.reads_placement(requirement.name)
            }
        if not affected:
            return
        trial = _StartTrial(draft, self._initial, step, self._at_start)
        reported: set[Requirement] = set()
        # One reason per requirement is enough to let the step wait.
        for cell, requirement in affected.items():
            risk = None if requirement in reported else trial.risk(cell, requirement)
            if risk is not None:
                reported.add(requirement)
                yield risk
        self._keys[step.id] = trial.keys

    def _refresh(self, draft: Draft) -> None:
        if self._stale:
            view = TrackingView(draft)
            context = EvaluationContext(view, self._initial, view)
            for cell, requirement in self._stale.items():
                self._index.add(cell, cell.judge(context), requirement)
            self._stale = {}


def _is_about_states(requirement: Requirement) -> bool:
    """Whether a requirement can be judged in a single state, without the plan and its end."""
    return not requirement.specification.looks_beyond(requirement.name)


def _touched_by(draft: Draft, step: Step) -> TouchedEntities:
    """Return every VM and host that a step may change, also those that it does not name."""
    seen = step.footprint
    if seen.switched is not None:  # the agents of a host start and stop with it
        return TouchedEntities(draft.residents(seen.switched), seen.hosts)
    vm = None if seen.vm is None else draft.vms.get(seen.vm)
    if vm is None:
        return TouchedEntities((), seen.hosts)
    return TouchedEntities((vm.id,), seen.hosts if vm.host is None else (*seen.hosts, vm.host))


class _StartTrial:
    """The states that may follow the start of one step."""

    def __init__(
        self,
        draft: Draft,
        initial: StateView,
        step: Step,
        at_start: dict[FormulaCell, Breaches],
    ) -> None:
        self._draft = draft
        self._initial = initial
        self._step = step
        self._at_start = at_start
        self._views: dict[tuple[_StepProgress, frozenset[StepId]], TrackingView] = {}
        self._under_way = {
            name: _touched_by(draft, running.step) for name, running in draft.in_flight.items()
        }
        self._reads = ReadSet()
        self.keys = ReadSet()
        """VMs and hosts of which one must change before the step is checked again."""

    def risk(self, cell: FormulaCell, requirement: Requirement) -> FailedPrecondition | None:
        """Return how the step may violate a cell; ``None`` if it cannot."""
        tried: list[StepId] = []
        risk = self._search_risk(cell, requirement, tried)
        self.keys.add(self._reads)
        for name in tried if risk is not None else ():
            self.keys.vms.update(self._under_way[name].vms)
            self.keys.hosts.update(self._under_way[name].hosts)
        return risk

    def _search_risk(
        self, cell: FormulaCell, requirement: Requirement, tried: list[StepId]
    ) -> FailedPrecondition | None:
        fresh: list[StepId] = []
        self._reads.add(cell.seen)
        # Judging a cell may read VMs and hosts that other open actions touch. Those actions join
        # the trial, until a round adds none.
        while True:
            for done in subsets(tried):
                if fresh and done.isdisjoint(fresh):
                    continue  # an earlier round has judged this state
                for progress in (_StepProgress.BEGUN, _StepProgress.ENDED):
                    failure = self._failure(cell, requirement, progress, done)
                    if failure is not None:
                        detail = f"depending on which action ends first: {failure}"
                        return FailedPrecondition(str(requirement), detail, failure.code)
            fresh = sorted(self._open(cell) - set(tried))
            if not fresh:
                return None
            tried += fresh
            if len(tried) > OPEN_ACTIONS_MAX:
                if self._stays_satisfied(cell, requirement, tried):
                    return None
                detail = f"{len(tried)} other actions are under way, too many to check all orders"
                return FailedPrecondition(str(requirement), detail, "open-actions-exceeded")

    def _failure(
        self,
        cell: FormulaCell,
        requirement: Requirement,
        progress: _StepProgress,
        done: frozenset[StepId],
    ) -> FormulaFailure | None:
        """Return how the step violates a cell in one state; ``None`` if it does not."""
        if self._holds(cell, progress, done):
            return None
        context = self._context(progress, done)
        if self._holds(cell, _StepProgress.NOT_BEGUN, done):
            failure = requirement.explain(cell.term, cell.names, context)
            return replace(failure, code="rule-violated")
        # The cell is false without the step too. A plan that repairs it may pass through worse
        # states.
        if requirement.repaired:
            return None
        present = self._breaches(cell, requirement, progress, done)
        without = self._breaches(cell, requirement, _StepProgress.NOT_BEGUN, done)
        worse = worse_breaches(present, without)
        if not worse:
            return None
        # What earlier steps have reduced may grow again, but not beyond its size at the start.
        larger = set(worse_breaches(present, self._initial_breaches(cell, requirement)))
        worse = [key for key in worse if key not in without or key in larger]
        if not worse:
            return None
        return requirement.explain_breach(present[worse[0]], context)

    def _breaches(
        self,
        cell: FormulaCell,
        requirement: Requirement,
        progress: _StepProgress,
        done: frozenset[StepId],
    ) -> Breaches:
        context = self._context_with_collections(cell, progress, done)
        return requirement.specification.breaches(cell.term, cell.names, context)

    def _initial_breaches(self, cell: FormulaCell, requirement: Requirement) -> Breaches:
        if cell not in self._at_start:
            context = EvaluationContext(self._initial, self._initial, self._initial)
            found = requirement.specification.breaches(cell.term, cell.names, context)
            self._at_start[cell] = found
        return self._at_start[cell]

    def _open(self, cell: FormulaCell) -> set[StepId]:
        """Return the actions under way whose end may change a cell."""
        direct = set(filter(self._is_seen, self._under_way))
        return direct | self._sharing(cell, self._under_way.keys() - direct)

    def _sharing(self, cell: FormulaCell, steps: Iterable[StepId]) -> set[StepId]:
        """Return the actions that would change a large collection, alone or with another one."""
        if not cell.collections:
            return set()
        contributions = {
            name: cell.collections.contributions_touched(self._under_way[name]) for name in steps
        }
        # Two actions on one member count together, also if neither changes the collection alone.
        often = Counter(key for keys in contributions.values() for key in keys)
        sharing = set()
        for name, keys in contributions.items():
            context = self._context(_StepProgress.NOT_BEGUN, frozenset([name]))
            if keys and (
                any(often[key] > 1 for key in keys)
                or cell.collections.would_change(context, self._under_way[name])
            ):
                sharing.add(name)
        return sharing

    def _stays_satisfied(
        self, cell: FormulaCell, requirement: Requirement, others: Iterable[StepId]
    ) -> bool:
        """Whether a sum stays within its limit in the worst case; false if that is unknown."""
        sides = comparison_sides(cell.term)
        if sides is None or any(map(self._is_seen, others)):
            return False
        contributions = {
            step: cell.collections.contributions_touched(self._under_way[step]) for step in others
        }
        more, less = (requirement.specification.closure_of(side, cell.names) for side in sides)

        def margin(progress: _StepProgress, done: frozenset[StepId]) -> int:
            context = self._context_with_collections(cell, progress, done)
            return int(more(context, cell.bindings)) - int(less(context, cell.bindings))

        try:
            # The margin must stay non-negative both while the step runs and after it has ended.
            enough = all(
                worst_margin(partial(margin, progress), contributions) >= 0
                for progress in (_StepProgress.BEGUN, _StepProgress.ENDED)
            )
        except InvalidInput:
            return False
        # The trial may have read something that no contribution had read before.
        return enough and not any(map(self._is_seen, self._under_way))

    def _is_seen(self, step: StepId) -> bool:
        """Whether an action under way touches what was read outside of large collections."""
        touched = self._under_way[step]
        seen = self._reads
        return not (seen.vms.isdisjoint(touched.vms) and seen.hosts.isdisjoint(touched.hosts))

    def _holds(self, cell: FormulaCell, progress: _StepProgress, done: frozenset[StepId]) -> bool:
        try:
            return bool(
                cell.closure(self._context_with_collections(cell, progress, done), cell.bindings)
            )
        except InvalidInput:
            return False  # a formula without a value does not hold

    def _context_with_collections(
        self, cell: FormulaCell, progress: _StepProgress, done: frozenset[StepId]
    ) -> EvaluationContext:
        context = self._context(progress, done)
        state = context.now.state
        touched = TouchedEntities(tuple(state.touched_vms), tuple(state.touched_hosts))
        context.collections = cell.collections.overlaid(touched)
        return context

    def _context(self, progress: _StepProgress, done: frozenset[StepId]) -> EvaluationContext:
        view = self._views.get((progress, done))
        if view is None:
            view = self._views[progress, done] = TrackingView(self._overlay(progress, done))
            view.reads = self._reads  # all states of a trial share one record of what was read
        return EvaluationContext(view, self._initial, view)

    def _overlay(self, progress: _StepProgress, done: frozenset[StepId]) -> OverlayDraft:
        state, at_ms, step = OverlayDraft(self._draft), self._draft.at_ms, self._step
        # First the ends of other actions, then the start and the end of the step: the gate applies
        # the ends of an instant before its starts.
        for name in sorted(done):
            attempt = self._draft.in_flight[name].attempt
            transition.apply_to_draft(
                state, ActionFinished(at_ms=at_ms, step=name, attempt=attempt)
            )
        if progress is not _StepProgress.NOT_BEGUN:
            transition.apply_to_draft(state, ActionStarted(at_ms=at_ms, step=step, attempt=1))
        if progress is _StepProgress.ENDED:
            transition.apply_to_draft(state, ActionFinished(at_ms=at_ms, step=step.id, attempt=1))
        return state


class _StepProgress(Enum):
    """How far the step of the trial has come."""

    NOT_BEGUN = 0
    BEGUN = 1
    ENDED = 2
