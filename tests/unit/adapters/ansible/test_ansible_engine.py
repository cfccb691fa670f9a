"""Schedules become runs of playbooks, and the engine answers every task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import facts
from equipoise.adapters.ansible import engine as ansible_engine
from equipoise.adapters.ansible.batch import PlaybookBatchResult
from equipoise.adapters.ansible.engine import (
    AnsibleConfig,
    AnsibleEngine,
    TaskResult,
    execute_batch,
)
from equipoise.adapters.ansible.job import HostConnection, JobOutcome, JobResult, PlaybookJob
from equipoise.adapters.ansible.playbooks import PlaybookPaths
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId, VmId
from equipoise.model.upgrade.catalog import ComponentId, ComponentOperation, Recipe
from equipoise.model.upgrade.event import (
    BatchEnded,
    BatchStarted,
    TaskFailed,
    TaskFinished,
    VmBatchStarted,
    VmMoved,
    VmMoveFailed,
)
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.work import (
    BatchId,
    TaskBatch,
    TaskKind,
    UpgradeTask,
    VertexId,
    VmBatch,
    VmMove,
    WorkItem,
)

RECIPE = Recipe(script="up.yaml", undo_script="undo.yaml", check_script="check.yaml")
SCRIPTS = PlaybookPaths(
    folder=Path("/c"),
    by_task={TaskKind.ISOLATE: Path("/a/isolate.yaml")},
    move=Path("/a/move.yaml"),
)
CONNECTIONS = {
    name: HostConnection(host=name, address=name, port=22) for name in ("h1", "h2", "h3")
}


def a_work(component: str = "agent", **more: object) -> WorkItem:
    work = WorkItem(
        set=SetId("s"),
        component=ComponentId(component),
        does=ComponentOperation.UPGRADE,
        before="1.0",
        after="2.0",
        recipe=RECIPE,
    )
    return work.but(**more)


def a_task(
    resource: str, kind: TaskKind = TaskKind.APPLY, *works: WorkItem, vertex: str | None = None
) -> UpgradeTask:
    return UpgradeTask(
        resource=ResourceId(resource),
        vertex=VertexId(vertex or resource),
        kind=kind,
        works=works or (a_work(),),
        host=HostId(resource),
    )


def a_batch(*stages: Sequence[UpgradeTask], name: str = "b1") -> TaskBatch:
    return TaskBatch(id=BatchId(name), stages=tuple(tuple(stage) for stage in stages))


class FakeRunner:
    """Runs no playbook: records the jobs, and fails on the hosts that a test names."""

    def __init__(self, **bad: JobOutcome) -> None:
        self.bad, self.runs = bad, list[list[PlaybookJob]]()

    def __call__(self, jobs: Sequence[PlaybookJob]) -> list[JobResult]:
        self.runs.append(list(jobs))
        return [
            JobResult(
                job=job,
                outcome=self.bad.get(job.host, JobOutcome.DONE),
                reason="" if job.host not in self.bad else "a step failed",
            )
            for job in jobs
        ]

    @property
    def played(self) -> list[list[str]]:
        return [[f"{job.host} {job.playbook.name}" for job in run] for run in self.runs]


def answers(batch: TaskBatch, runner: FakeRunner) -> list[TaskResult]:
    results: list[TaskResult] = []
    execute_batch(
        batch, AnsibleConfig(playbooks=SCRIPTS, connections=CONNECTIONS), {}, runner, results.append
    )
    return results


def test_one_run_executes_all_hosts_of_a_stage() -> None:
    runner = FakeRunner(h2=JobOutcome.FAILED)
    batch = a_batch(
        [a_task("h1"), a_task("h2"), a_task("h3")],
        [a_task(name, TaskKind.CHECK) for name in ("h1", "h2", "h3")],
    )
    results = answers(batch, runner)
    assert runner.played == [
        ["h1 up.yaml", "h2 up.yaml", "h3 up.yaml"],
        ["h1 check.yaml", "h3 check.yaml"],
    ]
    assert [
        (result.subject.resource, result.reason)
        for result in results
        if isinstance(result.subject, UpgradeTask)
    ] == [
        ("h2", "failed: a step failed"),
        ("h1", ""),
        ("h3", ""),
        ("h1", ""),
        ("h3", ""),
    ]


def test_works_run_in_order_and_are_reverted_as_listed() -> None:
    works = (a_work("a"), a_work("b", undoing=True, before="5", after="4"))
    runner = FakeRunner()
    answers(a_batch([a_task("h1", TaskKind.APPLY, *works)]), runner)
    answers(a_batch([a_task("h1", TaskKind.REVERT, *reversed(works))]), runner)
    results = [
        (job.playbook.name, *(job.variables[f"equipoise_{key}"] for key in ("from", "to")))
        for run in runner.runs
        for job in run
    ]
    assert results == [
        ("up.yaml", "1.0", "2.0"),
        ("undo.yaml", "5", "4"),
        ("up.yaml", "4", "5"),
        ("undo.yaml", "2.0", "1.0"),
    ]


def test_a_failure_reports_the_number_of_complete_works() -> None:
    class Second(FakeRunner):
        def __call__(self, jobs: Sequence[PlaybookJob]) -> list[JobResult]:
            if self.runs:
                self.bad["h1"] = JobOutcome.UNKNOWN
            return super().__call__(jobs)

    (results,) = answers(a_batch([a_task("h1", TaskKind.APPLY, a_work(), a_work())]), Second())
    assert (results.done, results.reason) == (1, "unknown: a step failed")


@pytest.mark.parametrize("kind", [TaskKind.ACTIVATE, TaskKind.LINK_OFF, TaskKind.LINK_ON])
def test_switching_without_a_playbook_fails(kind: TaskKind) -> None:
    (result,) = answers(a_batch([a_task("h1", kind)]), FakeRunner())
    assert (result.code, f"task_playbooks.{kind}" in result.reason) == ("no-playbook", True)


def test_a_task_without_a_playbook_does_nothing_except_work_which_fails() -> None:
    runner = FakeRunner()
    bare = a_work(recipe=Recipe())
    results = answers(
        a_batch(
            [a_task("h1", TaskKind.RELEASE), a_task("h2", TaskKind.ISOLATE)],
            [a_task("h1", TaskKind.CHECK, bare), a_task("h3", TaskKind.APPLY, bare)],
        ),
        runner,
    )
    assert runner.played == [["h2 isolate.yaml"]]
    assert [result.reason for result in results] == [
        "",
        "",
        "",
        "the catalog names no playbook to upgrade agent (script)",
    ]
    assert not results[-1].is_begun


def test_work_by_hand_runs_only_its_check() -> None:
    runner = FakeRunner()
    work = a_work(recipe=Recipe(by_hand=True, check_script="look.yaml"))
    answers(a_batch([a_task("h1", TaskKind.APPLY, work)]), runner)
    assert runner.played == [["h1 look.yaml"]]


def test_a_resource_without_a_connection_fails() -> None:
    (results,) = answers(a_batch([a_task("h9")]), FakeRunner())
    assert (results.code, facts(results.reason)) == ("no-playbook", ["h9"])


TASKS = st.builds(
    lambda host, kind, vertex: a_task(host, kind, vertex=vertex),
    st.sampled_from(("h1", "h2", "h3", "h9")),
    st.sampled_from(TaskKind),
    st.sampled_from(("v1", "v2")),
)


@given(
    st.lists(st.lists(TASKS, max_size=4), max_size=3),
    st.dictionaries(st.sampled_from(("h1", "h2")), st.sampled_from(list(JobOutcome)[1:])),
)
def test_each_task_is_answered_once_in_the_order_of_its_vertex_until_one_fails(
    stages: list[list[UpgradeTask]], bad: dict[str, JobOutcome]
) -> None:
    results = answers(a_batch(*stages), FakeRunner(**bad))
    for vertex in ("v1", "v2"):
        wanted = [task for stage in stages for task in stage if task.vertex == vertex]
        found = [
            result
            for result in results
            if isinstance(result.subject, UpgradeTask) and result.subject.vertex == vertex
        ]
        assert [result.subject for result in found] == wanted[: len(found)]
        assert all(not entry.reason for entry in found[:-1])
        assert len(found) == len(wanted) or found[-1].reason


@pytest.fixture(name="runner")
def fixture_player(monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    runner = FakeRunner(h2=JobOutcome.UNREACHABLE)
    monkeypatch.setattr(
        ansible_engine,
        "perform",
        lambda jobs, *_more: PlaybookBatchResult(results=tuple(runner(jobs))),
    )
    return runner


def an_engine(playbooks: PlaybookPaths = SCRIPTS) -> AnsibleEngine:
    return AnsibleEngine(
        AnsibleConfig(playbooks=playbooks, connections=CONNECTIONS), clock_ms=lambda: 7
    )


def test_the_engine_answers_a_repeated_batch_without_executing_it(
    runner: FakeRunner,
) -> None:
    engine = an_engine()
    batch = a_batch([a_task("h1"), a_task("h2")])
    for _again in range(2):
        engine.perform(batch)
        failed, finished, ended = (engine.next_event(None) for _ in range(3))
        assert isinstance(failed, TaskFailed)
        assert (failed.resource, failed.unreachable, failed.at_ms) == ("h2", True, 7)
        assert failed.code == "host-unreachable"
        assert failed.begun, "the coordinator must revert what a failed playbook has done"
        assert isinstance(finished, TaskFinished)
        assert ended == BatchEnded(at_ms=7, batch=BatchId("b1"))
    assert len(runner.runs) == 1
    assert engine.next_event(None) is None, "there will never be one"
    assert engine.next_event(7) is None


def test_vms_move_in_parallel_with_a_move_playbook(runner: FakeRunner) -> None:
    moves = tuple(
        VmMove(vm=VmId(f"v{number}"), source=HostId(source), target=HostId("h3"))
        for number, source in enumerate(("h1", "h2", "h9"))
    )
    engine = an_engine()
    engine.perform(VmBatch(id=BatchId("m1"), moves=moves))
    events = [engine.next_event(None) for _ in range(4)]
    assert [type(event) for event in events] == [VmMoveFailed, VmMoved, VmMoveFailed, BatchEnded]
    assert runner.played == [["h1 move.yaml", "h2 move.yaml"]]
    assert runner.runs[0][0].variables["equipoise_target"] == "h3"
    bare = an_engine(PlaybookPaths(folder=Path("/c")))
    bare.perform(VmBatch(id=BatchId("m1"), moves=moves[:1]))
    failed = bare.next_event(None)
    assert isinstance(failed, VmMoveFailed)
    assert failed.code == "no-playbook"
    assert "task_playbooks.move" in failed.reason


def test_a_bug_in_the_thread_is_raised_in_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> PlaybookBatchResult:
        raise AssertionError("a bug")

    monkeypatch.setattr(ansible_engine, "perform", broken)
    engine = an_engine()
    engine.perform(a_batch([a_task("h1")]))
    with pytest.raises(AssertionError, match="a bug"):
        engine.next_event(None)
    engine.stop()


def test_answered_tasks_do_not_run_again_after_a_crash(runner: FakeRunner) -> None:
    batch = a_batch([a_task("h1"), a_task("h2"), a_task("h3")], [a_task("h1", TaskKind.CHECK)])
    before: list[Event] = [
        BatchStarted(at_ms=5000, batch=batch),
        TaskFinished(at_ms=6000, batch=batch.id, resource=ResourceId("h1"), kind=TaskKind.APPLY),
        TaskFailed(
            at_ms=6000,
            batch=batch.id,
            resource=ResourceId("h2"),
            kind=TaskKind.APPLY,
            begun=True,
            reason="a step failed",
            code="playbook-failed",
        ),
    ]
    engine = an_engine()
    for event in before:
        engine.on_event(event)
    engine.perform(batch)
    events = [engine.next_event(None) for _ in range(5)]
    assert before[2] in events, "it is answered again, at the time of the journal"
    assert runner.played == [["h3 up.yaml"], ["h1 check.yaml"]]
    assert engine.next_event(5999) is None


def test_a_vm_that_had_moved_before_a_crash_is_not_moved_again(runner: FakeRunner) -> None:
    moves = tuple(
        VmMove(vm=VmId(f"v{number}"), source=HostId(f"h{number}"), target=HostId("h3"))
        for number in (1, 2, 3)
    )
    batch = VmBatch(id=BatchId("m1"), moves=moves)
    runner.bad = {}
    engine = an_engine()
    engine.on_event(VmBatchStarted(at_ms=5000, batch=batch))
    engine.on_event(VmMoved(at_ms=6000, batch=batch.id, vm=VmId("v1")))
    engine.on_event(VmMoveFailed(at_ms=6000, batch=batch.id, vm=VmId("v2"), reason="no capacity"))
    engine.perform(batch)
    moved, failed, other, _ = [engine.next_event(None) for _ in range(4)]
    assert isinstance(moved, VmMoved)
    assert isinstance(failed, VmMoveFailed)
    assert failed.reason == "no capacity"
    assert isinstance(other, VmMoved)
    assert runner.played == [["h3 move.yaml"]]
