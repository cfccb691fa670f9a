"""The only place where the state of the cluster changes: an event in, the next state out.

Every event is accepted, because it has already happened. One that makes no sense in the state it
meets (an answer that comes too late, a VM nobody knows) changes nothing but the count of events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from equipoise.model.action import (
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
)
from equipoise.model.change import roles
from equipoise.model.change.draft import Draft
from equipoise.model.change.lifecycle import HOST_PASSAGES, passage
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
    ProcessorLocked,
    ProcessorSuspected,
    ProcessorTrusted,
    ProcessorUnlocked,
    ReignBegan,
    RoleMoveAsked,
    RolesFound,
    SettingsChanged,
    SlotsFilled,
    VmArrived,
    VmChanged,
    VmCrashed,
    VmLeft,
)
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import (
    HISTORY_MS,
    DemandFrame,
    LastMove,
    LastSwitch,
    Running,
    Snapshot,
)
from equipoise.model.value import FrozenMap
from equipoise.model.vm import VmState


def apply(snapshot: Snapshot, event: Event) -> Snapshot:
    """Give the state after one event."""
    return replay(snapshot, (event,))


def replay(snapshot: Snapshot, events: Iterable[Event]) -> Snapshot:
    """Give the state after many events, at the price of one copy."""
    draft = Draft(snapshot)
    for event in events:
        change(draft, event)
    return draft.freeze()


def change(draft: Draft, event: Event) -> None:
    """Let one event change a draft."""
    draft.version += 1
    # Answers may be delivered late, but time never runs backwards for those who read.
    draft.at_ms = max(draft.at_ms, event.at_ms)
    effect = _EFFECTS.get(type(event))
    if effect is not None:
        effect(draft, event)


def _cluster_loaded(draft: Draft, event: ClusterLoaded) -> None:
    draft.replace_all(Snapshot.of(event.inventory))


def _settings_changed(draft: Draft, event: SettingsChanged) -> None:
    draft.settings = event.settings
    roles.relayout(draft)


def _host_put(draft: Draft, event: HostJoined | HostChanged) -> None:
    if event.host.state is HostState.FAILED:
        _fail(draft, event.host.id)
    draft.put_host(event.host)


def _host_left(draft: Draft, event: HostLeft) -> None:
    if event.host not in draft.hosts:
        return
    _break_off(draft, event.host)
    for vm in draft.residents(event.host):
        draft.put_vm(draft.vms[vm].but(state=VmState.READY, host=None))
    draft.drop_host(event.host)


def _host_failed(draft: Draft, event: HostFailed) -> None:
    if event.host in draft.hosts:
        _fail(draft, event.host)
        draft.put_host(draft.hosts[event.host].but(state=HostState.FAILED))


def _fail(draft: Draft, host: HostId) -> None:
    """Whatever runs on a host, or is being done with it, comes to its end."""
    _break_off(draft, host)
    for vm in draft.residents(host):
        if draft.vms[vm].state is VmState.RUNNING:
            _stop(draft, vm)


def _host_recovered(draft: Draft, event: HostRecovered) -> None:
    host = draft.hosts.get(event.host)
    if host is not None and host.state is HostState.FAILED:
        _switch(draft, event.host, HostState.ON)


def _vm_put(draft: Draft, event: VmArrived | VmChanged) -> None:
    vm = event.vm
    if vm.state.has_host == (vm.host is not None) and (vm.host is None or vm.host in draft.hosts):
        draft.put_vm(vm)


def _vm_left(draft: Draft, event: VmLeft) -> None:
    if event.vm in draft.vms:
        for running in draft.running_on(event.vm):
            draft.drop_running(running.step.id)
        draft.drop_vm(event.vm)


def _vm_crashed(draft: Draft, event: VmCrashed) -> None:
    vm = draft.vms.get(event.vm)
    if vm is not None and vm.state is VmState.RUNNING:
        for running in draft.running_on(event.vm):
            if not isinstance(running.step.action, Kill):  # which needs no running VM
                draft.drop_running(running.step.id)
        _stop(draft, event.vm)


def _demand_observed(draft: Draft, event: DemandObserved) -> None:
    if draft.history and event.at_ms < draft.history[-1].at_ms:
        return  # it comes late, and newer figures are known
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
        after = draft.history[-1].demand  # an hour in which nothing changes costs one map
    recent = (past for past in draft.history if past.at_ms > draft.at_ms - HISTORY_MS)
    draft.history = (*recent, DemandFrame(event.at_ms, after))


def _action_started(draft: Draft, event: ActionStarted) -> None:
    seen = event.step.footprint
    if (seen.vm is None or seen.vm in draft.vms) and all(h in draft.hosts for h in seen.hosts):
        draft.put_running(Running(event.step, event.attempt, event.at_ms))


def _action_ended(draft: Draft, event: ActionFinished | ActionFailed | ActionLost) -> None:
    running = draft.in_flight.get(event.step)
    if running is None or running.attempt != event.attempt:
        return
    draft.drop_running(event.step)
    if isinstance(running.step.action, StartRole | StopRole):
        roles.action_ended(draft, running.step.action, event)
        return
    if isinstance(event, ActionFinished):
        _finish(draft, running.step.action)
        if isinstance(running.step.action, Migrate):
            _note_move(draft, running.step.action, running.started_ms, event.at_ms)
    if isinstance(running.step.action, PowerOn | PowerOff):
        on, failed = isinstance(running.step.action, PowerOn), not isinstance(event, ActionFinished)
        draft.note_switch(running.step.action.host, LastSwitch(event.at_ms, on, failed))


def _note_move(draft: Draft, action: Migrate, started_ms: int, ended_ms: int) -> None:
    seconds = max(1, ended_ms - started_ms) / 1000
    speed = draft.vms[action.vm].memory_mib / seconds
    draft.note_move(action.vm, LastMove(ended_ms, action.source, action.target, speed))


def _finish(draft: Draft, action: Action) -> None:
    """Let a finished action have its effect, if its subject is still as the action needs it."""
    if isinstance(action, HostAction):
        before, after = HOST_PASSAGES[type(action)]
        if draft.hosts[action.host].state is before:
            _switch(draft, action.host, after)
        return
    assert not isinstance(action, RoleAction), "roles have a file of their own"
    vm = draft.vms[action.vm]
    way = passage(action)
    if way is not None:
        if (vm.state, vm.host) == (way.state_before, way.host_before):
            draft.put_vm(vm.but(state=way.state_after, host=way.host_after))
    elif isinstance(action, Allocate):
        amounts = {**vm.consumption, action.resource: action.amount}
        draft.put_vm(vm.but(consumption=amounts))
    elif isinstance(action, Kill):
        draft.put_vm(vm.but(state=VmState.TERMINATED, host=None))


def _switch(draft: Draft, name: HostId, state: HostState) -> None:
    """Change a host's state; its agent VMs sleep and wake with it."""
    draft.put_host(draft.hosts[name].but(state=state))
    agents = VmState.RUNNING if state is HostState.ON else VmState.SLEEPING
    for resident in draft.residents(name):
        vm = draft.vms[resident]
        if vm.agent and vm.state is not agents:
            draft.put_vm(vm.but(state=agents))


def _stop(draft: Draft, name: VmId) -> None:
    """A running VM stops by accident: an agent waits there, any other may start elsewhere."""
    vm = draft.vms[name]
    if vm.agent:
        draft.put_vm(vm.but(state=VmState.SLEEPING))
    else:
        draft.put_vm(vm.but(state=VmState.READY, host=None))


def _break_off(draft: Draft, host: HostId) -> None:
    """End every action that cannot go on without a host, with no effect."""
    for running in draft.running_at(host):
        draft.drop_running(running.step.id)
    for vm in draft.residents(host):
        for running in draft.running_on(vm):
            if isinstance(running.step.action, Allocate | RoleAction):
                draft.drop_running(running.step.id)


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
    ProcessorSuspected: roles.processor_suspected,
    ProcessorTrusted: roles.processor_trusted,
    ProcessorLocked: roles.processor_locked,
    ProcessorUnlocked: roles.processor_unlocked,
    RoleMoveAsked: roles.role_move_asked,
    LayoutChanged: roles.layout_changed,
    RolesFound: roles.roles_found,
    ReignBegan: roles.reign_began,
    SlotsFilled: roles.slots_filled,
    ActionStarted: _action_started,
    ActionFinished: _action_ended,
    ActionFailed: _action_ended,
    ActionLost: _action_ended,
}
"""Events that are not here tell of decisions; they are part of the story, not of the state."""
