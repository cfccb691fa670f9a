"""Schedules become runs of playbooks, and every task is answered as the port says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.hosts.ansible import engine as room
from equipoise.hosts.ansible.batch import Report
from equipoise.hosts.ansible.engine import AnsibleEngine
from equipoise.hosts.ansible.scripts import Scripts
from equipoise.hosts.ansible.stages import Answer, Equipment, carry_out
from equipoise.hosts.ansible.words import Chore, Outcome, Verdict, Way
from equipoise.model.event import Event
from equipoise.model.quantity import HostId, ResourceId, VmId
from equipoise.model.upgrade.catalog import ComponentId, Doing, Recipe
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
    Batch,
    BatchId,
    Errand,
    Task,
    VertexId,
    VmBatch,
    VmMove,
    Work,
)

RECIPE = Recipe(script="up.yaml", undo_script="undo.yaml", check_script="check.yaml")
SCRIPTS = Scripts(
    folder=Path("/c"), errands={Errand.ISOLATE: Path("/a/isolate.yaml")}, move=Path("/a/move.yaml")
)
WAYS = {name: Way(host=name, address=name, port=22) for name in ("h1", "h2", "h3")}


def a_work(component: str = "agent", **more: object) -> Work:
    work = Work(
        set=SetId("s"),
        component=ComponentId(component),
        does=Doing.UPGRADE,
        before="1.0",
        after="2.0",
        recipe=RECIPE,
    )
    return work.but(**more)


def a_task(
    resource: str, errand: Errand = Errand.APPLY, *works: Work, vertex: str | None = None
) -> Task:
    return Task(
        resource=ResourceId(resource),
        vertex=VertexId(vertex or resource),
        errand=errand,
        works=works or (a_work(),),
        host=HostId(resource),
    )


def a_batch(*stages: Sequence[Task], name: str = "b1") -> Batch:
    return Batch(id=BatchId(name), stages=tuple(tuple(stage) for stage in stages))


class Player:
    """Plays nothing, remembers what it was asked, and fails where it is told to."""

    def __init__(self, **bad: Outcome) -> None:
        self.bad, self.runs = bad, list[list[Chore]]()

    def __call__(self, chores: Sequence[Chore]) -> list[Verdict]:
        self.runs.append(list(chores))
        return [
            Verdict(
                chore=chore,
                outcome=self.bad.get(chore.host, Outcome.DONE),
                reason="" if chore.host not in self.bad else "so it is",
            )
            for chore in chores
        ]

    @property
    def played(self) -> list[list[str]]:
        return [[f"{chore.host} {chore.playbook.name}" for chore in run] for run in self.runs]


def answers(batch: Batch, player: Player) -> list[Answer]:
    told: list[Answer] = []
    carry_out(batch, Equipment(scripts=SCRIPTS, ways=WAYS), {}, player, told.append)
    return told


def test_all_hosts_of_a_stage_are_done_in_one_run() -> None:
    player = Player(h2=Outcome.FAILED)
    batch = a_batch(
        [a_task("h1"), a_task("h2"), a_task("h3")],
        [a_task(name, Errand.CHECK) for name in ("h1", "h2", "h3")],
    )
    told = answers(batch, player)
    assert player.played == [
        ["h1 up.yaml", "h2 up.yaml", "h3 up.yaml"],
        ["h1 check.yaml", "h3 check.yaml"],
    ]
    assert [
        (one.subject.resource, one.reason) for one in told if isinstance(one.subject, Task)
    ] == [
        ("h2", "failed: so it is"),
        ("h1", ""),
        ("h3", ""),
        ("h1", ""),
        ("h3", ""),
    ]


def test_works_come_one_after_the_other_and_are_taken_back_as_they_are_named() -> None:
    works = (a_work("a"), a_work("b", undoing=True, before="5", after="4"))
    player = Player()
    answers(a_batch([a_task("h1", Errand.APPLY, *works)]), player)
    answers(a_batch([a_task("h1", Errand.REVERT, *reversed(works))]), player)
    told = [
        (chore.playbook.name, *(chore.variables[f"equipoise_{key}"] for key in ("from", "to")))
        for run in player.runs
        for chore in run
    ]
    assert told == [
        ("up.yaml", "1.0", "2.0"),
        ("undo.yaml", "5", "4"),
        ("up.yaml", "4", "5"),
        ("undo.yaml", "2.0", "1.0"),
    ]


def test_how_many_works_were_done_before_a_failure_is_told() -> None:
    class Second(Player):
        def __call__(self, chores: Sequence[Chore]) -> list[Verdict]:
            if self.runs:
                self.bad["h1"] = Outcome.UNKNOWN
            return super().__call__(chores)

    (told,) = answers(a_batch([a_task("h1", Errand.APPLY, a_work(), a_work())]), Second())
    assert (told.done, told.reason) == (1, "unknown: so it is")


def test_what_has_no_playbook_is_done_by_nothing_unless_it_is_work() -> None:
    player = Player()
    bare = a_work(recipe=Recipe())
    told = answers(
        a_batch(
            [a_task("h1", Errand.DEACTIVATE), a_task("h2", Errand.ISOLATE)],
            [a_task("h1", Errand.CHECK, bare), a_task("h3", Errand.APPLY, bare)],
        ),
        player,
    )
    assert player.played == [["h2 isolate.yaml"]]
    assert [one.reason for one in told] == [
        "",
        "",
        "",
        "the catalog names no playbook to upgrade agent (script)",
    ]
    assert not told[-1].is_begun


def test_what_is_done_by_hand_is_only_looked_at() -> None:
    player = Player()
    work = a_work(recipe=Recipe(by_hand=True, check_script="look.yaml"))
    answers(a_batch([a_task("h1", Errand.APPLY, work)]), player)
    assert player.played == [["h1 look.yaml"]]


def test_a_resource_to_which_no_way_leads_has_failed() -> None:
    (told,) = answers(a_batch([a_task("h9")]), Player())
    assert told.reason == "the access file knows no way to h9 (hosts)"


TASKS = st.builds(
    lambda host, errand, vertex: a_task(host, errand, vertex=vertex),
    st.sampled_from(("h1", "h2", "h3", "h9")),
    st.sampled_from(Errand),
    st.sampled_from(("v1", "v2")),
)


@given(
    st.lists(st.lists(TASKS, max_size=4), max_size=3),
    st.dictionaries(st.sampled_from(("h1", "h2")), st.sampled_from(list(Outcome)[1:])),
)
def test_each_task_is_answered_once_in_the_order_of_its_vertex_until_one_fails(
    stages: list[list[Task]], bad: dict[str, Outcome]
) -> None:
    told = answers(a_batch(*stages), Player(**bad))
    for vertex in ("v1", "v2"):
        wanted = [task for stage in stages for task in stage if task.vertex == vertex]
        found = [
            one for one in told if isinstance(one.subject, Task) and one.subject.vertex == vertex
        ]
        assert [one.subject for one in found] == wanted[: len(found)]
        assert all(not one.reason for one in found[:-1])
        assert len(found) == len(wanted) or found[-1].reason


@pytest.fixture(name="player")
def fixture_player(monkeypatch: pytest.MonkeyPatch) -> Player:
    player = Player(h2=Outcome.UNREACHABLE)
    monkeypatch.setattr(
        room, "perform", lambda chores, *_more: Report(verdicts=tuple(player(chores)))
    )
    return player


def an_engine(scripts: Scripts = SCRIPTS) -> AnsibleEngine:
    return AnsibleEngine(Equipment(scripts=scripts, ways=WAYS), clock_ms=lambda: 7)


def test_the_engine_answers_each_task_and_the_batch_and_does_not_do_it_twice(
    player: Player,
) -> None:
    engine = an_engine()
    batch = a_batch([a_task("h1"), a_task("h2")])
    for _again in range(2):
        engine.perform(batch)
        failed, finished, ended = (engine.next_event(None) for _ in range(3))
        assert isinstance(failed, TaskFailed)
        assert (failed.resource, failed.unreachable, failed.at_ms) == ("h2", True, 7)
        assert failed.begun, "what a failed playbook has done must be taken back"
        assert isinstance(finished, TaskFinished)
        assert ended == BatchEnded(at_ms=7, batch=BatchId("b1"))
    assert len(player.runs) == 1
    assert engine.next_event(None) is None, "there will never be one"
    assert engine.next_event(7) is None


def test_vms_move_side_by_side_if_there_is_a_playbook_for_it(player: Player) -> None:
    moves = tuple(
        VmMove(vm=VmId(f"v{number}"), source=HostId(source), target=HostId("h3"))
        for number, source in enumerate(("h1", "h2", "h9"))
    )
    engine = an_engine()
    engine.perform(VmBatch(id=BatchId("m1"), moves=moves))
    events = [engine.next_event(None) for _ in range(4)]
    assert [type(event) for event in events] == [VmMoveFailed, VmMoved, VmMoveFailed, BatchEnded]
    assert player.played == [["h1 move.yaml", "h2 move.yaml"]]
    assert player.runs[0][0].variables["equipoise_target"] == "h3"
    bare = an_engine(Scripts(folder=Path("/c")))
    bare.perform(VmBatch(id=BatchId("m1"), moves=moves[:1]))
    failed = bare.next_event(None)
    assert isinstance(failed, VmMoveFailed)
    assert failed.reason == "the access file names no playbook that moves a VM (move)"


def test_a_bug_is_raised_where_somebody_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object) -> Report:
        raise AssertionError("a bug")

    monkeypatch.setattr(room, "perform", broken)
    engine = an_engine()
    engine.perform(a_batch([a_task("h1")]))
    with pytest.raises(AssertionError, match="a bug"):
        engine.next_event(None)
    engine.stop()


def test_what_was_answered_before_a_crash_is_not_done_again(player: Player) -> None:
    batch = a_batch([a_task("h1"), a_task("h2"), a_task("h3")], [a_task("h1", Errand.CHECK)])
    before: list[Event] = [
        BatchStarted(at_ms=5000, batch=batch),
        TaskFinished(at_ms=6000, batch=batch.id, resource=ResourceId("h1"), errand=Errand.APPLY),
        TaskFailed(
            at_ms=6000,
            batch=batch.id,
            resource=ResourceId("h2"),
            errand=Errand.APPLY,
            begun=True,
            reason="so it was",
        ),
    ]
    engine = an_engine()
    for event in before:
        engine.witness(event)
    engine.perform(batch)
    events = [engine.next_event(None) for _ in range(5)]
    assert before[2] in events, "it is answered again, at the time of the journal"
    assert player.played == [["h3 up.yaml"], ["h1 check.yaml"]]
    assert engine.next_event(5999) is None


def test_a_vm_that_had_moved_before_a_crash_is_not_moved_again(player: Player) -> None:
    moves = tuple(
        VmMove(vm=VmId(f"v{number}"), source=HostId(f"h{number}"), target=HostId("h3"))
        for number in (1, 2, 3)
    )
    batch = VmBatch(id=BatchId("m1"), moves=moves)
    player.bad = {}
    engine = an_engine()
    engine.witness(VmBatchStarted(at_ms=5000, batch=batch))
    engine.witness(VmMoved(at_ms=6000, batch=batch.id, vm=VmId("v1")))
    engine.witness(VmMoveFailed(at_ms=6000, batch=batch.id, vm=VmId("v2"), reason="it would not"))
    engine.perform(batch)
    moved, failed, other, _ = [engine.next_event(None) for _ in range(4)]
    assert isinstance(moved, VmMoved)
    assert isinstance(failed, VmMoveFailed)
    assert failed.reason == "it would not"
    assert isinstance(other, VmMoved)
    assert player.played == [["h3 move.yaml"]]
