"""Calm: a VM that has moved stays where it is until something changes; then it may move again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.balance.run_pass import run_balance_pass
from equipoise.model.action import Migrate
from equipoise.model.action_durations import Estimates
from equipoise.model.event import DemandObserved
from equipoise.model.plan import Plan
from equipoise.model.policy.balance import BalancePolicy
from equipoise.model.quantity import VmId
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import Demand
from plain_balance import PlainBalance
from power_worlds import applied, clusters, observed, planned, proposals

ESTIMATES = Estimates()
PASS_MS = 300_000
PASSES = 14
"""More than an hour: then all windows of the deciders are full of the same demand."""


def moved_by(plan: Plan) -> list[VmId]:
    return [step.action.vm for step in plan.steps if isinstance(step.action, Migrate)]


def next_pass(state: Snapshot) -> tuple[Snapshot, Plan | None]:
    """Observe the same demand, and execute what balance and power plan."""
    state = observed(state, state.at_ms)
    plan = planned(state, proposals(state))
    if not isinstance(plan, Plan):
        return state, None
    return applied(state, plan), plan


def passes(state: Snapshot) -> Iterator[tuple[Snapshot, Plan | None]]:
    """Yield the cluster after each pass under constant demand, with the plan."""
    for _ in range(PASSES):
        after, plan = next_pass(state)
        yield after, plan
        state = replace(after, at_ms=max(after.at_ms, state.at_ms + PASS_MS))


@given(clusters(past=False))
def test_under_constant_demand_no_vm_moves_twice(state: Snapshot) -> None:
    """By balance, power, rules and maintenance together."""
    moves: Counter[VmId] = Counter()
    for _, plan in passes(state):
        moves.update(moved_by(plan) if plan is not None else ())
    event(f"{min(3, len(moves))} or more VMs moved")
    assert max(moves.values(), default=0) <= 1, moves


@st.composite
def uneven(draw: st.DrawFn) -> Snapshot:
    """A few hosts of one size, and VMs that nothing keeps where they are."""
    hosts = [a_host(f"h{n}") for n in range(draw(st.integers(2, 4)))]
    vms = [
        a_vm(
            f"v{n}",
            draw(st.sampled_from(hosts)).id,
            demand=Demand(cpu_mhz=draw(st.integers(0, 1500)), memory_mib=draw(st.integers(0, 900))),
        )
        for n in range(draw(st.integers(1, 8)))
    ]
    return a_cluster(*hosts, vms=vms, balance=BalancePolicy(threshold=5))


def balanced(state: Snapshot) -> tuple[Snapshot, list[VmId]]:
    """Observe the same demand, and execute what balance alone plans."""
    state = observed(state, state.at_ms)
    plan = planned(state, proposals(state)[:1])
    if not isinstance(plan, Plan):
        return state, []
    return applied(state, plan), moved_by(plan)


def worthwhile(state: Snapshot, moved: Counter[VmId]) -> list[VmId]:
    """The VMs that have not moved and of which some move is worth it, by trying them all."""
    found = PlainBalance(state, ESTIMATES).moves(1e-6)
    return [move.vm for move in found if not moved[move.vm]]


@given(uneven())
def test_a_worthwhile_move_of_a_vm_that_has_not_moved_is_made(state: Snapshot) -> None:
    """The other half of calm: VMs that have moved do not hold the others back."""
    moved: Counter[VmId] = Counter()
    for _ in range(8):
        seen = observed(state, state.at_ms)
        due = worthwhile(seen, moved)
        before = PlainBalance(seen, ESTIMATES).imbalance()
        after, vms = balanced(state)
        moved.update(vms)
        assert bool(vms) or not due, due
        if vms:
            assert PlainBalance(after, ESTIMATES).imbalance() < before
        state = replace(after, at_ms=max(after.at_ms, state.at_ms + PASS_MS))
    assert max(moved.values(), default=0) <= 1


@given(uneven(), st.data())
def test_a_change_of_demand_frees_the_vms_that_have_moved(
    state: Snapshot, data: st.DataObject
) -> None:
    """After the shortest rest, as if they had never moved."""
    for _ in range(3):
        after, _ = balanced(state)
        state = replace(after, at_ms=max(after.at_ms, state.at_ms + PASS_MS))
    demand = {
        vm: Demand(cpu_mhz=data.draw(st.integers(0, 1500), label=vm), memory_mib=0)
        for vm in state.vms
    }
    state = observed(state, state.at_ms)
    changed = transition.apply(state, DemandObserved(at_ms=state.at_ms + PASS_MS, demand=demand))
    result = run_balance_pass(changed, ESTIMATES)
    hosts = {vm.id: vm.host for vm in changed.vms.values()}
    for vm, reason in result.resting.vms.items():
        # Only what has not changed by a twentieth of a host, on its host and in all, still rests.
        assert reason.code == "unchanged-since-move"
        there = [other for other, host in hosts.items() if host == hosts[vm]]
        assert abs(difference(state, changed, there)) <= 0.05 * 4000 + 1e-6
        assert abs(difference(state, changed, list(hosts))) <= 0.025 * 4000 * len(state.hosts)


def difference(before: Snapshot, after: Snapshot, vms: list[VmId]) -> float:
    return sum(after.vms[vm].demand.cpu_mhz - before.vms[vm].demand.cpu_mhz for vm in vms)
