"""A trial as requests to Nova's scheduler: put these VMs somewhere.

VMs that are ready and alike for the constraint are one request, as when somebody asks for several
servers at once: Nova finds a host for each or for none of them. The requests come one after the
other, each when the VMs of those before it are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from equipoise.fuzz.schedulers.scheduler import Unsupported, without_network
from equipoise.fuzz.targets.nova_coming import Coming, Lying, lying_at_first
from equipoise.fuzz.targets.nova_question import Question, instances
from equipoise.fuzz.targets.nova_words import (
    CONSTRAINTS,
    EXTRA_SPECS,
    SERVICE,
    WHEN,
    Words,
    teller,
)
from equipoise.fuzz.trial.trial import Trial
from equipoise.model.host import Host
from equipoise.model.quantity import VmId
from equipoise.model.vm import Vm, VmState

_ONE_BY_ONE: Final = frozenset((*WHEN, "ServerGroupAntiAffinityAsCoded", "SameSubnet"))
"""Those about a single VM that comes, or about what is under way then."""
PLACED: Final = tuple(name for name in CONSTRAINTS if name not in _ONE_BY_ONE)
"""What can be asked of VMs that are placed together."""


def encode_requests(trial: Trial, *, extra_specs: str = EXTRA_SPECS[0]) -> Question:
    """Put the VMs that are ready into requests; raise ``Unsupported`` if Nova has no words."""
    tell = teller(trial, extra_specs)
    _check(trial)
    first = lying_at_first(trial.initial)
    vms = [vm for vm in trial.initial.vms.values() if vm.state is VmState.READY]
    hosts = list(trial.initial.hosts.values())
    if not vms or not hosts:
        return Question({"filters": [], "hosts": [], "requests": []})

    def words(vm: Vm, host: Host) -> Words:
        return tell(Coming(trial.demand.arguments, vm, host, trial.initial, first))

    of_vms = [(vm, words(vm, hosts[0])) for vm in vms]
    of_hosts = [(host, words(vms[0], host)) for host in hosts]
    told = {
        "filters": [of_vms[0][1].filter],
        "config": of_vms[0][1].config,
        "hosts": [
            {"id": host.id, "instances": _sized(trial, first, host), **_offers(host), **one.host}
            for host, one in of_hosts
        ],
        "requests": _requests(of_vms, trial.demand.arguments.get("v")),
    }
    return Question(told, next((one.odd for _, one in of_vms if one.odd), ""))


def _check(trial: Trial) -> None:
    without_network(trial)
    if trial.demand.name not in PLACED:
        raise Unsupported("the constraint is about a single VM that comes, or what is under way")
    if trial.steps:
        raise Unsupported("it makes a plan itself, and takes none")
    if trial.initial.in_flight:
        raise Unsupported("actions are under way before the plan begins")
    if trial.demand.continuous:
        raise Unsupported("it looks where VMs will be, and not at what is in between")
    about = trial.demand.arguments.get("v")
    for vm in trial.initial.vms.values():
        if vm.id == about and vm.state is not VmState.READY:
            raise Unsupported(f"the filter is asked when {about} comes, and it does not")
        if any(vm.consumption.values()) or vm.cpu.reservation_mhz or vm.memory.reservation_mib:
            raise Unsupported("Placement, which is not there, looks after what VMs take of hosts")


def _offers(host: Host) -> dict[str, Any]:
    """What the usual filters and the weighers look at: whether it is up, and how large it is."""
    size = {"vcpus": host.cores, "memory_mib": host.memory_mib}
    return {"service": SERVICE[host.state], **size}


def _takes(vm: Vm) -> dict[str, int]:
    return {"vcpus": vm.vcpus, "memory_mib": vm.memory_mib}


def _sized(trial: Trial, lying: Mapping[VmId, Lying], host: Host) -> list[dict[str, Any]]:
    vms = trial.initial.vms
    return [{**one, **_takes(vms[VmId(one["id"])])} for one in instances(lying, host.id)]


def _requests(vms: Iterable[tuple[Vm, Words]], about: str | None) -> list[dict[str, Any]]:
    """Those who are alike together; whoever names others comes when they are there."""
    alike: list[tuple[tuple[Any, Any], list[Vm]]] = []
    for vm, words in sorted(vms, key=lambda one: one[0].id == about):
        kind = ({**words.vm, **_takes(vm)}, words.group)
        found = next((some for known, some in alike if known == kind), None)
        if found is None:
            alike.append((kind, [vm]))
        else:
            found.append(vm)
    return [
        {"vm": {"id": some[0].id, **told}, "vms": [vm.id for vm in some], "group": group}
        for (told, group), some in alike
    ]
