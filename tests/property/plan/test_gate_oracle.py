"""The gate against an oracle: both must have the same verdict on every plan, random or sensible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import worlds
from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.control import ControlLoop
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    EnterMaintenance,
    Forge,
    Kill,
    LeaveMaintenance,
    Migrate,
    PowerOff,
    PowerOn,
    Reinstantiate,
    Resume,
    Shutdown,
    Suspend,
)
from equipoise.model.event import Event, PlanEnded, PlanOutcome
from equipoise.model.host import Host, HostReserve, HostState
from equipoise.model.plan import Plan, Step
from equipoise.model.quantity import HostId, ResourceName, RuleId, StepId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state import transition
from equipoise.model.state.snapshot import RunningAction, Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import CpuSettings, MemorySettings, Vm, VmState
from equipoise.plan import Refusal, VerifiedPlan, verify
from equipoise.store import MemoryJournal
from memory_world import MemoryWorld
from plain_gate import Cluster, against_start, cluster_after, is_broken, objections
from worlds import LICENCES

CYCLES = ResourceName("cpu_mhz")
"""A named resource whose name looks like the CPU of a host."""


def agree(snapshot: Snapshot, plan: Plan) -> set[str]:
    """Ask the gate and the oracle; fail if they differ; return the objections of the oracle."""
    answer = verify(snapshot, plan)
    assert isinstance(answer, VerifiedPlan | Refusal)
    found = objections(snapshot, plan)
    if isinstance(answer, Refusal) and is_infeasible(answer):
        assert not found, "a plan that is wrong in itself is not called infeasible"
    elif isinstance(answer, Refusal):
        assert found, f"only the gate refuses: {answer.violations}"
        assert answer.violations
        assert answer.plan is plan
    else:
        assert not found, f"only the oracle refuses: {found}"
        assert answer.plan is plan
    return found


def is_infeasible(refusal: Refusal) -> bool:
    """Whether a plan is valid as timed, but works only with exact times."""
    return all(violation.constraint.startswith("feasible") for violation in refusal.violations)


# Actions and times


def all_actions(
    switched: Iterable[HostId],
    vms: Iterable[VmId],
    hosts: Sequence[HostId],
    amounts: Sequence[int] = (0, 1, 2, 3),
) -> Iterator[Action]:
    """Yield every switch of these hosts and every action on these VMs between the hosts."""
    for host in switched:
        yield from (PowerOn(host=host), PowerOff(host=host))
        yield from (EnterMaintenance(host=host), LeaveMaintenance(host=host))
    for vm in vms:
        yield from (Forge(vm=vm), Kill(vm=vm))
        for amount in amounts:
            yield Allocate(vm=vm, resource=LICENCES, amount=amount)
        for host in hosts:
            yield from (Boot(vm=vm, target=host), Shutdown(vm=vm, source=host))
            yield Suspend(vm=vm, source=host)
            for target in hosts:
                yield Migrate(vm=vm, source=host, target=target)
                yield Reinstantiate(vm=vm, source=host, target=target)
                yield Resume(vm=vm, source=host, target=target)


ALLEN: tuple[tuple[int, int, int, int], ...] = (
    (0, 1, 2, 3),  # before
    (0, 1, 1, 2),  # meets
    (0, 2, 1, 3),  # overlaps
    (0, 1, 0, 2),  # starts
    (1, 2, 0, 3),  # during
    (1, 2, 0, 2),  # finishes
    (0, 1, 0, 1),  # equals
    (2, 3, 0, 1),  # after
    (1, 2, 0, 1),  # met by
    (1, 3, 0, 2),  # overlapped by
    (0, 2, 0, 1),  # started by
    (0, 3, 1, 2),  # contains
    (0, 2, 1, 2),  # finished by
)


def pairs(actions: Sequence[Action]) -> Iterator[Plan]:
    """Yield every plan of two actions, in every relation of two intervals of time."""
    for first_action, second_action in combinations_with_replacement(actions, 2):
        for start, end, other_start, other_end in ALLEN:
            first = a_step("s1", first_action, start, end)
            second = a_step("s2", second_action, other_start, other_end)
            yield a_plan(first, second)
            if start == other_start:
                yield a_plan(second, first)


# Small worlds that are tried exhaustively

TIGHT = a_cluster(
    a_host("h1", memory_mib=4096, cores=2, capacity={LICENCES: 3}),
    a_host("h2", memory_mib=2048, cores=1, capacity={LICENCES: 4}),
    vms=[
        a_vm("v1", "h1", memory=MemorySettings(reservation_mib=1024), consumption={LICENCES: 3}),
        a_vm("v2", "h2", memory=MemorySettings(reservation_mib=1025), consumption={LICENCES: 1}),
    ],
)
PLATFORM = a_cluster(
    a_host("h1", capacity={LICENCES: 2}, reserve=HostReserve(cpu_mhz=2500)),
    a_host("h2", state=HostState.MAINTENANCE, capacity={LICENCES: 2}),
    vms=[
        a_vm("v1", "h1", agent=True, cpu=CpuSettings(reservation_mhz=1000)),
        a_vm("v2", "h2", agent=True, state=VmState.SLEEPING, consumption={LICENCES: 1}),
    ],
    rules=(
        KeepTogether(id=RuleId("r1"), vms=(VmId("v1"), VmId("v2"))),
        StayOff(id=RuleId("r2"), vms=(VmId("v2"),), hosts=(HostId("h1"),), hard=False),
    ),
)
PAIR = a_cluster(
    a_host("h1"),
    a_host("h2", state=HostState.STANDBY),
    vms=[
        a_vm("v1", "h1", ft_pair="v2", template="debian", replaceable=True),
        a_vm("v2", ft_pair="v1", state=VmState.INIT, template="debian"),
    ],
    rules=(StayWithin(id=RuleId("r1"), vms=(VmId("v1"),), hosts=(HostId("h1"),)),),
)
SLEEPERS = a_cluster(
    a_host("h1", capacity={LICENCES: 3}),
    a_host("h2", cores=1, capacity={LICENCES: 1}, reserve=HostReserve(memory_mib=16000)),
    vms=[
        a_vm("v1", "h1", state=VmState.SLEEPING, vcpus=2, consumption={LICENCES: 1}),
        a_vm("v2", "h1", consumption={LICENCES: 3}),
    ],
    rules=(KeepApart(id=RuleId("r1"), vms=(VmId("v1"), VmId("v2")), continuous=True),),
)
BROKEN = a_cluster(
    a_host("h1"),
    a_host("h2"),
    vms=[
        a_vm("v1", "h1", cpu=CpuSettings(reservation_mhz=3000), ft_pair="v2"),
        a_vm("v2", "h2", cpu=CpuSettings(reservation_mhz=2000), ft_pair="v1"),
    ],
    rules=(
        KeepTogether(id=RuleId("r1"), vms=(VmId("v1"), VmId("v2"))),
        StayOff(id=RuleId("r2"), vms=(VmId("v1"),), hosts=(HostId("h2"),), continuous=True),
    ),
)
WAKING = a_cluster(
    a_host("h1", capacity={LICENCES: 4}),
    a_host("h2", memory_mib=1024, capacity={LICENCES: 3}),
    vms=[
        a_vm("v1", "h1", state=VmState.SLEEPING, agent=True, consumption={LICENCES: 2}),
        a_vm(
            "v2", "h2", memory=MemorySettings(reservation_mib=2048), consumption={LICENCES: 2}
        ),  # more than its host has, before any plan
    ],
)
WORLDS = {
    "tight": TIGHT,
    "platform": PLATFORM,
    "pair": PAIR,
    "sleepers": SLEEPERS,
    "broken": BROKEN,
    "waking": WAKING,
}


@pytest.mark.parametrize("name", WORLDS)
def test_every_plan_of_one_step_is_judged_alike(name: str) -> None:
    snapshot = WORLDS[name]
    hosts, vms = [*snapshot.hosts, HostId("nowhere")], [*snapshot.vms, VmId("unknown")]
    for action in all_actions(hosts, vms, hosts):
        agree(snapshot, a_plan(a_step("s1", action, 1, 3)))


@pytest.mark.parametrize("name", WORLDS)
def test_every_plan_of_two_steps_is_judged_alike(name: str) -> None:
    snapshot = WORLDS[name]
    actions = list(all_actions(snapshot.hosts, snapshot.vms, list(snapshot.hosts), (0, 3)))
    verdicts = Counter(not agree(snapshot, plan) for plan in pairs(actions))
    assert verdicts[True] > 20
    assert verdicts[False] > 20


# Random worlds and plans: a seed gives many quickly, and Hypothesis finds a small one


def some_cluster(chance: Random) -> Snapshot:
    """Return a cluster in any condition: sleeping agents, full hosts, violated rules, pairs."""
    hosts = [
        a_host(
            f"h{n}",
            cores=chance.choice([1, 2, 2, 2]),
            memory_mib=chance.choice([1024, 2048, 4096]),
            state=chance.choice([*[HostState.ON] * 9, *HostState]),
            capacity=chance.choice([{}, {LICENCES: 1}, {LICENCES: 3}, {LICENCES: 2, CYCLES: 1}]),
            reserve=HostReserve(
                cpu_mhz=chance.choice([0, 0, 500]), memory_mib=chance.choice([0, 0, 512])
            ),
            memory_overcommit=chance.choice([None, 1.3, 8.0, 8.0]),
            cpu_overcommit=chance.choice([*[None] * 6, 0.5, 1.5]),
        )
        for n in range(chance.randint(1, 3))
    ]
    vms = [some_vm(chance, f"v{n}", hosts) for n in range(chance.randint(1, 5))]
    if not chance.randrange(3):
        names = [vm.id for vm in vms]
        vms = [with_pair(vm, names) for vm in vms]
    rules = [some_rule(chance, f"r{n}", hosts, vms) for n in range(chance.choice([0, 0, 1, 2]))]
    snapshot = a_cluster(*hosts, vms=vms, rules=tuple(rules))
    return replace(snapshot, version=chance.choice([0, 7]))


def some_vm(chance: Random, name: str, hosts: Sequence[Host]) -> Vm:
    """Return a VM in a state that fits the state of its host."""
    host = chance.choice(hosts)
    agent = not chance.randrange(5)
    state = chance.choice([*[VmState.RUNNING] * 5, *[VmState.READY] * 2, *VmState])
    if host.state is not HostState.ON and state is VmState.RUNNING:
        agent, state = True, VmState.SLEEPING
    memory_mib = chance.choice([0, 512, 1024])
    return a_vm(
        name,
        host.id if state.has_host else None,
        state=state,
        agent=agent,
        vcpus=chance.choice([1, 1, 1, 2]),
        cpu=CpuSettings(reservation_mhz=chance.choice([0, 500, 1000, 1500])),
        memory=MemorySettings(reservation_mib=memory_mib),
        consumption=chance.choice([{}, {LICENCES: 0}, {LICENCES: 1}, {LICENCES: 2, CYCLES: 1}]),
        template=chance.choice([None, "debian", "debian"]),
        replaceable=chance.random() < 0.5,
    )


def with_pair(vm: Vm, names: Sequence[VmId]) -> Vm:
    """Pair the first VM with the last, the second with the last but one, and so on."""
    other = names[-1 - names.index(vm.id)]
    return vm.but(ft_pair=None if other == vm.id else other)


def some_rule(chance: Random, name: str, hosts: Sequence[Host], vms: Sequence[Vm]) -> Rule:
    """Return a rule of any kind, mostly a hard one."""
    among = [*(vm.id for vm in vms), VmId("gone")]
    group = tuple(chance.sample(among, chance.randint(2, min(3, len(among)))))
    places = tuple({chance.choice(hosts).id for _ in range(2)})
    given: dict[str, Any] = {
        "id": RuleId(name),
        "vms": group,
        "hard": bool(chance.randrange(5)),
        "continuous": not chance.randrange(3),
    }
    match chance.randrange(5):
        case 4:
            several = tuple(vm for vm in group if vm != "gone")
            constraint, number = chance.choice([("MaxPerHost", 1), ("MinRunning", 2)])
            arguments: dict[str, Any] = {"vs": several, "nb": number}
            fields = {"id": RuleId(name), "hard": given["hard"], "continuous": given["continuous"]}
            return Satisfy(constraint=constraint, arguments=arguments, **fields)
        case 0:
            return KeepApart(**given)
        case 1:
            return KeepTogether(**given)
        case 2:
            return StayWithin(hosts=places, **given)
        case _:
            return StayOff(hosts=places, **given)


def wild_plan(chance: Random, snapshot: Snapshot) -> Plan:
    """Return any actions at any times, on a coarse grid, so that ties are frequent."""
    steps = []
    for n in range(chance.randint(1, 4)):
        start = chance.randint(0, 3)
        end = start + chance.choice([1, 1, 2, 3])
        steps.append(a_step(f"s{n}", wild_action(chance, snapshot), start, end))
    return on_paper(chance, snapshot, steps)


def wild_action(chance: Random, snapshot: Snapshot) -> Action:
    """Return any action, also on objects that do not exist."""
    hosts = [*snapshot.hosts] * 3 + [HostId("nowhere")]
    vms = [*snapshot.vms] * 3 + [VmId("unknown")]
    if chance.randrange(5):
        return chance.choice(list(all_actions([], [chance.choice(vms)], hosts)))
    return chance.choice(list(all_actions([chance.choice(hosts)], [], hosts)))


def likely_plan(chance: Random, snapshot: Snapshot) -> Plan:
    """Return a plan whose steps can start when planned; one of them perhaps cannot."""
    steps: list[Step] = []
    now = 0
    tries = chance.randint(1, 9)
    faulty = chance.randrange(3 * tries)
    for n in range(tries):
        now += chance.choice([0, 0, 1, 1, 2])
        cluster = cluster_after(
            snapshot,
            [step for step in steps if step.end_ms <= now],
            [step for step in steps if step.start_ms <= now < step.end_ms],
        )
        action = likely_action(chance, cluster, n != faulty)
        if action is not None:
            steps.append(a_step(f"s{n}", action, now, now + chance.choice([1, 1, 2, 3])))
    return on_paper(chance, snapshot, steps) if steps else wild_plan(chance, snapshot)


def likely_action(chance: Random, cluster: Cluster, good: bool) -> Action | None:
    """Return an action that could start now, or one with a single objection."""
    hosts, vms = list(cluster.hosts), list(cluster.vms)
    kinds: dict[str, list[Action]] = {}
    if good:
        subject = chance.choice([*vms, *vms, *hosts])
        for action in all_actions(
            [host for host in hosts if host == subject], [vm for vm in vms if vm == subject], hosts
        ):
            if not against_start(cluster, action):
                kinds.setdefault(type(action).__name__, []).append(action)
        if chance.randrange(6):
            kinds.pop("Kill", None)  # it is nearly always possible, and ends everything else
    else:
        for action in all_actions(hosts, vms, hosts):
            if len(found := against_start(cluster, action)) == 1:
                kinds.setdefault(found.pop(), []).append(action)
    return chance.choice(kinds[chance.choice(sorted(kinds))]) if kinds else None


def on_paper(chance: Random, snapshot: Snapshot, steps: list[Step]) -> Plan:
    """Return a plan of these steps in some order, some with prerequisites, sometimes invalid."""
    version = snapshot.version
    index = chance.randrange(len(steps))
    step = steps[index]
    early = [other.id for other in steps if other.end_ms <= step.start_ms]
    match chance.randrange(24):
        case 0:
            version += chance.choice([-1, 1])
        case 1:
            steps[index] = step.but(id=chance.choice(steps).id)
        case 2:
            steps[index] = step.but(end_ms=step.start_ms - chance.randint(0, 1))
        case 3:
            steps[index] = step.but(after=(*early, chance.choice(steps).id))
        case 4:
            steps[index] = step.but(after=(*early, StepId("never")))
        case 5 | 6 | 7:
            steps[index] = step.but(after=tuple(early))
        case 8 | 9:
            chance.shuffle(steps)
        case 10:
            start = chance.randint(0, 4)
            steps[index] = step.but(start_ms=start, end_ms=start + chance.randint(1, 3))
        case _:
            pass
    return a_plan(*steps, base_version=version)


@given(worlds.clusters(), st.randoms(use_true_random=False))
def test_random_plans_have_one_verdict(snapshot: Snapshot, chance: Random) -> None:
    agree(snapshot, wild_plan(chance, snapshot))


@given(worlds.clusters(), st.randoms(use_true_random=False))
def test_sensible_plans_have_one_verdict(snapshot: Snapshot, chance: Random) -> None:
    agree(snapshot, likely_plan(chance, snapshot))


@given(st.randoms(use_true_random=False))
def test_plans_for_clusters_in_any_condition_have_one_verdict(chance: Random) -> None:
    snapshot = some_cluster(chance)
    agree(snapshot, likely_plan(chance, snapshot))


EVERY_OBJECTION = {
    *("1 version", "1 twice", "1 times", "1 after nothing", "1 too early"),
    "3 busy",
    *("4 state", "4 elsewhere", "4 no template", "4 not replaceable", "4 agent", "4 to itself"),
    *("5 touched", "5 state", "5 not empty"),
    *("6 target is off", "6 source is off", "6 too few cores", "6 pair"),
    *("7 cpu", "7 memory", "7 configured memory", "7 vcpus", "7 named", "7 allocation"),
    *("8 broken on the way", "8 broken again", "8 worse on the way", "8 broken at the end"),
    "9 unknown",
}


def test_many_plans_have_one_verdict_and_every_precondition_decides_some_of_them() -> None:
    verdicts: Counter[str] = Counter()
    alone: set[str] = set()
    ties = 0
    for seed in range(1000, 3000):  # every objection is the only one of some plan among these
        chance = Random(seed)
        snapshot = some_cluster(chance)
        plan = likely_plan(chance, snapshot)
        found = agree(snapshot, plan)
        verdicts["refused" if found else "accepted"] += 1
        if len(found) == 1:
            alone |= found
        if not found:
            ties += any_tie(plan)
    assert verdicts["accepted"] > 500, verdicts
    assert verdicts["refused"] > 500, verdicts
    assert ties > 100, "ends must come before starts in more cases than these"
    assert alone == EVERY_OBJECTION


def any_tie(plan: Plan) -> bool:
    """Whether a step starts at the end of another one on the same VM or host."""
    return any(
        ending.end_ms == starting.start_ms
        and (
            (ending.footprint.vm is not None and ending.footprint.vm == starting.footprint.vm)
            or (ending.footprint.switched in starting.footprint.hosts)
            or (starting.footprint.switched in ending.footprint.hosts)
        )
        for ending in plan.steps
        for starting in plan.steps
    )


# Cases that were found beside it, in their smallest form


def test_two_rules_with_one_name_both_count() -> None:
    off_h2 = StayOff(id=RuleId("r"), vms=(VmId("v1"),), hosts=(HostId("h2"),))
    off_h3 = off_h2.but(hosts=(HostId("h3"),))
    hosts = [a_host("h1"), a_host("h2"), a_host("h3")]
    snapshot = a_cluster(*hosts, vms=[a_vm("v1", "h1")], rules=(off_h2, off_h3))
    move = Migrate(vm=VmId("v1"), source=HostId("h1"), target=HostId("h2"))
    agree(snapshot, a_plan(a_step("s1", move)))


def test_a_step_does_not_take_the_id_of_one_that_is_under_way() -> None:
    v1, h1 = VmId("v1"), HostId("h1")
    under_way = a_step("s1", Migrate(vm=v1, source=h1, target=HostId("h2")))
    snapshot = replace(
        a_cluster(a_host("h1"), a_host("h2"), vms=[a_vm("v1", "h1"), a_vm("v2")]),
        in_flight=FrozenMap({under_way.id: RunningAction(under_way, 1, 0)}),
    )
    boot = a_step("s1", Boot(vm=VmId("v2"), target=h1), 0, 1)
    busy = a_step("s2", Suspend(vm=v1, source=h1), 1, 2)
    assert isinstance(verify(snapshot, a_plan(busy)), Refusal)
    assert isinstance(verify(snapshot, a_plan(boot, busy)), Refusal)


def events_of(snapshot: Snapshot, *steps: Step) -> list[Event]:
    """Execute a plan in a world without failures."""
    journal = MemoryJournal()
    loop = ControlLoop(MemoryWorld(snapshot), journal)
    plan = a_plan(*steps, base_version=loop.snapshot().version)
    assert isinstance(loop.execute(plan), VerifiedPlan)
    return list(journal.events())


def test_a_verified_allocation_gets_the_capacity_that_it_waits_for() -> None:
    snapshot = a_cluster(
        a_host("h1", capacity={LICENCES: 2}),
        vms=[a_vm("v1", "h1"), a_vm("v2", "h1", consumption={LICENCES: 2})],
    )
    free = a_step("s1", Shutdown(vm=VmId("v2"), source=HostId("h1")), 0, 1000)
    grow = a_step("s2", Allocate(vm=VmId("v1"), resource=LICENCES, amount=2), 1000, 2000)
    end = events_of(snapshot, free, grow)[-1]
    assert isinstance(end, PlanEnded)
    assert end.outcome is PlanOutcome.DONE


def test_a_verified_continuous_rule_holds_during_the_execution() -> None:
    v1, v2 = VmId("v1"), VmId("v2")
    rule = KeepTogether(id=RuleId("r1"), vms=(v1, v2), continuous=True)
    hosts = [a_host("h1"), a_host("h2")]
    snapshot = a_cluster(*hosts, vms=[a_vm("v1", "h1"), a_vm("v2")], rules=(rule,))
    stop = a_step("s1", Shutdown(vm=v1, source=HostId("h1")), 0, 2000)
    start = a_step("s2", Boot(vm=v2, target=HostId("h2")), 2000, 3000)
    state = Snapshot()
    for event in events_of(snapshot, stop, start):
        state = transition.apply(state, event)
        assert not is_broken(rule, Cluster(dict(state.hosts), dict(state.vms), []))


def test_an_action_on_an_agent_comes_before_its_host_is_switched_off() -> None:
    v1 = VmId("v1")
    snapshot = a_cluster(a_host("h1", capacity={LICENCES: 2}), vms=[a_vm("v1", "h1", agent=True)])
    more = a_step("s1", Allocate(vm=v1, resource=LICENCES, amount=2), 0, 1000)
    less = a_step("s2", Allocate(vm=v1, resource=LICENCES, amount=1), 1000, 2000)
    end = events_of(snapshot, more, less, a_step("s3", PowerOff(host=HostId("h1")), 2000, 2500))[-1]
    assert isinstance(end, PlanEnded)
    assert end.outcome is PlanOutcome.DONE


@given(worlds.clusters(), st.randoms(use_true_random=False))
def test_an_accepted_plan_is_executed_to_its_end_without_failures(
    snapshot: Snapshot, chance: Random
) -> None:
    plan = likely_plan(chance, snapshot)
    if isinstance(verify(snapshot, plan), VerifiedPlan):
        end = events_of(snapshot, *plan.steps)[-1]
        assert isinstance(end, PlanEnded)
        assert end.outcome is PlanOutcome.DONE


def test_a_plan_that_can_never_be_executed_is_refused() -> None:
    v1, v2, h1, h2 = VmId("v1"), VmId("v2"), HostId("h1"), HostId("h2")
    rule = KeepTogether(id=RuleId("r1"), vms=(v1, v2), continuous=True)
    vms = [a_vm("v1", "h1"), a_vm("v2", "h1")]
    snapshot = a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=(rule,))
    steps = [
        a_step("s1", Migrate(vm=v1, source=h1, target=h2)),
        a_step("s2", Migrate(vm=v2, source=h1, target=h2)),
    ]
    if isinstance(verify(snapshot, a_plan(*steps)), VerifiedPlan):
        end = events_of(snapshot, *steps)[-1]
        assert isinstance(end, PlanEnded)
        assert end.outcome is PlanOutcome.DONE


def test_a_switch_starts_no_agent_too_early_for_a_continuous_rule() -> None:
    rule = KeepTogether(id=RuleId("r1"), vms=(VmId("v1"), VmId("v2")), continuous=True)
    snapshot = a_cluster(
        a_host("h1"),
        a_host("h2", state=HostState.STANDBY),
        vms=[a_vm("v1", "h1"), a_vm("v2", "h2", agent=True, state=VmState.SLEEPING)],
        rules=(rule,),
    )
    stop = a_step("s1", Shutdown(vm=VmId("v1"), source=HostId("h1")), 0, 2000)
    wake = a_step("s2", PowerOn(host=HostId("h2")), 2000, 3000)
    state = Snapshot()
    for event in events_of(snapshot, stop, wake):
        state = transition.apply(state, event)
        assert not is_broken(rule, Cluster(dict(state.hosts), dict(state.vms), []))
