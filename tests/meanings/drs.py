"""The rules of VMware DRS and HA."""

from __future__ import annotations

from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from meanings.btrplace import gather, spread
from meanings.world import (
    Arguments,
    Meaning,
    World,
    has,
    hosts_that_are_on,
    hosts_that_failed,
    is_on,
    label_of_its_host,
    running,
    taken,
)


def must_run_on(world: World, given: Arguments) -> bool:
    return all(vm.host in given["ns"] for vm in running(world.now, given["vs"]))


def must_not_run_on(world: World, given: Arguments) -> bool:
    return all(vm.host not in given["ns"] for vm in running(world.now, given["vs"]))


def _running_pairs(now: Snapshot) -> list[tuple[Vm, Vm]]:
    """Return the fault-tolerant pairs of which both VMs run."""
    return [(vm, pair) for vm in running(now) for pair in running(now, {vm.ft_pair or ""})]


def ft_apart(world: World, _: Arguments) -> bool:
    return all(vm.host != pair.host for vm, pair in _running_pairs(world.now))


def ft_compatible(world: World, given: Arguments) -> bool:
    now, key = world.now, given["key"]
    return all(
        label_of_its_host(now, vm, key) == label_of_its_host(now, pair, key)
        for vm, pair in _running_pairs(now)
    )


def agents_stay(world: World, _: Arguments) -> bool:
    for vm in world.now.vms.values():
        before = world.initial.vms[vm.id].host
        if vm.agent and before is not None and vm.host != before:
            return False
    return True


def agents_run(world: World, _: Arguments) -> bool:
    return all(
        vm.state is VmState.RUNNING
        for vm in world.now.vms.values()
        if vm.agent and is_on(world.now, vm.host)
    )


def agent_ready(world: World, given: Arguments) -> bool:
    served = {vm.host for vm in running(world.now) if vm.agent and vm.labels.get(given["key"], "")}
    return all(vm.host in served for vm in running(world.now) if not vm.agent)


def failover_hosts(world: World, given: Arguments) -> bool:
    if hosts_that_failed(world.now):
        return True
    return all(vm.agent for vm in running(world.now) if vm.host in given["ns"])


def failover_percentage(world: World, given: Arguments) -> bool:
    used = taken(running(world.now), given["id"])
    hosts = [*hosts_that_are_on(world.now), *hosts_that_failed(world.now)]
    there_is = sum(has(host, given["id"]) for host in hosts)
    return used * 100 <= there_is * (100 - int(given["percent"]))


DRS: dict[str, Meaning] = {
    "KeepTogether": gather,
    "KeepApart": spread,
    "MustRunOn": must_run_on,
    "MustNotRunOn": must_not_run_on,
    "ShouldRunOn": must_run_on,
    "ShouldNotRunOn": must_not_run_on,
    "FtApart": ft_apart,
    "FtCompatible": ft_compatible,
    "AgentsStay": agents_stay,
    "AgentsRun": agents_run,
    "AgentReady": agent_ready,
    "FailoverHosts": failover_hosts,
    "FailoverPercentage": failover_percentage,
}
