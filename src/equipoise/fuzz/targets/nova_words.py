"""What each constraint of ``nova.spec`` says in Nova's words, or the reason why it has none.

Each describes a filter. What it reads of a cluster is told exactly or not at all:

    a label of a host      metadata of an aggregate that it alone is in, or a capability
    a label of a VM        a property of its image, an extra spec or the name of its flavour, or the
                           hint ``cidr``
    a tenant               a project
    a set of VMs           an instance group, a hint, or the VMs of one image
    a host that is not on  a service that is disabled (maintenance) or silent (else)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from equipoise.fuzz.schedulers.scheduler import Unsupported
from equipoise.fuzz.targets.nova_coming import Coming, Life, When
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import ResourceName, VmId

EXTRA_SPECS: Final = ("AggregateInstanceExtraSpecsFilter", "ComputeCapabilitiesFilter")
"""The filters that ``ExtraSpecs`` describes."""
IMAGE_PROPERTIES: Final = frozenset(
    ("hw_disk_type", "hw_machine_type", "img_owner_id", "os_admin_user", "os_distro")
)
"""The properties of images that Nova knows and that may have any value; it passes over others."""
NO_FLAVOR: Final = "none, so to speak"
"""The flavour of a VM without one: a name with a comma is in no list that Nova reads."""
USUAL_CIDR: Final = "/24"
_OPERATORS: Final = frozenset(
    (
        *("=", "==", "!=", ">=", "<=", "s==", "s!=", "s<", "s<=", "s>", "s>="),
        *("<in>", "<all-in>", "<or>"),
    )
)
_KEY: Final = re.compile(r"[a-zA-Z0-9_:. -]{1,255}")
SERVICE: Final[Mapping[HostState, str]] = {
    HostState.ON: "up",
    HostState.MAINTENANCE: "disabled",
    HostState.STANDBY: "down",
    HostState.FAILED: "down",
}
"""What Nova thinks of the service of a host."""


class Words(NamedTuple):
    """What a filter is told besides who is asked for and which VMs are there."""

    filter: str
    vm: Mapping[str, Any] = {}
    host: Mapping[str, Any] = {}
    config: Mapping[str, Any] = {}
    group: Mapping[str, Any] | None = None
    odd: str = ""
    """Why Nova reads something else than we do. Then it matters only whether it can answer."""


def teller(trial: Trial, extra_specs: str) -> Callable[[Coming], Words]:
    """What tells the filter of a trial's constraint; ``Unsupported`` if there is no such filter."""
    name = trial.demand.library_name
    if name not in _WORDS:
        raise Unsupported(_WITHOUT.get(name or "", f"no filter of Nova is called {trial.demand}"))
    is_other = name == "ExtraSpecs" and extra_specs == EXTRA_SPECS[1]
    return _capabilities if is_other else _WORDS[name]


def _affinity(coming: Coming) -> Words:
    return Words("ServerGroupAffinityFilter", group=_group(coming, "affinity"))


def _affinity_as_coded(coming: Coming) -> Words:
    if coming.vm.id not in coming.wanted["vs"] and not coming.is_booted:
        raise Unsupported("a VM counts where it comes from, which the constraint says of no other")
    return Words("ServerGroupAffinityFilter", group=_group_with_it(coming, "affinity"))


def _anti_affinity(coming: Coming) -> Words:
    return _limited(coming, _group(coming, "anti-affinity"))


def _anti_affinity_as_coded(coming: Coming) -> Words:
    return _limited(coming, _group_with_it(coming, "anti-affinity"))


def _limited(coming: Coming, group: Mapping[str, Any] | None) -> Words:
    most = _limit(coming)
    limited = None if group is None else {**group, "max_server_per_host": most}
    return Words("ServerGroupAntiAffinityFilter", group=limited)


def _group(coming: Coming, policy: str) -> dict[str, Any] | None:
    """The group of the VM, if it is in one."""
    return _group_with_it(coming, policy) if coming.vm.id in coming.wanted["vs"] else None


def _group_with_it(coming: Coming, policy: str) -> dict[str, Any]:
    """The group and the VM, which is in it; Nova looks up where they are before it asks."""
    members: set[VmId] = {*coming.wanted["vs"], coming.vm.id}
    hosts = {coming.lying[vm].host for vm in members if vm in coming.lying}
    return {"policy": policy, "members": sorted(members), "hosts": sorted(hosts)}


def _different_host(coming: Coming) -> Words:
    return Words("DifferentHostFilter", vm=_hint(coming, "different_host"))


def _same_host(coming: Coming) -> Words:
    return Words("SameHostFilter", vm=_hint(coming, "same_host"))


def _hint(coming: Coming, name: str) -> dict[str, Any]:
    """The others by name; a VM cannot name itself, for it has no name before it is there."""
    if coming.vm.id != coming.wanted["v"]:
        return {}
    others = sorted(coming.wanted["others"] - {coming.vm.id})
    return {"vm_hints": {name: others}} if others else {}


def _num_instances(coming: Coming) -> Words:
    return Words("NumInstancesFilter", config={"max_instances_per_host": _limit(coming)})


def _aggregate_num_instances(coming: Coming) -> Words:
    most = coming.host.capacity.get(ResourceName("instances"), 0)
    return Words(
        "AggregateNumInstancesFilter",
        host=_aggregate("max_instances_per_host", str(most) if most else ""),
        # Holds where no aggregate says anything, and there nothing is to hold.
        config={"max_instances_per_host": len(coming.snapshot.vms) + 1},
    )


def _io_ops(coming: Coming) -> Words:
    return Words("IoOpsFilter", config={"max_io_ops_per_host": coming.wanted["nb"]})


def _isolated_hosts(coming: Coming, *, restricted: bool) -> Words:
    # There are two images, one for these VMs and one for the others.
    isolated = coming.wanted["vs"]
    return Words(
        "IsolatedHostsFilter",
        vm={"image": "isolated" if coming.vm.id in isolated else "open"},
        config={
            "isolated_images": ["isolated"] if isolated else [],
            "isolated_hosts": sorted(coming.wanted["ns"]),
            "restrict_isolated_hosts_to_isolated_images": restricted,
        },
    )


def _closed_hosts(coming: Coming) -> Words:
    return _isolated_hosts(coming, restricted=True)


def _open_hosts(coming: Coming) -> Words:
    return _isolated_hosts(coming, restricted=False)


def _multi_tenancy(coming: Coming) -> Words:
    return Words(
        "AggregateMultiTenancyIsolation",
        vm={"project": coming.vm.tenant},
        host=_label(coming.host, "filter_tenant_id"),
    )


def _type_affinity(coming: Coming) -> Words:
    return Words(
        "AggregateTypeAffinityFilter",
        vm={"flavor": coming.vm.labels.get("flavor") or NO_FLAVOR},
        host=_label(coming.host, "instance_type"),
    )


def _image_isolation(coming: Coming) -> Words:
    key = coming.wanted["key"]
    if key not in IMAGE_PROPERTIES:
        known = ", ".join(sorted(IMAGE_PROPERTIES))
        raise Unsupported(f"{key!r} is no property of images of any value; there are {known}")
    value = coming.vm.labels.get(key)
    return Words(
        "AggregateImagePropertiesIsolation",
        vm={"properties": {key: value}} if value else {},
        host=_label(coming.host, key),
    )


def _extra_specs(coming: Coming) -> Words:
    key, wish = _key(coming), _wish(coming)
    return Words(
        EXTRA_SPECS[0],
        vm={"extra_specs": {f"aggregate_instance_extra_specs:{key}": wish}} if wish else {},
        host=_label(coming.host, key),
        odd=_comparison(wish),
    )


def _capabilities(coming: Coming) -> Words:
    key, wish = _key(coming), _wish(coming)
    if ":" in key:
        raise Unsupported(f"Nova reads the key {key!r} as a way through what a host can do")
    name = f"label_{key}"  # so that it is none of the names that Nova itself has for a host
    value = coming.host.labels.get(key)
    return Words(
        EXTRA_SPECS[1],
        vm={"extra_specs": {f"capabilities:{name}": wish}} if wish else {},
        host={"capabilities": {name: value}} if value else {},
        odd=_comparison(wish),
    )


def _compute_up(coming: Coming) -> Words:
    return Words("ComputeFilter", host={"service": SERVICE[coming.host.state]})


def _same_subnet(coming: Coming) -> Words:
    """Hosts with the same label are in one network of 256 addresses, and others are not."""
    other, size = coming.wanted["other"], coming.vm.labels.get("cidr", USUAL_CIDR)
    where, odd = coming.lying.get(other), size != USUAL_CIDR
    if where is None or where.life is not Life.RUNS or other == coming.vm.id:
        return Words("SimpleCIDRAffinityFilter", host={"ip": "10.0.0.1"})
    if not coming.is_booted and (odd or where.host != coming.snapshot.placement.get(other)):
        raise Unsupported("a VM that is migrated has the hint that it was booted with")
    theirs = coming.snapshot.hosts[where.host].labels.get("subnet", "")
    is_same = theirs == coming.host.labels.get("subnet", "")
    near = "10.0.0.2" if is_same else "10.0.1.2"
    return Words(
        "SimpleCIDRAffinityFilter",
        vm={"hints": {"build_near_host_ip": [near], "cidr": [size]}},
        host={"ip": "10.0.0.1"},
        odd=f"Nova reads {size!r} as the size of a network" if odd else "",
    )


def _limit(coming: Coming) -> int:
    most = int(coming.wanted["nb"])
    if most < 1:
        raise Unsupported(f"Nova takes no limit of {most}, but 1 or more")
    return most


def _key(coming: Coming) -> str:
    key = str(coming.wanted["key"])
    if not _KEY.fullmatch(key):
        raise Unsupported(f"Nova takes no extra spec with the key {key!r}")
    return key


def _wish(coming: Coming) -> str:
    """What a flavour wants of the key of the constraint."""
    return coming.vm.labels.get(coming.wanted["key"], "")


def _comparison(wish: str) -> str:
    """Why a wish is no plain word, if it is none."""
    is_one = not _OPERATORS.isdisjoint(wish.split()[:1])
    return f"Nova reads {wish!r} as a comparison" if is_one else ""


def _label(host: Host, key: str) -> dict[str, Any]:
    """A label of a host as metadata, as long as Nova reads one word where we see one."""
    value = host.labels.get(key, "")
    if "," in value or value != value.strip():
        raise Unsupported(f"Nova reads {value!r}, which {host.id} has as {key!r}, as a list")
    return _aggregate(key, value)


def _aggregate(key: str, value: str) -> dict[str, Any]:
    return {"aggregates": [{key: value}]} if value else {}


_WORDS: Final[Mapping[str | None, Callable[[Coming], Words]]] = {
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
WHEN: Final[Mapping[str, When]] = {
    "ServerGroupAffinityAsCoded": When.FIRST,
    "IoOps": When.DURING,
    "IoOpsAsCoded": When.DURING,
}
"""When the VM comes that a constraint is about, if not after all others."""
_WITHOUT: Final = {
    "AvailabilityZone": "this version of Nova has no filter for zones: Placement looks after them"
}
CONSTRAINTS: Final = tuple(name for name in _WORDS if name is not None)
"""What Nova can be asked about, in the order of the library."""
