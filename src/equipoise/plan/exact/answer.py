"""What the planner answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from equipoise.model.plan import Plan
from equipoise.plan.exact.task import Claim, RuleClaim


class Status(StrEnum):
    """How the search ended."""

    SOLVED = "solved"
    UNSAT = "unsat"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Claims that cannot all be kept, though any of them could be dropped."""

    claims: tuple[Claim, ...]
    why: tuple[str, ...]
    """Sentences that say it to a person."""
    minimal: bool = True
    """Whether it is known that none of them could be left out."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A plan, or why there is none."""

    status: Status
    plan: Plan | None = None
    optimal: bool = False
    """Whether no plan is better, within the reach that was asked for."""
    goals: tuple[int, ...] = ()
    """What the plan costs, by goal, the most important first."""
    bounds: tuple[int | None, ...] = ()
    """What any plan costs at the least."""
    broken: tuple[RuleClaim, ...] = ()
    """The soft rules that the plan does not keep."""
    conflict: Conflict | None = None
    build_s: float = 0.0
    solve_s: float = 0.0
