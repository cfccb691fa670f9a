"""What violates a rule in one state, and by how much: a second, plain implementation.

Each function is written from the sentence that documents its constraint, without the formula and
without the language. It returns the violated elements, each with the size of its miss; an empty
result means that the rule holds. The plain gate compares two states by it: a plan may not add an
element and may not make a miss larger.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.vm import Vm, VmState

Misses = dict[Hashable, int]
Hosts = Mapping[HostId, Host]
Vms = Mapping[VmId, Vm]


def misses(rule: Rule, hosts: Hosts, vms: Vms) -> Misses:
    """Return what violates a rule in a state, with the size of each miss."""
    if isinstance(rule, Satisfy):
        return CONSTRAINTS[rule.constraint](dict(rule.arguments), hosts, vms)
    place = {vm: vms[vm].host for vm in rule.vms if vm in vms and runs(vms[vm])}
    match rule:
        case KeepApart():
            return {
                frozenset((a, b)): 1
                for a in place
                for b in place
                if a != b and place[a] == place[b]
            }
        case KeepTogether():
            return {frozenset((a, b)): 1 for a in place for b in place if place[a] != place[b]}
        case StayWithin():
            return {vm: 1 for vm, host in place.items() if host not in rule.hosts}
        case StayOff():
            return {vm: 1 for vm, host in place.items() if host in rule.hosts}


def runs(vm: Vm) -> bool:
    """Whether a VM is running."""
    return vm.state is VmState.RUNNING


def residents(host: HostId, vms: Vms) -> set[VmId]:
    """Return the VMs that run on a host."""
    return {vm.id for vm in vms.values() if runs(vm) and vm.host == host}


def over(amount: int, limit: int) -> Misses:
    """Return the one miss of a number that must not exceed a limit."""
    return {"all": amount - limit} if amount > limit else {}


def lonely(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """The hosts of these VMs run no other VMs."""
    return {
        (vm, other): 1
        for vm in given["vs"]
        if runs(vms[vm]) and vms[vm].host is not None
        for other in residents(vms[vm].host or HostId(""), vms) - set(given["vs"])
    }


def max_per_host(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """At most this many of the VMs run on any one host."""
    found: Misses = {}
    for vm in given["vs"]:
        if runs(vms[vm]):
            there = residents(vms[vm].host or HostId(""), vms) & set(given["vs"])
            if len(there) > given["nb"]:
                found[vm] = len(there) - given["nb"]
    return found


def min_running(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """At least this many of the VMs run; all of them if there are fewer."""
    up = [vm for vm in given["vs"] if runs(vms[vm])]
    return over(min(given["nb"], len(set(given["vs"]))), len(up))


def running_capacity(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """At most this many VMs run on the hosts together."""
    return over(sum(len(residents(host, vms)) for host in given["ns"]), given["nb"])


def max_online(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """At most this many of the hosts are on."""
    return over(sum(hosts[host].state is HostState.ON for host in given["ns"]), given["nb"])


def min_online(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """At least this many of the hosts are on; all of them if there are fewer."""
    up = sum(hosts[host].state is HostState.ON for host in given["ns"])
    return over(min(given["nb"], len(set(given["ns"]))), up)


def fence(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """The VM, if it runs, is on one of these hosts."""
    vm = vms[given["v"]]
    return {vm.id: 1} if runs(vm) and vm.host not in given["ns"] else {}


def isolated(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """These VMs run only on these hosts, and these hosts run only these VMs and agents."""
    outside: Misses = {
        ("outside", vm): 1
        for vm in given["vs"]
        if runs(vms[vm]) and vms[vm].host not in given["ns"]
    }
    foreign: Misses = {
        ("foreign", host, vm): 1
        for host in given["ns"]
        for vm in residents(host, vms)
        if vm not in given["vs"] and not vms[vm].agent
    }
    return outside | foreign


def failover_percentage(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """The running VMs together leave at least this percentage of memory free."""
    assert given["id"] == "memory"
    taken = sum(vm.memory.reservation_mib for vm in vms.values() if runs(vm))
    total = sum(
        host.memory_mib - host.reserve.memory_mib
        for host in hosts.values()
        if host.state in {HostState.ON, HostState.FAILED}
    )
    return over(taken * 100, total * (100 - given["percent"]))


def failover(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """After the loss of the largest hosts, the others have the memory of all running VMs."""
    assert given["id"] == "memory"
    taken = sum(vm.memory.reservation_mib for vm in vms.values() if runs(vm))
    sizes = sorted(
        host.memory_mib - host.reserve.memory_mib
        for host in hosts.values()
        if host.state is HostState.ON
    )
    failed = sum(host.state is HostState.FAILED for host in hosts.values())
    lost = max(0, given["nb"] - failed)
    return over(taken, sum(sizes[: max(0, len(sizes) - lost)]))


def ft_apart(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """The two VMs of a fault-tolerant pair never run on one host."""
    found: Misses = {}
    for vm in vms.values():
        other = vms.get(vm.ft_pair or VmId(""))
        if other is not None and runs(vm) and runs(other) and vm.host == other.host:
            found[vm.id] = 1
    return found


def agents_run(given: dict[str, Any], hosts: Hosts, vms: Vms) -> Misses:
    """An agent on a host that is on runs."""
    found: Misses = {}
    for vm in vms.values():
        host = hosts.get(vm.host or HostId(""))
        if vm.agent and host is not None and host.state is HostState.ON and not runs(vm):
            found[vm.id] = 1
    return found


CONSTRAINTS: Mapping[str, Callable[[dict[str, Any], Hosts, Vms], Misses]] = {
    "Lonely": lonely,
    "MaxPerHost": max_per_host,
    "MinRunning": min_running,
    "RunningCapacity": running_capacity,
    "MaxOnline": max_online,
    "MinOnline": min_online,
    "Fence": fence,
    "Isolated": isolated,
    "FailoverPercentage": failover_percentage,
    "Failover": failover,
    "FtApart": ft_apart,
    "AgentsRun": agents_run,
}
