"""Trials with fewer steps, VMs and hosts. What comes last goes first, so that small names stay."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from equipoise.fuzz.trial.trial import Trial
from equipoise.model.action import Action, Move
from equipoise.model.host import Host
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm
from equipoise.spec.demand import Demand
from equipoise.spec.language.syntax import names_in
from equipoise.spec.language.vocabulary import plain


def fewer_steps(trial: Trial) -> Iterator[Trial]:
    """Without one half of the steps, and without steps of one machine that follow each other.

    What leads a VM away and back can only go together.
    """
    middle = len(trial.steps) // 2
    for kept in (trial.steps[:middle], trial.steps[middle:]) if middle else ():
        yield replace(trial, steps=_among_themselves(kept))
    for run in _runs(trial.steps):
        kept = tuple(one for place, one in enumerate(trial.steps) if place not in run)
        yield replace(trial, steps=_among_themselves(kept))


def fewer_vms(trial: Trial) -> Iterator[Trial]:
    """Without one of the VMs, its steps, and its name wherever one can do without it."""
    for vm in reversed(trial.initial.vms):
        smaller = _without(trial, vms={vm})
        if smaller is not None:
            yield smaller


def less_room(trial: Trial) -> Iterator[Trial]:
    """Without one of the VMs, and without the room that it takes where it is."""
    for vm in reversed(trial.initial.vms.values()):
        smaller = None if vm.host is None else _without(trial, vms={vm.id})
        if smaller is not None and vm.host is not None:
            host = smaller.initial.hosts[vm.host]
            left = {
                name: max(0, amount - vm.consumption.get(name, 0))
                for name, amount in host.capacity.items()
            }
            hosts = smaller.initial.hosts.but({host.id: host.but(capacity=left)})
            yield with_machines(smaller, hosts.values(), smaller.initial.vms.values())


def fewer_hosts(trial: Trial) -> Iterator[Trial]:
    """Without one of the hosts: with all that is there, or with another one in its place."""
    for host, residents in reversed(trial.initial.residents.items()):
        smaller = _without(trial, hosts={host}, vms=set(residents))
        if smaller is not None:
            yield smaller
    for host in reversed(trial.initial.hosts):
        for other in trial.initial.hosts:
            if host != other:
                yield _fused(trial, host, other)


def fewer_counted(trial: Trial) -> Iterator[Trial]:
    """With fewer of anything, and with a number that is one less: what is counted goes together."""
    numbers = {key: one for key, one in trial.demand.arguments.items() if isinstance(one, int)}
    for name, number in numbers.items():
        for kind in (fewer_vms, fewer_hosts, fewer_steps) if number > 0 else ():
            for one in kind(trial):
                arguments = {**one.demand.arguments, name: number - 1}
                yield replace(one, demand=replace(one.demand, arguments=arguments))


def with_machines(trial: Trial, hosts: Iterable[Host], vms: Iterable[Vm]) -> Trial:
    """The same trial with other machines, and without the links of hosts that are gone."""
    before = trial.initial
    cluster = before.inventory().but(hosts=tuple(hosts), vms=tuple(vms))
    initial = Snapshot.of(cluster, at_ms=before.at_ms, version=before.version)
    network = trial.network and trial.network.but(
        links=tuple(one for one in trial.network.links if one.host in (None, *initial.hosts))
    )
    return replace(trial, initial=initial, network=network)


def _runs(steps: tuple[Step, ...]) -> Iterator[frozenset[int]]:
    """The places of steps of one VM, or that switch one host, in a row; long ones first."""
    chains: dict[tuple[VmId | None, HostId | None], list[int]] = {}
    for place in sorted(range(len(steps)), key=lambda place: steps[place].start_ms):
        seen = steps[place].footprint
        chains.setdefault((seen.vm, seen.switched), []).append(place)
    for length in range(max(map(len, chains.values()), default=0), 0, -1):
        for chain in reversed(chains.values()):
            for first in reversed(range(len(chain) - length + 1)):
                yield frozenset(chain[first : first + length])


def _among_themselves(steps: Collection[Step]) -> tuple[Step, ...]:
    """Steps that wait for nobody else."""
    known = {step.id for step in steps}
    return tuple(step.but(after=tuple(one for one in step.after if one in known)) for step in steps)


def _without(
    trial: Trial, *, vms: Collection[VmId] = (), hosts: Collection[HostId] = ()
) -> Trial | None:
    """Without some machines and whatever touches them; nothing if the demand is about one."""
    demand = _renamed(trial.demand, "vms", dict.fromkeys(vms))
    demand = demand and _renamed(demand, "hosts", dict.fromkeys(hosts))
    if demand is None:
        return None
    seen = ((step, step.footprint) for step in trial.steps)
    steps = [one for one, by in seen if by.vm not in vms and not set(by.hosts) & set(hosts)]
    return with_machines(
        replace(trial, demand=demand, steps=_among_themselves(steps)),
        (host for name, host in trial.initial.hosts.items() if name not in hosts),
        (
            vm.but(ft_pair=None) if vm.ft_pair in vms else vm
            for name, vm in trial.initial.vms.items()
            if name not in vms
        ),
    )


def _fused(trial: Trial, host: HostId, other: HostId) -> Trial:
    """Without a host: all that is there or comes there does so on another one."""
    demand = _renamed(trial.demand, "hosts", {host: other})
    assert demand is not None, "only what goes can be missed"
    steps = [_elsewhere(step, host, other) for step in trial.steps]
    moving = [one for one in steps if not _goes_nowhere(one.action)]
    return with_machines(
        replace(trial, demand=demand, steps=_among_themselves(moving)),
        (one for name, one in trial.initial.hosts.items() if name != host),
        (vm.but(host=other) if vm.host == host else vm for vm in trial.initial.vms.values()),
    )


def _elsewhere(step: Step, host: HostId, other: HostId) -> Step:
    """A step on another host instead of one."""
    action = step.action
    named = {key: getattr(action, key, None) for key in ("host", "source", "target")}
    return step.but(action=action.but(**{key: other for key, on in named.items() if on == host}))


def _goes_nowhere(action: Action) -> bool:
    return isinstance(action, Move) and action.source == action.target


def _renamed(demand: Demand, domain: str, names: Mapping[Any, str | None]) -> Demand | None:
    """A demand with other names in its arguments, or without them; nothing if it needs one."""
    arguments = dict(demand.arguments)
    for parameter in demand.specification.constraints[demand.name].parameters:
        if domain in map(plain, names_in(parameter.domain)):
            arguments[parameter.name] = _with_names(arguments[parameter.name], names)
    return None if None in arguments.values() else replace(demand, arguments=arguments)


def _with_names(value: Any, names: Mapping[Any, str | None]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    found = ((old, _with_names(old, names)) for old in value)
    # A group that has lost its last member goes: a packing has none that are empty.
    return type(value)(new for old, new in found if new or not old)
