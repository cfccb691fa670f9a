"""Lessons: what the judge refuses is not proposed again, nor anything that looks the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from equipoise.errors import InvalidInput
from equipoise.model.plan import Plan, Violation
from equipoise.model.snapshot import Snapshot
from equipoise.plan.exact.extract import chosen
from equipoise.plan.exact.formula.operators import Operators
from equipoise.plan.exact.formula.values import options_of
from equipoise.plan.exact.solver.circuit import Truth
from equipoise.plan.exact.solver.decide import Decisions
from equipoise.plan.exact.statement import ABOUT_STARTS, Statement
from equipoise.plan.exact.task import RuleClaim
from equipoise.plan.exact.timeline.course import Leg
from equipoise.plan.exact.timeline.states import AfterEnds, AfterStarts, Initial, Moment
from equipoise.plan.exact.timeline.states import Final as End
from equipoise.spec.cells import WatchedView
from equipoise.spec.moment import Phase, moments
from equipoise.spec.view import Frame, Reads, Steps, View


def learn(statement: Statement, plan: Plan, decided: Decisions, wrong: Sequence[Violation]) -> bool:
    """Rule out what a plan did wrong; whether anything was learnt."""
    blamed = {one.constraint for one in wrong}
    claims = [one for one in statement.left_to_judge if str(one.demand) in blamed]
    for claim in claims:
        _Lesson(statement, plan, decided, claim).teach()
    return bool(claims)


class _Lesson:
    """One claim that one plan does not keep."""

    def __init__(
        self, statement: Statement, plan: Plan, decided: Decisions, claim: RuleClaim
    ) -> None:
        self._statement = statement
        self._circuit = statement.circuit
        self._timeline = statement.timeline
        self._operators = Operators(statement.circuit)
        self._plan = plan
        self._decided = decided
        self._claim = claim

    def teach(self) -> None:
        """Say to the solver what must not be again."""
        demand = self._claim.demand
        home, name = demand.specification, demand.name
        given = tuple(one.truth for one in self._statement.kept if one.claim is self._claim)
        if home.looks_beyond(name):
            alike = list(self._the_whole_plan())
        else:
            alike = list(self._the_moment())
        self._circuit.require(-self._circuit.all(alike), given)

    def _the_whole_plan(self) -> Iterator[Truth]:
        for leg in self._timeline.legs():
            there = self._decided.holds(leg.there)
            yield leg.there if there else -leg.there
            for place in (leg.source, leg.target):
                yield options_of(place)[chosen(place, self._decided)]
            if there:
                yield self._circuit.equal(leg.start, self._decided.number(leg.start))

    def _the_moment(self) -> Iterator[Truth]:
        """What the formula has seen at the first moment at which it was false."""
        phase, at_ms, state, reads = self._fault()
        moment = self._moment(phase, at_ms)
        yield from moment.truths
        view = View.of(state)
        for vm in sorted(reads.vms):
            yield self._same(moment.state.vm_host(vm), view.vm(vm).host)
            yield self._same(moment.state.vm_state(vm), view.vm(vm).state.value)
            for name, amount in view.vm(vm).consumption.items():
                yield self._circuit.equal(moment.state.consumption(vm, name), amount)
        for host in sorted(reads.hosts):
            yield self._same(moment.state.host_state(host), view.host(host).state.value)
            yield self._same(moment.state.running(host), view.running(host))
            yield self._same(moment.state.hosted(host), view.hosted(host))
        if not ABOUT_STARTS.isdisjoint(
            self._claim.demand.specification.calls(self._claim.demand.name)
        ):
            for leg in self._timeline.legs():
                goes = self._circuit.all((leg.there, moment.state.underway(leg)))
                yield goes if self._was_underway(leg, phase, at_ms) else -goes

    def _was_underway(self, leg: Leg, phase: Phase, at_ms: int) -> bool:
        """Whether an action was under way in the plan that was refused."""
        decided = self._decided
        if not decided.holds(leg.there) or phase in (Phase.INITIAL, Phase.FINAL):
            return False
        begins, ends = decided.number(leg.begin_ms), decided.number(leg.end_ms)
        begun = begins <= at_ms if phase is Phase.STARTS else begins < at_ms
        return begun and at_ms < ends

    def _same(self, undecided: Any, value: Any) -> Truth:
        return self._operators.equal(undecided, value)

    def _fault(self) -> tuple[Phase, int, Snapshot, Reads]:
        demand, snapshot = self._claim.demand, self._timeline.snapshot
        initial = View.of(snapshot)
        for moment in moments(snapshot, self._plan.steps):
            if not demand.continuous and moment.phase is not Phase.FINAL:
                continue
            view = WatchedView(moment.state)
            frame = Frame(view, initial, view, Steps(self._plan.steps))
            try:
                holds = demand.specification.holds(demand.name, demand.arguments, frame)
            except InvalidInput:
                holds = False
            if not holds:
                return moment.phase, moment.at_ms, moment.state.freeze(), view.reads
        raise AssertionError(f"the judge refuses {demand}, but it holds at every moment")

    def _moment(self, phase: Phase, at_ms: int) -> _Seen:
        if phase is Phase.INITIAL:
            return _Seen(Initial(self._timeline), ())
        if phase is Phase.FINAL:
            return _Seen(End(self._timeline), ())
        for leg in self._timeline.legs():
            if not self._decided.holds(leg.there):
                continue
            if phase is Phase.ENDS and self._decided.number(leg.end_ms) == at_ms:
                return _Seen(AfterEnds(self._timeline, leg), (leg.there,))
            if phase is Phase.STARTS and self._decided.number(leg.begin_ms) == at_ms:
                return _Seen(AfterStarts(self._timeline, leg), (leg.there,))
        raise AssertionError(f"nothing happens at {at_ms} ms")


class _Seen:
    """A moment of the timeline, and what must hold for there to be one."""

    def __init__(self, state: Moment, truths: tuple[Truth, ...]) -> None:
        self.state = state
        self.truths = truths
