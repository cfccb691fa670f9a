"""What targets would do, as plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from balancer_trials import a_balancer_trial, guest, migrate, node
from equipoise.adapters.targets.balancer import (
    ends_overcommitted,
    executable_order,
    is_overcommitted,
    read_actions,
    steps_in_rounds,
)
from equipoise.fuzz.trial import Trial
from equipoise.model.action import EnterMaintenance, LeaveMaintenance
from equipoise.model.host import HostState
from equipoise.model.plan import Step
from unsupported_trials import unsupported


def running(hosts: Any, vms: Any) -> Trial:
    return a_balancer_trial("Running", hosts, vms, v=vms[0].id)


def times(steps: tuple[Step, ...]) -> list[tuple[int, int]]:
    return [(step.start_ms, step.end_ms) for step in steps]


def test_actions_of_different_rounds_follow_each_other() -> None:
    told = [migrate("v", "g", "h"), {"do": "open", "host": "k"}, {"do": "close", "host": "g"}]
    steps = steps_in_rounds(read_actions(told))
    assert times(steps) == [(0, 1000), (1000, 2000), (2000, 3000)]
    assert isinstance(steps[1].action, LeaveMaintenance)
    assert isinstance(steps[2].action, EnterMaintenance)
    told = [migrate("v", "g", "h", round=0), migrate("w", "g", "k", round=0)]
    assert times(steps_in_rounds(read_actions(told))) == [(0, 1000), (0, 1000)]


def test_an_unknown_action_raises() -> None:
    with pytest.raises(ValueError, match="resize"):
        read_actions([{"do": "resize", "vm": "v"}])


def test_moves_are_reordered_if_only_that_order_has_capacity() -> None:
    vms = [guest("a", "g"), guest("b", "h"), guest("c", "h")]
    trial = running([node("g"), node("h"), node("k")], vms)
    acts = read_actions([migrate("a", "g", "h"), migrate("b", "h", "k")])
    assert replace(trial, steps=steps_in_rounds(acts)).objections
    steps = executable_order(trial, acts)
    assert [step.footprint.vm for step in steps] == ["b", "a"]
    assert not replace(trial, steps=steps).objections


def test_the_moves_of_one_vm_keep_their_order() -> None:
    vms = [guest("a", "g"), guest("b", "h"), guest("c", "h")]
    trial = running([node("g"), node("h"), node("k")], vms)
    told = [migrate("b", "h", "k"), migrate("b", "k", "g"), migrate("a", "g", "h")]
    steps = executable_order(trial, read_actions(told))
    assert [step.footprint.vm for step in steps] == ["b", "b", "a"]


def test_a_swap_without_free_capacity_is_unsupported() -> None:
    vms = [guest("a", "g"), guest("b", "g"), guest("c", "h"), guest("d", "h")]
    trial = running([node("g"), node("h")], vms)
    acts = read_actions([migrate("a", "g", "h"), migrate("c", "h", "g")])
    with unsupported("not-promised"):
        executable_order(trial, acts)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (migrate("a", "g", "h"), "capacity"),
        (migrate("a", "h", "k"), "vm_life"),
        (migrate("a", "g", "off"), "host_on"),
        (migrate("a", "g", "nowhere"), "known"),
        (migrate("unknown", "g", "k"), "known"),
    ],
)
def test_a_plan_without_a_valid_order_is_judged_as_stated(told: dict[str, Any], why: str) -> None:
    vms = [guest("a", "g"), guest("c", "h"), guest("d", "h")]
    hosts = [node("g"), node("h"), node("k"), node("off", state=HostState.STANDBY)]
    trial = running(hosts, vms)
    steps = executable_order(trial, read_actions([told]))
    assert {objection.constraint for objection in replace(trial, steps=steps).objections} == {why}


def test_only_targets_of_moves_count_as_overcommitted() -> None:
    vms = [guest("a", "g"), guest("c", "h"), guest("d", "h"), guest("e", "h")]
    trial = running([node("g"), node("h"), node("k")], vms)
    assert is_overcommitted(trial.initial)
    assert not ends_overcommitted(trial.initial, read_actions([migrate("a", "g", "k")]))
    assert ends_overcommitted(trial.initial, read_actions([migrate("a", "g", "h")]))
    assert not is_overcommitted(running([node("g"), node("h")], vms[:3]).initial)
