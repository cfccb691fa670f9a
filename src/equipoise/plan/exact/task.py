"""A task: a problem as the planner works on it, every wish and rule a claim that can be dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from equipoise.model.host import HostState, HostWish
from equipoise.model.problem import HostAim, Measure, Problem, VmAim
from equipoise.model.problem.problem import Goal
from equipoise.model.quantity import HostId, ResourceName, VmId
from equipoise.model.rule import Rule, Satisfy
from equipoise.model.snapshot import Snapshot
from equipoise.model.vm import VmState
from equipoise.plan.exact.parts import Parts
from equipoise.plan.exact.subjects import subjects
from equipoise.spec.demand import Demand
from equipoise.spec.language.syntax import Call, Number, parts_of
from equipoise.spec.rules import each_demand
from equipoise.spec.specification import Specification

VM_STATES: Final[Mapping[VmAim, VmState]] = {
    VmAim.RUNNING: VmState.RUNNING,
    VmAim.READY: VmState.READY,
    VmAim.FORGED: VmState.READY,
    VmAim.SLEEPING: VmState.SLEEPING,
    VmAim.KILLED: VmState.TERMINATED,
}
HOST_STATES: Final[Mapping[HostAim, HostState]] = {
    HostAim.ONLINE: HostState.ON,
    HostAim.OFFLINE: HostState.STANDBY,
    HostAim.MAINTENANCE: HostState.MAINTENANCE,
}
_REQUESTED: Final[Mapping[HostWish, HostAim]] = {
    HostWish.MAINTENANCE: HostAim.MAINTENANCE,
    HostWish.STANDBY: HostAim.OFFLINE,
}
_AIMS_BY_RULE: Final[Mapping[str, tuple[str, str]]] = {
    "Running": ("v", VmState.RUNNING.value),
    "Ready": ("v", VmState.READY.value),
    "Sleeping": ("v", VmState.SLEEPING.value),
    "Killed": ("v", VmState.TERMINATED.value),
    "Online": ("n", HostState.ON.value),
    "Offline": ("n", HostState.STANDBY.value),
    "Maintenance": ("n", HostState.MAINTENANCE.value),
}
"""The constraints that say what an element is to become: a wish, written as a rule."""


@dataclass(frozen=True, slots=True, eq=False)
class VmClaim:
    """A VM is to end in a state."""

    vm: VmId
    state: VmState
    title: str


@dataclass(frozen=True, slots=True, eq=False)
class HostClaim:
    """A host is to end in a state."""

    host: HostId
    state: HostState
    title: str


@dataclass(frozen=True, slots=True, eq=False)
class RuleClaim:
    """A constraint is to hold, in the end or all along."""

    rule: Rule
    demand: Demand
    weight: int = 0
    """How much it counts to break it; 0 for one that must not be broken."""

    @property
    def title(self) -> str:
        """What it is called in answers."""
        return self.demand.title

    @property
    def named_vms(self) -> frozenset[VmId]:
        """The VMs that it is about, of a constraint of the library that is about some."""
        arguments = self.demand.arguments
        return arguments["vs"] if "vs" in arguments else frozenset({arguments["v"]})


Claim = VmClaim | HostClaim | RuleClaim


@dataclass(frozen=True)
class Task:
    """What is to be planned. ``with_only`` drops claims, to find out which of them are at odds."""

    problem: Problem
    snapshot: Snapshot
    claims: tuple[Claim, ...]
    unclear: tuple[str, ...] = field(default=())
    """Rules of which nobody can say what they demand."""
    known_parts: Parts | None = field(default=None, repr=False)
    """What was found out about the same claims already."""

    @classmethod
    def of(cls, problem: Problem) -> Task:
        """Read a problem."""
        snapshot = Snapshot.of(problem.cluster)
        claims: list[Claim] = [*_aims(problem)]
        unclear: list[str] = []
        for rule, found in each_demand(snapshot.settings, snapshot):
            if isinstance(found, Demand):
                claims += _rule_claims(rule, found, problem)
            else:
                unclear.append(f"{found.constraint}: {found.detail}")
        return cls(problem, snapshot, tuple(claims), tuple(unclear))

    @cached_property
    def parts(self) -> Parts:
        """The parts of every claim, as they are before the plan."""
        return self.known_parts or Parts(self.snapshot)

    def with_only(self, claims: Iterable[Claim]) -> Task:
        """The same with fewer claims."""
        return replace(self, claims=tuple(claims), known_parts=self.parts)

    @cached_property
    def hard(self) -> tuple[Claim, ...]:
        """The claims that must be kept."""
        return tuple(one for one in self.claims if not isinstance(one, RuleClaim) or not one.weight)

    @cached_property
    def soft(self) -> tuple[RuleClaim, ...]:
        """The claims that had better be kept."""
        rules = (one for one in self.claims if isinstance(one, RuleClaim))
        return tuple(one for one in rules if one.weight)

    @cached_property
    def vm_goals(self) -> dict[VmId, list[VmClaim]]:
        """What each VM is to become, and who says so."""
        found: dict[VmId, list[VmClaim]] = {}
        for claim in self.claims:
            if isinstance(claim, VmClaim):
                found.setdefault(claim.vm, []).append(claim)
        return found

    @cached_property
    def host_goals(self) -> dict[HostId, list[HostClaim]]:
        """What each host is to become, and who says so."""
        found: dict[HostId, list[HostClaim]] = {}
        for claim in self.claims:
            if isinstance(claim, HostClaim):
                found.setdefault(claim.host, []).append(claim)
        return found

    @cached_property
    def amounts(self) -> dict[VmId, dict[ResourceName, int]]:
        """What VMs are to be given of a resource that they do not have enough of."""
        found: dict[VmId, dict[ResourceName, int]] = {}
        for claim in self.hard:
            if isinstance(claim, RuleClaim) and claim.demand.library_name == "Preserve":
                _note_growth(claim.demand.arguments, self.snapshot, found)
        return found

    @cached_property
    def asked_times_ms(self) -> frozenset[int] | None:
        """The numbers in rules of one's own that ask for times; nothing if no rule does.

        Those of the library never ask for late.
        """
        demands = (one.demand for one in self.claims if isinstance(one, RuleClaim))
        asking = [one for one in demands if _asks_when(one)]
        return frozenset(time for one in asking for time in _times(one)) if asking else None

    @property
    def guesses_horizon(self) -> bool:
        """Whether nobody says when all must have ended, and a rule may ask for any time."""
        return self.problem.horizon_s is None and self.asked_times_ms is not None

    def may_sleep(self, host: HostId) -> bool:
        """Whether it may help to switch off a host of which nobody says what it is to become."""
        return self._any_may_sleep or not self._awaited.isdisjoint(self.snapshot.residents[host])

    @cached_property
    def _any_may_sleep(self) -> bool:
        if self.counts(Measure.HOSTS_USED) or self.counts(Measure.ENERGY):
            return True
        return self._looks_at("hostState")

    def counts(self, measure: Measure) -> bool:
        """Whether a measure is part of what is to be as small as possible."""
        return any(measure in measures_of(goal) for goal in self.problem.objective)

    @cached_property
    def looks_at_actions(self) -> bool:
        """Whether a rule asks what is done, or who is on his way: not only what has come of it."""
        return self._looks_at("actions", "underway", "hosted")

    def _looks_at(self, *functions: str) -> bool:
        demands = (one.demand for one in self.claims if isinstance(one, RuleClaim))
        return any(not one.specification.calls(one.name).isdisjoint(functions) for one in demands)

    @cached_property
    def _awaited(self) -> frozenset[VmId]:
        """The agents that some claim is about: they sleep when their host does."""
        agents = frozenset(vm.id for vm in self.snapshot.vms.values() if vm.agent)
        named = set(self.vm_goals)
        for claim in self.claims if agents else ():
            if isinstance(claim, RuleClaim):
                about = subjects(claim.demand)
                if about is None:
                    return agents
                named |= about
        return agents & named


_WHEN: Final = frozenset({"begin", "end"})


def _asks_when(demand: Demand) -> bool:
    calls = demand.specification.calls(demand.name)
    return demand.library_name is None and not _WHEN.isdisjoint(calls)


def _times(demand: Demand) -> Iterator[int]:
    """The numbers that the begin or the end of an action may be compared with."""
    for value in (*demand.arguments.values(), *_written(demand.specification, demand.name)):
        if type(value) is int and value > 0:
            yield value


def _written(home: Specification, name: str) -> Iterator[int]:
    """The numbers that are written in a constraint, and in those it calls."""
    for part in parts_of(home.constraints[name].formula):
        if isinstance(part, Number):
            yield part.value
        elif isinstance(part, Call):
            there = home.home(part.function)
            if there is not None:
                yield from _written(there, part.function)


def measures_of(goal: Goal) -> Mapping[Measure, int]:
    """What counts in a goal, and how much."""
    return {goal: 1} if isinstance(goal, Measure) else goal


def _note_growth(
    arguments: Mapping[str, object],
    snapshot: Snapshot,
    found: dict[VmId, dict[ResourceName, int]],
) -> None:
    vm, name, amount = arguments["v"], arguments["id"], arguments["amount"]
    assert isinstance(vm, str)
    assert isinstance(name, str)
    assert isinstance(amount, int)
    if name in ("cpu", "memory"):
        return  # reservations are not allocated; the rule itself will say that it cannot hold
    has = snapshot.vms[VmId(vm)].consumption.get(ResourceName(name), 0)
    wanted = found.setdefault(VmId(vm), {})
    if amount > wanted.get(ResourceName(name), has):
        wanted[ResourceName(name)] = amount


def _aims(problem: Problem) -> Iterator[Claim]:
    for vm, aim in problem.vms.items():
        yield VmClaim(vm, VM_STATES[aim], f"{vm} is to be {aim}")
    for host, host_aim in problem.hosts.items():
        yield HostClaim(host, HOST_STATES[host_aim], f"{host} is to be {_said(host_aim)}")
    for one in problem.cluster.hosts:
        if one.requested is not None and one.id not in problem.hosts:
            requested = _REQUESTED[one.requested]
            yield HostClaim(one.id, HOST_STATES[requested], f"{one.id} is to be {_said(requested)}")


def _said(aim: HostAim) -> str:
    return "in maintenance" if aim is HostAim.MAINTENANCE else aim.value


def _rule_claims(rule: Rule, demand: Demand, problem: Problem) -> Iterator[Claim]:
    aim = _AIMS_BY_RULE.get(demand.library_name or "")
    is_wish = aim is not None and rule.hard and isinstance(rule, Satisfy)
    if aim is not None and is_wish:
        key, state = aim
        title = f"{rule.id}: {demand.arguments[key]} is to be {state}"
        if key == "v":
            yield VmClaim(demand.arguments[key], VmState(state), title)
        else:
            yield HostClaim(demand.arguments[key], HostState(state), title)
    if not is_wish or rule.continuous:  # it says more than a wish if it is to hold all along
        weight = 0 if rule.hard else problem.weights.get(rule.id, 1)
        yield RuleClaim(rule, replace(demand, title=rule.id), weight)
