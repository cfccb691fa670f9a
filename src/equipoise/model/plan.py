"""From a wish to a plan: proposals of the deciders, and the timed steps that carry them out."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from equipoise.model.action import Action, Footprint, footprint
from equipoise.model.quantity import (
    CountPresent,
    PlanKey,
    Planned,
    PlannedPresent,
    ProcessorKey,
    RuleKey,
    SlotKey,
    StepKey,
    TeamKey,
    Version,
)
from equipoise.model.value import Value


class Limits(Value):
    """How much may happen at once."""

    actions_per_host: CountPresent = 4
    """Running actions that touch one host, as source, target or by switching it."""
    actions_total: CountPresent = 64
    """Running actions in the whole cluster."""


class Step(Value):
    """An action with its planned time, counted from the start of the plan."""

    id: StepKey
    action: Action
    start_ms: Planned = 0
    end_ms: PlannedPresent
    after: tuple[StepKey, ...] = ()
    """Steps that must have succeeded before this one may start."""
    reason: str = ""

    @property
    def duration_ms(self) -> int:
        """How long it is expected to take."""
        return self.end_ms - self.start_ms

    @property
    def footprint(self) -> Footprint:
        """What it touches."""
        return footprint(self.action)


class Plan(Value):
    """Timed steps, made for one version of the snapshot."""

    id: PlanKey
    base_version: Version = 0
    steps: tuple[Step, ...]
    mends: tuple[RuleKey, ...] = ()
    """Continuous rules that are broken now and hold in the end; it is not charged with them."""


class Purpose(IntEnum):
    """What a proposal is for. The lower number goes first when two of them conflict."""

    REPAIR = 1
    UPGRADE = 2
    WAKE = 3
    BALANCE = 4
    SLEEP = 5


class Intent(Value):
    """An action somebody wants, not yet timed."""

    id: StepKey
    action: Action
    duration_ms: PlannedPresent
    after: tuple[StepKey, ...] = ()
    reason: str = ""


class Rejection(Value):
    """A candidate that was considered and not chosen, and why."""

    subject: str
    code: str
    """Stable and machine-readable, e.g. ``no_room``."""
    detail: str


class Filling(Value):
    """Who is to fill which slot of a group: a decision that needs no act of the world."""

    group: TeamKey
    slots: Mapping[SlotKey, ProcessorKey]
    reason: str = ""


class Proposal(Value):
    """What one decider wants, what it promises, and what it decided against."""

    decider: str
    purpose: Purpose
    intents: tuple[Intent, ...] = ()
    reason: str = ""
    gain: Mapping[str, float] = {}
    """The promised effect by the name of the measure, e.g. ``imbalance: -0.12``."""
    whole: bool = False
    """Whether it is worth nothing unless every intent in it is carried out."""
    rejected: tuple[Rejection, ...] = ()
    advised: tuple[Intent, ...] = ()
    """What it would do as well, if somebody approved it."""
    mends: tuple[RuleKey, ...] = ()
    """The continuous rules that are broken now and hold again once all of it is done."""
    fillings: tuple[Filling, ...] = ()
    """Who is to fill which slot before any of it is done."""


class Violation(Value):
    """One place where a plan breaks what must hold."""

    constraint: str
    at_ms: int
    """Counted from the start of the plan."""
    detail: str
    step: StepKey | None = None
