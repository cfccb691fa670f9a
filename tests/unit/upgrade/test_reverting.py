"""What a failed attempt has done is taken back: the works before, and the one that had begun."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest

from equipoise.control.upgrading import UpgradeLoop
from equipoise.model.event import Event
from equipoise.model.files import parse_campaign
from equipoise.model.upgrade.event import BatchEnded, BatchStarted, TaskFailed, TaskFinished
from equipoise.model.upgrade.work import Batch, Errand, VmBatch
from equipoise.store import MemoryJournal

EXAMPLE = Path(__file__).parents[3] / "examples" / "upgrade" / "campaign.yaml"


class FailsOnce:
    """Does everything at once, but the first attempt on one resource fails after it has begun."""

    def __init__(self, *, begun: bool) -> None:
        self._begun = begun
        self._heard: deque[Event] = deque()

    def perform(self, schedule: Batch | VmBatch) -> None:
        assert isinstance(schedule, Batch)
        for task in schedule.tasks:
            if task.resource == "greeter2" and task.errand is Errand.APPLY:
                failed = TaskFailed(
                    at_ms=0,
                    batch=schedule.id,
                    resource=task.resource,
                    errand=task.errand,
                    begun=self._begun,
                )
                self._heard.append(failed)
            else:
                finished = TaskFinished(
                    at_ms=0, batch=schedule.id, resource=task.resource, errand=task.errand
                )
                self._heard.append(finished)
        self._heard.append(BatchEnded(at_ms=0, batch=schedule.id))

    def next_event(self, until_ms: int | None) -> Event | None:
        return self._heard.popleft() if self._heard else None

    def witness(self, event: Event) -> None:
        """It makes no difference to it."""


@pytest.mark.parametrize("begun", [True, False])
def test_a_work_that_had_begun_is_taken_back_and_one_that_had_not_is_left(begun: bool) -> None:
    campaign = parse_campaign(EXAMPLE.read_bytes(), str(EXAMPLE))
    journal = MemoryJournal()
    UpgradeLoop(FailsOnce(begun=begun), journal, campaign).run()
    tasks = [
        task
        for event in journal.events()
        if isinstance(event, BatchStarted)
        for task in event.batch.tasks
        if task.errand is Errand.REVERT
    ]
    assert [(task.resource, [work.after for work in task.works]) for task in tasks] == (
        [("greeter2", ["2.0"])] if begun else []
    )


def test_what_was_changed_is_looked_at_once_if_the_catalog_says_how_and_is_not_watched() -> None:
    campaign = parse_campaign(EXAMPLE.read_bytes(), str(EXAMPLE))
    journal = MemoryJournal()
    UpgradeLoop(FailsOnce(begun=True), journal, campaign).run()
    checked = [
        event.resource
        for event in journal.events()
        if isinstance(event, TaskFinished) and event.errand is Errand.CHECK
    ]
    assert checked == ["greeter1", "greeter3"]
