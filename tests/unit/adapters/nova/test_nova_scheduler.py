"""Batches of questions to Nova, and the replacement of a lost worker; with fakes."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders import a_cluster, a_host, a_step, a_vm, coded
from equipoise.adapters.nova import scheduler
from equipoise.adapters.nova.scheduler import Nova, NovaPipeline
from equipoise.adapters.targets import environment
from equipoise.adapters.targets.environment import MissingTarget
from equipoise.adapters.targets.scheduler import SchedulerCrash, SchedulerTimeout, UnsupportedTrial
from equipoise.adapters.targets.worker import TargetCrash, Worker
from equipoise.errors import WorldError
from equipoise.fuzz.trial import Trial, TrialOutcome, judge
from equipoise.model.action import Boot
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm
from equipoise.spec.requirement import Requirement
from nova_trials import BOOT_V_ON_H, a_demand, a_placement

LIMITS = [a_placement(a_demand("NumInstances", nb=nb)) for nb in (0, 1, 2, 3)]
FAKE = """
import os, sys, time
from equipoise_worker import serve
def answer(questions):
    limits = [one.get("config", {{}}).get("max_instances_per_host") for one in questions]
{body}
serve("pytest", admits=answer, place=answer)
"""


def beginning(folder: Path, body: str) -> Callable[[], Worker]:
    """Starts workers with the real loop; ``body`` answers by the limit of a question."""
    shutil.copy(Path(environment.__file__).parent / "worker_path" / "equipoise_worker.py", folder)
    script = folder / "fake_worker.py"
    script.write_text(FAKE.format(body=textwrap.indent(textwrap.dedent(body), "    ")))
    return lambda: Worker([sys.executable, script], name="fake_worker")


ODD = """
    said = {1: {"passes": [True]}, 2: {"crash": "KeyError (here)"}, 3: {"passes": [False]}}
    return {"answers": [said[limit] for limit in limits]}
"""


def test_each_trial_has_its_own_answer_in_its_own_place(tmp_path: Path) -> None:
    with Nova(starter=beginning(tmp_path, ODD)) as nova:
        unsupported, yes, crash, no = nova.accepts_many(LIMITS)
        assert nova.accepts_many([]) == ()
    assert isinstance(unsupported, UnsupportedTrial)
    assert (yes, no) == (True, False)
    assert isinstance(crash, SchedulerCrash)
    assert str(crash) == "KeyError (here)"


def test_answers_keep_their_order_over_several_lines(tmp_path: Path) -> None:
    body = "return {'answers': [{'passes': [limit % 3 == 0]} for limit in limits]}"
    limits = range(3 * scheduler.TRIALS_PER_LINE + 1)
    trials = [a_placement(a_demand("NumInstances", nb=nb)) for nb in limits]
    with Nova(starter=beginning(tmp_path, body)) as nova:
        unsupported, *answers = nova.accepts_many(trials)
    assert isinstance(unsupported, UnsupportedTrial)
    assert answers == [nb % 3 == 0 for nb in limits[1:]]


def test_a_single_trial_is_judged(tmp_path: Path) -> None:
    with Nova(starter=beginning(tmp_path, ODD)) as nova:
        verdicts = [judge(nova, trial) for trial in LIMITS]
    assert [verdict.outcome for verdict in verdicts] == [
        TrialOutcome.UNSUPPORTED, TrialOutcome.AGREE, TrialOutcome.CRASH, TrialOutcome.OVER,
    ]  # fmt: skip
    assert verdicts[2].message == "KeyError (here)"


def test_a_dead_worker_is_replaced(tmp_path: Path) -> None:
    body = """
        if limits == [2]:
            os._exit(7)
        return {"answers": [{"passes": [True]}]}
    """
    with Nova(starter=beginning(tmp_path, body)) as nova:
        with pytest.raises(WorldError, check=coded("worker-died")):
            nova.accepts(LIMITS[2])
        assert nova.accepts(LIMITS[1])


def test_a_worker_over_its_time_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
        if limits == [2]:
            time.sleep(600)
        return {"answers": [{"passes": [True]}]}
    """
    with Nova(starter=beginning(tmp_path, body)) as nova:
        with monkeypatch.context() as patch:
            patch.setattr(scheduler, "SECONDS_MAX", 0.3)
            with pytest.raises(SchedulerTimeout):
                nova.accepts(LIMITS[2])
        assert nova.accepts(LIMITS[1])


LARGE = a_placement(a_demand("ExtraSpecs", key="size"), vm=a_vm("v", labels={"size": ">= 4"}))


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ({"passes": [True]}, TrialOutcome.UNSUPPORTED),
        ({"passes": [False]}, TrialOutcome.UNSUPPORTED),
        ({"crash": "ValueError (there)"}, TrialOutcome.CRASH),
    ],
)
def test_an_ambiguous_value_counts_only_for_crashes(
    tmp_path: Path, said: dict[str, Any], outcome: TrialOutcome
) -> None:
    with Nova(starter=beginning(tmp_path, f"return {{'answers': [{said}]}}")) as nova:
        verdict = judge(nova, LARGE)
    assert verdict.outcome is outcome
    assert verdict.message == said.get("crash", "Nova reads '>= 4' as a comparison")


def unplaced(demand: Requirement, *vms: Vm) -> Trial:
    return Trial(demand, a_cluster(a_host("h"), a_host("g"), vms=vms), ())


READY = unplaced(a_demand("NumInstances", nb=1), a_vm("v"), a_vm("w"))


W = VmId("w")
TWO = a_placement(
    a_demand("NumInstances", nb=2), vms=[a_vm("w")], others=[Boot(vm=W, target=BOOT_V_ON_H.target)]
)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ([[True], [True]], TrialOutcome.AGREE),
        ([[False], [True]], TrialOutcome.OVER),
        ([[True], [False]], TrialOutcome.OVER),
        ([[True], None], TrialOutcome.CRASH),
        ([[False], None], TrialOutcome.OVER),
        ([None, [False]], TrialOutcome.CRASH),
    ],
)
def test_all_placements_of_a_trial_must_be_admitted(
    tmp_path: Path, said: list[list[bool] | None], outcome: TrialOutcome
) -> None:
    answers = [{"crash": "alas"} if answer is None else {"passes": answer} for answer in said]
    with Nova(starter=beginning(tmp_path, f"return {{'answers': {answers}}}")) as nova:
        assert judge(nova, TWO).outcome is outcome


class TestPipeline:
    def test_where_nova_puts_vms_is_a_plan_of_boots_in_its_order(self, tmp_path: Path) -> None:
        body = "return {'answers': [{'placed': {'w': 'g', 'v': 'h'}}]}"
        with NovaPipeline(starter=beginning(tmp_path, body)) as nova:
            steps = nova.plan(READY)
            verdict = judge(nova, READY)
        assert steps == (
            a_step("s1", Boot(vm=VmId("w"), target=HostId("g")), 0, 1000),
            a_step("s2", Boot(vm=VmId("v"), target=HostId("h")), 1000, 2000),
        )
        assert (verdict.outcome, verdict.steps) == (TrialOutcome.AGREE, steps)

    @pytest.mark.parametrize(("there", "harm"), [((), "introduced"), (("x", "y"), "left in place")])
    def test_introduced_violations_differ_from_those_left_in_place(
        self, tmp_path: Path, there: tuple[str, ...], harm: str
    ) -> None:
        body = "return {'answers': [{'placed': {'v': 'h', 'w': 'h'}}]}"
        trial = unplaced(
            READY.demand, a_vm("v"), a_vm("w"), *(a_vm(vm_name, "g") for vm_name in there)
        )
        with NovaPipeline(starter=beginning(tmp_path, body)) as nova:
            verdict = judge(nova, trial)
        assert (verdict.outcome, verdict.harm) == (TrialOutcome.UNDER, harm)

    def test_a_crash_is_reported(self, tmp_path: Path) -> None:
        body = "return {'answers': [{'crash': 'KeyError (here)'}]}"
        with NovaPipeline(starter=beginning(tmp_path, body)) as nova:
            assert judge(nova, READY).message == "KeyError (here)"

    def test_an_ambiguous_value_gives_no_plan(self, tmp_path: Path) -> None:
        body = "return {'answers': [{'placed': {}}]}"
        with NovaPipeline(starter=beginning(tmp_path, body)) as nova:
            misread = unplaced(LARGE.demand, a_vm("v", labels={"size": ">= 4"}))
            assert judge(nova, misread).message == "Nova reads '>= 4' as a comparison"

    @pytest.mark.parametrize("said", ["{}", "{'placed': []}", "1"])
    def test_an_invalid_answer_is_an_error(self, tmp_path: Path, said: str) -> None:
        with (
            NovaPipeline(starter=beginning(tmp_path, f"return {{'answers': [{said}]}}")) as nova,
            pytest.raises(WorldError, check=coded("worker-answer-invalid")),
        ):
            nova.plan(READY)


def test_an_unreadable_question_is_no_crash_of_nova(tmp_path: Path) -> None:
    with (
        Nova(starter=beginning(tmp_path, "raise KeyError('vm')")) as nova,
        pytest.raises(WorldError, check=coded("worker-question-invalid")),
    ):
        nova.accepts(LIMITS[1])


def test_without_its_environment_there_is_no_nova(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path))
    with pytest.raises(MissingTarget, match=r"run 'python -m equipoise.adapters.targets nova'"):
        Nova()


@pytest.mark.parametrize("said", ["{}", "{'answers': []}", "{'answers': [{}]}", "{'answers': [1]}"])
def test_an_invalid_answer_is_an_error(tmp_path: Path, said: str) -> None:
    with (
        beginning(tmp_path, f"return {said}")() as worker,
        pytest.raises(WorldError, check=coded("worker-answer-invalid")),
    ):
        worker.admits([{"config": {}}])


def test_a_worker_tells_which_of_many_hosts_pass(tmp_path: Path) -> None:
    body = "return {'answers': [{'passes': [True, False]}, {'crash': 'alas'}]}"
    with beginning(tmp_path, body)() as worker:
        said = worker.admits([{"config": {}}, {"config": {}}])
        assert said == ((True, False), TargetCrash("alas"))
        assert not worker.is_timed_out
