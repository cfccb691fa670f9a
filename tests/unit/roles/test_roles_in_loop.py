"""Roles in the loop and in the simulated world: lanes, epochs, crashes, a lost controller."""

from __future__ import annotations

from builders import a_host, a_step, a_vm
from equipoise.control import ControlLoop
from equipoise.control.ports import StartAction
from equipoise.model.action import Migrate, StartRole
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionStarted,
    HostFailed,
    LeaderEpochStarted,
    PlanAccepted,
    PlanEnded,
    PlanRefused,
)
from equipoise.model.host import RequestedHostState
from equipoise.model.plan import Plan
from equipoise.model.quantity import HostId, PlanId, ProcessorId, RoleGroupId, RoleId, VmId
from equipoise.model.roles.layout import Role, RoleLayout, RolePreference
from equipoise.model.scenario.faults import ControllerLost, HostRequested, RoleStartsFail
from equipoise.plan import VerifiedPlan
from equipoise.roles.propose import RoleDecider
from equipoise.sim.world.simulated_world import SimulatedWorld
from equipoise.store import MemoryJournal
from role_harness import FREE, GROUP, SLOTS, a_layout_of, a_team, an_inventory_for
from role_scenarios import a_role_scenario, run_scenario

X, Y = FREE
P1, P2 = HostId("p1"), HostId("p2")


def a_layout(**more: object) -> RoleLayout:
    preferences = (
        RolePreference(role=X, slots=SLOTS),
        RolePreference(role=Y, slots=SLOTS, count=2),
    )
    return a_layout_of(a_team((), preferences)).but(**more)


def a_start(role: RoleId, host: HostId, epoch: int) -> StartRole:
    return StartRole(group=GROUP, role=role, host=host, epoch=epoch)


def test_the_world_refuses_actions_of_an_earlier_epoch() -> None:
    world = SimulatedWorld(a_role_scenario(a_layout()))
    world.perform(StartAction(a_step("a", a_start(X, P1, epoch=2)), 1))
    world.perform(StartAction(a_step("b", a_start(Y, P2, epoch=1)), 1))
    first = world.next_event(100_000)
    assert isinstance(first, ActionFailed)
    assert first.step == "b"
    assert first.code == "stale-epoch"
    second = world.next_event(100_000)
    assert isinstance(second, ActionFinished)
    assert world.truth().role_state.held == {ProcessorId("p1"): ((GROUP, X),)}


def test_every_action_carries_the_current_epoch() -> None:
    lost = ControllerLost(at_ms=100_000, for_ms=5000)
    fails = HostFailed(at_ms=200_000, host=P1)
    _, journal = run_scenario(a_role_scenario(a_layout(), lost, fails))
    epochs, current = [], 0
    for event in journal.events():
        if isinstance(event, LeaderEpochStarted):
            current = event.epoch
        if isinstance(event, ActionStarted) and isinstance(event.step.action, StartRole):
            assert event.step.action.epoch == current
            epochs.append(current)
    assert set(epochs) == {1, 2}


def test_without_a_controller_single_roles_stop_after_the_hold_time() -> None:
    lost = ControllerLost(at_ms=100_000, for_ms=200_000)
    held: dict[str, object] = {}
    for name, layout in (("unlimited", a_layout()), ("60 s", a_layout(hold_s=60))):
        world = SimulatedWorld(a_role_scenario(layout, lost))
        ControlLoop(world, MemoryJournal(), deciders=[RoleDecider()]).run(99_000)
        before = world.truth().role_state.held
        while world.next_event(250_000) is not None:
            pass
        after = world.truth().role_state.held
        held[name] = {p: set(before[p]) - set(after.get(p, ())) for p in before}
    assert held["unlimited"] == {ProcessorId("p1"): set(), ProcessorId("p2"): set()}
    assert held["60 s"] == {ProcessorId("p1"): {(GROUP, X)}, ProcessorId("p2"): set()}


def test_the_next_controller_starts_single_roles_again() -> None:
    lost = ControllerLost(at_ms=100_000, for_ms=200_000)
    play, _ = run_scenario(a_role_scenario(a_layout(hold_s=60), lost))
    assert (GROUP, X) in play.snapshot().role_state.held[ProcessorId("p1")]


def test_roles_do_not_wait_for_a_long_plan_of_another_decider() -> None:
    layout = a_layout()
    cluster = an_inventory_for(layout)
    cluster = cluster.but(hosts=(*cluster.hosts, a_host("far", cores=64)), vms=(a_vm("v1", "p3"),))
    move = Migrate(vm=VmId("v1"), source=HostId("p3"), target=HostId("far"))
    plan = Plan(id=PlanId("slow"), steps=(a_step("move", move, 0, 300_000),))
    fails = HostFailed(at_ms=60_000, host=P1)
    _, journal = run_scenario(a_role_scenario(layout, fails, cluster=cluster, plan=plan))
    events = list(journal.events())
    slow_ms = next(e.at_ms for e in events if isinstance(e, PlanEnded) and e.plan == "slow")
    again_ms = next(
        e.at_ms
        for e in events
        if isinstance(e, ActionStarted)
        and isinstance(e.step.action, StartRole)
        and e.step.action.role == X
        and e.at_ms > 0
    )
    assert slow_ms == 300_000
    assert again_ms == 60_000


def test_a_loop_continues_all_open_plans_after_a_crash() -> None:
    """Each role takes a minute to start, so failures at two times leave two plans open."""
    layout = a_layout_of(
        a_team((), (RolePreference(role=X, slots=SLOTS), RolePreference(role=Y, slots=SLOTS[1:]))),
        roles=[Role(id=r, start_ms=60_000) for r in FREE],
    )
    failures = (HostFailed(at_ms=100_000, host=P1), HostFailed(at_ms=110_000, host=P2))
    world, journal = SimulatedWorld(a_role_scenario(layout, *failures)), MemoryJournal()
    ControlLoop(world, journal, deciders=[RoleDecider()]).run(120_000)
    opened = {e.plan.id for e in journal.events() if isinstance(e, PlanAccepted)}
    closed = {e.plan for e in journal.events() if isinstance(e, PlanEnded)}
    assert len(opened - closed) == 2
    again = ControlLoop(world, journal, deciders=[RoleDecider()])
    again.run(400_000)
    closed = {e.plan for e in journal.events() if isinstance(e, PlanEnded)}
    opened = {e.plan.id for e in journal.events() if isinstance(e, PlanAccepted)}
    assert opened == closed
    held = again.snapshot().role_state.held
    assert sum((GROUP, X) in some for some in held.values()) == 1
    assert held == world.truth().role_state.held


def test_a_host_loses_its_roles_before_it_enters_maintenance() -> None:
    requested = HostRequested(at_ms=60_000, host=P1, requested=RequestedHostState.MAINTENANCE)
    scenario = a_role_scenario(a_layout(), requested, deciders=("balance", "roles"), pass_s=60)
    play, _ = run_scenario(scenario)
    snapshot = play.snapshot()
    assert snapshot.hosts[P1].state == "maintenance"
    assert not snapshot.role_state.held.get(ProcessorId("p1"))
    assert sum((GROUP, X) in some for some in snapshot.role_state.held.values()) == 1


def test_a_role_waits_for_the_migration_of_its_vm_without_a_refusal() -> None:
    layout = a_layout_of(a_team((), (RolePreference(role=X, slots=SLOTS[:1]),), vms=True))
    cluster = an_inventory_for(layout)
    cluster = cluster.but(hosts=(*cluster.hosts, a_host("far", cores=64)))
    move = Migrate(vm=VmId("p1"), source=HostId("floor"), target=HostId("far"))
    plan = Plan(id=PlanId("slow"), steps=(a_step("move", move, 0, 90_000),))
    _, journal = run_scenario(a_role_scenario(layout, cluster=cluster, plan=plan))
    kinds = [type(event) for event in journal.events()]
    assert PlanRefused not in kinds
    (start_ms,) = (
        e.at_ms
        for e in journal.events()
        if isinstance(e, ActionStarted) and isinstance(e.step.action, StartRole)
    )
    assert start_ms == 90_000


def test_a_hanging_start_is_cancelled_and_delays_no_other_role() -> None:
    other = a_team((), (RolePreference(role=Y, slots=SLOTS),)).but(
        id=RoleGroupId("h"), hosts=(HostId("q1"), HostId("q2"))
    )
    mine = a_team((), (RolePreference(role=X, slots=SLOTS),), attempts_max=1, isolation_s=3600)
    faults = (
        RoleStartsFail(at_ms=5000, processor=ProcessorId("p5"), hang=True),
        HostFailed(at_ms=10_000, host=P1),
        HostFailed(at_ms=20_000, host=HostId("q1")),
    )
    play, journal = run_scenario(a_role_scenario(a_layout_of(mine, other), *faults))
    held = play.snapshot().role_state.held
    assert (GROUP, X) in held[ProcessorId("p2")], "it is started elsewhere in the end"
    (given_up,) = (e for e in journal.events() if isinstance(e, ActionFailed))
    assert (given_up.at_ms, given_up.code) == (70_000, "cancelled")
    begun = [e.at_ms for e in journal.events() if isinstance(e, ActionStarted)]
    assert begun == [0, 0, 10_000, 20_000, 70_000]


def test_a_plan_of_role_actions_is_executed_to_its_end() -> None:
    world = SimulatedWorld(a_role_scenario(a_layout()))
    loop = ControlLoop(world, MemoryJournal())
    step = a_step("a", a_start(X, P1, epoch=0), 0, 5000)
    plan = Plan(id=PlanId("mine"), base_version=loop.snapshot().version, steps=(step,))
    assert isinstance(loop.execute(plan), VerifiedPlan)
    assert loop.snapshot().role_state.held == {ProcessorId("p1"): ((GROUP, X),)}
