"""Runs actions in the simulated world: how long each takes, and whether it fails or hangs.

The physics of the scenario decide, not the plan. An action takes its planned time where the physics
have no figure. Each attempt of a step runs once and has one answer; a repeated request gets the
same answer again. Durations of migrations are in ``migration``.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Final

from equipoise.control.leader_epoch import stale_epoch_reason
from equipoise.control.ports import CancelAction, Instruction, StartAction
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
    StartRole,
    Suspend,
)
from equipoise.model.event import ActionFailed, ActionFinished, ActionStarted, Event
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, ProcessorId, RoleId, StepId
from equipoise.model.scenario.faults import RoleStartsFail
from equipoise.model.scenario.physics import PowerPhysics, RolePhysics
from equipoise.model.scenario.scenario import Scenario
from equipoise.sim.random_streams import RandomStream
from equipoise.sim.world.event_queue import EventPriority, EventQueue
from equipoise.sim.world.ground_truth import GroundTruth
from equipoise.sim.world.migration import ActionFault, LiveMigrations

CANCELLED: Final = ActionFault("cancelled", "the action was cancelled")
INTERRUPTED: Final = ActionFault("action-interrupted", "a fault ended the action")


class RoleStartFaults:
    """The role starts that a scenario schedules to fail or to hang."""

    def __init__(self) -> None:
        self._remaining: dict[tuple[ProcessorId, RoleId | None, bool], int] = {}

    def schedule(self, fault: RoleStartsFail) -> None:
        """Let the next ``fault.times`` starts fail or hang."""
        key = fault.processor, fault.role, fault.hang
        self._remaining[key] = self._remaining.get(key, 0) + fault.times

    def hangs(self, action: RoleAction) -> bool:
        """Return whether an action never ends by itself."""
        return self._consume(action, hang=True)

    def failure(
        self, action: RoleAction, physics: RolePhysics | None, rng: RandomStream
    ) -> ActionFault | None:
        """Return why an action fails; ``None`` if it does not."""
        started = ActionFault("role-start-failed", "the applications did not start")
        if self._consume(action, hang=False):
            return started
        if physics is None:
            return None
        starting = isinstance(action, StartRole)
        pct = physics.start_failed_pct if starting else physics.stop_failed_pct
        if rng.uniform() * 100 >= pct:
            return None
        if starting:
            return started
        return ActionFault("role-stop-failed", "the applications did not stop")

    def _consume(self, action: RoleAction, *, hang: bool) -> bool:
        if not isinstance(action, StartRole):
            return False
        for role in (action.role, None):  # a fault for this role comes before one for any role
            key = action.processor, role, hang
            if self._remaining.get(key, 0) > 0:
                self._remaining[key] -= 1
                return True
        return False


ActionAnswer = ActionFinished | ActionFailed


class ActionRunner:
    """Starts and cancels actions, and answers each attempt once."""

    def __init__(
        self, scenario: Scenario, truth: GroundTruth, event_queue: EventQueue[int]
    ) -> None:
        self._scenario = scenario
        self._truth = truth
        self._event_queue = event_queue
        self._started: set[tuple[StepId, int]] = set()
        self._answers: dict[tuple[StepId, int], ActionAnswer] = {}
        self._repeated_answers: deque[Event] = deque()
        self._stuck_hosts: set[HostId] = set()
        """Hosts whose next power-on hangs."""
        self._role_faults = RoleStartFaults()
        physics = scenario.physics.migration
        slow = scenario.faults.slow_migrations
        self._migrations = (
            None if physics is None else LiveMigrations(physics, slow, truth, event_queue)
        )

    @property
    def migration_count(self) -> int:
        """The number of VMs whose memory is being copied."""
        return 0 if self._migrations is None else self._migrations.count

    def perform(self, instruction: Instruction) -> None:
        """Start an action, or cancel it."""
        match instruction:
            case StartAction():
                self._start(instruction.step, instruction.attempt)
            case CancelAction():
                self._cancel(instruction)

    def next_repeated_answer(self) -> Event | None:
        """Return the next answer to a repeated request; ``None`` if there is none."""
        return self._repeated_answers.popleft() if self._repeated_answers else None

    def drop_ended(self) -> None:
        """Stop the migrations whose action a fault has ended."""
        if self._migrations is not None:
            self._migrations.drop_ended()

    def hang_next_power_on(self, host: HostId) -> None:
        """Let the next power-on of a host never end by itself."""
        self._stuck_hosts.add(host)

    def schedule_role_start_faults(self, fault: RoleStartsFail) -> None:
        """Let the next starts of a role fail or hang."""
        self._role_faults.schedule(fault)

    def set_link_speed(self, speed: float) -> None:
        """Set the speed of all migration links, as a share of their nominal speed."""
        if self._migrations is not None:
            self._migrations.set_speed(speed)

    def _start(self, step: Step, attempt: int) -> None:
        if (step.id, attempt) in self._started:
            self._repeat(step.id, attempt)
            return
        self._started.add((step.id, attempt))
        now_ms = self._truth.now_ms
        # The transition decides whether the action can begin, exactly as in the loop.
        self._truth.apply_event(ActionStarted(at_ms=now_ms, step=step, attempt=attempt))
        if step.id not in self._truth.state.in_flight:
            return  # the VM or host is gone, so the action ended before it began
        if isinstance(step.action, RoleAction) and self._is_stale(step, step.action, attempt):
            return
        rng = RandomStream(self._scenario.seed, "action", step.id, str(attempt))
        # The order of the draws (hang, failure, duration) is part of the seed's meaning.
        if self._migrations is not None and isinstance(step.action, Migrate):
            self._migrations.begin(step, attempt, rng, self._end)
        elif not self._hangs(step.action, rng):
            fault = self._failure(step.action, rng)
            end = partial(self._end, step.id, attempt, fault)
            self._event_queue.schedule(
                now_ms + self._duration_ms(step, rng), EventPriority.END, end
            )

    def _is_stale(self, step: Step, action: RoleAction, attempt: int) -> bool:
        """Refuse an action of an earlier leader epoch; return whether it was refused."""
        role_state = self._truth.state.role_state
        reason = stale_epoch_reason(action.epoch, role_state.epoch)
        if not reason:
            role_state.raise_epoch(action.epoch)
            return False
        end = partial(self._end, step.id, attempt, ActionFault("stale-epoch", reason))
        self._event_queue.schedule(self._truth.now_ms, EventPriority.END, end)
        return True

    def _repeat(self, step: StepId, attempt: int) -> None:
        """Answer again: a loop that has crashed repeats its requests.

        An attempt that still runs gets its answer when it ends.
        """
        running = self._truth.state.in_flight.get(step)
        if running is None or running.attempt != attempt:
            interrupted = _failed(self._truth.now_ms, step, attempt, INTERRUPTED)
            self._repeated_answers.append(self._answers.get((step, attempt), interrupted))

    def _cancel(self, cancel: CancelAction) -> None:
        end = partial(self._end, cancel.step, cancel.attempt, CANCELLED)
        self._event_queue.schedule(self._truth.now_ms, EventPriority.END, end)

    def _end(self, step: StepId, attempt: int, fault: ActionFault | None) -> Event | None:
        """End an action and answer it, unless a fault of its host or VM ended it before."""
        running = self._truth.state.in_flight.get(step)
        if running is None or running.attempt != attempt:
            return None
        now_ms = self._truth.now_ms
        answer: ActionAnswer = ActionFinished(at_ms=now_ms, step=step, attempt=attempt)
        if fault is not None:
            answer = _failed(now_ms, step, attempt, fault)
        self._answers[step, attempt] = answer
        self._truth.apply_event(answer)
        self.drop_ended()
        return answer

    def _hangs(self, action: Action, rng: RandomStream) -> bool:
        if isinstance(action, RoleAction):
            return self._role_faults.hangs(action)
        if not isinstance(action, PowerOn):
            return False
        hanging = self._scenario.faults.hanging_power_ons
        is_drawn = hanging is not None and rng.uniform() * 100 < hanging.pct
        is_scheduled = action.host in self._stuck_hosts
        # A scheduled hang counts once, also when the random one would have struck.
        self._stuck_hosts.discard(action.host)
        return is_drawn or is_scheduled

    def _failure(self, action: Action, rng: RandomStream) -> ActionFault | None:
        if isinstance(action, RoleAction):
            return self._role_faults.failure(action, self._scenario.physics.roles, rng)
        physics = self._scenario.physics.switching
        if physics is None:
            return None
        match action:
            case PowerOn() | PowerOff():
                fails = rng.uniform() * 100 < physics.failed_pct
                fault = ActionFault("power-failed", "the host did not change its power state")
            case Boot() | Reinstantiate() | Resume():
                fails = rng.uniform() * 100 < physics.boot_failed_pct
                fault = ActionFault("boot-failed", "the VM did not start")
            case _:
                return None
        return fault if fails else None

    def _duration_ms(self, step: Step, rng: RandomStream) -> int:
        roles = self._scenario.physics.roles
        if isinstance(step.action, RoleAction):
            jitter_pct = 0.0 if roles is None else roles.jitter_pct
            jitter = 1 + (2 * rng.uniform() - 1) * jitter_pct / 100
            # At least 1 ms, so that an end never precedes its start.
            return max(1, round(step.duration_ms * jitter))
        physics = self._scenario.physics.switching
        nominal_s = None if physics is None else self._nominal_s(step.action, physics)
        if physics is None or nominal_s is None:
            return step.duration_ms
        jitter = 1 + (2 * rng.uniform() - 1) * physics.jitter_pct / 100
        return max(1, round(1000 * nominal_s * jitter))

    def _nominal_s(self, action: Action, physics: PowerPhysics) -> float | None:
        """Return the duration without jitter; ``None`` if the physics have no figure for it."""
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


def _failed(at_ms: int, step: StepId, attempt: int, fault: ActionFault) -> ActionFailed:
    return ActionFailed(
        at_ms=at_ms, step=step, attempt=attempt, reason=fault.reason, code=fault.code
    )
