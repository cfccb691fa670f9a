"""What targets would do, as plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from equipoise.fuzz.schedulers import Unsupported
from equipoise.fuzz.targets.moves import (
    acts_of,
    ends_overfull,
    in_some_order,
    is_overfull,
    steps_of,
)
from equipoise.fuzz.trial import Trial
from equipoise.model.action import EnterMaintenance, LeaveMaintenance
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from move_trials import asked, guest, migrate, node


def running(hosts: Any, vms: Any) -> Trial:
    return asked("Running", hosts, vms, v=vms[0].id)


def times(steps: tuple[Step, ...]) -> list[tuple[int, int]]:
    return [(step.start_ms, step.end_ms) for step in steps]


def test_one_action_comes_after_the_other_unless_they_are_of_one_round() -> None:
    told = [migrate("v", "g", "h"), {"do": "open", "host": "k"}, {"do": "close", "host": "g"}]
    steps = steps_of(acts_of(told))
    assert times(steps) == [(0, 1000), (1000, 2000), (2000, 3000)]
    assert isinstance(steps[1].action, LeaveMaintenance)
    assert isinstance(steps[2].action, EnterMaintenance)
    told = [migrate("v", "g", "h", round=0), migrate("w", "g", "k", round=0)]
    assert times(steps_of(acts_of(told))) == [(0, 1000), (0, 1000)]


def test_an_action_that_nobody_knows_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="resize"):
        acts_of([{"do": "resize", "vm": "v"}])


def test_moves_are_made_in_another_order_if_only_that_one_has_room() -> None:
    vms = [guest("a", "g"), guest("b", "h"), guest("c", "h")]
    trial = running([node("g"), node("h"), node("k")], vms)
    acts = acts_of([migrate("a", "g", "h"), migrate("b", "h", "k")])
    assert replace(trial, steps=steps_of(acts)).objections
    steps = in_some_order(trial, acts)
    assert [step.footprint.vm for step in steps] == ["b", "a"]
    assert not replace(trial, steps=steps).objections


def test_the_moves_of_one_vm_keep_their_order() -> None:
    vms = [guest("a", "g"), guest("b", "h"), guest("c", "h")]
    trial = running([node("g"), node("h"), node("k")], vms)
    told = [migrate("b", "h", "k"), migrate("b", "k", "g"), migrate("a", "g", "h")]
    steps = in_some_order(trial, acts_of(told))
    assert [step.footprint.vm for step in steps] == ["b", "b", "a"]


def test_two_that_change_places_where_nobody_has_room_are_not_judged() -> None:
    vms = [guest("a", "g"), guest("b", "g"), guest("c", "h"), guest("d", "h")]
    trial = running([node("g"), node("h")], vms)
    acts = acts_of([migrate("a", "g", "h"), migrate("c", "h", "g")])
    with pytest.raises(Unsupported, match="on their way"):
        in_some_order(trial, acts)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (migrate("a", "g", "h"), "capacity"),
        (migrate("a", "h", "k"), "vm_life"),
        (migrate("a", "g", "off"), "host_on"),
        (migrate("a", "g", "nowhere"), "known"),
        (migrate("nobody", "g", "k"), "known"),
    ],
)
def test_what_no_order_makes_right_is_judged_as_it_was_told(told: dict[str, Any], why: str) -> None:
    vms = [guest("a", "g"), guest("c", "h"), guest("d", "h")]
    hosts = [node("g"), node("h"), node("k"), node("off", state=HostState.STANDBY)]
    trial = running(hosts, vms)
    steps = in_some_order(trial, acts_of([told]))
    assert {one.constraint for one in replace(trial, steps=steps).objections} == {why}


def test_only_whoever_comes_is_blamed_for_a_host_that_is_too_full() -> None:
    vms = [guest("a", "g"), guest("c", "h"), guest("d", "h"), guest("e", "h")]
    trial = running([node("g"), node("h"), node("k")], vms)
    assert is_overfull(trial.initial)
    assert not ends_overfull(trial.initial, acts_of([migrate("a", "g", "k")]))
    assert ends_overfull(trial.initial, acts_of([migrate("a", "g", "h")]))
    assert not is_overfull(running([node("g"), node("h")], vms[:3]).initial)
