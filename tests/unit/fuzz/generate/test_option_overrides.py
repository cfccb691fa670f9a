"""Options as the user gives them."""

from __future__ import annotations

import pytest

from builders import coded
from equipoise.adapters.targets.trial import DEFAULT_OPTIONS, PlanSampling
from equipoise.errors import InvalidInput
from equipoise.fuzz.generate import Generator, TrialOptions
from equipoise.fuzz.generate.parameters import override_options
from equipoise.model.vm import VmState
from equipoise.spec.library import custom_specification


def test_an_override_changes_only_its_field() -> None:
    changes = ["actions=[1,2]", "vm_states.sleeping=9", "plans=any", "broken_at_first=true"]
    found = override_options(DEFAULT_OPTIONS, changes)
    assert found.actions == (1, 2)
    assert found.vm_states[VmState.SLEEPING] == 9
    assert found.vm_states[VmState.RUNNING] == DEFAULT_OPTIONS.vm_states[VmState.RUNNING]
    assert (found.plans, found.broken_at_first) == (PlanSampling.ANY, True)
    assert override_options(DEFAULT_OPTIONS, []) == DEFAULT_OPTIONS


def test_there_can_be_other_resources() -> None:
    change = 'resources={"gpus": {"capacity": [0, 4], "consumption": [1, 2]}}'
    assert list(override_options(DEFAULT_OPTIONS, [change]).resources) == ["gpus"]


@pytest.mark.parametrize(
    ("change", "key", "code"),
    [
        ("acton=[0,1]", "acton", "unknown-key"),
        ("actions", "--set actions", "syntax-error"),
        ("actions=[3,1]", "actions", "empty-range"),
        ('actions=[0,"x"]', "actions[1]", "wrong-type"),
        ("vm_states.awake=1", "vm_states", "invalid-value"),
        ("plans=wild", "plans", "invalid-value"),
        ("hosts=5", "hosts", "wrong-type"),
        ('vm_states={"running": 0}', "vm_states", "empty-choice"),
        ('resources={"gpus": {"capacity": [5, 1]}}', "resources.gpus.capacity", "empty-range"),
        ("agents=2", "agents", "out-of-range"),
        ("hosts=[1,1000000]", "hosts[1]", "out-of-range"),
    ],
)
def test_options_without_any_value_are_rejected(change: str, key: str, code: str) -> None:
    with pytest.raises(InvalidInput, check=coded(code, key)):
        override_options(DEFAULT_OPTIONS, [change])


def test_a_parameter_with_an_unsupported_domain_is_rejected() -> None:
    text = "Odd(v : vms, w : colocated(v)) discrete ::= runs(w)"
    with pytest.raises(InvalidInput) as caught:
        Generator(custom_specification(text), "Odd", TrialOptions())
    assert [problem.key for problem in caught.value.problems] == ["w"]


@pytest.mark.parametrize(
    "change", ["tenants=[]", "labels={}", 'labels={"zone": []}', "resources={}", "kinds=[]"]
)
def test_clusters_may_have_no_tenants_labels_resources_or_kinds(change: str) -> None:
    options = override_options(DEFAULT_OPTIONS, [change, "owned=1", "labelled=1"])
    specification = custom_specification("Any(id : string, key : string) discrete ::= true")
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
def test_given_values_of_a_wrong_type_are_rejected(given: str, text: str) -> None:
    home = custom_specification(text)
    (name,) = home.constraints
    with pytest.raises(InvalidInput, check=coded("invalid-value")):
        Generator(home, name, override_options(DEFAULT_OPTIONS, [f"given={given}"]))
