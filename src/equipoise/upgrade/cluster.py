"""The cluster as the upgrade knows it, in the words of the inventory: what the gate judges moves
by, and what a journal of an upgrade is replayed to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.model.host import Host, HostState
from equipoise.model.inventory import Inventory
from equipoise.model.quantity import GroupId, HostId, ResourceId, VmId
from equipoise.model.resource import Presence, Resource
from equipoise.model.rule import Rule
from equipoise.model.tenant import Tenant
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.model.upgrade.standing import (
    CampaignStanding,
    OutOfService,
    SetStanding,
    UnderWay,
)
from equipoise.model.upgrade.work import VmBatch
from equipoise.model.vm import Vm, VmState
from equipoise.upgrade.begin import PLACES
from equipoise.upgrade.graph.bonds import PRESENT, presence
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.state import Open, Part, Phase, Progress, Standing, State


def cluster_of(state: State) -> Inventory:
    """The whole cluster: hosts, VMs where they run, resources with the versions they have now."""
    cluster = state.campaign.cluster
    resources = {one: _resource(part) for one, part in state.parts.items() if _is_there(state, one)}
    bonds = (bond.dependency for bond in state.bonds if presence(state, bond) in PRESENT)
    groups = (
        group.but(resources=tuple(one for one in group.resources if one in resources))
        for group in cluster.groups
    )
    return cluster.but(
        hosts=tuple(_host(state, one) for one in state.places),
        vms=tuple(_vm(state, one) for one in state.seats),
        tenants=_tenants(state),
        resources=tuple(resources.values()),
        dependencies=tuple(
            one.but(presence=Presence.CURRENT)
            for one in bonds
            if one.dependent in resources and one.sponsor in resources
        ),
        groups=tuple(group for group in groups if group.resources),
    )


def part_of(
    state: State, hosts: Iterable[HostId], also: Iterable[VmId], rules: Sequence[Rule]
) -> Inventory:
    """Some hosts with all that runs on them, and other VMs without their neighbours.

    What counts as room is a place: each host has as many as the upgrade gives it, each VM takes
    one. Cost is in proportion to the part, however large the cluster is.
    """
    guests = [vm for host in hosts for vm in state.residents.get(host, ())]
    vms = [_vm(state, one) for one in dict.fromkeys((*guests, *also))]
    places = dict.fromkeys((*hosts, *(vm.host for vm in vms if vm.host is not None)))
    return Inventory(
        name=state.campaign.cluster.name,
        hosts=tuple(_with_places(state, _host(state, one)) for one in places),
        vms=tuple(vm.but(consumption={**vm.consumption, PLACES: 1}) for vm in vms),
        rules=tuple(rules),
        specification=state.campaign.cluster.specification,
    )


def _is_there(state: State, id_: ResourceId) -> bool:
    """Whether a resource is present; one that is a VM goes with it."""
    part = state.parts[id_]
    return part.present and (part.resource.vm is None or part.resource.vm in state.seats)


def _tenants(state: State) -> tuple[Tenant, ...]:
    """The tenants, with the VMs that their groups have by now."""
    members: dict[GroupId, list[VmId]] = {}
    for seat in state.seats.values():
        if seat.group is not None:
            members.setdefault(seat.group, []).append(seat.vm)
    return tuple(
        tenant.but(
            anti_affinity=tuple(
                group.but(vms=tuple(members[group.id]))
                for group in tenant.anti_affinity
                if group.id in members
            )
        )
        for tenant in state.tenants.values()
    )


def _with_places(state: State, host: Host) -> Host:
    return host.but(capacity={**host.capacity, PLACES: state.places[host.id].places})


def _host(state: State, id_: HostId) -> Host:
    host = state.hosts[id_]
    if not state.places[id_].up:
        # One that was never on is as it was described; one that was has failed.
        return host.but(state=HostState.FAILED) if host.state is HostState.ON else host
    parts = (state.parts[one] for one in grouping(state).by_host.get(id_, ()))
    out = any(not part.operational or (part.present and not part.active) for part in parts)
    return host.but(state=HostState.MAINTENANCE if out else HostState.ON)


def _vm(state: State, id_: VmId) -> Vm:
    host = state.seats[id_].host
    vm = state.vms[id_]
    if host is not None:
        return vm.but(host=host, state=VmState.RUNNING)
    # Its host has failed: it is ready to be started elsewhere. Any other is as it was described.
    return vm.but(host=None, state=VmState.READY) if vm.state is VmState.RUNNING else vm


def _resource(part: Part) -> Resource:
    version = part.components.get(part.main, part.resource.version)
    others = {name: one for name, one in part.components.items() if name != part.main}
    return part.resource.but(version=version, components=others)


def standing_of(state: State) -> CampaignStanding:
    """How the campaign stands, with the cluster as it is."""
    return CampaignStanding(
        campaign=state.campaign.name,
        at_ms=state.at_ms,
        status=_status(state),
        iteration=state.iteration,
        phase=state.phase.value,
        paused=state.paused,
        paused_by_command=state.paused_all,
        sets=tuple(_set(state, one) for one in state.standings.values()),
        requests=tuple(request.id for _, request in state.requests),
        batch=() if state.phase is Phase.IDLE else state.batch,
        under_way=None if state.open is None else _under_way(state, state.open),
        out_of_service=tuple(
            OutOfService(id=one, how=how)
            for one, part in state.parts.items()
            if (how := _out(part))
        ),
        stranded=tuple(vm for vms in state.stranded.values() for vm in vms),
        cluster=cluster_of(state),
    )


def _status(state: State) -> CampaignStatus:
    if not state.ended:
        return CampaignStatus.RUNNING
    done = all(one.progress is Progress.ENDED for one in state.standings.values())
    return CampaignStatus.COMPLETED if done and not state.requests else CampaignStatus.PAUSED


def _set(state: State, one: Standing) -> SetStanding:
    return SetStanding(
        id=one.id,
        progress=one.progress.value if one.outcome is None else one.outcome.value,
        reason=one.reason,
        left=tuple(state.pending(one.id)),
        paused=one.paused,
        priority=one.priority,
        checkpoints_approved=one.approved,
    )


def _under_way(state: State, open_: Open) -> UnderWay:
    schedule = open_.schedule
    if isinstance(schedule, VmBatch):
        left = [f"move {vm}" for vm, _ in state.on_their_way() if vm not in state.unmovable]
    else:
        named = (f"{task.errand} {task.resource}" for task in schedule.tasks)
        left = [one for one in named if one not in open_.answered]
    return UnderWay(batch=schedule.id, unanswered=tuple(left))


def _out(part: Part) -> str:
    if part.operational:
        return "off" if part.present and not part.active else ""
    return "failed" if part.failed else "isolated"
