"""The constraints of operators beyond the other files."""

from __future__ import annotations

from equipoise.model.host import HostState
from meanings.world import (
    Arguments,
    Meaning,
    World,
    has,
    hosts_that_are_on,
    hosts_that_failed,
    is_on,
    kind,
    label_of_its_host,
    migrations,
    pairs,
    running,
    running_on,
    taken,
    under_way,
)


def max_per_host(world: World, given: Arguments) -> bool:
    return all(
        len([vm for vm in running_on(world.now, host) if vm.id in given["vs"]]) <= given["nb"]
        for host in world.now.hosts
    )


def max_skew(world: World, given: Arguments) -> bool:
    counts = [
        len([vm for vm in running_on(world.now, host.id) if vm.id in given["vs"]])
        for host in hosts_that_are_on(world.now)
    ]
    return all(high - low <= given["nb"] for high in counts for low in counts)


def isolated(world: World, given: Arguments) -> bool:
    for vm in running(world.now):
        if vm.id in given["vs"] and vm.host not in given["ns"]:
            return False
        if vm.id not in given["vs"] and vm.host in given["ns"] and not vm.agent:
            return False
    return True


def headroom(world: World, given: Arguments) -> bool:
    return all(
        taken(running_on(world.now, n), given["id"]) * 100
        <= has(world.now.hosts[n], given["id"]) * (100 - given["percent"])
        for n in given["ns"]
    )


def min_online(world: World, given: Arguments) -> bool:
    count = len([n for n in given["ns"] if is_on(world.now, n)])
    return count >= int(given["nb"]) or count == len(given["ns"])


def failover(world: World, given: Arguments) -> bool:
    sizes = sorted(has(host, given["id"]) for host in hosts_that_are_on(world.now))
    more = max(0, given["nb"] - len(hosts_that_failed(world.now)))
    left = sizes[: max(0, len(sizes) - more)]
    return sum(left) >= taken(running(world.now), given["id"])


def max_concurrent(world: World, given: Arguments) -> bool:
    steps = [step for step in under_way(world.now) if kind(step.action) == given["kind"]]
    return all(
        len([step for step in steps if n in step.footprint.hosts]) <= given["nb"]
        for n in given["ns"]
    )


def min_running(world: World, given: Arguments) -> bool:
    count = len(running(world.now, given["vs"]))
    return count >= int(given["nb"]) or count == len(given["vs"])


def max_disturbed(world: World, given: Arguments) -> bool:
    disturbed = {step.footprint.vm for step in under_way(world.now)}
    return len([vm for vm in given["vs"] if vm in disturbed]) <= int(given["nb"])


def spread_over(world: World, given: Arguments) -> bool:
    labels = [
        label_of_its_host(world.now, vm, given["key"]) for vm in running(world.now, given["vs"])
    ]
    return not any(left == right != "" for left, right in pairs(labels))


def gather_within(world: World, given: Arguments) -> bool:
    labels = [
        label_of_its_host(world.now, vm, given["key"]) for vm in running(world.now, given["vs"])
    ]
    return all(left == right for left, right in pairs(labels))


def maintenance(world: World, given: Arguments) -> bool:
    return world.now.hosts[given["n"]].state is HostState.MAINTENANCE


def max_moves(world: World, given: Arguments) -> bool:
    return len(migrations(world, given["v"])) <= int(given["nb"])


def tenants_apart(world: World, _: Arguments) -> bool:
    return not any(
        left.host == right.host and left.tenant != right.tenant
        for left, right in pairs(running(world.now))
    )


def tenant_max(world: World, given: Arguments) -> bool:
    vms = [vm for vm in running(world.now) if (vm.tenant or "") == given["name"]]
    return len(vms) <= int(given["nb"])


MORE: dict[str, Meaning] = {
    "MaxPerHost": max_per_host,
    "MaxSkew": max_skew,
    "Isolated": isolated,
    "Headroom": headroom,
    "MinOnline": min_online,
    "Failover": failover,
    "MaxConcurrent": max_concurrent,
    "MinRunning": min_running,
    "MaxDisturbed": max_disturbed,
    "SpreadOver": spread_over,
    "GatherWithin": gather_within,
    "Maintenance": maintenance,
    "MaxMoves": max_moves,
    "TenantsApart": tenants_apart,
    "TenantMax": tenant_max,
}
