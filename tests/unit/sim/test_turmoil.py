"""What comes by chance: as often as the rates say, and the same for the same seed."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

import pytest

from builders import a_host, a_vm, an_inventory
from equipoise.control.ports import Start
from equipoise.model.action import Action, Boot, Migrate
from equipoise.model.event import (
    ActionFailed,
    Event,
    HostFailed,
    HostJoined,
    HostLeft,
    HostRecovered,
    VmArrived,
    VmCrashed,
    VmLeft,
)
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from equipoise.model.quantity import HostId, StepId, VmId
from equipoise.model.story.fleet import Fleet, HostFleet, VmFleet
from equipoise.model.story.fleet import Start as Beginning
from equipoise.model.story.load import Constant, Load, Spread
from equipoise.model.story.physics import MigrationPhysics, Physics, SwitchPhysics
from equipoise.model.story.scenario import Measuring, Scenario
from equipoise.model.story.unrest import (
    Crashes,
    Gaps,
    Happening,
    HostChurn,
    Outages,
    Slowness,
    Unrest,
    VmChurn,
)
from equipoise.sim.world import SimulatedWorld

DAY_MS = 24 * 3600 * 1000
SIGMAS = 5
IDLE = Load(cpu_mhz=(Constant(level=0),))


def a_story(unrest: Unrest, hosts: int = 2, vms: int = 0, **fields: Any) -> Scenario:
    guests = VmFleet(count=vms, like=a_vm("v"), load="idle", start=Beginning(hosts=("h",)))
    given: dict[str, Any] = {
        "seed": 1,
        "cluster": an_inventory(a_host("spare", state=HostState.STANDBY)),
        "fleet": Fleet(
            hosts=(HostFleet(count=hosts, like=a_host("h")),),
            vms=(guests, VmFleet(count=0, like=a_vm("new"), load="idle")),
        ),
        "loads": {"idle": IDLE},
    }
    return Scenario(
        name="unrest",
        duration_s=10**9,
        measuring=Measuring(sample_s=10**9),
        unrest=unrest,
        **given | fields,
    )


def events(story: Scenario, days: float) -> list[Event]:
    world, found = SimulatedWorld(story), []
    while (event := world.next_event(round(days * DAY_MS))) is not None:
        found.append(event)
    return found


def times(told: list[Event], kind: type[Event]) -> list[int]:
    return [one.at_ms for one in told if isinstance(one, kind)]


def about(expected: float) -> Any:
    return pytest.approx(expected, abs=SIGMAS * sqrt(expected))


def test_hosts_crash_as_often_as_they_should_and_come_back() -> None:
    outages = Outages(per_host_day=0.5, back_after_s=60)
    told = events(a_story(Unrest(host_crashes=outages), hosts=3), 1000)
    assert len(times(told, HostFailed)) == about(0.5 * 3 * 1000)
    back: dict[str, int] = {}
    for event in told:
        if isinstance(event, HostFailed):
            assert event.host not in back, "who is dead does not die"
            assert event.host != "spare", "who is off does not crash"
            back[event.host] = event.at_ms + 60_000
        else:
            assert isinstance(event, HostRecovered)
            assert back.pop(event.host) == event.at_ms


def test_crashes_hit_everybody_alike() -> None:
    outages = Outages(per_host_day=1, back_after_s=1)
    told = events(a_story(Unrest(host_crashes=outages), hosts=4), 400)
    for number in range(1, 5):
        mine = [one for one in told if isinstance(one, HostFailed) and one.host == f"h-{number}"]
        assert len(mine) == about(400)


def test_long_outages_leave_fewer_hosts_to_crash() -> None:
    """A host is up half of its days, if it lives a day and is dead for a day."""
    outages = Outages(per_host_day=1, back_after_s=24 * 3600)
    told = events(a_story(Unrest(host_crashes=outages), hosts=20), 200)
    assert len(times(told, HostFailed)) == about(0.5 * 20 * 200)


def test_vms_that_are_started_again_at_once_crash_as_often_as_they_should() -> None:
    """Two VMs that are hardly ever down: 48 crashes a day."""
    unrest = Unrest(vm_crashes=Crashes(per_vm_day=24))
    world, crashes = SimulatedWorld(a_story(unrest, hosts=1, vms=2)), 0
    while (event := world.next_event(20 * DAY_MS)) is not None:
        if isinstance(event, VmCrashed):
            crashes += 1
            action = Boot(vm=event.vm, target=HostId("h-1"))
            world.perform(Start(Step(id=StepId(f"s{crashes}"), action=action, end_ms=1), 1))
    assert crashes == about(48 * 20)


def test_vms_crash_as_often_as_they_should() -> None:
    told = events(a_story(Unrest(vm_crashes=Crashes(per_vm_day=0.5)), hosts=1, vms=200), 1)
    expected = 200 * (1 - exp(-0.5))
    sigma = sqrt(expected * exp(-0.5))
    assert len(times(told, VmCrashed)) == pytest.approx(expected, abs=SIGMAS * sigma)
    assert len({one.vm for one in told if isinstance(one, VmCrashed)}) == len(told)


def test_when_nobody_is_left_nothing_happens_and_later_it_goes_on() -> None:
    outages = Outages(per_host_day=24, back_after_s=7200)
    told = events(a_story(Unrest(host_crashes=outages), hosts=1), 100)
    # Alive for an hour on average, then dead for two.
    sigma = sqrt(100 * 24 / 3**3)
    assert len(times(told, HostFailed)) == pytest.approx(800, abs=SIGMAS * sigma)


def test_vms_arrive_as_often_as_they_should_and_leave_after_their_stay() -> None:
    churn = VmChurn(fleet="new", per_hour=10, stay_s=Spread(low=600, high=1200))
    told = events(a_story(Unrest(vms=(churn,))), 3)
    came = {one.vm.id: one.at_ms for one in told if isinstance(one, VmArrived)}
    assert len(came) == about(10 * 24 * 3)
    assert list(came)[:3] == ["new-1", "new-2", "new-3"]
    left = {one.vm: one.at_ms for one in told if isinstance(one, VmLeft)}
    assert len(left) > len(came) - 20
    assert all(600_000 <= left[vm] - came[VmId(vm)] <= 1_200_000 for vm in left)


def test_hosts_join_as_often_as_they_should_and_some_leave() -> None:
    for stay_s in (None, 3600):
        churn = HostChurn(fleet="h", per_day=10, stay_s=stay_s)
        told = events(a_story(Unrest(hosts=(churn,)), hosts=2), 30)
        came = {one.host.id: one.at_ms for one in told if isinstance(one, HostJoined)}
        left = {one.host: one.at_ms for one in told if isinstance(one, HostLeft)}
        assert len(came) == about(300)
        assert next(iter(came)) == "h-3"
        assert all(left[host] == came[HostId(host)] + 3_600_000 for host in left)
        assert bool(left) == (stay_s is not None)


def test_chance_is_the_same_for_the_same_seed_only() -> None:
    unrest = Unrest(
        host_crashes=Outages(per_host_day=2, back_after_s=Spread(mean=600, sd=300)),
        vm_crashes=Crashes(per_vm_day=1),
        vms=(VmChurn(fleet="new", per_hour=2),),
        hosts=(HostChurn(fleet="h", per_day=3, stay_s=7200),),
    )
    first, again, other = (events(a_story(unrest, 4, 20, seed=seed), 3) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_one_chance_does_not_depend_on_another() -> None:
    outages = Outages(per_host_day=2)
    alone = events(a_story(Unrest(host_crashes=outages)), 20)
    churn = (VmChurn(fleet="new", per_hour=0.5),)
    both = events(a_story(Unrest(host_crashes=outages, vms=churn)), 20)
    assert times(alone, HostFailed) == times(both, HostFailed)


def test_two_rates_of_one_fleet_are_drawn_apart() -> None:
    churn = VmChurn(fleet="new", per_hour=6)
    told = events(a_story(Unrest(vms=(churn, churn.but(stay_s=60)))), 2)
    moments = times(told, VmArrived)
    assert len(moments) == about(2 * 6 * 48)
    assert len(set(moments)) > 0.9 * len(moments), "two by two they would be no chance at all"


@pytest.mark.parametrize("rate", [0.0, 1e-9, 1e-305])
def test_a_rate_of_as_good_as_nothing_is_nothing(rate: float) -> None:
    unrest = Unrest(
        host_crashes=Outages(per_host_day=rate),
        vm_crashes=Crashes(per_vm_day=rate),
        monitoring_gaps=Gaps(per_day=rate),
        hosts=(HostChurn(fleet="h", per_day=rate),),
        vms=(VmChurn(fleet="new", per_hour=rate),),
    )
    assert events(a_story(unrest, 2, 2), 1) == []


def test_a_host_that_was_foretold_to_come_back_earlier_is_left_alone() -> None:
    outages = Outages(per_host_day=5, back_after_s=50_000)
    story = a_story(Unrest(host_crashes=outages), hosts=1)
    (first, *_) = times(events(story, 2), HostFailed)
    told: tuple[Happening, ...] = (HostRecovered(at_ms=first + 1000, host=HostId("h-1")),)
    found = events(story.but(happenings=told), 1)
    assert [type(one) for one in found][:2] == [HostFailed, HostRecovered]
    state: dict[bool, list[int]] = {True: [], False: []}
    for event in found:
        state[isinstance(event, HostFailed)].append(event.at_ms)
    for at_ms in state[True][1:]:
        later = [one for one in state[False] if one > at_ms]
        assert not later or later[0] - at_ms == 50_000_000, "each outage has its own end"


def failures(story: Scenario, vm: str, count: int) -> int:
    """How many of so many attempts fail, each in a world of its own."""
    failed = 0
    for number in range(count):
        world = SimulatedWorld(story)
        seen = world.observe().vms[VmId(vm)]
        there = HostId("h-2")
        action: Action = Boot(vm=seen.id, target=there)
        if seen.host is not None:
            action = Migrate(vm=seen.id, source=seen.host, target=there)
        world.perform(Start(Step(id=StepId(f"s{number}"), action=action, end_ms=1000), 1))
        failed += isinstance(world.next_event(10**12), ActionFailed)
    return failed


def test_as_many_fail_as_should() -> None:
    story = a_story(
        Unrest(slow_migrations=Slowness(pct=50)),
        cluster=an_inventory(a_host("spare"), vms=[a_vm("moved", "spare"), a_vm("started")]),
        physics=Physics(
            migration=MigrationPhysics(failed_pct=20), switching=SwitchPhysics(boot_failed_pct=40)
        ),
    )
    for vm, part in (("moved", 0.2), ("started", 0.4)):
        expected, sigma = 300 * part, sqrt(300 * part * (1 - part))
        assert failures(story, vm, 300) == pytest.approx(expected, abs=SIGMAS * sigma)
