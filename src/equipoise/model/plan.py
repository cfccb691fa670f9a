"""Proposals of the deciders, and plans: the timed steps that implement them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from equipoise.model.action import Action, Footprint, footprint
from equipoise.model.quantity import (
    PlanKey,
    PlanMilliseconds,
    PositiveCount,
    PositivePlanMilliseconds,
    ProcessorKey,
    RoleGroupKey,
    RuleKey,
    SlotKey,
    StepKey,
    Version,
)
from equipoise.model.value import Value


class ConcurrencyLimits(Value):
    """Limits of concurrent actions."""

    actions_per_host: PositiveCount = 4
    """Running actions per host: as source, as target, or on its state."""
    actions_total: PositiveCount = 64
    """Running actions in the cluster."""
    migrations_per_host: PositiveCount = 2
    """Migrations per host that are started at a time. They share the link of the host, so that more
    of them end no earlier, and each has more memory to copy again."""

    @property
    def parallel_migrations(self) -> int:
        """How many migrations share the link of a host at most."""
        return min(self.actions_per_host, self.migrations_per_host)


class Step(Value):
    """An action with its planned time, counted from the start of the plan."""

    id: StepKey
    action: Action
    start_ms: PlanMilliseconds = 0
    end_ms: PositivePlanMilliseconds
    after: tuple[StepKey, ...] = ()
    """Steps that must have succeeded before this one may start."""
    reason: str = ""

    @property
    def duration_ms(self) -> int:
        """The expected duration."""
        return self.end_ms - self.start_ms

    @property
    def footprint(self) -> Footprint:
        """The VM and hosts that the step touches."""
        return footprint(self.action)


class Plan(Value):
    """Timed steps for one version of the snapshot."""

    id: PlanKey
    # The gate refuses a plan for another version: it was made for a state that has passed.
    base_version: Version = 0
    steps: tuple[Step, ...]
    repairs: tuple[RuleKey, ...] = ()
    """Continuous rules that are broken now and hold in the end; until then they may be worse."""
    unrepaired: tuple[RuleKey, ...] = ()
    """Rules of a problem that are broken now and that the plan does not repair."""


class Purpose(IntEnum):
    """The purpose of a proposal. In a conflict the lower number wins."""

    # Standby is last: every other purpose may need the host.
    RESTART = 0
    REPAIR = 1
    UPGRADE = 2
    WAKE = 3
    BALANCE = 4
    SLEEP = 5


class Intent(Value):
    """An action that a decider proposes, without times."""

    id: StepKey
    action: Action
    duration_ms: PositivePlanMilliseconds
    after: tuple[StepKey, ...] = ()
    reason: str = ""


class Rejection(Value):
    """A candidate that a decider rejected, with the reason."""

    subject: str
    code: str
    """A key of ``equipoise.errors.CODES``, e.g. ``no-capacity``."""
    detail: str


class SlotAssignment(Value):
    """The processors of the slots of a group: a decision that needs no action of the world."""

    group: RoleGroupKey
    slots: Mapping[SlotKey, ProcessorKey]
    reason: str = ""


class Proposal(Value):
    """The intents of one decider, their expected gain, and the rejected candidates."""

    decider: str
    purpose: Purpose
    intents: tuple[Intent, ...] = ()
    reason: str = ""
    gain: Mapping[str, float] = {}
    """The expected effect by the name of the measure, e.g. ``imbalance: -0.12``."""
    all_or_nothing: bool = False
    """Whether the intents have a benefit only if all of them are executed."""
    rejected: tuple[Rejection, ...] = ()
    advised: tuple[Intent, ...] = ()
    """Further intents that the operator has to approve."""
    repairs: tuple[RuleKey, ...] = ()
    """The continuous rules that are broken now and hold again once all of it is done."""
    slot_assignments: tuple[SlotAssignment, ...] = ()
    """Assignments of slots that take effect before the intents."""
    contended: tuple[str, ...] = ()
    """The resources of which some host has too little, and to which the decider gives weight."""


class Violation(Value):
    """A constraint that a plan violates, at one time."""

    constraint: str
    at_ms: int
    """The time, counted from the start of the plan."""
    detail: str
    step: StepKey | None = None
    code: str = "rule-violated"
    """A key of ``equipoise.errors.CODES``."""
