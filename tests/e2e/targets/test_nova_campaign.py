"""Campaigns against the real Nova, filter by filter and as a whole, and what they must find."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from builders import a_cluster, a_host, a_vm
from equipoise.adapters.nova.encode import EXTRA_SPECS
from equipoise.adapters.nova.scheduler import NOVA, NOVA_PIPELINE, Nova, NovaPipeline
from equipoise.adapters.targets.environment import ADAPTERS_FOLDER, PYTHON_TARGETS, find_environment
from equipoise.adapters.targets.scheduler import Scheduler, SchedulerEntry
from equipoise.adapters.targets.worker import TargetCrash, Worker, start_worker
from equipoise.fuzz.campaign import CampaignLimits, CampaignReport, FuzzCampaign
from equipoise.fuzz.generate import Generator
from equipoise.fuzz.trial import Trial, TrialOutcome, judge
from equipoise.fuzz.trial.stored import StoredTrial, case_of, read_lines, trial_of
from equipoise.model.host import Host, HostState
from equipoise.model.vm import Vm, VmState
from equipoise.spec.library import library_file
from equipoise.spec.requirement import Requirement
from nova_trials import a_demand, asleep

TARGET = PYTHON_TARGETS["nova"]
FINDINGS = ADAPTERS_FOLDER / "nova" / f"findings-{TARGET.version}.jsonl"
OVER, UNDER = "over-filtering", "under-filtering"
NO_OPERAND = "IndexError (nova/scheduler/filters/extra_specs_ops.py:54 in match)"
NO_NUMBER = "ValueError (nova/scheduler/filters/extra_specs_ops.py:28 in <lambda>)"
NO_NETWORK = "AddrFormatError (nova/scheduler/filters/affinity_filter.py:73 in host_passes)"
ADMITS = {
    ("SameHost", UNDER, ""),
    ("NumInstances", OVER, ""),
    ("IoOps", UNDER, ""),
    ("ServerGroupAffinity", OVER, ""),
    ("ServerGroupAffinity", UNDER, ""),
    ("ServerGroupAntiAffinity", OVER, ""),
    ("ImageIsolation", UNDER, ""),
    ("ExtraSpecs", "crash", NO_OPERAND),
    ("ExtraSpecs", "crash", NO_NUMBER),
    ("SameSubnet", "crash", NO_NETWORK),
}
PLACE = {
    ("SameHost", UNDER, ""),
    ("ServerGroupAffinity", UNDER, ""),
    ("ImageIsolation", UNDER, ""),
    ("ExtraSpecs", "crash", NO_OPERAND),
    ("ExtraSpecs", "crash", NO_NUMBER),
}


@pytest.fixture(scope="module", name="worker")
def fixture_worker() -> Iterator[Worker]:
    if find_environment("nova") is None:
        pytest.skip(f"{TARGET.about} is not in {TARGET.folder}: '{TARGET.command}' puts it there")
    with start_worker("nova") as worker:
        yield worker


def made(known: SchedulerEntry, worker: Worker, **settings: str) -> Scheduler:
    return known.make(starter=lambda: worker, **settings)


def found(report: CampaignReport) -> set[tuple[str, str, str]]:
    return {
        (finding.constraint, finding.verdict.outcome, finding.verdict.message)
        for finding in report.findings
    }


@pytest.mark.parametrize(
    ("known", "wrong", "tests"),
    [(NOVA, ADMITS, 4000), (NOVA_PIPELINE, PLACE, 2000)],
    ids=["nova", "nova-pipeline"],
)
def test_a_campaign_finds_all_that_is_known_and_shows_it_by_few_machines(
    worker: Worker, known: SchedulerEntry, wrong: set[tuple[str, str, str]], tests: int
) -> None:
    names = sorted({name for name, _, _ in wrong})
    asked, limits = made(known, worker), CampaignLimits(tests=tests)
    report = FuzzCampaign(known.name, asked, names, known.options, 0, limits).run()
    assert found(report) == wrong
    shown = [finding.shrunk.initial for finding in report.findings]
    assert sum(len(state.vms) for state in shown) <= 3 * len(shown)
    assert all(len(state.hosts) <= 2 for state in shown)


@pytest.mark.parametrize(
    ("known", "wrong"), [(NOVA, ADMITS), (NOVA_PIPELINE, PLACE)], ids=["nova", "nova-pipeline"]
)
def test_nova_is_right_elsewhere_and_few_trials_are_unsupported(
    worker: Worker, known: SchedulerEntry, wrong: set[tuple[str, str, str]]
) -> None:
    names = [name for name in known.constraints if name not in {admit for admit, _, _ in wrong}]
    asked, limits = made(known, worker), CampaignLimits(tests=1000)
    report = FuzzCampaign(known.name, asked, names, known.options, 1, limits).run()
    assert report.findings == []
    assert report.outcomes[TrialOutcome.UNSUPPORTED] < 0.15 * report.tests


def test_the_saved_findings_are_found_again_and_cannot_be_made_smaller(worker: Worker) -> None:
    stored = list(read_lines(FINDINGS.read_bytes(), str(FINDINGS)))
    assert {
        (finding.constraint, finding.outcome, finding.message) for finding in stored
    } == ADMITS | PLACE
    for known in (NOVA, NOVA_PIPELINE):
        own = [finding for finding in stored if finding.target == known.name]
        for finding in own:
            asked = made(known, worker, **finding.settings)
            report = FuzzCampaign(known.name, asked, ()).replay([trial_of(finding)])
            assert [again(finding, report)] == [finding]


def again(saved: StoredTrial, report: CampaignReport) -> StoredTrial:
    """What would be saved of the same finding now."""
    (finding,) = report.findings
    return saved.but(
        outcome=finding.verdict.outcome,
        message=finding.verdict.message,
        case=case_of(finding.shrunk),
    )


def test_no_question_leaves_a_trace_in_another(worker: Worker) -> None:
    nova = Nova(starter=lambda: worker)
    makers = [Generator(library_file("nova"), name, NOVA.options) for name in NOVA.constraints]
    rows = zip(*(maker.block(range(10)).trials for maker in makers), strict=True)
    trials = [trial for row in rows for trial in row]
    together = nova.accepts_many(trials)
    backwards = nova.accepts_many(trials[::-1])[::-1]
    alone = [nova.accepts_many([trial])[0] for trial in trials]
    assert list(map(str, together)) == list(map(str, backwards)) == list(map(str, alone))
    assert {True, False} <= {answer for answer in together if isinstance(answer, bool)}


def test_extra_specs_break_capabilities_as_well(worker: Worker) -> None:
    nova = Nova(starter=lambda: worker, extra_specs=EXTRA_SPECS[1])
    limits = CampaignLimits(tests=400)
    report = FuzzCampaign("nova", nova, ("ExtraSpecs",), NOVA.options, 0, limits).run()
    assert found(report) == {admit for admit in ADMITS if admit[0] == "ExtraSpecs"}


@pytest.mark.parametrize(
    ("state", "counts"),
    [
        ("image_snapshot", True),
        ("image_snapshot_pending", False),
        ("image_pending_upload", False),
        ("image_uploading", False),
        ("resize_migrating", True),
        ("resize_migrated", False),
        ("resize_finish", False),
        ("migrating", False),
    ],
)
def test_which_states_of_a_task_count_as_input_and_output(
    worker: Worker, state: str, counts: bool
) -> None:
    # The documentation names snapshots, resizes and migrations; if a newer version counts them all
    # as long as they last, this test says so.
    question = {
        "filter": "IoOpsFilter",
        "vm": {"id": "v"},
        "hosts": [{"id": "h", "instances": [{"id": "w", "task_state": state}]}],
        "config": {"max_io_ops_per_host": 1},
    }
    assert worker.admits([question]) == ((not counts,),)


@pytest.mark.parametrize(("required", "passes"), [(">= 0", True), (">=0", False), ("0", True)])
def test_an_operator_without_a_blank_is_no_operator(
    worker: Worker, required: str, passes: bool
) -> None:
    # The documentation gives one as an example.
    question = {
        "filter": "ComputeCapabilitiesFilter",
        "vm": {"id": "v", "extra_specs": {"capabilities:vcpus_total": required}},
        "hosts": [{"id": "h"}],
    }
    assert worker.admits([question]) == ((passes,),)


SCHEMAS = """
import json, jsonschema, nova.conf
from nova.api.openstack.compute.schemas import servers
from nova.api.validation.extra_specs import validators
def admits(check, *value):
    try:
        check(*value)
    except Exception:
        return False
    return True
cidr = jsonschema.Draft4Validator(servers._hints["properties"]["cidr"])
key = "aggregate_instance_extra_specs:size"
print(json.dumps({
    "cidr": {one: cidr.is_valid(one) for one in ("/24", "/99", "24")},
    "extra_specs": {one: admits(validators.validate, key, one) for one in (">= 4", "<or>")},
}))
"""


def test_a_crashing_value_is_admitted_and_a_documented_one_is_not() -> None:
    python = find_environment("nova")
    if python is None:
        pytest.skip(f"{TARGET.about} is not in {TARGET.folder}: '{TARGET.command}' puts it there")
    said = subprocess.run(
        [python, "-s", "-c", SCHEMAS], capture_output=True, check=True, timeout=120
    )
    assert json.loads(said.stdout) == {
        "cidr": {"/24": True, "/99": True, "24": False},
        "extra_specs": {">= 4": True, "<or>": True},
    }


def test_isolated_images_may_come_nowhere_if_no_host_is_isolated(worker: Worker) -> None:
    # A comment in the filter says that it admits every VM if no hosts are listed.
    question = {
        "filter": "IsolatedHostsFilter",
        "vm": {"id": "v", "image": "isolated"},
        "hosts": [{"id": "h"}],
        "config": {"isolated_hosts": [], "isolated_images": ["isolated"]},
    }
    assert worker.admits([question]) == ((False,),)


class TestPipeline:
    def placed(self, worker: Worker, demand: Requirement, *vms: Vm, **given: Any) -> dict[str, str]:
        hosts: list[Host] = given.pop("hosts", [a_host("g"), a_host("h")])
        trial = Trial(demand, a_cluster(*hosts, vms=vms), ())
        nova = NovaPipeline(starter=lambda: worker, **given)
        verdict = judge(nova, trial)
        assert verdict.outcome is TrialOutcome.AGREE
        assert verdict.steps is not None
        boots = [step.action for step in verdict.steps]
        return {action.vm: action.target for action in boots}  # type: ignore[union-attr, misc]

    UP = a_demand("ComputeUp")

    def test_vms_go_where_most_is_left(self, worker: Worker) -> None:
        assert self.placed(worker, self.UP, a_vm("v"), a_vm("w", "g")) == {"v": "h"}
        assert self.placed(worker, self.UP, a_vm("v"), a_vm("w", "h")) == {"v": "g"}
        some = self.placed(worker, self.UP, *map(a_vm, "uvwx"))
        assert sorted(some.values()) == ["g", "g", "h", "h"]

    @pytest.mark.parametrize("state", [HostState.STANDBY, HostState.MAINTENANCE])
    def test_vms_go_only_where_hosts_are_on(self, worker: Worker, state: HostState) -> None:
        hosts = [a_host("g", state=state), a_host("h")]
        assert self.placed(worker, self.UP, *map(a_vm, "vw"), hosts=hosts) == {"v": "h", "w": "h"}

    def test_a_group_stays_together_or_apart(self, worker: Worker) -> None:
        together = self.placed(
            worker, a_demand("ServerGroupAffinity", vs=["v", "w", "x"]), *map(a_vm, "vwx")
        )
        assert len(together) == 3
        assert len(set(together.values())) == 1
        apart = self.placed(
            worker, a_demand("ServerGroupAntiAffinity", vs=["v", "w"], nb=1), *map(a_vm, "vw")
        )
        assert sorted(apart.values()) == ["g", "h"]

    def test_a_request_is_fulfilled_completely_or_not_at_all(self, worker: Worker) -> None:
        group = a_demand("ServerGroupAntiAffinity", vs=["v", "w", "x"], nb=1)
        assert set(self.placed(worker, group, *map(a_vm, "uvwx"))) == {"u"}

    def test_placements_of_a_request_count_for_the_next(self, worker: Worker) -> None:
        vms = [a_vm("v"), a_vm("w", vcpus=2), a_vm("x", vcpus=4)]
        placed = self.placed(worker, a_demand("NumInstances", nb=1), *vms)
        assert sorted(placed) == ["v", "w"]
        assert sorted(placed.values()) == ["g", "h"]

    def test_a_vm_with_a_hint_goes_to_the_named_vms(self, worker: Worker) -> None:
        demand = a_demand("SameHostAsCoded", v="v", others=["w"])
        placed = self.placed(worker, demand, a_vm("v"), a_vm("w"), a_vm("x", "g"))
        assert placed == {"w": "h", "v": "h"}
        assert self.placed(worker, demand, a_vm("v"), a_vm("w", state=VmState.INIT)) == {}

    @pytest.mark.parametrize("extra_specs", EXTRA_SPECS)
    def test_both_filters_for_extra_specs_are_supported(
        self, worker: Worker, extra_specs: str
    ) -> None:
        hosts = [a_host("g"), a_host("h", labels={"size": "large"})]
        vms = [a_vm(name, labels={"size": "large"}) for name in "vw"]
        demand = a_demand("ExtraSpecs", key="size")
        placed = self.placed(worker, demand, *vms, hosts=hosts, extra_specs=extra_specs)
        assert placed == {"v": "h", "w": "h"}

    def test_placements_of_a_question_do_not_count_for_the_next(self, worker: Worker) -> None:
        once = [self.placed(worker, a_demand("NumInstances", nb=1), a_vm("v")) for _ in range(3)]
        assert once == [once[0]] * 3

    def test_a_label_on_one_host_crashes_a_request_that_another_host_fulfils(
        self, worker: Worker
    ) -> None:
        question: dict[str, Any] = {
            "filters": [EXTRA_SPECS[0]],
            "hosts": [{"id": "h", "aggregates": [{"size": "4"}]}],
            "requests": [{"vm": {"id": "v", "extra_specs": {"size": ">= 4"}}, "vms": ["v"]}],
        }
        word = {"id": "g", "aggregates": [{"size": "large"}]}
        worse = {**question, "hosts": [*question["hosts"], word]}
        assert worker.place([question, worse]) == ({"v": "h"}, TargetCrash(NO_NUMBER))

    def test_initial_violations_are_left_in_place(self, worker: Worker) -> None:
        vms = [a_vm("v"), a_vm("w", "g"), a_vm("x", "h")]
        trial = Trial(
            a_demand("ServerGroupAffinity", vs=["w", "x"]),
            a_cluster(a_host("g"), a_host("h"), vms=vms),
            (),
        )
        verdict = judge(NovaPipeline(starter=lambda: worker), trial)
        assert (verdict.outcome, verdict.harm) == (TrialOutcome.UNDER, "left in place")

    def test_a_group_is_separated_by_a_member_that_sleeps(self, worker: Worker) -> None:
        vms = [a_vm("v"), asleep("w", "h"), a_vm("x", "g"), a_vm("y", "g")]
        trial = Trial(
            a_demand("ServerGroupAffinity", vs=["v", "w", "x"]),
            a_cluster(a_host("g"), a_host("h"), vms=vms),
            (),
        )
        verdict = judge(NovaPipeline(starter=lambda: worker), trial)
        assert (verdict.outcome, verdict.harm) == (TrialOutcome.UNDER, "introduced")
