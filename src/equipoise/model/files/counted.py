"""The demand of VMs of which a file says what was counted. From here on there is only demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from equipoise.model.amendment import Amendment
from equipoise.model.case import CaseFile
from equipoise.model.event import HostJoined, VmArrived
from equipoise.model.files.check.crowd import Crowds
from equipoise.model.host import Host
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Plan
from equipoise.model.problem import Problem
from equipoise.model.story.scenario import Scenario
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.request import Request
from equipoise.model.usage import demand_of
from equipoise.model.value import Value
from equipoise.model.vm import Vm

F = TypeVar("F", Inventory, Plan, Scenario, CaseFile, Amendment, Problem, Campaign, Request)
FindHost = Callable[[str], Host | None]


def with_demands(value: F) -> F:
    """Give every VM of a sound file the demand that follows from its usage, if it has one."""
    return cast(F, _with_demands(value))


def _with_demands(
    value: Inventory | Plan | Scenario | CaseFile | Amendment | Problem | Campaign | Request,
) -> Value:
    match value:
        case Inventory():
            hosts: dict[str, Host] = {host.id: host for host in value.hosts}
            return _in_inventory(value, hosts.get)
        case CaseFile() | Problem() | Campaign():
            return value.but(cluster=_with_demands(value.cluster))
        case Scenario():
            return _in_story(value)
        case Amendment():
            new: dict[str, Host] = {host.id: host for host in value.hosts}
            return value.but(vms=tuple(_in_vm(vm, new.get) for vm in value.vms))
        case Plan() | Request():
            return value


def _in_inventory(inventory: Inventory, host_of: FindHost) -> Inventory:
    if not any(vm.usage for vm in inventory.vms):
        return inventory
    return inventory.but(vms=tuple(_in_vm(vm, host_of) for vm in inventory.vms))


def _in_vm(vm: Vm, host_of: FindHost) -> Vm:
    if vm.usage is None:
        return vm
    host = None if vm.host is None else host_of(vm.host)
    speed = None if host is None else host.mhz_per_core
    return vm.but(demand=demand_of(vm.usage, vm, speed), usage=None)


def _in_story(scenario: Scenario) -> Scenario:
    """The VMs of a fleet may be on hosts of several speeds, so that theirs is not known."""
    told, fleet = scenario.happenings, scenario.fleet
    crowd = Crowds.of(scenario, {}).hosts
    hosts: dict[str, Host] = {one.host.id: one.host for one in told if isinstance(one, HostJoined)}
    hosts |= {host.id: host for host in scenario.cluster.hosts}

    def host_of(name: str) -> Host | None:
        return hosts.get(name) or crowd.get(name)

    return scenario.but(
        cluster=_in_inventory(scenario.cluster, host_of),
        fleet=fleet.but(vms=tuple(one.but(like=_in_vm(one.like, host_of)) for one in fleet.vms)),
        happenings=tuple(
            one.but(vm=_in_vm(one.vm, host_of)) if isinstance(one, VmArrived) else one
            for one in told
        ),
    )
