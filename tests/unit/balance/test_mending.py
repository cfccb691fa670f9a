"""Mending: rules are put right with the fewest moves, hosts are emptied, and the rest is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm
from equipoise.balance import Balance
from equipoise.balance.advice import Advice, Code
from equipoise.balance.advise import advise
from equipoise.balance.mending.fault import Fault
from equipoise.model.action import Action, Boot, EnterMaintenance, Migrate, PowerOff
from equipoise.model.change import transition
from equipoise.model.estimate import Estimates
from equipoise.model.event import ActionStarted
from equipoise.model.host import HostState, HostWish
from equipoise.model.plan import Plan, Proposal, Purpose
from equipoise.model.policy import Automation, BalancePolicy, HostOverride, VmOverride
from equipoise.model.quantity import HostId, PlanId, ResourceName, RuleId, StepId, VmId
from equipoise.model.rule import KeepApart, KeepTogether, Rule, Satisfy, StayOff, StayWithin
from equipoise.model.snapshot import Snapshot
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


def advised(state: Snapshot) -> Advice:
    return advise(state, Estimates()).advice


def proposed(state: Snapshot) -> Proposal:
    """What is proposed, which the gate must let pass."""
    found = Balance(Estimates()).propose(state)
    if found.intents:
        plan = order(state, found.intents, PlanId("p"), found.mends)
        assert isinstance(plan, Plan)
        assert isinstance(verify(state, plan), VerifiedPlan)
    return found


def actions(found: Proposal) -> list[Action]:
    return [intent.action for intent in found.intents]


def moves(found: Proposal | Advice) -> dict[str, str]:
    """Who goes where."""
    if isinstance(found, Advice):
        return {str(one.vm): str(one.target) for one in found.moves}
    some = [action for action in actions(found) if isinstance(action, Migrate)]
    return {str(one.vm): str(one.target) for one in some}


def the_fault(state: Snapshot) -> Fault:
    (fault,) = advised(state).faults
    return fault


# Hosts that are to be switched


@pytest.mark.parametrize(
    ("wish", "switch"),
    [
        (HostWish.MAINTENANCE, EnterMaintenance(host=HostId("h1"))),
        (HostWish.STANDBY, PowerOff(host=HostId("h1"))),
    ],
)
def test_a_host_is_emptied_and_then_switched(wish: HostWish, switch: Action) -> None:
    hosts = [a_host("h1", requested=wish), a_host("h2"), a_host("h3")]
    state = a_cluster(*hosts, vms=[a_vm("a", "h1"), a_vm("b", "h1"), a_vm("c", "h2")])
    found = proposed(state)
    assert moves(found).keys() == {"a", "b"}
    assert found.purpose is Purpose.REPAIR
    last = found.intents[-1]
    assert last.action == switch
    assert set(last.after) == {StepId("move-a"), StepId("move-b")}
    assert {one.code for one in advised(state).moves} == {Code.EVACUATE}


def test_agents_stay_when_their_host_is_emptied() -> None:
    agent = holds("agent", "h1", 4 * GIB, agent=True)
    hosts = [a_host("h1", requested=HostWish.MAINTENANCE), a_host("h2")]
    found = proposed(a_cluster(*hosts, vms=[agent, a_vm("a", "h1")]))
    assert moves(found) == {"a": "h2"}
    assert actions(found)[-1] == EnterMaintenance(host=HostId("h1"))


def test_an_empty_host_is_switched_at_once() -> None:
    state = a_cluster(a_host("h1", requested=HostWish.STANDBY), a_host("h2"))
    assert actions(proposed(state)) == [PowerOff(host=HostId("h1"))]


def test_a_host_that_somebody_cannot_leave_is_not_switched() -> None:
    policy = BalancePolicy(vms={VmId("a"): VmOverride.OFF})
    hosts = [a_host("h1", requested=HostWish.MAINTENANCE), a_host("h2")]
    vms = [a_vm("a", "h1"), a_vm("b", "h1")]
    state = a_cluster(*hosts, vms=vms, balance=policy)
    assert actions(proposed(state)) == [
        Migrate(vm=VmId("b"), source=HostId("h1"), target=HostId("h2"))
    ]
    fault = the_fault(state)
    assert (fault.code, fault.subject) == ("nowhere_to_go", "a")
    assert "may not be moved" in fault.detail


def test_who_sleeps_keeps_a_host_from_being_switched_and_that_is_told() -> None:
    hosts = [a_host("h1", requested=HostWish.MAINTENANCE), a_host("h2")]
    state = a_cluster(*hosts, vms=[a_vm("a", "h1", state=VmState.SLEEPING)])
    assert not proposed(state).intents
    fault = the_fault(state)
    assert (fault.code, fault.subject) == ("asleep", "h1")
    assert "a sleeps there" in fault.detail


def test_a_host_is_emptied_though_the_policy_leaves_it_alone() -> None:
    policy = BalancePolicy(hosts={HostId("h1"): HostOverride.OFF})
    hosts = [a_host("h1", requested=HostWish.STANDBY), a_host("h2")]
    state = a_cluster(*hosts, vms=[a_vm("a", "h1")], balance=policy)
    assert moves(proposed(state)) == {"a": "h2"}


def test_a_switch_that_the_gate_refuses_is_not_proposed() -> None:
    rule = library("MinOnline", ns=("h1", "h2"), nb=2)
    hosts = [a_host("h1", requested=HostWish.STANDBY), a_host("h2")]
    state = a_cluster(*hosts, vms=[a_vm("a", "h1")], rules=(rule,))
    assert moves(proposed(state)) == {"a": "h2"}
    assert not advised(state).switches
    fault = the_fault(state)
    assert (fault.code, fault.subject) == ("refused", "h1")
    assert "rule r" in fault.detail


# Rules


def test_one_move_parts_two_vms() -> None:
    state = a_cluster(
        a_host("h1"), a_host("h2"), vms=[a_vm("a", "h1"), a_vm("b", "h1")], rules=(apart("a", "b"),)
    )
    (move,) = advised(state).moves
    assert (move.code, move.priority, move.target) == (Code.RULE, 1, "h2")
    assert "apart is broken" in move.reason
    assert len(proposed(state).intents) == 1


def test_the_few_join_the_many() -> None:
    vms = [a_vm("a", "h1"), a_vm("b", "h2"), a_vm("c", "h2"), a_vm("d", "h2")]
    state = a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=(together("a", "b", "c", "d"),))
    assert moves(proposed(state)) == {"a": "h2"}


def test_one_move_mends_two_rules() -> None:
    """Any two of three would do for one of the rules; only one of them mends both."""
    vms = [a_vm("a", "h1"), a_vm("b", "h1"), a_vm("c", "h1")]
    rules = (apart("a", "b", name="r1"), apart("b", "c", name="r2"))
    state = a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=rules)
    assert moves(proposed(state)) == {"b": "h2"}
    assert advised(state).fewest


@pytest.mark.parametrize("rule", [off("a", "h1", "h3"), within("a", "h2")])
def test_a_vm_goes_where_it_may_be(rule: Rule) -> None:
    vms = [a_vm("a", "h1"), *(a_vm(f"v{n}", "h2") for n in range(3))]
    state = a_cluster(a_host("h1"), a_host("h2"), a_host("h3"), vms=vms, rules=(rule,))
    assert moves(proposed(ruled(state))) == {"a": "h2"}


def test_the_halves_of_a_pair_part_and_find_hosts_that_fit_each_other() -> None:
    vms = [a_vm("a", "h1", ft_pair=VmId("b")), a_vm("b", "h1", ft_pair=VmId("a"))]
    hosts = [
        a_host("h1", labels={"cpu": "old"}),
        a_host("h2", labels={"cpu": "new"}),
        a_host("h3", labels={"cpu": "old"}),
    ]
    state = a_cluster(*hosts, vms=vms, rules=(library("FtCompatible", key="cpu"),))
    assert list(moves(proposed(state)).values()) == ["h3"]


def test_a_continuous_rule_about_pairs_is_mended() -> None:
    """The rule of the library goes by another name than the one that holds for all pairs."""
    vms = [a_vm("a", "h1", ft_pair=VmId("b")), a_vm("b", "h2", ft_pair=VmId("a"))]
    hosts = [a_host(f"h{n}", labels={"cpu": cpu}) for n, cpu in enumerate(("x", "x", "y"))]
    alike = library("FtCompatible", key="cpu").but(continuous=True)
    found = proposed(a_cluster(*hosts, vms=vms, rules=(alike,)))
    assert len(moves(found)) == 1
    assert found.mends == ("r",)


def test_a_host_that_promised_more_than_it_has_gives_a_vm_away() -> None:
    hosts = [a_host("h1", memory_mib=2 * GIB), a_host("h2", memory_mib=2 * GIB)]
    vms = [holds("a", "h1", 1536), holds("b", "h1", GIB), holds("c", "h2", GIB)]
    state = a_cluster(*hosts, vms=vms)
    assert moves(proposed(state)) == {"b": "h2"}
    assert "more is reserved on h1" in advised(state).moves[0].reason


def test_resources_with_a_name_count_too() -> None:
    licences = ResourceName("licences")
    hosts = [a_host(f"h{n}", capacity={licences: count}) for n, count in enumerate((1, 0, 1))]
    vms = [a_vm(name, "h0", consumption={licences: 1}) for name in "ab"]
    found = moves(proposed(ruled(a_cluster(*hosts, vms=vms))))
    assert list(found.values()) == ["h2"]


def test_who_is_on_the_way_to_a_host_has_its_room() -> None:
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


def test_rules_only_mends_and_does_not_balance() -> None:
    vms = [wants(name, "h1", 2500) for name in "abcd"]
    state = a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=(apart("a", "b"),))
    found = proposed(ruled(state))
    assert len(found.intents) == 1
    assert "rules only" in found.reason
    assert len(proposed(state).intents) > 1


# Soft rules about hosts


def test_a_soft_rule_about_hosts_is_kept_if_that_does_no_harm() -> None:
    state = a_cluster(
        a_host("h1"), a_host("h2"), vms=[a_vm("a", "h1")], rules=(off("a", "h1", hard=False),)
    )
    assert moves(proposed(state)) == {"a": "h2"}


def test_a_soft_rule_is_dropped_if_a_host_would_have_to_give_more_than_it_has() -> None:
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


def test_failover_hosts_are_emptied_and_avoided() -> None:
    vms = [wants("a", "h1", 100), *(wants(f"v{n}", "h2", 1500) for n in range(4))]
    rule = library("FailoverHosts", ns=("h1",))
    state = a_cluster(a_host("h1"), a_host("h2"), a_host("h3"), vms=vms, rules=(rule,))
    found = moves(proposed(state))
    assert "a" in found
    assert "h1" not in found.values()


def test_room_in_pieces_is_put_together_for_what_may_be_lost() -> None:
    """There is room for the large VM on both hosts together, but on neither of them."""
    hosts = [a_host(f"h{n}", memory_mib=8 * GIB) for n in (1, 2, 3)]
    vms = [holds("large", "h1", 6 * GIB), holds("b", "h2", 3 * GIB), holds("c", "h3", 3 * GIB)]
    rule = library("Failover", nb=1, id="memory")
    state = a_cluster(*hosts, vms=vms, rules=(rule,))
    found = moves(proposed(ruled(state)))
    assert found in ({"b": "h3"}, {"c": "h2"})
    assert advised(ruled(state)).moves[0].code is Code.MAKE_ROOM


def test_two_rules_about_failover_do_not_ask_for_the_same_room_twice() -> None:
    hosts = [a_host(f"h{n}", memory_mib=8 * GIB) for n in (1, 2)]
    rules = tuple(
        library("Failover", nb=1, id=one).but(id=RuleId(one)) for one in ("cpu", "memory")
    )
    state = a_cluster(*hosts, vms=[holds("a", "h1", 6 * GIB)], rules=rules)
    assert not advised(state).faults


def test_what_may_be_lost_needs_room_where_it_may_be() -> None:
    hosts = [a_host(f"h{n}", memory_mib=8 * GIB) for n in (1, 2, 3)]
    vms = [holds("a", "h1", 6 * GIB), holds("b", "h2", 3 * GIB, agent=True)]
    rules = (library("Failover", nb=1, id="memory"), within("a", "h1", "h2"))
    fault = the_fault(a_cluster(*hosts, vms=vms, rules=rules))
    assert fault.subject == "spare:r:a"
    assert {"r", "within"} <= set(fault.rules)
    assert "1,024 MiB of memory on h2" in fault.unblock


def test_room_that_is_lacking_for_failover_is_told() -> None:
    hosts = [a_host(f"h{n}", memory_mib=8 * GIB) for n in (1, 2)]
    vms = [holds("a", "h1", 6 * GIB), holds("b", "h2", 6 * GIB)]
    rule = library("Failover", nb=1, id="memory")
    found = advised(a_cluster(*hosts, vms=vms, rules=(rule,)))
    assert not found.moves
    assert {fault.code for fault in found.faults} == {"nowhere_to_go", "broken_rule"}
    assert all("r" in fault.rules for fault in found.faults)


def test_balancing_leaves_room_for_what_may_be_lost() -> None:
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


def test_a_fault_names_what_is_in_the_way_and_what_would_help() -> None:
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
    assert (fault.code, fault.subject) == ("keep_apart", "apart")
    assert fault.rules == ("apart", "off")
    assert "1,024 MiB of memory too little is free" in fault.detail
    for help_ in ("let off allow h2", "free 1,024 MiB of memory on h3", "wake h4"):
        assert help_ in fault.unblock


def test_an_agent_where_a_rule_forbids_it_is_told() -> None:
    vms = [a_vm("a", "h1", agent=True)]
    fault = the_fault(a_cluster(a_host("h1"), a_host("h2"), vms=vms, rules=(off("a", "h1"),)))
    assert fault.subject == "a"
    assert fault.rules == ("off",)


def test_a_broken_rule_that_only_the_gate_understands_is_told() -> None:
    rule = library("Lonely", vs=("a",))
    state = a_cluster(a_host("h1"), vms=[a_vm("a", "h1"), a_vm("b", "h1")], rules=(rule,))
    fault = the_fault(state)
    assert (fault.code, fault.subject, fault.rules) == ("broken_rule", "r", ("r",))
    (rejection,) = proposed(state).rejected
    assert rejection.code == "broken_rule"


def test_one_thing_that_cannot_be_mended_does_not_keep_others_from_it() -> None:
    """Trying one thing after the other may move a VM twice in mind; it moves once."""
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


def test_a_continuous_rule_that_is_broken_is_mended_and_the_plan_says_so() -> None:
    state = broken()
    found = proposed(state)
    assert found.mends == ("apart",)
    silent = order(state, found.intents, PlanId("p"))
    assert isinstance(silent, Plan)
    verdict = verify(state, silent)
    assert isinstance(verdict, Refusal)
    assert verdict.violations[0].constraint == "rule apart"


def test_a_plan_that_claims_to_mend_and_does_not_is_refused() -> None:
    state = broken()
    plan = a_plan(a_move("a", "h1", "h2"), a_move("b", "h1", "h2"))
    verdict = verify(state, plan.but(mends=(RuleId("apart"),)))
    assert isinstance(verdict, Refusal)
    assert {one.constraint for one in verdict.violations} >= {"rule apart"}
    assert isinstance(verify(state, a_plan().but(mends=(RuleId("apart"),))), Refusal)


def test_what_is_healed_stays_healed() -> None:
    """It is mended, broken again and mended again: the second time counts."""
    state = broken()
    plan = a_plan(
        a_move("a", "h1", "h2", 0),
        a_move("b", "h1", "h2", 2000),
        a_move("a", "h2", "h3", 4000),
    )
    verdict = verify(state, plan.but(mends=(RuleId("apart"),)))
    assert isinstance(verdict, Refusal)
    assert verdict.violations[0].at_ms == 3000
    good = a_plan(a_move("a", "h1", "h2", 0), a_move("a", "h2", "h3", 4000))
    assert isinstance(verify(state, good.but(mends=(RuleId("apart"),))), VerifiedPlan)


def test_what_was_whole_is_not_excused_by_what_is_mended() -> None:
    """Two parts of one rule speak of sums: the second is broken while the first is mended."""
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
    mends = (RuleId("r"),)
    assert isinstance(verify(state, a_plan(boot).but(mends=mends)), VerifiedPlan)
    verdict = verify(state, a_plan(boot, switch).but(mends=mends))
    assert isinstance(verdict, Refusal)
    assert [(one.constraint, one.at_ms) for one in verdict.violations] == [("rule r", 1000)]


def test_what_is_refused_does_not_take_the_mending_of_others_with_it() -> None:
    """Two moves mend what is continuous; only together. A third one is refused by the gate."""
    vms = [a_vm(name, "h1") for name in "abc"]
    vms += [a_vm("d", "h1"), a_vm("alone", "h4")]
    rules = (
        apart("a", "b", "c", continuous=True),
        within("d", "h4"),
        library("Lonely", vs=("alone",)),
    )
    hosts = [a_host(f"h{n}") for n in (1, 2, 3, 4)]
    state = a_cluster(*hosts, vms=vms, rules=rules)
    found = proposed(ruled(state))
    assert len(found.intents) == 2
    assert found.mends == ("apart",)
    assert [one.code for one in found.rejected] == ["refused"]


# What waits for what


def test_who_takes_the_place_of_another_waits_until_it_is_free() -> None:
    hosts = [a_host(f"h{n}", memory_mib=2 * GIB) for n in (1, 2, 3)]
    vms = [holds("a", "h1", 2 * GIB), holds("b", "h2", GIB)]
    state = a_cluster(*hosts, vms=vms, rules=(within("a", "h2"),))
    found = advised(state)
    assert [(one.vm, one.code, one.after) for one in found.moves] == [
        ("b", Code.MAKE_ROOM, ()),
        ("a", Code.RULE, ("b",)),
    ]
    second = proposed(state).intents[1]
    assert second.after == (StepId("move-b"),)


def test_full_hosts_do_not_change_places_and_it_is_still_the_fewest_moves() -> None:
    """The one with the licence must go to h0; nobody from there can wait for its place on h1."""
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
    assert not found.mends
    assert len(found.advised) == 1


def test_a_vm_may_be_moved_by_hand_only_and_what_waits_for_it_waits_too() -> None:
    hosts = [a_host(f"h{n}", memory_mib=2 * GIB) for n in (1, 2, 3)]
    vms = [holds("a", "h1", 2 * GIB), holds("b", "h2", GIB), holds("c", "h3", 0)]
    policy = {"vms": {VmId("b"): VmOverride.MANUAL}, "rules_only": True}
    rules = (within("a", "h2"), StayOff(id=RuleId("x"), vms=(VmId("c"),), hosts=(HostId("h3"),)))
    found = proposed(ruled(a_cluster(*hosts, vms=vms, rules=rules), **policy))
    assert moves(found).keys() == {"c"}
    assert [one.id for one in found.advised] == ["move-b", "move-a"]


def test_a_vm_may_be_moved_without_asking_though_others_may_not() -> None:
    policy = {
        "automation": Automation.MANUAL,
        "vms": {VmId("a"): VmOverride.FULL, VmId("b"): VmOverride.OFF},
    }
    found = proposed(ruled(broken(), **policy))
    assert moves(found).keys() == {"a"}
    assert not found.advised


def test_a_host_that_waits_for_approved_moves_is_not_switched_before() -> None:
    hosts = [a_host("h1", requested=HostWish.STANDBY), a_host("h2")]
    state = a_cluster(*hosts, vms=[a_vm("a", "h1")])
    found = proposed(ruled(state, automation=Automation.MANUAL))
    assert not found.intents
    assert [one.id for one in found.advised] == ["move-a", "switch-h1"]
