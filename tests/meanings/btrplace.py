"""The constraints of BtrPlace."""

from __future__ import annotations

from collections.abc import Collection

from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import VmState
from meanings.world import (
    Arguments,
    Meaning,
    World,
    has,
    hosts_of,
    is_on,
    kind,
    migrations,
    overlap,
    pairs,
    running,
    running_on,
    steps_on,
    taken,
    takes,
)

CHANGES_STATE = {"forge", "boot", "shutdown", "suspend", "resume", "kill"}


def spread(world: World, given: Arguments) -> bool:
    return not any(
        left.host == right.host for left, right in pairs(running(world.now, given["vs"]))
    )


def gather(world: World, given: Arguments) -> bool:
    return all(left.host == right.host for left, right in pairs(running(world.now, given["vs"])))


def lonely(world: World, given: Arguments) -> bool:
    return all(
        beside.id in given["vs"]
        for vm in running(world.now, given["vs"])
        for beside in running(world.now)
        if beside.host == vm.host
    )


def _apart(now: Snapshot, groups: Collection[frozenset[str]]) -> bool:
    return not any(
        hosts_of(running(now, left)) & hosts_of(running(now, right))
        for left, right in pairs(groups)
    )


def _within(now: Snapshot, vms: frozenset[str], groups: Collection[frozenset[str]]) -> bool:
    used = hosts_of(running(now, vms))
    return used == set() or any(used <= group for group in groups)


def split(world: World, given: Arguments) -> bool:
    return _apart(world.now, given["parts"])


def among(world: World, given: Arguments) -> bool:
    return _within(world.now, given["vs"], given["parts"])


def split_among(world: World, given: Arguments) -> bool:
    in_groups = all(_within(world.now, group, given["parts"]) for group in given["vs"])
    return in_groups and _apart(world.now, given["vs"])


def fence(world: World, given: Arguments) -> bool:
    return all(vm.host in given["ns"] for vm in running(world.now, {given["v"]}))


def ban(world: World, given: Arguments) -> bool:
    return all(vm.host not in given["ns"] for vm in running(world.now, {given["v"]}))


def root(world: World, given: Arguments) -> bool:
    before, now = world.initial.vms[given["v"]], world.now.vms[given["v"]]
    both_run = before.state is VmState.RUNNING and now.state is VmState.RUNNING
    return not both_run or before.host == now.host


def quarantine(world: World, given: Arguments) -> bool:
    for vm in running(world.now):
        was_there = world.initial.vms[vm.id].host == given["n"]
        if (vm.host == given["n"]) != was_there:
            return False
    return True


def is_running(world: World, given: Arguments) -> bool:
    return world.now.vms[given["v"]].state is VmState.RUNNING


def ready(world: World, given: Arguments) -> bool:
    return world.now.vms[given["v"]].state is VmState.READY


def sleeping(world: World, given: Arguments) -> bool:
    return world.now.vms[given["v"]].state is VmState.SLEEPING


def killed(world: World, given: Arguments) -> bool:
    return world.now.vms[given["v"]].state is VmState.TERMINATED


def online(world: World, given: Arguments) -> bool:
    return world.now.hosts[given["n"]].state is HostState.ON


def offline(world: World, given: Arguments) -> bool:
    return world.now.hosts[given["n"]].state is HostState.STANDBY


def max_online(world: World, given: Arguments) -> bool:
    return len([n for n in given["ns"] if is_on(world.now, n)]) <= int(given["nb"])


def running_capacity(world: World, given: Arguments) -> bool:
    return len([vm for vm in running(world.now) if vm.host in given["ns"]]) <= int(given["nb"])


def resource_capacity(world: World, given: Arguments) -> bool:
    vms = [vm for vm in running(world.now) if vm.host in given["ns"]]
    return taken(vms, given["id"]) <= int(given["qty"])


def shareable_resource(world: World, given: Arguments) -> bool:
    return all(
        taken(running_on(world.now, host.id), given["id"]) <= has(host, given["id"])
        for host in world.now.hosts.values()
    )


def preserve(world: World, given: Arguments) -> bool:
    return all(takes(vm, given["id"]) >= given["amount"] for vm in running(world.now, {given["v"]}))


def mostly_spread(world: World, given: Arguments) -> bool:
    vms = running(world.now, given["vs"])
    used = len(hosts_of(vms))
    return used >= int(given["nb"]) or used == len(vms)


def seq(world: World, given: Arguments) -> bool:
    def changes(vm: str) -> list[Step]:
        return [step for step in steps_on(world, vm) if kind(step.action) in CHANGES_STATE]

    return all(
        first_step.end_ms <= second_step.start_ms
        for earlier, later in pairs(given["vs"])
        for first_step in changes(earlier)
        for second_step in changes(later)
    )


def sync(world: World, given: Arguments) -> bool:
    return all(
        first_step.end_ms == second_step.end_ms
        for first, second in pairs(given["vs"])
        for first_step in migrations(world, first)
        for second_step in migrations(world, second)
    )


def no_delay(world: World, given: Arguments) -> bool:
    return all(step.start_ms == 0 for step in steps_on(world, given["v"]))


def overbook(world: World, given: Arguments) -> bool:
    host = world.now.hosts[given["n"]]
    used = taken(running_on(world.now, host.id), given["id"])
    return used * 100 <= has(host, given["id"]) * int(given["percent"])


def deadline(world: World, given: Arguments) -> bool:
    return all(step.end_ms <= given["ms"] for step in migrations(world, given["v"]))


def precedence(world: World, given: Arguments) -> bool:
    return all(
        first_step.end_ms <= second_step.start_ms
        for first_step in migrations(world, given["before"])
        for second_step in migrations(world, given["after"])
    )


def serialize(world: World, given: Arguments) -> bool:
    steps = [step for vm in given["vs"] for step in migrations(world, vm)]
    return not any(overlap(left, right) for left, right in pairs(steps))


BTRPLACE: dict[str, Meaning] = {
    "Spread": spread,
    "Gather": gather,
    "Lonely": lonely,
    "Split": split,
    "Among": among,
    "SplitAmong": split_among,
    "Fence": fence,
    "Ban": ban,
    "Root": root,
    "Quarantine": quarantine,
    "Running": is_running,
    "Ready": ready,
    "Sleeping": sleeping,
    "Killed": killed,
    "Online": online,
    "Offline": offline,
    "MaxOnline": max_online,
    "RunningCapacity": running_capacity,
    "ResourceCapacity": resource_capacity,
    "ShareableResource": shareable_resource,
    "Preserve": preserve,
    "MostlySpread": mostly_spread,
    "Seq": seq,
    "Sync": sync,
    "NoDelay": no_delay,
    "Overbook": overbook,
    "Deadline": deadline,
    "Precedence": precedence,
    "Serialize": serialize,
}
