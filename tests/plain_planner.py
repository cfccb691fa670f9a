"""An oracle for the planner: it tries every plan of a problem.

It is written from the meaning of a problem: which actions are possible, what must hold when an
action starts (``plain_gate``) and what the rules mean (``meanings``). It shares no code with the
planner and knows neither the language of the rules nor a solver. It is for tiny problems: it tries
every action at every instant, and remembers the result of each state and time.

Two things are assumed. Waiting while no action is under way is useless. A host that is on need not
be powered off unless a rule reads the states of hosts, or the host has agents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import gcd, inf
from typing import Any, NamedTuple

from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    Kill,
    LeaveMaintenance,
    Migrate,
    Move,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.host import Host, HostState, RequestedHostState
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import (
    DesiredHostState,
    DesiredVmState,
    ObjectiveMeasure,
    PlanningProblem,
)
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, PlanId, ResourceName, StepId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state.snapshot import RunningAction, Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm, VmState
from meanings import MEANINGS, World
from meanings.world import kind
from plain_gate import Cluster, against_start, cluster_after, hosts_of, take_effect, vm_of
from plain_gate import objections as against_machines

# The problem


VM_ENDS = {
    DesiredVmState.RUNNING: VmState.RUNNING,
    DesiredVmState.READY: VmState.READY,
    DesiredVmState.FORGED: VmState.READY,
    DesiredVmState.SLEEPING: VmState.SLEEPING,
    DesiredVmState.KILLED: VmState.TERMINATED,
}
HOST_ENDS: dict[DesiredHostState | RequestedHostState, HostState] = {
    DesiredHostState.ONLINE: HostState.ON,
    DesiredHostState.OFFLINE: HostState.STANDBY,
    DesiredHostState.MAINTENANCE: HostState.MAINTENANCE,
    RequestedHostState.STANDBY: HostState.STANDBY,
    RequestedHostState.MAINTENANCE: HostState.MAINTENANCE,
}
DESIRED_VM_STATES = {
    "Running": VmState.RUNNING,
    "Ready": VmState.READY,
    "Sleeping": VmState.SLEEPING,
    "Killed": VmState.TERMINATED,
}
DESIRED_HOST_STATES = {
    "Online": HostState.ON,
    "Offline": HostState.STANDBY,
    "Maintenance": HostState.MAINTENANCE,
}
"""Constraints that state a desired final state, written as rules."""
SWITCHES: dict[tuple[HostState, HostState], Any] = {
    (HostState.STANDBY, HostState.ON): PowerOn,
    (HostState.ON, HostState.STANDBY): PowerOff,
    (HostState.ON, HostState.MAINTENANCE): EnterMaintenance,
    (HostState.MAINTENANCE, HostState.ON): LeaveMaintenance,
}
ABOUT_HOSTS = {
    *DESIRED_HOST_STATES,
    *("MaxOnline", "MinOnline", "MaxSkew", "TopologySpread", "Failover", "FailoverPercentage"),
    *("FailoverHosts", "AgentsRun", "ComputeUp"),
    *("hostLife", "noVMsOnOfflineNodes", "sleepersProtected"),
}
"""Constraints about hosts that are on or off."""
NARROWING = {"Seq", "Sync", "NoDelay", "Deadline", "Precedence", "Serialize", "MaxMoves"}
"""Constraints about the actions of a plan that no further action can satisfy again."""
ABOUT_ACTIONS = {*NARROWING, "hostLife", "forgedFirst", "killedByAction", "oneActionAtATime"}
"""Constraints about the actions of the whole plan."""


class Judged(NamedTuple):
    """A rule with its meaning."""

    name: str
    arguments: dict[str, Any]
    continuous: bool

    @classmethod
    def of(cls, rule: Rule) -> Judged:
        """Return the constraint and the arguments of a rule."""
        if isinstance(rule, Satisfy):
            ordered = rule.constraint == "Seq"
            given = {key: _given(value, ordered) for key, value in rule.arguments.items()}
            return cls(rule.constraint, given, rule.continuous)
        vms = {"vs": frozenset(rule.vms)}
        match rule:
            case KeepApart():
                return cls("KeepApart", vms, rule.continuous)
            case KeepTogether():
                return cls("KeepTogether", vms, rule.continuous)
            case StayWithin():
                return cls("MustRunOn", vms | {"ns": frozenset(rule.hosts)}, rule.continuous)
            case StayOff():
                return cls("MustNotRunOn", vms | {"ns": frozenset(rule.hosts)}, rule.continuous)

    def holds(self, world: World) -> bool:
        """Whether it holds at a moment."""
        return MEANINGS[self.name](world, self.arguments)


def _given(value: Any, ordered: bool) -> Any:
    if not isinstance(value, tuple) or ordered:
        return value
    return frozenset(item if isinstance(item, str) else frozenset(item) for item in value)


class Space:
    """The possible actions of a problem, their durations, and the desired final states."""

    def __init__(self, problem: PlanningProblem, kept: Collection[str] = ()) -> None:
        """``kept`` are the soft rules that must hold as well; the others do not count."""
        self.problem = problem
        self.initial = Snapshot.of(problem.cluster)
        self.limits = problem.cluster.limits
        hard = [rule for rule in problem.cluster.rules if rule.hard]
        self._hard = [Judged.of(rule) for rule in hard]
        self.rules = [
            Judged.of(rule) for rule in problem.cluster.rules if rule.hard or rule.id in kept
        ]
        self.horizon_ms: float = inf
        if problem.horizon_s is not None:
            self.horizon_ms = problem.horizon_s * 1000
        self._may_sleep = (
            any(rule.name in ABOUT_HOSTS for rule in self.rules)
            or any(vm.agent for vm in self.initial.vms.values())
            or not {ObjectiveMeasure.HOSTS_USED, ObjectiveMeasure.ENERGY}.isdisjoint(
                problem.objective
            )
        )

    # Desired final states

    @cached_property
    def vm_ends(self) -> dict[VmId, set[VmState]]:
        """The desired final states of each VM; by default its current state."""
        found = {vm.id: {vm.state} for vm in self.initial.vms.values()}
        desired = [(vm, VM_ENDS[aim]) for vm, aim in self.problem.vms.items()]
        desired += [
            (rule.arguments["v"], DESIRED_VM_STATES[rule.name])
            for rule in self._hard
            if rule.name in DESIRED_VM_STATES
        ]
        for vm in {vm for vm, _ in desired}:
            found[vm] = {state for name, state in desired if name == vm}
        return found

    @cached_property
    def host_ends(self) -> dict[HostId, set[HostState]]:
        """The desired final states of the hosts that have one."""
        desired = [(host, HOST_ENDS[aim]) for host, aim in self.problem.hosts.items()]
        desired += [
            (host.id, HOST_ENDS[host.requested])
            for host in self.initial.hosts.values()
            if host.requested is not None and host.id not in self.problem.hosts
        ]
        desired += [
            (rule.arguments["n"], DESIRED_HOST_STATES[rule.name])
            for rule in self._hard
            if rule.name in DESIRED_HOST_STATES
        ]
        return {host: {state for name, state in desired if name == host} for host, _ in desired}

    @cached_property
    def growth(self) -> dict[VmId, dict[ResourceName, int]]:
        """The amounts of named resources that VMs must get, because they have too little."""
        found: dict[VmId, dict[ResourceName, int]] = {vm: {} for vm in self.initial.vms}
        for rule in self._hard:
            if rule.name != "Preserve" or rule.arguments["id"] in ("cpu", "memory"):
                continue
            vm, name, amount = (rule.arguments[key] for key in ("v", "id", "amount"))
            has = self.initial.vms[vm].consumption.get(name, 0)
            if amount > has:
                found[vm][name] = max(amount, found[vm].get(name, 0))
        return found

    def is_contradictory(self) -> bool:
        """Whether a VM or a host has two different final states."""
        sizes = [*map(len, self.vm_ends.values()), *map(len, self.host_ends.values())]
        return max(sizes, default=1) > 1

    def is_reached(self, hosts: Mapping[HostId, Host], vms: Mapping[VmId, Vm]) -> bool:
        """Whether every VM and host is in its desired final state."""
        # An agent follows its host, so without a condition it may end in any state.
        free = {vm.id for vm in vms.values() if vm.agent and not self._has_final_state(vm.id)}
        return all(
            vm.id in free or self.vm_ends[vm.id] == {vm.state} for vm in vms.values()
        ) and all(some == {hosts[host].state} for host, some in self.host_ends.items())

    def _has_final_state(self, vm: VmId) -> bool:
        by_rule = (
            rule.name in DESIRED_VM_STATES and rule.arguments["v"] == vm for rule in self._hard
        )
        return vm in self.problem.vms or any(by_rule)

    # Possible actions

    def vm_actions(self, vm: Vm, moved: int) -> Iterator[Action]:
        """Yield the next actions of a VM that has moved this often; the shortest way only."""
        if vm.agent or len(self.vm_ends[vm.id]) > 1:
            return
        (end,) = self.vm_ends[vm.id]
        hosts = self.initial.hosts
        match vm.state, end:
            case (VmState.TERMINATED, _):
                return
            case (_, VmState.TERMINATED):
                yield Kill(vm=vm.id)
            case (VmState.INIT, VmState.READY | VmState.RUNNING):
                yield Forge(vm=vm.id)
            case (VmState.READY, VmState.RUNNING):
                yield from (Boot(vm=vm.id, target=host) for host in hosts)
            case (VmState.RUNNING, VmState.READY):
                yield Shutdown(vm=vm.id, source=_host_of(vm))
            case (VmState.SLEEPING, VmState.RUNNING):
                own = _host_of(vm)
                yield from (Resume(vm=vm.id, source=own, target=host) for host in hosts)
            case (VmState.RUNNING, VmState.RUNNING | VmState.SLEEPING):
                yield from self._moves(vm, moved)
                if end is VmState.SLEEPING:
                    yield Suspend(vm=vm.id, source=_host_of(vm))
                else:
                    yield from self._allocations(vm)

    def _moves(self, vm: Vm, moved: int) -> Iterator[Action]:
        """Yield the moves of a VM; none after it was started or has grown."""
        before = self.initial.vms[vm.id]
        grown = before.consumption != vm.consumption
        if before.state is VmState.RUNNING and not grown and moved < self.problem.moves_max:
            for host in self.initial.hosts:
                if host != vm.host:
                    yield Migrate(vm=vm.id, source=_host_of(vm), target=host)
                    if vm.replaceable:
                        yield Reinstantiate(vm=vm.id, source=_host_of(vm), target=host)

    def _allocations(self, vm: Vm) -> Iterator[Action]:
        for name, amount in self.growth[vm.id].items():
            if vm.consumption.get(name, 0) < amount:
                yield Allocate(vm=vm.id, resource=name, amount=amount)

    def host_actions(self, host: Host) -> Iterator[Action]:
        """Yield the switches of a host; it is switched once at most."""
        if host.state is not self.initial.hosts[host.id].state:
            return
        free = {HostState.STANDBY: {HostState.ON}, HostState.ON: {HostState.STANDBY}}
        ends = self.host_ends.get(host.id)
        if ends is None:
            ends = free.get(host.state, set())
            if host.state is HostState.ON and not self._may_sleep:
                return
        for end in ends:
            if (host.state, end) in SWITCHES:
                yield SWITCHES[host.state, end](host=host.id)

    # Durations

    def duration_ms(self, kind_of_action: str, name: str) -> int:
        """Return the duration of an action of a kind on a VM or a host."""
        duration = self.problem.durations.get(ActionKind(kind_of_action))
        if duration is None:
            assert kind_of_action == "reinstantiate"
            return sum(
                self.duration_ms(kind_name, name) for kind_name in ("forge", "boot", "shutdown")
            )
        if name in duration.of:
            return duration.of[name]
        vm = self.initial.vms.get(VmId(name))
        if vm is None:
            return duration.ms
        named = vm.consumption.get(ResourceName(duration.resource), 0)
        units = vm.memory_mib if duration.resource == "memory" else named
        return duration.ms + round(duration.per_unit_ms * units)

    @cached_property
    def unit_ms(self) -> int:
        """The greatest common divisor of all durations."""
        hosts = {kind_of for kind_of in ActionKind if "power" in kind_of or "maint" in kind_of}
        lengths = [
            self.duration_ms(kind_name, host) for kind_name in hosts for host in self.initial.hosts
        ]
        others = set(ActionKind) - hosts
        lengths += [
            self.duration_ms(kind_name, vm) for kind_name in others for vm in self.initial.vms
        ]
        return gcd(*lengths)

    def step(self, action: Action, at_ms: int) -> Step:
        """Return a step with an action that begins at a time."""
        who = str(vm_of(action) or getattr(action, "host", None))
        end_ms = at_ms + self.duration_ms(kind(action), who)
        name = StepId(f"{at_ms}:{kind(action)}:{who}")
        return Step(id=name, action=action, start_ms=at_ms, end_ms=end_ms)

    def within_limits(self, flying: Collection[Action]) -> bool:
        """Whether the concurrency limits are kept, in total and at each host."""
        at_hosts = Counter(host for action in flying for host in hosts_of(action))
        return len(flying) <= self.limits.actions_total and all(
            count <= self.limits.actions_per_host for count in at_hosts.values()
        )


def _host_of(vm: Vm) -> HostId:
    assert vm.host is not None
    return vm.host


def seen(
    hosts: Mapping[HostId, Host], vms: Mapping[VmId, Vm], flying: Iterable[Step] = ()
) -> Snapshot:
    """Return a moment as the meanings of rules read it."""
    under_way = {step.id: RunningAction(step, 1, step.start_ms) for step in flying}
    return Snapshot(hosts=FrozenMap(hosts), vms=FrozenMap(vms), in_flight=FrozenMap(under_way))


# Is a plan valid?


def faults(problem: PlanningProblem, plan: Plan, kept: Collection[str] = ()) -> list[str]:
    """Return everything that is wrong with a plan."""
    space = Space(problem, kept)
    bare = Snapshot.of(problem.cluster.but(rules=()))
    found = [f"machines: {objection}" for objection in against_machines(bare, plan)]
    found += _against_ways(space, plan.steps)
    found += _against_rules(space, plan.steps)
    last = cluster_after(space.initial, plan.steps)
    if not space.is_reached(last.hosts, last.vms):
        found.append("a VM or host does not end in its desired state")
    return found


def _against_ways(space: Space, steps: Sequence[Step]) -> Iterator[str]:
    """Yield steps that are impossible, have another duration, or exceed the limits."""
    for step in steps:
        then = cluster_after(
            space.initial, [other for other in steps if other.end_ms <= step.start_ms]
        )
        if step.footprint.vm is None:
            ways = list(space.host_actions(then.hosts[step.action.host]))  # type: ignore[union-attr, index]
        else:
            vm = then.vms[step.footprint.vm]
            ways = list(space.vm_actions(vm, _moves_in(steps, vm.id, before=step)))
        if step.action not in ways:
            yield f"no way: {step.action}"
        if step.end_ms != space.step(step.action, step.start_ms).end_ms:
            yield f"takes another time: {step.action}"
        if step.end_ms > space.horizon_ms or step.start_ms % space.unit_ms:
            yield f"at no time: {step.action}"
        if not space.within_limits(
            [other.action for other in steps if _goes(other, step.start_ms)]
        ):
            yield f"too much at once: {step.action}"


def _goes(step: Step, at_ms: int) -> bool:
    return step.start_ms <= at_ms < step.end_ms


def _moves_in(steps: Iterable[Step], vm: VmId, before: Step | None = None) -> int:
    """Return how often a VM moves, in total or before a step begins."""
    moves = [step for step in steps if isinstance(step.action, Move) and step.action.vm == vm]
    return len([step for step in moves if before is None or step.start_ms < before.start_ms])


def _against_rules(space: Space, steps: Sequence[Step]) -> Iterator[str]:
    """Yield the rules that do not hold at the end, or at some moment."""
    last = cluster_after(space.initial, steps)
    in_the_end = World(seen(last.hosts, last.vms), space.initial, tuple(steps))
    for rule in space.rules:
        if not rule.holds(in_the_end):
            yield f"broken in the end: {rule}"
        if rule.continuous and not all(rule.holds(step) for step in _moments(space, steps)):
            yield f"broken on the way: {rule}"


def _moments(space: Space, steps: Sequence[Step]) -> Iterator[World]:
    """Yield the initial moment, and each instant after the ends and after the starts."""
    yield World(space.initial, space.initial, tuple(steps))
    for at_ms in sorted({time for step in steps for time in (step.start_ms, step.end_ms)}):
        ended = [step for step in steps if step.end_ms <= at_ms]
        then = cluster_after(space.initial, ended)
        in_flight = [step for step in steps if step.start_ms < at_ms < step.end_ms]
        begun = [step for step in steps if step.start_ms <= at_ms < step.end_ms]
        for flying in (in_flight, begun):
            yield World(seen(then.hosts, then.vms, flying), space.initial, tuple(steps))


# The cost of a state


IN_THE_END = {"hosts_used", "energy", "imbalance"}
"""Measures of the final state."""


def milliwatts(host: Host, vms: Iterable[Vm]) -> int:
    """Return the power of a host, which grows with the reserved CPU."""
    idle, busy = 1000 * host.power.curve[0], 1000 * host.power.curve[-1]
    watts = idle if host.state is HostState.ON else 1000 * host.power.standby_watts
    whole = max(1, host.usable_cpu_mhz)
    runs = [vm for vm in vms if vm.host == host.id and vm.state is VmState.RUNNING]
    return watts + sum((busy - idle) * vm.cpu.reservation_mhz // whole for vm in runs)


def fullness(host: Host, vms: Iterable[Vm]) -> int:
    """Return the largest used share of a resource on a host, in thousandths, rounded up."""
    there = [vm for vm in vms if vm.host == host.id]
    runs = [vm for vm in there if vm.state is VmState.RUNNING or vm.agent]
    taken = [
        (sum(vm.cpu.reservation_mhz for vm in runs), host.usable_cpu_mhz),
        (sum(vm.memory.reservation_mib for vm in runs), host.usable_memory_mib),
    ]
    taken += [
        (sum(vm.consumption.get(name, 0) for vm in runs), whole)
        for name, whole in host.capacity.items()
    ]
    return max(-(-1000 * amount // whole) if whole > 0 else 0 for amount, whole in taken)


# Is there a plan?


class TooMuch(Exception):
    """There are too many plans to try."""


class Now(NamedTuple):
    """The progress of a plan: the cluster, the actions under way, and the steps so far."""

    hosts: dict[HostId, Host]
    vms: dict[VmId, Vm]
    flying: tuple[Step, ...]
    begun: tuple[Step, ...]


class Way(NamedTuple):
    """The rest of a plan, and its cost."""

    cost: int
    steps: tuple[Step, ...]


class PlainPlanner:
    """Tries every plan. ``looks_max`` limits the number of choices that it tries."""

    def __init__(
        self, problem: PlanningProblem, kept: Collection[str] = (), looks_max: int = 10**9
    ) -> None:
        self.space = Space(problem, kept)
        self.looks = 0
        self._looks_max = looks_max
        self._measure = ""
        self._known: dict[Any, Way | None] = {}
        self._lawful: dict[Any, bool] = {}
        self._whole = any(rule.name in ABOUT_ACTIONS for rule in self.space.rules)

    def plan(self) -> Plan | None:
        """Return a plan that satisfies everything; ``None`` if there is none."""
        way = self._search("")
        return None if way is None else Plan(id=PlanId("plain"), base_version=0, steps=way.steps)

    def least(self, measure: str) -> int | None:
        """Return the cost of the best plan by a measure."""
        way = self._search(measure)
        return None if way is None else way.cost

    def _search(self, measure: str) -> Way | None:
        self._measure, self._known = measure, {}
        start = Now(dict(self.space.initial.hosts), dict(self.space.initial.vms), (), ())
        if self.space.is_contradictory() or not self._is_lawful(start):
            return None
        return self._way(0, start)

    def _way(self, at_ms: int, now: Now) -> Way | None:
        """Return the best rest of the plan from an instant on, after its ends."""
        key = (at_ms, self._key(now))
        if key not in self._known:
            self._known[key] = self._looked_for(at_ms, now)
        return self._known[key]

    def _looked_for(self, at_ms: int, now: Now) -> Way | None:
        best: Way | None = None
        if self._is_end(now):
            best = Way(self._in_the_end(now), ())
            if self._measure not in IN_THE_END:
                return best  # every further action only adds cost
        for chosen in self._choices(at_ms, now):
            after = self._after(at_ms, now, chosen)
            way = None if after is None else self._way(at_ms + self.space.unit_ms, after)
            if way is None:
                continue
            found = Way(self._added(chosen, way.cost), (*chosen, *way.steps))
            if best is None or found.cost < best.cost:
                best = found
            if not self._measure:
                break
        return best

    def _added(self, chosen: Iterable[Step], cost: int) -> int:
        match self._measure:
            case "mttr":
                return cost + sum(step.end_ms for step in chosen)
            case "migrations":
                return cost + sum(isinstance(step.action, Move) for step in chosen)
            case "moved_memory":
                moved = [step.action.vm for step in chosen if isinstance(step.action, Migrate)]
                return cost + sum(self.space.initial.vms[vm].memory_mib for vm in moved)
            case "makespan":
                return max([cost, *(step.end_ms for step in chosen)])
            case _:
                return cost

    def _in_the_end(self, now: Now) -> int:
        match self._measure:
            case "hosts_used":
                return len({vm.host for vm in now.vms.values() if vm.state is VmState.RUNNING})
            case "energy":
                return sum(milliwatts(host, now.vms.values()) for host in now.hosts.values())
            case "imbalance":
                return max(fullness(host, now.vms.values()) for host in now.hosts.values())
            case _:
                return 0

    # What may begin at an instant

    def _choices(self, at_ms: int, now: Now) -> Iterator[tuple[Step, ...]]:
        """Yield every choice of steps that begin now; if nothing is under way, at least one."""
        flying = [step.action for step in now.flying]
        cluster = Cluster(now.hosts, now.vms, flying)
        options: list[list[Step | None]] = []
        for actions, waits in self._actors(now):
            steps = [self.space.step(action, at_ms) for action in actions]
            possible: list[Step | None] = [
                step
                for step in steps
                if step.end_ms <= self.space.horizon_ms and not against_start(cluster, step.action)
            ]
            if possible:
                options.append([None, *possible] if waits else [*possible, None])
        for chosen in self._together(cluster, options, ()):
            if chosen or now.flying:
                yield chosen

    def _actors(self, now: Now) -> Iterator[tuple[list[Action], bool]]:
        """Return the possible steps of each actor, and whether it is more likely to wait."""
        for vm in now.vms.values():
            if all(step.footprint.vm != vm.id for step in now.flying):
                moved = _moves_in(now.begun, vm.id)
                waits = self.space.vm_ends[vm.id] == {vm.state}
                yield list(self.space.vm_actions(vm, moved)), waits
        for host in now.hosts.values():
            yield list(self.space.host_actions(host)), host.id not in self.space.host_ends

    def _together(
        self, cluster: Cluster, options: Sequence[Sequence[Step | None]], chosen: tuple[Step, ...]
    ) -> Iterator[tuple[Step, ...]]:
        """Yield every combination of one step for each actor that may start together."""
        self.looks += 1
        if self.looks > self._looks_max:
            raise TooMuch
        if not options:
            yield chosen
            return
        in_flight = cluster.flying + [step.action for step in chosen]
        then = cluster._replace(flying=in_flight)
        for step in options[0]:
            if step is None:
                yield from self._together(cluster, options[1:], chosen)
            elif self.space.within_limits([*in_flight, step.action]) and not against_start(
                then, step.action
            ):
                yield from self._together(cluster, options[1:], (*chosen, step))

    def _after(self, at_ms: int, now: Now, chosen: tuple[Step, ...]) -> Now | None:
        """Return the next instant after its ends; ``None`` if a rule was violated until then."""
        started = now._replace(
            flying=tuple(sorted((*now.flying, *chosen), key=lambda step: step.id)),
            begun=(*now.begun, *chosen),
        )
        if chosen and not self._is_lawful(started):
            return None
        next_ms = at_ms + self.space.unit_ms
        ended = [step for step in started.flying if step.end_ms == next_ms]
        if not ended:
            return started
        cluster = Cluster(dict(now.hosts), dict(now.vms), [])
        for step in ended:
            take_effect(cluster, step.action)
        flying = tuple(step for step in started.flying if step.end_ms > next_ms)
        after = Now(cluster.hosts, cluster.vms, flying, started.begun)
        return after if self._is_lawful(after) else None

    # Rules

    def _is_lawful(self, now: Now) -> bool:
        """Whether all continuous rules hold, and none is violated for good."""
        key = self._key(now, timeless=True)
        if key not in self._lawful:
            world = World(seen(now.hosts, now.vms, now.flying), self.space.initial, now.begun)
            self._lawful[key] = all(
                rule.holds(world)
                for rule in self.space.rules
                if rule.name in NARROWING or (rule.continuous and rule.name not in ABOUT_ACTIONS)
            )
        return self._lawful[key]

    def _is_end(self, now: Now) -> bool:
        if now.flying or not self.space.is_reached(now.hosts, now.vms):
            return False
        if self._whole:
            return not list(_against_rules(self.space, now.begun))
        world = World(seen(now.hosts, now.vms), self.space.initial)
        return all(rule.holds(world) for rule in self.space.rules)

    def _key(self, now: Now, *, timeless: bool = False) -> Any:
        """Return a key that distinguishes states."""
        vms = tuple((vm.state, vm.host, *sorted(vm.consumption.items())) for vm in now.vms.values())
        hosts = tuple(host.state for host in now.hosts.values())
        if self._whole:
            return vms, hosts, now.begun, now.flying
        if timeless:
            return vms, hosts, frozenset(step.action for step in now.flying)
        moves = tuple(_moves_in(now.begun, vm) for vm in now.vms)
        return vms, hosts, moves, tuple((step.action, step.end_ms) for step in now.flying)


def least_broken(problem: PlanningProblem, looks_max: int = 10**9) -> int | None:
    """Return the least cost of violated soft rules; ``None`` if the hard rules have no plan."""
    soft = [rule.id for rule in problem.cluster.rules if not rule.hard]
    prices = {name: problem.weights.get(name, 1) for name in soft}
    choices = [set(some) for size in range(len(soft) + 1) for some in combinations(soft, size)]
    for broken in sorted(choices, key=lambda some: sum(prices[name] for name in some)):
        kept = [name for name in soft if name not in broken]
        if PlainPlanner(problem, kept, looks_max).plan() is not None:
            return sum(prices[name] for name in broken)
    return None
