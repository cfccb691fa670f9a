"""The filters of OpenStack Nova. A VM occupies a host if it is on it or on its way to it."""

from __future__ import annotations

from equipoise.model.action import Boot, Migrate
from equipoise.model.plan import Step
from equipoise.model.state.snapshot import Snapshot
from meanings.btrplace import gather
from meanings.world import (
    Arguments,
    Meaning,
    World,
    has,
    is_on,
    label,
    label_of_its_host,
    running,
    running_on,
    there_or_coming,
    under_way,
)


def _others_there(now: Snapshot, host: str | None, others: frozenset[str], but: str) -> int:
    """Return how many of some VMs, except one, occupy the host of a running VM."""
    assert host is not None
    return len([vm for vm in there_or_coming(now, host) if vm.id in others and vm.id != but])


def affinity_as_coded(world: World, given: Arguments) -> bool:
    group = [world.initial.vms[vm] for vm in given["vs"]]
    before = [vm.host for vm in group if vm.host is not None]
    return all(not before or vm.host in before for vm in running(world.now, {given["v"]}))


def anti_affinity(world: World, given: Arguments) -> bool:
    return all(
        len([vm for vm in running_on(world.now, host) if vm.id in given["vs"]]) <= given["nb"]
        for host in world.now.hosts
    )


def anti_affinity_as_coded(world: World, given: Arguments) -> bool:
    return all(
        _others_there(world.now, vm.host, given["vs"], vm.id) < given["nb"]
        for vm in running(world.now, {given["v"]})
        if vm.host != world.initial.vms[vm.id].host
    )


def different_host(world: World, given: Arguments) -> bool:
    return all(
        _others_there(world.now, vm.host, given["others"], vm.id) == 0
        for vm in running(world.now, {given["v"]})
    )


def same_host(world: World, given: Arguments) -> bool:
    others = given["others"] - {given["v"]}
    return all(
        _others_there(world.now, vm.host, others, vm.id) == len(others)
        for vm in running(world.now, {given["v"]})
    )


def same_host_as_coded(world: World, given: Arguments) -> bool:
    others = given["others"] - {given["v"]}
    return not others or all(
        _others_there(world.now, vm.host, others, vm.id) > 0
        for vm in running(world.now, {given["v"]})
    )


def num_instances(world: World, given: Arguments) -> bool:
    return all(len(running_on(world.now, host)) <= given["nb"] for host in world.now.hosts)


def num_instances_as_coded(world: World, given: Arguments) -> bool:
    return all(len(there_or_coming(world.now, host)) <= given["nb"] for host in world.now.hosts)


def aggregate_num_instances(world: World, _: Arguments) -> bool:
    return all(
        has(host, "instances") == 0
        or len(there_or_coming(world.now, host.id)) <= has(host, "instances")
        for host in world.now.hosts.values()
    )


def io_ops(world: World, given: Arguments) -> bool:
    return all(
        len([step for step in at_host(world, host) if isinstance(step.action, Boot | Migrate)])
        <= given["nb"]
        for host in world.now.hosts
    )


def io_ops_as_coded(world: World, given: Arguments) -> bool:
    return all(
        len([step for step in at_host(world, host) if isinstance(step.action, Boot)]) <= given["nb"]
        for host in world.now.hosts
    )


def at_host(world: World, host: str) -> list[Step]:
    return [step for step in under_way(world.now) if host in step.footprint.hosts]


def isolated_hosts(world: World, given: Arguments) -> bool:
    return all((vm.id in given["vs"]) == (vm.host in given["ns"]) for vm in running(world.now))


def isolated_hosts_open(world: World, given: Arguments) -> bool:
    return all(vm.host in given["ns"] for vm in running(world.now, given["vs"]))


def multi_tenancy(world: World, _: Arguments) -> bool:
    for vm in running(world.now):
        wanted = label_of_its_host(world.now, vm, "filter_tenant_id")
        if wanted not in ("", vm.tenant):
            return False
    return True


def type_affinity(world: World, _: Arguments) -> bool:
    for vm in running(world.now):
        wanted = label_of_its_host(world.now, vm, "instance_type")
        if wanted != "" and label(vm, "flavor") != wanted:
            return False
    return True


def image_isolation(world: World, given: Arguments) -> bool:
    for vm in running(world.now):
        wanted = label_of_its_host(world.now, vm, given["key"])
        if wanted != "" and label(vm, given["key"]) != wanted:
            return False
    return True


def image_isolation_as_coded(world: World, given: Arguments) -> bool:
    for vm in running(world.now):
        wanted, own = label_of_its_host(world.now, vm, given["key"]), label(vm, given["key"])
        if wanted != "" and own not in ("", wanted):
            return False
    return True


def extra_specs(world: World, given: Arguments) -> bool:
    for vm in running(world.now):
        own = label(vm, given["key"])
        if own != "" and label_of_its_host(world.now, vm, given["key"]) != own:
            return False
    return True


def compute_up(world: World, _: Arguments) -> bool:
    return all(is_on(world.now, vm.host) for vm in running(world.now))


def availability_zone(world: World, given: Arguments) -> bool:
    return all(
        label_of_its_host(world.now, vm, "zone") == given["zone"]
        for vm in running(world.now, {given["v"]})
    )


def same_subnet(world: World, given: Arguments) -> bool:
    now = world.now
    return all(
        label_of_its_host(now, left, "subnet") == label_of_its_host(now, right, "subnet")
        for left in running(now, {given["v"]})
        for right in running(now, {given["other"]})
    )


NOVA: dict[str, Meaning] = {
    "ServerGroupAffinity": gather,
    "ServerGroupAffinityAsCoded": affinity_as_coded,
    "ServerGroupAntiAffinity": anti_affinity,
    "ServerGroupAntiAffinityAsCoded": anti_affinity_as_coded,
    "DifferentHost": different_host,
    "SameHost": same_host,
    "SameHostAsCoded": same_host_as_coded,
    "NumInstances": num_instances,
    "NumInstancesAsCoded": num_instances_as_coded,
    "AggregateNumInstances": aggregate_num_instances,
    "IoOps": io_ops,
    "IoOpsAsCoded": io_ops_as_coded,
    "IsolatedHosts": isolated_hosts,
    "IsolatedHostsOpen": isolated_hosts_open,
    "MultiTenancy": multi_tenancy,
    "TypeAffinity": type_affinity,
    "ImageIsolation": image_isolation,
    "ImageIsolationAsCoded": image_isolation_as_coded,
    "ExtraSpecs": extra_specs,
    "ComputeUp": compute_up,
    "AvailabilityZone": availability_zone,
    "SameSubnet": same_subnet,
}
