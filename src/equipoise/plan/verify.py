"""The gate: it replays a plan through every intermediate state and accepts it if nothing is
violated.

Ends are applied before starts at one instant. The state is judged after the ends and again after
the starts. Only ``verify`` makes a ``VerifiedPlan``; the executor accepts nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from equipoise.capacity.ledger import CapacityLedger
from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.plan import Plan, Step, Violation
from equipoise.model.quantity import StepId
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan.preconditions import failed_preconditions, prerequisites
from equipoise.plan.step_queue import dry_run
from equipoise.spec.judge import Charge, SpecificationJudge
from equipoise.spec.moments import Judge, MomentPhase, PlanMoment, TouchedCollector, instants
from equipoise.spec.rules import requirements_of

_SEAL: Final = object()


@final
class VerifiedPlan:
    """A plan that passed the gate. Only ``verify`` can make one: the constructor needs the seal."""

    __slots__ = ("plan", "prerequisites")

    def __init__(
        self, plan: Plan, waits: Mapping[StepId, tuple[StepId, ...]], *, seal: object
    ) -> None:
        if seal is not _SEAL:
            raise TypeError("only equipoise.plan.verify makes a VerifiedPlan")
        self.plan = plan
        self.prerequisites = waits
        """For each step the steps that must succeed before it may start."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A plan that the gate refuses, with every violation."""

    plan: Plan
    violations: tuple[Violation, ...]


def verify(
    snapshot: Snapshot, plan: Plan, judges: Sequence[Judge] = (), base: CapacityLedger | None = None
) -> VerifiedPlan | Refusal:
    """Judge a plan: its form, every moment of its replay, and whether the executor can run it.

    The rules of the inventory and the given ``judges`` judge the moments. ``base`` is a ledger of
    the snapshot, if the caller has one.
    """
    base = CapacityLedger(snapshot) if base is None else base
    violations = tuple(_form_violations(snapshot, plan))
    if not violations:
        requirements = requirements_of(snapshot.settings, snapshot, plan.repairs)
        rules = SpecificationJudge(requirements.valid, plan.steps, charge=Charge.DAMAGE)
        all_judges = (rules, *judges)
        replay = _Replay(CapacityLedger.like(base, snapshot), all_judges)
        violations = (*requirements.invalid, *replay.run(plan))
    # A plan with violations may wait for steps that it does not have.
    waits = {} if violations else prerequisites(plan.steps, snapshot.placement)
    if not violations:
        # The executor keeps the order of a plan, not its times: refuse a plan that works only if
        # every action ends on the planned millisecond.
        blocked = dry_run(snapshot, plan.steps, waits, base, plan.repairs).blocked
        violations = tuple(
            violation.but(constraint=f"feasible, {violation.constraint}") for violation in blocked
        )
    if violations:
        return Refusal(plan, violations)
    return VerifiedPlan(plan, waits, seal=_SEAL)


def replay_violations(
    snapshot: Snapshot, plan: Plan, judges: Sequence[Judge]
) -> tuple[Violation, ...]:
    """Return what is wrong with a plan if all happens as planned: its form, and every moment.

    Unlike ``verify`` it judges neither the order without the times nor the rules of the inventory.
    """
    violations = tuple(_form_violations(snapshot, plan))
    return violations or tuple(_Replay(CapacityLedger(snapshot), judges).run(plan))


def _form_violations(snapshot: Snapshot, plan: Plan) -> Iterator[Violation]:
    if plan.base_version != snapshot.version:
        detail = (
            f"the plan is for version {plan.base_version}, the cluster is at {snapshot.version}: "
            "observe again and plan again"
        )
        yield Violation(constraint="fresh", at_ms=0, detail=detail, code="stale-plan")
    steps: dict[StepId, Step] = {}
    for step in plan.steps:
        if step.id in steps:
            yield _form_violation(step, "another step has the same id", "duplicate-step")
        if step.id in snapshot.in_flight:
            detail = "an action with the same id is still under way"
            yield _form_violation(step, detail, "duplicate-step")
        if step.end_ms <= step.start_ms:
            yield _form_violation(step, "it ends before it has begun", "invalid-step")
        steps[step.id] = step
    # A second pass, because a step may wait for one that is listed behind it.
    for step in plan.steps:
        for before in step.after:
            if before not in steps:
                detail = f"it waits for {before}, which is not in the plan"
                yield _form_violation(step, detail, "prerequisite-missing")
            elif steps[before].end_ms > step.start_ms:
                detail = f"it starts before {before}, which it waits for, ends"
                yield _form_violation(step, detail, "prerequisite-missing")


def _form_violation(step: Step, detail: str, code: str) -> Violation:
    return Violation(constraint="form", at_ms=step.start_ms, step=step.id, detail=detail, code=code)


class _Replay:
    """Replays a plan on a ledger and shows every moment to the judges."""

    def __init__(self, ledger: CapacityLedger, judges: Sequence[Judge]) -> None:
        self._ledger = ledger
        self._began_ms = ledger.draft.at_ms
        self._judges = judges
        self._refused: set[StepId] = set()
        self._recently_touched = TouchedCollector()
        self._all_touched = TouchedCollector()

    def run(self, plan: Plan) -> Iterator[Violation]:
        # The initial state is judged too: a continuous rule must hold from the start.
        at_ms = 0
        yield from self._judge(MomentPhase.INITIAL, at_ms, self._recently_touched)
        # At one instant the ends come before the starts, so a step may take the capacity that
        # another step frees at the same millisecond. The state is judged after both.
        for at_ms, ends, starts in instants(plan.steps):
            for step in ends:
                if step.id not in self._refused:  # a step that never started cannot end
                    self._apply(
                        ActionFinished(at_ms=self._began_ms + at_ms, step=step.id, attempt=1)
                    )
            yield from self._judge(MomentPhase.ENDS, at_ms, self._recently_touched)
            for step in starts:
                yield from self._start(step)
            yield from self._judge(MomentPhase.STARTS, at_ms, self._recently_touched)
        # A discrete rule is judged once, so it needs everything that the plan ever touched.
        yield from self._judge(MomentPhase.FINAL, at_ms, self._all_touched)

    def _start(self, step: Step) -> Iterator[Violation]:
        if self._refused.intersection(step.after):
            self._refused.add(step.id)  # the violation of the step it waits for is reported
            return
        # Steps of the same instant that passed before this one count as started.
        failed = failed_preconditions(self._ledger, step.action)
        if failed:
            self._refused.add(step.id)
            yield from (reason.violation(step.id, step.start_ms) for reason in failed)
        else:
            at_ms = self._began_ms + step.start_ms
            self._apply(ActionStarted(at_ms=at_ms, step=step, attempt=1))

    def _apply(self, event: ActionStarted | ActionFinished) -> None:
        touched = self._ledger.apply(event)
        self._recently_touched.add(touched)
        self._all_touched.add(touched)

    def _judge(self, phase: MomentPhase, at_ms: int, seen: TouchedCollector) -> Iterator[Violation]:
        moment = PlanMoment(phase, at_ms, self._ledger.draft, seen.touched())
        self._recently_touched = TouchedCollector()
        for judge in self._judges:
            yield from judge(moment)
