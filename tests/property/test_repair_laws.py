"""Rule repair against brute force: the fewest moves, or none and the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.balance import BalanceDecider
from equipoise.balance.repair.placement_state import PlacementState
from equipoise.balance.repair.repair_search import RepairSearchResult, search_repair
from equipoise.balance.repair.rule_repair import RepairResult, repair_rules
from equipoise.balance.rules import read_rules
from equipoise.model.action import EnterMaintenance, Migrate, PowerOff
from equipoise.model.action_durations import Estimates
from equipoise.model.event import ActionStarted
from equipoise.model.host import Host, HostState, RequestedHostState
from equipoise.model.plan import Plan, Proposal
from equipoise.model.policy.balance import Automation, BalancePolicy, HostOverride, VmOverride
from equipoise.model.quantity import HostId, PlanId, ResourceName, RuleId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from equipoise.plan import VerifiedPlan, order, verify
from plain_repair import all_is_well, can_be_made, fewest_moves, may_come, may_move, placing_of

LICENCES = ResourceName("licences")
SELDOM = st.sampled_from([False, False, False, False, True])


@st.composite
def a_machine(draw: st.DrawFn, name: str) -> Host:
    asleep = name != "h0" and draw(SELDOM)
    requested_states = st.sampled_from(
        [None, None, None, RequestedHostState.MAINTENANCE, RequestedHostState.STANDBY]
    )
    return a_host(
        name,
        cores=draw(st.integers(1, 4)),
        memory_mib=draw(st.sampled_from([1024, 2048, 4096])),
        state=HostState.STANDBY if asleep else HostState.ON,
        requested=draw(requested_states),
        labels={"rack": draw(st.sampled_from("ab"))},
        capacity={LICENCES: draw(st.integers(0, 2))},
        memory_overcommit=draw(st.sampled_from([None, None, 1.5, 3.0])),
        cpu_overcommit=draw(st.sampled_from([None, None, None, 1.0])),
    )


@st.composite
def a_guest(draw: st.DrawFn, name: str, hosts: list[Host]) -> Vm:
    host = draw(
        st.sampled_from([candidate for candidate in hosts if candidate.state is HostState.ON])
    )
    return a_vm(
        name,
        host.id,
        state=VmState.SLEEPING if draw(SELDOM) and draw(SELDOM) else VmState.RUNNING,
        vcpus=draw(st.sampled_from([1, 1, 2])),
        agent=draw(SELDOM) and draw(st.booleans()),
        cpu=CpuSettings(reservation_mhz=draw(st.sampled_from([0, 0, 500, 1000, 1500]))),
        memory=MemorySettings(reservation_mib=draw(st.sampled_from([0, 0, 512, 1024]))),
        consumption={LICENCES: 1} if draw(SELDOM) else {},
        demand=Demand(
            cpu_mhz=draw(st.integers(0, 3000)), memory_mib=draw(st.sampled_from([0, 700]))
        ),
    )


def paired(vms: list[Vm]) -> list[Vm]:
    """The same VMs, of which the first two are the halves of a fault-tolerant pair."""
    one, two, *others = vms
    return [one.but(ft_pair=two.id), two.but(ft_pair=one.id), *others]


@st.composite
def a_rule(draw: st.DrawFn, name: str, hosts: list[Host], vms: list[Vm]) -> Rule:
    """A rule that can be planned for, in its own words or in those of the library."""
    ids = [vm.id for vm in vms]
    several = tuple(draw(st.lists(st.sampled_from(ids), min_size=2, max_size=4, unique=True)))
    places = st.lists(st.sampled_from([host.id for host in hosts]), min_size=1, unique=True)
    given: dict[str, Any] = {
        "id": RuleId(name),
        "continuous": draw(st.booleans()),
        "hard": not draw(SELDOM),
    }
    where: Any = tuple(draw(places))
    kinds: list[Rule] = [
        KeepApart(vms=several, **given),
        KeepTogether(vms=several, **given),
        StayWithin(vms=several, hosts=where, **given),
        StayOff(vms=several, hosts=where[:2], **given),
        Satisfy(constraint="Spread", arguments={"vs": several}, **given),
        Satisfy(constraint="Gather", arguments={"vs": several}, **given),
        Satisfy(constraint="Fence", arguments={"v": several[0], "ns": where}, **given),
        Satisfy(constraint="Ban", arguments={"v": several[0], "ns": where[:2]}, **given),
        Satisfy(constraint="FtCompatible", arguments={"key": "rack"}, **given),
        Satisfy(constraint="FtApart", **given),
        Satisfy(constraint="FailoverHosts", arguments={"ns": where[:1]}, **given),
    ]
    return draw(st.sampled_from(kinds))


@st.composite
def a_policy(draw: st.DrawFn, hosts: list[Host], vms: list[Vm]) -> BalancePolicy:
    host_overrides = st.sampled_from([None, None, None, HostOverride.OFF, HostOverride.CLOSED])
    of_hosts = {host.id: draw(host_overrides) for host in hosts}
    return BalancePolicy(
        vms={vm.id: VmOverride.OFF for vm in vms if draw(SELDOM) and draw(st.booleans())},
        hosts={host: override for host, override in of_hosts.items() if override is not None},
    )


@st.composite
def troubled(draw: st.DrawFn) -> Snapshot:
    """A small cluster in which all sorts of things are wrong that can be planned for."""
    hosts = [draw(a_machine(f"h{n}")) for n in range(draw(st.integers(2, 4)))]
    vms = [draw(a_guest(f"v{n}", hosts)) for n in range(draw(st.integers(2, 6)))]
    if draw(st.booleans()):
        vms = paired(vms)
    rules = tuple(draw(a_rule(f"r{n}", hosts, vms)) for n in range(draw(st.integers(0, 3))))
    policy = draw(a_policy(hosts, vms)) if draw(st.booleans()) else BalancePolicy()
    state = a_cluster(*hosts, vms=vms, rules=rules, balance=policy)
    return draw(under_way(state)) if draw(SELDOM) else state


@st.composite
def under_way(draw: st.DrawFn, state: Snapshot) -> Snapshot:
    """The same cluster while a VM is on its way to another host."""
    vms = [vm for vm in state.vms.values() if vm.state is VmState.RUNNING and not vm.agent]
    hosts = [host.id for host in state.hosts.values() if host.state is HostState.ON]
    assume(vms and len(hosts) > 1)
    vm = draw(st.sampled_from(vms))
    assert vm.host is not None
    target = draw(st.sampled_from([host for host in hosts if host != vm.host]))
    step = a_step("earlier", Migrate(vm=vm.id, source=vm.host, target=target))
    return transition.apply(state, ActionStarted(at_ms=0, step=step, attempt=1))


def settled(state: Snapshot) -> tuple[PlacementState, RepairSearchResult]:
    placement_state = PlacementState(state, read_rules(state))
    placement_state.find_problems()
    return placement_state, search_repair(placement_state)


def repaired(state: Snapshot) -> RepairResult:
    return repair_rules(state, read_rules(state), Estimates())


def after(state: Snapshot, where: dict[VmId, HostId]) -> Snapshot:
    """The cluster once VMs are there."""
    vms = {vm.id: vm.but(host=where.get(vm.id, vm.host)) for vm in state.vms.values()}
    return replace(state, vms=type(state.vms)(vms))


def targets(found: RepairResult) -> dict[VmId, HostId]:
    return {move.vm: move.target for move in found.moves}


@given(troubled())
def test_solvable_problems_are_repaired_with_the_fewest_moves(state: Snapshot) -> None:
    fewest, in_turn = fewest_moves(state), fewest_moves(state, in_turn=True)
    event(f"moves: {fewest}, one after the other: {in_turn}")
    placement_state, found = settled(state)
    assert not placement_state.abandoned.difference(found.unsolved)
    if fewest is None:
        assert found.unsolved or repaired(state).faults
        return
    where = placing_of(state) | {assignment.vm: assignment.host for assignment in found.assignments}
    assert not found.unsolved
    assert all_is_well(state, where)
    assert found.fewest == (in_turn == fewest)
    if found.fewest:
        assert len(found.assignments) == fewest
    if in_turn is not None:
        assert can_be_made(state, where)
        assert len(found.assignments) == in_turn


@given(troubled())
def test_unsolvable_problems_are_reported(state: Snapshot) -> None:
    found = repaired(state)
    well = all_is_well(state, placing_of(state) | targets(found))
    assert well == (not found.faults)
    for fault in found.faults:
        assert fault.code
        assert fault.detail


@given(troubled())
def test_vms_without_problems_stay(state: Snapshot) -> None:
    if all_is_well(state, placing_of(state)):
        found = repaired(state)
        assert not found.moves
        assert not found.faults
        assert not found.repairs


@given(troubled())
def test_a_repaired_cluster_needs_no_repair(state: Snapshot) -> None:
    _, found = settled(state)
    later = after(state, {assignment.vm: assignment.host for assignment in found.assignments})
    _, again = settled(later)
    assert not again.assignments
    assert set(again.unsolved) == set(found.unsolved)


@given(troubled())
def test_pinned_vms_stay_and_closed_hosts_get_no_vms(state: Snapshot) -> None:
    for move in repaired(state).moves:
        assert may_move(state, state.vms[move.vm])
        assert may_come(state, state.hosts[move.target])
        assert move.source == state.vms[move.vm].host


@given(troubled())
def test_each_vm_moves_once_and_to_another_host(state: Snapshot) -> None:
    found = repaired(state)
    assert len(targets(found)) == len(found.moves)
    assert all(move.source != move.target for move in found.moves)


def others(hosts: list[Host], vms: list[Vm]) -> st.SearchStrategy[Rule]:
    """Rules that only the gate understands, or that ask for room to spare."""
    made = st.sampled_from(
        [
            ("Lonely", {"vs": (vms[0].id,)}),
            ("MaxPerHost", {"vs": tuple(vm.id for vm in vms), "nb": 2}),
            ("MinOnline", {"ns": tuple(host.id for host in hosts), "nb": 2}),
            ("FailoverPercentage", {"id": "memory", "percent": 30}),
            ("Failover", {"nb": 1, "id": "memory"}),
            ("Failover", {"nb": 1, "id": "cpu"}),
        ]
    )
    return st.builds(
        lambda constraint, continuous, name: Satisfy(
            id=RuleId(name),
            constraint=constraint[0],
            arguments=constraint[1],
            continuous=continuous,
        ),
        made,
        st.booleans(),
        st.sampled_from(["x", "y"]),
    )


@st.composite
def governed(draw: st.DrawFn) -> Snapshot:
    """A small cluster with rules of every kind, and a policy of its own."""
    hosts = [draw(a_machine(f"h{n}")) for n in range(draw(st.integers(2, 4)))]
    vms = [draw(a_guest(f"v{n}", hosts)) for n in range(draw(st.integers(2, 6)))]
    vms = paired(vms) if draw(st.booleans()) else vms
    rules = [draw(a_rule(f"r{n}", hosts, vms)) for n in range(draw(st.integers(0, 2)))]
    more = draw(st.lists(others(hosts, vms), max_size=2, unique_by=lambda rule: rule.id))
    policy = draw(a_policy(hosts, vms)).but(
        automation=draw(st.sampled_from([*Automation, Automation.FULL])),
        rules_only=draw(SELDOM),
        threshold=5,
        cost_benefit=False,
        goodness=0,
    )
    manual = {vm.id: draw(st.sampled_from(list(VmOverride))) for vm in vms if draw(SELDOM)}
    state = a_cluster(
        *hosts,
        vms=vms,
        rules=(*rules, *more),
        balance=policy.but(vms={**policy.vms, **manual}),
    )
    return draw(under_way(state)) if draw(SELDOM) else state


def done_by(state: Snapshot, found: Proposal) -> Plan:
    plan = order(state, found.intents, PlanId("p"), found.repairs)
    assert isinstance(plan, Plan), plan
    return plan


@given(governed())
def test_every_proposal_passes_the_gate(state: Snapshot) -> None:
    found = BalanceDecider(Estimates()).propose(state)
    event(f"intents: {len(found.intents)}")
    if found.intents:
        verdict = verify(state, done_by(state, found))
        assert isinstance(verdict, VerifiedPlan), verdict
    for intent in (*found.intents, *found.advised):
        match intent.action:
            case Migrate(vm=vm, target=target):
                assert may_move(state, state.vms[vm])
                assert may_come(state, state.hosts[target])
            case EnterMaintenance(host=host):
                assert state.hosts[host].requested is RequestedHostState.MAINTENANCE
            case PowerOff(host=host):
                assert state.hosts[host].requested is RequestedHostState.STANDBY
            case other:
                raise AssertionError(other)


@given(governed())
def test_moves_that_need_approval_do_not_run(state: Snapshot) -> None:
    found = BalanceDecider(Estimates()).propose(state)
    policy = state.settings.balance
    for intent in found.intents:
        if isinstance(intent.action, Migrate):
            default = VmOverride(policy.automation.value)
            assert policy.vms.get(intent.action.vm, default) is VmOverride.FULL
    done = {intent.id for intent in found.intents}
    assert all(done.issuperset(intent.after) for intent in found.intents)
    assert done.isdisjoint(intent.id for intent in found.advised)
