"""What a formula is asked of: the states it may look at, and its own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.plan.exact.formula.state import State
from equipoise.plan.exact.solver.circuit import Truth
from equipoise.spec.language.syntax import Moment, Term
from equipoise.spec.specification import Specification

Names = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outlook:
    """The states a formula may ask about, none of which need be decided."""

    now: State
    initial: State
    final: State
    moments: Sequence[tuple[State, Truth]] = ()
    """All moments of the plan, with the truth that there is such a moment."""

    def at(self, moment: Moment) -> State:
        """The state that a call looks at."""
        if moment is Moment.NOW:
            return self.now
        return self.initial if moment is Moment.INITIAL else self.final


@dataclass(frozen=True, slots=True)
class Spoken:
    """A formula of a specification, in which some names have values."""

    home: Specification
    term: Term
    names: Names
