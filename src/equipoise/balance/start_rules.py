"""Start rules: judges the start of a VM by the rules that the placement search does not know.

The gate judges a whole plan. A placement tries many hosts, so only the parts of the rules that a
start touches are judged again. The gate judges the result in any case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from equipoise.balance.start_action import start_action
from equipoise.model.action_durations import Estimates
from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, RuleId, StepId, VmId
from equipoise.model.state import transition
from equipoise.model.state.draft import Draft, TouchedEntities
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from equipoise.spec.evaluate.breaches import Breaches, worse_breaches
from equipoise.spec.evaluate.cells import CellIndex, FormulaCell, TrackingView
from equipoise.spec.evaluate.view import EvaluationContext, StateView
from equipoise.spec.judge import Charge, SpecificationJudge
from equipoise.spec.moments import moments
from equipoise.spec.requirement import Requirement
from equipoise.spec.rules import requirement_per_rule
from equipoise.spec.specification import Specification

START_STEP = StepId("start")


class VmChange(NamedTuple):
    """A VM that starts on a host or moves to it."""

    vm: VmId
    host: HostId


@dataclass(slots=True, eq=False)
class _CellRule:
    """A rule that is judged cell by cell."""

    id: RuleId
    owner: Specification
    continuous: bool
    cells: tuple[FormulaCell, ...]


class StartRules:
    """Judges hypothetical starts on a state that follows the decisions of a placement."""

    def __init__(self, snapshot: Snapshot, ids: Collection[RuleId], estimates: Estimates) -> None:
        self._estimates = estimates
        self._draft = Draft(snapshot)
        self._base = snapshot
        self._initial = StateView.of(snapshot)
        self._moved: dict[VmId, HostId] = {}
        self._holds: dict[FormulaCell, bool] = {}
        self._index: CellIndex[_CellRule] = CellIndex()
        self._by_cells: list[_CellRule] = []
        self._by_plan: list[tuple[RuleId, Requirement]] = []
        hard = tuple(rule for rule in snapshot.settings.rules if rule.hard and rule.id in ids)
        for rule, requirement in requirement_per_rule(snapshot.settings.but(rules=hard), snapshot):
            # The gate refuses every plan if a rule cannot be read; no host is better than another.
            if isinstance(requirement, Requirement):
                self._add(rule.id, requirement)
        cells = {cell: rule for rule in self._by_cells for cell in rule.cells}
        self._holds = self._judge(cells)
        # The gate does not charge a plan with what was violated before.
        self._allowed = {
            cell: self._breaches(cell, rule)
            for cell, rule in cells.items()
            if not self._holds[cell]
        }

    def _add(self, rule: RuleId, requirement: Requirement) -> None:
        specification, name = requirement.specification, requirement.name
        # The value of such a formula follows from the steps of the plan, not from one state.
        if specification.looks_ahead(name) or specification.looks_at_plan(name):
            self._by_plan.append((rule, requirement))
            return
        context = EvaluationContext(self._initial, self._initial, self._initial)
        cells = tuple(specification.cells(name, requirement.arguments, context))
        self._by_cells.append(_CellRule(rule, specification, requirement.continuous, cells))

    def follow(self, decided: Mapping[VmId, HostId], powered_on: Iterable[HostId]) -> None:
        """Judge from now on as if these VMs were on these hosts, and these hosts on."""
        for vm in self._moved.keys() | decided.keys():
            if self._moved.get(vm) != decided.get(vm):
                before = self._base.vms[vm]
                self._draft.put_vm(_on_host(before, decided[vm]) if vm in decided else before)
        self._moved = dict(decided)
        on = frozenset(powered_on)
        for host in self._base.hosts.values():
            after = host.but(state=HostState.ON) if host.id in on else host
            if self._draft.hosts[host.id].state is not after.state:
                self._draft.put_host(after)
        touched = self._draft.pop_touched()
        self._holds |= self._judge(self._touched_cells(touched))

    def refusing(self, vm: VmId, host: HostId) -> list[RuleId]:
        """Return the rules for which the gate would refuse the start of a VM on a host now."""
        action = start_action(self._base.vms[vm], host)
        duration_ms = self._estimates.duration_ms(action, self._base)
        step = Step(id=START_STEP, action=action, end_ms=duration_ms)
        before, draft, at_ms = self._draft.vms[vm], self._draft, self._draft.at_ms
        transition.apply_to_draft(draft, ActionStarted(at_ms=at_ms, step=step, attempt=1))
        started = draft.pop_touched()
        broken = self._broken(started, at_end=False)
        transition.apply_to_draft(
            draft, ActionFinished(at_ms=at_ms + duration_ms, step=step.id, attempt=1)
        )
        ended = draft.pop_touched()
        broken |= self._broken(ended, at_end=True)
        draft.put_vm(before)
        draft.at_ms = at_ms
        self._restore((started, ended))
        return [*broken, *self._refusing_by_plan((step,))]

    def refusing_together(self, changes: Sequence[VmChange]) -> list[RuleId]:
        """Return the rules that would be broken once VMs have started or moved.

        The states on the way are not judged: the order of the moves decides about them.
        """
        before = [self._draft.vms[vm] for vm, _ in changes]
        for (_, host), vm in zip(changes, before, strict=True):
            self._draft.put_vm(_on_host(vm, host))
        touched = self._draft.pop_touched()
        broken = self._broken(touched, at_end=True)
        for vm in before:
            self._draft.put_vm(vm)
        self._restore((touched,))
        return list(broken)

    def _broken(self, touched: TouchedEntities, *, at_end: bool) -> dict[RuleId, None]:
        """Return the rules that the gate charges to a plan that touches this."""
        cells = self._touched_cells(touched)
        holds = self._judge(cells)
        # A discrete rule is judged at the end.
        disturbed = dict.fromkeys(cells.values()) if at_end else {}
        return {
            rule.id: None
            for rule in self._by_cells
            if (rule.continuous or rule in disturbed)
            and not all(
                holds.get(cell, self._holds[cell])
                or self._is_old(cell, rule, changed=cell in cells)
                for cell in rule.cells
            )
        }

    def _is_old(self, cell: FormulaCell, rule: _CellRule, *, changed: bool) -> bool:
        """Whether a violated cell is not worse than before the plan."""
        before = self._allowed.get(cell)
        if before is None or not changed:
            return before is not None
        return not worse_breaches(self._breaches(cell, rule), before)

    def _breaches(self, cell: FormulaCell, rule: _CellRule) -> Breaches:
        """Return what violates a cell in the present state."""
        view = TrackingView(self._draft)
        context = EvaluationContext(view, self._initial, view)
        breaches, reads = cell.breaches(rule.owner, context)
        self._index.add(cell, reads, rule)
        return breaches

    def _touched_cells(self, touched: TouchedEntities) -> dict[FormulaCell, _CellRule]:
        cells = self._index.touching(touched)
        for cell in cells:
            cell.collections.touch(touched)
        return cells

    def _judge(self, cells: Mapping[FormulaCell, _CellRule]) -> dict[FormulaCell, bool]:
        """Return whether each of the cells holds in the present state."""
        view = TrackingView(self._draft)
        context = EvaluationContext(view, self._initial, view)
        holds = {}
        for cell, rule in cells.items():
            self._index.add(cell, cell.judge(context), rule)
            holds[cell] = cell.holds
        return holds

    def _restore(self, changes: Iterable[TouchedEntities]) -> None:
        """Let the cells forget a state that was undone."""
        for touched in (*changes, self._draft.pop_touched()):
            self._touched_cells(touched)

    def _refusing_by_plan(self, steps: Sequence[Step]) -> list[RuleId]:
        if not self._by_plan:
            return []
        now = self._draft.freeze()
        return [
            rule for rule, requirement in self._by_plan if _is_violated(now, requirement, steps)
        ]


def _is_violated(snapshot: Snapshot, requirement: Requirement, steps: Sequence[Step]) -> bool:
    judge = SpecificationJudge((requirement,), steps, charge=Charge.DAMAGE)
    return any(True for moment in moments(snapshot, steps) for _ in judge(moment))


def _on_host(vm: Vm, host: HostId) -> Vm:
    return vm.but(state=VmState.RUNNING, host=host)
