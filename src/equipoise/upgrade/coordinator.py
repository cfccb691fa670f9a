"""The coordinator: a state machine without I/O that leads an upgrade through its iterations.

``handle`` applies an event of the journal. ``decide`` returns the next event to write, until there
is none. The state follows from the events alone, so a replay of the journal restores it after a
crash. ``instruction`` returns what a decision asks of the engine.
"""

from __future__ import annotations

from equipoise.model.event import Event
from equipoise.model.upgrade.event import (
    BatchDecided,
    BatchStarted,
    CampaignEnded,
    CampaignStarted,
    CampaignStatus,
    CommandRejected,
    HostReturned,
    IterationEnded,
    IterationStarted,
    SetUndoStarted,
    VmBatchDecided,
    VmBatchStarted,
)
from equipoise.model.upgrade.work import TaskBatch, VmBatch, VmMove
from equipoise.upgrade.apply import apply_event
from equipoise.upgrade.giving_up import repair_reasons, set_with_lost_support
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.graph.host_partitions import used_hosts
from equipoise.upgrade.graph.iteration_view import (
    IterationView,
    build_view,
    next_partition,
    partition_hosts,
)
from equipoise.upgrade.parallel_universe import clear_storage_hosts
from equipoise.upgrade.reason import Reason, set_undo_started
from equipoise.upgrade.requests.feasibility import unit_shortage
from equipoise.upgrade.requests.set_conflicts import service_conflicts
from equipoise.upgrade.review import review
from equipoise.upgrade.role_coverage import RemovalChecker
from equipoise.upgrade.rules.holds import is_all_held
from equipoise.upgrade.rules.redundancy import unspareable_set
from equipoise.upgrade.rules.windows import deadline_ms, window_opens_ms
from equipoise.upgrade.select_batch import BatchSelection, select_batch
from equipoise.upgrade.state import UpgradeState, initial_state
from equipoise.upgrade.state.iteration import IterationPhase
from equipoise.upgrade.state.requests import SetProgress
from equipoise.upgrade.tasks import batch_schedule, check_schedule, relink_schedule, revert_schedule
from equipoise.upgrade.vms import vm_batch
from equipoise.upgrade.vms.consolidation import consolidate
from equipoise.upgrade.vms.evacuation import evacuate, with_reasons
from equipoise.upgrade.vms.gate import admit_moves
from equipoise.upgrade.vms.scaling import answer_scaling, restart_vms
from equipoise.upgrade.vms.wrap_up import host_to_return, wrap_up_moves


class Coordinator:
    """One upgrade campaign, from its first request to its end."""

    def __init__(self, may_leave: RemovalChecker | None = None) -> None:
        """``may_leave`` checks the roles of hosts; without it roles are not checked."""
        self._check_removal = may_leave
        self._state: UpgradeState | None = None
        self._view: IterationView | None = None
        """The view of the selected batch: it saves a second computation."""
        self._moves: tuple[VmMove, ...] = ()

    @property
    def state(self) -> UpgradeState:
        """The state. Callers only read it."""
        assert self._state is not None, "the first event is CampaignStarted"
        return self._state

    @property
    def ended(self) -> bool:
        """Whether the campaign has ended."""
        return self._state is not None and self._state.iteration.ended

    def handle(self, event: Event) -> None:
        """Apply an event of the journal."""
        if isinstance(event, CampaignStarted):
            # The checker is a function and cannot be in the journal; a replay gets it from its
            # caller.
            self._state = initial_state(event.campaign, self._check_removal, event.began_unix_ms)
            self._state.advance(event.at_ms)
            return
        if not isinstance(event, VmBatchDecided):
            self._moves = ()  # they were computed from an older state
        apply_event(self.state, event)

    def decide(self, now_ms: int) -> Event | None:
        """Return the next event to write, or None if there is nothing to do now."""
        state = self.state
        state.advance(now_ms)
        if state.iteration.ended:
            return None
        # An administrator waits for the answer, so rejections come before everything else.
        if state.requests.rejected_commands:
            rejected = state.requests.rejected_commands[0]
            return CommandRejected(
                at_ms=state.at_ms,
                command=rejected.order,
                reason=rejected.reason.text,
                number=rejected.number,
                code=rejected.reason.code,
            )
        # Restarts and scaling come first: they serve tenants and need no batch to end.
        if state.cluster.vms_to_restart:
            return restart_vms(state, next(iter(state.cluster.vms_to_restart)))
        if state.cluster.pending_scaling:
            return answer_scaling(state, *state.cluster.pending_scaling[0])
        return None if state.iteration.open_batch is not None else self._next_decision()

    def _next_decision(self) -> Event | None:
        """Return the next event of the iteration, or of the campaign between iterations."""
        state = self.state
        waits = state.at_ms < state.iteration.ready_ms
        match state.iteration.phase:
            case IterationPhase.IDLE:
                return self._begin_or_end()
            case IterationPhase.TAKING_UP:
                return None if waits else self._select_batch()
            case IterationPhase.CHANGING:
                return self._start_batch()
            case IterationPhase.REVERTING:
                # Schedules need different ids: an engine ignores an id that it has done.
                id_ = state.iteration.batch_id(
                    "/revert-unwell" if state.attempts.health_checked else "/revert"
                )
                batch = revert_schedule(state, grouping(state).group_of, id_)
                return BatchStarted(at_ms=state.at_ms, batch=batch)
            case IterationPhase.BAKING:
                return None if waits else self._check()
            case IterationPhase.RETRYING:
                return None if waits else self._retry()
            case _:
                return self._move()

    def alarm_ms(self) -> int | None:
        """Return the time of the next decision that no event triggers, or None."""
        state = self.state
        if state.iteration.open_batch is None and state.iteration.phase in (
            IterationPhase.TAKING_UP,
            IterationPhase.BAKING,
            IterationPhase.RETRYING,
        ):
            return state.iteration.ready_ms
        # Without a pause the next decision follows at once, and no alarm is needed.
        if state.iteration.phase is IterationPhase.IDLE and state.iteration.pause_reason:
            return min(self._wake_times_ms(), default=None)
        return None

    def _wake_times_ms(self) -> list[int]:
        """Return deadlines and window openings after the time of the pause."""
        state = self.state
        times_ms: list[int] = []
        for status in state.requests.set_status.values():
            if status.progress is SetProgress.ENDED:
                continue
            due_ms = deadline_ms(state, status)
            if due_ms is not None and due_ms > state.iteration.paused_ms:
                times_ms.append(due_ms)
            if status.set.windows:
                opens_ms = window_opens_ms(state, status, state.iteration.paused_ms)
                times_ms += [] if opens_ms is None else [opens_ms]
        return [time_ms for time_ms in times_ms if time_ms > state.iteration.paused_ms]

    def _begin_or_end(self) -> Event | None:
        state = self.state
        at_ms = state.at_ms
        sets = state.requests.set_status.values()
        all_ended = all(status.progress is SetProgress.ENDED for status in sets)
        if all_ended and not state.requests.pending and not _has_returnable(state):
            # A campaign without any request yet waits for the first one instead of ending.
            if state.requests.set_status or state.iteration.number:
                return self._wrap_up() or CampaignEnded(
                    at_ms=at_ms, status=CampaignStatus.COMPLETED
                )
            return None
        # Nothing has changed since the pause: a new iteration would find the same reasons.
        if state.iteration.pause_reason and not state.iteration.changed_since_pause:
            alarm_ms = min(self._wake_times_ms(), default=None)
            if alarm_ms is None or at_ms < alarm_ms:
                return None
        if state.iteration.number >= state.settings.iterations_max:
            return CampaignEnded(
                at_ms=at_ms,
                status=CampaignStatus.PAUSED,
                reason=f"the limit of {state.iteration.number} iterations is reached",
                code="iteration-limit",
            )
        return IterationStarted(at_ms=at_ms, iteration=state.iteration.number + 1)

    def _wrap_up(self) -> Event | None:
        """Return the next step after the last set, or None: VMs return, then extra hosts."""
        state = self.state
        moves = () if state.requests.paused_by_command else wrap_up_moves(state)
        if moves:
            id_ = state.iteration.batch_id(f"/wrap-up-{state.iteration.sub_iteration + 1}")
            batch = VmBatch(id=id_, moves=moves)
            return VmBatchStarted(at_ms=state.at_ms, batch=batch, why="to bring VMs back")
        host = host_to_return(state)
        return None if host is None else HostReturned(at_ms=state.at_ms, host=host)

    def end_paused(self, now_ms: int) -> CampaignEnded:
        """End a campaign that waits for an event that will not come."""
        reason = self.state.iteration.pause_reason or "no further event is expected"
        return CampaignEnded(
            at_ms=now_ms, status=CampaignStatus.PAUSED, reason=reason, code="nothing-possible"
        )

    # Steps 1 to 3

    def _select_batch(self) -> Event:
        state = self.state
        decision = review(state)
        if decision is not None:
            return decision
        view = build_view(state, with_vms=False)
        is_held = is_all_held(state)
        # Moves come before the batch is selected: they change which hosts are free, and so the
        # selection.
        moves, _ = admit_moves(state, () if is_held else clear_storage_hosts(view))
        if moves:
            return self._consolidate(moves, "to free hosts for the replacement of a storage")
        selection = select_batch(view)
        if not is_held:
            prepared = self._move_before(view, selection)
            if isinstance(prepared, VmBatchStarted):
                return prepared
            selection = prepared
        # The batch starts from this very view, unless a crash makes it necessary to compute it
        # again.
        self._view = view
        return BatchDecided(
            at_ms=state.at_ms,
            iteration=state.iteration.number,
            z=selection.z,
            batch=selection.batch,
            eliminated=selection.eliminated,
        )

    def _move_before(
        self, view: IterationView, selection: BatchSelection
    ) -> VmBatchStarted | BatchSelection:
        """Return moves without which nothing can change, or the selection with its reasons."""
        # An evacuation that has started goes on before anything else is tried.
        began = bool(self.state.iteration.evacuated_from)
        evacuation = evacuate(view, selection) if began else None
        if evacuation is None or not evacuation.moves:
            moves = consolidate(view, selection)
            if moves:
                return self._consolidate(moves, "to free hosts")
            evacuation = evacuation or evacuate(view, selection)
        if evacuation.moves:
            id_ = self.state.iteration.batch_id(
                f"/evacuation-{self.state.iteration.sub_iteration + 1}"
            )
            batch = VmBatch(id=id_, moves=evacuation.moves)
            why = "to empty hosts that depend on a resource"
            return VmBatchStarted(at_ms=self.state.at_ms, batch=batch, why=why)
        return with_reasons(selection, evacuation)

    def _consolidate(self, moves: tuple[VmMove, ...], why: str) -> VmBatchStarted:
        state = self.state
        id_ = state.iteration.batch_id(f"/consolidation-{state.iteration.sub_iteration + 1}")
        return VmBatchStarted(at_ms=state.at_ms, batch=VmBatch(id=id_, moves=moves), why=why)

    def _start_batch(self) -> BatchStarted:
        state = self.state
        view = self._view or build_view(state, with_vms=False)
        self._view = None
        batch = batch_schedule(view, state.iteration.batch, state.iteration.batch_id(""))
        return BatchStarted(at_ms=state.at_ms, batch=batch)

    def _retry(self) -> BatchStarted:
        """Start the tasks again whose connections were refused."""
        attempts = self.state.attempts
        id_ = self.state.iteration.batch_id(f"/retry-{attempts.retry_batches + 1}")
        return BatchStarted(
            at_ms=self.state.at_ms, batch=TaskBatch(id=id_, stages=attempts.to_retry)
        )

    def _check(self) -> Event:
        state = self.state
        batch = check_schedule(state, grouping(state).group_of, state.iteration.batch_id("/check"))
        if batch.stages:
            return BatchStarted(at_ms=state.at_ms, batch=batch)
        return self._move()

    # Step 4

    def _move(self) -> Event:
        state = self.state
        relink = relink_schedule(
            state, grouping(state).group_of, state.iteration.batch_id("/links")
        )
        if relink is not None:
            return BatchStarted(at_ms=state.at_ms, batch=relink)
        if not (
            state.iteration.vm_batches_done or state.iteration.vm_batch_due or is_all_held(state)
        ):
            host_partitions = partition_hosts(state)
            if host_partitions.new and (
                used_hosts(state, host_partitions.old)
                or (host_partitions.divided and host_partitions.old)
            ):
                v = (
                    vm_batch.vm_limit_of(state, host_partitions)
                    if state.iteration.vm_limit is None
                    else state.iteration.vm_limit
                )
                selection = vm_batch.select_vm_batch(state, host_partitions, v)
                # Kept for the next decision. The event records only their number, so that the
                # journal of a large cluster stays small.
                self._moves = selection.moves
                return VmBatchDecided(
                    at_ms=state.at_ms,
                    iteration=state.iteration.number,
                    v=v,
                    wanted=selection.wanted,
                    size=len(selection.moves),
                    reason=selection.reason,
                    code=selection.code,
                )
        if state.iteration.vm_batch_due:
            moves = self._moves or self._decided_moves()
            self._moves = ()
            id_ = state.iteration.batch_id(f"/vms-{state.iteration.sub_iteration + 1}")
            return VmBatchStarted(at_ms=state.at_ms, batch=VmBatch(id=id_, moves=moves))
        return self._end_iteration()

    def _decided_moves(self) -> tuple[VmMove, ...]:
        """After a crash: compute the decided moves again from the same state."""
        state = self.state
        assert state.iteration.vm_limit is not None
        return vm_batch.select_vm_batch(
            state, partition_hosts(state), state.iteration.vm_limit
        ).moves

    def _end_iteration(self) -> Event:
        state = self.state
        decision = review(state)
        if decision is not None:
            return decision
        # After progress the next iteration may find more to do, so a pause is considered only
        # without any.
        reasons = () if state.iteration.made_progress else self._pause_reasons()
        if reasons:
            blocked = (
                # Only when nothing else is possible: these sets would wait for ever, and an undo
                # lets the others continue. The most specific cause comes first.
                self._set_with_lost_peer()
                or unspareable_set(state)
                or set_with_lost_support(state)
                or self._set_with_unspareable_unit()
                or self._set_in_circular_wait()
            )
            if blocked is not None:
                return blocked
        return IterationEnded(
            at_ms=state.at_ms,
            iteration=state.iteration.number,
            paused="; ".join(reason.text for reason in reasons),
            codes=tuple(dict.fromkeys(reason.code for reason in reasons)),
        )

    def _pause_reasons(self) -> tuple[Reason, ...]:
        nothing = Reason("nothing-possible", "no action is possible now")
        repairs = repair_reasons(self.state)
        reasons = tuple(dict.fromkeys((*self.state.iteration.wait_reasons, *repairs)))
        return reasons or (nothing,)

    def _set_in_circular_wait(self) -> SetUndoStarted | None:
        """Undo a set whose resources wait for each other.

        This is the case if neither load nor a command holds them.
        """
        state = self.state
        # Something outside may still change, so waiting is not circular.
        if state.iteration.wait_reasons:
            return None
        reason = Reason("circular-wait", "its resources wait for each other")
        for status in state.requests.set_status.values():
            if status.progress is SetProgress.SCHEDULED:
                return set_undo_started(state.at_ms, status.id, reason)
        return None

    def _set_with_unspareable_unit(self) -> SetUndoStarted | None:
        """Undo a set whose unit can never start because too many hosts are lost."""
        state = self.state
        for unit in state.resources.units.values():
            # A unit that has begun holds its hosts already and needs no further ones to go on.
            shortage = unit_shortage(state, unit) if next_partition(state, unit) == 0 else None
            if shortage is None:
                continue
            for id_ in unit.partitions[0]:
                levels = state.resources.states[id_].levels
                works = (work for level in levels if level.unit == unit.id for work in level.works)
                set_ = state.requests.first_scheduled(works)
                if set_ is not None:
                    return set_undo_started(state.at_ms, set_, shortage)
        return None

    def _set_with_lost_peer(self) -> SetUndoStarted | None:
        """Undo a set that waits for a resource whose peer is lost."""
        state = self.state
        for tracked in state.resources.dependencies:
            dependency = tracked.dependency
            if not dependency.kind.is_symmetrical:
                continue
            for lost, waiting in (
                (dependency.dependent, dependency.sponsor),
                (dependency.sponsor, dependency.dependent),
            ):
                resource_state = state.resources.states.get(waiting)
                peer_state = state.resources.states.get(lost)
                if peer_state is None or peer_state.operational:
                    continue
                if resource_state is None or not resource_state.levels:
                    continue
                set_ = state.requests.first_scheduled(resource_state.levels[0].works)
                if set_ is not None:
                    text = f"{waiting} cannot be taken out: its peer {lost} is lost"
                    return set_undo_started(state.at_ms, set_, Reason("lost-peer", text))
        return None


def _has_returnable(state: UpgradeState) -> bool:
    """Return whether a deactivated resource can return: no incompatible version is in service."""
    deactivated = [
        id_
        for id_, resource_state in state.resources.states.items()
        if resource_state.present and resource_state.operational and not resource_state.active
    ]
    conflicts = service_conflicts(state) if deactivated else {}
    return any(id_ not in conflicts for id_ in deactivated)


def instruction(decision: Event) -> TaskBatch | VmBatch | None:
    """Return the schedule that a written decision asks of the engine, or None."""
    return decision.batch if isinstance(decision, BatchStarted | VmBatchStarted) else None
