"""Every plan there is for a problem, tried one after the other: a planner too plain to be wrong.

Written from the meaning of a problem: which ways the machines may go, what must be so when an
action starts (``oracle``) and what the rules say (``meanings``). It shares no code with the planner
and knows neither the language of the rules nor a solver. For tiny worlds only: whatever could be
done is tried at every instant, and what was tried in the same state at the same time is known.

Two things are taken for granted. Waiting while nothing is under way is of no use, and a host that
is on need not be put to standby unless a rule speaks of hosts that are on, or it has agents.
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
from equipoise.model.host import Host, HostState, HostWish
from equipoise.model.plan import Plan, Step
from equipoise.model.problem import HostAim, Measure, Problem, VmAim
from equipoise.model.problem.problem import ActionKind
from equipoise.model.quantity import HostId, PlanId, ResourceName, StepId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.snapshot import Running, Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Vm, VmState
from meanings import MEANINGS, World
from meanings.world import kind
from oracle import Cluster, against_start, cluster_after, hosts_of, take_effect, vm_of
from oracle import objections as against_machines

# What a problem says


VM_ENDS = {
    VmAim.RUNNING: VmState.RUNNING,
    VmAim.READY: VmState.READY,
    VmAim.FORGED: VmState.READY,
    VmAim.SLEEPING: VmState.SLEEPING,
    VmAim.KILLED: VmState.TERMINATED,
}
HOST_ENDS: dict[HostAim | HostWish, HostState] = {
    HostAim.ONLINE: HostState.ON,
    HostAim.OFFLINE: HostState.STANDBY,
    HostAim.MAINTENANCE: HostState.MAINTENANCE,
    HostWish.STANDBY: HostState.STANDBY,
    HostWish.MAINTENANCE: HostState.MAINTENANCE,
}
VM_WISHES = {
    "Running": VmState.RUNNING,
    "Ready": VmState.READY,
    "Sleeping": VmState.SLEEPING,
    "Killed": VmState.TERMINATED,
}
HOST_WISHES = {
    "Online": HostState.ON,
    "Offline": HostState.STANDBY,
    "Maintenance": HostState.MAINTENANCE,
}
"""Constraints that say what is to become of somebody: wishes, written as rules."""
SWITCHES: dict[tuple[HostState, HostState], Any] = {
    (HostState.STANDBY, HostState.ON): PowerOn,
    (HostState.ON, HostState.STANDBY): PowerOff,
    (HostState.ON, HostState.MAINTENANCE): EnterMaintenance,
    (HostState.MAINTENANCE, HostState.ON): LeaveMaintenance,
}
ABOUT_HOSTS = {
    *HOST_WISHES,
    *("MaxOnline", "MinOnline", "MaxSkew", "TopologySpread", "Failover", "FailoverPercentage"),
    *("FailoverHosts", "AgentsRun", "ComputeUp"),
    *("hostLife", "noVMsOnOfflineNodes", "sleepersProtected"),
}
"""Constraints whose sentences speak of hosts that are on, or are not."""
NARROWING = {"Seq", "Sync", "NoDelay", "Deadline", "Precedence", "Serialize", "MaxMoves"}
"""Constraints about the actions of a plan that no further action can mend."""
ABOUT_ACTIONS = {*NARROWING, "hostLife", "forgedFirst", "killedByAction", "oneActionAtATime"}
"""Constraints about the actions of a plan: one looks at the whole of it."""


class Judged(NamedTuple):
    """A rule as its meaning wants it."""

    name: str
    arguments: dict[str, Any]
    continuous: bool

    @classmethod
    def of(cls, rule: Rule) -> Judged:
        """Which constraint a rule is, and with what."""
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
    return frozenset(one if isinstance(one, str) else frozenset(one) for one in value)


class Space:
    """What may be done to whom, how long it takes, and what must be so in the end."""

    def __init__(self, problem: Problem, kept: Collection[str] = ()) -> None:
        """``kept`` are the soft rules that must hold as well; the others count for nothing."""
        self.problem = problem
        self.initial = Snapshot.of(problem.cluster)
        self.limits = problem.cluster.limits
        hard = [rule for rule in problem.cluster.rules if rule.hard]
        self._wishes = [Judged.of(rule) for rule in hard]
        self.rules = [
            Judged.of(rule) for rule in problem.cluster.rules if rule.hard or rule.id in kept
        ]
        self.horizon_ms: float = inf
        if problem.horizon_s is not None:
            self.horizon_ms = problem.horizon_s * 1000
        self._may_sleep = (
            any(one.name in ABOUT_HOSTS for one in self.rules)
            or any(vm.agent for vm in self.initial.vms.values())
            or not {Measure.HOSTS_USED, Measure.ENERGY}.isdisjoint(problem.objective)
        )

    # What it is to become

    @cached_property
    def vm_ends(self) -> dict[VmId, set[VmState]]:
        """The states each VM is to end in; without a wish, the one it is in."""
        found = {vm.id: {vm.state} for vm in self.initial.vms.values()}
        wishes = [(vm, VM_ENDS[aim]) for vm, aim in self.problem.vms.items()]
        wishes += [
            (one.arguments["v"], VM_WISHES[one.name])
            for one in self._wishes
            if one.name in VM_WISHES
        ]
        for vm in {vm for vm, _ in wishes}:
            found[vm] = {state for name, state in wishes if name == vm}
        return found

    @cached_property
    def host_ends(self) -> dict[HostId, set[HostState]]:
        """The states in which hosts are to end that anybody wants something of."""
        wishes = [(host, HOST_ENDS[aim]) for host, aim in self.problem.hosts.items()]
        wishes += [
            (host.id, HOST_ENDS[host.requested])
            for host in self.initial.hosts.values()
            if host.requested is not None and host.id not in self.problem.hosts
        ]
        wishes += [
            (one.arguments["n"], HOST_WISHES[one.name])
            for one in self._wishes
            if one.name in HOST_WISHES
        ]
        return {host: {state for name, state in wishes if name == host} for host, _ in wishes}

    @cached_property
    def growth(self) -> dict[VmId, dict[ResourceName, int]]:
        """What VMs are to get of named resources of which they do not have enough."""
        found: dict[VmId, dict[ResourceName, int]] = {vm: {} for vm in self.initial.vms}
        for one in self._wishes:
            if one.name != "Preserve" or one.arguments["id"] in ("cpu", "memory"):
                continue
            vm, name, amount = (one.arguments[key] for key in ("v", "id", "amount"))
            has = self.initial.vms[vm].consumption.get(name, 0)
            if amount > has:
                found[vm][name] = max(amount, found[vm].get(name, 0))
        return found

    def is_contradictory(self) -> bool:
        """Whether somebody is to end in two states."""
        sizes = [*map(len, self.vm_ends.values()), *map(len, self.host_ends.values())]
        return max(sizes, default=1) > 1

    def is_reached(self, hosts: Mapping[HostId, Host], vms: Mapping[VmId, Vm]) -> bool:
        """Whether everybody is in the state he is to end in."""
        # An agent follows its host, so without a wish it may end in any state.
        free = {vm.id for vm in vms.values() if vm.agent and not self._is_wished(vm.id)}
        return all(
            vm.id in free or self.vm_ends[vm.id] == {vm.state} for vm in vms.values()
        ) and all(some == {hosts[host].state} for host, some in self.host_ends.items())

    def _is_wished(self, vm: VmId) -> bool:
        by_rule = (one.name in VM_WISHES and one.arguments["v"] == vm for one in self._wishes)
        return vm in self.problem.vms or any(by_rule)

    # What may be done

    def vm_actions(self, vm: Vm, moved: int) -> Iterator[Action]:
        """What may be done next to a VM that has migrated so often; the shortest way only."""
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
        """Who has just been started or has got more does not migrate any more."""
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
        """How a host may be switched now; once at the most."""
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

    # How long it takes

    def duration_ms(self, kind_of_action: str, name: str) -> int:
        """How long an action of a kind takes, done to a VM or a host."""
        said = self.problem.durations.get(ActionKind(kind_of_action))
        if said is None:
            assert kind_of_action == "reinstantiate"
            return sum(self.duration_ms(one, name) for one in ("forge", "boot", "shutdown"))
        if name in said.of:
            return said.of[name]
        vm = self.initial.vms.get(VmId(name))
        if vm is None:
            return said.ms
        named = vm.consumption.get(ResourceName(said.resource), 0)
        units = vm.memory_mib if said.resource == "memory" else named
        return said.ms + round(said.per_unit_ms * units)

    @cached_property
    def unit_ms(self) -> int:
        """What every duration is a multiple of."""
        hosts = {kind_of for kind_of in ActionKind if "power" in kind_of or "maint" in kind_of}
        lengths = [self.duration_ms(one, host) for one in hosts for host in self.initial.hosts]
        others = set(ActionKind) - hosts
        lengths += [self.duration_ms(one, vm) for one in others for vm in self.initial.vms]
        return gcd(*lengths)

    def step(self, action: Action, at_ms: int) -> Step:
        """An action that begins at a time."""
        who = str(vm_of(action) or getattr(action, "host", None))
        end_ms = at_ms + self.duration_ms(kind(action), who)
        name = StepId(f"{at_ms}:{kind(action)}:{who}")
        return Step(id=name, action=action, start_ms=at_ms, end_ms=end_ms)

    def within_limits(self, flying: Collection[Action]) -> bool:
        """Whether no more is going on than may, all in all and at each host."""
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
    """A moment as the meanings of rules look at it."""
    under_way = {step.id: Running(step, 1, step.start_ms) for step in flying}
    return Snapshot(hosts=FrozenMap(hosts), vms=FrozenMap(vms), in_flight=FrozenMap(under_way))


# Is a plan a good one?


def faults(problem: Problem, plan: Plan, kept: Collection[str] = ()) -> list[str]:
    """Everything that speaks against a plan."""
    space = Space(problem, kept)
    bare = Snapshot.of(problem.cluster.but(rules=()))
    found = [f"machines: {one}" for one in against_machines(bare, plan)]
    found += _against_ways(space, plan.steps)
    found += _against_rules(space, plan.steps)
    last = cluster_after(space.initial, plan.steps)
    if not space.is_reached(last.hosts, last.vms):
        found.append("somebody is not what he is to be in the end")
    return found


def _against_ways(space: Space, steps: Sequence[Step]) -> Iterator[str]:
    """Which steps are not among those that may be made, take another time, or are too many."""
    for step in steps:
        then = cluster_after(space.initial, [one for one in steps if one.end_ms <= step.start_ms])
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
        if not space.within_limits([one.action for one in steps if _goes(one, step.start_ms)]):
            yield f"too much at once: {step.action}"


def _goes(step: Step, at_ms: int) -> bool:
    return step.start_ms <= at_ms < step.end_ms


def _moves_in(steps: Iterable[Step], vm: VmId, before: Step | None = None) -> int:
    """How often a VM migrates, in all or before a step begins."""
    moves = [one for one in steps if isinstance(one.action, Move) and one.action.vm == vm]
    return len([one for one in moves if before is None or one.start_ms < before.start_ms])


def _against_rules(space: Space, steps: Sequence[Step]) -> Iterator[str]:
    """Which rules do not hold: in the end, or at some moment."""
    last = cluster_after(space.initial, steps)
    in_the_end = World(seen(last.hosts, last.vms), space.initial, tuple(steps))
    for rule in space.rules:
        if not rule.holds(in_the_end):
            yield f"broken in the end: {rule}"
        if rule.continuous and not all(rule.holds(one) for one in _moments(space, steps)):
            yield f"broken on the way: {rule}"


def _moments(space: Space, steps: Sequence[Step]) -> Iterator[World]:
    """Before all, and at each instant after what ends and after what starts."""
    yield World(space.initial, space.initial, tuple(steps))
    for at_ms in sorted({time for step in steps for time in (step.start_ms, step.end_ms)}):
        ended = [one for one in steps if one.end_ms <= at_ms]
        then = cluster_after(space.initial, ended)
        going_on = [one for one in steps if one.start_ms < at_ms < one.end_ms]
        begun = [one for one in steps if one.start_ms <= at_ms < one.end_ms]
        for flying in (going_on, begun):
            yield World(seen(then.hosts, then.vms, flying), space.initial, tuple(steps))


# What a state costs


IN_THE_END = {"hosts_used", "energy", "imbalance"}
"""What counts only in the end."""


def milliwatts(host: Host, vms: Iterable[Vm]) -> int:
    """What a host draws: more the more CPU is reserved on it."""
    idle, busy = 1000 * host.power.curve[0], 1000 * host.power.curve[-1]
    watts = idle if host.state is HostState.ON else 1000 * host.power.standby_watts
    whole = max(1, host.usable_cpu_mhz)
    runs = [vm for vm in vms if vm.host == host.id and vm.state is VmState.RUNNING]
    return watts + sum((busy - idle) * vm.cpu.reservation_mhz // whole for vm in runs)


def fullness(host: Host, vms: Iterable[Vm]) -> int:
    """The largest share of anything that is taken of a host, in thousandths, rounded up."""
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
    """There are more plans than anybody would like to try."""


class Now(NamedTuple):
    """How far a plan has come: what is where, what is going on, and what was begun so far."""

    hosts: dict[HostId, Host]
    vms: dict[VmId, Vm]
    flying: tuple[Step, ...]
    begun: tuple[Step, ...]


class Way(NamedTuple):
    """How a plan goes on to its end, and what that costs."""

    cost: int
    steps: tuple[Step, ...]


class PlainPlanner:
    """Tries every plan. ``looks_max`` is how many choices it is willing to look at."""

    def __init__(
        self, problem: Problem, kept: Collection[str] = (), looks_max: int = 10**9
    ) -> None:
        self.space = Space(problem, kept)
        self.looks = 0
        self._looks_max = looks_max
        self._measure = ""
        self._known: dict[Any, Way | None] = {}
        self._lawful: dict[Any, bool] = {}
        self._whole = any(one.name in ABOUT_ACTIONS for one in self.space.rules)

    def plan(self) -> Plan | None:
        """Some plan that keeps everything; nothing if there is none."""
        way = self._search("")
        return None if way is None else Plan(id=PlanId("plain"), base_version=0, steps=way.steps)

    def least(self, measure: str) -> int | None:
        """What the best plan costs by a measure."""
        way = self._search(measure)
        return None if way is None else way.cost

    def _search(self, measure: str) -> Way | None:
        self._measure, self._known = measure, {}
        start = Now(dict(self.space.initial.hosts), dict(self.space.initial.vms), (), ())
        if self.space.is_contradictory() or not self._is_lawful(start):
            return None
        return self._way(0, start)

    def _way(self, at_ms: int, now: Now) -> Way | None:
        """The best way to the end from an instant on, after what ends at it."""
        key = (at_ms, self._key(now))
        if key not in self._known:
            self._known[key] = self._looked_for(at_ms, now)
        return self._known[key]

    def _looked_for(self, at_ms: int, now: Now) -> Way | None:
        best: Way | None = None
        if self._is_end(now):
            best = Way(self._in_the_end(now), ())
            if self._measure not in IN_THE_END:
                return best  # whatever else is done only costs more
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
        """Every choice of what begins now; if nothing is going on, something does."""
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
        """What each might do, and whether it is more likely to wait."""
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
        """Every choice of one for each actor, as long as they do not get into each other's way."""
        self.looks += 1
        if self.looks > self._looks_max:
            raise TooMuch
        if not options:
            yield chosen
            return
        going_on = cluster.flying + [one.action for one in chosen]
        then = cluster._replace(flying=going_on)
        for step in options[0]:
            if step is None:
                yield from self._together(cluster, options[1:], chosen)
            elif self.space.within_limits([*going_on, step.action]) and not against_start(
                then, step.action
            ):
                yield from self._together(cluster, options[1:], (*chosen, step))

    def _after(self, at_ms: int, now: Now, chosen: tuple[Step, ...]) -> Now | None:
        """The next instant, after what ends at it; nothing if a rule was broken till then."""
        started = now._replace(
            flying=tuple(sorted((*now.flying, *chosen), key=lambda one: one.id)),
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

    # What must hold

    def _is_lawful(self, now: Now) -> bool:
        """Whether all rules hold that must at every moment, and none is past mending."""
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
        """What tells one state from another."""
        vms = tuple((vm.state, vm.host, *sorted(vm.consumption.items())) for vm in now.vms.values())
        hosts = tuple(host.state for host in now.hosts.values())
        if self._whole:
            return vms, hosts, now.begun, now.flying
        if timeless:
            return vms, hosts, frozenset(step.action for step in now.flying)
        moves = tuple(_moves_in(now.begun, vm) for vm in now.vms)
        return vms, hosts, moves, tuple((step.action, step.end_ms) for step in now.flying)


def least_broken(problem: Problem, looks_max: int = 10**9) -> int | None:
    """What it costs at the least to break soft rules; nothing if the hard ones cannot be kept."""
    soft = [rule.id for rule in problem.cluster.rules if not rule.hard]
    prices = {name: problem.weights.get(name, 1) for name in soft}
    choices = [set(some) for size in range(len(soft) + 1) for some in combinations(soft, size)]
    for broken in sorted(choices, key=lambda some: sum(prices[name] for name in some)):
        kept = [name for name in soft if name not in broken]
        if PlainPlanner(problem, kept, looks_max).plan() is not None:
            return sum(prices[name] for name in broken)
    return None
