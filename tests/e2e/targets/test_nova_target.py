"""The real filters of Nova: each lets one VM come and keeps another away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from builders import a_host, a_vm
from equipoise.adapters.nova.encode import CONSTRAINTS, EXTRA_SPECS
from equipoise.adapters.nova.scheduler import Nova
from equipoise.adapters.targets.environment import PYTHON_TARGETS, find_environment
from equipoise.adapters.targets.worker import TargetCrash, Worker, start_worker
from equipoise.errors import WorldError
from equipoise.fuzz.trial import Trial, TrialOutcome, judge
from equipoise.model.action import Boot, Migrate
from equipoise.model.host import Host, HostState
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm
from nova_trials import a_demand, a_placement, asleep

TARGET = PYTHON_TARGETS["nova"]
H, W = HostId("h"), VmId("w")
OF_DISTRO = {"key": "os_distro"}


@pytest.fixture(scope="module", name="worker")
def fixture_worker() -> Iterator[Worker]:
    if find_environment("nova") is None:
        pytest.skip(f"{TARGET.about} is not in {TARGET.folder}: '{TARGET.command}' puts it there")
    with start_worker("nova") as worker:
        yield worker


def nova(worker: Worker, extra_specs: str = EXTRA_SPECS[0]) -> Nova:
    return Nova(starter=lambda: worker, extra_specs=extra_specs)


def host(**labels: str) -> Host:
    return a_host("h", labels=labels)


def vm(**labels: str) -> Vm:
    return a_vm("v", labels=labels)


def trial(constraint: str, *, arguments: dict[str, Any] | None = None, **given: Any) -> Trial:
    return a_placement(a_demand(constraint, **(arguments or {})), **given)


def both(constraint: str, arguments: dict[str, Any], **given: Any) -> tuple[str, Trial, Trial]:
    """The same with a VM on the same host, and with that VM on another."""
    one, other = (
        trial(constraint, arguments=arguments, vms=[a_vm("w", where)], **given)
        for where in ("h", "g")
    )
    return constraint, one, other


def labelled(
    constraint: str, right: tuple[Host, Vm], wrong: tuple[Host, Vm], **arguments: Any
) -> tuple[str, Trial, Trial]:
    one, other = (
        trial(constraint, arguments=arguments, host=host, vm=vm) for host, vm in (right, wrong)
    )
    return constraint, one, other


def turned(case: tuple[str, Trial, Trial]) -> tuple[str, Trial, Trial]:
    name, one, other = case
    return name, other, one


def a_tenants(tenant: str) -> Vm:
    return a_vm("v", tenant=tenant)


GROUP = {"vs": ["v", "w"]}
OTHERS = {"v": "v", "others": ["w"]}
ROOM_FOR_ONE = a_host("h", capacity={"instances": 1})
BOOTING: dict[str, Any] = {"vms": [a_vm("w")], "others": [Boot(vm=W, target=H)]}
UBUNTU, DEBIAN = {"os_distro": "ubuntu"}, {"os_distro": "debian"}

PASSES_AND_FAILS: list[tuple[str, Trial, Trial]] = [
    both("ServerGroupAffinity", GROUP),
    both("ServerGroupAffinityAsCoded", {"v": "v", **GROUP}),
    turned(both("ServerGroupAntiAffinity", {**GROUP, "nb": 1})),
    turned(both("ServerGroupAntiAffinityAsCoded", {"v": "v", **GROUP, "nb": 1})),
    both("SameHost", OTHERS),
    both("SameHostAsCoded", OTHERS),
    turned(both("DifferentHost", OTHERS)),
    turned(both("NumInstances", {"nb": 1})),
    turned(both("NumInstancesAsCoded", {"nb": 1})),
    turned(both("AggregateNumInstances", {}, host=ROOM_FOR_ONE)),
    *(
        (name, trial(name, arguments={"nb": 1}), trial(name, arguments={"nb": 1}, **BOOTING))
        for name in ("IoOps", "IoOpsAsCoded")
    ),
    (
        "IsolatedHosts",
        trial("IsolatedHosts", arguments={"vs": ["v"], "ns": ["h"]}),
        trial("IsolatedHosts", arguments={"vs": [], "ns": ["h"]}),
    ),
    (
        "IsolatedHostsOpen",
        trial("IsolatedHostsOpen", arguments={"vs": [], "ns": ["h"]}),
        trial("IsolatedHostsOpen", arguments={"vs": ["v"], "ns": ["g"]}),
    ),
    labelled(
        "MultiTenancy",
        (host(filter_tenant_id="t"), a_tenants("t")),
        (host(filter_tenant_id="t"), a_tenants("u")),
    ),
    labelled(
        "TypeAffinity",
        (host(instance_type="big"), vm(flavor="big")),
        (host(instance_type="big"), vm()),
    ),
    *(
        labelled(name, (host(**UBUNTU), vm(**UBUNTU)), (host(**UBUNTU), vm(**DEBIAN)), **OF_DISTRO)
        for name in ("ImageIsolation", "ImageIsolationAsCoded")
    ),
    labelled("ExtraSpecs", (host(**UBUNTU), vm(**UBUNTU)), (host(), vm(**UBUNTU)), **OF_DISTRO),
    *(
        ("ComputeUp", trial("ComputeUp"), trial("ComputeUp", host=a_host("h", state=state)))
        for state in (HostState.STANDBY, HostState.MAINTENANCE)
    ),
    (
        "SameSubnet",
        trial("SameSubnet", arguments={"v": "v", "other": "w"}, vms=[a_vm("w", "g")]),
        trial(
            "SameSubnet",
            arguments={"v": "v", "other": "w"},
            vms=[a_vm("w", "g")],
            host=host(subnet="s"),
        ),
    ),
]


@pytest.mark.parametrize(("name", "right", "wrong"), PASSES_AND_FAILS)
def test_a_filter_admits_one_vm_and_rejects_another(
    worker: Worker, name: str, right: Trial, wrong: Trial
) -> None:
    asked = nova(worker)
    assert asked.accepts_many([right, wrong, right]) == (True, False, True)
    assert judge(asked, right).outcome is judge(asked, wrong).outcome is TrialOutcome.AGREE


def test_every_constraint_that_is_supported_is_tried() -> None:
    assert {name for name, _, _ in PASSES_AND_FAILS} == set(CONSTRAINTS)


def test_capabilities_are_supported(worker: Worker) -> None:
    (case,) = [case for case in PASSES_AND_FAILS if case[0] == "ExtraSpecs"]
    asked = nova(worker, "ComputeCapabilitiesFilter")
    assert asked.accepts_many(case[1:]) == (True, False)


def test_the_version_is_the_pinned_one(worker: Worker) -> None:
    assert worker.version == TARGET.version


def test_a_crash_is_reported_by_its_place_in_nova(worker: Worker) -> None:
    # A flavour wants a number of 4 or more, and an aggregate of the host says something else.
    bad = {
        "filter": "AggregateInstanceExtraSpecsFilter",
        "vm": {"id": "v", "extra_specs": {"size": ">= 4"}},
        "hosts": [{"id": "h", "aggregates": [{"size": "large"}]}],
    }
    good = {**bad, "hosts": [{"id": "h", "aggregates": [{"size": size}]} for size in ("3", "4")]}
    place = "nova/scheduler/filters/extra_specs_ops.py:28 in <lambda>"
    assert worker.admits([bad, good]) == (TargetCrash(f"ValueError ({place})"), (False, True))


def test_the_configuration_of_a_question_ends_with_it(worker: Worker) -> None:
    instances = [{"id": f"w{n}"} for n in range(3)]
    question: dict[str, Any] = {
        "filter": "NumInstancesFilter",
        "vm": {"id": "v"},
        "hosts": [{"id": "h", "instances": instances}],
    }
    strict = {**question, "config": {"max_instances_per_host": 1}}
    assert worker.admits([question, strict, question]) == ((True,), (False,), (True,))


def test_a_question_that_nova_cannot_be_put_is_not_passed_over(worker: Worker) -> None:
    unknown = {"filter": "NoSuchFilter", "vm": {"id": "v"}, "hosts": []}
    with pytest.raises(WorldError, match="NoSuchFilter"):
        worker.admits([unknown])


SLEEPING_THERE = [asleep("w", "h")]
KNOWN = [
    ("over-filtering", trial("NumInstances", arguments={"nb": 1}, vms=SLEEPING_THERE)),
    ("over-filtering", trial("ServerGroupAffinity", arguments=GROUP, vms=[asleep("w", "g")])),
    (
        "over-filtering",
        trial("ServerGroupAntiAffinity", arguments={**GROUP, "nb": 1}, vms=SLEEPING_THERE),
    ),
    (
        "under-filtering",
        trial(
            "ServerGroupAffinity",
            arguments={"vs": ["v", "w", "x"]},
            vms=[asleep("w", "h"), a_vm("x", "g")],
        ),
    ),
    ("under-filtering", trial("ImageIsolation", arguments=OF_DISTRO, host=host(**UBUNTU))),
    (
        "under-filtering",
        trial(
            "IoOps",
            arguments={"nb": 1},
            vms=[a_vm("w", "h")],
            others=[Migrate(vm=W, source=H, target=HostId("g"))],
        ),
    ),
]


@pytest.mark.parametrize(("outcome", "known"), KNOWN)
def test_where_nova_is_known_to_do_something_else_than_documented(
    worker: Worker, outcome: str, known: Trial
) -> None:
    # If a newer version does not, this test says so.
    verdict = judge(nova(worker), known)
    assert verdict.outcome == outcome
    assert verdict.input_valid
