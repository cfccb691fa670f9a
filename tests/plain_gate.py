"""A second, plain implementation of the gate: no ledger, no index, no incremental update.

It is written from the meaning of a plan and shares no code with the gate. For every step it builds
the cluster again from the snapshot by applying what has ended by then; the times give the actions
in flight. Each objection starts with the number of the statement that it comes from:

1 form, 2 ends before starts, 3 busy VMs, 4 VM states, 5 host states, 6 targets and sources, 7
capacity, 8 hard rules, 9 unknown names. (2 is how the others are checked, so it has no objection.)
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple

from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    Kill,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Resume,
    RoleAction,
    Shutdown,
    Suspend,
)
from equipoise.model.host import Host, HostState
from equipoise.model.plan import Plan, Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm, VmState
from meanings import MEANINGS, World
from plain_breaches import misses
from plain_limits import memory_for_sizes, vcpus_for_sizes

Resource = tuple[str, str]
CPU: Resource = ("cpu", "")
MEMORY: Resource = ("memory", "")
SIZE: Resource = ("configured memory", "")
VCPUS: Resource = ("vcpus", "")

FROM = {
    PowerOn: HostState.STANDBY,
    PowerOff: HostState.ON,
    EnterMaintenance: HostState.ON,
    LeaveMaintenance: HostState.MAINTENANCE,
}
TO = {
    PowerOn: HostState.ON,
    PowerOff: HostState.STANDBY,
    EnterMaintenance: HostState.MAINTENANCE,
    LeaveMaintenance: HostState.ON,
}

LIVES = {
    Forge: {VmState.INIT},
    Boot: {VmState.READY},
    Shutdown: {VmState.RUNNING},
    Migrate: {VmState.RUNNING},
    Reinstantiate: {VmState.RUNNING},
    Suspend: {VmState.RUNNING},
    Allocate: {VmState.RUNNING},
    Resume: {VmState.SLEEPING},
    Kill: {VmState.INIT, VmState.READY, VmState.RUNNING, VmState.SLEEPING},
}


class Cluster(NamedTuple):
    """The hosts and VMs after some actions have ended, and the actions under way."""

    hosts: dict[HostId, Host]
    vms: dict[VmId, Vm]
    flying: list[Action]


def acceptable(snapshot: Snapshot, plan: Plan) -> bool:
    """Whether there is no objection to the plan."""
    return not objections(snapshot, plan)


def objections(snapshot: Snapshot, plan: Plan) -> set[str]:
    """Return every objection to the plan."""
    found = against_form(snapshot, plan)
    for place, step in enumerate(plan.steps):
        now = step.start_ms
        ended = [other for other in plan.steps if other.end_ms <= now]
        flying = [other for other in plan.steps if other.start_ms < now < other.end_ms]
        flying += [other for other in plan.steps[:place] if other.start_ms == now < other.end_ms]
        found |= against_start(cluster_after(snapshot, ended, flying), step.action)
    return found | against_rules(snapshot, plan)


# 1 Form


def against_form(snapshot: Snapshot, plan: Plan) -> set[str]:
    """Return what is wrong with the form of the plan."""
    found = set()
    if plan.base_version != snapshot.version:
        found.add("1 version")
    if len({step.id for step in plan.steps}) < len(plan.steps):
        found.add("1 twice")
    for step in plan.steps:
        if not step.end_ms > step.start_ms:
            found.add("1 times")
        for name in step.after:
            named = [other for other in plan.steps if other.id == name]
            if not named:
                found.add("1 after nothing")
            if any(other.end_ms > step.start_ms for other in named):
                found.add("1 too early")
    return found


# Effects


def cluster_after(
    snapshot: Snapshot, ended: Iterable[Step], flying: Iterable[Step] = ()
) -> Cluster:
    """Return the cluster when just these steps have ended, and the others are under way."""
    cluster = Cluster(dict(snapshot.hosts), dict(snapshot.vms), [step.action for step in flying])
    for step in sorted(ended, key=lambda timed: timed.end_ms):
        if not unknown(cluster, step.action):
            take_effect(cluster, step.action)
    return cluster


def take_effect(cluster: Cluster, action: Action) -> None:
    """Apply the effect of an action at its end."""
    match action:
        case PowerOn() | PowerOff() | EnterMaintenance() | LeaveMaintenance():
            switch(cluster, action.host, TO[type(action)])
            return
    assert not isinstance(action, RoleAction), "the laws of roles have tests of their own"
    vm = cluster.vms[action.vm]
    match action:
        case Forge():
            vm = vm.but(state=VmState.READY)
        case Boot() | Migrate() | Reinstantiate() | Resume():
            vm = vm.but(state=VmState.RUNNING, host=action.target)
        case Shutdown():
            vm = vm.but(state=VmState.READY, host=None)
        case Suspend():
            vm = vm.but(state=VmState.SLEEPING)
        case Kill():
            vm = vm.but(state=VmState.TERMINATED, host=None)
        case Allocate():
            vm = vm.but(consumption={**vm.consumption, action.resource: action.amount})
    cluster.vms[vm.id] = vm


def switch(cluster: Cluster, host: HostId, state: HostState) -> None:
    """Put a host into a state; its agents run while it is on, and sleep otherwise."""
    cluster.hosts[host] = cluster.hosts[host].but(state=state)
    for vm in list(cluster.vms.values()):
        if vm.agent and vm.host == host and vm.state in {VmState.RUNNING, VmState.SLEEPING}:
            vm_state = VmState.RUNNING if state is HostState.ON else VmState.SLEEPING
            cluster.vms[vm.id] = vm.but(state=vm_state)


# 3 to 7, and 9: preconditions of the start of an action


def against_start(cluster: Cluster, action: Action) -> set[str]:
    """Return the objections to starting the action now."""
    if unknown(cluster, action):
        return {"9 unknown"}
    found = against_touching(cluster, action)
    match action:
        case PowerOn() | PowerOff() | EnterMaintenance() | LeaveMaintenance():
            return found | against_switching(cluster, action)
        case Boot() | Migrate() | Reinstantiate() | Resume():
            found |= against_target(cluster, cluster.vms[action.vm], action.target)
        case Allocate():
            found |= against_allocation(cluster, action)
    match action:
        case Migrate() | Reinstantiate() | Resume():
            if cluster.hosts[action.source].state is not HostState.ON:
                found.add("6 source is off")
    assert not isinstance(action, RoleAction), "the laws of roles have tests of their own"
    if any(vm_of(other) == action.vm for other in cluster.flying):
        found.add("3 busy")
    return found | against_life(cluster.vms[action.vm], action)


def vm_of(action: Action) -> VmId | None:
    """Return the VM that an action names."""
    return getattr(action, "vm", None)


def target_of(action: Action) -> HostId | None:
    """Return the host to which an action brings a VM."""
    return getattr(action, "target", None)


def hosts_of(action: Action) -> set[HostId]:
    """Return the hosts that an action names and touches."""
    named = [getattr(action, field, None) for field in ("host", "source", "target")]
    return {host for host in named if host is not None}


def unknown(cluster: Cluster, action: Action) -> bool:
    """Whether the action names a VM or a host that does not exist."""
    vm = vm_of(action)
    return (vm is not None and vm not in cluster.vms) or not hosts_of(action) <= set(cluster.hosts)


def against_life(vm: Vm, action: Action) -> set[str]:
    """Whether a VM is not in the state, or not on the host, that the action needs."""
    found = set()
    if vm.state not in LIVES[type(action)]:
        found.add("4 state")
    elif getattr(action, "source", vm.host) != vm.host:
        found.add("4 elsewhere")
    if isinstance(action, Forge | Reinstantiate) and vm.template is None:
        found.add("4 no template")
    if isinstance(action, Reinstantiate) and not vm.replaceable:
        found.add("4 not replaceable")
    match action:
        case Migrate() | Reinstantiate():
            if vm.agent:
                found.add("4 agent")
            if action.source == action.target:
                found.add("4 to itself")
        case Resume():
            if vm.agent and action.source != action.target:
                found.add("4 agent")
    return found


def against_touching(cluster: Cluster, action: Action) -> set[str]:
    """Whether a switch and another action touch one host at the same time."""
    for other in cluster.flying:
        shared = touched_by(cluster, action) & touched_by(cluster, other)
        if shared and (type(action) in TO or type(other) in TO):
            return {"5 touched"}
    return set()


def touched_by(cluster: Cluster, action: Action) -> set[HostId]:
    """Return the hosts that an action names, and the host of its VM."""
    vm = cluster.vms.get(vm_of(action) or VmId(""))
    return hosts_of(action) | ({vm.host} if vm is not None and vm.host is not None else set())


def against_switching(
    cluster: Cluster, action: PowerOn | PowerOff | EnterMaintenance | LeaveMaintenance
) -> set[str]:
    """Whether a host cannot be switched by the action."""
    found = set()
    if cluster.hosts[action.host].state is not FROM[type(action)]:
        found.add("5 state")
    if TO[type(action)] is not HostState.ON:
        for vm in cluster.vms.values():
            there = vm.host == action.host and vm.state in {VmState.RUNNING, VmState.SLEEPING}
            if there and not vm.agent:
                found.add("5 not empty")
    return found


def against_target(cluster: Cluster, vm: Vm, target: HostId) -> set[str]:
    """Whether a host cannot take the VM."""
    host = cluster.hosts[target]
    found = set()
    if host.state is not HostState.ON:
        found.add("6 target is off")
    if vm.vcpus > host.cores:
        found.add("6 too few cores")
    if vm.ft_pair in cluster.vms and target in places_held(cluster, cluster.vms[vm.ft_pair]):
        found.add("6 pair")
    if target not in places_held(cluster, vm):
        for resource, need in room_of(cluster, vm).items():
            if need > 0 and held(cluster, target, resource) + need > usable(host, resource):
                found.add(f"7 {resource[0]}")
    return found


def against_allocation(cluster: Cluster, action: Allocate) -> set[str]:
    """Whether the host lacks capacity for what a VM gets in addition."""
    vm = cluster.vms[action.vm]
    resource = ("named", str(action.resource))
    need = action.amount - vm.consumption.get(action.resource, 0)
    if vm.host is None or need <= 0:
        return set()
    if held(cluster, vm.host, resource) + need > usable(cluster.hosts[vm.host], resource):
        return {"7 allocation"}
    return set()


def places_held(cluster: Cluster, vm: Vm) -> set[HostId]:
    """Return the hosts on which a VM holds capacity."""
    places = set()
    if vm.host is not None and (
        vm.state is VmState.RUNNING or (vm.state is VmState.SLEEPING and vm.agent)
    ):
        places.add(vm.host)
    for action in cluster.flying:
        target = target_of(action)
        if vm_of(action) == vm.id and target is not None:
            places.add(target)
    return places


def room_of(cluster: Cluster, vm: Vm) -> dict[Resource, int]:
    """Return what a VM holds on each of its hosts."""
    room = {
        CPU: vm.cpu.reservation_mhz,
        MEMORY: vm.memory.reservation_mib,
        SIZE: vm.memory_mib,
        VCPUS: vm.vcpus,
    }
    for name, amount in vm.consumption.items():
        room["named", str(name)] = amount
    for action in cluster.flying:
        if isinstance(action, Allocate) and action.vm == vm.id:
            resource = ("named", str(action.resource))
            room[resource] = max(room.get(resource, 0), action.amount)
    return room


def held(cluster: Cluster, host: HostId, resource: Resource) -> int:
    """Return what all VMs together hold of a resource of a host."""
    return sum(
        room_of(cluster, vm).get(resource, 0)
        for vm in cluster.vms.values()
        if host in places_held(cluster, vm)
    )


def usable(host: Host, resource: Resource) -> int:
    """Return how much of a resource a host has for VMs."""
    if resource == CPU:
        return host.cores * host.mhz_per_core - host.reserve.cpu_mhz
    if resource == MEMORY:
        return host.memory_mib - host.reserve.memory_mib
    if resource == SIZE:
        return memory_for_sizes(host)
    if resource == VCPUS:
        return vcpus_for_sizes(host)
    return {str(name): amount for name, amount in host.capacity.items()}.get(resource[1], 0)


# 8 Hard rules


def against_rules(snapshot: Snapshot, plan: Plan) -> set[str]:
    """Return the hard rules that the plan breaks or makes worse.

    A start moves nothing, so only ends count. What violated a rule before the plan may stay, no
    larger than it was; once it is repaired, it must stay so.
    """
    at_first = cluster_after(snapshot, [])
    at_last = cluster_after(snapshot, plan.steps)
    on_the_way = [
        cluster_after(snapshot, [other for other in plan.steps if other.end_ms <= step.end_ms])
        for step in sorted(plan.steps, key=lambda timed: timed.end_ms)
    ]
    found = set()
    for rule in snapshot.settings.rules:
        if not rule.hard:
            continue
        before = misses(rule, at_first.hosts, at_first.vms)
        if rule.continuous:
            lasting = set(before)
            for cluster in on_the_way:
                now = misses(rule, cluster.hosts, cluster.vms)
                if now.keys() - before.keys():
                    found.add("8 broken on the way")
                elif now.keys() - lasting:
                    found.add("8 broken again")
                if any(now[key] > size for key, size in before.items() if key in now):
                    found.add("8 worse on the way")
                lasting &= now.keys()
        else:
            now = misses(rule, at_last.hosts, at_last.vms)
            if any(key not in before or size > before[key] for key, size in now.items()):
                found.add("8 broken at the end")
    return found


def is_broken(rule: Rule, cluster: Cluster) -> bool:
    """Whether a rule does not hold for the hosts of the running VMs."""
    if isinstance(rule, Satisfy):
        state = Snapshot(hosts=FrozenMap(cluster.hosts), vms=FrozenMap(cluster.vms))
        given = {
            name: frozenset(value) if isinstance(value, tuple) else value
            for name, value in rule.arguments.items()
        }
        return not MEANINGS[rule.constraint](World(state, state), given)
    runs = {
        vm.id: vm.host
        for vm in cluster.vms.values()
        if vm.id in rule.vms and vm.state is VmState.RUNNING
    }
    match rule:
        case KeepApart():
            return any(left == right for left, right in combinations(runs.values(), 2))
        case KeepTogether():
            return any(left != right for left, right in combinations(runs.values(), 2))
        case StayWithin():
            return any(host not in rule.hosts for host in runs.values())
        case StayOff():
            return any(host in rule.hosts for host in runs.values())
