"""The gate: replays a plan through every intermediate state and lets it pass only if all is well.

Ends are applied before starts at one instant, and the state is judged after the ends and again
after the starts. Only ``verify`` can make a ``VerifiedPlan``; the executor accepts nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from equipoise.model.event import ActionFinished, ActionStarted
from equipoise.model.plan import Plan, Step, Violation
from equipoise.model.quantity import StepId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.dependencies import prerequisites
from equipoise.plan.ledger import Ledger
from equipoise.plan.objections import objections
from equipoise.plan.rehearse import rehearse
from equipoise.spec.judge import SpecificationJudge
from equipoise.spec.moment import Judge, Moment, Phase, Seen, instants
from equipoise.spec.rules import demands_of

_SEAL: Final = object()


@final
class VerifiedPlan:
    """A plan that passed the gate. Nobody else can make one: the constructor wants the seal."""

    __slots__ = ("plan", "prerequisites")

    def __init__(
        self, plan: Plan, waits: Mapping[StepId, tuple[StepId, ...]], *, seal: object
    ) -> None:
        if seal is not _SEAL:
            raise TypeError("only equipoise.plan.verify makes a VerifiedPlan")
        self.plan = plan
        self.prerequisites = waits
        """For each step the steps that must have succeeded before it may start."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A plan that did not pass, with every place where it goes wrong."""

    plan: Plan
    violations: tuple[Violation, ...]


def verify(
    snapshot: Snapshot, plan: Plan, judges: Sequence[Judge] = (), base: Ledger | None = None
) -> VerifiedPlan | Refusal:
    """Judge a plan: its form, every moment of its replay, and whether it can be carried out.

    The moments are judged by the rules of the inventory and by ``judges``. ``base`` is a ledger of
    the snapshot, if there is one already.
    """
    base = Ledger(snapshot) if base is None else base
    violations = tuple(_form(snapshot, plan))
    if not violations:
        demands = demands_of(snapshot.settings, snapshot, plan.mends)
        everyone = (SpecificationJudge(demands.clear, plan.steps), *judges)
        replay = _Replay(Ledger.like(base, snapshot), everyone)
        violations = (*demands.unclear, *replay.run(plan))
    waits = {} if violations else prerequisites(plan.steps, snapshot.placement)
    if not violations:
        # Times are a promise, order is not: what only works to the millisecond does not work.
        stuck = rehearse(snapshot, plan.steps, waits, base).stuck
        violations = tuple(one.but(constraint=f"feasible, {one.constraint}") for one in stuck)
    if violations:
        return Refusal(plan, violations)
    return VerifiedPlan(plan, waits, seal=_SEAL)


def judged(snapshot: Snapshot, plan: Plan, judges: Sequence[Judge]) -> tuple[Violation, ...]:
    """What is wrong with a plan if all happens as planned: its form, and every moment of it.

    Unlike ``verify`` it does not ask whether it would survive other times, nor for the rules.
    """
    wrong = tuple(_form(snapshot, plan))
    return wrong or tuple(_Replay(Ledger(snapshot), judges).run(plan))


def _form(snapshot: Snapshot, plan: Plan) -> Iterator[Violation]:
    if plan.base_version != snapshot.version:
        detail = f"made for version {plan.base_version}, the cluster is at {snapshot.version}"
        yield Violation(constraint="fresh", at_ms=0, detail=f"{detail}: observe again")
    steps: dict[StepId, Step] = {}
    for step in plan.steps:
        if step.id in steps:
            yield _blame(step, "form", "another step has the same id")
        if step.id in snapshot.in_flight:
            yield _blame(step, "form", "an action with the same id is still under way")
        if step.end_ms <= step.start_ms:
            yield _blame(step, "form", "it ends before it has begun")
        steps[step.id] = step
    for step in plan.steps:
        for before in step.after:
            if before not in steps:
                yield _blame(step, "form", f"it waits for {before}, which is not in the plan")
            elif steps[before].end_ms > step.start_ms:
                yield _blame(step, "form", f"it starts before {before}, which it waits for, ends")


def _blame(step: Step, constraint: str, detail: str) -> Violation:
    return Violation(constraint=constraint, at_ms=step.start_ms, step=step.id, detail=detail)


class _Replay:
    """Lets a plan happen on a ledger and shows every moment of it to the judges."""

    def __init__(self, ledger: Ledger, judges: Sequence[Judge]) -> None:
        self._ledger = ledger
        self._began_ms = ledger.draft.at_ms
        self._judges = judges
        self._refused: set[StepId] = set()
        self._recent = Seen()
        self._ever = Seen()

    def run(self, plan: Plan) -> Iterator[Violation]:
        at_ms = 0
        yield from self._show(Phase.INITIAL, at_ms, self._recent)
        for at_ms, ends, starts in instants(plan.steps):
            for step in ends:
                if step.id not in self._refused:
                    self._happen(
                        ActionFinished(at_ms=self._began_ms + at_ms, step=step.id, attempt=1)
                    )
            yield from self._show(Phase.ENDS, at_ms, self._recent)
            for step in starts:
                yield from self._start(step)
            yield from self._show(Phase.STARTS, at_ms, self._recent)
        yield from self._show(Phase.FINAL, at_ms, self._ever)

    def _start(self, step: Step) -> Iterator[Violation]:
        if self._refused.intersection(step.after):
            self._refused.add(step.id)  # the fault lies with the step it waits for
            return
        # Those of the same instant that were looked at before count as started.
        against = objections(self._ledger, step.action)
        if against:
            self._refused.add(step.id)
            yield from (_blame(step, one.constraint, one.detail) for one in against)
        else:
            at_ms = self._began_ms + step.start_ms
            self._happen(ActionStarted(at_ms=at_ms, step=step, attempt=1))

    def _happen(self, event: ActionStarted | ActionFinished) -> None:
        touched = self._ledger.apply(event)
        self._recent.add(touched)
        self._ever.add(touched)

    def _show(self, phase: Phase, at_ms: int, seen: Seen) -> Iterator[Violation]:
        moment = Moment(phase, at_ms, self._ledger.draft, seen.touched())
        self._recent = Seen()
        for judge in self._judges:
            yield from judge(moment)
