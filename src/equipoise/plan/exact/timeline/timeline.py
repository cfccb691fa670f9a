"""The timeline: what may happen to every VM and host, and when.

A VM has one action at a time, and a host is switched once at most. ``constraints`` adds what hosts
and links allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import gcd
from typing import Any, Final

from equipoise.model.action import VM_TRANSITIONS, kind_of
from equipoise.model.host import Host, HostState
from equipoise.model.problem.problem import ActionKind, ProblemDurations
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.vm import Vm, VmState
from equipoise.plan.exact.solver import (
    FALSE,
    TRUE,
    CpModelBuilder,
    Interval,
    IntExpression,
    Literal,
    as_number,
    weighted_sum,
)
from equipoise.plan.exact.task import (
    HostCondition,
    PlanningTask,
    SearchScope,
    UnreachableState,
    VmCondition,
)
from equipoise.plan.exact.timeline.schedules import (
    HOST_ACTION_KINDS,
    MOVE_KINDS,
    CandidateAction,
    HostSchedule,
    Routes,
    VmSchedule,
    VmSegment,
    move_kinds_of,
    order_moves,
    vm_action_kinds,
)
from equipoise.plan.exact.values import one_of, options_of


class Timeline:
    """The schedules of all VMs and hosts that may change; all others keep their state."""

    def __init__(self, builder: CpModelBuilder, task: PlanningTask, scope: SearchScope) -> None:
        self.builder = builder
        self.task = task
        self.snapshot = task.snapshot
        self.scope = scope
        self._durations = ProblemDurations(task.problem, task.snapshot)
        network = task.problem.network
        self.routes = None if network is None else Routes(network)
        self.host_schedules: dict[HostId, HostSchedule] = {}
        self.schedules: dict[VmId, VmSchedule] = {}
        self.unit_ms = 1
        self.horizon = 0
        self._lengths: dict[CandidateAction, tuple[tuple[int, Literal], ...]] = {}
        self._count = 0
        # The order matters: the clock needs all durations, and the times need the clock.
        self._lay_out()
        self._set_clock()
        for schedule in self.schedules.values():
            self._time_schedule(schedule)
        for host_schedule in self.host_schedules.values():
            self._time_candidate(host_schedule.candidate, 0)

    def candidates(self) -> Iterator[CandidateAction]:
        """Yield every action that may be part of the plan."""
        for schedule in self.schedules.values():
            yield from (candidate for candidate in schedule.candidates if candidate.by_host is None)
        yield from (schedule.candidate for schedule in self.host_schedules.values())

    def shape(self, candidate: CandidateAction) -> Interval:
        """Return the start, the size and the end of an action, if it happens."""
        end = candidate.start + candidate.size if isinstance(candidate.size, int) else candidate.end
        return candidate.start, candidate.size, end

    def names(self, kind: str) -> frozenset[Any]:
        """Return the names of all VMs or of all hosts."""
        return self._names[kind]

    @cached_property
    def _names(self) -> dict[str, frozenset[Any]]:
        return {"vms": frozenset(self.snapshot.vms), "hosts": frozenset(self.snapshot.hosts)}

    def hosts_of(self, schedules: Iterable[VmSchedule]) -> frozenset[HostId]:
        """Return the hosts that may be switched, and those that some VMs may ever be on."""
        hosts: set[HostId] = set(self.host_schedules)
        for schedule in schedules:
            for segment in schedule.segments:
                hosts.update(host for host, _ in possible_hosts(segment))
        return frozenset(hosts)

    @cached_property
    def arrivals(self) -> Mapping[HostId, list[CandidateAction]]:
        """The actions that may lead to each host."""
        by_host: dict[HostId, list[CandidateAction]] = {}
        for candidate in self.candidates():
            for host in options_of(candidate.target):
                if host is not None:
                    by_host.setdefault(host, []).append(candidate)
        return by_host

    def touching(self, host: HostId) -> list[tuple[CandidateAction, Literal]]:
        """Return the actions that may touch a host, each with the literal that it does."""
        return self._touching.get(host, [])

    @cached_property
    def _touching(self) -> Mapping[HostId, list[tuple[CandidateAction, Literal]]]:
        by_host: dict[HostId, list[tuple[CandidateAction, Literal]]] = {}
        for candidate in self.candidates():
            touched: dict[HostId | None, list[Literal]] = {}
            for value in (candidate.source, candidate.target, candidate.switched):
                for host, literal in options_of(value).items():
                    touched.setdefault(host, []).append(literal)
            for host, literals in touched.items():
                if host is not None:
                    by_host.setdefault(host, []).append((candidate, self.builder.any(literals)))
        return by_host

    def _new_candidate(self, kind: ActionKind, **known: Any) -> CandidateAction:
        self._count += 1
        return CandidateAction(self._count, kind, **known)

    # Which actions are possible.

    def _lay_out(self) -> None:
        for host in self.snapshot.hosts.values():
            self._lay_out_host(host)
        for vm in self.snapshot.vms.values():
            if vm.agent:
                self._lay_out_agent(vm)
            else:
                self._lay_out_vm(vm)

    def _lay_out_host(self, host: Host) -> None:
        conditions = self.task.host_conditions.get(host.id, [])
        _require_one_state(host.id, conditions)
        after = conditions[0].state if conditions else self._free_state(host)
        if after is None or after is host.state:
            return
        kind = HOST_ACTION_KINDS.get((host.state, after))
        if kind is None:
            why = f"{host.id} is {host.state}, and no action leads to {after}"
            raise UnreachableState(tuple(conditions), why)
        present = TRUE if conditions else self.builder.literal()
        self.builder.hint(as_number(present), 0)  # try first to do without it
        candidate = self._new_candidate(kind, switched=host.id, present=present)
        self._lengths[candidate] = ((self._durations.host_ms(kind, host.id), present),)
        self.host_schedules[host.id] = HostSchedule(host.id, host.state, after, candidate)

    def _free_state(self, host: Host) -> HostState | None:
        """Return the state to which a host without a condition may be switched, if any."""
        if host.state is HostState.STANDBY:
            return HostState.ON
        if host.state is HostState.ON and self.task.may_power_off(host.id):
            return HostState.STANDBY
        return None

    def _lay_out_agent(self, vm: Vm) -> None:
        conditions = self.task.vm_conditions.get(vm.id, [])
        schedule = None if vm.host is None else self.host_schedules.get(vm.host)
        after = vm.state
        if schedule is not None:
            after = VmState.RUNNING if schedule.after is HostState.ON else VmState.SLEEPING
        for condition in conditions:
            if condition.state not in (vm.state, after):
                about_host = () if vm.host is None else self.task.host_conditions.get(vm.host, ())
                why = f"{vm.id} is an agent of {vm.host} and follows its state"
                raise UnreachableState((condition, *about_host), why, "agent-pinned")
            # A condition on an agent decides whether its host is switched.
            if schedule is not None and vm.state is not after:
                held = (
                    schedule.candidate.present
                    if condition.state is after
                    else -schedule.candidate.present
                )
                self.builder.require(held)
        if schedule is None or after is vm.state:
            return
        # The agent has no decision of its own: its action is present exactly if that of the host
        # is.
        follows = self._new_candidate(
            schedule.candidate.kind,
            vm=vm.id,
            present=schedule.candidate.present,
            by_host=schedule.candidate,
        )
        segments = [VmSegment(state, vm.host, vm.consumption) for state in (vm.state, after)]
        self.schedules[vm.id] = VmSchedule(vm.id, segments, [follows])

    def _lay_out_vm(self, vm: Vm) -> None:
        conditions = self.task.vm_conditions.get(vm.id, [])
        _require_one_state(vm.id, conditions)
        after = conditions[0].state if conditions else vm.state
        kinds = vm_action_kinds(vm.state, after, self._moves_of(vm))
        if kinds is None:
            why = f"{vm.id} is {vm.state}, and no action leads to {after}"
            raise UnreachableState(tuple(conditions), why)
        if ActionKind.FORGE in kinds and vm.template is None:
            why = f"{vm.id} has no template from which it can be created"
            raise UnreachableState(tuple(conditions), why, "no-template")
        grows = self.task.amounts.get(vm.id, {}) if after is VmState.RUNNING else {}
        if not kinds and not grows:
            return
        schedule = VmSchedule(vm.id, [VmSegment(vm.state, vm.host, vm.consumption)])
        for kind in kinds:
            self._add_candidate(schedule, kind, vm)
        order_moves(schedule, self.builder)
        for name, amount in grows.items():
            self._add_growth(schedule, name, amount)
        if schedule.candidates:
            self.schedules[vm.id] = schedule

    def _moves_of(self, vm: Vm) -> Sequence[ActionKind]:
        if not self.scope.may_move(vm.id):
            return ()
        over_links = self.routes is not None
        choice = move_kinds_of(vm, self.task, self._durations, over_links=over_links)
        return choice * self.scope.moves

    def _add_candidate(self, schedule: VmSchedule, kind: ActionKind, vm: Vm) -> None:
        before = schedule.last
        candidate = self._new_candidate(kind, vm=vm.id)
        after = _STATE_AFTER[kind]
        host = before.host
        if kind in MOVE_KINDS or kind in (ActionKind.BOOT, ActionKind.RESUME):
            host = self._choice(vm, kind, before.host)
            if host == before.host and kind in MOVE_KINDS:
                return  # no other host can take the VM
            candidate.target = host
        elif not after.has_host:
            host = None
        if before.state.has_host and kind is not ActionKind.KILL:
            candidate.source = before.host
        if kind in MOVE_KINDS:
            candidate.present = self._moved(before.host, host)
            # A VM that moves twice may end where it began, but only if that host can take it.
            for option, chosen in options_of(host).items():
                if not self._can_host(self.snapshot.hosts[option], vm):
                    self.builder.require(FALSE, (candidate.present, chosen))
        self._lengths[candidate] = self._lengths_of(candidate, vm)
        schedule.candidates.append(candidate)
        schedule.segments.append(VmSegment(after, host, before.amounts))

    def _add_growth(self, schedule: VmSchedule, name: ResourceName, amount: int) -> None:
        before = schedule.last
        candidate = self._new_candidate(
            ActionKind.ALLOCATE, vm=schedule.vm, resource=name, amount=amount
        )
        self._lengths[candidate] = (
            (self._durations.vm_ms(ActionKind.ALLOCATE, schedule.vm), TRUE),
        )
        schedule.candidates.append(candidate)
        amounts = {**before.amounts, name: amount}
        schedule.segments.append(VmSegment(before.state, before.host, amounts))

    def _lengths_of(self, candidate: CandidateAction, vm: Vm) -> tuple[tuple[int, Literal], ...]:
        """Return the possible durations of an action; those of a migration depend on its route."""
        if candidate.kind is not ActionKind.MIGRATE or self.routes is None:
            return ((self._durations.vm_ms(candidate.kind, vm.id), candidate.present),)
        durations: dict[int, list[Literal]] = {}
        for source, here in options_of(candidate.source).items():
            for target, there in options_of(candidate.target).items():
                route = None if source == target else self.routes.between(source, target)
                if route is not None:
                    ms = self._durations.move_ms(vm.id, route.mbps)
                    durations.setdefault(ms, []).append(self.builder.all((here, there)))
        if not durations:
            self.builder.require(-candidate.present)
        return tuple((ms, self.builder.any(literals)) for ms, literals in durations.items())

    def _choice(self, vm: Vm, kind: ActionKind, now: Any) -> Any:
        """Return the host that an action leads to: one of those that can take the VM."""
        candidates = None if self.scope.hosts is None else self.scope.hosts.get(vm.id)
        known = self.snapshot.hosts
        searched = known.values() if candidates is None else [known[host] for host in candidates]
        hosts = [host.id for host in searched if self._can_host(host, vm)]
        if kind in MOVE_KINDS:  # a VM may also stay
            hosts += [host for host in options_of(now) if host not in hosts]
        options = {host: self.builder.literal() for host in hosts} if len(hosts) > 1 else {}
        if not options:
            if not hosts:
                self.builder.require(FALSE)
                return None
            return hosts[0]
        self.builder.require_one(options.values())
        # The solver tries the first candidate first, or else that the VM stays.
        first = hosts[0] if candidates is not None else self.snapshot.vms[vm.id].host
        for host, literal in options.items():
            self.builder.hint(as_number(literal), int(host == first))
        return one_of(options)

    def _can_host(self, host: Host, vm: Vm) -> bool:
        if vm.vcpus > host.cores:
            return False
        if host.state is HostState.ON:
            return True
        schedule = self.host_schedules.get(host.id)
        return schedule is not None and schedule.after is HostState.ON

    def _moved(self, before: Any, after: Any) -> Literal:
        """Return the literal that a VM is on another host than before."""
        builder = self.builder
        here, there = options_of(before), options_of(after)
        # A VM with a known host has moved exactly if it is not on that host afterwards.
        if len(here) == 1:
            (host,) = here
            return -there.get(host, FALSE)
        # Otherwise it has moved exactly if the host before is not the host after, host by host.
        moved = builder.literal()
        for host, was in here.items():
            now = there.get(host, FALSE)
            builder.require(now, (was, -moved))
            builder.require(-now, (was, moved))
        return moved

    # Times.

    def _set_clock(self) -> None:
        lengths = [ms for options in self._lengths.values() for ms, _ in options]
        rule_times_ms = self.task.referenced_times_ms  # the grid must contain the times of rules
        # The greatest common divisor keeps all durations exact and the domains of the times small.
        self.unit_ms = gcd(*lengths, *(rule_times_ms or ())) or 1
        whole_ms = self._longest_ms() if self.scope.in_parallel else self._all_ms()
        if rule_times_ms is not None:  # every action may have to wait for all of these times
            whole_ms += len(lengths) * sum(rule_times_ms) + self.unit_ms
        given_s = self.task.problem.horizon_s
        if given_s is not None:
            most_ms = given_s * 1000
            whole_ms = most_ms if rule_times_ms is not None else min(whole_ms, most_ms)
        self.horizon = whole_ms // self.unit_ms

    def _longest_ms(self) -> int:
        """Return the duration if all happens in parallel: hosts are switched, then VMs move."""
        hosts = [self._most_ms(schedule.candidate) for schedule in self.host_schedules.values()]
        vms = (
            sum(
                self._most_ms(candidate)
                for candidate in schedule.candidates
                if candidate.by_host is None
            )
            for schedule in self.schedules.values()
        )
        return max(hosts, default=0) + max(vms, default=0)

    def _all_ms(self) -> int:
        """Return the duration if all actions happen one after the other."""
        return sum(map(self._most_ms, self._lengths))

    def _most_ms(self, candidate: CandidateAction) -> int:
        return max((ms for ms, _ in self._lengths[candidate]), default=0)

    def _time_schedule(self, schedule: VmSchedule) -> None:
        reached: IntExpression = 0
        for candidate in schedule.candidates:
            if candidate.by_host is not None:
                continue
            self._time_candidate(candidate, reached)
            reached = candidate.end

    def _time_candidate(self, candidate: CandidateAction, after: IntExpression) -> None:
        builder = self.builder
        candidate.unit_ms = self.unit_ms
        candidate.size = self._size(candidate)
        least, _ = builder.bounds(candidate.size)
        # An action outside the plan takes no time, so it may lie at the horizon itself.
        latest = self.horizon - least if candidate.present == TRUE else self.horizon
        # The action is longer than the horizon; the domain of a variable must not be empty.
        if latest < 0:
            builder.require(FALSE)
            latest = 0
        candidate.start = builder.number(0, latest)
        builder.hint(candidate.start, min(latest, builder.bounds(after)[0]))
        builder.require_at_most(after - candidate.start, 0)
        if candidate.present == TRUE and isinstance(candidate.size, int):
            candidate.end = candidate.start + candidate.size
            return
        # An action outside the plan takes no time: it starts and ends with its predecessor.
        builder.require_equal(candidate.start, after, (-candidate.present,))
        candidate.end = builder.number(0, self.horizon)
        takes = weighted_sum(
            (ms // self.unit_ms, literal) for ms, literal in self._lengths[candidate]
        )
        builder.require_equal(candidate.end, candidate.start + takes)

    def _size(self, candidate: CandidateAction) -> IntExpression:
        """Return the duration of an action, if it happens."""
        sizes = [ms // self.unit_ms for ms, _ in self._lengths[candidate]]
        if len(sizes) <= 1:
            return sizes[0] if sizes else 0
        size = self.builder.number(min(sizes), max(sizes))
        for ms, literal in self._lengths[candidate]:
            self.builder.require_equal(size, ms // self.unit_ms, (literal, candidate.present))
        return size


def _require_one_state(name: str, conditions: Sequence[VmCondition | HostCondition]) -> None:
    """Refuse conditions that demand two different final states of one VM or host."""
    if len({condition.state for condition in conditions}) > 1:
        why = f"{name} cannot be in both states"
        raise UnreachableState(tuple(conditions), why, "condition-conflict")


_STATE_AFTER: Final = {
    **{ActionKind(kind_of(action)): after for action, (_, after) in VM_TRANSITIONS.items()},
    ActionKind.KILL: VmState.TERMINATED,
}


def possible_hosts(segment: VmSegment) -> Iterable[tuple[HostId, Literal]]:
    """Yield the hosts that a VM may be on in a segment."""
    return (
        (host, literal) for host, literal in options_of(segment.host).items() if host is not None
    )
