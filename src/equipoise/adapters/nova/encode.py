"""Trials as questions to Nova: to one filter, or to its whole scheduler without Placement.

Each constraint of ``nova.spec`` describes a filter. What the filter reads of a cluster is encoded
exactly or not at all:

    a label of a host      metadata of an aggregate that it alone is in, or a capability
    a label of a VM        a property of its image, an extra spec or the name of its flavour, or the
                           hint ``cidr``
    a tenant               a project
    a set of VMs           an instance group, a hint, or the VMs of one image
    a host that is not on  a service that is disabled (maintenance) or silent (else)

Ready VMs that are equal for the constraint are one request to the whole scheduler, as when a user
asks for several servers at once: Nova finds a host for each of them or for none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from equipoise.adapters.nova.requests import (
    ACTIONS_IN_FLIGHT,
    InstanceLocation,
    InstanceState,
    PlacementOrder,
    PlacementRequest,
    initial_locations,
    not_placed,
    placement_requests,
)
from equipoise.adapters.targets.scheduler import (
    MAKES_ITS_OWN_PLAN,
    UnsupportedTrial,
    require_no_network,
)
from equipoise.adapters.targets.trial import Trial
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import Vm, VmState

EXTRA_SPECS: Final = ("AggregateInstanceExtraSpecsFilter", "ComputeCapabilitiesFilter")
"""The filters that ``ExtraSpecs`` describes."""
IMAGE_PROPERTIES: Final = frozenset(
    ("hw_disk_type", "hw_machine_type", "img_owner_id", "os_admin_user", "os_distro")
)
"""The image properties that Nova knows and that may have any value; it ignores unknown ones."""
NO_FLAVOR_NAME: Final = "none, of no list"
"""The flavour of a VM without one: a name with a comma is in no list that Nova parses."""
DEFAULT_CIDR: Final = "/24"
_OPERATORS: Final = frozenset(
    (
        *("=", "==", "!=", ">=", "<=", "s==", "s!=", "s<", "s<=", "s>", "s>="),
        *("<in>", "<all-in>", "<or>"),
    )
)
_KEY: Final = re.compile(r"[a-zA-Z0-9_:. -]{1,255}")
SERVICE_STATES: Final[Mapping[HostState, str]] = {
    HostState.ON: "up",
    HostState.MAINTENANCE: "disabled",
    HostState.STANDBY: "down",
    HostState.FAILED: "down",
}
"""The state of the compute service of a host in Nova."""


class FilterInput(NamedTuple):
    """The input of a filter beside the requested VM and the VMs of the host."""

    filter: str
    vm: Mapping[str, Any] = {}
    host: Mapping[str, Any] = {}
    config: Mapping[str, Any] = {}
    group: Mapping[str, Any] | None = None
    misread: str = ""
    """Why Nova interprets a value differently. Then only a crash counts, not the answer."""


def filter_encoder(trial: Trial, extra_specs: str) -> Callable[[PlacementRequest], FilterInput]:
    """The encoder of a trial's constraint; ``UnsupportedTrial`` if Nova has no such filter."""
    name = trial.demand.library_name
    if name not in _FILTER_ENCODERS:
        reason = _NO_FILTER.get(name or "", f"Nova has no filter for {trial.demand}")
        raise UnsupportedTrial(reason, "unsupported-constraint")
    is_capability = name == "ExtraSpecs" and extra_specs == EXTRA_SPECS[1]
    return _capabilities if is_capability else _FILTER_ENCODERS[name]


def _affinity(request: PlacementRequest) -> FilterInput:
    return FilterInput("ServerGroupAffinityFilter", group=_group(request, "affinity"))


def _affinity_as_coded(request: PlacementRequest) -> FilterInput:
    if request.vm.id not in request.arguments["vs"] and not request.is_booted:
        raise UnsupportedTrial(
            "the filter counts a migrated VM outside the group on its source host",
            "unsupported-plan",
        )
    return FilterInput("ServerGroupAffinityFilter", group=_group_with_it(request, "affinity"))


def _anti_affinity(request: PlacementRequest) -> FilterInput:
    return _limited(request, _group(request, "anti-affinity"))


def _anti_affinity_as_coded(request: PlacementRequest) -> FilterInput:
    return _limited(request, _group_with_it(request, "anti-affinity"))


def _limited(request: PlacementRequest, group: Mapping[str, Any] | None) -> FilterInput:
    limit = _limit(request)
    limited = None if group is None else {**group, "max_server_per_host": limit}
    return FilterInput("ServerGroupAntiAffinityFilter", group=limited)


def _group(request: PlacementRequest, policy: str) -> dict[str, Any] | None:
    """The group of the VM, if it is a member."""
    return _group_with_it(request, policy) if request.vm.id in request.arguments["vs"] else None


def _group_with_it(request: PlacementRequest, policy: str) -> dict[str, Any]:
    """The group with the VM as a member; Nova looks up the hosts of members before it filters."""
    members: set[VmId] = {*request.arguments["vs"], request.vm.id}
    hosts = {request.locations[vm].host for vm in members if vm in request.locations}
    return {"policy": policy, "members": sorted(members), "hosts": sorted(hosts)}


def _different_host(request: PlacementRequest) -> FilterInput:
    return FilterInput("DifferentHostFilter", vm=_hint(request, "different_host"))


def _same_host(request: PlacementRequest) -> FilterInput:
    return FilterInput("SameHostFilter", vm=_hint(request, "same_host"))


def _hint(request: PlacementRequest, name: str) -> dict[str, Any]:
    """The hint with the other VMs; a VM cannot name itself: it has no id before its boot."""
    if request.vm.id != request.arguments["v"]:
        return {}
    others = sorted(request.arguments["others"] - {request.vm.id})
    return {"vm_hints": {name: others}} if others else {}


def _num_instances(request: PlacementRequest) -> FilterInput:
    return FilterInput("NumInstancesFilter", config={"max_instances_per_host": _limit(request)})


def _aggregate_num_instances(request: PlacementRequest) -> FilterInput:
    limit = request.host.capacity.get(ResourceName("instances"), 0)
    return FilterInput(
        "AggregateNumInstancesFilter",
        host=_aggregate("max_instances_per_host", str(limit) if limit else ""),
        # Applies to hosts without an aggregate, which must have no limit: so it is above all VMs.
        config={"max_instances_per_host": len(request.snapshot.vms) + 1},
    )


def _io_ops(request: PlacementRequest) -> FilterInput:
    return FilterInput("IoOpsFilter", config={"max_io_ops_per_host": request.arguments["nb"]})


def _isolated_hosts(request: PlacementRequest, *, restricted: bool) -> FilterInput:
    # Two images: one for the VMs of the constraint, one for all others.
    isolated = request.arguments["vs"]
    return FilterInput(
        "IsolatedHostsFilter",
        vm={"image": "isolated" if request.vm.id in isolated else "open"},
        config={
            "isolated_images": ["isolated"] if isolated else [],
            "isolated_hosts": sorted(request.arguments["ns"]),
            "restrict_isolated_hosts_to_isolated_images": restricted,
        },
    )


def _multi_tenancy(request: PlacementRequest) -> FilterInput:
    return FilterInput(
        "AggregateMultiTenancyIsolation",
        vm={"project": request.vm.tenant},
        host=_label(request.host, "filter_tenant_id"),
    )


def _type_affinity(request: PlacementRequest) -> FilterInput:
    return FilterInput(
        "AggregateTypeAffinityFilter",
        vm={"flavor": request.vm.labels.get("flavor") or NO_FLAVOR_NAME},
        host=_label(request.host, "instance_type"),
    )


def _image_isolation(request: PlacementRequest) -> FilterInput:
    key = request.arguments["key"]
    if key not in IMAGE_PROPERTIES:
        known = ", ".join(sorted(IMAGE_PROPERTIES))
        raise UnsupportedTrial(
            f"{key!r} is no image property with free values; use one of {known}",
            "unsupported-argument",
        )
    value = request.vm.labels.get(key)
    return FilterInput(
        "AggregateImagePropertiesIsolation",
        vm={"properties": {key: value}} if value else {},
        host=_label(request.host, key),
    )


def _extra_specs(request: PlacementRequest) -> FilterInput:
    key, required = _key(request), _required_value(request)
    return FilterInput(
        EXTRA_SPECS[0],
        vm={"extra_specs": {f"aggregate_instance_extra_specs:{key}": required}} if required else {},
        host=_label(request.host, key),
        misread=_comparison(required),
    )


def _capabilities(request: PlacementRequest) -> FilterInput:
    key, required = _key(request), _required_value(request)
    if ":" in key:
        raise UnsupportedTrial(
            f"Nova reads the key {key!r} as a path through the capabilities of a host",
            "unsupported-argument",
        )
    name = f"label_{key}"  # a prefix, so that it is no attribute of Nova's host state
    value = request.host.labels.get(key)
    return FilterInput(
        EXTRA_SPECS[1],
        vm={"extra_specs": {f"capabilities:{name}": required}} if required else {},
        host={"capabilities": {name: value}} if value else {},
        misread=_comparison(required),
    )


def _compute_up(request: PlacementRequest) -> FilterInput:
    return FilterInput("ComputeFilter", host={"service": SERVICE_STATES[request.host.state]})


def _same_subnet(request: PlacementRequest) -> FilterInput:
    """Hosts with the same label share a network of 256 addresses; other hosts do not."""
    other, size = request.arguments["other"], request.vm.labels.get("cidr", DEFAULT_CIDR)
    location, misread = request.locations.get(other), size != DEFAULT_CIDR
    if location is None or location.state is not InstanceState.RUNNING or other == request.vm.id:
        return FilterInput("SimpleCIDRAffinityFilter", host={"ip": "10.0.0.1"})
    moved = location.host != request.snapshot.placement.get(other)
    if not request.is_booted and (misread or moved):
        raise UnsupportedTrial("a migrated VM keeps the hint of its boot", "unsupported-plan")
    other_subnet = request.snapshot.hosts[location.host].labels.get("subnet", "")
    is_same = other_subnet == request.host.labels.get("subnet", "")
    near = "10.0.0.2" if is_same else "10.0.1.2"
    return FilterInput(
        "SimpleCIDRAffinityFilter",
        vm={"hints": {"build_near_host_ip": [near], "cidr": [size]}},
        host={"ip": "10.0.0.1"},
        misread=f"Nova reads {size!r} as the size of a network" if misread else "",
    )


def _limit(request: PlacementRequest) -> int:
    limit = int(request.arguments["nb"])
    if limit < 1:
        raise UnsupportedTrial(
            f"the limit is {limit}, and Nova needs 1 or more", "unsupported-argument"
        )
    return limit


def _key(request: PlacementRequest) -> str:
    key = str(request.arguments["key"])
    if not _KEY.fullmatch(key):
        raise UnsupportedTrial(
            f"Nova accepts no extra spec with the key {key!r}", "unsupported-argument"
        )
    return key


def _required_value(request: PlacementRequest) -> str:
    """The value that the flavour requires for the key of the constraint."""
    return request.vm.labels.get(request.arguments["key"], "")


def _comparison(required: str) -> str:
    """Why Nova does not read a required value as plain text; empty if it does."""
    is_comparison = not _OPERATORS.isdisjoint(required.split()[:1])
    return f"Nova reads {required!r} as a comparison" if is_comparison else ""


def _label(host: Host, key: str) -> dict[str, Any]:
    """A label of a host as metadata; ``UnsupportedTrial`` if Nova would split its value."""
    value = host.labels.get(key, "")
    if "," in value or value != value.strip():
        raise UnsupportedTrial(
            f"Nova reads the label {key}={value!r} of {host.id} as a list", "ambiguous-value"
        )
    return _aggregate(key, value)


def _aggregate(key: str, value: str) -> dict[str, Any]:
    return {"aggregates": [{key: value}]} if value else {}


_FILTER_ENCODERS: Final[Mapping[str | None, Callable[[PlacementRequest], FilterInput]]] = {
    "ServerGroupAffinity": _affinity,
    "ServerGroupAffinityAsCoded": _affinity_as_coded,
    "ServerGroupAntiAffinity": _anti_affinity,
    "ServerGroupAntiAffinityAsCoded": _anti_affinity_as_coded,
    "DifferentHost": _different_host,
    "SameHost": _same_host,
    "SameHostAsCoded": _same_host,
    "NumInstances": _num_instances,
    "NumInstancesAsCoded": _num_instances,
    "AggregateNumInstances": _aggregate_num_instances,
    "IoOps": _io_ops,
    "IoOpsAsCoded": _io_ops,
    "IsolatedHosts": partial(_isolated_hosts, restricted=True),
    "IsolatedHostsOpen": partial(_isolated_hosts, restricted=False),
    "MultiTenancy": _multi_tenancy,
    "TypeAffinity": _type_affinity,
    "ImageIsolation": _image_isolation,
    "ImageIsolationAsCoded": _image_isolation,
    "ExtraSpecs": _extra_specs,
    "ComputeUp": _compute_up,
    "SameSubnet": _same_subnet,
}
"""The encoder of each constraint of ``nova.spec``, which describes one filter."""
PLACEMENT_ORDERS: Final[Mapping[str, PlacementOrder]] = {
    "ServerGroupAffinityAsCoded": PlacementOrder.FIRST,
    "IoOps": PlacementOrder.DURING,
    "IoOpsAsCoded": PlacementOrder.DURING,
}
"""When the VM of a constraint is placed, if that is not after all others."""
_NO_FILTER: Final = {
    "AvailabilityZone": "this version of Nova has no filter for zones: Placement handles them"
}
CONSTRAINTS: Final = tuple(name for name in _FILTER_ENCODERS if name is not None)
"""The constraints that Nova supports, in the order of the library."""


_STATES: Final[Mapping[InstanceState, Mapping[str, str]]] = {
    InstanceState.RUNNING: {"vm_state": "active"},
    InstanceState.SUSPENDED: {"vm_state": "suspended"},
    InstanceState.BOOTING: {"vm_state": "building"},
    InstanceState.MIGRATING: {"vm_state": "active", "task_state": "migrating"},
}


class NovaQuestion(NamedTuple):
    """A question to the worker."""

    message: dict[str, Any]
    misread: str = ""
    """Why Nova interprets a value differently. Then only a crash counts, not the answer."""


def encode_questions(trial: Trial, *, extra_specs: str = EXTRA_SPECS[0]) -> list[NovaQuestion]:
    """Encode a trial: one question for each VM that is placed, in their order.

    Raise ``UnsupportedTrial`` if Nova cannot express the trial.
    """
    encode = filter_encoder(trial, extra_specs)
    when = PLACEMENT_ORDERS.get(trial.demand.name, PlacementOrder.LAST)
    if when is PlacementOrder.DURING and not trial.demand.continuous:
        raise UnsupportedTrial(
            "the filter counts VMs during their boot; only the continuous mode is supported",
            "unsupported-mode",
        )
    if trial.demand.continuous and when is not PlacementOrder.DURING:
        raise UnsupportedTrial(
            "the filter judges single placements; only the discrete mode is supported",
            "unsupported-mode",
        )
    return [_question(request, encode(request)) for request in placement_requests(trial, when)]


def _question(request: PlacementRequest, filter_input: FilterInput) -> NovaQuestion:
    host = {"id": request.host.id, "instances": list(instances(request.locations, request.host.id))}
    message = {
        "filter": filter_input.filter,
        "vm": {"id": request.vm.id, **filter_input.vm},
        "hosts": [{**host, **filter_input.host}],
        "config": filter_input.config,
        "group": filter_input.group,
    }
    return NovaQuestion(message, filter_input.misread)


def instances(locations: Mapping[VmId, InstanceLocation], host: HostId) -> Iterator[dict[str, str]]:
    """The VMs that Nova has on a host."""
    for vm, location in locations.items():
        if location.host == host:
            yield {"id": vm, **_STATES[location.state]}


_SINGLE_VM: Final = frozenset((*PLACEMENT_ORDERS, "ServerGroupAntiAffinityAsCoded", "SameSubnet"))
"""Constraints about a single placed VM or about actions in flight."""
PLACEABLE: Final = tuple(name for name in CONSTRAINTS if name not in _SINGLE_VM)
"""The constraints that apply to VMs that are placed together."""


def encode_requests(trial: Trial, *, extra_specs: str = EXTRA_SPECS[0]) -> NovaQuestion:
    """Encode the ready VMs as requests; raise ``UnsupportedTrial`` if Nova cannot express them."""
    encode = filter_encoder(trial, extra_specs)
    _check_supported(trial)
    first = initial_locations(trial.initial)
    vms = [vm for vm in trial.initial.vms.values() if vm.state is VmState.READY]
    hosts = list(trial.initial.hosts.values())
    if not vms or not hosts:
        return NovaQuestion({"filters": [], "hosts": [], "requests": []})

    def filter_input(vm: Vm, host: Host) -> FilterInput:
        return encode(PlacementRequest(trial.demand.arguments, vm, host, trial.initial, first))

    # What depends on the VM is the same for every host, and the other way round.
    of_vms = [(vm, filter_input(vm, hosts[0])) for vm in vms]
    of_hosts = [(host, filter_input(vms[0], host)) for host in hosts]
    message = {
        "filters": [of_vms[0][1].filter],
        "config": of_vms[0][1].config,
        "hosts": [
            {
                "id": host.id,
                "instances": _sized_instances(trial, first, host),
                **_host_size(host),
                **host_input.host,
            }
            for host, host_input in of_hosts
        ],
        "requests": _grouped_requests(of_vms, trial.demand.arguments.get("v")),
    }
    return NovaQuestion(message, next((given.misread for _, given in of_vms if given.misread), ""))


def _check_supported(trial: Trial) -> None:
    require_no_network(trial)
    if trial.demand.name not in PLACEABLE:
        raise UnsupportedTrial(
            "the constraint is about a single placed VM or about actions in flight",
            "unsupported-constraint",
        )
    if trial.steps:
        raise UnsupportedTrial(MAKES_ITS_OWN_PLAN, "unsupported-plan")
    if trial.initial.in_flight:
        raise UnsupportedTrial(ACTIONS_IN_FLIGHT, "unsupported-cluster")
    if trial.demand.continuous:
        raise UnsupportedTrial(
            "Nova judges final placements; only the discrete mode is supported",
            "unsupported-mode",
        )
    about = trial.demand.arguments.get("v")
    for vm in trial.initial.vms.values():
        if vm.id == about and vm.state is not VmState.READY:
            raise UnsupportedTrial(not_placed(about), "unsupported-plan")
        if any(vm.consumption.values()) or vm.cpu.reservation_mhz or vm.memory.reservation_mib:
            raise UnsupportedTrial(
                "Placement, which is not part of the test, checks what VMs consume",
                "unsupported-cluster",
            )


def _host_size(host: Host) -> dict[str, Any]:
    """What the default filters and the weighers read: the service state and the size."""
    size = {"vcpus": host.cores, "memory_mib": host.memory_mib}
    return {"service": SERVICE_STATES[host.state], **size}


def _vm_size(vm: Vm) -> dict[str, int]:
    return {"vcpus": vm.vcpus, "memory_mib": vm.memory_mib}


def _sized_instances(
    trial: Trial, locations: Mapping[VmId, InstanceLocation], host: Host
) -> list[dict[str, Any]]:
    vms = trial.initial.vms
    return [
        {**instance, **_vm_size(vms[VmId(instance["id"])])}
        for instance in instances(locations, host.id)
    ]


def _grouped_requests(
    vms: Iterable[tuple[Vm, FilterInput]], about: str | None
) -> list[dict[str, Any]]:
    """Equal VMs in one request; the VM that names others comes last, when those are placed."""
    requests: list[tuple[tuple[Any, Any], list[Vm]]] = []
    for vm, filter_input in sorted(vms, key=lambda entry: entry[0].id == about):
        kind = ({**filter_input.vm, **_vm_size(vm)}, filter_input.group)
        members = next((members for known, members in requests if known == kind), None)
        if members is None:
            requests.append((kind, [vm]))
        else:
            members.append(vm)
    return [
        {"vm": {"id": members[0].id, **message}, "vms": [vm.id for vm in members], "group": group}
        for (message, group), members in requests
    ]
