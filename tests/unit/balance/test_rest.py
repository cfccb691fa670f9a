"""What stays where it is: after moves, after failures, and while a host is about to sleep."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import a_cluster, a_host, a_vm
from equipoise.balance.advice import BalanceAdvice
from equipoise.balance.explain import BalanceExplainer
from equipoise.balance.run_pass import run_balance_pass
from equipoise.control import ControlLoop
from equipoise.control.config import ControlConfig
from equipoise.model.action_durations import Estimates
from equipoise.model.event import ActionFailed, ActionFinished, ActionStarted, ActionTimedOut
from equipoise.model.host import PowerProfile
from equipoise.model.policy.balance import BalancePolicy
from equipoise.model.policy.power import PowerPolicy
from equipoise.model.quantity import HostId, VmId
from equipoise.model.scenario.physics import MigrationPhysics, Physics
from equipoise.model.scenario.scenario import Scenario
from equipoise.model.state import transition
from equipoise.model.state.move_record import FailedMoves, LastMove
from equipoise.model.state.snapshot import DemandSample, Snapshot
from equipoise.model.value import FrozenMap
from equipoise.model.vm import Demand
from equipoise.power.propose import run_power_pass
from equipoise.sim.runner import ScenarioRunner
from equipoise.store import MemoryJournal
from memory_world import MemoryWorld

ESTIMATES = Estimates()
NOW_MS = 10 * 3_600_000
V = [VmId(f"v{n}") for n in range(4)]
H = [HostId(f"h{n}") for n in range(3)]
KNOWN = PowerProfile(idle_watts=100, peak_watts=200, standby_watts=5)


def uneven(hosts: int = 3, mhz: int = 900, **fields: object) -> Snapshot:
    """All four VMs on the first host, which has just enough for them."""
    vms = [a_vm(vm, "h0", demand=Demand(cpu_mhz=mhz, memory_mib=500)) for vm in V]
    machines = [a_host(f"h{n}", power=KNOWN) for n in range(hosts)]
    given = {"balance": BalancePolicy(threshold=5), **fields}
    return replace(a_cluster(*machines, vms=vms, **given), at_ms=NOW_MS)


def advised(state: Snapshot, *, powered: bool = False) -> BalanceAdvice:
    return run_balance_pass(state, ESTIMATES, powered=powered).advice


def moving(state: Snapshot) -> set[VmId]:
    return {move.vm for move in advised(state).moves}


def codes(state: Snapshot) -> dict[str, str]:
    return {rejection.code: rejection.subject for rejection in advised(state).rejected}


def failing(ago_s: int, *failures: int) -> FrozenMap[VmId, FailedMoves]:
    """The first VMs, with how many of their migrations failed in a row."""
    ended_ms = NOW_MS - 1000 * ago_s
    return FrozenMap(
        {
            vm: FailedMoves(ended_ms, H[0], target, count, 100.0)
            for vm, target, count in zip(V, H[1:], failures, strict=False)
        }
    )


@pytest.mark.parametrize(
    ("ago_s", "failures", "waits"),
    [(299, 1, True), (301, 1, False), (1199, 3, True), (1201, 3, False)],
)
def test_a_vm_whose_migration_failed_waits_twice_as_long_each_time(
    ago_s: int, failures: int, waits: bool
) -> None:
    state = replace(uneven(), failed_moves=failing(ago_s, failures))
    assert moving(state), "the other VMs move"
    assert (V[0] not in moving(state)) or not waits
    assert codes(state).get("move-back-off") == ("v0" if waits else None)


def test_a_link_over_which_several_migrations_failed_waits() -> None:
    state = replace(uneven(), failed_moves=failing(100, 1, 1))
    assert not moving(state)
    assert codes(state)["link-back-off"] == "h0"
    why = BalanceExplainer(run_balance_pass(state, ESTIMATES)).vm(V[3])
    assert why.code == "link-back-off"
    moved = LastMove(NOW_MS - 50_000, H[0], H[1], 100.0)
    assert "link-back-off" not in codes(replace(state, moves=FrozenMap({VmId("gone"): moved})))


def demanding(*mhz: int) -> tuple[DemandSample, ...]:
    """Samples of the last hour in which every VM asked for this, the oldest first."""
    step_ms = 3_000_000 // max(1, len(mhz))
    return tuple(
        DemandSample(
            NOW_MS - 3_000_000 + number * step_ms,
            FrozenMap({vm: Demand(cpu_mhz=amount, memory_mib=500) for vm in V}),
        )
        for number, amount in enumerate(mhz)
    )


def test_a_vm_rests_until_demand_or_hosts_change() -> None:
    move = LastMove(NOW_MS - 2_000_000, H[1], H[0], 100.0)
    moves = FrozenMap(dict.fromkeys(V, move))
    still = replace(uneven(), moves=moves, history=demanding(900, 900, 900))
    assert not moving(still)
    assert codes(still)["unchanged-since-move"] == "v0, v1, v2, v3"
    assert moving(replace(still, changed_ms=NOW_MS - 1))
    # The oldest sample is from before the move: a change then says nothing.
    assert not moving(replace(still, history=demanding(300, 900, 900)))
    assert moving(replace(still, history=demanding(900, 600, 900)))
    result = run_balance_pass(still, ESTIMATES)
    assert BalanceExplainer(result).vm(V[0]).code == "unchanged-since-move"


def test_a_vm_that_has_moved_often_rests_unless_its_host_is_overloaded() -> None:
    times = (NOW_MS - 9_000_000, NOW_MS - 8_000_000, NOW_MS - 7_000_000)
    move = LastMove(NOW_MS - 5_000_000, H[1], H[0], 100.0, earlier_ms=times)
    state = replace(uneven(), moves=FrozenMap({V[0]: move}), changed_ms=NOW_MS)
    assert moving(state)
    assert V[0] not in moving(state)
    assert codes(state).get("moved-often") in (None, "v0")
    full = replace(uneven(mhz=1200), moves=FrozenMap(dict.fromkeys(V, move)), changed_ms=NOW_MS)
    assert moving(full)


def test_a_vm_does_not_return_within_an_hour_unless_nothing_else_helps() -> None:
    def after(ago_s: int, hosts: int, mhz: int = 900) -> Snapshot:
        move = LastMove(NOW_MS - 1000 * ago_s, H[1], H[0], 100.0)
        state = uneven(hosts, mhz)
        return replace(state, moves=FrozenMap(dict.fromkeys(V, move)), changed_ms=NOW_MS)

    assert {move.target for move in advised(after(1000, 3)).moves} == {H[2]}
    assert not moving(after(1000, 2))
    assert {move.target for move in advised(after(3601, 2)).moves} == {H[1]}
    assert {move.target for move in advised(after(1000, 2, mhz=1200)).moves} == {H[1]}


def test_an_even_load_is_worth_nothing_while_a_host_is_about_to_sleep() -> None:
    idle = uneven(mhz=500, power=PowerPolicy(hosts_on_min=1))
    assert advised(idle).moves
    assert not advised(idle, powered=True).moves
    assert run_power_pass(idle, ESTIMATES).standbys, "and one does"
    busy = uneven(mhz=1900, power=PowerPolicy(hosts_on_min=1))
    assert advised(busy, powered=True).moves == advised(busy).moves != ()
    for power in (PowerPolicy(hosts_on_min=3), PowerPolicy(threshold=1)):
        kept = uneven(mhz=500, power=power)
        assert advised(kept, powered=True).moves


def test_the_weights_stay_until_no_host_lacks_the_resource() -> None:
    def state(mhz: int, contended: dict[str, int]) -> Snapshot:
        return replace(uneven(mhz=mhz), contended=FrozenMap(contended))

    assert advised(state(1200, {})).contended == ("cpu",)
    assert advised(state(950, {})).contended == ()
    before = advised(state(950, {})).before
    assert advised(state(950, {"cpu": NOW_MS - 1000})).before > before
    assert advised(state(950, {"cpu": NOW_MS - 3_600_001})).before == before
    assert advised(state(800, {"cpu": NOW_MS - 1000})).before == advised(state(800, {})).before


def test_a_replay_learns_what_the_run_has_learned() -> None:
    """Migrations over a slow link time out, and are estimated to take longer until they end."""
    vms = [
        a_vm(vm, "h0", memory_mib=16384, demand=Demand(cpu_mhz=1100, memory_mib=8000)) for vm in V
    ]
    scenario = Scenario(
        name="slow",
        duration_s=14_400,
        cluster=uneven()
        .inventory()
        .but(hosts=tuple(a_host(f"h{n}", memory_mib=131072) for n in range(3)), vms=tuple(vms)),
        deciders=("balance",),
        physics=Physics(migration=MigrationPhysics(link_mbps=500)),
    )
    journal = MemoryJournal()
    run = ScenarioRunner(scenario, journal)
    run.run(14_400_000)
    events = list(journal.events())
    timeouts = [event for event in events if isinstance(event, ActionTimedOut)]
    assert timeouts
    replayed = transition.replay(Snapshot(), events)
    assert replayed.moves == run.snapshot().moves
    assert replayed.failed_moves == run.snapshot().failed_moves
    for vm in replayed.vms.values():
        learned = ESTIMATES.migration_of(vm, replayed)
        assert learned == ESTIMATES.migration_of(vm, run.snapshot())
    assert any(isinstance(event, ActionFinished) for event in events), "in the end they move"
    started = [event for event in events if isinstance(event, ActionStarted)]
    per_vm = {vm: sum(getattr(e.step.action, "vm", "") == vm for e in started) for vm in V}
    assert max(per_vm.values()) <= 6
    assert not any(isinstance(event, ActionFailed) for event in events[-20:])
    assert ControlLoop(MemoryWorld(replayed), MemoryJournal(), config=ControlConfig()).idle
