"""One case judged by one constraint: whether it holds, and if not, when and why.

Here nobody asks whether the steps of the plan may start, nor who is to blame for what was broken
before: it is the plain meaning of the constraint, which every other way of judging must agree with.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from equipoise.model.plan import Step
from equipoise.model.snapshot import Snapshot
from equipoise.spec.demand import Demand
from equipoise.spec.explain import Why
from equipoise.spec.moment import moments
from equipoise.spec.view import Frame, Steps, View


class Case(NamedTuple):
    """A state and what a plan does to it."""

    initial: Snapshot
    steps: tuple[Step, ...] = ()


class Fault(NamedTuple):
    """When a constraint is first broken, and why."""

    at_ms: int
    """The first moment that is judged at which it does not hold."""
    why: Why
    told_ms: int
    """When it happened: for ``always`` that is another moment than the one that is judged."""


def judge_case(demand: Demand, case: Case) -> Fault | None:
    """Say where a constraint is broken; nothing if it holds."""
    broken = _first_break(demand, case)
    if broken is None:
        return None
    at_ms, times, frame = broken
    why = demand.why(demand.specification.constraints[demand.name].formula, demand.arguments, frame)
    return Fault(at_ms, why, at_ms if why.moment is None else times[why.moment])


def _first_break(demand: Demand, case: Case) -> tuple[int, list[int], Frame] | None:
    """The first moment that is judged at which it does not hold, and the times of all moments."""
    past = [(one.at_ms, View.of(one.state.freeze())) for one in moments(*case)]
    views, steps = [view for _, view in past], Steps(case.steps)
    eternal: dict[Any, bool] = {}
    for at_ms, view in past if demand.continuous else past[-1:]:
        frame = Frame(view, views[0], views[-1], steps, views, eternal=eternal)
        if not demand.specification.holds(demand.name, demand.arguments, frame):
            return at_ms, [at for at, _ in past], frame
    return None


def keeps_case(demand: Demand, case: Case) -> bool:
    """Whether a constraint holds, for whoever does not ask why."""
    return _first_break(demand, case) is None


def holds_at_rest(demand: Demand, state: Snapshot) -> bool:
    """Whether a constraint holds in a state in which nothing is to happen."""
    view = View.of(state)
    frame = Frame(view, view, view, Steps(()), [view])
    return demand.specification.holds(demand.name, demand.arguments, frame)
