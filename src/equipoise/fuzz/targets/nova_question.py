"""A trial as a question to one of Nova's filters, or the reason why there is no such question.

Each constraint of ``nova.spec`` describes a filter. What it reads of a cluster is told in Nova's
words, exactly or not at all:

    a label of a host      metadata of an aggregate that it alone is in, or a capability
    a label of a VM        a property of its image, or an extra spec or the name of its flavour
    a tenant               a project
    a set of VMs           an instance group, a hint, or the images that these VMs have
    a host that is not on  a service that is disabled (maintenance) or silent (else)
    VMs on a host          instances there: active, suspended, building or migrating
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import Boot, Migrate
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import ResourceName, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState

Question = dict[str, Any]

EXTRA_SPECS: Final = ("AggregateInstanceExtraSpecsFilter", "ComputeCapabilitiesFilter")
"""The filters that ``ExtraSpecs`` describes."""
IMAGE_PROPERTIES: Final = frozenset(
    ("hw_disk_type", "hw_machine_type", "img_owner_id", "os_admin_user", "os_distro")
)
"""The properties of images that Nova knows and that may have any value; it passes over others."""
NO_FLAVOR: Final = "none, so to speak"
"""The flavour of a VM without one: a name with a comma is in no list that Nova reads."""
_OPERATORS: Final = frozenset(
    (
        *("=", "==", "!=", ">=", "<=", "s==", "s!=", "s<", "s<=", "s>", "s>="),
        *("<in>", "<all-in>", "<or>"),
    )
)
_KEY: Final = re.compile(r"[a-zA-Z0-9_:. -]{1,255}")
_SERVICE: Final[Mapping[HostState, str]] = {
    HostState.ON: "up",
    HostState.MAINTENANCE: "disabled",
    HostState.STANDBY: "down",
    HostState.FAILED: "down",
}
_VM_STATES: Final[Mapping[VmState, str]] = {
    VmState.RUNNING: "active",
    VmState.SLEEPING: "suspended",
}


class _Coming(NamedTuple):
    """A VM that comes to a host, and what is wanted of it."""

    wanted: Mapping[str, Any]
    """The arguments of the constraint."""
    vm: Vm
    host: Host
    snapshot: Snapshot


class _Words(NamedTuple):
    """What a filter is told besides who is asked for and which VMs are there."""

    filter: str
    vm: Mapping[str, Any] = {}
    host: Mapping[str, Any] = {}
    config: Mapping[str, Any] = {}
    group: Mapping[str, Any] | None = None


def encode(trial: Trial, *, extra_specs: str = EXTRA_SPECS[0]) -> Question:
    """Put a trial into Nova's words; raise ``Unsupported`` if it has none for it."""
    name = trial.demand.library_name
    if name not in _WORDS:
        raise Unsupported(_WITHOUT.get(name or "", f"no filter of Nova is called {trial.demand}"))
    coming = _coming(trial)
    if trial.initial.in_flight and name not in _DURING:
        raise Unsupported("actions are under way already, which the filter does not look at")
    if trial.is_broken_at_first:
        raise Unsupported("the constraint is broken already, and a filter asks what a VM changes")
    if name in _DURING and not trial.demand.continuous:
        raise Unsupported("the filter counts while VMs are booted; ask for it to hold all the time")
    is_other = name == "ExtraSpecs" and extra_specs == EXTRA_SPECS[1]
    words = _capabilities(coming) if is_other else _WORDS[name](coming)
    return {
        "filter": words.filter,
        "vm": {"id": coming.vm.id, **words.vm},
        "hosts": [{"id": coming.host.id, "instances": _instances(coming), **words.host}],
        "config": words.config,
        "group": words.group,
    }


def _coming(trial: Trial) -> _Coming:
    match [step.action for step in trial.steps]:
        case [Boot(vm=name, target=target)]:
            vm, host = trial.initial.vms.get(name), trial.initial.hosts.get(target)
            if vm is None or host is None:
                raise Unsupported("the VM or the host of the plan does not exist")
            return _Coming(trial.demand.arguments, vm, host, trial.initial)
    raise Unsupported("a filter is asked about one VM that is booted, and nothing else")


def _instances(coming: _Coming) -> list[dict[str, str]]:
    """The VMs that Nova has on the host; one that is migrated is on its source until the end."""
    snapshot, host = coming.snapshot, coming.host.id
    found = {
        vm: {"id": vm, "vm_state": _VM_STATES[snapshot.vms[vm].state]}
        for vm in snapshot.residents[host]
    }
    for running in snapshot.in_flight.values():
        match running.step.action:
            case Boot(vm=vm, target=target):
                if target == host:
                    found[vm] = {"id": vm, "vm_state": "building"}
            case Migrate(vm=vm, source=source):
                if source == host:
                    found[vm] = {"id": vm, "vm_state": "active", "task_state": "migrating"}
            case _:
                raise Unsupported("only boots and migrations may be under way already")
    return list(found.values())


def _affinity(coming: _Coming) -> _Words:
    group = _group(coming, "affinity")
    return _Words("ServerGroupAffinityFilter", group=group)


def _anti_affinity(coming: _Coming) -> _Words:
    group, most = _group(coming, "anti-affinity"), _limit(coming)
    limited = None if group is None else {**group, "max_server_per_host": most}
    return _Words("ServerGroupAntiAffinityFilter", group=limited)


def _group(coming: _Coming, policy: str) -> dict[str, Any] | None:
    """The group of the VM, if it is in one; Nova looks up where its members are before it asks."""
    members: Iterable[VmId] = coming.wanted["vs"]
    if "v" in coming.wanted:
        _must_come(coming)
    if coming.vm.id not in coming.wanted["vs"]:
        if "v" in coming.wanted:
            raise Unsupported("only a member of a group is scheduled by it")
        return None
    placement = coming.snapshot.placement
    hosts = sorted({placement[vm] for vm in members if vm in placement})
    return {"policy": policy, "members": sorted(members), "hosts": hosts}


def _different_host(coming: _Coming) -> _Words:
    return _Words("DifferentHostFilter", vm=_hint(coming, "different_host"))


def _same_host(coming: _Coming) -> _Words:
    return _Words("SameHostFilter", vm=_hint(coming, "same_host"))


def _hint(coming: _Coming, name: str) -> dict[str, Any]:
    _must_come(coming)
    return {"vm_hints": {name: sorted(coming.wanted["others"])}}


def _num_instances(coming: _Coming) -> _Words:
    return _Words("NumInstancesFilter", config={"max_instances_per_host": _limit(coming)})


def _aggregate_num_instances(coming: _Coming) -> _Words:
    most = coming.host.capacity.get(ResourceName("instances"), 0)
    return _Words(
        "AggregateNumInstancesFilter",
        host=_aggregate("max_instances_per_host", str(most) if most else ""),
        # Holds where no aggregate says anything, and there nothing is to hold.
        config={"max_instances_per_host": len(coming.snapshot.vms) + 1},
    )


def _io_ops(coming: _Coming) -> _Words:
    return _Words("IoOpsFilter", config={"max_io_ops_per_host": coming.wanted["nb"]})


def _isolated_hosts(coming: _Coming, *, restricted: bool) -> _Words:
    return _Words(
        "IsolatedHostsFilter",
        config={
            # Every VM has an image of its own, so that a set of VMs is a set of images.
            "isolated_images": sorted(coming.wanted["vs"]),
            "isolated_hosts": sorted(coming.wanted["ns"]),
            "restrict_isolated_hosts_to_isolated_images": restricted,
        },
    )


def _closed_hosts(coming: _Coming) -> _Words:
    return _isolated_hosts(coming, restricted=True)


def _open_hosts(coming: _Coming) -> _Words:
    return _isolated_hosts(coming, restricted=False)


def _multi_tenancy(coming: _Coming) -> _Words:
    return _Words(
        "AggregateMultiTenancyIsolation",
        vm={"project": coming.vm.tenant},
        host=_label(coming.host, "filter_tenant_id"),
    )


def _type_affinity(coming: _Coming) -> _Words:
    return _Words(
        "AggregateTypeAffinityFilter",
        vm={"flavor": coming.vm.labels.get("flavor") or NO_FLAVOR},
        host=_label(coming.host, "instance_type"),
    )


def _image_isolation(coming: _Coming) -> _Words:
    key = coming.wanted["key"]
    if key not in IMAGE_PROPERTIES:
        known = ", ".join(sorted(IMAGE_PROPERTIES))
        raise Unsupported(f"{key!r} is no property of images of any value; there are {known}")
    value = coming.vm.labels.get(key)
    return _Words(
        "AggregateImagePropertiesIsolation",
        vm={"properties": {key: value}} if value else {},
        host=_label(coming.host, key),
    )


def _extra_specs(coming: _Coming) -> _Words:
    key, wish = _key(coming), _wish(coming)
    return _Words(
        EXTRA_SPECS[0],
        vm={"extra_specs": {f"aggregate_instance_extra_specs:{key}": wish}} if wish else {},
        host=_label(coming.host, key),
    )


def _capabilities(coming: _Coming) -> _Words:
    key, wish = _key(coming), _wish(coming)
    if ":" in key:
        raise Unsupported(f"Nova reads the key {key!r} as a way through what a host can do")
    name = f"label_{key}"  # so that it is none of the names that Nova itself has for a host
    value = coming.host.labels.get(key)
    return _Words(
        EXTRA_SPECS[1],
        vm={"extra_specs": {f"capabilities:{name}": wish}} if wish else {},
        host={"capabilities": {name: value}} if value else {},
    )


def _compute_up(coming: _Coming) -> _Words:
    return _Words("ComputeFilter", host={"service": _SERVICE[coming.host.state]})


def _same_subnet(coming: _Coming) -> _Words:
    """Hosts with the same label are in one network of 256 addresses, and others are not."""
    _must_come(coming)
    other = coming.snapshot.vms[coming.wanted["other"]]
    hints = {}
    if other.state is VmState.RUNNING and other.host is not None:
        theirs = coming.snapshot.hosts[other.host].labels.get("subnet", "")
        is_same = theirs == coming.host.labels.get("subnet", "")
        near = "10.0.0.2" if is_same else "10.0.1.2"
        hints = {"hints": {"build_near_host_ip": [near], "cidr": ["/24"]}}
    return _Words("SimpleCIDRAffinityFilter", vm=hints, host={"ip": "10.0.0.1"})


def _must_come(coming: _Coming) -> None:
    if coming.wanted["v"] != coming.vm.id:
        raise Unsupported(f"the filter is asked when {coming.wanted['v']} comes, and for no other")


def _limit(coming: _Coming) -> int:
    most = int(coming.wanted["nb"])
    if most < 1:
        raise Unsupported(f"Nova takes no limit of {most}, but 1 or more")
    return most


def _key(coming: _Coming) -> str:
    key = str(coming.wanted["key"])
    if not _KEY.fullmatch(key):
        raise Unsupported(f"Nova takes no extra spec with the key {key!r}")
    return key


def _wish(coming: _Coming) -> str:
    """What a flavour wants of the key of the constraint, as long as it is a plain word."""
    value = coming.vm.labels.get(coming.wanted["key"], "")
    if not _OPERATORS.isdisjoint(value.split()[:1]):
        raise Unsupported(f"Nova reads {value!r} as a comparison")
    return value


def _label(host: Host, key: str) -> dict[str, Any]:
    """A label of a host as metadata, as long as Nova reads one word where we see one."""
    value = host.labels.get(key, "")
    if "," in value or value != value.strip():
        raise Unsupported(f"Nova reads {value!r}, which {host.id} has as {key!r}, as a list")
    return _aggregate(key, value)


def _aggregate(key: str, value: str) -> dict[str, Any]:
    return {"aggregates": [{key: value}]} if value else {}


_WORDS: Final[Mapping[str | None, Callable[[_Coming], _Words]]] = {
    "ServerGroupAffinity": _affinity,
    "ServerGroupAffinityAsCoded": _affinity,
    "ServerGroupAntiAffinity": _anti_affinity,
    "ServerGroupAntiAffinityAsCoded": _anti_affinity,
    "DifferentHost": _different_host,
    "SameHost": _same_host,
    "NumInstances": _num_instances,
    "NumInstancesAsCoded": _num_instances,
    "AggregateNumInstances": _aggregate_num_instances,
    "IoOps": _io_ops,
    "IoOpsAsCoded": _io_ops,
    "IsolatedHosts": _closed_hosts,
    "IsolatedHostsOpen": _open_hosts,
    "MultiTenancy": _multi_tenancy,
    "TypeAffinity": _type_affinity,
    "ImageIsolation": _image_isolation,
    "ImageIsolationAsCoded": _image_isolation,
    "ExtraSpecs": _extra_specs,
    "ComputeUp": _compute_up,
    "SameSubnet": _same_subnet,
}
"""Which constraint of ``nova.spec`` describes which filter."""
_DURING: Final = frozenset(("IoOps", "IoOpsAsCoded"))
"""Those about what is under way."""
_WITHOUT: Final = {
    "AvailabilityZone": "this version of Nova has no filter for zones: Placement looks after them"
}
CONSTRAINTS: Final = frozenset(name for name in _WORDS if name is not None)
"""What Nova can be asked about."""
