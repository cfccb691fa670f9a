"""Shrinking: the smallest trial that still shows the defect of a larger one.

The reductions remove steps, VMs, hosts and parts of the network, make arguments, machines and steps
plainer, and round times. Coarse reductions come first. Each one makes the trial smaller by
``TrialSize``, so shrinking ends. No reduction makes a trial that a file cannot hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, Self, TypeVar

from equipoise.adapters.targets.trial import Trial, with_machines
from equipoise.files.check import find_problems
from equipoise.model.action import Action, Allocate, Move
from equipoise.model.host import Host
from equipoise.model.plan import Step
from equipoise.model.problem.problem import CaseFile, Network, NetworkLink
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import Vm
from equipoise.spec.evaluate.domains import in_order
from equipoise.spec.language.syntax import names_in
from equipoise.spec.language.vocabulary import canonical_name
from equipoise.spec.requirement import Requirement
from equipoise.spec.specification import bind_arguments

M = TypeVar("M", bound=Host | Vm)
OneKind = TypeVar("OneKind", Host, Vm)
ShrunkCase = TypeVar("ShrunkCase")
SECOND_MS: Final = 1000


class TrialSize(NamedTuple):
    """The size of a trial, compared field by field: earlier fields count more.

    All fields are counts, so every sequence of smaller trials ends.
    """

    machines: int
    """The number of hosts and VMs."""
    steps: int
    network_parts: int
    """The number of switches and links, plus one for the network itself."""
    members: int
    """The number of members of all sets, lists and groups among the arguments."""
    numbers: int
    """The sum of the absolute values of all numbers in arguments and all amounts."""
    details: int
    """The number of fields that differ from bare machines and steps, of links below the maximum
    capacity and of switches with a limit."""
    odd_times: int
    """The number of times that are not whole seconds."""
    time_ms: int
    """The sum of all starts and ends."""

    @classmethod
    def of(cls, trial: Trial) -> Self:
        """Measure a trial."""
        machines: list[Host | Vm] = [*trial.initial.hosts.values(), *trial.initial.vms.values()]
        values = tuple(_parts(trial.demand.arguments.values()))
        times = [at_ms for step in trial.steps for at_ms in (step.start_ms, step.end_ms)]
        numbers = [abs(value) for value in values if isinstance(value, int)]
        numbers += [amount for machine in machines for amount in _amounts(machine).values()]
        actions = [step.action for step in trial.steps]
        numbers += [action.amount for action in actions if isinstance(action, Allocate)]
        details = [_details(machine) for machine in machines]
        details += [len(step.after) + (step.reason != "") for step in trial.steps]
        network = trial.network or Network()
        details += [switch.capacity_mbps is not None for switch in network.switches]
        details += [link.capacity_mbps < widest_mbps(network) for link in network.links]
        return cls(
            machines=len(machines),
            steps=len(trial.steps),
            network_parts=len(network.switches) + len(network.links) + (trial.network is not None),
            members=len(values) - len(trial.demand.arguments),
            numbers=sum(numbers),
            details=sum(details),
            odd_times=sum(at_ms % SECOND_MS > 0 for at_ms in times),
            time_ms=sum(times),
        )


def widest_mbps(network: Network) -> int:
    """The maximum capacity of a link."""
    return max((link.capacity_mbps for link in network.links), default=0)


def bare_machine(machine: M) -> M:
    """A machine with the same size and place, and defaults in all other fields."""
    # A bare host is on. The state of a VM depends on whether it has a host, so both stay.
    own = () if isinstance(machine, Host) else ("state", "host")
    kept = ("id", "cores", "mhz_per_core", "vcpus", "memory_mib", *own)
    fields = {name: getattr(machine, name) for name in kept if hasattr(machine, name)}
    return type(machine)(**fields)


def _amounts(machine: Host | Vm) -> Mapping[Any, int]:
    """The capacity of a host or the consumption of a VM of named resources."""
    return machine.capacity if isinstance(machine, Host) else machine.consumption


def _details(machine: Host | Vm) -> int:
    """The number of fields that differ from the bare machine; each entry of a map counts one."""
    bare, count = bare_machine(machine), 0
    for name in machine.__struct_fields__:
        value = getattr(machine, name)
        if value != getattr(bare, name):
            count += 1 + (len(value) if isinstance(value, Mapping) else 0)
    return count


def _parts(values: Any) -> Iterator[Any]:
    """All values, and the members of collections at any depth."""
    for value in values:
        yield value
        if isinstance(value, frozenset | tuple):
            yield from _parts(value)


def fewer_steps(trial: Trial) -> Iterator[Trial]:
    """Without one half of the steps, or without consecutive steps of one machine.

    Consecutive, because steps that move a VM away and back can only be removed together.
    """
    middle = len(trial.steps) // 2
    for kept in (trial.steps[:middle], trial.steps[middle:]) if middle else ():
        yield replace(trial, steps=_without_dangling_waits(kept))
    for run in _runs(trial.steps):
        kept = tuple(step for i, step in enumerate(trial.steps) if i not in run)
        yield replace(trial, steps=_without_dangling_waits(kept))


def fewer_vms(trial: Trial) -> Iterator[Trial]:
    """Without one VM, its steps and its name in arguments; skipped if an argument needs it."""
    for vm in reversed(trial.initial.vms):
        smaller = _without(trial, vms={vm})
        if smaller is not None:
            yield smaller


def less_capacity(trial: Trial) -> Iterator[Trial]:
    """Without one VM, and without the capacity that it consumes on its host."""
    for vm in reversed(trial.initial.vms.values()):
        smaller = None if vm.host is None else _without(trial, vms={vm.id})
        if smaller is not None and vm.host is not None:
            host = smaller.initial.hosts[vm.host]
            capacity = {
                name: max(0, amount - vm.consumption.get(name, 0))
                for name, amount in host.capacity.items()
            }
            hosts = smaller.initial.hosts.but({host.id: host.but(capacity=capacity)})
            yield with_machines(smaller, hosts.values(), smaller.initial.vms.values())


def fewer_hosts(trial: Trial) -> Iterator[Trial]:
    """Without one host: with its VMs removed, or with its VMs on another host."""
    for host, residents in reversed(trial.initial.residents.items()):
        smaller = _without(trial, hosts={host}, vms=set(residents))
        if smaller is not None:
            yield smaller
    for host in reversed(trial.initial.hosts):
        for other in trial.initial.hosts:
            if host != other:
                yield _merged_hosts(trial, host, other)


def fewer_and_lower_number(trial: Trial) -> Iterator[Trial]:
    """With fewer VMs, hosts or steps and a number that is one less.

    A number often counts such things, so both can only change together.
    """
    arguments_of = trial.demand.arguments.items()
    numbers = {name: value for name, value in arguments_of if isinstance(value, int)}
    for name, number in numbers.items():
        for kind in (fewer_vms, fewer_hosts, fewer_steps) if number > 0 else ():
            for smaller in kind(trial):
                arguments = {**smaller.demand.arguments, name: number - 1}
                yield replace(smaller, demand=replace(smaller.demand, arguments=arguments))


def _runs(steps: tuple[Step, ...]) -> Iterator[frozenset[int]]:
    """The indexes of consecutive steps of one VM or of power steps of one host, longest first."""
    chains: dict[tuple[VmId | None, HostId | None], list[int]] = {}
    for i in sorted(range(len(steps)), key=lambda i: steps[i].start_ms):
        footprint = steps[i].footprint
        chains.setdefault((footprint.vm, footprint.switched), []).append(i)
    for length in range(max(map(len, chains.values()), default=0), 0, -1):
        for chain in reversed(chains.values()):
            for first in reversed(range(len(chain) - length + 1)):
                yield frozenset(chain[first : first + length])


def _without_dangling_waits(steps: Collection[Step]) -> tuple[Step, ...]:
    """The steps without references to removed steps in ``after``."""
    ids = {step.id for step in steps}
    return tuple(
        step.but(after=tuple(other for other in step.after if other in ids)) for step in steps
    )


def _without(
    trial: Trial, *, vms: Collection[VmId] = (), hosts: Collection[HostId] = ()
) -> Trial | None:
    """Without some machines and their steps; ``None`` if the constraint needs one of them."""
    demand = _with_other_names(trial.demand, "vms", dict.fromkeys(vms))
    demand = demand and _with_other_names(demand, "hosts", dict.fromkeys(hosts))
    if demand is None:
        return None
    footprints = ((step, step.footprint) for step in trial.steps)
    steps = [
        step
        for step, footprint in footprints
        if footprint.vm not in vms and not set(footprint.hosts) & set(hosts)
    ]
    return with_machines(
        replace(trial, demand=demand, steps=_without_dangling_waits(steps)),
        (host for name, host in trial.initial.hosts.items() if name not in hosts),
        (
            vm.but(ft_pair=None) if vm.ft_pair in vms else vm
            for name, vm in trial.initial.vms.items()
            if name not in vms
        ),
    )


def _merged_hosts(trial: Trial, host: HostId, other: HostId) -> Trial:
    """Without one host: another host takes its place in VMs, steps and arguments."""
    demand = _with_other_names(trial.demand, "hosts", {host: other})
    assert demand is not None, "a replaced name is never missing"
    steps = [_on_other_host(step, host, other) for step in trial.steps]
    # A migration between the two merged hosts is no migration any more.
    moving = [step for step in steps if not _stays_put(step.action)]
    return with_machines(
        replace(trial, demand=demand, steps=_without_dangling_waits(moving)),
        (kept for name, kept in trial.initial.hosts.items() if name != host),
        (vm.but(host=other) if vm.host == host else vm for vm in trial.initial.vms.values()),
    )


def _on_other_host(step: Step, host: HostId, other: HostId) -> Step:
    """A copy of a step with another host in place of one."""
    action = step.action
    named = {key: getattr(action, key, None) for key in ("host", "source", "target")}
    return step.but(
        action=action.but(**{key: other for key, name in named.items() if name == host})
    )


def _stays_put(action: Action) -> bool:
    return isinstance(action, Move) and action.source == action.target


def _with_other_names(
    demand: Requirement, domain: str, names: Mapping[Any, str | None]
) -> Requirement | None:
    """A requirement with replaced or removed names; ``None`` if it needs a removed one."""
    arguments = dict(demand.arguments)
    for parameter in demand.specification.constraints[demand.name].parameters:
        if domain in map(canonical_name, names_in(parameter.domain)):
            arguments[parameter.name] = _substituted(arguments[parameter.name], names)
    return None if None in arguments.values() else replace(demand, arguments=arguments)


def _substituted(value: Any, names: Mapping[Any, str | None]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    pairs = ((old, _substituted(old, names)) for old in value)
    # A group that has lost its last member is removed: a packing has no empty groups.
    return type(value)(new for old, new in pairs if new or not old)


def smaller_arguments(trial: Trial) -> Iterator[Trial]:
    """One member or group less, or a number closer to 0."""
    for name, value in trial.demand.arguments.items():
        for smaller in _smaller(value):
            arguments = {**trial.demand.arguments, name: smaller}
            yield replace(trial, demand=replace(trial.demand, arguments=arguments))


def plainer_machines(trial: Trial) -> Iterator[Trial]:
    """All machines bare, or one field of one machine; both VMs of a pair together."""
    hosts, vms = trial.initial.hosts, trial.initial.vms
    yield with_machines(trial, map(bare_machine, hosts.values()), map(bare_machine, vms.values()))
    for host in hosts.values():
        for plainer_host in _plainer(host):
            yield with_machines(trial, hosts.but({host.id: plainer_host}).values(), vms.values())
    for vm in vms.values():
        for plainer_vm in _plainer(vm):
            yield with_machines(trial, hosts.values(), vms.but({vm.id: plainer_vm}).values())
        if vm.ft_pair is not None and vm.ft_pair in vms:
            pair = (vm, vms[vm.ft_pair])
            alone = vms.but({half.id: half.but(ft_pair=None) for half in pair})
            yield with_machines(trial, hosts.values(), alone.values())


def plainer_steps(trial: Trial) -> Iterator[Trial]:
    """One step that allocates less, waits for fewer others, or has no reason."""
    for i, step in enumerate(trial.steps):
        for plainer in _plainer_step(step):
            yield replace(trial, steps=(*trial.steps[:i], plainer, *trial.steps[i + 1 :]))


def _smaller(value: Any) -> Iterator[Any]:
    """Smaller values of the kind of an argument; none for text."""
    match value:
        case int():
            yield from _nearer_to_zero(value)
        case tuple():
            yield from (value[:i] + value[i + 1 :] for i in reversed(range(len(value))))
        case frozenset():
            for member in reversed(in_order(value)):
                rest = value - {member}
                yield rest
                groups = _smaller(member) if isinstance(member, frozenset) else ()
                yield from (rest | {group} for group in groups if group)


def _nearer_to_zero(number: int) -> Iterator[int]:
    """Numbers closer to 0: 0 itself, then half of the way, a quarter and so on, down to one."""
    sign, distance = (-1, -number) if number < 0 else (1, number)
    while distance:
        yield number - sign * distance
        distance //= 2


def _plainer(machine: OneKind) -> Iterator[OneKind]:
    """A machine with the default in one field, or with a smaller map in it."""
    bare = bare_machine(machine)
    for name in machine.__struct_fields__:
        value = getattr(machine, name)
        if value != getattr(bare, name):
            yield machine.but(**{name: getattr(bare, name)})
            if isinstance(value, Mapping):
                yield from (machine.but(**{name: smaller}) for smaller in _smaller_maps(value))


def _smaller_maps(entries: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, value in entries.items():
        yield {key: entry for key, entry in entries.items() if key != name}
        yield from ({**entries, name: smaller} for smaller in _smaller(value))


def _plainer_step(step: Step) -> Iterator[Step]:
    if isinstance(step.action, Allocate):
        for amount in _nearer_to_zero(step.action.amount):
            yield step.but(action=step.action.but(amount=amount))
    for after in _smaller(step.after):
        yield step.but(after=after)
    yield step.but(reason="")


def rounder_times(trial: Trial) -> Iterator[Trial]:
    """All times in whole seconds without gaps, or all early or short; then step by step."""
    steps = trial.steps
    times = sorted({at_ms for step in steps for at_ms in (step.start_ms, step.end_ms)})
    ranks = {at_ms: rank * SECOND_MS for rank, at_ms in enumerate(times)}
    yield replace(
        trial,
        steps=tuple(
            step.but(start_ms=ranks[step.start_ms], end_ms=ranks[step.end_ms]) for step in steps
        ),
    )
    yield replace(trial, steps=tuple(_starting_at(step, 0) for step in steps))
    yield replace(trial, steps=tuple(_lasting(step, SECOND_MS) for step in steps))
    for i, step in enumerate(steps):
        for rounder in _rounder(step):
            yield replace(trial, steps=(*steps[:i], rounder, *steps[i + 1 :]))


def _rounder(step: Step) -> Iterator[Step]:
    yield _starting_at(step, 0)
    if step.start_ms > SECOND_MS:
        yield _starting_at(step, step.start_ms - SECOND_MS)
    yield _lasting(step, SECOND_MS)
    if step.duration_ms > SECOND_MS:
        yield _lasting(step, step.duration_ms - SECOND_MS)


def _starting_at(step: Step, at_ms: int) -> Step:
    return step.but(start_ms=at_ms, end_ms=at_ms + step.duration_ms)


def _lasting(step: Step, duration_ms: int) -> Step:
    return step.but(end_ms=step.start_ms + duration_ms)


def plainer_network(trial: Trial) -> Iterator[Trial]:
    """Without a network, or with a network that is plainer at one point or everywhere."""
    if trial.network is None:
        return
    yield replace(trial, network=None)
    for kind in (_fewer_switches, _fewer_links, _wider_links):
        yield from (replace(trial, network=plainer) for plainer in kind(trial.network))


def _fewer_switches(network: Network) -> Iterator[Network]:
    """Without one switch: its links lead to another switch."""
    for switch in reversed(network.switches):
        for other in network.switches:
            if switch != other:
                yield _merged_switches(network, switch.id, other.id)


def _merged_switches(network: Network, removed: ResourceName, other: ResourceName) -> Network:
    def moved(name: ResourceName) -> ResourceName:
        return other if name == removed else name

    links = [
        link.but(switch=moved(link.switch), to=None if link.to is None else moved(link.to))
        for link in network.links
    ]
    return Network(
        switches=tuple(switch for switch in network.switches if switch.id != removed),
        # A link between the two merged switches would lead to itself.
        links=tuple(link for link in links if link.switch != link.to),
    )


def _fewer_links(network: Network) -> Iterator[Network]:
    """Without one link between switches; every host needs its link."""
    for link in reversed(network.links):
        if link.to is not None:
            yield network.but(links=tuple(other for other in network.links if other != link))


def _wider_links(network: Network) -> Iterator[Network]:
    """The maximum capacity for all links and no limits of switches, or for one of them."""
    capacity = widest_mbps(network)
    unlimited = tuple(switch.but(capacity_mbps=None) for switch in network.switches)
    wide = tuple(link.but(capacity_mbps=capacity) for link in network.links)
    yield Network(switches=unlimited, links=wide)
    for i, switch in enumerate(unlimited):
        yield network.but(switches=(*network.switches[:i], switch, *network.switches[i + 1 :]))
    for i, link in enumerate(wide):
        links: tuple[NetworkLink, ...] = (*network.links[:i], link, *network.links[i + 1 :])
        yield network.but(links=links)


_REDUCTIONS: tuple[Callable[[Trial], Iterator[Trial]], ...] = (
    fewer_steps,
    fewer_vms,
    less_capacity,
    fewer_hosts,
    fewer_and_lower_number,
    plainer_network,
    smaller_arguments,
    rounder_times,
    plainer_machines,
    plainer_steps,
)


def shrink(trial: Trial, keeps: Callable[[Trial], bool], asks_max: int = 2_000) -> Trial:
    """Apply single reductions as long as ``keeps`` accepts the result; return the last trial.

    No single reduction of the result is accepted, unless ``asks_max`` calls were not enough.
    Exceptions of ``keeps`` are not caught.
    """
    return shrink_by(reductions, trial, keeps, asks_max)


def shrink_by(
    reduce: Callable[[ShrunkCase], Iterator[ShrunkCase]],
    case: ShrunkCase,
    keeps: Callable[[ShrunkCase], bool],
    asks_max: int = 2_000,
) -> ShrunkCase:
    """Shrink a case of any kind by its reductions, as ``shrink`` does a trial."""
    smaller = reduce(case)
    for _ in range(asks_max):
        candidate = next(smaller, None)
        if candidate is None:
            break
        if keeps(candidate):
            # Start again with the coarse reductions: after a small one, large parts may be
            # removable.
            case, smaller = candidate, reduce(candidate)
    return case


def reductions(trial: Trial) -> Iterator[Trial]:
    """All trials that are one reduction away, coarse reductions first, in a fixed order."""
    size, problems = TrialSize.of(trial), _file_problems(trial)
    for kind in _REDUCTIONS:
        for candidate in kind(trial):
            if TrialSize.of(candidate) < size and _file_problems(candidate) <= problems:
                yield candidate


def _file_problems(trial: Trial) -> frozenset[str]:
    """The problems of a file with this trial: some trials have invalid parts on purpose."""
    constraint = trial.demand.specification.constraints[trial.demand.name]
    cluster = trial.initial.inventory()
    problems = find_problems(CaseFile(cluster=cluster, plan=trial.plan, network=trial.network))
    _, argument_problems = bind_arguments(constraint, trial.demand.arguments, trial.initial)
    return frozenset(problem.what for problem in (*problems, *argument_problems))
