"""What the simulated machines are doing: actions under way, how long they take, how they end.

The physics decide, not the plan; where the physics say nothing, things go as planned. Each attempt
of a step is carried out once and answered once, and answered again when it is asked for again.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from equipoise.control.ports import Cancel, Instruction, Start
from equipoise.model.action import (
    Action,
    Boot,
    EnterMaintenance,
    Forge,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Resume,
    RoleAction,
    Shutdown,
    Suspend,
)
from equipoise.model.event import ActionFailed, ActionFinished, ActionStarted, Event
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId
from equipoise.model.story.physics import SwitchPhysics
from equipoise.model.story.scenario import Scenario
from equipoise.sim.calendar import Calendar, Rank
from equipoise.sim.chance import Dice
from equipoise.sim.copying import Copying
from equipoise.sim.role_faults import RoleFaults
from equipoise.sim.truth import Truth

Answer = ActionFinished | ActionFailed


class Doing:
    """All actions under way."""

    def __init__(self, scenario: Scenario, truth: Truth, calendar: Calendar) -> None:
        self._scenario = scenario
        self._truth = truth
        self._calendar = calendar
        self._asked: set[tuple[StepId, int]] = set()
        self._answers: dict[tuple[StepId, int], Answer] = {}
        self._again: deque[Event] = deque()
        self.stuck_hosts: set[HostId] = set()
        """Hosts that will hang when they are woken next."""
        self.role_faults = RoleFaults()
        migration = scenario.physics.migration
        slow = scenario.unrest.slow_migrations
        self.copying = None if migration is None else Copying(migration, slow, truth, calendar)

    def perform(self, instruction: Instruction) -> None:
        """Begin an action, or break it off."""
        match instruction:
            case Start():
                self._start(instruction.step, instruction.attempt)
            case Cancel():
                self._cancel(instruction)

    def answer_again(self) -> Event | None:
        """The next answer that was asked for a second time."""
        return self._again.popleft() if self._again else None

    def forget_lost(self) -> None:
        """Stop what has been ended by a fault."""
        if self.copying is not None:
            self.copying.drop_lost()

    def _start(self, step: Step, attempt: int) -> None:
        if (step.id, attempt) in self._asked:
            self._repeat(step.id, attempt)
            return
        self._asked.add((step.id, attempt))
        now_ms = self._truth.now_ms
        self._truth.happen(ActionStarted(at_ms=now_ms, step=step, attempt=attempt))
        if step.id not in self._truth.state.in_flight:
            return  # a VM or host that is gone: what was asked for is as good as broken off
        if isinstance(step.action, RoleAction) and self._is_stale(step, step.action, attempt):
            return
        dice = Dice(self._scenario.seed, "action", step.id, str(attempt))
        if self.copying is not None and isinstance(step.action, Migrate):
            self.copying.begin(step, attempt, dice, self._end)
        elif not self._hangs(step.action, dice):
            reason = self._failure(step.action, dice)
            end = partial(self._end, step.id, attempt, reason)
            self._calendar.write(now_ms + self._duration_ms(step, dice), Rank.END, end)

    def _is_stale(self, step: Step, action: RoleAction, attempt: int) -> bool:
        """Refuse what somebody asks for who does not reign any more."""
        duties = self._truth.state.duties
        if action.epoch >= duties.epoch:
            duties.reign(action.epoch)
            return False
        reason = f"refused: epoch {action.epoch} is over, {duties.epoch} reigns"
        end = partial(self._end, step.id, attempt, reason)
        self._calendar.write(self._truth.now_ms, Rank.END, end)
        return True

    def _repeat(self, step: StepId, attempt: int) -> None:
        """The loop has crashed and asks again: what is still on its way will be answered anyway."""
        running = self._truth.state.in_flight.get(step)
        if running is None or running.attempt != attempt:
            broken = ActionFailed(
                at_ms=self._truth.now_ms, step=step, attempt=attempt, reason="broken off"
            )
            self._again.append(self._answers.get((step, attempt), broken))

    def _cancel(self, cancel: Cancel) -> None:
        end = partial(self._end, cancel.step, cancel.attempt, "cancelled")
        self._calendar.write(self._truth.now_ms, Rank.END, end)

    def _end(self, step: StepId, attempt: int, failure: str) -> Event | None:
        """An action ends, unless a fault has ended it before."""
        running = self._truth.state.in_flight.get(step)
        if running is None or running.attempt != attempt:
            return None
        now_ms = self._truth.now_ms
        answer: Answer = ActionFinished(at_ms=now_ms, step=step, attempt=attempt)
        if failure:
            answer = ActionFailed(at_ms=now_ms, step=step, attempt=attempt, reason=failure)
        self._answers[step, attempt] = answer
        self._truth.happen(answer)
        self.forget_lost()
        return answer

    def _hangs(self, action: Action, dice: Dice) -> bool:
        if isinstance(action, RoleAction):
            return self.role_faults.hangs(action)
        if not isinstance(action, PowerOn):
            return False
        hanging = self._scenario.unrest.hanging_power_ons
        by_chance = hanging is not None and dice.roll() * 100 < hanging.pct
        foretold = action.host in self.stuck_hosts
        self.stuck_hosts.discard(action.host)
        return by_chance or foretold

    def _failure(self, action: Action, dice: Dice) -> str:
        if isinstance(action, RoleAction):
            return self.role_faults.failure(action, self._scenario.physics.roles, dice)
        physics = self._scenario.physics.switching
        if physics is None:
            return ""
        match action:
            case PowerOn() | PowerOff():
                return "the host did not obey" if dice.roll() * 100 < physics.failed_pct else ""
            case Boot() | Reinstantiate() | Resume():
                return "the VM did not start" if dice.roll() * 100 < physics.boot_failed_pct else ""
            case _:
                return ""

    def _duration_ms(self, step: Step, dice: Dice) -> int:
        roles = self._scenario.physics.roles
        if isinstance(step.action, RoleAction):
            jitter_pct = 0.0 if roles is None else roles.jitter_pct
            jitter = 1 + (2 * dice.roll() - 1) * jitter_pct / 100
            return max(1, round(step.duration_ms * jitter))
        physics = self._scenario.physics.switching
        usual_s = None if physics is None else self._usual_s(step.action, physics)
        if physics is None or usual_s is None:
            return step.duration_ms
        jitter = 1 + (2 * dice.roll() - 1) * physics.jitter_pct / 100
        return max(1, round(1000 * usual_s * jitter))

    def _usual_s(self, action: Action, physics: SwitchPhysics) -> float | None:
        match action:
            case PowerOn():
                return physics.power_on_s
            case PowerOff():
                return physics.power_off_s
            case EnterMaintenance():
                return physics.enter_maintenance_s
            case LeaveMaintenance():
                return physics.leave_maintenance_s
            case Boot():
                return physics.boot_s
            case Shutdown():
                return physics.shutdown_s
            case Forge():
                return physics.forge_s
            case Reinstantiate():
                return physics.forge_s + physics.boot_s + physics.shutdown_s
            case Suspend() | Resume():
                return self._truth.state.vms[action.vm].memory_mib / physics.suspend_mib_per_s
            case _:
                return None
