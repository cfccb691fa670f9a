"""What a constraint is judged on, and the words its sentence may use: lies, is coming, takes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from equipoise.model.action import Action, Migrate
from equipoise.model.host import Host, HostState
from equipoise.model.plan import Step
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState


@dataclass(frozen=True)
class World:
    """A state, the one before the plan, and the plan."""

    now: Snapshot
    initial: Snapshot
    steps: tuple[Step, ...] = ()


Arguments = dict[str, Any]
Meaning = Callable[[World, Arguments], bool]


# Where VMs are


def running(state: Snapshot, names: Collection[str] | None = None) -> list[Vm]:
    """The VMs that run; of some only, if they are named."""
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
    """Who runs or sleeps on a host."""
    return {vm.id for vm in state.vms.values() if vm.host == host}


def coming(state: Snapshot, host: str) -> set[str]:
    """Whom an action under way brings to a host."""
    footprints = [step.footprint for step in under_way(state)]
    return {one.vm for one in footprints if one.target == host and one.vm is not None}


def there_or_coming(state: Snapshot, host: str) -> list[Vm]:
    """Who lies on a host or is coming to it, each once."""
    names = lying(state, host) | coming(state, host)
    return [vm for vm in state.vms.values() if vm.id in names]


def is_on(state: Snapshot, host: str | None) -> bool:
    return any(one.id == host and one.state is HostState.ON for one in state.hosts.values())


def hosts_that_are_on(state: Snapshot) -> list[Host]:
    return [host for host in state.hosts.values() if host.state is HostState.ON]


def hosts_that_failed(state: Snapshot) -> list[Host]:
    return [host for host in state.hosts.values() if host.state is HostState.FAILED]


# What they have and take


def label(thing: Host | Vm, key: str) -> str:
    return thing.labels.get(key, "")


def label_of_its_host(state: Snapshot, vm: Vm, key: str) -> str:
    """The label of the host on which a VM lies."""
    assert vm.host is not None
    return label(state.hosts[vm.host], key)


def takes(vm: Vm, resource: Any) -> int:
    if resource == "cpu":
        return vm.cpu.reservation_mhz
    if resource == "memory":
        return vm.memory.reservation_mib
    return vm.consumption.get(resource, 0)


def has(host: Host, resource: Any) -> int:
    if resource == "cpu":
        return host.usable_cpu_mhz
    if resource == "memory":
        return host.usable_memory_mib
    return host.capacity.get(resource, 0)


def taken(vms: Collection[Vm], resource: str) -> int:
    return sum(takes(vm, resource) for vm in vms)


# What is done


def kind(action: Action) -> str:
    """The name of a kind of action, as files have it."""
    return str(action.__struct_config__.tag)


def under_way(state: Snapshot) -> list[Step]:
    return [one.step for one in state.in_flight.values()]


def steps_on(world: World, vm: str) -> list[Step]:
    """The actions of the plan on a VM."""
    return [step for step in world.steps if step.footprint.vm == vm]


def migrations(world: World, vm: str) -> list[Step]:
    return [step for step in steps_on(world, vm) if isinstance(step.action, Migrate)]


def overlap(one: Step, other: Step) -> bool:
    return not (one.end_ms <= other.start_ms or other.end_ms <= one.start_ms)


def pairs(things: Collection[Any]) -> Iterator[tuple[Any, Any]]:
    """Any two different ones, each pair once."""
    return combinations(things, 2)
