"""The life cycles of VMs and hosts."""

from __future__ import annotations

from equipoise.model.host import HostState
from equipoise.model.vm import VmState
from meanings.world import (
    Arguments,
    Meaning,
    World,
    kind,
    overlap,
    pairs,
    running,
    running_on,
    steps_on,
    there_or_coming,
)

LEADS_TO = {
    "power_on": HostState.ON,
    "power_off": HostState.STANDBY,
    "enter_maintenance": HostState.MAINTENANCE,
    "leave_maintenance": HostState.ON,
}


def to_running(world: World, _: Arguments) -> bool:
    return all(
        world.initial.vms[vm.id].state in {VmState.READY, VmState.RUNNING, VmState.SLEEPING}
        for vm in running(world.now)
    )


def to_ready(world: World, _: Arguments) -> bool:
    return all(
        world.initial.vms[vm.id].state in {VmState.INIT, VmState.READY, VmState.RUNNING}
        for vm in world.now.vms.values()
        if vm.state is VmState.READY
    )


def to_sleeping(world: World, _: Arguments) -> bool:
    return all(
        world.initial.vms[vm.id].state in {VmState.RUNNING, VmState.SLEEPING}
        for vm in world.now.vms.values()
        if vm.state is VmState.SLEEPING
    )


def stays_terminated(world: World, _: Arguments) -> bool:
    return all(
        world.now.vms[vm.id].state is VmState.TERMINATED
        for vm in world.initial.vms.values()
        if vm.state is VmState.TERMINATED
    )


def no_vms_on_offline_nodes(world: World, _: Arguments) -> bool:
    return all(
        running_on(world.now, host.id) == []
        for host in world.now.hosts.values()
        if host.state is not HostState.ON
    )


def host_life(world: World, _: Arguments) -> bool:
    for host in world.now.hosts.values():
        if host.state is not world.initial.hosts[host.id].state:
            kinds = [kind(s.action) for s in world.steps if s.footprint.switched == host.id]
            if not any(LEADS_TO[kind] is host.state for kind in kinds):
                return False
    return True


def forged_first(world: World, _: Arguments) -> bool:
    for vm in world.now.vms.values():
        was_init = world.initial.vms[vm.id].state is VmState.INIT
        if was_init and vm.state is not VmState.INIT:
            kinds = [kind(step.action) for step in steps_on(world, vm.id)]
            if "forge" not in kinds and "kill" not in kinds:
                return False
    return True


def killed_by_action(world: World, _: Arguments) -> bool:
    for vm in world.now.vms.values():
        was_terminated = world.initial.vms[vm.id].state is VmState.TERMINATED
        kinds = [kind(step.action) for step in steps_on(world, vm.id)]
        if vm.state is VmState.TERMINATED and not was_terminated and "kill" not in kinds:
            return False
    return True


def one_action_at_a_time(world: World, _: Arguments) -> bool:
    return not any(
        overlap(left, right) for vm in world.now.vms for left, right in pairs(steps_on(world, vm))
    )


def sleepers_protected(world: World, _: Arguments) -> bool:
    return all(
        vm.agent
        for host in world.now.hosts.values()
        if host.state is not HostState.ON
        for vm in there_or_coming(world.now, host.id)
    )


CORE: dict[str, Meaning] = {
    "toRunning": to_running,
    "toReady": to_ready,
    "toSleeping": to_sleeping,
    "staysTerminated": stays_terminated,
    "noVMsOnOfflineNodes": no_vms_on_offline_nodes,
    "hostLife": host_life,
    "forgedFirst": forged_first,
    "killedByAction": killed_by_action,
    "oneActionAtATime": one_action_at_a_time,
    "sleepersProtected": sleepers_protected,
}
