"""Schedulers that are wrong on purpose: each believes one thing that is not so.

They are the six causes of defects that the paper found in BtrPlace, so that it is known beforehand
what a campaign must find. Where its cause plays no part, each is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from equipoise.fuzz.schedulers.scheduler import Accepting
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import Move
from equipoise.model.change.draft import Draft
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.spec.case import Case
from equipoise.spec.moment import moments
from equipoise.spec.view import Frame, Steps, View


class ByTheBook:
    """Judges as the specification does. Those that are wrong differ from it at one point."""

    def accepts(self, trial: Trial) -> bool:
        """Whether machines could carry the plan out, and the constraint holds as it sees things."""
        return not trial.objections and self._keeps(trial)

    def _keeps(self, trial: Trial) -> bool:
        demand, case = trial.demand, self._believed(trial)
        views = [self._seen(one.state.freeze()) for one in moments(*case)]
        steps = Steps(case.steps)
        frames = (
            Frame(view, views[0], views[-1], steps, views) for view in self._watched(trial, views)
        )
        return all(demand.specification.holds(demand.name, demand.arguments, one) for one in frames)

    def _believed(self, trial: Trial) -> Case:
        """What it thinks will happen."""
        return Case(trial.initial, trial.steps)

    def _seen(self, state: Snapshot) -> View:
        """What it sees of the state at one moment."""
        return View.of(state)

    def _watched(self, trial: Trial, views: Sequence[View]) -> Sequence[View]:
        """The moments at which it asks whether the constraint holds."""
        return views if trial.demand.continuous else views[-1:]


class Forgiving(ByTheBook):
    """Cause A: thinks that what is broken at first need not hold before the end.

    It takes a continuous constraint for a discrete one then, instead of saying that it is broken.
    """

    def _watched(self, trial: Trial, views: Sequence[View]) -> Sequence[View]:
        return views[-1:] if trial.is_broken_at_first else super()._watched(trial, views)


class Fragile(ByTheBook):
    """Cause B: thinks that no set, no list and no group of a packing is ever empty, and crashes."""

    def _keeps(self, trial: Trial) -> bool:
        for value in trial.demand.arguments.values():
            _depth(value)
        return super()._keeps(trial)


class BothEnds(ByTheBook):
    """Cause C: thinks that what holds at first and in the end holds in between.

    That is enough for a discrete constraint, but not for a continuous one.
    """

    def _watched(self, trial: Trial, views: Sequence[View]) -> Sequence[View]:
        watched = super()._watched(trial, views)
        return (watched[0], watched[-1])


class OneByOne(ByTheBook):
    """Cause D: thinks that an action begins only when those that began before it are over."""

    def _believed(self, trial: Trial) -> Case:
        return Case(trial.initial, _in_a_row(trial.steps))


class TwoPlaces(ByTheBook):
    """Cause E: thinks that a VM that migrates runs on both hosts; it only has room on both."""

    def _seen(self, state: Snapshot) -> View:
        return _Doubled.of(state)


class AllAwake(ByTheBook):
    """Cause F: thinks that every VM that lies on a host at first runs there, even if it sleeps."""

    def _believed(self, trial: Trial) -> Case:
        draft = Draft(trial.initial)
        for vm in trial.initial.vms.values():
            if vm.state is VmState.SLEEPING:
                draft.put_vm(vm.but(state=VmState.RUNNING))
        return Case(draft.freeze(), trial.steps)


FAULTY: Final[Mapping[str, Callable[[], Accepting]]] = {
    "faulty-A": Forgiving,
    "faulty-B": Fragile,
    "faulty-C": BothEnds,
    "faulty-D": OneByOne,
    "faulty-E": TwoPlaces,
    "faulty-F": AllAwake,
}
"""What makes each of them, by name: the letters are those of the paper's table of causes."""


def _depth(value: Any) -> int:
    """How deep an argument is nested, by the deepest of its members: there had better be one."""
    return 1 + max(map(_depth, value)) if isinstance(value, frozenset | tuple) else 0


class _Doubled(View):
    """A state in which those on their way run on their targets too."""

    __slots__ = ()

    def running(self, host: HostId) -> frozenset[VmId]:
        steps = self.on_host(host)
        moving = (step.action.vm for step in steps if isinstance(step.action, Move))
        return super().running(host).union(moving)


def _in_a_row(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps in their order, each put off until the one before it is over."""
    found: list[Step] = []
    free_ms = 0
    for step in sorted(steps, key=lambda one: (one.start_ms, one.end_ms, one.id)):
        late_ms = max(0, free_ms - step.start_ms)
        found.append(step.but(start_ms=step.start_ms + late_ms, end_ms=step.end_ms + late_ms))
        free_ms = found[-1].end_ms
    return tuple(found)
