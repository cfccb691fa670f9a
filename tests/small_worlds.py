"""Worlds and arguments to judge constraints on: every small state, and larger ones in motion.

All amounts, times and limits are small, and all labels and tenants are ``a``, ``b`` or ``c``, so
that random draws often coincide.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, permutations, product
from random import Random
from typing import Any, TypeVar

from builders import a_host, a_step, a_vm
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    HostAction,
    Kill,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Resume,
    Shutdown,
    Suspend,
    describe,
)
from equipoise.model.event import ActionFinished, ActionStarted, Event
from equipoise.model.host import Host, HostReserve, HostState
from equipoise.model.inventory import Inventory
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, ResourceName
from equipoise.model.state.draft import Draft
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import apply_to_draft
from equipoise.model.vm import CpuSettings, MemorySettings, Vm, VmState
from equipoise.spec.language.syntax import Constraint, Name, Parameter
from meanings.world import World, kind, under_way

T = TypeVar("T")

# Properties of hosts and VMs. A variant assigns them in turn, from another start each time.

LABELS = ("zone", "subnet", "rack", "filter_tenant_id", "instance_type", "flavor")
HOST_LABELS = ("aaa---", "ab-a-b", "b-b-a-", "-ba-b-", "bbcb-a")
"""The label values of each kind of host, in the order of ``LABELS``; ``-`` is none."""
VM_LABELS = ("a--aaa", "-ba--b", "b-ab-a", "b--bb-", "aba---", "c-b--b")
HOST_LOOKS: tuple[dict[str, Any], ...] = (
    {"cores": 2, "memory_mib": 3, "capacity": {"licences": 2, "instances": 1, "pods": 3}},
    {"cores": 1, "memory_mib": 1, "capacity": {"licences": 0, "instances": 1}},
    {"cores": 4, "memory_mib": 4, "capacity": {"licences": 3, "instances": 2, "pods": 1}},
    {"cores": 3, "memory_mib": 2, "capacity": {"instances": 0, "pods": 0}},
    {"cores": 2, "memory_mib": 5, "capacity": {"licences": 1, "pods": 2}},
)
VM_LOOKS: tuple[dict[str, Any], ...] = (
    {"consumption": {"licences": 1}, "tenant": "a"},
    {"consumption": {"licences": 2, "pods": 1}, "tenant": "b"},
    {"consumption": {}, "tenant": "a"},
    {"consumption": {"licences": 0}, "tenant": None, "agent": True},
    {"consumption": {"licences": 3, "instances": 2}, "tenant": "b"},
    {"consumption": {"licences": 1}, "tenant": None},
)
PAIRS: tuple[dict[int, int], ...] = ({}, {1: 2, 2: 1}, {2: 1}, {1: 3, 3: 1}, {1: 9, 2: 3, 3: 2})
"""The fault-tolerant pairs of each variant, also one-sided ones and one with a missing VM."""
VARIANTS = len(PAIRS)


def _labels(values: str) -> dict[str, str]:
    return {key: value for key, value in zip(LABELS, values, strict=True) if value != "-"}


@cache
def _host(number: int, state: HostState, variant: int) -> Host:
    look = (number + variant) % len(HOST_LOOKS)
    return a_host(
        f"h{number}",
        state=state,
        mhz_per_core=1,
        reserve=HostReserve(cpu_mhz=look % 2, memory_mib=look % 2),
        labels=_labels(HOST_LABELS[look]),
        **HOST_LOOKS[look],
    )


@cache
def _vm(number: int, state: VmState, host: str | None, variant: int) -> Vm:
    look = (number + 2 * variant + variant // 3) % len(VM_LOOKS)
    other = PAIRS[variant].get(number)
    return a_vm(
        f"v{number}",
        host,
        state=state,
        cpu=CpuSettings(reservation_mhz=look % 3),
        memory=MemorySettings(reservation_mib=(look + 1) % 4),
        labels=_labels(VM_LABELS[look]),
        ft_pair=None if other is None else f"v{other}",
        **VM_LOOKS[look],
    )


# Every small state


def states(vms: int, hosts: int, variant: int = 0) -> Iterator[Snapshot]:
    """Every state of some VMs and hosts."""
    names = [f"h{number}" for number in range(1, hosts + 1)]
    places: list[tuple[VmState, str | None]] = [
        (state, None) for state in VmState if not state.has_host
    ]
    places += [(state, host) for state in VmState if state.has_host for host in names]
    usual = (HostState.ON, HostState.STANDBY, HostState.MAINTENANCE)
    for modes, spots in product(product(usual, repeat=hosts), product(places, repeat=vms)):
        yield Snapshot.of(
            Inventory(
                hosts=tuple(_host(i, mode, variant) for i, mode in enumerate(modes, start=1)),
                vms=tuple(_vm(i, *spot, variant) for i, spot in enumerate(spots, start=1)),
            )
        )


# Larger worlds, in motion


def moving(rng: Random) -> World:
    """A moment of a random plan, or a state that is unrelated to the initial one."""
    hosts, vms, variant = rng.choice([1, 2, 3, 4, 5]), rng.randrange(6), rng.randrange(VARIANTS)
    hosts = 0 if rng.random() < 0.02 else hosts
    initial = a_random_state(rng, vms, hosts, variant)
    steps = a_random_plan(rng, initial)
    if rng.random() < 0.6:
        return World(_sometime(rng, initial, steps), initial, steps)
    other = a_random_state(rng, vms, hosts, variant)
    then = _sometime(rng, initial, a_random_plan(rng, initial))
    return World(_sometime(rng, other, a_random_plan(rng, other)), then, steps)


def a_random_state(rng: Random, vms: int, hosts: int, variant: int) -> Snapshot:
    """A random state of VMs and hosts; most VMs run and most hosts are on."""
    modes = [*[HostState.ON] * 6, *HostState]
    names = [HostId(f"h{number}") for number in range(1, hosts + 1)]
    placed = [VmState.RUNNING] * 6 + [VmState.SLEEPING] * 2 if hosts else []
    found = []
    for number in range(1, vms + 1):
        state = rng.choice([*placed, VmState.INIT, VmState.READY, VmState.TERMINATED])
        host = rng.choice(names) if state.has_host else None
        found.append(_vm(number, state, host, variant))
    return Snapshot.of(
        Inventory(
            hosts=tuple(_host(i, rng.choice(modes), variant) for i in range(1, hosts + 1)),
            vms=tuple(found),
        )
    )


def a_random_plan(rng: Random, state: Snapshot, most: int = 8) -> tuple[Step, ...]:
    """A few random steps; many fit the state, some do not, and many start at the same time.

    One kind of action and one host are more frequent than others, so that they meet.
    """
    found, often = [], (rng.randrange(9), rng.randrange(60))
    for number in range(rng.randrange(most + 1)):
        action = _any_action(rng, state, often)
        if action is not None:
            start = rng.choice([0, 0, 0, 1, 2, 3, 4])
            found.append(a_step(f"s{number}", action, start, start + rng.choice([1, 2, 3, 3])))
    return tuple(found)


def _any_action(rng: Random, state: Snapshot, often: tuple[int, int]) -> Action | None:
    if not state.hosts:
        return None
    again, hosts = rng.random() < 0.4, list(state.hosts)
    target = hosts[often[1] % len(hosts)] if again else rng.choice(hosts)
    if not state.vms or rng.random() < 0.2:
        return rng.choice(_SWITCHES)(host=target)
    vm = rng.choice(list(state.vms))
    own = state.vms[vm].host
    source = rng.choice(hosts) if own is None or rng.random() < 0.2 else own
    actions: list[Action] = [
        Forge(vm=vm),
        Kill(vm=vm),
        Boot(vm=vm, target=target),
        Shutdown(vm=vm, source=source),
        Suspend(vm=vm, source=source),
        Migrate(vm=vm, source=source, target=target),
        Migrate(vm=vm, source=source, target=target),
        Reinstantiate(vm=vm, source=source, target=target),
        Resume(vm=vm, source=source, target=rng.choice([source, target])),
        Allocate(vm=vm, resource=ResourceName("licences"), amount=rng.randrange(4)),
    ]
    return actions[often[0]] if again else rng.choice(actions)


_SWITCHES: tuple[type[HostAction], ...] = (PowerOn, PowerOff, EnterMaintenance, LeaveMaintenance)


def _sometime(rng: Random, initial: Snapshot, steps: tuple[Step, ...]) -> Snapshot:
    """The state at a random moment of a plan. Ends come before starts of the same time."""
    events: list[Event] = []
    events += [ActionFinished(at_ms=step.end_ms, step=step.id, attempt=1) for step in steps]
    events += [ActionStarted(at_ms=step.start_ms, step=step, attempt=1) for step in steps]
    events.sort(key=lambda event: event.at_ms)
    draft = Draft(initial)
    for event in events[: rng.randrange(len(events) + 1)]:
        apply_to_draft(draft, event)
    return draft.freeze()


# Arguments

RESOURCES = ("licences", "cpu", "memory", "pods", "gpus")
VALUES = ("a", "b", "c", "")
NUMBERS = {"percent": (0, 33, 50, 67, 100, 150), "ms": (0, 1, 2, 3, 4, 5, 6)}
TEXTS = {
    "id": RESOURCES,
    "key": ("zone", "rack", "flavor", "colour"),
    "value": VALUES,
    "values": VALUES,
    "zone": VALUES,
    "name": ("a", "b", "unknown"),
}


def arguments(
    constraint: Constraint, snapshot: Snapshot, rng: Random, most: int = 128
) -> list[dict[str, Any]]:
    """All arguments of a constraint, or a random selection of ``most``."""
    names = [parameter.name for parameter in constraint.parameters]
    choices = [_choices(parameter, snapshot) for parameter in constraint.parameters]
    count = 1
    for some in choices:
        count *= len(some)
    if count <= most:
        return [dict(zip(names, values, strict=True)) for values in product(*choices)]
    found = [[_one_of(some, rng) for some in choices] for _ in range(most)]
    return [dict(zip(names, values, strict=True)) for values in found]


def _one_of(choices: tuple[T, ...], rng: Random) -> T:
    """One of the choices. The first and the last are degenerate and have a higher weight."""
    return rng.choice([choices[0], choices[-1]]) if rng.random() < 0.25 else rng.choice(choices)


def _choices(parameter: Parameter, snapshot: Snapshot) -> tuple[Any, ...]:
    if not isinstance(parameter.domain, Name):
        return _lists(tuple(snapshot.vms))
    members = _members(parameter.domain.name, parameter.name, snapshot)
    if parameter.binding == "<:":
        return subsets(members)
    return packings(members) if parameter.binding == "<<:" else members


def _members(domain: str, name: str, snapshot: Snapshot) -> tuple[Any, ...]:
    if domain == "int":
        return NUMBERS.get(name, (0, 1, 2, 3))
    if domain == "string" and name == "kind":
        kinds = {kind(step.action) for step in under_way(snapshot)}
        return tuple(sorted(kinds | {"migrate", "boot"}))
    if domain == "string":
        return TEXTS[name]
    return tuple(snapshot.vms if domain == "vms" else snapshot.hosts)


@cache
def subsets(members: tuple[str, ...]) -> tuple[frozenset[str], ...]:
    """Every subset, the empty one first and the full one last."""
    sizes = range(len(members) + 1)
    return tuple(frozenset(some) for size in sizes for some in combinations(members, size))


@cache
def packings(members: tuple[str, ...]) -> tuple[frozenset[frozenset[str]], ...]:
    """Every set of disjoint groups that are not empty."""
    return tuple(frozenset(map(frozenset, groups)) for groups in _groupings(members))


def _groupings(members: tuple[str, ...]) -> Iterator[list[list[str]]]:
    if not members:
        yield []
        return
    first, *others = members
    for groups in _groupings(tuple(others)):
        yield groups
        yield [[first], *groups]
        for number, group in enumerate(groups):
            yield [*groups[:number], [first, *group], *groups[number + 1 :]]


@cache
def _lists(members: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    sizes = range(len(members) + 1)
    return tuple(some for size in sizes for some in permutations(members, size))


# Texts for failure messages


def told(world: World) -> str:
    """Return a world as text."""
    return "\n".join(
        ["now:", *_state_told(world.now), "initially:", *_state_told(world.initial), "plan:"]
        + [f"  {step.start_ms}-{step.end_ms} {describe(step.action)}" for step in world.steps]
    )


def _state_told(state: Snapshot) -> Iterator[str]:
    for host in state.hosts.values():
        size = f"cpu {host.usable_cpu_mhz}, memory {host.usable_memory_mib}"
        yield f"  {host.id} {host.state}, {size}, {dict(host.capacity)}, {dict(host.labels)}"
    for vm in state.vms.values():
        size = f"cpu {vm.cpu.reservation_mhz}, memory {vm.memory.reservation_mib}"
        who = f"tenant {vm.tenant}, pair {vm.ft_pair}{', an agent' if vm.agent else ''}"
        amounts = f"{dict(vm.consumption)}, {dict(vm.labels)}"
        yield f"  {vm.id} {vm.state} on {vm.host}, {size}, {amounts}, {who}"
    for step in under_way(state):
        yield f"  under way: {describe(step.action)}"
