"""How things stand with the rules: who is where, and what is wrong with that.

A plain book that a search writes moves into and takes them back from. It knows every problem that
is open: a VM that must not be where it is, VMs that must not be together or apart, a host that has
promised more than it has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from equipoise.balance.rules import FT, Bar, Group, Rules
from equipoise.balance.stuck import stuck_vms
from equipoise.model.host import Host, HostState
from equipoise.model.policy import HostOverride
from equipoise.model.quantity import HostId, RuleId, VmId
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import Vm, VmState


class Problem(NamedTuple):
    """Something that is wrong."""

    kind: str
    """``out``: a VM is nowhere or must leave; ``apart``, ``together``: a group; ``unlike``: a pair
    on hosts that do not fit each other; ``full``: a host."""
    subject: str
    """The VM or the host, or the number of the group."""


class Standing:
    """Who is where. ``place`` keeps the open problems right, there and back."""

    def __init__(self, snapshot: Snapshot, rules: Rules, newcomers: Iterable[Vm] = ()) -> None:
        self.snapshot, self.rules = snapshot, rules
        self.vms: dict[VmId, Vm] = {
            vm.id: vm for vm in snapshot.vms.values() if vm.state is VmState.RUNNING
        }
        new = {vm.id: vm for vm in newcomers}
        self.where: dict[VmId, HostId | None] = {vm.id: vm.host for vm in self.vms.values()}
        self.vms |= new
        self.where |= dict.fromkeys(new)
        self.fixed = stuck_vms(snapshot).keys() - new.keys()
        self.names = _resources(self.vms.values())
        self.free = {host.id: _room(host, self.names) for host in snapshot.hosts.values()}
        self._pressure: dict[HostId, float] | None = None
        self.residents: dict[HostId, dict[VmId, None]] = {host: {} for host in snapshot.hosts}
        self.closed = _closed(snapshot)
        self._bars: dict[VmId, list[Bar]] = defaultdict(list)
        for bar in rules.bars:
            for vm in bar.vms:
                self._bars[vm].append(bar)
        self._apart = _indexed(rules.apart)
        self._together = _indexed(rules.together)
        self.needs = {vm: _need(one, self.names) for vm, one in self.vms.items()}
        for vm, host in self.where.items():
            if host is not None:
                self.hold(vm, host)
        for one, at in _promised(snapshot):
            needs = _need(one, self.names)
            self.free[at] = [a - b for a, b in zip(self.free[at], needs, strict=True)]
        self.problems: dict[Problem, list[VmId]] = {}
        """What is wrong, each with the VMs of which one must move to mend it."""
        self.given_up: set[Problem] = set()

    def open_hosts(self) -> list[HostId]:
        """The hosts that VMs may come to."""
        return [host for host in self.snapshot.hosts if host not in self.closed]

    def barred_by(self, vm: VmId, host: HostId) -> list[RuleId]:
        """The rules that bar a VM from a host."""
        return [bar.rule for bar in self._bars.get(vm, ()) if host in bar.hosts]

    def lacks(self, vm: VmId, host: HostId) -> list[tuple[str, float, float]]:
        """What a host has not enough of for a VM: name, need and what is free."""
        return [
            (name, need, free)
            for name, need, free in zip(self.names, self.needs[vm], self.free[host], strict=True)
            if need > max(0, free)
        ]

    def clashes(self, vm: VmId, host: HostId) -> list[tuple[RuleId, VmId]]:
        """Those on a host that a VM must be apart from, and by which rule."""
        there = self.residents[host]
        return [
            (self.rules.apart[number].rule, other)
            for number in self._apart.get(vm, ())
            for other in self.rules.apart[number].vms
            if other != vm and other in there
        ]

    def unlike(self, vm: VmId, host: HostId) -> bool:
        """Whether a host does not fit the one where the other half of a pair is."""
        pair = self.vms[vm].ft_pair
        there = None if pair is None else self.where.get(pair)
        if there is None or not self.rules.like:
            return False
        return self._labels(there) != self._labels(host)

    def strays(self, vm: VmId, host: HostId) -> int:
        """How many a VM must be together with that would be elsewhere."""
        return sum(
            self.where.get(other) not in (None, host)
            for number in self._together.get(vm, ())
            for other in self.rules.together[number].vms
            if other != vm
        )

    def left_behind(self, vm: VmId, host: HostId) -> list[RuleId]:
        """The rules by which a VM must not be without others that would be elsewhere."""
        return [
            self.rules.together[number].rule
            for number in self._together.get(vm, ())
            if any(
                self.where.get(other) not in (None, host)
                for other in self.rules.together[number].vms
                if other != vm
            )
        ]

    def exceeds(self, vm: VmId, host: HostId) -> str:
        """What a VM needs more of than a host has in all; nothing if there is no such thing."""
        room = _room(self.snapshot.hosts[host], self.names)
        short = (
            name
            for name, need, most in zip(self.names, self.needs[vm], room, strict=True)
            if need > most
        )
        return next(short, "")

    def obstacles(self, vm: VmId, host: HostId) -> bool:
        """Whether anything keeps a VM from a host as things stand."""
        return bool(
            self.vms[vm].vcpus > self.snapshot.hosts[host].cores
            or self.barred_by(vm, host)
            or self.lacks(vm, host)
            or self.clashes(vm, host)
            or self.strays(vm, host)
            or self.unlike(vm, host)
        )

    def place(self, vm: VmId, host: HostId | None) -> HostId | None:
        """Let a VM be on a host, or nowhere; say where it was."""
        before = self.where[vm]
        if before is not None:
            self.release(vm, before)
        if host is not None:
            self.hold(vm, host)
        self.where[vm] = host
        for problem in self._concerned(vm, before, host):
            self.look(problem)
        return before

    def members(self, problem: Problem) -> list[VmId]:
        """The VMs of which one must move to mend a problem."""
        known = self.problems.get(problem)
        return self._members(problem) if known is None else known

    def _members(self, problem: Problem) -> list[VmId]:
        match problem.kind:
            case "out":
                return [VmId(problem.subject)]
            case "full":
                return list(self.residents[HostId(problem.subject)])
            case "apart":
                return self._crowded(self.rules.apart[int(problem.subject)])
            case "together":
                group = self.rules.together[int(problem.subject)]
                return [vm for vm in group.vms if self.where.get(vm) is not None]
            case _:
                vm = VmId(problem.subject)
                pair = self.vms[vm].ft_pair
                return [vm] if pair is None else [vm, pair]

    def least_moves(self) -> int:
        """How many moves it takes at the least to mend what is open."""
        counted: set[VmId] = set()
        moves = 0
        for problem in self.problems:
            if problem.kind == "out" and problem not in self.given_up:
                counted.add(VmId(problem.subject))
                moves += self.where[VmId(problem.subject)] is not None
        for problem, some in self.problems.items():
            if problem.kind == "out" or problem in self.given_up:
                continue
            if counted.isdisjoint(some):
                counted.update(some)
                moves += self._at_least(problem, some)
        return moves

    def _at_least(self, problem: Problem, some: list[VmId]) -> int:
        if problem.kind == "apart":
            return len(some) - len({self.where[vm] for vm in some})
        if problem.kind == "together":
            hosts = [self.where[vm] for vm in some]
            return len(hosts) - max(map(hosts.count, hosts))
        return 1

    def _crowded(self, group: Group) -> list[VmId]:
        by_host: dict[HostId, list[VmId]] = defaultdict(list)
        for vm in group.vms:
            host = self.where.get(vm)
            if host is not None:
                by_host[host].append(vm)
        return [vm for vms in by_host.values() if len(vms) > 1 for vm in vms]

    def _labels(self, host: HostId) -> tuple[str, ...]:
        labels = self.snapshot.hosts[host].labels
        return tuple(labels.get(key, "") for key in self.rules.like)

    def hold(self, vm: VmId, host: HostId) -> None:
        """Take room on a host for a VM."""
        free, (cpu_mhz, memory_mib, *more) = self.free[host], self.needs[vm]
        free[0] -= cpu_mhz
        free[1] -= memory_mib
        for place, need in enumerate(more, start=2):
            free[place] -= need
        self.residents[host][vm] = None
        if self._pressure is not None:
            self._pressure[host] += self._weight(vm, host)

    def release(self, vm: VmId, host: HostId) -> None:
        """Give up the room of a VM on a host."""
        free = self.free[host]
        for place, need in enumerate(self.needs[vm]):
            free[place] += need
        del self.residents[host][vm]
        if self._pressure is not None:
            self._pressure[host] -= self._weight(vm, host)

    @property
    def pressure(self) -> Mapping[HostId, float]:
        """How much of each host is asked for, CPU and memory together; known once asked for."""
        if self._pressure is None:
            self._pressure = {
                host: sum(self._weight(vm, host) for vm in vms)
                for host, vms in self.residents.items()
            }
        return self._pressure

    def _weight(self, vm: VmId, host: HostId) -> float:
        one, there = self.vms[vm].demand, self.snapshot.hosts[host]
        cpu = one.cpu_mhz / max(1, there.usable_cpu_mhz)
        return cpu + one.memory_mib / max(1, there.usable_memory_mib)

    def find_problems(self) -> None:
        """Find all that is wrong; what needs most room comes first, as it fits in fewest places."""
        nowhere = [vm for vm, host in self.where.items() if host is None]
        leaving = [
            vm
            for host in self.snapshot.hosts.values()
            if host.requested is not None
            for vm in self.residents[host.id]
        ]
        for vm in sorted(
            {*nowhere, *leaving, *(vm for vm in self._bars if vm in self.where)},
            key=lambda vm: (-sum(self.needs[vm]), vm),
        ):
            self.look(Problem("out", vm))
        for one in self.vms.values() if self.rules.like else ():
            if one.ft_pair is not None:
                self.look(_unlike(one.id, one.ft_pair))
        for number in range(len(self.rules.apart)):
            self.look(Problem("apart", str(number)))
        for number in range(len(self.rules.together)):
            self.look(Problem("together", str(number)))
        for host in self.snapshot.hosts:
            self.look(Problem("full", host))

    def _concerned(
        self, vm: VmId, before: HostId | None, after: HostId | None
    ) -> Iterator[Problem]:
        yield Problem("out", vm)
        pair = self.vms[vm].ft_pair
        if pair is not None:
            yield _unlike(vm, pair)
        yield from (Problem("apart", str(number)) for number in self._apart.get(vm, ()))
        yield from (Problem("together", str(number)) for number in self._together.get(vm, ()))
        yield from (Problem("full", host) for host in (before, after) if host is not None)

    def look(self, problem: Problem) -> None:
        """Note whether there is a problem."""
        if self._is_so(problem):
            self.problems[problem] = self._members(problem)
        else:
            self.problems.pop(problem, None)

    def _is_so(self, problem: Problem) -> bool:
        match problem.kind:
            case "out":
                vm = VmId(problem.subject)
                host = self.where[vm]
                return host is None or not self._may_stay(vm, host)
            case "full":
                return min(self.free[HostId(problem.subject)]) < 0
            case "apart":
                return bool(self._crowded(self.rules.apart[int(problem.subject)]))
            case "together":
                group = self.rules.together[int(problem.subject)]
                hosts = {self.where.get(vm) for vm in group.vms} - {None}
                return len(hosts) > 1
            case _:
                vm = VmId(problem.subject)
                host = self.where.get(vm)
                return vm in self.vms and host is not None and self.unlike(vm, host)

    def _may_stay(self, vm: VmId, host: HostId) -> bool:
        there = self.snapshot.hosts[host]
        leaves = there.state is HostState.ON and there.requested is not None
        return (self.vms[vm].agent or not leaves) and not self.barred_by(vm, host)


def _unlike(vm: VmId, pair: VmId) -> Problem:
    """One problem for both halves."""
    return Problem("unlike", min(vm, pair))


def _closed(snapshot: Snapshot) -> dict[HostId, str]:
    """The hosts that nobody may come to, and why."""
    overrides = snapshot.settings.balance.hosts
    found = {}
    for host in snapshot.hosts.values():
        if host.state is not HostState.ON:
            found[host.id] = f"it is {_said(host.state)}"
        elif host.requested is not None:
            found[host.id] = f"it is to go into {host.requested}"
        elif min(host.usable_cpu_mhz, host.usable_memory_mib) <= 0:
            found[host.id] = "it has nothing to give"
        elif host.id in overrides:
            off = overrides[host.id] is HostOverride.OFF
            found[host.id] = f"it is {'left alone' if off else 'closed'} by the balance policy"
    return found


def _promised(snapshot: Snapshot) -> Iterator[tuple[Vm, HostId]]:
    """Who has been promised room on a host without running there: those on their way to it, and
    agents that sleep."""
    for vm in snapshot.vms.values():
        if vm.agent and vm.state is VmState.SLEEPING and vm.host is not None:
            yield vm, vm.host
    for running in snapshot.in_flight.values():
        seen = running.step.footprint
        busy = None if seen.vm is None else snapshot.vms.get(seen.vm)
        if busy is None or seen.target is None or seen.target == busy.host:
            continue
        if seen.target in snapshot.hosts:
            yield busy, seen.target


def _said(state: HostState) -> str:
    return "failed" if state is HostState.FAILED else f"in {state}"


def _resources(vms: Iterable[Vm]) -> tuple[str, ...]:
    some = [vm.consumption for vm in vms if vm.consumption]
    named = sorted({name for one in some for name, amount in one.items() if amount})
    return ("MHz of CPU", "MiB of memory", *named)


def _room(host: Host, names: tuple[str, ...]) -> list[float]:
    capacity = {str(name): amount for name, amount in host.capacity.items()}
    more = (capacity.get(name, 0) for name in names[2:])
    return [host.usable_cpu_mhz, host.usable_memory_mib, *more]


def _need(vm: Vm, names: tuple[str, ...]) -> tuple[float, ...]:
    held = (vm.cpu.reservation_mhz, vm.memory.reservation_mib)
    if not vm.consumption:
        return held + (0,) * (len(names) - 2)
    consumed = {str(name): amount for name, amount in vm.consumption.items()}
    return (*held, *(consumed.get(name, 0) for name in names[2:]))


def _indexed(groups: tuple[Group, ...]) -> dict[VmId, list[int]]:
    found: dict[VmId, list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        for vm in group.vms:
            found[vm].append(number)
    return found


def rules_of(standing: Standing, problem: Problem) -> list[RuleId]:
    """The rules that a problem is about."""
    match problem.kind:
        case "apart":
            rule = standing.rules.apart[int(problem.subject)].rule
            return [rule, *standing.rules.ft_apart] if rule == FT else [rule]
        case "together":
            return [standing.rules.together[int(problem.subject)].rule]
        case "unlike":
            return list(standing.rules.ft_alike)
        case "out":
            vm = VmId(problem.subject)
            host = standing.where[vm]
            return [] if host is None else standing.barred_by(vm, host)
        case _:
            return []
