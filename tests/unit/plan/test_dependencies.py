from __future__ import annotations

from builders import a_step
from equipoise.model.action import Action, Allocate, Kill, Migrate, PowerOff, PowerOn, Shutdown
from equipoise.model.quantity import HostId, ResourceName, StepId, VmId
from equipoise.plan.dependencies import prerequisites

H1, H2, V1, V2 = HostId("h1"), HostId("h2"), VmId("v1"), VmId("v2")
PLACEMENT = {V1: H1, V2: H2}


def waits(first: Action, second: Action, *, gap_ms: int = 0) -> bool:
    """Whether the second action waits for the first, which ends so long before it starts."""
    # The later step stands first in the plan: its place there must not matter.
    later = a_step("b", second, 1000 + gap_ms, 2000 + gap_ms)
    earlier = a_step("a", first, 0, 1000)
    found = prerequisites([later, earlier], PLACEMENT)
    assert found[StepId("a")] == ()
    return found[StepId("b")] == ("a",)


def allocate(vm: VmId, amount: int) -> Allocate:
    return Allocate(vm=vm, resource=ResourceName("licences"), amount=amount)


AWAY = Migrate(vm=V1, source=H1, target=H2)


def test_steps_on_one_vm_keep_their_order() -> None:
    assert waits(allocate(V1, 1), allocate(V1, 2))
    assert not waits(allocate(V1, 1), allocate(V2, 2))


def test_who_takes_room_waits_for_those_who_free_it() -> None:
    assert waits(Shutdown(vm=V2, source=H2), AWAY, gap_ms=50)
    assert not waits(Shutdown(vm=V2, source=H2), Migrate(vm=V1, source=H1, target=HostId("h3")))


def test_growing_takes_room_and_a_kill_frees_it() -> None:
    assert waits(Shutdown(vm=V2, source=H2), allocate(V2, 2))
    other = VmId("v3")
    grow = a_step("b", allocate(V1, 2), 1000, 2000)
    for leaves in (Shutdown(vm=other, source=H1), Kill(vm=other), allocate(other, 0)):
        found = prerequisites([grow, a_step("a", leaves, 0, 1000)], {V1: H1, other: H1})
        assert found[StepId("b")] == ("a",)
        arrive = a_step("c", Migrate(vm=V2, source=H2, target=H1), 1000, 2000)
        found = prerequisites([arrive, a_step("a", leaves, 0, 1000)], {V2: H2, other: H1})
        assert found[StepId("c")] == ("a",)


def test_a_host_is_switched_after_what_touches_it_and_used_after_it_is_switched() -> None:
    assert waits(AWAY, PowerOff(host=H1))
    assert waits(PowerOn(host=H2), AWAY)
    assert not waits(PowerOn(host=HostId("h9")), AWAY)


def test_actions_that_name_no_host_happen_where_their_vm_is() -> None:
    assert waits(allocate(V1, 1), PowerOff(host=H1))
    assert waits(PowerOff(host=H1), allocate(V1, 1))
    assert not waits(allocate(V2, 1), PowerOff(host=H1))


def test_what_overlaps_does_not_wait() -> None:
    steps = [a_step("a", Shutdown(vm=V2, source=H2), 0, 1001), a_step("b", AWAY, 1000, 2000)]
    assert prerequisites(steps, PLACEMENT) == {"a": (), "b": ()}
