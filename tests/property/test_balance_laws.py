"""Laws of balancing, on small clusters of all kinds, against an oracle in plain Python."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.balance import BalanceDecider
from equipoise.balance.advice import BalanceAdvice, BalanceCode, snapshot_after_moves
from equipoise.balance.run_pass import run_balance_pass
from equipoise.capacity import admission
from equipoise.capacity.admission import PoolReservations
from equipoise.capacity.entitlement import vm_entitlements
from equipoise.model.action import Migrate
from equipoise.model.action_durations import Estimates
from equipoise.model.event import DemandObserved
from equipoise.model.host import Host
from equipoise.model.inventory import Pool
from equipoise.model.plan import Plan
from equipoise.model.policy.balance import BalancePolicy
from equipoise.model.quantity import HostId, PlanId, PoolId, ResourceName, RuleId, VmId
from equipoise.model.rule import KeepApart, StayOff
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.state.transition import with_contention
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm
from equipoise.plan import VerifiedPlan, order, verify
from plain_balance import PlainBalance, reserved
from plain_division import Resource, cluster_tree
from plain_limits import memory_for_sizes, vcpus_for_sizes

ESTIMATES = Estimates()
FREE = BalancePolicy(cost_benefit=False, goodness=0, gain_min=0, threshold=5)
"""Every move that lowers the imbalance is good enough."""
CAREFUL = BalancePolicy(threshold=5)
NET = ResourceName("net_mbps")
NEVER = 40
"""So many passes over a few VMs never end, if they have not ended by then."""


def ruled(state: Snapshot, policy: BalancePolicy) -> Snapshot:
    return replace(state, settings=state.settings.but(balance=policy))


def advised(state: Snapshot) -> BalanceAdvice:
    return run_balance_pass(state, ESTIMATES).advice


def after_moves(state: Snapshot, advice: BalanceAdvice) -> Snapshot:
    return snapshot_after_moves(state, ((move.vm, move.target) for move in advice.moves))


# Clusters in which no rule is broken yet


@st.composite
def some_hosts(draw: st.DrawFn) -> list[Host]:
    return [
        a_host(
            f"h{n}",
            cores=draw(st.integers(2, 6)),
            memory_mib=1024 * draw(st.integers(2, 6)),
            capacity=draw(st.sampled_from([{}, {}, {NET: 1000}, {NET: 3000}])),
            memory_overcommit=draw(st.sampled_from([None, None, 1.5, 4.0])),
            cpu_overcommit=draw(st.sampled_from([None, None, None, 2.0])),
        )
        for n in range(draw(st.integers(2, 4)))
    ]


@st.composite
def some_vms(draw: st.DrawFn, name: str, host: Host) -> Vm:
    size = draw(st.sampled_from([512, 1024, 3072]))
    amount = draw(st.sampled_from([0, 1])) * draw(st.integers(0, 250)) if host.capacity else 0
    return a_vm(
        name,
        host.id,
        vcpus=draw(st.integers(1, 3)),
        memory_mib=size,
        demand=Demand(cpu_mhz=draw(st.integers(0, 4000)), memory_mib=draw(st.integers(0, size))),
        cpu=CpuSettings(
            reservation_mhz=draw(st.sampled_from([0, 0, 250])),
            shares=draw(st.sampled_from([500, 1000, 4000])),
        ),
        memory=MemorySettings(reservation_mib=draw(st.sampled_from([0, 0, 200]))),
        consumption={NET: amount} if amount else {},
        pool=draw(st.sampled_from([None, None, PoolId("p")])),
    )


@st.composite
def some_rules(draw: st.DrawFn, vms: list[Vm], hosts: list[Host]) -> tuple[Any, ...]:
    """A rule that holds as things are."""
    first: dict[str, VmId] = {}
    for vm in draw(st.permutations(vms)):
        first.setdefault(str(vm.host), vm.id)
    kind = draw(st.sampled_from(["none", "apart", "off"]))
    continuous = draw(st.booleans())
    if kind == "apart" and len(first) > 1:
        members = tuple(first.values())
        return (KeepApart(id=RuleId("r"), vms=members, continuous=continuous),)
    if kind == "off" and len(vms) > 1:  # a host that is forbidden for all VMs is not rebalanced
        vm = draw(st.sampled_from(vms))
        others = [host.id for host in hosts if host.id != vm.host]
        off = (draw(st.sampled_from(others)),)
        return (StayOff(id=RuleId("r"), vms=(vm.id,), hosts=off, continuous=continuous),)
    return ()


def large_enough(host: Host, vms: list[Vm]) -> Host:
    """The host with factors that allow the VMs that are there: an overfull one is repaired."""
    here = [vm for vm in vms if vm.host == host.id]
    memory_mib, vcpus = sum(vm.memory_mib for vm in here), sum(vm.vcpus for vm in here)
    if memory_mib > memory_for_sizes(host):
        host = host.but(memory_overcommit=ceil(100 * memory_mib / host.memory_mib) / 100)
    if vcpus > vcpus_for_sizes(host):
        host = host.but(cpu_overcommit=ceil(100 * vcpus / host.cores) / 100)
    return host


@st.composite
def clusters(draw: st.DrawFn, policy: BalancePolicy) -> Snapshot:
    hosts = draw(some_hosts())
    vms = [
        draw(some_vms(f"v{n}", draw(st.sampled_from(hosts))))
        for n in range(draw(st.integers(0, 7)))
    ]
    hosts = [large_enough(host, vms) for host in hosts]
    limit = draw(st.sampled_from([None, 3000]))
    pool = Pool(id=PoolId("p"), cpu=CpuSettings(limit_mhz=limit, shares=2000))
    rules = draw(some_rules(vms, hosts))
    state = a_cluster(*hosts, vms=vms, rules=rules, pools=(pool,))
    return ruled(state, policy)


@st.composite
def watched_clusters(draw: st.DrawFn, policy: BalancePolicy) -> Snapshot:
    """Clusters of which demand was seen for a while; the last is what it is now."""
    state = draw(clusters(policy))
    minutes = draw(st.lists(st.integers(0, 59), max_size=4, unique=True).map(sorted))
    now = {vm.id: vm.demand for vm in state.vms.values()}
    for minute in minutes:
        other = {
            vm: demand.but(cpu_mhz=draw(st.sampled_from([demand.cpu_mhz, 0, 3000])))
            for vm, demand in now.items()
        }
        event = DemandObserved(at_ms=60_000 * minute, demand=other)
        state = transition.apply(state, event)
    return transition.apply(state, DemandObserved(at_ms=3_540_000, demand=now))


BOTH = clusters(FREE) | clusters(CAREFUL) | watched_clusters(CAREFUL)


# The entitlement of VMs


@st.composite
def claims(draw: st.DrawFn) -> dict[str, Any]:
    floor, more = draw(st.sampled_from([0, 0, 300, 1500])), draw(st.none() | st.integers(0, 2000))
    limit = None if more is None else floor + more
    least, rest = draw(st.sampled_from([0, 0, 128, 700])), draw(st.none() | st.integers(0, 900))
    return {
        "cpu": CpuSettings(
            reservation_mhz=floor, limit_mhz=limit, shares=draw(st.integers(1, 5000))
        ),
        "memory": MemorySettings(
            reservation_mib=least,
            limit_mib=None if rest is None else least + rest,
            shares=draw(st.integers(1, 5000)),
        ),
    }


@st.composite
def deserving(draw: st.DrawFn) -> Snapshot:
    """Hosts that may be far too small, and pools within pools."""
    hosts = [a_host(f"h{n}", memory_mib=2048) for n in range(draw(st.integers(1, 3)))]
    pools: list[Pool] = []
    for n in range(draw(st.integers(0, 3))):
        parent = draw(st.sampled_from([None, *(pool.id for pool in pools)]))
        more = {"scalable": draw(st.booleans()), **draw(claims())}
        pools.append(Pool(id=PoolId(f"p{n}"), parent=parent, **more))
    vms = []
    for n in range(draw(st.integers(1, 8))):
        pool = draw(st.sampled_from([None, *(pool.id for pool in pools)]))
        demand = Demand(cpu_mhz=draw(st.integers(0, 6000)), memory_mib=draw(st.integers(0, 1024)))
        vms.append(a_vm(f"v{n}", "h0", demand=demand, pool=pool, **draw(claims())))
    return a_cluster(*hosts, vms=vms, pools=tuple(pools))


def size_of(state: Snapshot) -> tuple[int, int]:
    hosts = state.hosts.values()
    return sum(host.usable_cpu_mhz for host in hosts), sum(host.usable_memory_mib for host in hosts)


def most_of(vm: Vm) -> tuple[float, float]:
    cpu = float("inf") if vm.cpu.limit_mhz is None else vm.cpu.limit_mhz
    memory = vm.memory_mib if vm.memory.limit_mib is None else vm.memory.limit_mib
    return cpu, min(memory, vm.memory_mib)


@given(deserving())
def test_entitlements_respect_limits_and_the_capacity(state: Snapshot) -> None:
    vms = list(state.vms.values())
    found = vm_entitlements(state, vms, fast=False)
    assert (found >= 0).all()
    assert (found.sum(axis=0) <= np.array(size_of(state)) * (1 + 1e-9)).all()
    for vm, due in zip(vms, found.tolist(), strict=True):
        for amount, most in zip(due, most_of(vm), strict=True):
            assert amount <= most * (1 + 1e-9)


def least_of(vm: Vm) -> tuple[float, float]:
    """What a VM reserves and may have."""
    cpu, memory = most_of(vm)
    return min(vm.cpu.reservation_mhz, cpu), min(vm.memory.reservation_mib, memory)


@given(deserving())
def test_without_pools_no_demanded_capacity_is_left(state: Snapshot) -> None:
    vms = [vm.but(pool=None) for vm in state.vms.values()]
    state = a_cluster(*state.hosts.values(), vms=vms)
    asked = [
        [min(max(least, want), most) for least, want, most in zip(*figures, strict=True)]
        for vm in vms
        for figures in [(least_of(vm), (vm.demand.cpu_mhz, vm.demand.memory_mib), most_of(vm))]
    ]
    found = vm_entitlements(state, vms, fast=False).sum(axis=0)
    assert found.tolist() == pytest.approx(np.minimum(size_of(state), np.sum(asked, axis=0)))


def parts_kept(state: Snapshot, resource: Resource) -> dict[VmId, float]:
    """Which part of its reservation each VM has at least, in any pool.

    All of it, unless the hosts, or pools by their limits, have less than is guaranteed in them.
    """
    root = cluster_tree(list(state.vms.values()), state.settings.pools, resource)
    found: dict[VmId, float] = {}
    below = [(root, 1.0, float(size_of(state)[resource == "memory"]))]
    while below:
        node, part, most = below.pop()
        if node.vm is not None:
            found[node.vm] = part
        part *= min(1.0, most / max(1, sum(child.claim.floor for child in node.below)))
        below += [(child, part, child.claim.ceiling) for child in node.below]
    return found


@given(deserving())
def test_every_vm_gets_its_reservation_or_the_same_fraction_of_it(
    state: Snapshot,
) -> None:
    vms = list(state.vms.values())
    found = vm_entitlements(state, vms, fast=False)
    resources: tuple[Resource, Resource] = ("cpu", "memory")
    for column, resource in enumerate(resources):
        parts = parts_kept(state, resource)
        for vm, due in zip(vms, found[:, column].tolist(), strict=True):
            assert due >= least_of(vm)[column] * parts[vm.id] * (1 - 1e-9)


@given(deserving())
def test_every_admitted_vm_gets_its_reservation(state: Snapshot) -> None:
    """The pools are all expandable and have no limits."""
    pools = tuple(
        pool.but(cpu=pool.cpu.but(limit_mhz=None), memory=pool.memory.but(limit_mib=None))
        for pool in state.settings.pools
    )
    vms = list(state.vms.values())
    state = a_cluster(*state.hosts.values(), vms=vms, pools=pools)
    found = vm_entitlements(state, vms, fast=False)
    for column, resource in enumerate((admission.CPU_RESERVATIONS, admission.MEMORY_RESERVATIONS)):
        if PoolReservations(state.hosts.values(), vms, pools, resource).free(None) >= 0:
            for vm, due in zip(vms, found[:, column].tolist(), strict=True):
                assert due >= least_of(vm)[column] * (1 - 1e-9)


@given(deserving(), st.integers(0, 7), st.integers(0, 3000), st.integers(0, 500))
def test_a_larger_demand_never_lowers_the_entitlement(
    state: Snapshot, number: int, cpu_mhz: int, memory_mib: int
) -> None:
    vms = list(state.vms.values())
    row = number % len(vms)
    demand = vms[row].demand
    greedy = vms[row].but(
        demand=demand.but(
            cpu_mhz=demand.cpu_mhz + cpu_mhz, memory_mib=min(1024, demand.memory_mib + memory_mib)
        )
    )
    before = vm_entitlements(state, vms, fast=False)[row]
    after = vm_entitlements(state, [*vms[:row], greedy, *vms[row + 1 :]], fast=False)[row]
    assert (after >= before * (1 - 1e-9) - 1e-9).all()


# One pass


@given(BOTH)
def test_each_move_is_the_best_in_its_turn(state: Snapshot) -> None:
    advice, plain = advised(state), PlainBalance(state, ESTIMATES)
    assert advice.before == pytest.approx(plain.imbalance(), abs=1e-9)
    for move in advice.moves:
        if move.code is not BalanceCode.BALANCE:  # overload comes first, whatever the imbalance
            plain.where[move.vm] = move.target
            continue
        assert plain.imbalance() > plain.policy.imbalance_target - 1e-9
        assert plain.allows(move.vm, move.target), move
        gain = plain.gain(move.vm, move.target)
        assert gain == pytest.approx(move.gain["imbalance"], abs=1e-7)
        assert gain > plain.least_gain(move.source) - 1e-9
        assert not plain.policy.cost_benefit or plain.net(move.vm, move.target) > -1e-6
        candidates = plain.moves(1e-8)
        gains = [other.gain for other in candidates if not has_moved(other.vm, plain, state)]
        best = max(gains, default=0.0)
        assert gain > best - 1e-8
        plain.where[move.vm] = move.target
    assert advice.before - advice.gain == pytest.approx(plain.imbalance(), abs=1e-9)
    scarce = [name for name, heavy in plain.heavy_at_first.items() if heavy > 1]
    again = PlainBalance(with_contention(after_moves(state, advice), scarce), ESTIMATES)
    assert advice.after == pytest.approx(again.imbalance(), abs=1e-9)


def has_moved(vm: VmId, plain: PlainBalance, state: Snapshot) -> bool:
    return plain.where[vm] != state.vms[vm].host


@given(BOTH)
def test_a_pass_never_raises_the_imbalance(state: Snapshot) -> None:
    advice, plain = advised(state), PlainBalance(state, ESTIMATES)
    if not advice.moves:
        return
    after = PlainBalance(after_moves(state, advice), ESTIMATES)
    if any(move.code is not BalanceCode.BALANCE for move in advice.moves):
        assert plain.relieves(after.where)
        return
    assert after.pressure() < plain.pressure()
    assert advice.gain > 0
    for resource, heavy in after.heavy_at_first.items():
        assert heavy <= plain.heavy_at_first[resource], "nothing becomes scarce"


@given(BOTH)
def test_passes_terminate_where_no_move_is_left(state: Snapshot) -> None:
    for _ in range(NEVER):
        advice = advised(state)
        if not advice.moves:
            break
        state = after_moves(state, advice)
    assert not advice.moves, "it never comes to rest"
    assert PlainBalance(state, ESTIMATES).moves(1e-6) == []


def held_at(state: Snapshot, plan: Plan) -> list[dict[VmId, set[HostId]]]:
    """Where VMs hold something, after each instant of a plan; ends come before starts."""
    held = {vm.id: {HostId(str(vm.host))} for vm in state.vms.values()}
    seen = []
    for now_ms in sorted({time for step in plan.steps for time in (step.start_ms, step.end_ms)}):
        for step in plan.steps:
            assert isinstance(step.action, Migrate)
            if step.end_ms == now_ms:
                held[step.action.vm] = {step.action.target}
        for step in plan.steps:
            assert isinstance(step.action, Migrate)
            if step.start_ms == now_ms:
                held[step.action.vm] = {step.action.source, step.action.target}
        seen.append({vm: set(hosts) for vm, hosts in held.items()})
    return seen


@given(BOTH)
def test_proposals_fit_and_keep_the_rules_at_every_step(state: Snapshot) -> None:
    intents = BalanceDecider(ESTIMATES).propose(state).intents
    if not intents:
        return
    plan = order(state, intents, PlanId("p"))
    assert isinstance(plan, Plan)
    assert isinstance(verify(state, plan), VerifiedPlan)
    moments, plain = held_at(state, plan), PlainBalance(state, ESTIMATES)
    for held in moments:
        for host in state.hosts:
            there = [state.vms[vm] for vm, hosts in held.items() if host in hosts]
            for resource in plain.resources:
                whole = sum(reserved(vm, resource) for vm in there)
                assert whole <= plain.has(host, resource), (host, resource)
    for rule in state.settings.rules:
        for held in moments if rule.continuous else moments[-1:]:
            if isinstance(rule, KeepApart):
                places = [host for vm in rule.vms for host in held[VmId(vm)]]
                assert len(places) == len(set(places))
            if isinstance(rule, StayOff):
                assert all(held[VmId(vm)].isdisjoint(rule.hosts) for vm in rule.vms)


@given(clusters(CAREFUL) | clusters(CAREFUL.but(evenness=1.0)))
def test_a_higher_threshold_never_gives_fewer_moves(state: Snapshot) -> None:
    found = []
    for threshold in range(1, 6):
        policy = state.settings.balance.but(threshold=threshold)
        advice = advised(ruled(state, policy))
        found.append([(move.vm, move.target) for move in advice.moves])
        assert all(2 <= move.priority <= threshold for move in advice.moves)
        waiting = [
            rejection for rejection in advice.rejected if rejection.code == "below-threshold"
        ]
        assert bool(waiting) or threshold > 1 or not found[0]
    assert found[0] == []
    for fewer, more in pairwise(found):
        assert more[: len(fewer)] == fewer


@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_the_order_of_hosts_and_vms_does_not_matter(seed: int, other: int) -> None:
    """Unless two moves are equally good: here no two VMs and no two hosts are the same."""
    chance = np.random.default_rng(seed)
    hosts = [
        a_host(
            f"h{n}",
            cores=4,
            mhz_per_core=900 + 37 * n,
            memory_mib=8192 + 331 * n,
            memory_overcommit=5,
        )
        for n in range(4)
    ]
    vms = [
        a_vm(
            f"v{n}",
            f"h{chance.integers(0, 4)}",
            memory_mib=4096,
            demand=Demand(
                cpu_mhz=int(chance.integers(1, 2000)), memory_mib=int(chance.integers(1, 4096))
            ),
        )
        for n in range(9)
    ]
    shuffled = np.random.default_rng(other)
    states = [
        a_cluster(*hosts, vms=vms),
        a_cluster(
            *(hosts[n] for n in shuffled.permutation(4)),
            vms=[vms[n] for n in shuffled.permutation(9)],
        ),
    ]
    for policy in (FREE, CAREFUL):
        one, two = (advised(ruled(state, policy)) for state in states)
        assert [(m.vm, m.target) for m in one.moves] == [(m.vm, m.target) for m in two.moves]
        assert one.before == pytest.approx(two.before)
        assert one.after == pytest.approx(two.after)
