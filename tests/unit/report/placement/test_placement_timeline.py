"""The course of a plan: who is where in which period, by the meaning of each action."""

from __future__ import annotations

from random import Random

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.model.action import (
    Boot,
    Forge,
    Kill,
    Migrate,
    PowerOn,
    Reinstantiate,
    Resume,
    Shutdown,
    Suspend,
    VmAction,
)
from equipoise.model.host import HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import VmState
from equipoise.report.placement import PlacementTimeline, placement_timeline
from equipoise.report.placement.timeline import period_text, presence_period_text
from equipoise.spec.evaluate.view import StateView
from equipoise.spec.moments import MomentPhase, moments
from random_trials import trials

A, B, C = (HostId(name) for name in "abc")
V = VmId("v")


def lines(course: PlacementTimeline) -> list[str]:
    return [presence_period_text(course, stay) for stay in course.stays]


def test_a_vm_that_migrates_is_on_both_hosts_and_runs_where_it_was() -> None:
    initial = a_cluster(a_host("a"), a_host("b"), vms=[a_vm("v", "a")])
    course = placement_timeline(
        initial, [a_step("s", Migrate(vm=V, source=A, target=B), 1000, 3000)]
    )
    assert course.instants_ms == (1000, 3000)
    assert lines(course) == [
        "v runs on a, until 1 s",
        "v runs on a, from 1 s until 3 s: migrate v from a to b",
        "v has capacity on b, from 1 s until 3 s: migrate v from a to b",
        "v runs on b, from 3 s",
    ]


@pytest.mark.parametrize(
    ("state", "action", "meanwhile", "then"),
    [
        ("init", Forge(vm=V), [("is not created", "no host")], ("is ready", "no host")),
        ("ready", Boot(vm=V, target=A), [("is ready", "no host"), ("has capacity", "a")],
         ("runs", "a")),
        ("running", Shutdown(vm=V, source=A), [("runs", "a")], ("is ready", "no host")),
        ("running", Suspend(vm=V, source=A), [("runs", "a")], ("sleeps", "a")),
        ("running", Kill(vm=V), [("runs", "a")], ("has ended", "no host")),
        ("running", Reinstantiate(vm=V, source=A, target=B), [("runs", "a"), ("has capacity", "b")],
         ("runs", "b")),
        ("sleeping", Resume(vm=V, source=A, target=A), [("sleeps", "a")], ("runs", "a")),
        ("sleeping", Resume(vm=V, source=A, target=B), [("sleeps", "a"), ("has capacity", "b")],
         ("runs", "b")),
    ],
)  # fmt: skip
def test_each_action_has_its_effect_when_it_ends(
    state: str, action: VmAction, meanwhile: list[tuple[str, str]], then: tuple[str, str]
) -> None:
    kind = VmState(state)
    vm = a_vm("v", "a" if kind.has_host else None, state=kind)
    course = placement_timeline(
        a_cluster(a_host("a"), a_host("b"), vms=[vm]), [a_step("s", action)]
    )
    during = [line for line in lines(course) if "from 0 s until 1 s" in line]
    assert [line.split(", ")[0] for line in during] == [f"v {is_} on {at}" for is_, at in meanwhile]
    assert lines(course)[-1] == f"v {then[0]} on {then[1]}, from 1 s"


def test_without_steps_there_is_one_period() -> None:
    course = placement_timeline(a_cluster(a_host("a"), vms=[a_vm("v", "a")]), [])
    assert lines(course) == ["v runs on a, all the time"]
    assert course.period_at(None) == course.period_at(0) == 0


def test_a_host_is_switched_when_the_action_ends() -> None:
    initial = a_cluster(a_host("a", state=HostState.STANDBY))
    course = placement_timeline(initial, [a_step("s", PowerOn(host=A), 0, 2000)])
    host_state_periods = list(course.host_state_periods(A))
    assert [(period.state, period.step is not None) for period in host_state_periods] == [
        (HostState.STANDBY, False),
        (HostState.STANDBY, True),
        (HostState.ON, False),
    ]
    assert [period_text(course, period.first, period.last) for period in host_state_periods] == [
        "until 0 s",
        "from 0 s until 2 s",
        "from 2 s",
    ]


def test_a_vm_that_is_called_as_its_host_is_not_taken_for_it() -> None:
    same = HostId("a")
    initial = a_cluster(a_host("a"), a_host("b"), vms=[a_vm("a", "a")])
    course = placement_timeline(
        initial, [a_step("s", Migrate(vm=VmId("a"), source=same, target=B))]
    )
    assert [period.step for period in course.host_state_periods(same)] == [None]
    assert lines(course)[-1] == "a runs on b, from 1 s"


def test_an_instant_begins_the_period_after_it() -> None:
    initial = a_cluster(a_host("a"), a_host("b"), vms=[a_vm("v", "a")])
    course = placement_timeline(
        initial, [a_step("s", Migrate(vm=V, source=A, target=B), 500, 1500)]
    )
    assert [course.period_at(at_ms) for at_ms in (None, 0, 500, 1499, 1500, 9999)] == [
        0, 0, 1, 1, 2, 2,
    ]  # fmt: skip


def test_what_is_shown_is_what_the_specification_sees() -> None:
    rng = Random(5)
    for _, trial in zip(range(60), trials("Spread", rng), strict=False):
        course = placement_timeline(trial.initial, trial.steps)
        views = [
            StateView.of(moment.state.freeze())
            for moment in moments(trial.initial, trial.steps)
            if moment.phase in {MomentPhase.INITIAL, MomentPhase.STARTS}
        ]
        assert len(views) == len(course.states)
        for place, view in enumerate(views):
            here = [stay.presence for stay in course.stays if stay.first <= place <= stay.last]
            for host in trial.initial.hosts:
                present = [presence for presence in here if presence.host == host]
                assert {presence.vm for presence in present} == view.hosted(host)
                runs = {
                    presence.vm
                    for presence in present
                    if presence.state == "running" and not presence.arriving
                }
                assert runs == view.running(host)
            assert {presence.vm for presence in here} == set(trial.initial.vms)
