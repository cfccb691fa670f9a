"""Laws of overload: relief comes first, harms no host, and finds what brute force finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from builders import a_cluster, a_host, a_vm
from equipoise.balance.advice import snapshot_after_moves
from equipoise.balance.placement import PlacementAdvice, place_vms
from equipoise.balance.run_pass import run_balance_pass
from equipoise.model.action_durations import Estimates
from equipoise.model.host import HostState
from equipoise.model.inventory import Pool
from equipoise.model.policy.balance import BalancePolicy
from equipoise.model.quantity import HostId, PoolId, RuleId, VmId
from equipoise.model.rule import KeepApart, Satisfy, StayOff
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.vm import CpuSettings, Demand, MemorySettings, Vm, VmState
from plain_balance import PlainBalance

ESTIMATES = Estimates()
FREE = BalancePolicy(cost_benefit=False, threshold=5)
PASSES_MAX = 30
"""So many passes over a few VMs never end, if they have not ended by then."""
Move = tuple[VmId, HostId]


@st.composite
def crowded(draw: st.DrawFn, policy: BalancePolicy = FREE) -> Snapshot:
    """Small clusters with much demand, reservations, pools with limits and a rule."""
    hosts = [
        a_host(f"h{n}", cores=draw(st.integers(2, 6)), memory_mib=1024 * draw(st.integers(2, 5)))
        for n in range(draw(st.integers(2, 4)))
    ]
    vms = [
        a_vm(
            f"v{n}",
            draw(st.sampled_from([host.id for host in hosts[:2]])),
            memory_mib=1024,
            demand=Demand(
                cpu_mhz=draw(st.integers(0, 3000)), memory_mib=draw(st.integers(0, 1024))
            ),
            cpu=CpuSettings(limit_mhz=draw(st.sampled_from([None, None, 900]))),
            memory=MemorySettings(reservation_mib=draw(st.sampled_from([0, 0, 700]))),
            pool=draw(st.sampled_from([None, None, PoolId("p")])),
        )
        for n in range(draw(st.integers(1, 6)))
    ]
    pool = Pool(id=PoolId("p"), cpu=CpuSettings(limit_mhz=draw(st.sampled_from([None, 1500]))))
    names = tuple(vm.id for vm in vms)
    rules: list[KeepApart | StayOff] = []
    if draw(st.booleans()) and len({vm.host for vm in vms[:2]}) == 2:
        rules = [KeepApart(id=RuleId("r"), vms=names[:2])]
    elif draw(st.booleans()) and len(hosts) > 2:
        rules = [StayOff(id=RuleId("r"), vms=names[:1], hosts=(hosts[-1].id,))]
    state = a_cluster(*hosts, vms=vms, rules=tuple(rules), pools=(pool,))
    reserved = [
        sum(vm.memory.reservation_mib for vm in vms if vm.host == host.id) for host in hosts
    ]
    assume(all(held <= host.memory_mib for held, host in zip(reserved, hosts, strict=True)))
    return replace(state, settings=state.settings.but(balance=policy))


def after_pass(state: Snapshot) -> tuple[Snapshot, int]:
    advice = run_balance_pass(state, ESTIMATES).advice
    then = snapshot_after_moves(state, ((move.vm, move.target) for move in advice.moves))
    return then, len(advice.moves)


def short_sequences(plain: PlainBalance) -> Iterator[tuple[Move, ...]]:
    """One move, or two one after the other, that the hard limits allow in this order."""
    single = [
        (vm, host.id) for vm in plain.where for host in plain.hosts if plain.allows(vm, host.id)
    ]
    yield from ((move,) for move in single)
    start = dict(plain.where)
    for vm, host in single:
        plain.where[vm] = host
        for other, third in permutations_of(plain):
            if other != vm and plain.allows(other, third):
                yield ((vm, host), (other, third))
        plain.where.update(start)


def permutations_of(plain: PlainBalance) -> list[Move]:
    return [(vm, host.id) for vm in plain.where for host in plain.hosts]


def relieving_sequence(state: Snapshot) -> tuple[Move, ...] | None:
    plain = PlainBalance(state, ESTIMATES)
    if not plain.overload():
        return None
    judge = PlainBalance(state, ESTIMATES)
    for moves in short_sequences(plain):
        if judge.relieves({**judge.where, **dict(moves)}):
            return moves
    return None


@given(crowded())
def test_no_advice_makes_the_overload_of_a_host_worse(state: Snapshot) -> None:
    before = PlainBalance(state, ESTIMATES)
    then, _ = after_pass(state)
    now = before.overload()
    for key, excess in before.overload(PlainBalance(then, ESTIMATES).where).items():
        assert excess <= now.get(key, 0.0) + 1e-6, key


@given(crowded())
def test_what_one_or_two_moves_can_relieve_a_pass_relieves(state: Snapshot) -> None:
    for _ in range(PASSES_MAX):
        found = relieving_sequence(state)
        then, moves = after_pass(state)
        plain = PlainBalance(state, ESTIMATES)
        if found is not None:
            assert plain.relieves(PlainBalance(then, ESTIMATES).where), found
        if not moves:
            return
        state = then
    raise AssertionError("it never comes to rest")


@given(crowded(BalancePolicy(threshold=5)))
def test_every_overload_that_remains_is_reported_with_its_figures(state: Snapshot) -> None:
    result = run_balance_pass(state, ESTIMATES, alternatives=True)
    moved = ((move.vm, move.target) for move in result.advice.moves)
    plain = PlainBalance(snapshot_after_moves(state, moved), ESTIMATES)
    reported = {
        fault.subject: fault for fault in result.advice.overload if fault.code == "host-overloaded"
    }
    assert set(reported) == {str(host) for host, _ in plain.overload()}
    assert result.advice.crowded == len(reported)
    for host, resource in plain.overload():
        figures = reported[str(host)].figures
        there = sum(plain.usable[resource][vm] for vm, at in plain.where.items() if at == host)
        assert abs(figures[f"{resource}_asked"] - there) <= 1
        assert figures[f"{resource}_there"] == plain.has(host, resource)
    for resource, code in (("cpu", "out-of-cpu"), ("memory", "out-of-memory")):
        asked = sum(plain.usable[resource].values())
        there = sum(plain.has(host.id, resource) for host in plain.hosts)
        codes = {fault.code for fault in result.advice.overload}
        assert (code in codes) == (asked > there * (1 + 1e-9))


# Placement


def reserve_holds(state: Snapshot) -> bool:
    """Whether the VMs of any one host fit on the others, in some assignment."""
    on = [host for host in state.hosts.values() if host.state is HostState.ON]
    held = {host.id: [state.vms[vm] for vm in state.residents[host.id]] for host in on}

    def fits(vms: list[Vm], free: dict[HostId, int]) -> bool:
        if not vms:
            return True
        need = vms[0].memory_mib
        return any(
            fits(vms[1:], {**free, host: left - need})
            for host, left in free.items()
            if left >= need
        )

    for lost in on:
        free = {
            host.id: host.usable_memory_mib - sum(vm.memory_mib for vm in held[host.id])
            for host in on
            if host is not lost
        }
        vms = [vm for vm in held[lost.id] if vm.memory_mib]
        if not fits(vms, free):
            return False
    return True


@st.composite
def reserved_clusters(draw: st.DrawFn) -> Snapshot:
    states = [HostState.ON, HostState.ON, draw(st.sampled_from([HostState.ON, HostState.STANDBY]))]
    hosts = [
        a_host(f"h{n}", state=state, memory_mib=1024 * draw(st.integers(4, 8)))
        for n, state in enumerate(states)
    ]
    sizes = st.sampled_from([1, 1024, 2048, 3072])
    vms = [
        a_vm(
            f"v{n}",
            draw(st.sampled_from(["h0", "h1"])) if n < 3 else None,
            memory_mib=draw(sizes),
            demand=Demand(cpu_mhz=draw(st.integers(0, 2500))),
        )
        for n in range(draw(st.integers(4, 6)))
    ]
    rule = Satisfy(id=RuleId("f"), constraint="Failover", arguments={"nb": 1, "id": "memory"})
    return a_cluster(*hosts, vms=vms, rules=(rule,))


def placed_on(state: Snapshot) -> tuple[PlacementAdvice, Snapshot]:
    new = [vm.id for vm in state.vms.values() if vm.host is None]
    advice = place_vms(state, new, ESTIMATES)
    on = {host: state.hosts[host].but(state=HostState.ON) for host in advice.wakes}
    vms = {move.vm: state.vms[move.vm].but(host=move.target) for move in advice.moves}
    vms |= {
        start.vm: state.vms[start.vm].but(state=VmState.RUNNING, host=start.host)
        for start in advice.placed
    }
    return advice, replace(state, hosts=state.hosts.but(on), vms=state.vms.but(vms))


@given(reserved_clusters())
def test_a_failover_reserve_that_holds_still_holds_after_a_placement(state: Snapshot) -> None:
    held = reserve_holds(state)
    advice, then = placed_on(state)
    assert not held or reserve_holds(then)
    for fault in advice.faults:
        if fault.code == "failover-reserve":
            # No host that is on takes the VM and keeps the reserve: trying each shows it.
            vm = VmId(fault.subject)
            for host in then.hosts.values():
                if host.state is HostState.ON:
                    started = then.vms[vm].but(state=VmState.RUNNING, host=host.id)
                    trial = replace(then, vms=then.vms.but({vm: started}))
                    there = [trial.vms[other] for other in trial.residents[host.id]]
                    full = sum(known.memory_mib for known in there)
                    assert full > host.usable_memory_mib or not reserve_holds(trial)


@given(reserved_clusters())
def test_a_start_overloads_a_host_only_if_every_host_would_be_overloaded(state: Snapshot) -> None:
    state = replace(state, settings=state.settings.but(rules=()))
    new = [vm.id for vm in state.vms.values() if vm.host is None][:1]
    advice = place_vms(state, new, ESTIMATES)
    if not advice.placed:
        return
    start = advice.placed[0]
    loads = {
        host.id: sum(state.vms[vm].demand.cpu_mhz for vm in state.residents[host.id])
        for host in state.hosts.values()
    }
    asked = start.demand.cpu_mhz
    overloads = {
        host.id: loads[host.id] + asked > host.usable_cpu_mhz and asked > 0
        for host in state.hosts.values()
    }
    fits = {
        host.id: sum(state.vms[vm].memory_mib for vm in state.residents[host.id])
        + state.vms[new[0]].memory_mib
        <= host.usable_memory_mib
        for host in state.hosts.values()
    }
    assert overloads[start.host] == bool(advice.warnings)
    if overloads[start.host]:
        assert all(overloads[host] or not fits[host] for host in state.hosts)
