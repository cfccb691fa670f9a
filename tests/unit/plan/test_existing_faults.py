"""Existing faults: the gate charges a plan with what it breaks or worsens, element by element."""

from __future__ import annotations

import pytest

from builders import a_cluster, a_host, a_plan, a_step, a_vm, figures
from equipoise.model.action import Action, Boot, Migrate, PowerOn, Shutdown
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, PlanId, RuleId, VmId
from equipoise.model.rule import Argument, KeepApart, KeepTogether, Rule, Satisfy
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import MemorySettings, VmState
from equipoise.plan import Refusal, VerifiedPlan, order, verify
from equipoise.plan.existing_faults import existing_faults
from equipoise.plan.order import GateFilter
from equipoise.plan.step_queue import dry_run

HOSTS = ("h1", "h2", "h3")
R = RuleId("r")


def rule(constraint: str, **arguments: Argument) -> Satisfy:
    return Satisfy(id=R, constraint=constraint, arguments=arguments, continuous=True)


def apart(*vms: str) -> KeepApart:
    return KeepApart(id=R, vms=tuple(map(VmId, vms)), continuous=True)


def cluster(*rules: Rule, specification: str = "", **placement: str | None) -> Snapshot:
    """Four hosts, one of them in standby, and VMs by host; a VM without a host is ready."""
    hosts = [*map(a_host, HOSTS), a_host("cold", state=HostState.STANDBY)]
    vms = [a_vm(vm, host) for vm, host in placement.items()]
    return a_cluster(*hosts, vms=vms, rules=rules, specification=specification)


def move(vm: str, source: str, target: str) -> Action:
    return Migrate(vm=VmId(vm), source=HostId(source), target=HostId(target))


def boot(vm: str, target: str) -> Action:
    return Boot(vm=VmId(vm), target=HostId(target))


def one_after_the_other(*actions: Action) -> tuple[Step, ...]:
    return tuple(
        a_step(f"s{n}", action, 1000 * n, 1000 * n + 1000) for n, action in enumerate(actions)
    )


def codes(state: Snapshot, *actions: Action) -> set[str]:
    """Return the codes of the gate's violations; empty if it accepts the actions in this order."""
    verdict = verify(state, a_plan(*one_after_the_other(*actions)))
    return {violation.code for violation in getattr(verdict, "violations", ())}


# The reproductions


def test_a_broken_continuous_rule_blocks_neither_an_unrelated_start_nor_a_wake() -> None:
    state = cluster(apart("a", "b"), a="h1", b="h1", c=None)
    assert codes(state, boot("c", "h2")) == set()
    assert codes(state, PowerOn(host=HostId("cold"))) == set()
    assert codes(state) == set()


def test_a_repair_passes_without_being_declared() -> None:
    state = cluster(apart("a", "b"), a="h1", b="h1")
    assert codes(state, move("a", "h1", "h2")) == set()


def test_existing_faults_are_named_with_their_codes() -> None:
    heavy = a_vm("d", "h2", memory=MemorySettings(reservation_mib=99_999), memory_mib=512)
    pair = [a_vm("p", "h3", ft_pair="q"), a_vm("q", "h3", ft_pair="p")]
    vms = [a_vm("a", "h1"), a_vm("b", "h1"), heavy, *pair]
    state = a_cluster(*map(a_host, HOSTS), vms=vms, rules=(apart("a", "b"),))
    found = [(fault.code, fault.constraint) for fault in existing_faults(state)]
    assert found == [
        ("already-violated", "rule r"),
        ("no-capacity", "capacity"),
        ("ft-pair-conflict", "ft_pair"),
    ]
    assert existing_faults(cluster(apart("a", "b"), a="h1", b="h2")) == ()


# Worse


def test_a_further_element_of_a_broken_rule_is_charged() -> None:
    state = cluster(apart("a", "b", "c"), a="h1", b="h1", c="h2")
    assert codes(state, move("c", "h2", "h1")) == {"rule-violated"}
    assert codes(state, move("c", "h2", "h3")) == set()


def test_an_element_that_was_repaired_must_stay_so() -> None:
    state = cluster(apart("a", "b"), a="h1", b="h1")
    there_and_back = (move("a", "h1", "h2"), move("a", "h2", "h1"))
    assert codes(state, *there_and_back) == {"rule-violated"}


def test_what_is_reduced_may_grow_again_but_not_beyond_its_first_size() -> None:
    limit = rule("RunningCapacity", ns=("h1",), nb=1)
    state = cluster(limit, a="h1", b="h1", c="h1", d="h1", e=None)
    off = Shutdown(vm=VmId("a"), source=HostId("h1"))
    assert codes(state, boot("e", "h1")) == {"rule-worsened"}
    assert codes(state, off, boot("e", "h1")) == set()
    assert codes(state, off, boot("e", "h1"), boot("a", "h1")) == {"rule-worsened"}


def test_a_larger_miss_is_explained_with_both_sizes() -> None:
    limit = rule("RunningCapacity", ns=("h1",), nb=1)
    state = cluster(limit, a="h1", b="h1", c="h2")
    verdict = verify(state, a_plan(a_step("s", move("c", "h2", "h1"))))
    assert isinstance(verdict, Refusal)
    (found,) = verdict.violations
    assert found.code == "rule-worsened"
    assert figures(found.detail)[-2:] == [2, 1], "misses by 2, before by 1"


@pytest.mark.parametrize(
    "worse",
    [
        # A quorum short by one: the amount counts, not which members are missing.
        rule("MinRunning", vs=("a", "b", "c", "x"), nb=4),
        rule("FailoverPercentage", id="memory", percent=100),
        rule("Failover", nb=3, id="memory"),
    ],
    ids=lambda given: given.constraint,
)
def test_sums_are_charged_by_their_miss(worse: Satisfy) -> None:
    vms = [
        a_vm(name, host, memory=MemorySettings(reservation_mib=100))
        for name, host in (("a", "h1"), ("b", "h1"), ("c", "h2"), ("x", None))
    ]
    state = a_cluster(*map(a_host, HOSTS), vms=vms, rules=(worse,))
    assert codes(state, move("a", "h1", "h3")) == set()
    if worse.constraint == "MinRunning":
        assert codes(state, boot("x", "h3")) == set()
        assert codes(state, Shutdown(vm=VmId("a"), source=HostId("h1"))) == {"rule-worsened"}
    else:
        assert codes(state, boot("x", "h3")) == {"rule-worsened"}
        assert codes(state, Shutdown(vm=VmId("a"), source=HostId("h1"))) == set()


def test_a_disjunction_is_no_worse_while_one_measured_side_is_not() -> None:
    """A group across two racks: a part of the repair uses a new host, and is none the worse."""
    among = rule("Among", vs=("a", "b", "c"), parts=(("h1", "h2"), ("h3",)))
    state = cluster(among, a="h1", b="h3", c="h3")
    assert codes(state, move("b", "h3", "h2")) == set()
    assert codes(state, move("b", "h3", "h2"), move("c", "h3", "h1")) == set()


def test_a_plain_side_does_not_hide_a_measured_one() -> None:
    text = "Quiet(n : hosts) ::= hostState(n) = maintenance | card(running(n)) <= 1"
    quiet = rule("Quiet", n="h1")
    state = cluster(quiet, specification=text, a="h1", b="h1", c=None)
    assert codes(state, boot("c", "h1")) == {"rule-worsened"}
    assert codes(state, boot("c", "h2")) == set()


def test_numbers_are_no_elements() -> None:
    """The skew is the largest of all pairs of counts: a smaller one is better, in any pair."""
    skew = rule("MaxSkew", vs=("a", "b", "c", "d"), nb=0)
    state = cluster(skew, a="h1", b="h1", c="h1", d="h2")
    assert codes(state, move("a", "h1", "h3")) == set()
    assert codes(state, move("d", "h2", "h1")) == {"rule-worsened"}


def test_a_rule_about_the_plan_is_compared_with_the_empty_plan() -> None:
    text = "Still(vs <: vms) ::= card({a . v : vs; a : actions(v)}) <= 1"
    state = cluster(rule("Still", vs=("a", "b")), specification=text, a="h1", b="h2")
    assert codes(state, move("a", "h1", "h3")) == set()
    assert "rule-violated" in codes(state, move("a", "h1", "h3"), move("b", "h2", "h3"))


def test_a_rule_about_all_moments_is_charged_for_new_elements() -> None:
    text = "Never(vs <: vms, n : hosts) ::= always !(v : vs) runs(v) --> host(v) /= n"
    state = cluster(
        rule("Never", vs=("a", "b"), n="h1"), specification=text, a="h1", b="h2", c="h2"
    )
    assert codes(state, move("c", "h2", "h1")) == set()
    assert codes(state, move("a", "h1", "h3")) == set()
    assert codes(state, move("b", "h2", "h1")) == {"rule-violated"}


# Order, filter and declared repairs


def test_the_order_and_the_filter_follow_the_gate() -> None:
    state = cluster(apart("a", "b", "c"), a="h1", b="h1", c="h2", d=None)
    gate = GateFilter(state)
    steps = [a_step("bad", move("c", "h2", "h1")), a_step("good", boot("d", "h1"))]
    timed = dry_run(state, steps, {step.id: () for step in steps})
    assert [step.id for step in timed.timed] == ["good"]
    assert {blocked.code for blocked in timed.blocked} == {"rule-violated"}
    assert gate.objections([]) == ()


def test_a_declared_repair_may_be_worse_on_the_way_and_must_hold_at_the_end() -> None:
    together = KeepTogether(id=R, vms=tuple(map(VmId, "abcd")), continuous=True)
    state = cluster(together, a="h1", b="h1", c="h2", d="h2")
    both = one_after_the_other(move("c", "h2", "h1"), move("d", "h2", "h1"))
    assert isinstance(verify(state, a_plan(*both)), Refusal)
    declared = a_plan(*both).but(repairs=(R,))
    assert isinstance(verify(state, declared), VerifiedPlan)
    half = a_plan(both[0]).but(repairs=(R,))
    assert isinstance(verify(state, half), Refusal)
    ordered = order(state, (), PlanId("p"), (R,))
    assert not isinstance(ordered, Refusal)


def test_an_agent_that_sleeps_on_its_host_blocks_nothing_else() -> None:
    agents = rule("AgentsRun")
    asleep = a_vm("agent", "h1", agent=True, state=VmState.SLEEPING)
    state = a_cluster(
        *map(a_host, HOSTS), vms=[asleep, a_vm("a", "h1"), a_vm("b")], rules=(agents,)
    )
    assert codes(state, move("a", "h1", "h2"), boot("b", "h1")) == set()
    assert [fault.code for fault in existing_faults(state)] == ["already-violated"]
