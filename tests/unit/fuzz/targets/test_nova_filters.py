"""How Nova is asked many things at once, and what becomes of a worker that is lost; with fakes."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders import a_cluster, a_host, a_step, a_vm
from equipoise.errors import WorldError
from equipoise.fuzz.schedulers import Crash, TooLate, Unsupported
from equipoise.fuzz.targets import Crashed, MissingTarget, Worker, environment, nova_filters
from equipoise.fuzz.targets.nova_filters import Nova, NovaPipeline
from equipoise.fuzz.trial import Outcome, Trial, judge
from equipoise.model.action import Boot
from equipoise.model.quantity import HostId, VmId
from equipoise.model.vm import Vm
from equipoise.spec.demand import Demand
from nova_trials import COMES, a_demand, coming

LIMITS = [coming(a_demand("NumInstances", nb=nb)) for nb in (0, 1, 2, 3)]
FAKE = """
import os, sys, time
from answering import serve
def answer(questions):
    limits = [one.get("config", {{}}).get("max_instances_per_host") for one in questions]
{body}
serve("pytest", admits=answer, place=answer)
"""


def beginning(folder: Path, body: str) -> Callable[[], Worker]:
    """Starts workers with the real loop; ``body`` answers for the limits that it is asked about."""
    shutil.copy(Path(environment.__file__).parent / "answering.py", folder)
    script = folder / "fake_worker.py"
    script.write_text(FAKE.format(body=textwrap.indent(textwrap.dedent(body), "    ")))
    return lambda: Worker([sys.executable, script], name="fake_worker")


ODD = """
    said = {1: {"passes": [True]}, 2: {"crash": "KeyError (here)"}, 3: {"passes": [False]}}
    return {"answers": [said[limit] for limit in limits]}
"""


def test_each_trial_has_its_own_answer_in_its_own_place(tmp_path: Path) -> None:
    with Nova(begin=beginning(tmp_path, ODD)) as nova:
        unsupported, yes, crash, no = nova.accepts_many(LIMITS)
        assert nova.accepts_many([]) == ()
    assert isinstance(unsupported, Unsupported)
    assert (yes, no) == (True, False)
    assert isinstance(crash, Crash)
    assert str(crash) == "KeyError (here)"


def test_more_trials_than_one_line_takes_keep_their_places(tmp_path: Path) -> None:
    body = "return {'answers': [{'passes': [limit % 3 == 0]} for limit in limits]}"
    limits = range(3 * nova_filters.TOGETHER + 1)
    trials = [coming(a_demand("NumInstances", nb=nb)) for nb in limits]
    with Nova(begin=beginning(tmp_path, body)) as nova:
        unsupported, *answers = nova.accepts_many(trials)
    assert isinstance(unsupported, Unsupported)
    assert answers == [nb % 3 == 0 for nb in limits[1:]]


def test_one_trial_is_judged_as_with_any_other_scheduler(tmp_path: Path) -> None:
    with Nova(begin=beginning(tmp_path, ODD)) as nova:
        verdicts = [judge(nova, trial) for trial in LIMITS]
    assert [one.outcome for one in verdicts] == [
        Outcome.UNSUPPORTED, Outcome.AGREE, Outcome.CRASH, Outcome.OVER,
    ]  # fmt: skip
    assert verdicts[2].message == "KeyError (here)"


def test_one_that_died_has_a_successor(tmp_path: Path) -> None:
    body = """
        if limits == [2]:
            os._exit(7)
        return {"answers": [{"passes": [True]}]}
    """
    with Nova(begin=beginning(tmp_path, body)) as nova:
        with pytest.raises(WorldError, match="died"):
            nova.accepts(LIMITS[2])
        assert nova.accepts(LIMITS[1])


def test_one_that_thinks_for_too_long_has_a_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = """
        if limits == [2]:
            time.sleep(600)
        return {"answers": [{"passes": [True]}]}
    """
    with Nova(begin=beginning(tmp_path, body)) as nova:
        with monkeypatch.context() as patch:
            patch.setattr(nova_filters, "SECONDS_MAX", 0.3)
            with pytest.raises(TooLate):
                nova.accepts(LIMITS[2])
        assert nova.accepts(LIMITS[1])


LARGE = coming(a_demand("ExtraSpecs", key="size"), vm=a_vm("v", labels={"size": ">= 4"}))


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ({"passes": [True]}, Outcome.UNSUPPORTED),
        ({"passes": [False]}, Outcome.UNSUPPORTED),
        ({"crash": "ValueError (there)"}, Outcome.CRASH),
    ],
)
def test_what_nova_reads_otherwise_matters_only_if_it_breaks(
    tmp_path: Path, said: dict[str, Any], outcome: Outcome
) -> None:
    with Nova(begin=beginning(tmp_path, f"return {{'answers': [{said}]}}")) as nova:
        verdict = judge(nova, LARGE)
    assert verdict.outcome is outcome
    assert verdict.message == said.get("crash", "Nova reads '>= 4' as a comparison")


def unplaced(demand: Demand, *vms: Vm) -> Trial:
    return Trial(demand, a_cluster(a_host("h"), a_host("g"), vms=vms), ())


READY = unplaced(a_demand("NumInstances", nb=1), a_vm("v"), a_vm("w"))


W = VmId("w")
TWO = coming(
    a_demand("NumInstances", nb=2), vms=[a_vm("w")], others=[Boot(vm=W, target=COMES.target)]
)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ([[True], [True]], Outcome.AGREE),
        ([[False], [True]], Outcome.OVER),
        ([[True], [False]], Outcome.OVER),
        ([[True], None], Outcome.CRASH),
        ([[False], None], Outcome.OVER),
        ([None, [False]], Outcome.CRASH),
    ],
)
def test_of_those_who_come_in_turn_all_must_be_let_in(
    tmp_path: Path, said: list[list[bool] | None], outcome: Outcome
) -> None:
    answers = [{"crash": "alas"} if one is None else {"passes": one} for one in said]
    with Nova(begin=beginning(tmp_path, f"return {{'answers': {answers}}}")) as nova:
        assert judge(nova, TWO).outcome is outcome


class TestPipeline:
    def test_where_nova_puts_vms_is_a_plan_of_boots_in_its_order(self, tmp_path: Path) -> None:
        body = "return {'answers': [{'placed': {'w': 'g', 'v': 'h'}}]}"
        with NovaPipeline(begin=beginning(tmp_path, body)) as nova:
            steps = nova.plan(READY)
            verdict = judge(nova, READY)
        assert steps == (
            a_step("s1", Boot(vm=VmId("w"), target=HostId("g")), 0, 1000),
            a_step("s2", Boot(vm=VmId("v"), target=HostId("h")), 1000, 2000),
        )
        assert (verdict.outcome, verdict.steps) == (Outcome.AGREE, steps)

    @pytest.mark.parametrize(("there", "harm"), [((), "introduced"), (("x", "y"), "left in place")])
    def test_harm_that_is_done_is_told_from_harm_that_is_left(
        self, tmp_path: Path, there: tuple[str, ...], harm: str
    ) -> None:
        body = "return {'answers': [{'placed': {'v': 'h', 'w': 'h'}}]}"
        trial = unplaced(READY.demand, a_vm("v"), a_vm("w"), *(a_vm(one, "g") for one in there))
        with NovaPipeline(begin=beginning(tmp_path, body)) as nova:
            verdict = judge(nova, trial)
        assert (verdict.outcome, verdict.harm) == (Outcome.UNDER, harm)

    def test_a_crash_is_told(self, tmp_path: Path) -> None:
        body = "return {'answers': [{'crash': 'KeyError (here)'}]}"
        with NovaPipeline(begin=beginning(tmp_path, body)) as nova:
            assert judge(nova, READY).message == "KeyError (here)"

    def test_what_nova_reads_otherwise_is_no_plan(self, tmp_path: Path) -> None:
        body = "return {'answers': [{'placed': {}}]}"
        with NovaPipeline(begin=beginning(tmp_path, body)) as nova:
            odd = unplaced(LARGE.demand, a_vm("v", labels={"size": ">= 4"}))
            assert judge(nova, odd).message == "Nova reads '>= 4' as a comparison"

    @pytest.mark.parametrize("said", ["{}", "{'placed': []}", "1"])
    def test_nonsense_is_not_believed(self, tmp_path: Path, said: str) -> None:
        with (
            NovaPipeline(begin=beginning(tmp_path, f"return {{'answers': [{said}]}}")) as nova,
            pytest.raises(WorldError, match="answered nonsense"),
        ):
            nova.plan(READY)


def test_a_question_that_cannot_be_put_is_no_crash_of_nova(tmp_path: Path) -> None:
    with (
        Nova(begin=beginning(tmp_path, "raise KeyError('vm')")) as nova,
        pytest.raises(WorldError, match="cannot put a question: KeyError: 'vm'"),
    ):
        nova.accepts(LIMITS[1])


def test_without_its_environment_there_is_no_nova(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_TARGETS", str(tmp_path))
    with pytest.raises(MissingTarget, match=r"run 'python -m equipoise.fuzz.targets nova'"):
        Nova()


@pytest.mark.parametrize("said", ["{}", "{'answers': []}", "{'answers': [{}]}", "{'answers': [1]}"])
def test_a_worker_that_talks_nonsense_is_not_believed(tmp_path: Path, said: str) -> None:
    with (
        beginning(tmp_path, f"return {said}")() as worker,
        pytest.raises(WorldError, match="answered nonsense"),
    ):
        worker.admits([{"config": {}}])


def test_a_worker_tells_which_of_many_hosts_pass(tmp_path: Path) -> None:
    body = "return {'answers': [{'passes': [True, False]}, {'crash': 'alas'}]}"
    with beginning(tmp_path, body)() as worker:
        said = worker.admits([{"config": {}}, {"config": {}}])
        assert said == ((True, False), Crashed("alas"))
        assert not worker.is_late
