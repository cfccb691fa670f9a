"""Rule repair: fewest moves, evacuated hosts, and faults that name the obstacle."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm, facts
from equipoise.balance import BalanceDecider
from equipoise.balance.advice import BalanceAdvice, BalanceCode
from equipoise.balance.repair.faults import BalanceFault
from equipoise.balance.repair.placement_state import PlacementState
from equipoise.balance.repair.repair_search import search_repair
from equipoise.balance.rules import read_rules
from equipoise.balance.run_pass import run_balance_pass
from equipoise.model.action import Action, Boot, EnterMaintenance, Migrate, PowerOff
from equipoise.model.action_durations import Estimates
from equipoise.model.event import ActionStarted
from equipoise.model.host import HostState, RequestedHostState
from equipoise.model.plan import Plan, Proposal, Purpose
from equipoise.model.policy.balance import Automation, BalancePolicy, HostOverride, VmOverride
from equipoise.model.quantity import HostId, PlanId, ResourceName, RuleId, StepId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from equipoise.plan import VerifiedPlan, order, verify
from equipoise.plan.verify import Refusal

GIB = 1024


def holds(name: str, host: str | None, mib: int, **more: Any) -> Vm:
    """A VM for which so much memory is reserved."""
    memory = MemorySettings(reservation_mib=mib)
    return a_vm(name, host, memory_mib=max(1, mib), memory=memory, **more)


def wants(name: str, host: str, mhz: int, **more: Any) -> Vm:
    return a_vm(name, host, demand=Demand(cpu_mhz=mhz), **more)


def apart(*vms: str, name: str = "apart", **more: Any) -> KeepApart:
    return KeepApart(id=RuleId(name), vms=tuple(map(VmId, vms)), **more)


def together(*vms: str, **more: Any) -> KeepTogether:
    return KeepTogether(id=RuleId("together"), vms=tuple(map(VmId, vms)), **more)


def within(vm: str, *hosts: str, **more: Any) -> StayWithin:
    return StayWithin(id=RuleId("within"), vms=(VmId(vm),), hosts=tuple(map(HostId, hosts)), **more)


def off(vm: str, *hosts: str, **more: Any) -> StayOff:
    return StayOff(id=RuleId("off"), vms=(VmId(vm),), hosts=tuple(map(HostId, hosts)), **more)


def library(constraint: str, **arguments: Any) -> Satisfy:
    return Satisfy(id=RuleId("r"), constraint=constraint, arguments=arguments)


def advised(state: Snapshot) -> BalanceAdvice:
    return run_balance_pass(state, Estimates()).advice


def proposed(state: Snapshot) -> Proposal:
    """What is proposed, which the gate must let pass."""
    found = BalanceDecider(Estimates()).propose(state)
    if found.intents:
        plan = order(state, found.intents, PlanId("p"), found.repairs)
        assert isinstance(plan, Plan)
        assert isinstance(verify(state, plan), VerifiedPlan)
    return found


def actions(found: Proposal) -> list[Action]:
    return [intent.action for intent in found.intents]


def moves(found: Proposal | BalanceAdvice) -> dict[str, str]:
    """Who goes where."""
    if isinstance(found, BalanceAdvice):
        return {str(move.vm): str(move.target) for move in found.moves}
    some = [action for action in actions(found) if isinstance(action, Migrate)]
    return {str(item.vm): str(item.target) for item in some}


def the_fault(state: Snapshot) -> BalanceFault:
    (fault,) = advised(state).faults
    return fault


# Hosts that are to be switched


@pytest.mark.parametrize(
    ("requested", "switch"),
    [
        (RequestedHostState.MAINTENANCE, EnterMaintenance(host=HostId("h1"))),
        (RequestedHostState.STANDBY, PowerOff(host=HostId("h1"))),
    ],
)
def test_a_host_is_evacuated_and_then_switched(
    requested: RequestedHostState, switch: Action
) -> None:
    hosts = [a_host("h1", requested=requested), a_host("h2"), a_host("h3")]
    state = a_cluster(*hosts, vms=[a_vm("a", "h1"), a_vm("b", "h1"), a_vm("c", "h2")])
    found = proposed(state)
    assert moves(found).keys() == {"a", "b"}
    assert found.purpose is Purpose.REPAIR
    last = found.intents[-1]
    assert last.action == switch
    assert set(last.after) == {StepId("move-a"), StepId("move-b")}
    assert {move.code for move in advised(state).moves} == {BalanceCode.EVACUATE}


def test_agents_stay_when_their_host_is_evacuated() -> None:
    agent = holds("agent", "h1", 4 * GIB, agent=True)
    hosts = [a_host("h1", requested=RequestedHostState.MAINTENANCE), a_host("h2")]
    found = proposed(a_cluster(*hosts, vms=[agent, a_vm("a", "h1")]))
    assert moves(found) == {"a": "h2"}
    assert actions(found)[-1] == EnterMaintenance(host=HostId("h1"))


def test_an_empty_host_is_switched_at_once() -> None:
    state = a_cluster(a_host("h1", requested=RequestedHostState.STANDBY), a_host("h2"))
    assert actions(proposed(state)) == [PowerOff(host=HostId("h1"))]


def test_a_host_with_a_pinned_vm_is_not_switched() -> None:
    policy = BalancePolicy(vms={VmId("a"): VmOverride.OFF})
    hosts = [a_host("h1", requested=RequestedHostState.MAINTENANCE), a_host("h2")]
    vms = [a_vm("a", "h1"), a_vm("b", "h1")]
    state = a_cluster(*hosts, vms=vms, balance=policy)
    assert actions(proposed(state)) == [
        Migrate(vm=VmId("b"), source=HostId("h1"), target=HostId("h2"))
    ]
    fault = the_fault(state)
    assert (fault.code, fault.subject) == ("no-target-host", "a")
    assert "a is pinned" in fault.detail


def test_a_sleeping_vm_prevents_the_switch_of_its_host() -> None:
    hosts = [a_host("h1", requested=RequestedHostState.MAINTENANCE), a_host("h2")]
    state = a_cluster(*hosts, vms=[a_vm("a", "h1", state=VmState.SLEEPING)])
    assert not proposed(state).intents
    fault = the_fault(state)
    assert (fault.code, fault.subject) == ("vm-sleeping", "h1")
    assert "a sleeps" in fault.detail


def test_a_host_is_evacuated_although_the_policy_excludes_it() -> None:
    policy = BalancePolicy(hosts={HostId("h1"): HostOverride.OFF})
    hosts = [a_host("h1", requested=RequestedHostState.STANDBY), a_host("h2")]
    state = a_cluster(*hosts, vms=[a_vm("a", "h1")], balance=policy)
    assert moves(proposed(state)) == {"a": "h2"}


def test_a_switch_that_the_gate_refuses_is_not_proposed() -> None:
    rule = library("MinOnline", ns=("h1", "h2"), nb=2)
    hosts = [a_host("h1", requested=RequestedHostState.STANDBY), a_host("h2")]
    state = a_cluster(*hosts, vms=[a_vm("a", "h1")], rules=(rule,))
    assert moves(proposed(state)) == {"a": "h2"}
    assert not advised(state).switches
    fault = the_fault(state)
    assert (fault.code, fault.subject) == ("gate-refuses", "h1")
    assert "rule r" in fault.detail


# Rules


def test_one_move_separates_two_vms() -> None:
    state = a_cluster(
        a_host("h1"), a_host("h2"), vms=[a_vm("a", "h1"), a_vm("b", "h1")], rules=(apart("a", "b"),)
    )
    (move,) = advised(state).moves
    assert (move.code, move.priority, move.target) == (BalanceCode.RULE, 1, "h2")
    assert "apart" in move.reason
    assert len(proposed(state).intents) == 1


def test_the_minority_moves_to_the_majority() -> None:
    vms = [a_vm("a", "h1"), a_vm("b", "h2"), a_vm("c", "h2"), a_vm("d", "h2")]
    state = a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=(together("a", "b", "c", "d"),))
    assert moves(proposed(state)) == {"a": "h2"}


def test_one_move_repairs_two_rules() -> None:
    """Any two of three would do for one of the rules; only one of them repairs both."""
    vms = [a_vm("a", "h1"), a_vm("b", "h1"), a_vm("c", "h1")]
    rules = (apart("a", "b", name="r1"), apart("b", "c", name="r2"))
    state = a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=rules)
    assert moves(proposed(state)) == {"b": "h2"}
    assert advised(state).fewest


@pytest.mark.parametrize("rule", [off("a", "h1", "h3"), within("a", "h2")])
def test_a_vm_moves_to_an_allowed_host(rule: Rule) -> None:
    vms = [a_vm("a", "h1"), *(a_vm(f"v{n}", "h2") for n in range(3))]
    state = a_cluster(a_host("h1"), a_host("h2"), a_host("h3"), vms=vms, rules=(rule,))
    assert moves(proposed(ruled(state))) == {"a": "h2"}


def test_a_fault_tolerant_pair_is_separated_onto_compatible_hosts() -> None:
    vms = [a_vm("a", "h1", ft_pair=VmId("b")), a_vm("b", "h1", ft_pair=VmId("a"))]
    hosts = [
        a_host("h1", labels={"cpu": "old"}),
        a_host("h2", labels={"cpu": "new"}),
        a_host("h3", labels={"cpu": "old"}),
    ]
    state = a_cluster(*hosts, vms=vms, rules=(library("FtCompatible", key="cpu"),))
    assert list(moves(proposed(state)).values()) == ["h3"]


def test_a_continuous_rule_about_pairs_is_repaired() -> None:
    """The rule of the library goes by another name than the one that holds for all pairs."""
    vms = [a_vm("a", "h1", ft_pair=VmId("b")), a_vm("b", "h2", ft_pair=VmId("a"))]
    hosts = [a_host(f"h{n}", labels={"cpu": cpu}) for n, cpu in enumerate(("x", "x", "y"))]
    alike = library("FtCompatible", key="cpu").but(continuous=True)
    found = proposed(a_cluster(*hosts, vms=vms, rules=(alike,)))
    assert len(moves(found)) == 1
    assert found.repairs == ("r",)


def test_an_over_reserved_host_gives_a_vm_away() -> None:
    hosts = [a_host("h1", memory_mib=2 * GIB), a_host("h2", memory_mib=2 * GIB)]
    vms = [holds("a", "h1", 1536), holds("b", "h1", GIB), holds("c", "h2", GIB)]
    state = a_cluster(*hosts, vms=vms)
    assert moves(proposed(state)) == {"b": "h2"}
    (move,) = advised(state).moves
    assert (move.code, facts(move.reason)) == (BalanceCode.RULE, ["h1"])


def test_named_resources_count() -> None:
    licences = ResourceName("licences")
    hosts = [a_host(f"h{n}", capacity={licences: count}) for n, count in enumerate((1, 0, 1))]
    vms = [a_vm(name, "h0", consumption={licences: 1}) for name in "ab"]
    found = moves(proposed(ruled(a_cluster(*hosts, vms=vms))))
    assert list(found.values()) == ["h2"]


def test_an_incoming_vm_holds_capacity_on_its_target() -> None:
    hosts = [a_host(f"h{n}", memory_mib=2 * GIB) for n in range(4)]
    vms = [holds("a", "h0", 2 * GIB), holds("b", "h1", 2 * GIB)]
    state = a_cluster(*hosts, vms=vms, rules=(off("b", "h1", "h3"),))
    step = a_step("earlier", Migrate(vm=VmId("a"), source=HostId("h0"), target=HostId("h2")))
    state = transition.apply(state, ActionStarted(at_ms=0, step=step, attempt=1))
    found = advised(state)
    assert not found.moves
    assert [fault.subject for fault in found.faults] == ["b"]


def ruled(state: Snapshot, **policy: Any) -> Snapshot:
    """The same, where nothing but the rules counts, unless another policy is given."""
    settings = state.settings.but(balance=BalancePolicy(**policy or {"rules_only": True}))
    return replace(state, settings=settings)


def test_rules_only_repairs_and_does_not_rebalance() -> None:
    vms = [wants(name, "h1", 1500) for name in "abcd"]
    state = a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=(apart("a", "b"),))
    found = proposed(ruled(state))
    assert len(found.intents) == 1
    assert "rules_only" in found.reason
    assert len(proposed(state).intents) > 1


# Soft rules about hosts


def test_a_soft_rule_about_hosts_is_kept_if_possible() -> None:
    state = a_cluster(
        a_host("h1"), a_host("h2"), vms=[a_vm("a", "h1")], rules=(off("a", "h1", hard=False),)
    )
    assert moves(proposed(state)) == {"a": "h2"}


def test_a_soft_rule_is_dropped_if_it_overloads_a_host() -> None:
    vms = [wants("a", "h1", 3000), wants("b", "h2", 3000)]
    vms = [vm.but(vcpus=4) for vm in vms]
    hosts = [a_host("h1"), a_host("h2")]
    full = [vm.but(cpu=CpuSettings(reservation_mhz=3000)) for vm in vms]
    for some in (vms, full):
        state = a_cluster(*hosts, vms=some, rules=(within("a", "h2", hard=False),))
        assert moves(advised(ruled(state))) == {}
        assert not advised(ruled(state)).faults


def test_a_soft_rule_is_dropped_if_it_would_break_another() -> None:
    vms = [a_vm("a", "h1"), a_vm("b", "h2")]
    rules = (within("a", "h2", hard=False), apart("a", "b"), off("b", "h1"))
    state = a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=rules)
    assert not advised(state).moves
    assert not advised(state).faults


# Failover


def test_failover_hosts_are_evacuated_and_avoided() -> None:
    vms = [wants("a", "h1", 100), *(wants(f"v{n}", "h2", 1500) for n in range(4))]
    rule = library("FailoverHosts", ns=("h1",))
    state = a_cluster(a_host("h1"), a_host("h2"), a_host("h3"), vms=vms, rules=(rule,))
    found = moves(proposed(state))
    assert "a" in found
    assert "h1" not in found.values()


def test_fragmented_capacity_is_merged_for_the_failover_reserve() -> None:
    """There is room for the large VM on both hosts together, but on neither of them."""
    hosts = [a_host(f"h{n}", memory_mib=8 * GIB) for n in (1, 2, 3)]
    vms = [holds("large", "h1", 6 * GIB), holds("b", "h2", 3 * GIB), holds("c", "h3", 3 * GIB)]
    rule = library("Failover", nb=1, id="memory")
    state = a_cluster(*hosts, vms=vms, rules=(rule,))
    found = moves(proposed(ruled(state)))
    assert found in ({"b": "h3"}, {"c": "h2"})
    assert advised(ruled(state)).moves[0].code is BalanceCode.FREE_CAPACITY


def test_two_failover_rules_share_one_reserve() -> None:
    hosts = [a_host(f"h{n}", memory_mib=8 * GIB) for n in (1, 2)]
    rules = tuple(
        library("Failover", nb=1, id=resource).but(id=RuleId(resource))
        for resource in ("cpu", "memory")
    )
    state = a_cluster(*hosts, vms=[holds("a", "h1", 6 * GIB)], rules=rules)
    assert not advised(state).faults


def test_the_failover_reserve_is_on_allowed_hosts() -> None:
    hosts = [a_host(f"h{n}", memory_mib=8 * GIB) for n in (1, 2, 3)]
    vms = [holds("a", "h1", 6 * GIB), holds("b", "h2", 3 * GIB, agent=True)]
    rules = (library("Failover", nb=1, id="memory"), within("a", "h1", "h2"))
    fault = the_fault(a_cluster(*hosts, vms=vms, rules=rules))
    assert fault.subject == "spare:r:a"
    assert {"r", "within"} <= set(fault.rules)
    assert re.search(r"1,024 MiB .* h2\b", fault.unblock)


def test_a_missing_failover_reserve_is_a_fault() -> None:
    hosts = [a_host(f"h{n}", memory_mib=8 * GIB) for n in (1, 2)]
    vms = [holds("a", "h1", 6 * GIB), holds("b", "h2", 6 * GIB)]
    rule = library("Failover", nb=1, id="memory")
    found = advised(a_cluster(*hosts, vms=vms, rules=(rule,)))
    assert not found.moves
    assert {fault.code for fault in found.faults} == {"no-target-host", "broken-rule"}
    assert all("r" in fault.rules for fault in found.faults)


def test_rebalancing_keeps_the_failover_reserve() -> None:
    """Without the rule a VM would go to the idle host, where the room to spare is."""
    hosts = [a_host(f"h{n}", memory_mib=8 * GIB) for n in (1, 2)]
    vms = [
        holds("a", "h1", 3 * GIB, demand=Demand(cpu_mhz=2000)),
        holds("b", "h1", 3 * GIB, demand=Demand(cpu_mhz=2000)),
        holds("c", "h1", 1 * GIB, demand=Demand(cpu_mhz=10)),
    ]
    policy: dict[str, Any] = {"cost_benefit": False, "goodness": 0, "threshold": 5}
    free = ruled(a_cluster(*hosts, vms=vms), **policy)
    assert moves(proposed(free))
    kept = ruled(
        a_cluster(*hosts, vms=vms, rules=(library("Failover", nb=1, id="memory"),)), **policy
    )
    assert not advised(kept).faults
    assert not {"a", "b"} & moves(proposed(kept)).keys()


# Faults


def test_a_fault_names_obstacles_and_remedies() -> None:
    hosts = [
        a_host("h1"),
        a_host("h2"),
        a_host("h3", memory_mib=2 * GIB),
        a_host("h4", state=HostState.STANDBY),
    ]
    vms = [
        holds("a", "h1", 2 * GIB),
        a_vm("b", "h1", agent=True),
        holds("c", "h3", GIB, agent=True),
    ]
    rules = (apart("a", "b"), off("a", "h2"))
    fault = the_fault(a_cluster(*hosts, vms=vms, rules=rules))
    assert (fault.code, fault.subject) == ("keep-apart", "apart")
    assert fault.rules == ("apart", "off")
    assert "1,024 MiB" in fault.detail
    remedies = [facts(remedy) for remedy in fault.unblock.replace(",", "").split("; or ")]
    assert remedies == [["h2"], ["1024", "h3"], ["h4"]]


def test_an_agent_on_a_forbidden_host_is_a_fault() -> None:
    vms = [a_vm("a", "h1", agent=True)]
    fault = the_fault(a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=(off("a", "h1"),)))
    assert fault.subject == "a"
    assert fault.rules == ("off",)


def test_a_broken_gate_only_rule_is_a_fault() -> None:
    rule = library("Lonely", vs=("a",))
    state = a_cluster(a_host("h1"), vms=[a_vm("a", "h1"), a_vm("b", "h1")], rules=(rule,))
    fault = the_fault(state)
    assert (fault.code, fault.subject, fault.rules) == ("broken-rule", "r", ("r",))
    (rejection,) = proposed(state).rejected
    assert rejection.code == "broken-rule"


def test_an_unsolvable_problem_does_not_prevent_other_repairs() -> None:
    """A search that solves problems one by one may move a VM twice; the plan moves it once."""
    hosts = [a_host(f"h{n}", memory_mib=2 * GIB) for n in (1, 2, 3)]
    vms = [
        a_vm("fixed", "h1", agent=True),
        a_vm("stuck", "h1", agent=True),
        holds("a", "h1", 2 * GIB),
        holds("b", "h2", GIB),
    ]
    rules = (apart("fixed", "stuck", name="hopeless"), off("a", "h1"), apart("a", "b"))
    found = advised(a_cluster(*hosts, vms=vms, rules=rules))
    assert moves(found) == {"a": "h3"}
    assert [fault.subject for fault in found.faults] == ["hopeless"]
    assert found.fewest


# Continuous rules that are broken at the start


def broken() -> Snapshot:
    vms = [a_vm("a", "h1"), a_vm("b", "h1")]
    rules = (apart("a", "b", continuous=True),)
    return a_cluster(a_host("h1"), a_host("h2"), a_host("h3"), vms=vms, rules=rules)


def a_move(vm: str, source: str, target: str, start_ms: int = 0) -> Any:
    action = Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))
    return a_step(f"{vm}-{target}", action, start_ms)


def test_the_plan_lists_the_continuous_rules_it_repairs() -> None:
    state = broken()
    found = proposed(state)
    assert found.repairs == ("apart",)
    silent = order(state, found.intents, PlanId("p"))
    assert isinstance(silent, Plan)
    assert isinstance(verify(state, silent), VerifiedPlan), "a repair passes without the promise"


def test_a_plan_that_does_not_repair_as_claimed_is_refused() -> None:
    state = broken()
    plan = a_plan(a_move("a", "h1", "h2"), a_move("b", "h1", "h2"))
    verdict = verify(state, plan.but(repairs=(RuleId("apart"),)))
    assert isinstance(verdict, Refusal)
    assert {violation.constraint for violation in verdict.violations} >= {"rule apart"}
    assert isinstance(verify(state, a_plan().but(repairs=(RuleId("apart"),))), Refusal)


def test_a_repaired_rule_must_stay_repaired() -> None:
    """The rule is repaired, broken and repaired again: the second violation counts."""
    state = broken()
    plan = a_plan(
        a_move("a", "h1", "h2", 0),
        a_move("b", "h1", "h2", 2000),
        a_move("a", "h2", "h3", 4000),
    )
    verdict = verify(state, plan.but(repairs=(RuleId("apart"),)))
    assert isinstance(verdict, Refusal)
    assert verdict.violations[0].at_ms == 3000
    good = a_plan(a_move("a", "h1", "h2", 0), a_move("a", "h2", "h3", 4000))
    assert isinstance(verify(state, good.but(repairs=(RuleId("apart"),))), VerifiedPlan)


def test_a_repair_does_not_excuse_a_new_violation() -> None:
    """Two parts of one rule are sums: the second breaks while the first is repaired."""
    enough = """
    Enough continuous ::=
        card({v . v : vms, runs(v)}) >= 2 &
        sum([capa(n, "cpu") . n : hosts, hostState(n) = on]) >= 8000
    """
    state = a_cluster(
        a_host("h1"),
        a_host("h2"),
        vms=[a_vm("a", "h1"), a_vm("b")],
        specification=enough,
        rules=(Satisfy(id=RuleId("r"), constraint="Enough", continuous=True),),
    )
    boot = a_step("boot", Boot(vm=VmId("b"), target=HostId("h1")), 0, 5000)
    switch = a_step("off", PowerOff(host=HostId("h2")), 0, 1000)
    repairs = (RuleId("r"),)
    assert isinstance(verify(state, a_plan(boot).but(repairs=repairs)), VerifiedPlan)
    verdict = verify(state, a_plan(boot, switch).but(repairs=repairs))
    assert isinstance(verdict, Refusal)
    assert [(violation.constraint, violation.at_ms) for violation in verdict.violations] == [
        ("rule r", 1000)
    ]


def test_a_refused_move_does_not_prevent_other_repairs() -> None:
    """Two moves together repair a continuous rule. The gate refuses a third one."""
    vms = [a_vm(name, "h1") for name in "abc"]
    rules = (
        apart("a", "b", "c", continuous=True),
        within("d", "h4"),
        library("Lonely", vs=("alone",)),
    )
    hosts = [a_host(f"h{n}") for n in (1, 2, 3, 4)]
    pinned = [*vms, a_vm("d", "h1"), a_vm("alone", "h4", agent=True)]
    found = proposed(ruled(a_cluster(*hosts, vms=pinned, rules=rules)))
    assert len(found.intents) == 2
    assert found.repairs == ("apart",)
    assert [rejection.code for rejection in found.rejected][:1] == ["gate-refuses"]

    # Where the VM that must be alone may move, the exact planner repairs all three rules.
    movable = [*vms, a_vm("d", "h1"), a_vm("alone", "h4")]
    found = proposed(ruled(a_cluster(*hosts, vms=movable, rules=rules)))
    assert found.repairs == ("apart",)
    assert not found.rejected


# What waits for what


def test_a_move_waits_until_its_target_has_capacity() -> None:
    hosts = [a_host(f"h{n}", memory_mib=2 * GIB) for n in (1, 2, 3)]
    vms = [holds("a", "h1", 2 * GIB), holds("b", "h2", GIB)]
    state = a_cluster(*hosts, vms=vms, rules=(within("a", "h2"),))
    found = advised(state)
    assert [(move.vm, move.code, move.after) for move in found.moves] == [
        ("b", BalanceCode.FREE_CAPACITY, ()),
        ("a", BalanceCode.RULE, ("b",)),
    ]
    second = proposed(state).intents[1]
    assert second.after == (StepId("move-b"),)


def test_vms_on_full_hosts_do_not_swap_and_the_repair_is_minimal() -> None:
    """The VM with the licence must move to h0; no VM from there can wait for its place on h1."""
    licences = ResourceName("licences")
    hosts = [a_host(f"h{n}", memory_mib=GIB, capacity={licences: int(n == 0)}) for n in range(4)]
    vms = [holds(name, "h0", GIB) for name in "ab"]
    vms.append(holds("c", "h1", GIB, consumption={licences: 1}))
    state = ruled(a_cluster(*hosts, vms=vms))
    found = moves(proposed(state))
    assert found["c"] == "h0"
    assert {found["a"], found["b"]} == {"h2", "h3"}
    assert advised(state).fewest


# Who may say yes


@pytest.mark.parametrize("automation", [Automation.MANUAL, Automation.PARTIAL])
def test_moves_wait_for_approval_unless_all_is_automatic(automation: Automation) -> None:
    state = ruled(broken(), automation=automation)
    found = proposed(state)
    assert not found.intents
    assert not found.repairs
    assert len(found.advised) == 1


def test_a_manual_vm_and_the_moves_behind_it_need_approval() -> None:
    hosts = [a_host(f"h{n}", memory_mib=2 * GIB, memory_overcommit=2) for n in (1, 2, 3)]
    vms = [holds("a", "h1", 2 * GIB), holds("b", "h2", GIB), holds("c", "h3", 0)]
    policy = {"vms": {VmId("b"): VmOverride.MANUAL}, "rules_only": True}
    rules = (within("a", "h2"), StayOff(id=RuleId("x"), vms=(VmId("c"),), hosts=(HostId("h3"),)))
    found = proposed(ruled(a_cluster(*hosts, vms=vms, rules=rules), **policy))
    assert moves(found).keys() == {"c"}
    assert [intent.id for intent in found.advised] == ["move-b", "move-a"]


def test_an_automatic_vm_moves_although_others_need_approval() -> None:
    policy = {
        "automation": Automation.MANUAL,
        "vms": {VmId("a"): VmOverride.FULL, VmId("b"): VmOverride.OFF},
    }
    found = proposed(ruled(broken(), **policy))
    assert moves(found).keys() == {"a"}
    assert not found.advised


def test_a_host_that_waits_for_approved_moves_is_not_switched_before() -> None:
    hosts = [a_host("h1", requested=RequestedHostState.STANDBY), a_host("h2")]
    state = a_cluster(*hosts, vms=[a_vm("a", "h1")])
    found = proposed(ruled(state, automation=Automation.MANUAL))
    assert not found.intents
    assert [intent.id for intent in found.advised] == ["move-a", "switch-h1"]


def test_vms_that_must_be_together_are_brought_to_one_of_their_hosts_first() -> None:
    """Their hosts are the fullest; a trial of all emptier ones would exhaust the budget."""
    hosts = [a_host(f"h{number:02}") for number in range(60)]
    pairs = [(f"a{number}", f"b{number}") for number in range(10)]
    vms = [wants(a, "h00", 100) for a, _ in pairs] + [wants(b, "h01", 100) for _, b in pairs]
    rules = tuple(
        KeepTogether(id=RuleId(f"r{number}"), vms=tuple(map(VmId, pair)))
        for number, pair in enumerate(pairs)
    )
    state = a_cluster(*hosts, vms=vms, rules=rules)
    placement_state = PlacementState(state, read_rules(state))
    placement_state.find_problems()
    result = search_repair(placement_state, budget=500)
    assert (result.unsolved, result.fewest, len(result.assignments)) == ((), True, 10)
    assert {assignment.host for assignment in result.assignments} <= {"h00", "h01"}
