"""What a constraint is judged on, and the words of its sentence: lies, is coming, takes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from equipoise.model.action import Action, Migrate
from equipoise.model.host import Host, HostState
from equipoise.model.plan import Step
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from plain_limits import memory_for_sizes, vcpus_for_sizes


@dataclass(frozen=True)
class World:
    """A state, the state before the plan, and the plan."""

    now: Snapshot
    initial: Snapshot
    steps: tuple[Step, ...] = ()


Arguments = dict[str, Any]
Meaning = Callable[[World, Arguments], bool]


# Where VMs are


def running(state: Snapshot, names: Collection[str] | None = None) -> list[Vm]:
    """Return the running VMs; of the named ones only, if names are given."""
    return [
        vm
        for vm in state.vms.values()
        if vm.state is VmState.RUNNING and (names is None or vm.id in names)
    ]


def running_on(state: Snapshot, host: str) -> list[Vm]:
    return [vm for vm in running(state) if vm.host == host]


def hosts_of(vms: Collection[Vm]) -> set[str | None]:
    return {vm.host for vm in vms}


def lying(state: Snapshot, host: str) -> set[str]:
    """Return the VMs that run or sleep on a host."""
    return {vm.id for vm in state.vms.values() if vm.host == host}


def coming(state: Snapshot, host: str) -> set[str]:
    """Return the VMs that an action under way brings to a host."""
    footprints = [step.footprint for step in under_way(state)]
    return {seen.vm for seen in footprints if seen.target == host and seen.vm is not None}


def there_or_coming(state: Snapshot, host: str) -> list[Vm]:
    """Return the VMs that are on a host or on their way to it, each once."""
    names = lying(state, host) | coming(state, host)
    return [vm for vm in state.vms.values() if vm.id in names]


def is_on(state: Snapshot, host: str | None) -> bool:
    return any(known.id == host and known.state is HostState.ON for known in state.hosts.values())


def hosts_that_are_on(state: Snapshot) -> list[Host]:
    return [host for host in state.hosts.values() if host.state is HostState.ON]


def hosts_that_failed(state: Snapshot) -> list[Host]:
    return [host for host in state.hosts.values() if host.state is HostState.FAILED]


# Resources and labels


def label(thing: Host | Vm, key: str) -> str:
    return thing.labels.get(key, "")


def label_of_its_host(state: Snapshot, vm: Vm, key: str) -> str:
    """Return the label of the host of a VM."""
    assert vm.host is not None
    return label(state.hosts[vm.host], key)


def takes(vm: Vm, resource: Any) -> int:
    if resource == "cpu":
        return vm.cpu.reservation_mhz
    if resource == "memory":
        return vm.memory.reservation_mib
    if resource == "configured_memory":
        return vm.memory_mib
    if resource == "vcpus":
        return vm.vcpus
    return vm.consumption.get(resource, 0)


def has(host: Host, resource: Any) -> int:
    if resource == "cpu":
        return host.usable_cpu_mhz
    if resource == "memory":
        return host.usable_memory_mib
    if resource == "configured_memory":
        return memory_for_sizes(host)
    if resource == "vcpus":
        return vcpus_for_sizes(host)
    return host.capacity.get(resource, 0)


def taken(vms: Collection[Vm], resource: str) -> int:
    return sum(takes(vm, resource) for vm in vms)


# Actions


def kind(action: Action) -> str:
    """Return the name of a kind of action, as files have it."""
    return str(action.__struct_config__.tag)


def under_way(state: Snapshot) -> list[Step]:
    return [running.step for running in state.in_flight.values()]


def steps_on(world: World, vm: str) -> list[Step]:
    """Return the actions of the plan on a VM."""
    return [step for step in world.steps if step.footprint.vm == vm]


def migrations(world: World, vm: str) -> list[Step]:
    return [step for step in steps_on(world, vm) if isinstance(step.action, Migrate)]


def overlap(left: Step, right: Step) -> bool:
    return not (left.end_ms <= right.start_ms or right.end_ms <= left.start_ms)


def pairs(things: Collection[Any]) -> Iterator[tuple[Any, Any]]:
    """Return all pairs of different members, each pair once."""
    return combinations(things, 2)
