"""What the gate and the executor make of role actions."""

from __future__ import annotations

from dataclasses import replace

from builders import a_plan, a_step
from equipoise.model.action import PowerOff, StartRole, StopRole
from equipoise.model.change import transition
from equipoise.model.event import ActionStarted, HostFailed, RolesFound
from equipoise.model.quantity import HostId, ProcessorId, RoleId, TeamId
from equipoise.model.roles.layout import RolePreference
from equipoise.model.snapshot import Snapshot
from equipoise.plan import Refusal, VerifiedPlan, verify
from equipoise.plan.ledger import Ledger
from equipoise.plan.objections import objections
from role_walks import GROUP, SLOTS, a_layout_of, a_team, an_inventory_for

X, Y = RoleId("x"), RoleId("y")
P1, P2 = HostId("p1"), HostId("p2")


def a_state(*held: tuple[str, RoleId]) -> Snapshot:
    wanted = (RolePreference(role=X, slots=SLOTS), RolePreference(role=Y, slots=SLOTS, count=2))
    state = Snapshot.of(an_inventory_for(a_layout_of(a_team((), wanted))))
    events = [
        RolesFound(at_ms=0, processor=ProcessorId(p), held=((GROUP, role),)) for p, role in held
    ]
    return replace(transition.replay(state, events), version=0)


def start(role: RoleId, host: HostId, **more: object) -> StartRole:
    return StartRole(group=GROUP, role=role, host=host, **more)  # type: ignore[arg-type]


def stop(role: RoleId, host: HostId) -> StopRole:
    return StopRole(group=GROUP, role=role, host=host)


def said(state: Snapshot, action: StartRole | StopRole | PowerOff) -> list[str]:
    return [one.detail for one in objections(Ledger(state), action)]


def refused(state: Snapshot, *steps: object) -> list[str]:
    verdict = verify(state, a_plan(*steps))  # type: ignore[arg-type]
    assert isinstance(verdict, Refusal)
    return [one.constraint for one in verdict.violations]


def test_a_single_role_is_not_started_while_somebody_holds_it() -> None:
    assert said(a_state(("p1", X)), start(X, P2)) == ["p1 still holds x"]
    assert said(a_state(("p1", Y)), start(Y, P2)) == []


def test_a_single_role_is_not_started_while_somebody_starts_it() -> None:
    state = transition.apply(
        a_state(), ActionStarted(at_ms=0, step=a_step("s", start(X, P1)), attempt=1)
    )
    assert said(state, start(X, P2)) == ["x is being started on p1"]


def test_the_gate_lets_it_move_only_in_the_right_order() -> None:
    state = a_state(("p1", X))
    right = (a_step("a", stop(X, P1)), a_step("b", start(X, P2), 1000, 2000, "a"))
    assert isinstance(verify(state, a_plan(*right)), VerifiedPlan)
    at_once = (a_step("a", stop(X, P1)), a_step("b", start(X, P2)))
    assert refused(state, *at_once) == ["single_holder"]
    before = (a_step("b", start(X, P2)), a_step("a", stop(X, P1), 1000, 2000, "b"))
    assert refused(state, *before) == ["single_holder"]


def test_what_is_not_there_is_neither_started_nor_stopped() -> None:
    state = a_state(("p1", X))
    assert said(state, start(X, HostId("p9"))) == ["there is no host p9"]
    assert said(state, start(RoleId("z"), P2)) == ["there is no role z"]
    assert said(state, stop(X, P2)) == ["p2 does not run x"]
    assert "p1 already runs x" in said(state, start(X, P1))
    assert said(state, StartRole(group=GROUP, role=X)) == [
        "a role runs on a host or in a VM: one of the two is given"
    ]
    other = StartRole(group=TeamId("other"), role=X, host=P2)
    assert said(state, other) == ["there is no group other"]


def test_a_processor_that_is_down_starts_nothing_and_has_lost_what_it_ran() -> None:
    state = transition.apply(a_state(("p1", X)), HostFailed(at_ms=1, host=P1))
    assert said(state, start(Y, P1)) == ["p1 is not up"]
    assert said(state, start(X, P2)) == []


def test_one_thing_at_a_time_with_one_role_on_one_processor() -> None:
    state = transition.apply(
        a_state(("p1", X)), ActionStarted(at_ms=0, step=a_step("s", stop(X, P1)), attempt=1)
    )
    assert said(state, stop(X, P1)) == ["x on p1 is still part of step s"]
    assert said(state, start(Y, P1)) == []


def test_a_host_that_runs_roles_is_not_switched_off() -> None:
    assert said(a_state(("p1", X)), PowerOff(host=P1)) == ["p1 still runs x of g"]
    busy = transition.apply(
        a_state(), ActionStarted(at_ms=0, step=a_step("off", PowerOff(host=P1)), attempt=1)
    )
    assert said(busy, start(X, P1)) == ["p1 is still part of step off"]
