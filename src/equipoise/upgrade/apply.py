"""The state transition of an upgrade: it applies one event to the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from equipoise.model import event as facts
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.request import CommandKind, SetId, UpgradeCommand
from equipoise.model.upgrade.work import TaskKind, VertexId, VmBatch
from equipoise.model.value import FrozenMap
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.graph.iteration_view import affected_hosts, build_view
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.requests.commands import (
    command_objection,
    command_text,
    execute_command,
    is_deferred,
    repair,
    request_objection,
)
from equipoise.upgrade.requests.dependency_changes import settle_dependencies
from equipoise.upgrade.requests.schedule import schedule_request
from equipoise.upgrade.requests.undo import drop_set, give_up_sets, undo_set
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.iteration import IterationPhase
from equipoise.upgrade.tasks import close_batch, on_task_failed, on_task_finished


def apply_event(state: UpgradeState, event: Event) -> None:
    """Apply one event. An event that does not fit the state changes only the time."""
    state.advance(event.at_ms)
    handler = _HANDLERS.get(type(event))
    if handler is not None:
        handler(state, event)


# Events of the world and of the administrator


def _requested(state: UpgradeState, event: past.UpgradeRequested) -> None:
    # A request that arrives after the end reopens the campaign, so one journal holds both.
    state.iteration.end_campaign(ended=False)
    objection = request_objection(state, event.request)
    if objection is not None:
        state.requests.reject(f"request {event.request.id}", objection, event.number)
        return
    state.requests.post(event.at_ms, event.request)
    state.iteration.note_change()


def _continued(state: UpgradeState, _event: past.CampaignContinued) -> None:
    # A window may be open or a deadline past by now, and a paused campaign looks again.
    state.iteration.end_campaign(ended=False)
    state.iteration.note_change()


def _commanded(state: UpgradeState, event: past.UpgradeCommanded) -> None:
    state.iteration.end_campaign(ended=False)
    if is_deferred(state, event.command):
        state.requests.defer(event.command, event.number)
        state.iteration.note_change()
    else:
        _handle_command(state, event.command, event.number)


def _handle_command(state: UpgradeState, command: UpgradeCommand, number: int) -> None:
    objection = command_objection(state, command)
    if objection is not None:
        state.requests.reject(command_text(command), objection, number)
        return
    if command.order is CommandKind.REPAIRED and command.resource is not None:
        repair(state, command.resource)
        state.cluster.retry_unplaced()
    else:
        execute_command(state.requests, command)
    state.iteration.note_change()


def _order_refused(state: UpgradeState, _event: past.CommandRejected) -> None:
    state.requests.report_rejected()


def _scaling_asked(state: UpgradeState, event: past.ScalingRequested) -> None:
    state.cluster.request_scaling(event.tenant, event.vms)


def _scaling_answered(state: UpgradeState, event: past.ScalingAnswered) -> None:
    state.cluster.scale(event.tenant, event.added, event.removed)
    if event.removed:
        _capacity_freed(state)


def _capacity_freed(state: UpgradeState) -> None:
    state.iteration.note_change()
    state.cluster.retry_unplaced()


def _vm_arrived(state: UpgradeState, event: facts.VmArrived) -> None:
    state.cluster.add_vm(event.vm, event.vm.host)
    state.iteration.note_change()


def _vm_changed(state: UpgradeState, event: facts.VmChanged) -> None:
    # An administrator has moved, stopped or started it.
    state.cluster.move_vm(event.vm.id, event.vm.host, counts=False)
    _capacity_freed(state)


def _vm_left(state: UpgradeState, event: facts.VmLeft) -> None:
    state.cluster.remove_vm(event.vm)
    state.iteration.note_change()


def _host_failed(state: UpgradeState, event: facts.HostFailed) -> None:
    state.cluster.fail_host(event.host)


def _host_recovered(state: UpgradeState, event: facts.HostRecovered) -> None:
    if event.host in state.cluster.compute_hosts:
        state.cluster.recover_host(event.host)
        _capacity_freed(state)


def _host_joined(state: UpgradeState, event: facts.HostJoined) -> None:
    state.cluster.join_host(state.campaign.cluster.overcommitted(event.host))
    # The groups name the compute hosts of their resources.
    state.resources.cache_grouping(None)
    state.iteration.note_change()


def _host_returned(state: UpgradeState, event: past.HostReturned) -> None:
    state.cluster.return_host(event.host)
    state.resources.cache_grouping(None)


def _restarted(state: UpgradeState, event: past.VmsRestarted) -> None:
    state.cluster.restarted(event.host, event.placed, event.unplaced)


# Phases of an iteration


def _iteration_began(state: UpgradeState, event: past.IterationStarted) -> None:
    state.iteration.start(event.iteration, event.at_ms + state.settings.calculation_ms)
    for resource, level in state.attempts.applied_levels.items():
        # What the last iteration applied and did not revert is done: its attempts count no more.
        state.resources.confirm_attempts(resource, (work.set for work in level.works))
    state.attempts.start_iteration()
    state.cluster.retry_unplaced()
    # While a request is scheduled, those after it are still pending: ids of their sets are taken.
    for requested_ms, request in tuple(state.requests.pending):
        refused = schedule_request(state, request, requested_ms)
        state.requests.refuse({SetId(set_): reason for set_, reason in refused.items()})
    state.requests.drop_pending()
    state.resources.cache_outages(None)
    for command, number in state.requests.take_deferred():
        _handle_command(state, command, number)


def _batch_decided(state: UpgradeState, event: past.BatchDecided) -> None:
    # These rules depend on load, failures and commands, so waiting can help.
    waits = (
        Reason(elimination.code, elimination.reason)
        for elimination in event.eliminated
        if elimination.rule in (0, 1, 7)
    )
    state.iteration.select(event.batch, _hosts_out_for(state, event.batch), waits)


def _hosts_out_for(state: UpgradeState, batch: tuple[VertexId, ...]) -> dict[HostId, None]:
    """Return the compute hosts that a batch takes out of service."""
    # Mostly the batch names hosts directly. The view, which is slow in a large cluster, is only
    # needed for shared resources such as switches and storage.
    hosts = grouping(state).hosts_of
    hosts_out = {host: None for vertex in batch for host in hosts.get(vertex, ())}
    others = [vertex for vertex in batch if vertex not in hosts]
    if others:
        view = build_view(state, with_vms=False)
        hosts_out |= {
            host: None for vertex in others for host in sorted(affected_hosts(view, vertex))
        }
    return hosts_out


def _batch_started(state: UpgradeState, event: past.BatchStarted) -> None:
    state.iteration.open(event.batch)
    state.attempts.count_retry(is_retry=state.iteration.phase is IterationPhase.RETRYING)
    for task in event.batch.tasks:
        if task.kind is TaskKind.REVERT:
            # Recorded when the engine receives the task, so that after a crash a revert is not
            # requested as a second attempt.
            state.attempts.start_revert(task.resource)


def _vm_batch_decided(state: UpgradeState, event: past.VmBatchDecided) -> None:
    state.iteration.decide_vm_batch(event.v, event.size)


def _vm_batch_started(state: UpgradeState, event: past.VmBatchStarted) -> None:
    # Only a consolidation has a reason of its own.
    state.iteration.start_vm_batch(event.batch, event.batch.moves if event.why else ())


def _vm_moved(state: UpgradeState, event: past.VmMoved) -> None:
    schedule = state.iteration.open_schedule(event.batch)
    if not isinstance(schedule, VmBatch):
        return
    for move in schedule.moves:
        placement = state.cluster.placements.get(event.vm)
        # The engine may report a move twice; after the first report the VM is not at its source.
        here = placement is not None and placement.host == move.source
        if move.vm == event.vm and here and state.cluster.compute_hosts[move.target].up:
            state.cluster.move_vm(event.vm, move.target, counts=True)
            state.iteration.count_vm_move()


def _vm_move_failed(state: UpgradeState, event: past.VmMoveFailed) -> None:
    schedule = state.iteration.open_schedule(event.batch)
    if not isinstance(schedule, VmBatch) or event.vm in state.iteration.unmovable:
        return  # the engine may report a failure twice
    reason = event.reason or "the move failed"
    state.iteration.fail_vm_move(event.vm, reason)
    for move in schedule.moves:
        if move.vm == event.vm:
            state.cluster.note_failed_move(event.vm, move.target, reason)


def _batch_ended(state: UpgradeState, event: past.BatchEnded) -> None:
    if state.iteration.open_schedule(event.batch) is None:
        return
    ended = state.iteration.close()
    if ended is None or isinstance(ended.schedule, VmBatch):
        return
    schedule = ended.schedule
    was_retry = state.iteration.phase is IterationPhase.RETRYING
    close_batch(state, ended)
    if state.attempts.to_retry:
        wait_s = state.settings.connection_wait_s * 2**state.attempts.retries
        state.iteration.enter(IterationPhase.RETRYING, event.at_ms + wait_s * 1000)
        return
    # Switching links back on is no attempt: the phase does not change.
    if all(task.kind is TaskKind.LINK_ON for task in schedule.tasks):
        if was_retry:
            state.iteration.enter(IterationPhase.MOVING)
        return
    attempts = state.attempts
    if any(task.kind is TaskKind.CHECK for task in schedule.tasks):
        attempts.checked()
    bake_s = max((_bake_s(state, resource) for resource in attempts.to_check), default=0)
    if attempts.to_revert:
        state.iteration.enter(IterationPhase.REVERTING)
    # The health check of an iteration runs once, after the bake time.
    elif (bake_s or _has_check(state)) and not attempts.health_checked:
        state.iteration.enter(IterationPhase.BAKING, event.at_ms + bake_s * 1000)
    else:
        state.iteration.enter(IterationPhase.MOVING)


def _has_check(state: UpgradeState) -> bool:
    """Return whether a recipe of the applied levels has a health check."""
    applied = state.attempts.applied_levels
    levels = [applied[resource] for resource in state.attempts.to_check if resource in applied]
    return any(work.recipe.check_script for level in levels for work in level.works)


def _bake_s(state: UpgradeState, resource: ResourceId) -> int:
    return max(
        (
            state.requests.set_status[set_].set.bake_s
            for set_ in state.resources.states[resource].sets
        ),
        default=0,
    )


# Resources and sets


def _isolated(state: UpgradeState, event: past.ResourceIsolated) -> None:
    state.iteration.note_progress()
    state.attempts.isolated(event.resource)
    resource_state = state.resources.states[event.resource]
    failed = event.failed or resource_state.failed
    # A failed resource gets no further work until it is repaired.
    levels = () if failed else resource_state.levels
    set_aside = resource_state.levels or resource_state.set_aside if failed else ()
    state.resources.put(
        resource_state.but(isolated=True, failed=failed, levels=levels, set_aside=set_aside)
    )


def _given_up(state: UpgradeState, event: past.ResourceGivenUp) -> None:
    state.iteration.note_progress()
    groups = grouping(state)
    for member in groups.members[groups.group_of[event.resource]]:  # they change together
        resource_state = state.resources.states[member]
        if not resource_state.failed:
            sets = tuple(SetId(set_) for set_ in event.sets)
            state.resources.put(give_up_sets(resource_state, sets))


def _released(state: UpgradeState, event: past.ResourceReleased) -> None:
    state.iteration.note_progress()
    groups = grouping(state)
    for member in groups.members[groups.group_of[event.resource]]:  # members were isolated together
        resource_state = state.resources.states[member]
        if resource_state.isolated and not resource_state.failed:
            state.resources.put(resource_state.but(isolated=False, attempts=FrozenMap()))


def _undo_began(state: UpgradeState, event: past.SetUndoStarted) -> None:
    state.iteration.note_progress()
    state.requests.start_undo(event.set, Reason(event.code, event.reason))
    undo_set(state, event.set)
    state.resources.cache_outages(None)  # the progress of a set decides which dependencies hold


def _set_ended(state: UpgradeState, event: past.SetEnded) -> None:
    state.iteration.note_progress()
    drop_set(state, event.set)
    state.requests.end_set(event.set, event.outcome, Reason(event.code, event.reason))
    settle_dependencies(state, event.set)
    state.resources.cache_outages(None)
    if event.outcome is SetOutcome.REFUSED:
        for id_ in state.requests.set_status[event.set].resources:
            resource_state = state.resources.states.get(id_)
            if (
                resource_state is not None
                and not resource_state.present
                and not resource_state.levels
            ):
                # A refused set leaves no trace: its new resources were registered before it was
                # refused.
                state.resources.drop_uninstalled(id_)


def _iteration_ended(state: UpgradeState, event: past.IterationEnded) -> None:
    state.iteration.end(event.at_ms, event.paused)


def _campaign_ended(state: UpgradeState, _event: past.CampaignEnded) -> None:
    state.iteration.end_campaign(ended=True)


_HANDLERS: Final[dict[type[Any], Callable[[Any, Any], None]]] = {
    past.CampaignContinued: _continued,
    past.UpgradeRequested: _requested,
    past.UpgradeCommanded: _commanded,
    past.ScalingRequested: _scaling_asked,
    past.ScalingAnswered: _scaling_answered,
    facts.VmArrived: _vm_arrived,
    facts.VmChanged: _vm_changed,
    facts.VmLeft: _vm_left,
    facts.HostFailed: _host_failed,
    facts.HostRecovered: _host_recovered,
    facts.HostJoined: _host_joined,
    past.HostReturned: _host_returned,
    past.VmsRestarted: _restarted,
    past.CommandRejected: _order_refused,
    past.IterationStarted: _iteration_began,
    past.BatchDecided: _batch_decided,
    past.BatchStarted: _batch_started,
    past.VmBatchDecided: _vm_batch_decided,
    past.VmBatchStarted: _vm_batch_started,
    past.VmMoved: _vm_moved,
    past.VmMoveFailed: _vm_move_failed,
    past.BatchEnded: _batch_ended,
    past.TaskFinished: on_task_finished,
    past.TaskFailed: on_task_failed,
    past.ResourceIsolated: _isolated,
    past.ResourceReleased: _released,
    past.ResourceGivenUp: _given_up,
    past.SetUndoStarted: _undo_began,
    past.SetEnded: _set_ended,
    past.IterationEnded: _iteration_ended,
    past.CampaignEnded: _campaign_ended,
}
