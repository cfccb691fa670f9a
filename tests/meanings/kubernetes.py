"""The filters of kube-scheduler."""

from __future__ import annotations

from equipoise.model.vm import Vm
from meanings.world import (
    Arguments,
    Meaning,
    World,
    has,
    hosts_that_are_on,
    label,
    label_of_its_host,
    pairs,
    running,
    taken,
    there_or_coming,
)


def node_selector(world: World, given: Arguments) -> bool:
    return all(
        label_of_its_host(world.now, vm, given["key"]) == given["value"]
        for vm in running(world.now, {given["v"]})
    )


def node_affinity(world: World, given: Arguments) -> bool:
    return all(
        label_of_its_host(world.now, vm, given["key"]) in given["values"]
        for vm in running(world.now, {given["v"]})
    )


def node_anti_affinity(world: World, given: Arguments) -> bool:
    return all(
        label_of_its_host(world.now, vm, given["key"]) not in given["values"]
        for vm in running(world.now, {given["v"]})
    )


def taint_no_schedule(world: World, given: Arguments) -> bool:
    for host in world.now.hosts.values():
        taint = label(host, given["key"])
        for vm in there_or_coming(world.now, host.id):
            was_there = world.initial.vms[vm.id].host == host.id
            if taint != "" and label(vm, given["key"]) != taint and not was_there:
                return False
    return True


def taint_no_execute(world: World, given: Arguments) -> bool:
    for vm in running(world.now):
        taint = label_of_its_host(world.now, vm, given["key"])
        if taint != "" and label(vm, given["key"]) != taint:
            return False
    return True


def _shares_domain(world: World, given: Arguments, vm: Vm) -> bool:
    """Whether one of the others runs in the domain of a running VM."""
    domain = label_of_its_host(world.now, vm, given["key"])
    return domain != "" and any(
        label_of_its_host(world.now, other, given["key"]) == domain
        for other in running(world.now, given["others"])
        if other.id != vm.id
    )


def pod_affinity(world: World, given: Arguments) -> bool:
    return all(_shares_domain(world, given, vm) for vm in running(world.now, {given["v"]}))


def pod_anti_affinity(world: World, given: Arguments) -> bool:
    return not any(_shares_domain(world, given, vm) for vm in running(world.now, {given["v"]}))


def topology_spread(world: World, given: Arguments) -> bool:
    key = given["key"]
    domains = {label(host, key) for host in hosts_that_are_on(world.now)} - {""}
    places = [label_of_its_host(world.now, vm, key) for vm in running(world.now, given["vs"])]
    return all(
        places.count(left) - places.count(right) <= given["skew"]
        for left in domains
        for right in domains
        if left != right
    )


def resource_fit(world: World, given: Arguments) -> bool:
    return all(
        taken(there_or_coming(world.now, host.id), given["id"]) <= has(host, given["id"])
        for host in world.now.hosts.values()
    )


def max_pods(world: World, _: Arguments) -> bool:
    return all(
        len(there_or_coming(world.now, host.id)) <= has(host, "pods")
        for host in world.now.hosts.values()
    )


def cordon(world: World, given: Arguments) -> bool:
    return all(
        world.initial.vms[vm.id].host == given["n"] for vm in there_or_coming(world.now, given["n"])
    )


def node_ports(world: World, given: Arguments) -> bool:
    for left, right in pairs(running(world.now)):
        port = label(left, given["key"])
        if left.host == right.host and port != "" and label(right, given["key"]) == port:
            return False
    return True


KUBERNETES: dict[str, Meaning] = {
    "NodeSelector": node_selector,
    "NodeAffinity": node_affinity,
    "NodeAntiAffinity": node_anti_affinity,
    "TaintNoSchedule": taint_no_schedule,
    "TaintNoExecute": taint_no_execute,
    "PodAffinity": pod_affinity,
    "PodAntiAffinity": pod_anti_affinity,
    "TopologySpread": topology_spread,
    "ResourceFit": resource_fit,
    "MaxPods": max_pods,
    "Cordon": cordon,
    "NodePorts": node_ports,
}
