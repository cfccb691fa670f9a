"""How a running VM comes to another host: it migrates, or is made anew there."""

from __future__ import annotations

from itertools import combinations, pairwise

from equipoise.model.problem import Measure
from equipoise.model.problem.durations import Durations
from equipoise.model.problem.problem import ActionKind
from equipoise.model.vm import Vm
from equipoise.plan.exact.solver.circuit import NO, Circuit
from equipoise.plan.exact.task import Task
from equipoise.plan.exact.timeline.course import MOVES, Course


def ways_to_move(
    vm: Vm, task: Task, durations: Durations, *, over_links: bool
) -> tuple[ActionKind, ...]:
    """Who may be made anew has the choice, unless one of the two ways is never the better one.

    They differ in nothing but their time, where no links are shared, and to whoever asks neither
    for actions nor for memory. Of two that end together, the shorter one is in nobody's way longer.
    """
    if not vm.replaceable or vm.template is None:
        return (ActionKind.MIGRATE,)
    if not over_links and not task.looks_at_actions:
        copied_ms = durations.vm_ms(ActionKind.MIGRATE, vm.id)
        made_ms = durations.vm_ms(ActionKind.REINSTANTIATE, vm.id)
        if made_ms < copied_ms:
            return (ActionKind.REINSTANTIATE,)
        if not task.counts(Measure.MOVED_MEMORY):
            return (ActionKind.MIGRATE,)
    return (ActionKind.MIGRATE, ActionKind.REINSTANTIATE)


def order_moves(course: Course, circuit: Circuit) -> None:
    """Each time it moves a VM does so in one way, and who moves once moves the first time."""
    moves = [leg for leg in course.legs if leg.kind in MOVES]
    choices = max(1, len({leg.kind for leg in moves}))
    theres = [leg.there for leg in moves]
    times = [theres[first : first + choices] for first in range(0, len(theres), choices)]
    for choice in times:
        for one, other in combinations(choice, 2):
            circuit.require(NO, (one, other))
    for earlier, later in pairwise(times):
        for moved in later:
            circuit.require(circuit.any(earlier), (moved,))
