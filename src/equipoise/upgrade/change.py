"""The only place where the state of an upgrade changes: an event in, the state after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from equipoise.model import event as facts
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId, VmId
from equipoise.model.tenant import Tenant
from equipoise.model.upgrade import event as past
from equipoise.model.upgrade.event import SetOutcome
from equipoise.model.upgrade.request import Command, SetId
from equipoise.model.upgrade.work import Errand, VertexId, VmBatch
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.outcome import close, opened, task_failed, task_finished
from equipoise.upgrade.requests import drop, schedule, settle, take_back
from equipoise.upgrade.requests.orders import is_early, obey, objection, taken, words
from equipoise.upgrade.scene import affected_hosts, scene_of
from equipoise.upgrade.state import Open, Phase, Place, Progress, Seat, State, Unheeded


def change(state: State, event: Event) -> None:
    """Let one event change the state. One that makes no sense in it changes nothing but time."""
    state.at_ms = max(state.at_ms, event.at_ms)
    effect = _EFFECTS.get(type(event))
    if effect is not None:
        effect(state, event)


# What the world and the administrator do


def _requested(state: State, event: past.UpgradeRequested) -> None:
    state.ended = False
    why = taken(state, event.request)
    if why:
        state.unheeded.append(Unheeded(f"request {event.request.id}", why, event.number))
        return
    state.requests.append((event.at_ms, event.request))
    state.changed = True


def _commanded(state: State, event: past.UpgradeCommanded) -> None:
    state.ended = False
    if is_early(state, event.command):
        state.early.append((event.command, event.number))
        state.changed = True
    else:
        _heed(state, event.command, event.number)


def _heed(state: State, command: Command, number: int) -> None:
    why = objection(state, command)
    if why:
        state.unheeded.append(Unheeded(words(command), why, number))
        return
    obey(state, command)
    state.changed = True


def _order_refused(state: State, _event: past.OrderRefused) -> None:
    state.unheeded = state.unheeded[1:]


def _scaling_asked(state: State, event: past.ScalingAsked) -> None:
    if event.tenant in state.tenants and event.vms:
        state.asked.append((event.tenant, event.vms))


def _scaling_answered(state: State, event: past.ScalingAnswered) -> None:
    if state.asked:
        state.asked.pop(0)
    tenant = state.tenants[event.tenant]
    group = tenant.anti_affinity[0].id if tenant.anti_affinity else None
    for vm, host in event.added.items():
        state.new_vms += 1
        seat(state, Seat(vm, tenant.id, group, host), _like_the_first(state, tenant, vm))
    for vm in event.removed:
        unseat(state, vm)
    if event.removed:
        state.changed = True
        _look_again(state)


def _like_the_first(state: State, tenant: Tenant, id_: VmId) -> Vm:
    """A VM that came by scaling is taken for one such as its tenant began with."""
    own = (vm for vm in state.campaign.cluster.vms if vm.tenant == tenant.id)
    like = next(own, None)
    if like is None:  # nothing is known but that it takes a place
        return Vm(id=id_, vcpus=1, memory_mib=1, tenant=tenant.id)
    return like.but(id=id_, ft_pair=None, agent=False)


def seat(state: State, one: Seat, described: Vm) -> None:
    """Put a VM that is not there yet on its host."""
    state.seats[one.vm] = one
    state.vms[one.vm] = described
    if one.tenant is not None:
        state.sizes[one.tenant] = state.sizes.get(one.tenant, 0) + 1
    if one.host is not None:
        state.residents.setdefault(one.host, {})[one.vm] = None


def unseat(state: State, vm: VmId) -> None:
    """Forget a VM."""
    one = state.seats.pop(vm, None)
    state.vms.pop(vm, None)
    if one is None:
        return
    if one.tenant is not None:
        state.sizes[one.tenant] -= 1
    if one.host is not None:
        state.residents[one.host].pop(vm, None)


def _move(state: State, vm: VmId, host: HostId | None, *, counts: bool) -> None:
    one = state.seats.get(vm)
    if one is None:
        return
    if one.host is not None:
        state.residents[one.host].pop(vm, None)
    if host is not None:
        state.residents.setdefault(host, {})[vm] = None
    state.seats[vm] = replace(one, host=host, moves=one.moves + counts)


def _vm_arrived(state: State, event: facts.VmArrived) -> None:
    vm = event.vm
    if vm.id in state.seats:
        return
    tenant = state.tenants.get(vm.tenant) if vm.tenant is not None else None
    group = tenant.anti_affinity[0].id if tenant is not None and tenant.anti_affinity else None
    seat(state, Seat(vm.id, None if tenant is None else tenant.id, group, vm.host), vm)


def _vm_left(state: State, event: facts.VmLeft) -> None:
    unseat(state, event.vm)
    state.changed = True


def _host_failed(state: State, event: facts.HostFailed) -> None:
    place = state.places.get(event.host)
    if place is None or not place.up:
        return
    state.places[event.host] = replace(place, up=False)
    lost = tuple(state.residents.get(event.host, ()))
    for vm in lost:
        _move(state, vm, None, counts=False)
    if lost:
        state.lost[event.host] = lost


def _host_recovered(state: State, event: facts.HostRecovered) -> None:
    place = state.places.get(event.host)
    if place is not None:
        state.places[event.host] = replace(place, up=True)
        state.changed = True
        _look_again(state)


def _host_joined(state: State, event: facts.HostJoined) -> None:
    places = event.host.capacity.get("vms", 0)  # type: ignore[call-overload]
    state.places.setdefault(event.host.id, Place(event.host.id, places))
    state.hosts.setdefault(event.host.id, event.host)
    state.changed = True
    state.grouping = None


def _restarted(state: State, event: past.VmsRestarted) -> None:
    for vm, host in event.placed.items():
        _move(state, vm, host, counts=False)
    state.lost.pop(event.host, None)
    if event.unplaced:
        state.stranded[event.host] = event.unplaced


def _look_again(state: State) -> None:
    """There may be room now that was not there before."""
    state.lost |= state.stranded
    state.stranded = {}


# What an iteration comes to


def _iteration_began(state: State, event: past.IterationBegan) -> None:
    state.iteration = event.iteration
    state.phase = Phase.TAKING_UP
    state.ready_ms = event.at_ms + state.settings.calculation_ms
    state.changed = False
    state.batch, state.last_done, state.to_revert, state.to_check = (), {}, {}, ()
    state.unmovable, state.vm_limit, state.vm_moved, state.vm_done = {}, None, 0, False
    state.sub_iteration, state.vm_due, state.settled = 0, False, {}
    state.progressed, state.told, state.checked = False, (), False
    _look_again(state)
    for requested_ms, request in state.requests:
        refused = schedule(state, request, requested_ms)
        state.refused |= {SetId(one): why for one, why in refused.items()}
    state.requests = []
    for command, number in state.early:
        _heed(state, command, number)
    state.early = []


def _batch_decided(state: State, event: past.BatchDecided) -> None:
    state.batch = event.batch
    state.out = _out(state, event.batch)
    state.told = tuple(one.reason for one in event.eliminated if one.rule in (0, 1, 7))
    state.phase = Phase.CHANGING if event.batch else Phase.MOVING


def _out(state: State, batch: tuple[VertexId, ...]) -> dict[HostId, None]:
    """The compute hosts that are out of service for a batch."""
    hosts = grouping(state).hosts_of
    found = {host: None for one in batch for host in hosts.get(one, ())}
    others = [one for one in batch if one not in hosts]
    if others:
        scene = scene_of(state, with_vms=False)
        found |= {host: None for one in others for host in sorted(affected_hosts(scene, one))}
    return found


def _batch_started(state: State, event: past.BatchStarted) -> None:
    state.open = Open(event.batch)
    state.progressed = True
    for task in event.batch.tasks:
        if task.errand is Errand.REVERT:
            state.to_revert.pop(task.resource, None)


def _vm_batch_decided(state: State, event: past.VmBatchDecided) -> None:
    state.vm_limit = event.v if state.vm_limit is None else state.vm_limit
    state.phase = Phase.MOVING
    state.vm_done = event.size == 0
    state.vm_due = event.size > 0


def _vm_batch_started(state: State, event: past.VmBatchStarted) -> None:
    state.open = Open(event.batch)
    state.sub_iteration += 1
    state.vm_due = False
    state.progressed = True
    if event.why:
        state.settled |= {move.vm: move.source for move in event.batch.moves}


def _vm_moved(state: State, event: past.VmMoved) -> None:
    schedule_ = opened(state, event.batch)
    if not isinstance(schedule_, VmBatch):
        return
    for move in schedule_.moves:
        seat_ = state.seats.get(event.vm)  # an answer may come twice
        here = seat_ is not None and seat_.host == move.source
        if move.vm == event.vm and here and state.places[move.target].up:
            _move(state, event.vm, move.target, counts=True)
            state.vm_moved += state.phase is Phase.MOVING


def _vm_move_failed(state: State, event: past.VmMoveFailed) -> None:
    if opened(state, event.batch) is not None:
        state.unmovable[event.vm] = event.reason or "its move failed"


def _batch_ended(state: State, event: past.BatchEnded) -> None:
    ended, schedule_ = state.open, opened(state, event.batch)
    if ended is None or schedule_ is None:
        return
    state.open = None
    if isinstance(schedule_, VmBatch):
        return
    close(state, ended)
    if all(task.errand is Errand.LINK_ON for task in schedule_.tasks):
        return
    if any(task.errand is Errand.CHECK for task in schedule_.tasks):
        state.checked = True
    bake_s = max((_bake_s(state, one) for one in state.to_check), default=0)
    if state.to_revert:
        state.phase = Phase.REVERTING
    elif (bake_s or _has_check(state)) and not state.checked:
        state.phase = Phase.BAKING
        state.ready_ms = event.at_ms + bake_s * 1000
    else:
        state.phase = Phase.MOVING


def _has_check(state: State) -> bool:
    """Whether a vendor says how to see if what was changed is well."""
    levels = [state.last_done[one] for one in state.to_check if one in state.last_done]
    return any(work.recipe.check_script for level in levels for work in level.works)


def _bake_s(state: State, resource: ResourceId) -> int:
    return max((state.standings[one].set.bake_s for one in state.parts[resource].sets), default=0)


# What becomes of resources and sets


def _isolated(state: State, event: past.ResourceIsolated) -> None:
    state.progressed = True
    part = state.parts[event.resource]
    state.broken.pop(event.resource, None)
    failed = event.failed or part.failed
    levels = () if failed else part.levels
    state.parts[event.resource] = part.but(isolated=True, failed=failed, levels=levels)


def _released(state: State, event: past.ResourceReleased) -> None:
    state.progressed = True
    made = grouping(state)
    for one in made.members[made.group_of[event.resource]]:  # what was isolated with it as well
        part = state.parts[one]
        if part.isolated and not part.failed:
            state.parts[one] = part.but(isolated=False, attempts=FrozenMap())


def _undo_began(state: State, event: past.SetUndoBegan) -> None:
    state.progressed = True
    state.orders.pop(event.set, None)
    state.standings[event.set] = replace(state.standings[event.set], reason=event.reason)
    take_back(state, event.set)


def _set_ended(state: State, event: past.SetEnded) -> None:
    state.progressed = True
    drop(state, event.set)
    state.orders.pop(event.set, None)
    state.refused.pop(event.set, None)
    state.standings[event.set] = replace(
        state.standings[event.set],
        progress=Progress.ENDED,
        outcome=event.outcome,
        reason=event.reason,
    )
    settle(state, event.set)
    if event.outcome is SetOutcome.REFUSED:
        for id_ in state.standings[event.set].resources:
            part = state.parts.get(id_)
            if part is not None and not part.present and not part.levels:
                del state.parts[id_]
                state.grouping = None


def _iteration_ended(state: State, event: past.IterationEnded) -> None:
    state.phase = Phase.IDLE
    state.paused = event.paused
    state.paused_ms = event.at_ms


def _campaign_ended(state: State, _event: past.CampaignEnded) -> None:
    state.ended = True


_EFFECTS: Final[dict[type[Any], Callable[[Any, Any], None]]] = {
    past.UpgradeRequested: _requested,
    past.UpgradeCommanded: _commanded,
    past.ScalingAsked: _scaling_asked,
    past.ScalingAnswered: _scaling_answered,
    facts.VmArrived: _vm_arrived,
    facts.VmLeft: _vm_left,
    facts.HostFailed: _host_failed,
    facts.HostRecovered: _host_recovered,
    facts.HostJoined: _host_joined,
    past.VmsRestarted: _restarted,
    past.OrderRefused: _order_refused,
    past.IterationBegan: _iteration_began,
    past.BatchDecided: _batch_decided,
    past.BatchStarted: _batch_started,
    past.VmBatchDecided: _vm_batch_decided,
    past.VmBatchStarted: _vm_batch_started,
    past.VmMoved: _vm_moved,
    past.VmMoveFailed: _vm_move_failed,
    past.BatchEnded: _batch_ended,
    past.TaskFinished: task_finished,
    past.TaskFailed: task_failed,
    past.ResourceIsolated: _isolated,
    past.ResourceReleased: _released,
    past.SetUndoBegan: _undo_began,
    past.SetEnded: _set_ended,
    past.IterationEnded: _iteration_ended,
    past.CampaignEnded: _campaign_ended,
}
