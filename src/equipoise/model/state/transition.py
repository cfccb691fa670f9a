"""The transition, the only writer of the cluster state: an event in, the next state out.

Every event is accepted, because it has already happened. An event that makes no sense in the
present state (a late answer, an unknown VM) only increments the version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from equipoise.model.action import (
    HOST_TRANSITIONS,
    Action,
    Allocate,
    HostAction,
    Kill,
    Migrate,
    PowerOff,
    PowerOn,
    RoleAction,
    StartRole,
    StopRole,
    vm_transition,
)
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionLost,
    ActionStarted,
    ClusterLoaded,
    DemandObserved,
    Event,
    HostChanged,
    HostFailed,
    HostJoined,
    HostLeft,
    HostRecovered,
    LayoutChanged,
    LeaderEpochStarted,
    ProcessorLocked,
    ProcessorSuspected,
    ProcessorTrusted,
    ProcessorUnlocked,
    ProposalMade,
    RoleMoveRequested,
    RolesFound,
    SettingsChanged,
    SlotsFilled,
    VmArrived,
    VmChanged,
    VmCrashed,
    VmLeft,
)
from equipoise.model.host import Host, HostState
from equipoise.model.inventory import ClusterSettings
from equipoise.model.plan import Proposal, Step
from equipoise.model.quantity import HostId, ProcessorId, StepId, VmId
from equipoise.model.roles.state import GroupRole, ProcessorStatus, layout_index
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import (
    HISTORY_MS,
    DemandSample,
    LastPowerChange,
    RunningAction,
    Snapshot,
)
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState


def apply(snapshot: Snapshot, event: Event) -> Snapshot:
    """Return the state after one event."""
    return replay(snapshot, (event,))


def replay(snapshot: Snapshot, events: Iterable[Event]) -> Snapshot:
    """Return the state after many events, with one copy of each changed map."""
    draft = Draft(snapshot)
    for event in events:
        apply_to_draft(draft, event)
    return draft.freeze()


def snapshot_after_actions(snapshot: Snapshot, actions: Iterable[Action]) -> Snapshot:
    """Return the snapshot after actions, one after the other; they take no time."""
    draft, at_ms = Draft(snapshot), snapshot.at_ms
    for number, action in enumerate(actions):
        # The events of a world, so that the effect of an action is defined in one place.
        step = Step(id=StepId(f"after-{number}"), action=action, end_ms=1)
        for event in (
            ActionStarted(at_ms=at_ms, step=step, attempt=1),
            ActionFinished(at_ms=at_ms, step=step.id, attempt=1),
        ):
            apply_to_draft(draft, event)
    return draft.freeze()


def with_contention(snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
    """Return the snapshot after a pass that found too little of these resources."""
    contended = snapshot.contended.but(dict.fromkeys(names, snapshot.at_ms))
    return replace(snapshot, contended=contended)


def apply_to_draft(draft: Draft, event: Event) -> None:
    """Apply one event to a draft."""
    draft.version += 1
    # Answers may arrive late, but the time of the state never decreases.
    draft.at_ms = max(draft.at_ms, event.at_ms)
    if isinstance(event, _OUTSIDE_EVENTS) and not _is_only_warmer(draft, event):
        draft.note_outside_change()
    effect = _EFFECTS.get(type(event))
    if effect is not None:
        effect(draft, event)


def _is_only_warmer(draft: Draft, event: Event) -> bool:
    """Return whether an event reports only the temperature of a host, which always changes."""
    if not isinstance(event, HostChanged):
        return False
    known = draft.hosts.get(event.host.id)
    return known is not None and known.but(temperature_c=event.host.temperature_c) == event.host


def _cluster_loaded(draft: Draft, event: ClusterLoaded) -> None:
    draft.reload(Snapshot.of(event.inventory))


def _settings_changed(draft: Draft, event: SettingsChanged) -> None:
    before, draft.settings = draft.settings, event.settings
    _drop_obsolete_groups(draft)
    # The factors of hosts are those of the cluster when they joined, unless they state their own.
    for host in [*draft.hosts.values()]:
        own = _without_factors_of(before, host)
        if (resolved := event.settings.overcommitted(own)) != host:
            draft.put_host(resolved)


def _without_factors_of(settings: ClusterSettings, host: Host) -> Host:
    """Return a host without the factors that it has from the cluster."""
    if host.memory_overcommit == settings.memory_overcommit != 1.0:
        host = host.but(memory_overcommit=None)
    if host.cpu_overcommit is not None and host.cpu_overcommit == settings.cpu_overcommit:
        host = host.but(cpu_overcommit=None)
    return host


def _host_put(draft: Draft, event: HostJoined | HostChanged) -> None:
    if event.host.state is HostState.FAILED:
        _fail_host(draft, event.host.id)
    draft.put_host(draft.settings.overcommitted(event.host))


def _host_left(draft: Draft, event: HostLeft) -> None:
    if event.host not in draft.hosts:
        return
    _interrupt_actions(draft, event.host)
    for vm in draft.residents(event.host):
        draft.put_vm(draft.vms[vm].but(state=VmState.READY, host=None))
    draft.drop_host(event.host)


def _host_failed(draft: Draft, event: HostFailed) -> None:
    if event.host in draft.hosts:
        _fail_host(draft, event.host)
        draft.put_host(draft.hosts[event.host].but(state=HostState.FAILED))


def _fail_host(draft: Draft, host: HostId) -> None:
    """Stop the running VMs of a host, and end all actions that need it."""
    _interrupt_actions(draft, host)
    for vm in draft.residents(host):
        if draft.vms[vm].state is VmState.RUNNING:
            _stop_vm(draft, vm)


def _host_recovered(draft: Draft, event: HostRecovered) -> None:
    host = draft.hosts.get(event.host)
    if host is not None and host.state is HostState.FAILED:
        _set_host_state(draft, event.host, HostState.ON)


def _vm_put(draft: Draft, event: VmArrived | VmChanged) -> None:
    vm = event.vm
    # An observation may contradict itself. Every reader relies on this link of state and host.
    if vm.state.has_host == (vm.host is not None) and (vm.host is None or vm.host in draft.hosts):
        draft.put_vm(vm)


def _vm_left(draft: Draft, event: VmLeft) -> None:
    if event.vm in draft.vms:
        for running in draft.actions_on_vm(event.vm):
            draft.drop_action(running.step.id)
        draft.drop_vm(event.vm)


def _vm_crashed(draft: Draft, event: VmCrashed) -> None:
    vm = draft.vms.get(event.vm)
    if vm is not None and vm.state is VmState.RUNNING:
        for running in draft.actions_on_vm(event.vm):
            if not isinstance(running.step.action, Kill):  # Kill does not need a running VM
                draft.drop_action(running.step.id)
        _stop_vm(draft, event.vm)


def _demand_observed(draft: Draft, event: DemandObserved) -> None:
    if draft.history and event.at_ms < draft.history[-1].at_ms:
        return  # a late observation: newer demand is already known
    vms = draft.vms
    draft.put_demands(
        {
            name: demand
            for name, demand in event.demand.items()
            if name in vms and vms[name].demand != demand
        }
    )
    after = FrozenMap({name: vm.demand for name, vm in draft.vms.items()})
    if draft.history and draft.history[-1].demand == after:
        after = draft.history[-1].demand  # share the map: an hour without changes costs one map
    else:
        draft.demand_total = (
            sum(demand.cpu_mhz for demand in after.values()),
            sum(demand.memory_mib for demand in after.values()),
        )
    recent = (sample for sample in draft.history if sample.at_ms > draft.at_ms - HISTORY_MS)
    draft.history = (*recent, DemandSample(event.at_ms, after))


def _action_started(draft: Draft, event: ActionStarted) -> None:
    touched = event.step.footprint
    # A VM or host may have left since the decision. The indexes of the draft need both to exist.
    has_vm = touched.vm is None or touched.vm in draft.vms
    if has_vm and all(host in draft.hosts for host in touched.hosts):
        action = event.step.action
        sharing = draft.link_sharing(action) + 1 if isinstance(action, Migrate) else 1
        draft.put_action(RunningAction(event.step, event.attempt, event.at_ms, sharing))


def _action_ended(draft: Draft, event: ActionFinished | ActionFailed | ActionLost) -> None:
    running = draft.in_flight.get(event.step)
    # A late answer of an earlier attempt must not end the present one.
    if running is None or running.attempt != event.attempt:
        return
    if isinstance(running.step.action, Migrate):
        _note_migration(draft, running, event)
    draft.drop_action(event.step)
    if isinstance(running.step.action, StartRole | StopRole):
        _role_action_ended(draft, running.step.action, event)
        return
    if isinstance(event, ActionFinished):
        _apply_action(draft, running.step.action)
        if not isinstance(running.step.action, Migrate | PowerOn | PowerOff):
            draft.note_outside_change()
    # Failures count too: deciders wait before they try the host again.
    if isinstance(running.step.action, PowerOn | PowerOff):
        on, failed = isinstance(running.step.action, PowerOn), not isinstance(event, ActionFinished)
        draft.note_power_change(running.step.action.host, LastPowerChange(event.at_ms, on, failed))


def _note_migration(
    draft: Draft, running: RunningAction, event: ActionFinished | ActionFailed | ActionLost
) -> None:
    """Record how a migration ended, for the estimates and the back-off."""
    if isinstance(event, ActionFinished):
        draft.note_move(running, event.at_ms)
        return
    if isinstance(event, ActionFailed) and event.code == "action-interrupted":
        return  # its host or VM was lost, which says nothing of the migration
    late = event.at_ms - running.started_ms > running.step.duration_ms
    # A migration that the operator stops early has not failed.
    if late or not (isinstance(event, ActionFailed) and event.code == "cancelled"):
        draft.note_failed_move(running, event.at_ms, late=late)


def _apply_action(draft: Draft, action: Action) -> None:
    """Apply the effect of a finished action, if VM or host is still in the required state."""
    if isinstance(action, HostAction):
        before, after = HOST_TRANSITIONS[type(action)]
        if draft.hosts[action.host].state is before:
            _set_host_state(draft, action.host, after)
        return
    assert not isinstance(action, RoleAction), "_role_action_ended applies role actions"
    vm = draft.vms[action.vm]
    change = vm_transition(action)
    if change is not None:
        if (vm.state, vm.host) == (change.state_before, change.host_before):
            draft.put_vm(vm.but(state=change.state_after, host=change.host_after))
    elif isinstance(action, Allocate):
        amounts = {**vm.consumption, action.resource: action.amount}
        draft.put_vm(vm.but(consumption=amounts))
    elif isinstance(action, Kill):
        draft.put_vm(vm.but(state=VmState.TERMINATED, host=None))


def _set_host_state(draft: Draft, name: HostId, state: HostState) -> None:
    """Change the state of a host. Its agent VMs run while it is on, and sleep otherwise."""
    draft.put_host(draft.hosts[name].but(state=state))
    agent_state = VmState.RUNNING if state is HostState.ON else VmState.SLEEPING
    for resident in draft.residents(name):
        vm = draft.vms[resident]
        if vm.agent and vm.state is not agent_state:
            draft.put_vm(vm.but(state=agent_state))


def _stop_vm(draft: Draft, name: VmId) -> None:
    """Stop a running VM that failed: an agent sleeps on its host, any other VM is ``ready``."""
    vm = draft.vms[name]
    if vm.agent:
        draft.put_vm(vm.but(state=VmState.SLEEPING))
    else:
        draft.put_vm(vm.but(state=VmState.READY, host=None))


def _interrupt_actions(draft: Draft, host: HostId) -> None:
    """End every action that cannot continue without a host, without its effect."""
    for running in draft.actions_on_host(host):
        draft.drop_action(running.step.id)
    for vm in draft.residents(host):
        for running in draft.actions_on_vm(vm):
            # They need the running VM and name no host. A forge or a kill needs no host.
            if isinstance(running.step.action, Allocate | RoleAction):
                draft.drop_action(running.step.id)


# Effects on roles


def _role_action_ended(
    draft: Draft, action: RoleAction, event: ActionFinished | ActionFailed | ActionLost
) -> None:
    """Apply the end of a start or stop of a role."""
    role_state, instance = draft.role_state, action.role_instance
    if not isinstance(event, ActionFinished):
        role_state.add_failure(instance, event.at_ms)
        return
    role_state.clear_failure(instance)
    if isinstance(action, StartRole):
        # A late answer of a processor that went down meanwhile must not bring the role back.
        if draft.is_up(instance.processor):
            role_state.add_held(instance.processor, instance.group_role)
    else:
        role_state.remove_held(instance.processor, instance.group_role)


def _processor_suspected(draft: Draft, event: ProcessorSuspected) -> None:
    """Record the start of a suspicion. A repeated suspicion keeps the first time."""
    status = draft.role_state.status(event.processor)
    if status.suspected_ms is None and draft.is_up(event.processor):
        _put_status(draft, event.processor, status._replace(suspected_ms=event.at_ms))


def _processor_trusted(draft: Draft, event: ProcessorTrusted) -> None:
    """End a suspicion."""
    status = draft.role_state.status(event.processor)
    if status.suspected_ms is not None:
        _put_status(draft, event.processor, status._replace(suspected_ms=None))


def _processor_locked(draft: Draft, event: ProcessorLocked) -> None:
    """Lock a processor, with the reason."""
    status = draft.role_state.status(event.processor)
    _put_status(draft, event.processor, status._replace(locked=event.reason))


def _processor_unlocked(draft: Draft, event: ProcessorUnlocked) -> None:
    """Unlock a processor, and clear its failures."""
    status = draft.role_state.status(event.processor)
    _put_status(draft, event.processor, status._replace(locked=None))
    draft.role_state.clear_failures(event.processor)


def _role_move_requested(draft: Draft, event: RoleMoveRequested) -> None:
    """Pin a role to a slot, or remove its pin."""
    draft.role_state.pin(GroupRole(event.group, event.role), event.slot)
    for processor in draft.role_state.slots.get(event.group, {}).values():
        draft.touch(processor)


def _layout_changed(draft: Draft, event: LayoutChanged) -> None:
    """Replace the layout of roles and groups."""
    draft.settings = draft.settings.but(layout=event.layout)
    _drop_obsolete_groups(draft)


def _drop_obsolete_groups(draft: Draft) -> None:
    """Remove the groups and processors that the layout does not have. Running roles stay."""
    layout, role_state = draft.settings.layout, draft.role_state
    index = None if layout is None else layout_index(layout)
    for group in tuple(role_state.slots):
        if index is None or group not in index.groups:
            role_state.drop_group(group)
    for processor in tuple(role_state.statuses):
        if index is None or processor not in index.groups_of:
            role_state.drop_processor(processor)


def _roles_found(draft: Draft, event: RolesFound) -> None:
    """Set the running roles of a processor to the observed ones."""
    observed = tuple(GroupRole(group, role) for group, role in event.held)
    draft.role_state.put_held(event.processor, observed)
    draft.touch(event.processor)


def _proposal_made(draft: Draft, event: ProposalMade) -> None:
    """Record which resources are contended, so that the next pass weighs them alike."""
    if event.proposal.contended:
        draft.contended = draft.contended.but(dict.fromkeys(event.proposal.contended, draft.at_ms))
    if event.proposal.decider == "balance" and draft.settings.balance.passes_seen > 1:
        draft.moves_seen = _moves_seen(draft.moves_seen, event.proposal)


def _moves_seen(
    before: Mapping[VmId, tuple[HostId, int]], proposal: Proposal
) -> FrozenMap[VmId, tuple[HostId, int]]:
    """Count in how many passes in a row the same move of a VM was recommended."""
    seen = {}
    for intent in (*proposal.intents, *proposal.advised):
        action = intent.action
        if isinstance(action, Migrate):
            target, count = before.get(action.vm, (action.target, 0))
            seen[action.vm] = action.target, count + 1 if target == action.target else 1
    return FrozenMap(seen)


def _leader_epoch_started(draft: Draft, event: LeaderEpochStarted) -> None:
    """Set the epoch of the leader."""
    draft.role_state.raise_epoch(event.epoch)


def _slots_filled(draft: Draft, event: SlotsFilled) -> None:
    """Set the processors of the slots of a group."""
    before = tuple(draft.role_state.slots.get(event.group, {}).values())
    draft.role_state.assign_slots(event.group, event.slots)
    for processor in (*before, *event.slots.values()):
        draft.touch(processor)


def _put_status(draft: Draft, processor: ProcessorId, status: ProcessorStatus) -> None:
    draft.role_state.put_status(processor, status)
    draft.touch(processor)


_OUTSIDE_EVENTS: Final = (
    SettingsChanged,
    HostJoined,
    HostChanged,
    HostLeft,
    HostFailed,
    HostRecovered,
    VmArrived,
    VmChanged,
    VmLeft,
    VmCrashed,
)
"""Events that no decision of the controller causes, after which another placement may be better."""

_EFFECTS: Final[dict[type[Any], Callable[[Draft, Any], None]]] = {
    ClusterLoaded: _cluster_loaded,
    SettingsChanged: _settings_changed,
    HostJoined: _host_put,
    HostChanged: _host_put,
    HostLeft: _host_left,
    HostFailed: _host_failed,
    HostRecovered: _host_recovered,
    VmArrived: _vm_put,
    VmChanged: _vm_put,
    VmLeft: _vm_left,
    VmCrashed: _vm_crashed,
    DemandObserved: _demand_observed,
    ProcessorSuspected: _processor_suspected,
    ProcessorTrusted: _processor_trusted,
    ProcessorLocked: _processor_locked,
    ProcessorUnlocked: _processor_unlocked,
    RoleMoveRequested: _role_move_requested,
    LayoutChanged: _layout_changed,
    RolesFound: _roles_found,
    LeaderEpochStarted: _leader_epoch_started,
    ProposalMade: _proposal_made,
    SlotsFilled: _slots_filled,
    ActionStarted: _action_started,
    ActionFinished: _action_ended,
    ActionFailed: _action_ended,
    ActionLost: _action_ended,
}
"""The effect of each event on the state. Other events are decisions and change only the version."""
