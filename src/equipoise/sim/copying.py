"""Migrations under way in the simulated world: their copies, and what they cost meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from equipoise.model.action import Migrate
from equipoise.model.event import Event
from equipoise.model.plan import Step
from equipoise.model.quantity import StepId
from equipoise.model.story.physics import MigrationPhysics
from equipoise.model.story.unrest import Slowness
from equipoise.sim.calendar import Calendar, Rank
from equipoise.sim.chance import Dice
from equipoise.sim.migration import Copy, Links
from equipoise.sim.truth import Truth

End = Callable[[StepId, int, str], Event | None]


class Copying:
    """All migrations under way, and what the hosts and VMs feel of them."""

    def __init__(
        self,
        physics: MigrationPhysics,
        slowness: Slowness | None,
        truth: Truth,
        calendar: Calendar,
    ) -> None:
        self._physics = physics
        self._slowness = slowness
        self._truth = truth
        self._calendar = calendar
        self._links = Links(physics)
        self._felt: dict[StepId, Copy] = {}
        """Copies that cost something now: those that wait for their turn cost nothing."""
        self._ends: dict[StepId, End] = {}

    @property
    def count(self) -> int:
        """How many VMs are being copied."""
        return len(self._felt)

    def begin(self, step: Step, attempt: int, dice: Dice, end: End) -> None:
        """Begin a migration, or let it wait until its hosts have a place for it."""
        assert isinstance(step.action, Migrate)
        copy = self._new_copy(step, step.action, attempt, dice)
        self._ends[step.id] = end
        self._schedule(self._links.add(copy, self._truth.now_ms))

    def set_speed(self, speed: float) -> None:
        """All links become slower or faster."""
        self._schedule(self._links.set_speed(speed, self._truth.now_ms))

    def drop_lost(self) -> None:
        """Forget the copies whose migration has ended, well or by a fault."""
        in_flight = self._truth.state.in_flight
        for step in [step for step in self._ends if step not in in_flight]:
            del self._ends[step]
            copy = self._felt.pop(step, None)
            if copy is not None:
                self._feel(copy, -1)
                self._truth.fluid.set_pace(copy.vm, 1.0)
            self._schedule(self._links.drop(step, self._truth.now_ms))

    def _new_copy(self, step: Step, action: Migrate, attempt: int, dice: Dice) -> Copy:
        slow = self._slowness is not None and dice.roll() * 100 < self._slowness.pct
        fails = dice.roll() * 100 < self._physics.failed_pct
        memory_mib = float(self._truth.state.vms[action.vm].memory_mib)
        return Copy(
            step=step.id,
            attempt=attempt,
            vm=action.vm,
            source=action.source,
            target=action.target,
            memory_mib=memory_mib,
            speed=1 / self._slowness.factor if slow and self._slowness is not None else 1.0,
            fails_at_mib=memory_mib * dice.roll() if fails else None,
        )

    def _schedule(self, copies: Iterable[Copy]) -> None:
        for copy in copies:
            if copy.step not in self._felt:
                self._look_at_vm(copy)
                self._felt[copy.step] = copy
                self._feel(copy, 1)
                self._truth.fluid.set_pace(copy.vm, 1 - self._physics.slowdown_pct / 100)
            due_ms = self._truth.now_ms + copy.wait_ms()
            self._calendar.write(due_ms, Rank.END, partial(self._turn, copy, copy.turn))

    def _look_at_vm(self, copy: Copy) -> None:
        """A copy begins: how busy is the VM?"""
        fluid, physics = self._truth.fluid, self._physics
        fluid.settle()
        vm = fluid.vms[fluid.vm_row[copy.vm]]
        copy.dirty_mib_per_s = physics.dirty_mib_per_ghz * float(vm["cpu_got"]) / 1000
        copy.dirty_mib_max = float(vm["memory_want"]) * physics.dirty_pct_max / 100
        copy.taken_mib = float(vm["memory_want"])

    def _turn(self, copy: Copy, turn: int) -> Event | None:
        """A round of a copy ends, unless its speed has changed since this was foreseen."""
        if copy.turn != turn:
            return None
        copy.go_on(self._truth.now_ms)
        end = self._ends[copy.step]
        if copy.is_broken:
            return end(copy.step, copy.attempt, "the connection broke")
        if copy.stopped:
            return end(copy.step, copy.attempt, "")
        copy.next_round(self._physics)
        copy.turn += 1
        if copy.stopped:
            self._truth.fluid.set_pace(copy.vm, 0.0)
        self._schedule([copy])
        return None

    def _feel(self, copy: Copy, sign: int) -> None:
        """A copy costs its two hosts CPU, and its target memory."""
        cpu_mhz = sign * self._physics.cpu_mhz
        self._truth.fluid.take(copy.source, cpu_mhz, 0)
        self._truth.fluid.take(copy.target, cpu_mhz, sign * copy.taken_mib)
