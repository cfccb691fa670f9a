"""The loop of an upgrade: events into the journal and the coordinator, decisions to the engine.

Nothing is asked of the engine before the decision is in the journal. A loop that starts on a
journal with events in it goes on where the last one stopped.
"""

from __future__ import annotations

from equipoise.control.ports import Engine, Journal
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.event import (
    BatchStarted,
    CampaignBegan,
    UpgradeCommanded,
    UpgradeRequested,
    VmBatchStarted,
)
from equipoise.model.upgrade.request import Command, Request
from equipoise.roles import may_leave
from equipoise.upgrade import Coordinator, instruction


class UpgradeLoop:
    """One campaign with one engine and one journal."""

    def __init__(self, engine: Engine, journal: Journal, campaign: Campaign) -> None:
        self._engine = engine
        self._journal = journal
        self.coordinator = Coordinator(may_leave)
        self._now_ms = 0
        if len(journal):
            self._recover()
        else:
            self._record(CampaignBegan(at_ms=0, campaign=campaign))
            for request in campaign.requests:
                self.request(request)

    @property
    def now_ms(self) -> int:
        """The time up to which things are known."""
        return self._now_ms

    def _recover(self) -> None:
        """Take in what was written down, and give the engine its open schedule again."""
        for event in self._journal.events():
            self.coordinator.handle(event)
            self._engine.witness(event)
            self._now_ms = max(self._now_ms, event.at_ms)
        schedule = self.coordinator.state.open
        if schedule is not None:
            self._engine.perform(schedule.schedule)

    def command(self, command: Command) -> None:
        """Take in what an administrator commands."""
        self._record(UpgradeCommanded(at_ms=self._now_ms, command=command))

    def request(self, request: Request) -> None:
        """Take in what an administrator asks for, at any time."""
        self._record(UpgradeRequested(at_ms=self._now_ms, request=request))

    def run(self) -> None:
        """Go on until the campaign has ended, or nothing more will ever happen."""
        while not self.coordinator.ended:
            if not self.step():
                self._record(self.coordinator.give_up(self._now_ms))

    def step(self) -> bool:
        """Take in or decide one thing, or wait for it. False if there is nothing to wait for."""
        happened = self._engine.next_event(self._now_ms)
        decided = self.coordinator.decide(self._now_ms) if happened is None else None
        if happened is not None or decided is not None:
            event = happened or decided
            assert event is not None
            self._record(event)
            return True
        alarm_ms = self.coordinator.alarm_ms()
        event = self._engine.next_event(alarm_ms)
        if event is not None:
            self._record(event)
        elif alarm_ms is not None:
            self._now_ms = max(self._now_ms, alarm_ms)
        return event is not None or alarm_ms is not None

    def _record(self, event: Event) -> None:
        self._journal.append([event])
        self._now_ms = max(self._now_ms, event.at_ms)
        self.coordinator.handle(event)
        self._engine.witness(event)
        if isinstance(event, BatchStarted | VmBatchStarted):
            schedule = instruction(event)
            assert schedule is not None
            self._engine.perform(schedule)
