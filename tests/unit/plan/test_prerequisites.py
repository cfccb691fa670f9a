from __future__ import annotations

from builders import a_step
from equipoise.model.action import Action, Allocate, Kill, Migrate, PowerOff, PowerOn, Shutdown
from equipoise.model.quantity import HostId, ResourceName, StepId, VmId
from equipoise.plan.preconditions import prerequisites

H1, H2, V1, V2 = HostId("h1"), HostId("h2"), VmId("v1"), VmId("v2")
PLACEMENT = {V1: H1, V2: H2}


def waits(first: Action, second: Action, *, gap_ms: int = 0) -> bool:
    """Return whether the second action waits for the first, which ends before it starts."""
    # The later step comes first in the plan: the order of the list must not matter.
    later = a_step("b", second, 1000 + gap_ms, 2000 + gap_ms)
    earlier = a_step("a", first, 0, 1000)
    waiting = prerequisites([later, earlier], PLACEMENT)
    assert waiting[StepId("a")] == ()
    return waiting[StepId("b")] == ("a",)


def allocate(vm: VmId, amount: int) -> Allocate:
    return Allocate(vm=vm, resource=ResourceName("licences"), amount=amount)


AWAY = Migrate(vm=V1, source=H1, target=H2)


def test_steps_on_one_vm_keep_their_order() -> None:
    assert waits(allocate(V1, 1), allocate(V1, 2))
    assert not waits(allocate(V1, 1), allocate(V2, 2))


def test_a_step_that_takes_capacity_waits_for_steps_that_free_it() -> None:
    assert waits(Shutdown(vm=V2, source=H2), AWAY, gap_ms=50)
    assert not waits(Shutdown(vm=V2, source=H2), Migrate(vm=V1, source=H1, target=HostId("h3")))


def test_an_allocation_takes_capacity_and_a_kill_frees_it() -> None:
    assert waits(Shutdown(vm=V2, source=H2), allocate(V2, 2))
    other = VmId("v3")
    grow = a_step("b", allocate(V1, 2), 1000, 2000)
    for leaves in (Shutdown(vm=other, source=H1), Kill(vm=other), allocate(other, 0)):
        waiting = prerequisites([grow, a_step("a", leaves, 0, 1000)], {V1: H1, other: H1})
        assert waiting[StepId("b")] == ("a",)
        arrive = a_step("c", Migrate(vm=V2, source=H2, target=H1), 1000, 2000)
        waiting = prerequisites([arrive, a_step("a", leaves, 0, 1000)], {V2: H2, other: H1})
        assert waiting[StepId("c")] == ("a",)


def test_a_host_is_switched_after_earlier_actions_and_before_later_ones() -> None:
    assert waits(AWAY, PowerOff(host=H1))
    assert waits(PowerOn(host=H2), AWAY)
    assert not waits(PowerOn(host=HostId("h9")), AWAY)


def test_an_action_without_a_host_touches_the_host_of_its_vm() -> None:
    assert waits(allocate(V1, 1), PowerOff(host=H1))
    assert waits(PowerOff(host=H1), allocate(V1, 1))
    assert not waits(allocate(V2, 1), PowerOff(host=H1))


def test_overlapping_steps_do_not_wait_for_each_other() -> None:
    steps = [a_step("a", Shutdown(vm=V2, source=H2), 0, 1001), a_step("b", AWAY, 1000, 2000)]
    assert prerequisites(steps, PLACEMENT) == {"a": (), "b": ()}
