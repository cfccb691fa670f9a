"""Role actions in the gate and in the preconditions of the executor."""

from __future__ import annotations

from dataclasses import replace

from builders import a_plan, a_step
from equipoise.capacity.ledger import CapacityLedger
from equipoise.model.action import PowerOff, StartRole, StopRole
from equipoise.model.event import ActionStarted, HostFailed, RolesFound
from equipoise.model.quantity import HostId, ProcessorId, RoleGroupId, RoleId
from equipoise.model.roles.layout import RolePreference
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.plan import Refusal, VerifiedPlan, verify
from equipoise.plan.preconditions import failed_preconditions
from role_harness import GROUP, SLOTS, a_layout_of, a_team, an_inventory_for

X, Y = RoleId("x"), RoleId("y")
P1, P2 = HostId("p1"), HostId("p2")


def a_state(*held: tuple[str, RoleId]) -> Snapshot:
    preferences = (
        RolePreference(role=X, slots=SLOTS),
        RolePreference(role=Y, slots=SLOTS, count=2),
    )
    state = Snapshot.of(an_inventory_for(a_layout_of(a_team((), preferences))))
    events = [
        RolesFound(at_ms=0, processor=ProcessorId(p), held=((GROUP, role),)) for p, role in held
    ]
    return replace(transition.replay(state, events), version=0)


def start(role: RoleId, host: HostId, **more: object) -> StartRole:
    return StartRole(group=GROUP, role=role, host=host, **more)  # type: ignore[arg-type]


def stop(role: RoleId, host: HostId) -> StopRole:
    return StopRole(group=GROUP, role=role, host=host)


def codes(state: Snapshot, action: StartRole | StopRole | PowerOff) -> list[str]:
    return [reason.code for reason in failed_preconditions(CapacityLedger(state), action)]


def violated(state: Snapshot, *steps: object) -> list[str]:
    verdict = verify(state, a_plan(*steps))  # type: ignore[arg-type]
    assert isinstance(verdict, Refusal)
    return [violation.constraint for violation in verdict.violations]


def test_a_single_role_does_not_start_while_it_has_a_holder() -> None:
    assert codes(a_state(("p1", X)), start(X, P2)) == ["role-held"]
    assert codes(a_state(("p1", Y)), start(Y, P2)) == []


def test_a_single_role_does_not_start_twice() -> None:
    state = transition.apply(
        a_state(), ActionStarted(at_ms=0, step=a_step("s", start(X, P1)), attempt=1)
    )
    assert codes(state, start(X, P2)) == ["role-held"]


def test_a_single_role_stops_before_it_starts_elsewhere() -> None:
    state = a_state(("p1", X))
    right = (a_step("a", stop(X, P1)), a_step("b", start(X, P2), 1000, 2000, "a"))
    assert isinstance(verify(state, a_plan(*right)), VerifiedPlan)
    at_once = (a_step("a", stop(X, P1)), a_step("b", start(X, P2)))
    assert violated(state, *at_once) == ["single_holder"]
    before = (a_step("b", start(X, P2)), a_step("a", stop(X, P1), 1000, 2000, "b"))
    assert violated(state, *before) == ["single_holder"]


def test_unknown_roles_hosts_and_groups_are_rejected() -> None:
    state = a_state(("p1", X))
    assert codes(state, start(X, HostId("p9"))) == ["object-not-found"]
    assert codes(state, start(RoleId("z"), P2)) == ["object-not-found"]
    assert codes(state, stop(X, P2)) == ["role-wrong-state"]
    assert "role-wrong-state" in codes(state, start(X, P1))
    assert codes(state, StartRole(group=GROUP, role=X)) == ["invalid-step"]
    other = StartRole(group=RoleGroupId("other"), role=X, host=P2)
    assert codes(state, other) == ["object-not-found"]


def test_a_failed_processor_starts_no_role_and_holds_none() -> None:
    state = transition.apply(a_state(("p1", X)), HostFailed(at_ms=1, host=P1))
    assert codes(state, start(Y, P1)) == ["processor-down"]
    assert codes(state, start(X, P2)) == []


def test_one_action_at_a_time_runs_on_a_role_of_a_processor() -> None:
    state = transition.apply(
        a_state(("p1", X)), ActionStarted(at_ms=0, step=a_step("s", stop(X, P1)), attempt=1)
    )
    assert codes(state, stop(X, P1)) == ["action-in-progress"]
    assert codes(state, start(Y, P1)) == []


def test_a_host_that_runs_roles_is_not_switched_off() -> None:
    assert codes(a_state(("p1", X)), PowerOff(host=P1)) == ["host-not-empty"]
    busy = transition.apply(
        a_state(), ActionStarted(at_ms=0, step=a_step("off", PowerOff(host=P1)), attempt=1)
    )
    assert codes(busy, start(X, P1)) == ["action-in-progress"]
