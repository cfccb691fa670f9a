"""Options as a person asks for them."""

from __future__ import annotations

import pytest

from equipoise.errors import InvalidInput
from equipoise.fuzz.generate import Generator, Options
from equipoise.fuzz.generate.asked import options_with
from equipoise.fuzz.generate.options import USUAL, Plans
from equipoise.model.vm import VmState
from equipoise.spec.library import own


def test_what_is_asked_for_is_changed_and_nothing_else() -> None:
    changes = ["actions=[1,2]", "vm_states.sleeping=9", "plans=any", "broken_at_first=true"]
    found = options_with(USUAL, changes)
    assert found.actions == (1, 2)
    assert found.vm_states[VmState.SLEEPING] == 9
    assert found.vm_states[VmState.RUNNING] == USUAL.vm_states[VmState.RUNNING]
    assert (found.plans, found.broken_at_first) == (Plans.ANY, True)
    assert options_with(USUAL, []) == USUAL


def test_there_can_be_other_resources() -> None:
    change = 'resources={"gpus": {"capacity": [0, 4], "consumption": [1, 2]}}'
    assert list(options_with(USUAL, [change]).resources) == ["gpus"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("acton=[0,1]", "did you mean actions?"),
        ("actions", "is no assignment"),
        ("actions=[3,1]", "begins above its end"),
        ('actions=[0,"x"]', "actions[1]: Expected int, got str"),
        ("vm_states.awake=1", "Invalid enum value 'awake' (init, ready"),
        ("plans=wild", "Invalid enum value 'wild' (careful, rejected, any)"),
        ("hosts=5", "hosts: Expected array, got int (such as [1, 4])"),
        ('vm_states={"running": 0}', "leaves nothing to choose"),
        ('resources={"gpus": {"capacity": [5, 1]}}', "resources.gpus.capacity"),
        ("agents=2", "agents: Expected float <= 1.0"),
        ("hosts=[1,1000000]", "hosts[1]: Expected int <= 10000"),
    ],
)
def test_what_cannot_be_drawn_is_told(change: str, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        options_with(USUAL, [change])
    assert told in str(caught.value)


def test_arguments_that_nobody_can_draw_are_told() -> None:
    text = "Odd(v : vms, w : colocated(v)) discrete ::= runs(w)"
    with pytest.raises(InvalidInput) as caught:
        Generator(own(text), "Odd", Options())
    assert "chance draws no arguments such as w" in str(caught.value)


@pytest.mark.parametrize(
    "change", ["tenants=[]", "labels={}", 'labels={"zone": []}', "resources={}", "kinds=[]"]
)
def test_there_can_be_none_of_what_clusters_have_besides(change: str) -> None:
    options = options_with(USUAL, [change, "owned=1", "labelled=1"])
    specification = own("Any(id : string, key : string) discrete ::= true")
    trials = Generator(specification, "Any", options).block(range(40)).trials
    assert len(trials) == 40
    assert {vm.tenant for trial in trials for vm in trial.initial.vms.values()} <= (
        {None} if change == "tenants=[]" else {"a", "b"}
    )


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ('{"nb": ["x"]}', "Few(nb : int) discrete ::= card(vms) <= nb"),
        ('{"nb": [1, 99999999999999999999]}', "Few(nb : int) discrete ::= card(vms) <= nb"),
        ('{"id": [3]}', "Any(id : string) discrete ::= true"),
    ],
)
def test_values_of_another_kind_than_an_argument_are_told(given: str, text: str) -> None:
    home = own(text)
    (name,) = home.constraints
    with pytest.raises(InvalidInput, match="is no value for"):
        Generator(home, name, options_with(USUAL, [f"given={given}"]))
