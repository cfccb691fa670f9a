"""The simulated engine: carries out schedules in virtual time and tells what happens meanwhile."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from random import Random

from equipoise.model.event import Event, HostFailed, HostRecovered
from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade.campaign import Campaign, Failing, Moment
from equipoise.model.upgrade.event import (
    BatchDecided,
    BatchEnded,
    IterationBegan,
    ScalingAsked,
    TaskFailed,
    TaskFinished,
    UpgradeCommanded,
    UpgradeRequested,
    VmMoved,
    VmMoveFailed,
)
from equipoise.model.upgrade.work import Batch, Errand, Task, VmBatch
from equipoise.sim.upgrading.tenants import Autoscalers


class SimulatedEngine:
    """Machines that do as the story of a campaign says."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._story = campaign.story
        self._queue: list[tuple[int, int, Event]] = []
        self._number = 0
        self._now_ms = 0
        self._down: set[HostId] = set()
        self._answered: dict[tuple[str, str], dict[str, None]] = {}
        """In which batches each resource has been through each errand."""
        self._failing = {one.resource: one for one in self._story.failing}
        self._failed_times: dict[ResourceId, int] = {}
        self._answers: dict[str, list[Event]] = {}
        """What was or will be answered, by schedule, so that one that comes twice is done once."""
        self._waiting = [one for one in self._story.moments if one.at_s is None]
        self._tenants = Autoscalers(campaign)
        self._reliving = True
        """Until it is first asked what happens: what it hears of has happened in an earlier run."""
        for moment in self._story.moments:
            if moment.at_s is not None:
                self._happen(moment, moment.at_s * 1000)
        for at_ms, event in self._tenants.first():
            self._put(at_ms, event)

    def perform(self, schedule: Batch | VmBatch) -> None:
        """Begin to carry out a schedule; one that was given before is only answered again."""
        known = self._answers.get(schedule.id)
        if known is not None:
            pending = {id(event) for _, _, event in self._queue}
            for event in known:
                if id(event) not in pending:
                    self._put(self._now_ms, event.but(at_ms=max(self._now_ms, event.at_ms)))
            return
        if isinstance(schedule, Batch):
            answers = list(self._batch(schedule))
        else:
            answers = list(self._moves(schedule))
        self._answers[schedule.id] = answers
        for event in answers:
            self._put(event.at_ms, event)

    def next_event(self, until_ms: int | None) -> Event | None:
        """Give the next event up to a time, or ``None``."""
        self._reliving = False
        if until_ms is None and self.due_ms() is None:
            return None
        if not self._queue or (until_ms is not None and self._queue[0][0] > until_ms):
            self._now_ms = max(self._now_ms, until_ms or 0)
            return None
        at_ms, _, event = heapq.heappop(self._queue)
        self._now_ms = max(self._now_ms, at_ms)
        if isinstance(event, ScalingAsked):
            follows = self._tenants.next(event)
            if follows is not None:
                self._put(follows.at_ms, follows)
        return event

    def due_ms(self) -> int | None:
        """When the next thing happens; nothing if nothing will unless it is given work."""
        over = self._tenants.all_in_vain(event for _, _, event in self._queue)
        return self._queue[0][0] if self._queue and not over else None

    def witness(self, event: Event) -> None:
        """Let what waits for an iteration happen when it gets there."""
        self._now_ms = max(self._now_ms, event.at_ms)
        if self._reliving:
            self._relive(event)
        match event:
            case IterationBegan():
                self._reached(event.iteration, before_vms=False)
            case BatchDecided(batch=()):
                self._reached(event.iteration, before_vms=True)
            case BatchEnded() if event.batch.isdigit():
                self._reached(int(event.batch), before_vms=True)
            case TaskFinished() | TaskFailed():
                key = event.resource, event.errand
                self._answered.setdefault(key, {})[event.batch] = None
            case HostFailed():
                self._down.add(event.host)
            case HostRecovered():
                self._down.discard(event.host)
            case _:
                self._tenants.witness(event)

    def _relive(self, event: Event) -> None:
        """Take what has happened before out of what is to come."""
        kept = [one for one in self._queue if one[2] != event]
        if len(kept) < len(self._queue):
            self._queue = kept
            heapq.heapify(self._queue)
            follows = self._tenants.next(event) if isinstance(event, ScalingAsked) else None
            if follows is not None:
                self._put(follows.at_ms, follows)
        if isinstance(event, TaskFailed) and event.resource in self._failing:
            self._failed_times[event.resource] = self._failed_times.get(event.resource, 0) + 1

    def _reached(self, iteration: int, *, before_vms: bool) -> None:
        due = [
            one
            for one in self._waiting
            if one.iteration == iteration and one.before_vms is before_vms
        ]
        self._waiting = [one for one in self._waiting if one not in due]
        for moment in due:
            self._happen(moment, self._now_ms)

    def _happen(self, moment: Moment, at_ms: int) -> None:
        for one in moment.scaling:
            self._put(at_ms, ScalingAsked(at_ms=at_ms, tenant=one.tenant, vms=one.vms))
        if moment.request is not None:
            self._put(at_ms, UpgradeRequested(at_ms=at_ms, request=moment.request))
        if moment.command is not None:
            self._put(at_ms, UpgradeCommanded(at_ms=at_ms, command=moment.command))
        if moment.host_fails is not None:
            self._put(at_ms, HostFailed(at_ms=at_ms, host=moment.host_fails))
        if moment.host_recovers is not None:
            self._put(at_ms, HostRecovered(at_ms=at_ms, host=moment.host_recovers))

    def _put(self, at_ms: int, event: Event) -> None:
        self._number += 1
        heapq.heappush(self._queue, (at_ms, self._number, event))

    # Carrying out

    def _batch(self, batch: Batch) -> Iterator[Event]:
        start_ms = end_ms = self._now_ms
        dead: set[str] = set()
        for stage in batch.stages:
            clock: dict[str, int] = {}
            for task in stage:
                if task.vertex in dead:
                    continue
                chance = self._chance(batch, task)
                lasts_ms = self._about(task.duration_s * 1000, chance)
                at_ms = clock.get(task.vertex, start_ms) + lasts_ms
                clock[task.vertex] = at_ms
                answer = self._answer(batch, task, at_ms, chance)
                if isinstance(answer, TaskFailed):
                    dead.add(task.vertex)
                yield answer
                end_ms = max(end_ms, at_ms)
            start_ms = end_ms
        yield BatchEnded(at_ms=end_ms, batch=batch.id)

    def _chance(self, batch: Batch, task: Task) -> Random:
        """Chance that depends on how often it was tried, not on crashes and on when it is done."""
        before = self._answered.get((task.resource, task.errand), {}).keys() - {batch.id}
        return self._luck(task.resource, task.errand, str(len(before)))

    def _luck(self, *about: str) -> Random:
        return Random(" ".join((str(self._campaign.seed), "engine", *about)))

    def _about(self, time_ms: int, chance: Random) -> int:
        """A time, give or take what the story says."""
        if not self._story.jitter:
            return time_ms
        return round(time_ms * (1 + self._story.jitter * chance.uniform(-1, 1)))

    def _answer(
        self, batch: Batch, task: Task, at_ms: int, chance: Random
    ) -> TaskFinished | TaskFailed:
        why, unreachable = self._fails(task, chance)
        if why:
            done = len(task.works) - 1 if task.errand is Errand.APPLY and task.works else 0
            return TaskFailed(
                at_ms=at_ms,
                batch=batch.id,
                resource=task.resource,
                errand=task.errand,
                done=max(0, done),
                unreachable=unreachable,
                reason=why,
            )
        return TaskFinished(at_ms=at_ms, batch=batch.id, resource=task.resource, errand=task.errand)

    def _fails(self, task: Task, chance: Random) -> tuple[str, bool]:
        """Whether a task fails, and whether its machine does not even answer."""
        if task.host is not None and task.host in self._down:
            return "its host is down", True
        script = self._failing.get(task.resource)
        if script is not None and self._is_due(script, task):
            return "it was told to fail", script.unreachable
        rate = 0.0
        if task.errand is Errand.APPLY:
            rate = self._story.failure_rate
        elif task.errand is Errand.REVERT:
            rate = self._story.revert_failure_rate
        fails = rate > 0 and chance.random() < rate
        return ("by chance" if fails else ""), False

    def _is_due(self, script: Failing, task: Task) -> bool:
        if task.errand is Errand.REVERT:
            return script.reverting
        wanted = Errand.CHECK if script.unhealthy else Errand.APPLY
        if task.errand is not wanted:
            return False
        times = self._failed_times.get(task.resource, 0)
        self._failed_times[task.resource] = times + 1
        return script.times is None or times < script.times

    def _moves(self, batch: VmBatch) -> Iterator[Event]:
        longest_ms = self._now_ms
        for move in batch.moves:
            lasts_ms = self._campaign.settings.vm_move_s * 1000
            at_ms = self._now_ms + self._about(lasts_ms, self._luck(batch.id, move.vm))
            longest_ms = max(longest_ms, at_ms)
            if move.target in self._down or move.source in self._down:
                yield VmMoveFailed(at_ms=at_ms, batch=batch.id, vm=move.vm, reason="host is down")
            else:
                yield VmMoved(at_ms=at_ms, batch=batch.id, vm=move.vm)
        yield BatchEnded(at_ms=longest_ms, batch=batch.id)
