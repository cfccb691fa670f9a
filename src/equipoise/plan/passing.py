"""Of many wishes, those that the gate lets pass together."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.model.plan import Intent
from equipoise.model.quantity import PlanId
from equipoise.model.snapshot import Snapshot
from equipoise.plan.order import order
from equipoise.plan.verify import Refusal, verify


def passing(snapshot: Snapshot, intents: Sequence[Intent]) -> tuple[Intent, ...]:
    """All of them or, if need be, as many as it takes; the earlier ones go first.

    Halving finds the few that are in the way with few questions.
    """
    return tuple(_more(snapshot, (), tuple(intents)))


def _more(
    snapshot: Snapshot, taken: tuple[Intent, ...], more: tuple[Intent, ...]
) -> tuple[Intent, ...]:
    if not more or _pass(snapshot, (*taken, *more)):
        return (*taken, *more)
    if len(more) == 1:
        return taken
    half = len(more) // 2
    return _more(snapshot, _more(snapshot, taken, more[:half]), more[half:])


def _pass(snapshot: Snapshot, intents: Sequence[Intent]) -> bool:
    plan = order(snapshot, intents, PlanId("wish"))
    return not isinstance(plan, Refusal) and not isinstance(verify(snapshot, plan), Refusal)
