"""The simulated engine of upgrade campaigns, and the tenants that scale meanwhile."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from equipoise.model.event import Event, HostFailed, HostRecovered
from equipoise.model.inventory import Tenant
from equipoise.model.quantity import HostId, ResourceId, TenantId, VmId
from equipoise.model.upgrade.campaign import (
    InjectedFailure,
    InjectedMoveFailure,
    ScheduledCampaignEvent,
    UpgradeCampaign,
)
from equipoise.model.upgrade.event import (
    BatchDecided,
    BatchEnded,
    BatchStarted,
    CampaignEnded,
    IterationStarted,
    ScalingAnswered,
    ScalingRequested,
    TaskFailed,
    TaskFinished,
    UpgradeCommanded,
    UpgradeRequested,
    VmBatchStarted,
    VmMoved,
    VmMoveFailed,
)
from equipoise.model.upgrade.work import TaskBatch, TaskKind, UpgradeTask, VmBatch, VmMove

IDLE_SCALINGS_MAX: Final = 1_000
"""After so many scalings without a new batch, scaling will not restart a campaign that waits."""


class TenantAutoscalers:
    """One autoscaler per tenant: up or down by one step, not sooner than its cooldown allows."""

    def __init__(self, campaign: UpgradeCampaign) -> None:
        self._mean_ms = campaign.simulation.scaling_ms_mean
        self._tenants = {tenant.id: tenant for tenant in campaign.cluster.tenants}
        self._sizes: dict[TenantId, int] = dict.fromkeys(self._tenants, 0)
        # One generator per tenant: a further tenant does not change the scaling of the others.
        self._rngs = {id_: Random(f"{campaign.seed} tenant {id_}") for id_ in self._tenants}
        self._next_requests: dict[TenantId, ScalingRequested] = {}
        """The next random scaling of each tenant."""
        self._idle_scalings = 0
        self._has_ended = False
        for vm in campaign.cluster.vms:
            if vm.tenant is not None:
                self._sizes[vm.tenant] += 1

    def first(self) -> Iterator[tuple[int, ScalingRequested]]:
        """Yield the first random scaling of each tenant, if the campaign has random scaling."""
        if self._mean_ms:
            for tenant in self._tenants.values():
                event = self._draw_request(tenant, 0)
                yield event.at_ms, event

    def next(self, last: ScalingRequested) -> ScalingRequested | None:
        """Return the scaling after a random one; ``None`` after a scheduled one or at the end."""
        if self._has_ended or self._next_requests.get(last.tenant) != last:
            return None
        return self._draw_request(self._tenants[last.tenant], last.at_ms)

    def _draw_request(self, tenant: Tenant, now_ms: int) -> ScalingRequested:
        rng, sla = self._rngs[tenant.id], tenant.sla
        wait_ms = max(sla.cooldown_s * 1000, round(rng.expovariate(1 / self._mean_ms)))
        size = self._sizes[tenant.id]
        up = size <= sla.vms_min or (size < sla.vms_max and rng.random() < 1 / 2)
        step = sla.scaling_vms if up else -sla.scaling_vms
        # One millisecond more, so that the cooldown has passed and time always advances.
        request = ScalingRequested(at_ms=now_ms + wait_ms + 1, tenant=tenant.id, vms=step)
        self._next_requests[tenant.id] = request
        return request

    def only_idle_scalings_left(self, coming: Iterable[Event]) -> bool:
        """Return whether only random scalings are to come, and many had no effect.

        Such a campaign is stuck. Random scalings go on for ever, so it would never end.
        """
        return self._idle_scalings >= IDLE_SCALINGS_MAX and all(
            isinstance(event, ScalingRequested) and self._next_requests.get(event.tenant) == event
            for event in coming
        )

    def on_event(self, event: Event) -> None:
        """Update the size of a tenant, and the number of scalings since the last batch."""
        if isinstance(event, ScalingAnswered):
            self._sizes[event.tenant] += len(event.added) - len(event.removed)
            self._idle_scalings += 1
        elif isinstance(event, BatchStarted | VmBatchStarted):
            self._idle_scalings = 0
        elif isinstance(event, CampaignEnded):
            self._has_ended = True


class SimulatedEngine:
    """Executes schedules with the durations and failures of a campaign's simulation section."""

    def __init__(self, campaign: UpgradeCampaign) -> None:
        self._campaign = campaign
        self._simulation = campaign.simulation
        self._queue: list[tuple[int, int, Event]] = []
        self._number = 0
        self._now_ms = 0
        self._down: set[HostId] = set()
        self._answered: dict[tuple[str, str], dict[str, None]] = {}
        """The batches in which each task of a resource was answered."""
        self._failing: dict[ResourceId, list[InjectedFailure]] = {}
        """The failures that the campaign injects, by resource."""
        for failure in self._simulation.failures:
            self._failing.setdefault(failure.resource, []).append(failure)
        self._moves_failed: Counter[InjectedMoveFailure] = Counter()
        """How often each injected failure of a move has occurred."""
        self._moves_under_way: dict[VmId, VmMove] = {}
        self._answers: dict[str, list[Event]] = {}
        """Past and future answers by schedule, so that a repeated schedule is executed once."""
        self._waiting = [event for event in self._simulation.events if event.at_s is None]
        self._tenants = TenantAutoscalers(campaign)
        self._is_replaying = True
        """True until the first ``next_event``: events before that are from an earlier run."""
        for scheduled in self._simulation.events:
            if scheduled.at_s is not None:
                self._schedule_events(scheduled, scheduled.at_s * 1000)
        for at_ms, event in self._tenants.first():
            self._enqueue(at_ms, event)

    def perform(self, schedule: TaskBatch | VmBatch) -> None:
        """Start to execute a schedule; a repeated schedule is only answered again."""
        known = self._answers.get(schedule.id)
        if known is not None:
            # By identity: two answers of a schedule can be equal.
            pending = {id(event) for _, _, event in self._queue}
            for event in known:
                if id(event) not in pending:
                    self._enqueue(self._now_ms, event.but(at_ms=max(self._now_ms, event.at_ms)))
            return
        if isinstance(schedule, TaskBatch):
            answers = list(self._execute_batch(schedule))
        else:
            answers = list(self._execute_moves(schedule))
        self._answers[schedule.id] = answers
        for event in answers:
            self._enqueue(event.at_ms, event)

    def next_event(self, until_ms: int | None) -> Event | None:
        """Return the next event up to a time; ``None`` if there is none."""
        self._is_replaying = False
        if until_ms is None and self.due_ms() is None:
            return None
        if not self._queue or (until_ms is not None and self._queue[0][0] > until_ms):
            self._now_ms = max(self._now_ms, until_ms or 0)
            return None
        at_ms, _, event = heapq.heappop(self._queue)
        self._now_ms = max(self._now_ms, at_ms)
        if isinstance(event, ScalingRequested):
            following = self._tenants.next(event)
            if following is not None:
                self._enqueue(following.at_ms, following)
        return event

    def due_ms(self) -> int | None:
        """Return the time of the next event; ``None`` if only a new schedule can bring one."""
        is_stuck = self._tenants.only_idle_scalings_left(event for _, _, event in self._queue)
        return self._queue[0][0] if self._queue and not is_stuck else None

    def on_event(self, event: Event) -> None:
        """Trigger the events that wait for an iteration, and keep track of answers and hosts."""
        self._now_ms = max(self._now_ms, event.at_ms)
        if self._is_replaying:
            self._replay(event)
        match event:
            case IterationStarted():
                self._trigger_events(event.iteration, before_vms=False)
            case BatchDecided(batch=()):
                self._trigger_events(event.iteration, before_vms=True)
            # Only the id of the batch itself is a number; reverts, checks and VM batches have a
            # suffix.
            case BatchEnded() if event.batch.isdigit():
                self._trigger_events(int(event.batch), before_vms=True)
            case TaskFinished() | TaskFailed():
                key = event.resource, event.kind
                self._answered.setdefault(key, {})[event.batch] = None
            case HostFailed():
                self._down.add(event.host)
            case HostRecovered():
                self._down.discard(event.host)
            case _:
                self._tenants.on_event(event)

    def _replay(self, event: Event) -> None:
        """Remove an event of an earlier run from the queue."""
        # The journal already holds this event, so the restarted engine must not report it again.
        kept = [entry for entry in self._queue if entry[2] != event]
        if len(kept) < len(self._queue):
            self._queue = kept
            heapq.heapify(self._queue)
            following = self._tenants.next(event) if isinstance(event, ScalingRequested) else None
            if following is not None:
                self._enqueue(following.at_ms, following)
        if isinstance(event, VmBatchStarted):
            self._moves_under_way = {move.vm: move for move in event.batch.moves}
        elif isinstance(event, VmMoveFailed) and event.code == "injected-failure":
            injected = self._injected_move_failure(self._moves_under_way[event.vm])
            self._moves_failed.update([injected] if injected is not None else [])

    def _trigger_events(self, iteration: int, *, before_vms: bool) -> None:
        due = [
            event
            for event in self._waiting
            if event.iteration == iteration and event.before_vms is before_vms
        ]
        self._waiting = [event for event in self._waiting if event not in due]
        for scheduled in due:
            self._schedule_events(scheduled, self._now_ms)

    def _schedule_events(self, scheduled: ScheduledCampaignEvent, at_ms: int) -> None:
        for scaling in scheduled.scaling:
            event = ScalingRequested(at_ms=at_ms, tenant=scaling.tenant, vms=scaling.vms)
            self._enqueue(at_ms, event)
        if scheduled.request is not None:
            self._enqueue(at_ms, UpgradeRequested(at_ms=at_ms, request=scheduled.request))
        if scheduled.command is not None:
            self._enqueue(at_ms, UpgradeCommanded(at_ms=at_ms, command=scheduled.command))
        if scheduled.host_fails is not None:
            self._enqueue(at_ms, HostFailed(at_ms=at_ms, host=scheduled.host_fails))
        if scheduled.host_recovers is not None:
            self._enqueue(at_ms, HostRecovered(at_ms=at_ms, host=scheduled.host_recovers))

    def _enqueue(self, at_ms: int, event: Event) -> None:
        self._number += 1
        # The number keeps the order of insertion at one instant and events out of the comparison.
        heapq.heappush(self._queue, (at_ms, self._number, event))

    # Execution

    def _execute_batch(self, batch: TaskBatch) -> Iterator[Event]:
        start_ms = end_ms = self._now_ms
        failed_vertices: set[str] = set()
        for stage in batch.stages:
            clock: dict[str, int] = {}
            for task in stage:
                if task.vertex in failed_vertices:
                    continue
                rng = self._task_rng(batch, task)
                duration_ms = self._with_jitter(task.duration_s * 1000, rng)
                at_ms = clock.get(task.vertex, start_ms) + duration_ms
                clock[task.vertex] = at_ms
                answer = self._answer(batch, task, at_ms, rng)
                if isinstance(answer, TaskFailed):
                    failed_vertices.add(task.vertex)
                yield answer
                end_ms = max(end_ms, at_ms)
            start_ms = end_ms
        yield BatchEnded(at_ms=end_ms, batch=batch.id)

    def _task_rng(self, batch: TaskBatch, task: UpgradeTask) -> Random:
        """Return a generator that depends on the number of attempts, not on times or crashes."""
        return self._rng(task.resource, task.kind, str(self._attempts_before(batch, task)))

    def _attempts_before(self, batch: TaskBatch, task: UpgradeTask) -> int:
        """Return in how many other batches such a task of the resource was answered."""
        before = self._answered.get((task.resource, task.kind), {}).keys() - {batch.id}
        return len(before)

    def _rng(self, *words: str) -> Random:
        return Random(" ".join((str(self._campaign.seed), "engine", *words)))

    def _with_jitter(self, time_ms: int, rng: Random) -> int:
        """Return a duration with the random deviation of the campaign."""
        if not self._simulation.jitter:
            return time_ms
        return round(time_ms * (1 + self._simulation.jitter * rng.uniform(-1, 1)))

    def _answer(
        self, batch: TaskBatch, task: UpgradeTask, at_ms: int, rng: Random
    ) -> TaskFinished | TaskFailed:
        failure = self._failure(batch, task, rng)
        if failure is not None:
            code, reason, unreachable = failure
            # A failed upgrade fails at its last work: the earlier ones have to be reverted.
            is_begun = code != "connection-refused" and task.kind is TaskKind.APPLY
            done = len(task.works) - 1 if is_begun else 0
            return TaskFailed(
                at_ms=at_ms,
                batch=batch.id,
                resource=task.resource,
                kind=task.kind,
                done=max(0, done),
                unreachable=unreachable,
                reason=reason,
                code=code,
            )
        return TaskFinished(at_ms=at_ms, batch=batch.id, resource=task.resource, kind=task.kind)

    def _failure(
        self, batch: TaskBatch, task: UpgradeTask, rng: Random
    ) -> tuple[str, str, bool] | None:
        """Return code and reason if a task fails, and whether its resource is unreachable."""
        if task.host is not None and task.host in self._down:
            return "host-down", f"host {task.host} is down", True
        attempt = 1 + self._attempts_before(batch, task)
        for injected in self._failing.get(task.resource, ()):
            if not _is_due(injected, task, attempt):
                continue
            if injected.refused:
                return "connection-refused", "the campaign refuses this connection", True
            return "injected-failure", "the campaign injects this failure", injected.unreachable
        return self._random_failure(task, rng)

    def _random_failure(self, task: UpgradeTask, rng: Random) -> tuple[str, str, bool] | None:
        simulation = self._simulation
        rate = 0.0
        match task.kind:
            case TaskKind.APPLY:
                rate = simulation.failure_rate
                if task.works and task.works[0].undoing:
                    rate = 1 - (1 - rate) * (1 - simulation.undo_failure_rate)
            case TaskKind.REVERT:
                rate = simulation.revert_failure_rate
            case TaskKind.CHECK:
                rate = simulation.check_failure_rate
        if rate > 0 and rng.random() < rate:
            return "random-failure", "random failure", False
        if simulation.refusal_rate > 0 and rng.random() < simulation.refusal_rate:
            return "connection-refused", "random refusal of the connection", True
        return None

    def _injected_move_failure(self, move: VmMove) -> InjectedMoveFailure | None:
        """Return the injected failure of a move that is due, or None."""
        for injected in self._simulation.move_failures:
            is_meant = (
                injected.vm in (None, move.vm)
                and injected.source in (None, move.source)
                and injected.target in (None, move.target)
            )
            if is_meant and (
                injected.times is None or self._moves_failed[injected] < injected.times
            ):
                return injected
        return None

    def _move_failure(self, batch: VmBatch, move: VmMove) -> tuple[str, str] | None:
        """Return code and reason if a move fails."""
        down = next((host for host in (move.source, move.target) if host in self._down), None)
        if down is not None:
            return "host-down", f"host {down} is down"
        injected = self._injected_move_failure(move)
        if injected is not None:
            self._moves_failed[injected] += 1
            return "injected-failure", "the campaign injects this failure"
        rate = self._simulation.move_failure_rate
        if rate > 0 and self._rng(batch.id, move.vm, "fails").random() < rate:
            return "random-failure", "random failure"
        return None

    def _execute_moves(self, batch: VmBatch) -> Iterator[Event]:
        end_ms = self._now_ms
        for move in batch.moves:
            duration_ms = self._campaign.settings.vm_move_s * 1000
            at_ms = self._now_ms + self._with_jitter(duration_ms, self._rng(batch.id, move.vm))
            end_ms = max(end_ms, at_ms)
            failure = self._move_failure(batch, move)
            if failure is not None:
                code, reason = failure
                yield VmMoveFailed(
                    at_ms=at_ms, batch=batch.id, vm=move.vm, reason=reason, code=code
                )
            else:
                yield VmMoved(at_ms=at_ms, batch=batch.id, vm=move.vm)
        yield BatchEnded(at_ms=end_ms, batch=batch.id)


def _is_due(injected: InjectedFailure, task: UpgradeTask, attempt: int) -> bool:
    """Return whether an injected failure makes an attempt fail."""
    if task.kind is TaskKind.REVERT:
        return injected.reverting
    if task.kind is not (TaskKind.CHECK if injected.unhealthy else TaskKind.APPLY):
        return False
    if injected.undoing and not any(work.undoing for work in task.works):
        return False
    if injected.attempts:
        return attempt in injected.attempts
    return injected.times is None or attempt <= injected.times
