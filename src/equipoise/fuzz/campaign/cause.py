"""What a defect looks like, by the causes that the SafePlace paper has found in BtrPlace.

It is a guess from the smallest case, where little is left that could be the cause. It helps to see
at once which findings may be one and the same defect.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import combinations
from typing import Any

from equipoise.fuzz.trial import Outcome, Trial, Verdict
from equipoise.model.action import Move
from equipoise.model.plan import Step
from equipoise.model.vm import Vm, VmState


class Cause(Enum):
    """A letter of the paper's table, and what it stands for."""

    BROKEN = ("A", "what is broken at first")
    UNUSUAL = ("B", "an unusual argument: an empty set, list or group")
    BETWEEN = ("C", "what happens between the beginning and the end")
    TOGETHER = ("D", "actions that go on at the same time")
    MEANING = ("E", "what an action means: a VM that moves runs on its source")
    STATE = ("F", "the state of a machine at first")
    OTHER = ("", "none of the usual causes")

    @property
    def letter(self) -> str:
        """The letter, if it has one."""
        return self.value[0]

    @property
    def words(self) -> str:
        """What it stands for."""
        return self.value[1]


def cause_of(verdict: Verdict, smallest: Trial) -> Cause:
    """Guess what a defect comes from, by its smallest case with the plan in question."""
    if smallest.network is not None:  # it would have gone if it had no part in it
        return Cause.OTHER
    if any(map(_is_empty, smallest.demand.arguments.values())):
        return Cause.UNUSUAL
    if verdict.broken_at_first:
        return Cause.BROKEN
    busy = {step.footprint.vm for step in smallest.steps}
    if any(_is_asleep(vm, vm.id in busy) for vm in smallest.initial.vms.values()):
        return Cause.STATE
    if not smallest.demand.continuous:
        return Cause.TOGETHER if _overlap(smallest.steps) else Cause.OTHER
    if verdict.outcome is Outcome.UNDER and not _overlap(smallest.steps):
        return Cause.BETWEEN
    moves = any(isinstance(step.action, Move) for step in smallest.steps)
    if verdict.outcome is Outcome.OVER and moves:
        return Cause.MEANING
    return Cause.TOGETHER if _overlap(smallest.steps) else Cause.OTHER


def _is_asleep(vm: Vm, busy: bool) -> bool:
    """Whether a VM sleeps at first, or does not run and is left alone."""
    return vm.state is VmState.SLEEPING or (vm.state is not VmState.RUNNING and not busy)


def _is_empty(value: Any) -> bool:
    """Whether it is empty, or has a member that is."""
    return isinstance(value, frozenset | tuple) and (not value or any(map(_is_empty, value)))


def _overlap(steps: Sequence[Step]) -> bool:
    return any(
        one.start_ms < other.end_ms and other.start_ms < one.end_ms
        for one, other in combinations(steps, 2)
    )
