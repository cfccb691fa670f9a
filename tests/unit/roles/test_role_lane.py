"""Roles in the loop and the simulated world: lanes, epochs, crashes, and no controller at all."""

from __future__ import annotations

from builders import a_host, a_step, a_vm
from equipoise.control import Loop, Start
from equipoise.model.action import Migrate, StartRole
from equipoise.model.event import (
    ActionFailed,
    ActionFinished,
    ActionStarted,
    HostFailed,
    PlanAccepted,
    PlanEnded,
    PlanRefused,
    ReignBegan,
)
from equipoise.model.host import HostWish
from equipoise.model.plan import Plan
from equipoise.model.quantity import HostId, PlanId, ProcessorId, RoleId, TeamId, VmId
from equipoise.model.roles.layout import Role, RoleLayout, RolePreference
from equipoise.model.story.unrest import ControllerLost, HostRequested, RoleStartsFail
from equipoise.plan import VerifiedPlan
from equipoise.roles import Roles
from equipoise.sim.world import SimulatedWorld
from equipoise.store import MemoryJournal
from role_stories import a_story, played
from role_walks import FREE, GROUP, SLOTS, a_layout_of, a_team, an_inventory_for

X, Y = FREE
P1, P2 = HostId("p1"), HostId("p2")


def a_layout(**more: object) -> RoleLayout:
    wanted = (RolePreference(role=X, slots=SLOTS), RolePreference(role=Y, slots=SLOTS, count=2))
    return a_layout_of(a_team((), wanted)).but(**more)


def a_start(role: RoleId, host: HostId, epoch: int) -> StartRole:
    return StartRole(group=GROUP, role=role, host=host, epoch=epoch)


def test_the_world_refuses_what_an_earlier_controller_asks_for() -> None:
    world = SimulatedWorld(a_story(a_layout()))
    world.perform(Start(a_step("a", a_start(X, P1, epoch=2)), 1))
    world.perform(Start(a_step("b", a_start(Y, P2, epoch=1)), 1))
    first = world.next_event(100_000)
    assert isinstance(first, ActionFailed)
    assert first.step == "b"
    assert first.reason == "refused: epoch 1 is over, 2 reigns"
    second = world.next_event(100_000)
    assert isinstance(second, ActionFinished)
    assert world.truth().duties.held == {ProcessorId("p1"): ((GROUP, X),)}


def test_every_action_carries_the_epoch_of_who_reigns() -> None:
    lost = ControllerLost(at_ms=100_000, for_ms=5000)
    fails = HostFailed(at_ms=200_000, host=P1)
    _, journal = played(a_story(a_layout(), lost, fails))
    epochs, reigns = [], 0
    for event in journal.events():
        if isinstance(event, ReignBegan):
            reigns = event.epoch
        if isinstance(event, ActionStarted) and isinstance(event.step.action, StartRole):
            assert event.step.action.epoch == reigns
            epochs.append(reigns)
    assert set(epochs) == {1, 2}


def test_without_a_controller_roles_run_on_and_single_ones_stop_after_a_while() -> None:
    lost = ControllerLost(at_ms=100_000, for_ms=200_000)
    held: dict[str, object] = {}
    for name, layout in (("for ever", a_layout()), ("a minute", a_layout(hold_s=60))):
        world = SimulatedWorld(a_story(layout, lost))
        Loop(world, MemoryJournal(), deciders=[Roles()]).run(99_000)
        before = world.truth().duties.held
        while world.next_event(250_000) is not None:
            pass
        after = world.truth().duties.held
        held[name] = {p: set(before[p]) - set(after.get(p, ())) for p in before}
    assert held["for ever"] == {ProcessorId("p1"): set(), ProcessorId("p2"): set()}
    assert held["a minute"] == {ProcessorId("p1"): {(GROUP, X)}, ProcessorId("p2"): set()}


def test_the_next_controller_gives_them_back() -> None:
    lost = ControllerLost(at_ms=100_000, for_ms=200_000)
    play, _ = played(a_story(a_layout(hold_s=60), lost))
    assert (GROUP, X) in play.snapshot().duties.held[ProcessorId("p1")]


def test_roles_do_not_wait_for_a_long_plan_of_others() -> None:
    layout = a_layout()
    cluster = an_inventory_for(layout)
    cluster = cluster.but(hosts=(*cluster.hosts, a_host("far", cores=64)), vms=(a_vm("v1", "p3"),))
    move = Migrate(vm=VmId("v1"), source=HostId("p3"), target=HostId("far"))
    plan = Plan(id=PlanId("slow"), steps=(a_step("move", move, 0, 300_000),))
    fails = HostFailed(at_ms=60_000, host=P1)
    _, journal = played(a_story(layout, fails, cluster=cluster, plan=plan))
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


def test_a_loop_that_crashes_with_several_plans_open_goes_on_with_all_of_them() -> None:
    """Each role takes a minute to start, so that failures at two times leave two plans open."""
    layout = a_layout_of(
        a_team((), (RolePreference(role=X, slots=SLOTS), RolePreference(role=Y, slots=SLOTS[1:]))),
        roles=[Role(id=r, start_ms=60_000) for r in FREE],
    )
    told = (HostFailed(at_ms=100_000, host=P1), HostFailed(at_ms=110_000, host=P2))
    world, journal = SimulatedWorld(a_story(layout, *told)), MemoryJournal()
    Loop(world, journal, deciders=[Roles()]).run(120_000)
    opened = {e.plan.id for e in journal.events() if isinstance(e, PlanAccepted)}
    closed = {e.plan for e in journal.events() if isinstance(e, PlanEnded)}
    assert len(opened - closed) == 2
    again = Loop(world, journal, deciders=[Roles()])
    again.run(400_000)
    closed = {e.plan for e in journal.events() if isinstance(e, PlanEnded)}
    opened = {e.plan.id for e in journal.events() if isinstance(e, PlanAccepted)}
    assert opened == closed
    held = again.snapshot().duties.held
    assert sum((GROUP, X) in some for some in held.values()) == 1
    assert held == world.truth().duties.held


def test_a_host_that_somebody_wants_in_maintenance_is_emptied_of_roles_and_then_switched() -> None:
    wish = HostRequested(at_ms=60_000, host=P1, wish=HostWish.MAINTENANCE)
    story = a_story(a_layout(), wish, deciders=("balance", "roles"), pass_s=60)
    play, _ = played(story)
    snapshot = play.snapshot()
    assert snapshot.hosts[P1].state == "maintenance"
    assert not snapshot.duties.held.get(ProcessorId("p1"))
    assert sum((GROUP, X) in some for some in snapshot.duties.held.values()) == 1


def test_a_role_waits_for_its_vm_to_arrive_without_being_refused() -> None:
    layout = a_layout_of(a_team((), (RolePreference(role=X, slots=SLOTS[:1]),), vms=True))
    cluster = an_inventory_for(layout)
    cluster = cluster.but(hosts=(*cluster.hosts, a_host("far", cores=64)))
    move = Migrate(vm=VmId("p1"), source=HostId("floor"), target=HostId("far"))
    plan = Plan(id=PlanId("slow"), steps=(a_step("move", move, 0, 90_000),))
    _, journal = played(a_story(layout, cluster=cluster, plan=plan))
    kinds = [type(event) for event in journal.events()]
    assert PlanRefused not in kinds
    (start_ms,) = (
        e.at_ms
        for e in journal.events()
        if isinstance(e, ActionStarted) and isinstance(e.step.action, StartRole)
    )
    assert start_ms == 90_000


def test_a_start_that_hangs_is_given_up_and_holds_up_nobody_meanwhile() -> None:
    other = a_team((), (RolePreference(role=Y, slots=SLOTS),)).but(
        id=TeamId("h"), hosts=(HostId("q1"), HostId("q2"))
    )
    mine = a_team((), (RolePreference(role=X, slots=SLOTS),), attempts_max=1, isolation_s=3600)
    told = (
        RoleStartsFail(at_ms=5000, processor=ProcessorId("p5"), hang=True),
        HostFailed(at_ms=10_000, host=P1),
        HostFailed(at_ms=20_000, host=HostId("q1")),
    )
    play, journal = played(a_story(a_layout_of(mine, other), *told))
    held = play.snapshot().duties.held
    assert (GROUP, X) in held[ProcessorId("p2")], "it is started elsewhere in the end"
    (given_up,) = (e for e in journal.events() if isinstance(e, ActionFailed))
    assert (given_up.at_ms, given_up.reason) == (70_000, "cancelled")
    begun = [e.at_ms for e in journal.events() if isinstance(e, ActionStarted)]
    assert begun == [0, 0, 10_000, 20_000, 70_000]


def test_a_plan_of_roles_that_somebody_made_is_carried_out_to_its_end() -> None:
    world = SimulatedWorld(a_story(a_layout()))
    loop = Loop(world, MemoryJournal())
    step = a_step("a", a_start(X, P1, epoch=0), 0, 5000)
    plan = Plan(id=PlanId("mine"), base_version=loop.snapshot().version, steps=(step,))
    assert isinstance(loop.carry_out(plan), VerifiedPlan)
    assert loop.snapshot().duties.held == {ProcessorId("p1"): ((GROUP, X),)}
