"""Rule repair by brute force: tries every placement and takes the one with the fewest moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, permutations, product

from equipoise.model.host import Host, HostState
from equipoise.model.policy.balance import HostOverride, VmOverride
from equipoise.model.quantity import HostId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState
from plain_limits import memory_for_sizes, vcpus_for_sizes

Placing = Mapping[VmId, HostId]


def fewest_moves(state: Snapshot, *, in_turn: bool = False) -> int | None:
    """How many VMs have to move so that all is well; nothing if no placement is.

    With ``in_turn``, each of them must find room when its turn comes, in some order.
    """
    now = placing_of(state)
    choices = [list(_choices(state, state.vms[vm])) for vm in now]
    placings = (dict(zip(now, hosts, strict=True)) for hosts in product(*choices))
    well = [placing for placing in placings if all_is_well(state, placing)]
    well.sort(key=lambda placing: len(moved(now, placing)))
    good = (candidate for candidate in well if not in_turn or can_be_made(state, candidate))
    return next((len(moved(now, candidate)) for candidate in good), None)


def moved(now: Placing, placing: Placing) -> list[VmId]:
    """Who is elsewhere."""
    return [vm for vm, host in placing.items() if host != now[vm]]


def can_be_made(state: Snapshot, placing: Placing) -> bool:
    """Whether the VMs can move one after the other, in some order, each into room that is free."""
    now = placing_of(state)
    return any(_is_a_way(state, now, placing, turns) for turns in permutations(moved(now, placing)))


def _is_a_way(state: Snapshot, now: Placing, placing: Placing, turns: Iterable[VmId]) -> bool:
    where = dict(now)
    for name in turns:
        vm, source = state.vms[name], where[name]
        where[name] = placing[name]
        host = state.hosts[placing[name]]
        pair = None if vm.ft_pair is None else where.get(vm.ft_pair)
        if pair == host.id or not _takes(state, vm, host, where):
            return False
        assert source != host.id
    return True


def _takes(state: Snapshot, vm: Vm, host: Host, where: Placing) -> bool:
    """Whether a host has what a VM that has come needs; what it needs nothing of does not count."""
    free = _free(state, host, where)
    needs = {"cpu": vm.cpu.reservation_mhz, "memory": vm.memory.reservation_mib}
    needs |= {"its size": vm.memory_mib, "its vCPUs": vm.vcpus}
    needs |= {str(name): amount for name, amount in vm.consumption.items()}
    return all(free.get(name, 0) >= 0 for name, need in needs.items() if need > 0)


def placing_of(state: Snapshot) -> dict[VmId, HostId]:
    """Where the running VMs are."""
    return {
        vm.id: vm.host
        for vm in state.vms.values()
        if vm.state is VmState.RUNNING and vm.host is not None
    }


def all_is_well(state: Snapshot, placing: Placing) -> bool:
    """Whether every rule holds, every host has what it promised and those to be left are empty."""
    return (
        all(_holds(rule, state, placing) for rule in state.settings.rules if rule.hard)
        and all(_has_room(state, host, placing) for host in state.hosts.values())
        and all(_is_left(state, host, placing) for host in state.hosts.values())
        and not any(placing[vm] == placing[other] for vm, other in _pairs(state, placing))
    )


def may_move(state: Snapshot, vm: Vm) -> bool:
    """Whether a VM may be moved at all."""
    assert vm.host is not None
    host, policy = state.hosts[vm.host], state.settings.balance
    left_alone = policy.hosts.get(host.id) is HostOverride.OFF and host.requested is None
    return not (
        vm.agent
        or vm.state is not VmState.RUNNING
        or left_alone
        or policy.vms.get(vm.id) is VmOverride.OFF
        or any(running.step.footprint.vm == vm.id for running in state.in_flight.values())
    )


def may_come(state: Snapshot, host: Host) -> bool:
    """Whether VMs may come to a host."""
    free = host.state is HostState.ON and host.requested is None
    return free and host.id not in state.settings.balance.hosts


def _choices(state: Snapshot, vm: Vm) -> Iterator[HostId]:
    assert vm.host is not None
    yield vm.host
    if may_move(state, vm):
        for host in state.hosts.values():
            if host.id != vm.host and may_come(state, host) and vm.vcpus <= host.cores:
                yield host.id


def _pairs(state: Snapshot, placing: Placing) -> Iterator[tuple[VmId, VmId]]:
    for vm in placing:
        other = state.vms[vm].ft_pair
        if other is not None and other in placing:
            yield vm, other


def _has_room(state: Snapshot, host: Host, placing: Placing) -> bool:
    return min(_free(state, host, placing).values()) >= 0


def _free(state: Snapshot, host: Host, placing: Placing) -> dict[str, int]:
    """What is left of a host, less than nothing if more is promised than it has."""
    here = [
        vm
        for vm in state.vms.values()
        if placing.get(vm.id) == host.id or (vm.agent and vm.host == host.id)
    ]
    for running in state.in_flight.values():  # who is on the way holds room where it goes to
        seen = running.step.footprint
        if seen.target == host.id and seen.vm is not None and placing.get(seen.vm) != host.id:
            here.append(state.vms[seen.vm])
    named = dict.fromkeys(name for vm in here for name in vm.consumption)
    return {
        "cpu": host.usable_cpu_mhz - sum(vm.cpu.reservation_mhz for vm in here),
        "memory": host.usable_memory_mib - sum(vm.memory.reservation_mib for vm in here),
        "its size": memory_for_sizes(host) - sum(vm.memory_mib for vm in here),
        "its vCPUs": vcpus_for_sizes(host) - sum(vm.vcpus for vm in here),
        **{
            str(name): host.capacity.get(name, 0) - sum(vm.consumption.get(name, 0) for vm in here)
            for name in named
        },
    }


def _is_left(state: Snapshot, host: Host, placing: Placing) -> bool:
    """Whether only agents are on hosts that are to be switched."""
    if host.requested is None or host.state is not HostState.ON:
        return True
    asleep = {vm.id: vm.host for vm in state.vms.values() if vm.state is VmState.SLEEPING}
    there = {**asleep, **placing}
    return all(at != host.id or state.vms[vm].agent for vm, at in there.items())


def _holds(rule: Rule, state: Snapshot, placing: Placing) -> bool:
    match rule:
        case KeepApart():
            return _are_apart(rule.vms, placing)
        case KeepTogether():
            return _are_together(rule.vms, placing)
        case StayWithin():
            return _are_within(rule.vms, set(rule.hosts), placing)
        case StayOff():
            return _are_within(rule.vms, state.hosts.keys() - set(rule.hosts), placing)
        case Satisfy():
            return _is_satisfied(rule, state, placing)


def _is_satisfied(rule: Satisfy, state: Snapshot, placing: Placing) -> bool:
    hosts, vms = _names(rule, "ns"), [*_names(rule, "vs"), *_names(rule, "v")]
    match rule.constraint:
        case "Spread":
            return _are_apart(vms, placing)
        case "Gather":
            return _are_together(vms, placing)
        case "Fence":
            return _are_within(vms, set(hosts), placing)
        case "Ban":
            return _are_within(vms, state.hosts.keys() - set(hosts), placing)
        case "FailoverHosts":
            return all(host not in hosts or state.vms[vm].agent for vm, host in placing.items())
        case "FtApart":
            return not any(placing[vm] == placing[other] for vm, other in _pairs(state, placing))
        case "FtCompatible":
            (key,) = _names(rule, "key")
            return all(
                state.hosts[placing[vm]].labels.get(key) == state.hosts[placing[other]].labels[key]
                for vm, other in _pairs(state, placing)
            )
        case other:
            raise AssertionError(other)


def _names(rule: Satisfy, argument: str) -> list[str]:
    value = rule.arguments.get(argument, ())
    assert not isinstance(value, int)
    return [value] if isinstance(value, str) else [str(item) for item in value]


def _are_apart(vms: Iterable[str], placing: Placing) -> bool:
    hosts = [placing[VmId(vm)] for vm in vms if vm in placing]
    return all(host != other for host, other in combinations(hosts, 2))


def _are_together(vms: Iterable[str], placing: Placing) -> bool:
    return len({placing[VmId(vm)] for vm in vms if vm in placing}) <= 1


def _are_within(vms: Iterable[str], hosts: Iterable[str], placing: Placing) -> bool:
    allowed = set(hosts)
    return all(placing[VmId(vm)] in allowed for vm in vms if vm in placing)
