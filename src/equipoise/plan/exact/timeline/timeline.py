"""The timeline: what may happen to every VM and host, and when.

One action on a VM at a time, and hosts that are switched once at the most. What else the machines
demand, and that there is room, ``room`` sees to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import gcd
from typing import Any

from equipoise.model.host import Host, HostState
from equipoise.model.problem.durations import Durations
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.formula.values import one_of, options_of
from equipoise.plan.exact.solver.circuit import NO, YES, Circuit, Shape, Truth, as_number, total
from equipoise.plan.exact.solver.number import Number
from equipoise.plan.exact.task import Task
from equipoise.plan.exact.timeline.course import (
    MOVES,
    Course,
    HostCourse,
    Leg,
    Station,
    switch,
    ways,
)
from equipoise.plan.exact.timeline.moves import order_moves, ways_to_move
from equipoise.plan.exact.timeline.reach import Reach, Unreachable
from equipoise.plan.exact.timeline.routes import Routes


class Timeline:
    """Courses for everybody who may do something. Whoever is not in them stays as he is."""

    def __init__(self, circuit: Circuit, task: Task, reach: Reach) -> None:
        self.circuit = circuit
        self.task = task
        self.snapshot = task.snapshot
        self.reach = reach
        self._durations = Durations(task.problem, task.snapshot)
        network = task.problem.network
        self.routes = None if network is None else Routes(network)
        self.switches: dict[HostId, HostCourse] = {}
        self.courses: dict[VmId, Course] = {}
        self.unit_ms = 1
        self.horizon = 0
        self._lengths: dict[Leg, tuple[tuple[int, Truth], ...]] = {}
        self._count = 0
        self._lay_out()
        self._set_clock()
        for course in self.courses.values():
            self._time_course(course)
        for one in self.switches.values():
            self._time_leg(one.leg, 0)

    def legs(self) -> Iterator[Leg]:
        """Every action that may be part of the plan."""
        for course in self.courses.values():
            yield from (leg for leg in course.legs if leg.by_host is None)
        yield from (one.leg for one in self.switches.values())

    def shape(self, leg: Leg) -> Shape:
        """When an action starts, how long it takes and when it ends, if it happens."""
        ends = leg.start + leg.size if isinstance(leg.size, int) else leg.end
        return leg.start, leg.size, ends

    def names(self, kind: str) -> frozenset[Any]:
        """The names of all VMs or of all hosts."""
        return self._names[kind]

    @cached_property
    def _names(self) -> dict[str, frozenset[Any]]:
        return {"vms": frozenset(self.snapshot.vms), "hosts": frozenset(self.snapshot.hosts)}

    def hosts_of(self, courses: Iterable[Course]) -> frozenset[HostId]:
        """The hosts that may be switched, and those that some VMs may ever be on."""
        found: set[HostId] = set(self.switches)
        for course in courses:
            for station in course.stations:
                found.update(host for host, _ in possible(station))
        return frozenset(found)

    @cached_property
    def arrivals(self) -> Mapping[HostId, list[Leg]]:
        """The actions that may lead to each host."""
        found: dict[HostId, list[Leg]] = {}
        for leg in self.legs():
            for host in options_of(leg.target):
                if host is not None:
                    found.setdefault(host, []).append(leg)
        return found

    def touching(self, host: HostId) -> list[tuple[Leg, Truth]]:
        """The actions that may touch a host, with the truth that they do if they happen."""
        return self._touching.get(host, [])

    @cached_property
    def _touching(self) -> Mapping[HostId, list[tuple[Leg, Truth]]]:
        found: dict[HostId, list[tuple[Leg, Truth]]] = {}
        for leg in self.legs():
            touched: dict[HostId | None, list[Truth]] = {}
            for place in (leg.source, leg.target, leg.switched):
                for host, truth in options_of(place).items():
                    touched.setdefault(host, []).append(truth)
            for host, truths in touched.items():
                if host is not None:
                    found.setdefault(host, []).append((leg, self.circuit.any(truths)))
        return found

    def _leg(self, kind: ActionKind, **known: Any) -> Leg:
        self._count += 1
        return Leg(self._count, kind, **known)

    # Who may do what

    def _lay_out(self) -> None:
        for host in self.snapshot.hosts.values():
            self._lay_out_host(host)
        for vm in self.snapshot.vms.values():
            if vm.agent:
                self._lay_out_agent(vm)
            else:
                self._lay_out_vm(vm)

    def _lay_out_host(self, host: Host) -> None:
        claims = self.task.host_goals.get(host.id, [])
        wanted = {claim.state for claim in claims}
        if len(wanted) > 1:
            raise Unreachable(tuple(claims), f"{host.id} cannot be both")
        after = wanted.pop() if wanted else self._free_state(host)
        if after is None or after is host.state:
            return
        kind = switch(host.state, after)
        if kind is None:
            why = f"{host.id} is {host.state}, and no action makes it {after}"
            raise Unreachable(tuple(claims), why)
        there = YES if claims else self.circuit.truth()
        self.circuit.hint(as_number(there), 0)  # look first at what can be done without it
        leg = self._leg(kind, switched=host.id, there=there)
        self._lengths[leg] = ((self._durations.host_ms(kind, host.id), there),)
        self.switches[host.id] = HostCourse(host.id, host.state, after, leg)

    def _free_state(self, host: Host) -> HostState | None:
        """What a host of which nobody says what it is to become may be switched to."""
        if host.state is HostState.STANDBY:
            return HostState.ON
        if host.state is HostState.ON and self.task.may_sleep(host.id):
            return HostState.STANDBY
        return None

    def _lay_out_agent(self, vm: Vm) -> None:
        claims = self.task.vm_goals.get(vm.id, [])
        course = None if vm.host is None else self.switches.get(vm.host)
        after = vm.state
        if course is not None:
            after = VmState.RUNNING if course.after is HostState.ON else VmState.SLEEPING
        for claim in claims:
            if claim.state not in (vm.state, after):
                about_host = () if vm.host is None else self.task.host_goals.get(vm.host, ())
                why = f"{vm.id} is an agent of {vm.host} and goes with it"
                raise Unreachable((claim, *about_host), why)
            if course is not None and vm.state is not after:
                held = course.leg.there if claim.state is after else -course.leg.there
                self.circuit.require(held)
        if course is None or after is vm.state:
            return
        follows = self._leg(course.leg.kind, vm=vm.id, there=course.leg.there, by_host=course.leg)
        stations = [Station(one, vm.host, vm.consumption) for one in (vm.state, after)]
        self.courses[vm.id] = Course(vm.id, stations, [follows])

    def _lay_out_vm(self, vm: Vm) -> None:
        claims = self.task.vm_goals.get(vm.id, [])
        wanted = {claim.state for claim in claims}
        if len(wanted) > 1:
            raise Unreachable(tuple(claims), f"{vm.id} cannot be both")
        after = wanted.pop() if wanted else vm.state
        kinds = ways(vm.state, after, self._moves_of(vm))
        if kinds is None:
            why = f"{vm.id} is {vm.state}, and no action makes it {after}"
            raise Unreachable(tuple(claims), why)
        if ActionKind.FORGE in kinds and vm.template is None:
            raise Unreachable(tuple(claims), f"{vm.id} has no template to be forged from")
        grows = self.task.amounts.get(vm.id, {}) if after is VmState.RUNNING else {}
        if not kinds and not grows:
            return
        course = Course(vm.id, [Station(vm.state, vm.host, vm.consumption)])
        for kind in kinds:
            self._add_leg(course, kind, vm)
        order_moves(course, self.circuit)
        for name, amount in grows.items():
            self._add_growth(course, name, amount)
        if course.legs:
            self.courses[vm.id] = course

    def _moves_of(self, vm: Vm) -> Sequence[ActionKind]:
        if not self.reach.may_move(vm.id):
            return ()
        over_links = self.routes is not None
        choice = ways_to_move(vm, self.task, self._durations, over_links=over_links)
        return choice * self.reach.moves

    def _add_leg(self, course: Course, kind: ActionKind, vm: Vm) -> None:
        before = course.last
        leg = self._leg(kind, vm=vm.id)
        after = _AFTER[kind]
        host = before.host
        if kind in MOVES or kind in (ActionKind.BOOT, ActionKind.RESUME):
            host = self._choice(vm, kind, before.host)
            if host == before.host and kind in MOVES:
                return  # there is nowhere to go
            leg.target = host
        elif not after.has_host:
            host = None
        if before.state.has_host and kind is not ActionKind.KILL:
            leg.source = before.host
        if kind in MOVES:
            leg.there = self._moved(before.host, host)
            for option, chosen in options_of(host).items():  # who left may not always come back
                if not self._could_take(self.snapshot.hosts[option], vm):
                    self.circuit.require(NO, (leg.there, chosen))
        self._lengths[leg] = self._lengths_of(leg, vm)
        course.legs.append(leg)
        course.stations.append(Station(after, host, before.amounts))

    def _add_growth(self, course: Course, name: ResourceName, amount: int) -> None:
        before = course.last
        leg = self._leg(ActionKind.ALLOCATE, vm=course.vm, resource=name, amount=amount)
        self._lengths[leg] = ((self._durations.vm_ms(ActionKind.ALLOCATE, course.vm), YES),)
        course.legs.append(leg)
        amounts = {**before.amounts, name: amount}
        course.stations.append(Station(before.state, before.host, amounts))

    def _lengths_of(self, leg: Leg, vm: Vm) -> tuple[tuple[int, Truth], ...]:
        """How long an action on a VM takes; a migration, depending on the way it takes."""
        if leg.kind is not ActionKind.MIGRATE or self.routes is None:
            return ((self._durations.vm_ms(leg.kind, vm.id), leg.there),)
        found: dict[int, list[Truth]] = {}
        for source, here in options_of(leg.source).items():
            for target, there in options_of(leg.target).items():
                route = None if source == target else self.routes.between(source, target)
                if route is not None:
                    ms = self._durations.move_ms(vm.id, route.mbps)
                    found.setdefault(ms, []).append(self.circuit.all((here, there)))
        if not found:
            self.circuit.require(-leg.there)
        return tuple((ms, self.circuit.any(truths)) for ms, truths in found.items())

    def _choice(self, vm: Vm, kind: ActionKind, now: Any) -> Any:
        """The host that an action leads to: one of those that could take the VM."""
        there = None if self.reach.hosts is None else self.reach.hosts.get(vm.id)
        known = self.snapshot.hosts
        looked_at = known.values() if there is None else [known[host] for host in there]
        hosts = [host.id for host in looked_at if self._could_take(host, vm)]
        if kind in MOVES:  # staying is a choice as well
            hosts += [one for one in options_of(now) if one not in hosts]
        options = {host: self.circuit.truth() for host in hosts} if len(hosts) > 1 else {}
        if not options:
            if not hosts:
                self.circuit.require(NO)
                return None
            return hosts[0]
        self.circuit.require_one(options.values())
        # First look at what was named first, or else at staying.
        first = hosts[0] if there is not None else self.snapshot.vms[vm.id].host
        for host, truth in options.items():
            self.circuit.hint(as_number(truth), int(host == first))
        return one_of(options)

    def _could_take(self, host: Host, vm: Vm) -> bool:
        if vm.vcpus > host.cores:
            return False
        if host.state is HostState.ON:
            return True
        course = self.switches.get(host.id)
        return course is not None and course.after is HostState.ON

    def _moved(self, before: Any, after: Any) -> Truth:
        """Whether a VM is elsewhere than before."""
        circuit = self.circuit
        here, there = options_of(before), options_of(after)
        if len(here) == 1:
            (host,) = here
            return -there.get(host, NO)
        moved = circuit.truth()
        for host, was in here.items():
            now = there.get(host, NO)
            circuit.require(now, (was, -moved))
            circuit.require(-now, (was, moved))
        return moved

    # When

    def _set_clock(self) -> None:
        lengths = [ms for options in self._lengths.values() for ms, _ in options]
        asked_ms = self.task.asked_times_ms  # who asks for a time must be able to get it
        self.unit_ms = gcd(*lengths, *(asked_ms or ())) or 1
        whole_ms = self._longest_ms() if self.reach.in_parallel else self._all_ms()
        if asked_ms is not None:  # everybody may have to wait, and for all of it
            whole_ms += len(lengths) * sum(asked_ms) + self.unit_ms
        given_s = self.task.problem.horizon_s
        if given_s is not None:
            most_ms = given_s * 1000
            whole_ms = most_ms if asked_ms is not None else min(whole_ms, most_ms)
        self.horizon = whole_ms // self.unit_ms

    def _longest_ms(self) -> int:
        """What it takes if everybody goes his own way at once: first hosts wake, then VMs come."""
        hosts = [self._most_ms(one.leg) for one in self.switches.values()]
        vms = (
            sum(self._most_ms(leg) for leg in course.legs if leg.by_host is None)
            for course in self.courses.values()
        )
        return max(hosts, default=0) + max(vms, default=0)

    def _all_ms(self) -> int:
        """What it takes if everything happens one after the other."""
        return sum(map(self._most_ms, self._lengths))

    def _most_ms(self, leg: Leg) -> int:
        return max((ms for ms, _ in self._lengths[leg]), default=0)

    def _time_course(self, course: Course) -> None:
        reached: Number = 0
        for leg in course.legs:
            if leg.by_host is not None:
                continue
            self._time_leg(leg, reached)
            reached = leg.end

    def _time_leg(self, leg: Leg, after: Number) -> None:
        circuit = self.circuit
        leg.unit_ms = self.unit_ms
        leg.size = self._size(leg)
        least, _ = circuit.bounds(leg.size)
        latest = self.horizon - least if leg.there == YES else self.horizon
        if latest < 0:
            circuit.require(NO)
            latest = 0
        leg.start = circuit.number(0, latest)
        circuit.hint(leg.start, min(latest, circuit.bounds(after)[0]))
        circuit.require_at_most(after - leg.start, 0)
        if leg.there == YES and isinstance(leg.size, int):
            leg.end = leg.start + leg.size
            return
        circuit.require_equal(leg.start, after, (-leg.there,))
        leg.end = circuit.number(0, self.horizon)
        takes = total((ms // self.unit_ms, truth) for ms, truth in self._lengths[leg])
        circuit.require_equal(leg.end, leg.start + takes)

    def _size(self, leg: Leg) -> Number:
        """How long an action takes if it happens."""
        sizes = [ms // self.unit_ms for ms, _ in self._lengths[leg]]
        if len(sizes) <= 1:
            return sizes[0] if sizes else 0
        size = self.circuit.number(min(sizes), max(sizes))
        for ms, truth in self._lengths[leg]:
            self.circuit.require_equal(size, ms // self.unit_ms, (truth, leg.there))
        return size


_AFTER: Mapping[ActionKind, VmState] = {
    ActionKind.MIGRATE: VmState.RUNNING,
    ActionKind.REINSTANTIATE: VmState.RUNNING,
    ActionKind.BOOT: VmState.RUNNING,
    ActionKind.RESUME: VmState.RUNNING,
    ActionKind.SHUTDOWN: VmState.READY,
    ActionKind.SUSPEND: VmState.SLEEPING,
    ActionKind.FORGE: VmState.READY,
    ActionKind.KILL: VmState.TERMINATED,
}


def possible(station: Station) -> Iterable[tuple[HostId, Truth]]:
    """The hosts a VM may be on at a station."""
    return ((host, truth) for host, truth in options_of(station.host).items() if host is not None)
