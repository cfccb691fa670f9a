"""The judge of a specification: it looks at the moments of a plan, as the gate shows them.

A discrete constraint is judged on the final state; a continuous one initially, after the ends and
after the starts of each instant, and finally. A formula that speaks of the final state or of all
moments is judged at the end, when these are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from equipoise.model.draft import Draft
from equipoise.model.plan import Step, Violation
from equipoise.spec.specification import Specification
from equipoise.spec.syntax import Always, Call, Moment, Sometime, Term, parts_of
from equipoise.spec.view import Frame, Steps, View


class _Phase(Protocol):
    @property
    def value(self) -> str: ...


class _Moment(Protocol):
    """What the judge reads of a moment; the gate's own has more."""

    @property
    def phase(self) -> _Phase: ...
    @property
    def at_ms(self) -> int: ...
    @property
    def state(self) -> Draft: ...


@dataclass(frozen=True, slots=True)
class Demand:
    """A constraint that is to hold, with its arguments."""

    name: str
    arguments: Mapping[str, Any]
    continuous: bool = False

    def __str__(self) -> str:
        return f"{self.name}({', '.join(_shown(value) for value in self.arguments.values())})"


class SpecificationJudge:
    """Judges what is demanded of one plan. Made anew for each plan; ``verify`` calls it."""

    def __init__(
        self, specification: Specification, demands: Iterable[Demand], steps: Sequence[Step]
    ) -> None:
        self._specification = specification
        self._demands = tuple(demands)
        self._looks_ahead = [_looks_ahead(specification, one.name) for one in self._demands]
        self._steps = Steps(steps)
        self._initial: View | None = None
        self._moments: list[tuple[int, View]] = []
        self._broken: set[int] = set()

    def __call__(self, moment: _Moment) -> Iterator[Violation]:
        """Say what is broken at this moment, once for as long as it stays broken."""
        remembers = self._initial is None or any(self._looks_ahead)
        # A draft goes on changing; what is looked at again later must be frozen.
        view = View.of(moment.state.freeze() if remembers else moment.state)
        self._initial = self._initial or view
        if any(self._looks_ahead):
            self._moments.append((moment.at_ms, view))
        final = moment.phase.value == "final"
        frame = Frame(view, self._initial, view, self._steps)
        for place, demand in enumerate(self._demands):
            if self._looks_ahead[place]:
                if final:
                    yield from self._look_back(demand, view)
            elif demand.continuous or final:
                yield from self._judge(place, frame, moment.at_ms)

    def _judge(self, place: int, frame: Frame, at_ms: int) -> Iterator[Violation]:
        demand = self._demands[place]
        if self._specification.holds(demand.name, demand.arguments, frame):
            self._broken.discard(place)
        elif place not in self._broken:
            self._broken.add(place)
            yield _violation(demand, at_ms)

    def _look_back(self, demand: Demand, final: View) -> Iterator[Violation]:
        """Judge a formula that needs the whole plan, at every moment if it is continuous."""
        assert self._initial is not None
        views = [view for _, view in self._moments]
        for at_ms, view in self._moments if demand.continuous else self._moments[-1:]:
            frame = Frame(view, self._initial, final, self._steps, views)
            if not self._specification.holds(demand.name, demand.arguments, frame):
                yield _violation(demand, at_ms)
                return


def _violation(demand: Demand, at_ms: int) -> Violation:
    return Violation(constraint=str(demand), at_ms=at_ms, detail=f"{demand.name} does not hold")


def _looks_ahead(specification: Specification, name: str) -> bool:
    """Whether a constraint, or one it calls, asks for the final state or for all moments."""
    formula = specification.constraints[name].formula
    return any(map(_asks_ahead, parts_of(formula))) or any(
        _looks_ahead(specification, part.function)
        for part in parts_of(formula)
        if isinstance(part, Call) and part.function in specification.constraints
    )


def _asks_ahead(part: Term) -> bool:
    if isinstance(part, Always | Sometime):
        return True
    return isinstance(part, Call) and part.moment is Moment.FINAL


def _shown(value: Any) -> str:
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_shown, value)))}}}"
    return str(value)
