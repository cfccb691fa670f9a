"""No step of any advice puts more configured memory or vCPUs on a host than it may have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import product

from hypothesis import assume, event, given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.balance.placement import place_vms
from equipoise.balance.propose import BalanceDecider
from equipoise.balance.run_pass import run_whatif
from equipoise.model.action import Boot, Migrate
from equipoise.model.action_durations import Estimates
from equipoise.model.host import Host, HostState, RequestedHostState
from equipoise.model.plan import Intent, Plan, Step
from equipoise.model.policy.balance import BalancePolicy
from equipoise.model.policy.power import PowerPolicy
from equipoise.model.problem import PlanningProblem
from equipoise.model.quantity import HostId, PlanId, RuleId, VmId
from equipoise.model.rule import Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand, Vm, VmState
from equipoise.plan import order
from equipoise.plan.exact.solve import solve
from equipoise.power.propose import PowerDecider
from plain_limits import memory_for_sizes, vcpus_for_sizes

SELDOM = st.sampled_from([False, False, False, True])
FACTORS = st.sampled_from([None, None, 0.7, 1.5])


@st.composite
def some_host(draw: st.DrawFn, name: str) -> Host:
    asleep = name != "h0" and draw(SELDOM)
    leaving = not asleep and draw(SELDOM)
    return a_host(
        name,
        memory_mib=1024 * draw(st.integers(1, 6)),
        state=HostState.STANDBY if asleep else HostState.ON,
        requested=RequestedHostState.MAINTENANCE if leaving else None,
        memory_overcommit=draw(FACTORS),
        cpu_overcommit=draw(FACTORS),
    )


@st.composite
def some_vm(draw: st.DrawFn, name: str, hosts: list[Host]) -> Vm:
    on = [host.id for host in hosts if host.state is HostState.ON]
    size = 1024 * draw(st.integers(1, 3))
    demand = Demand(cpu_mhz=draw(st.integers(0, 2000)), memory_mib=draw(st.integers(0, size)))
    host = draw(st.sampled_from(on))
    return a_vm(name, host, vcpus=draw(st.integers(1, 2)), memory_mib=size, demand=demand)


@st.composite
def crowded(draw: st.DrawFn, vms_max: int = 7) -> Snapshot:
    """A small cluster of hosts of different sizes; some are overfull, some are to be left."""
    hosts = [draw(some_host(f"h{n}")) for n in range(draw(st.integers(2, 4)))]
    vms = [draw(some_vm(f"v{n}", hosts)) for n in range(draw(st.integers(1, vms_max)))]
    reserve = Satisfy(
        id=RuleId("reserve"), constraint="Failover", arguments={"nb": 1, "id": "memory"}
    )
    return a_cluster(
        *hosts,
        vms=vms,
        rules=(reserve,) if draw(SELDOM) else (),
        balance=BalancePolicy(threshold=5, cost_benefit=draw(st.booleans()), goodness=0),
        power=PowerPolicy(),
        memory_overcommit=draw(st.sampled_from([1.0, 1.0, 1.25])),
    )


def excess(state: Snapshot, here: Iterable[tuple[VmId, HostId]]) -> dict[tuple[HostId, str], int]:
    """By how much each host has more memory and vCPUs of VMs than it may have."""
    memory, vcpus = defaultdict[HostId, int](int), defaultdict[HostId, int](int)
    for vm, host in here:
        memory[host] += state.vms[vm].memory_mib
        vcpus[host] += state.vms[vm].vcpus
    over = {}
    for name, known in state.hosts.items():
        over[name, "memory"] = max(0, memory[name] - memory_for_sizes(known))
        over[name, "vcpus"] = max(0, vcpus[name] - vcpus_for_sizes(known))
    return over


def running(state: Snapshot) -> dict[VmId, HostId]:
    return {
        vm.id: vm.host
        for vm in state.vms.values()
        if vm.host is not None and vm.state is VmState.RUNNING
    }


def stays_within_limits(state: Snapshot, steps: Iterable[Step]) -> bool:
    """Whether no host is fuller by size than at first, or than it may be, after any step."""
    places = set(running(state).items())
    first = excess(state, places)
    turns = []
    for step in steps:
        match step.action:
            case Migrate(vm=vm, source=source, target=target):
                turns += [(step.start_ms, 1, (vm, target)), (step.end_ms, 0, (vm, source))]
            case Boot(vm=vm, target=target):
                turns.append((step.start_ms, 1, (vm, target)))
            case _:
                pass
    # Ends come before starts at one instant.
    for _, comes, place in sorted(turns):
        if comes:
            places.add(place)
        else:
            places.discard(place)
        now = excess(state, places)
        if any(now[key] > first[key] for key in now):
            return False
    return True


def as_plan(state: Snapshot, intents: Iterable[Intent], repairs: tuple[RuleId, ...] = ()) -> Plan:
    plan = order(state, tuple(intents), PlanId("p"), repairs)
    assert isinstance(plan, Plan), plan
    return plan


@given(crowded())
def test_no_step_of_a_pass_overfills_a_host(state: Snapshot) -> None:
    found = BalanceDecider(Estimates()).propose(state)
    event(f"moves: {len(found.intents)}")
    assert stays_within_limits(state, as_plan(state, found.intents, found.repairs).steps)


@given(crowded())
def test_no_standby_or_wake_overfills_a_host(state: Snapshot) -> None:
    found = PowerDecider(Estimates()).propose(state)
    event(f"intents: {len(found.intents)}")
    assert stays_within_limits(state, as_plan(state, found.intents, found.repairs).steps)


@given(crowded(vms_max=5), st.data())
def test_no_placement_overfills_a_host(state: Snapshot, data: st.DataObject) -> None:
    new = [data.draw(some_vm(f"n{n}", [*state.hosts.values()])) for n in range(2)]
    joined = state.inventory()
    ready = [vm.but(host=None, state=VmState.READY) for vm in new]
    state = Snapshot.of(joined.but(vms=(*joined.vms, *ready)))
    found = place_vms(state, [vm.id for vm in new], Estimates())
    event(f"placed: {len(found.placed)}")
    assert stays_within_limits(state, as_plan(state, found.intents).steps)
    fits = [placed.vm for placed in found.placed]
    if len(fits) < len(new) and not state.settings.rules:
        assert not fits_at_once(state, [vm.id for vm in new])


def fits_at_once(state: Snapshot, new: list[VmId]) -> bool:
    """Whether all new VMs fit on hosts that are on, beside the VMs that are there; by trying."""
    there = running(state)
    first = excess(state, there.items())
    takes = [
        host.id
        for host in state.hosts.values()
        if host.state is HostState.ON and host.requested is None
    ]
    for chosen in product(takes, repeat=len(new)):
        now = excess(state, (there | dict(zip(new, chosen, strict=True))).items())
        if all(now[host, of] == 0 for host in chosen for of in ("memory", "vcpus")):
            return all(now[key] <= first[key] for key in now)
    return False


@given(crowded())
def test_restarts_after_a_failure_overfill_no_host(state: Snapshot) -> None:
    lost = next(host.id for host in state.hosts.values() if host.state is HostState.ON)
    found = run_whatif(state, Estimates(), fail=[lost])
    later = running(found.done.snapshot)
    first = excess(state, ((vm, at) for vm, at in running(state).items() if at != lost))
    now = excess(found.done.snapshot, later.items())
    assert all(now[key] <= first[key] for key in now)
    plan = as_plan(found.done.snapshot, found.done.repair.intents, found.done.advice.repairs)
    assert stays_within_limits(found.done.snapshot, plan.steps)


@given(crowded(vms_max=4))
def test_no_plan_of_the_planner_overfills_a_host(state: Snapshot) -> None:
    assume(not state.settings.rules)
    result = solve(PlanningProblem(cluster=state.inventory()))
    event(result.status)
    if result.plan is not None:
        assert stays_within_limits(state, result.plan.steps)
