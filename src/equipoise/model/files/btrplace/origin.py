"""A cluster of ours as a model of BtrPlace: who is where, how much there is of what, the network.

Only the named resources go along, for BtrPlace has no others. A host that is not on is offline.
VMs that are not made yet have no place in a model, nor have those that have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from equipoise.errors import InvalidInput, Problem
from equipoise.model.files.btrplace.instance import HOST_DURATIONS, VM_DURATIONS
from equipoise.model.files.btrplace.names import Numbering, numbered, their_resource
from equipoise.model.host import Host, HostState
from equipoise.model.problem import Problem as ClusterProblem
from equipoise.model.problem.network import Network
from equipoise.model.problem.problem import ActionKind
from equipoise.model.vm import Vm, VmState

Record = dict[str, Any]


def origin_of(problem: ClusterProblem, numbers: Numbering) -> Record:
    """The model that a plan for the problem starts from."""
    vms = [vm for vm in problem.cluster.vms if vm.state not in (VmState.INIT, VmState.TERMINATED)]
    hosts = problem.cluster.hosts
    return {
        "mapping": _mapping(vms, hosts, numbers),
        "attributes": _attributes(problem, vms, numbers),
        "views": [
            *_resources(vms, hosts, numbers),
            *_names("vm", {vm.id: vm.labels for vm in vms}, numbers.vms),
            *_names("node", {host.id: host.labels for host in hosts}, numbers.hosts),
            *([] if problem.network is None else [_network(problem.network, numbers)]),
        ],
    }


def _mapping(vms: Iterable[Vm], hosts: Iterable[Host], numbers: Numbering) -> Record:
    online: dict[str, Record] = {
        host.id: {"runningVMs": [], "sleepingVMs": []}
        for host in hosts
        if host.state is HostState.ON
    }
    ready = []
    for vm in vms:
        number = numbers.vms[vm.id]
        if vm.host is None:
            ready.append(number)
        elif vm.host in online:
            key = "runningVMs" if vm.state is VmState.RUNNING else "sleepingVMs"
            online[vm.host][key].append(number)
        else:
            what = f"the VM {vm.id} is on {vm.host}, which is not on"
            cure = "in BtrPlace a node that is not on has no VMs"
            raise InvalidInput("problem", [Problem(key=f"vms.{vm.id}", what=what, cure=cure)])
    return {
        "readyVMs": ready,
        "onlineNodes": {str(numbers.hosts[host]): there for host, there in online.items()},
        "offlineNodes": [numbers.hosts[host.id] for host in hosts if host.id not in online],
    }


def _attributes(problem: ClusterProblem, vms: Iterable[Vm], numbers: Numbering) -> Record:
    """What single VMs and hosts take their time for, and what a VM is made from."""
    of_vms: dict[str, Record] = {}
    for vm in vms:
        known: Record = {"template": vm.template} if vm.template else {}
        if vm.replaceable:
            known["clone"] = True
        if vm.memory_mib > 1 or problem.network is not None:
            known["memUsed"] = vm.memory_mib
        of_vms[vm.id] = known | _lasting(problem, VM_DURATIONS, vm.id)
    of_hosts: dict[str, Record] = {
        host.id: _lasting(problem, HOST_DURATIONS, host.id) for host in problem.cluster.hosts
    }
    return {
        "vms": {str(numbers.vms[name]): known for name, known in of_vms.items() if known},
        "nodes": {str(numbers.hosts[name]): known for name, known in of_hosts.items() if known},
    }


def _lasting(problem: ClusterProblem, kinds: Mapping[ActionKind, str], name: str) -> Record:
    made: Record = {}
    for kind, key in kinds.items():
        duration = problem.durations.get(kind)
        if duration is not None and name in duration.of:
            made[key] = _whole_seconds(duration.of[name])
    return made


def _whole_seconds(ms: int) -> int:
    """So many seconds that it is not less."""
    return -(-ms // 1000)


def _resources(vms: Iterable[Vm], hosts: Iterable[Host], numbers: Numbering) -> Iterable[Record]:
    shares: dict[str, Record] = {}

    def share(name: str) -> Record:
        return shares.setdefault(
            name,
            {
                "id": "shareableResource",
                "rcId": their_resource(name),
                "defCapacity": 0,
                "defConsumption": 0,
                "nodes": {},
                "vms": {},
            },
        )

    for host in hosts:
        for name, amount in host.capacity.items():
            share(name)["nodes"][str(numbers.hosts[host.id])] = amount
    for vm in vms:
        for name, amount in vm.consumption.items():
            share(name)["vms"][str(numbers.vms[vm.id])] = amount
    return shares.values()


def _names(
    kind: str, labels: Mapping[str, Mapping[str, str]], numbers: Mapping[str, int]
) -> Iterable[Record]:
    """How VMs or hosts are called: by their label, or by their id if its number is not theirs."""
    named: dict[str, int] = {}
    for name, own in labels.items():
        is_theirs = name == f"{kind}{numbers[name]}"
        said = own.get("name") if is_theirs else name
        if said is not None:
            named.setdefault(said, numbers[name])
    return [{"id": "ns", "type": kind, "map": named}] if named else []


def _network(network: Network, numbers: Numbering) -> Record:
    switches = numbered([switch.id for switch in network.switches], "switch")
    links = numbered([link.id for link in network.links], "link")

    def end(host: str | None, to: str | None) -> Record:
        if host is not None:
            return {"type": "node", "id": numbers.hosts[host]}
        return {"type": "switch", "id": switches[to or ""]}

    return {
        "id": "net",
        "switches": [
            {"id": switches[one.id], "capacity": one.capacity_mbps or -1}
            for one in network.switches
        ],
        "links": [
            {
                "id": links[one.id],
                "capacity": one.capacity_mbps,
                "switch": switches[one.switch],
                "physicalElement": end(one.host, one.to),
            }
            for one in network.links
        ],
        "routing": {"type": "default"},
    }
