"""The state transition of an upgrade: it applies one event to the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from equipoise.model import event as facts
from equipoise.model.event import Event
from equipoise.model.inventory import Tenant
from equipoise.model.quantity import HostId, ResourceId, VmId
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.request import SetId, UpgradeCommand
from equipoise.model.upgrade.work import TaskKind, VertexId, VmBatch
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.graph.iteration_view import affected_hosts, build_view
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.requests import drop_set, schedule_request, settle_dependencies, undo_set
from equipoise.upgrade.requests.commands import (
    command_objection,
    command_text,
    execute_command,
    is_deferred,
    request_objection,
)
from equipoise.upgrade.state import (
    ComputeHost,
    IterationPhase,
    OpenBatch,
    RejectedCommand,
    SetProgress,
    UpgradeState,
    VmPlacement,
)
from equipoise.upgrade.tasks import close_batch, on_task_failed, on_task_finished, open_schedule


def apply_event(state: UpgradeState, event: Event) -> None:
    """Apply one event. An event that does not fit the state changes only the time."""
    state.at_ms = max(state.at_ms, event.at_ms)
    handler = _HANDLERS.get(type(event))
    if handler is not None:
        handler(state, event)


# Events of the world and of the administrator


def _requested(state: UpgradeState, event: past.UpgradeRequested) -> None:
    state.ended = False
    objection = request_objection(state, event.request)
    if objection is not None:
        state.rejected_commands.append(
            RejectedCommand(f"request {event.request.id}", objection, event.number)
        )
        return
    state.pending_requests.append((event.at_ms, event.request))
    state.changed_since_pause = True


def _commanded(state: UpgradeState, event: past.UpgradeCommanded) -> None:
    state.ended = False
    if is_deferred(state, event.command):
        state.deferred_commands.append((event.command, event.number))
        state.changed_since_pause = True
    else:
        _handle_command(state, event.command, event.number)


def _handle_command(state: UpgradeState, command: UpgradeCommand, number: int) -> None:
    objection = command_objection(state, command)
    if objection is not None:
        state.rejected_commands.append(RejectedCommand(command_text(command), objection, number))
        return
    execute_command(state, command)
    state.changed_since_pause = True


def _order_refused(state: UpgradeState, _event: past.CommandRejected) -> None:
    state.rejected_commands = state.rejected_commands[1:]


def _scaling_asked(state: UpgradeState, event: past.ScalingRequested) -> None:
    if event.tenant in state.tenants and event.vms:
        # Unknown tenants and empty requests need no answer.
        state.pending_scaling.append((event.tenant, event.vms))


def _scaling_answered(state: UpgradeState, event: past.ScalingAnswered) -> None:
    if state.pending_scaling:
        state.pending_scaling.pop(0)
    tenant = state.tenants[event.tenant]
    group = tenant.anti_affinity[0].id if tenant.anti_affinity else None
    for vm, host in event.added.items():
        state.vms_added += 1
        add_vm(state, VmPlacement(vm, tenant.id, group, host), _vm_like_first(state, tenant, vm))
    for vm in event.removed:
        remove_vm(state, vm)
    if event.removed:
        state.changed_since_pause = True
        _retry_unplaced(state)


def _vm_like_first(state: UpgradeState, tenant: Tenant, id_: VmId) -> Vm:
    """Return a description for a VM of scaling: a copy of the first VM of its tenant."""
    own = (vm for vm in state.campaign.cluster.vms if vm.tenant == tenant.id)
    first = next(own, None)
    if first is None:  # the tenant had no VM to copy
        return Vm(id=id_, vcpus=1, memory_mib=1, tenant=tenant.id)
    return first.but(id=id_, ft_pair=None, agent=False)


def add_vm(state: UpgradeState, placement: VmPlacement, described: Vm) -> None:
    """Add a VM to the placements and their indexes."""
    state.placements[placement.vm] = placement
    state.vms[placement.vm] = described
    if placement.tenant is not None:
        state.vm_counts[placement.tenant] = state.vm_counts.get(placement.tenant, 0) + 1
    if placement.host is not None:
        state.residents.setdefault(placement.host, {})[placement.vm] = None


def remove_vm(state: UpgradeState, vm: VmId) -> None:
    """Remove a VM from the placements and their indexes."""
    placement = state.placements.pop(vm, None)
    state.vms.pop(vm, None)
    if placement is None:
        return
    if placement.tenant is not None:
        state.vm_counts[placement.tenant] -= 1
    if placement.host is not None:
        state.residents[placement.host].pop(vm, None)


def _move_vm(state: UpgradeState, vm: VmId, host: HostId | None, *, counts: bool) -> None:
    placement = state.placements.get(vm)
    if placement is None:
        return
    if placement.host is not None:
        state.residents[placement.host].pop(vm, None)
    if host is not None:
        state.residents.setdefault(host, {})[vm] = None
    state.placements[vm] = replace(placement, host=host, moves=placement.moves + counts)


def _vm_arrived(state: UpgradeState, event: facts.VmArrived) -> None:
    vm = event.vm
    if vm.id in state.placements:
        return
    tenant = state.tenants.get(vm.tenant) if vm.tenant is not None else None
    group = tenant.anti_affinity[0].id if tenant is not None and tenant.anti_affinity else None
    add_vm(state, VmPlacement(vm.id, None if tenant is None else tenant.id, group, vm.host), vm)


def _vm_left(state: UpgradeState, event: facts.VmLeft) -> None:
    remove_vm(state, event.vm)
    state.changed_since_pause = True


def _host_failed(state: UpgradeState, event: facts.HostFailed) -> None:
    compute_host = state.compute_hosts.get(event.host)
    if compute_host is None or not compute_host.up:
        return
    state.compute_hosts[event.host] = replace(compute_host, up=False)
    lost = tuple(state.residents.get(event.host, ()))
    for vm in lost:
        _move_vm(state, vm, None, counts=False)
    if lost:
        state.vms_to_restart[event.host] = lost


def _host_recovered(state: UpgradeState, event: facts.HostRecovered) -> None:
    compute_host = state.compute_hosts.get(event.host)
    if compute_host is not None:
        state.compute_hosts[event.host] = replace(compute_host, up=True)
        state.changed_since_pause = True
        _retry_unplaced(state)


def _host_joined(state: UpgradeState, event: facts.HostJoined) -> None:
    vms_max = event.host.capacity.get("vms", 0)  # type: ignore[call-overload]
    state.compute_hosts.setdefault(event.host.id, ComputeHost(event.host.id, vms_max))
    state.hosts.setdefault(event.host.id, event.host)
    state.changed_since_pause = True
    state.grouping = None


def _restarted(state: UpgradeState, event: past.VmsRestarted) -> None:
    for vm, host in event.placed.items():
        _move_vm(state, vm, host, counts=False)
    state.vms_to_restart.pop(event.host, None)
    if event.unplaced:
        state.unplaced_vms[event.host] = event.unplaced


def _retry_unplaced(state: UpgradeState) -> None:
    """Try again to restart unplaced VMs: capacity may be free now."""
    # The next decision tries each of them again.
    state.vms_to_restart |= state.unplaced_vms
    state.unplaced_vms = {}


# Phases of an iteration


def _iteration_began(state: UpgradeState, event: past.IterationStarted) -> None:
    state.iteration = event.iteration
    state.phase = IterationPhase.TAKING_UP
    state.ready_ms = event.at_ms + state.settings.calculation_ms
    state.changed_since_pause = False
    state.batch, state.applied_levels, state.to_revert, state.to_check = (), {}, {}, ()
    state.unmovable, state.vm_limit, state.vms_moved, state.vm_batches_done = {}, None, 0, False
    state.sub_iteration, state.vm_batch_due, state.consolidated_from = 0, False, {}
    state.made_progress, state.wait_reasons, state.health_checked = False, (), False
    _retry_unplaced(state)
    for requested_ms, request in state.pending_requests:
        refused = schedule_request(state, request, requested_ms)
        state.refused_sets |= {SetId(set_): reason for set_, reason in refused.items()}
    state.pending_requests = []
    for command, number in state.deferred_commands:
        _handle_command(state, command, number)
    state.deferred_commands = []


def _batch_decided(state: UpgradeState, event: past.BatchDecided) -> None:
    state.batch = event.batch
    state.hosts_out = _hosts_out_for(state, event.batch)
    # These rules depend on load, failures and commands, so waiting can help.
    state.wait_reasons = tuple(
        Reason(elimination.code, elimination.reason)
        for elimination in event.eliminated
        if elimination.rule in (0, 1, 7)
    )
    state.phase = IterationPhase.CHANGING if event.batch else IterationPhase.MOVING


def _hosts_out_for(state: UpgradeState, batch: tuple[VertexId, ...]) -> dict[HostId, None]:
    """Return the compute hosts that a batch takes out of service."""
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
    state.open_batch = OpenBatch(event.batch)
    state.made_progress = True
    for task in event.batch.tasks:
        if task.errand is TaskKind.REVERT:
            state.to_revert.pop(task.resource, None)


def _vm_batch_decided(state: UpgradeState, event: past.VmBatchDecided) -> None:
    state.vm_limit = event.v if state.vm_limit is None else state.vm_limit
    state.phase = IterationPhase.MOVING
    # An empty VM batch ends step 4 of the iteration.
    state.vm_batches_done = event.size == 0
    state.vm_batch_due = event.size > 0


def _vm_batch_started(state: UpgradeState, event: past.VmBatchStarted) -> None:
    state.open_batch = OpenBatch(event.batch)
    state.sub_iteration += 1
    state.vm_batch_due = False
    state.made_progress = True
    if event.why:
        state.consolidated_from |= {move.vm: move.source for move in event.batch.moves}


def _vm_moved(state: UpgradeState, event: past.VmMoved) -> None:
    schedule = open_schedule(state, event.batch)
    if not isinstance(schedule, VmBatch):
        return
    for move in schedule.moves:
        placement = state.placements.get(event.vm)
        # The engine may report a move twice; after the first report the VM is not at its source.
        here = placement is not None and placement.host == move.source
        if move.vm == event.vm and here and state.compute_hosts[move.target].up:
            _move_vm(state, event.vm, move.target, counts=True)
            state.vms_moved += state.phase is IterationPhase.MOVING


def _vm_move_failed(state: UpgradeState, event: past.VmMoveFailed) -> None:
    if open_schedule(state, event.batch) is not None:
        state.unmovable[event.vm] = event.reason or "the move failed"


def _batch_ended(state: UpgradeState, event: past.BatchEnded) -> None:
    ended, schedule = state.open_batch, open_schedule(state, event.batch)
    if ended is None or schedule is None:
        return
    state.open_batch = None
    if isinstance(schedule, VmBatch):
        return
    close_batch(state, ended)
    # Switching links back on is no attempt: the phase does not change.
    if all(task.errand is TaskKind.LINK_ON for task in schedule.tasks):
        return
    if any(task.errand is TaskKind.CHECK for task in schedule.tasks):
        state.health_checked = True
    bake_s = max((_bake_s(state, resource) for resource in state.to_check), default=0)
    if state.to_revert:
        state.phase = IterationPhase.REVERTING
    # The health check of an iteration runs once, after the bake time.
    elif (bake_s or _has_check(state)) and not state.health_checked:
        state.phase = IterationPhase.BAKING
        state.ready_ms = event.at_ms + bake_s * 1000
    else:
        state.phase = IterationPhase.MOVING


def _has_check(state: UpgradeState) -> bool:
    """Return whether a recipe of the applied levels has a health check."""
    levels = [
        state.applied_levels[resource]
        for resource in state.to_check
        if resource in state.applied_levels
    ]
    return any(work.recipe.check_script for level in levels for work in level.works)


def _bake_s(state: UpgradeState, resource: ResourceId) -> int:
    return max(
        (state.set_status[set_].set.bake_s for set_ in state.resource_states[resource].sets),
        default=0,
    )


# Resources and sets


def _isolated(state: UpgradeState, event: past.ResourceIsolated) -> None:
    state.made_progress = True
    resource_state = state.resource_states[event.resource]
    state.to_isolate.pop(event.resource, None)
    failed = event.failed or resource_state.failed
    # A failed resource gets no further work.
    levels = () if failed else resource_state.levels
    state.resource_states[event.resource] = resource_state.but(
        isolated=True, failed=failed, levels=levels
    )


def _released(state: UpgradeState, event: past.ResourceReleased) -> None:
    state.made_progress = True
    groups = grouping(state)
    for member in groups.members[groups.group_of[event.resource]]:  # members were isolated together
        resource_state = state.resource_states[member]
        if resource_state.isolated and not resource_state.failed:
            state.resource_states[member] = resource_state.but(isolated=False, attempts=FrozenMap())


def _undo_began(state: UpgradeState, event: past.SetUndoStarted) -> None:
    state.made_progress = True
    state.pending_orders.pop(event.set, None)
    state.set_status[event.set] = replace(
        state.set_status[event.set], reason=event.reason, reason_code=event.code
    )
    undo_set(state, event.set)


def _set_ended(state: UpgradeState, event: past.SetEnded) -> None:
    state.made_progress = True
    drop_set(state, event.set)
    state.pending_orders.pop(event.set, None)
    state.refused_sets.pop(event.set, None)
    state.set_status[event.set] = replace(
        state.set_status[event.set],
        progress=SetProgress.ENDED,
        outcome=event.outcome,
        reason=event.reason,
        reason_code=event.code,
    )
    settle_dependencies(state, event.set)
    if event.outcome is SetOutcome.REFUSED:
        for id_ in state.set_status[event.set].resources:
            resource_state = state.resource_states.get(id_)
            if (
                resource_state is not None
                and not resource_state.present
                and not resource_state.levels
            ):
                del state.resource_states[id_]
                state.grouping = None


def _iteration_ended(state: UpgradeState, event: past.IterationEnded) -> None:
    state.phase = IterationPhase.IDLE
    state.pause_reason = event.paused
    state.paused_ms = event.at_ms


def _campaign_ended(state: UpgradeState, _event: past.CampaignEnded) -> None:
    state.ended = True


_HANDLERS: Final[dict[type[Any], Callable[[Any, Any], None]]] = {
    past.UpgradeRequested: _requested,
    past.UpgradeCommanded: _commanded,
    past.ScalingRequested: _scaling_asked,
    past.ScalingAnswered: _scaling_answered,
    facts.VmArrived: _vm_arrived,
    facts.VmLeft: _vm_left,
    facts.HostFailed: _host_failed,
    facts.HostRecovered: _host_recovered,
    facts.HostJoined: _host_joined,
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
    past.SetUndoStarted: _undo_began,
    past.SetEnded: _set_ended,
    past.IterationEnded: _iteration_ended,
    past.CampaignEnded: _campaign_ended,
}
