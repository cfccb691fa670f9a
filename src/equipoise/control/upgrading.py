"""The loop of an upgrade: events into the journal and the coordinator, decisions to the engine.

Nothing is asked of the engine before the decision is in the journal. A loop that starts on a
journal with events in it goes on where the last one stopped. What administrators order meanwhile
comes from a second list, to which anybody may post: each order is taken over once, with its number
and the time, and is an event as any other from then on.
"""

from __future__ import annotations

from collections.abc import Callable

from equipoise.control.ports import Engine, Journal, Live
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.event import (
    SIMULATED,
    CampaignBegan,
    UpgradeCommanded,
    UpgradeRequested,
)
from equipoise.roles import may_leave
from equipoise.upgrade import Coordinator, instruction
from equipoise.upgrade.state import Phase, State


class UpgradeLoop:
    """One campaign with one engine and one journal."""

    def __init__(
        self,
        engine: Engine,
        journal: Journal,
        campaign: Campaign,
        orders: Journal | None = None,
        by: str = SIMULATED,
    ) -> None:
        """``by`` is the name of the engine; without a list of ``orders`` nobody gives any."""
        self._engine = engine
        self._journal = journal
        self._orders = orders
        self._taken_over = 0
        """How many orders are in the journal already."""
        self.coordinator = Coordinator(may_leave)
        self._now_ms = 0
        if len(journal):
            self._recover()
        else:
            # All at once: a campaign without its requests would be complete after a crash.
            asked = (UpgradeRequested(at_ms=0, request=one) for one in campaign.requests)
            self._record(CampaignBegan(at_ms=0, campaign=campaign, engine=by), *asked)

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
            if isinstance(event, UpgradeCommanded | UpgradeRequested):
                self._taken_over = max(self._taken_over, event.number)
        schedule = self.coordinator.state.open
        if schedule is not None:
            self._engine.perform(schedule.schedule)

    def run(
        self,
        wait: Callable[[State], bool] = lambda _state: False,
        attend: Callable[[State], None] = lambda _state: None,
    ) -> None:
        """Go on until the campaign has ended, or nothing more will ever happen.

        Where it would give up it asks ``wait``, which lets some time pass in which orders may come,
        and says whether they may. Between iterations ``attend`` may give orders at once.
        """
        while True:
            if self.coordinator.state.phase is Phase.IDLE:
                attend(self.coordinator.state)
            self._take_over_orders()
            if self.coordinator.ended:
                return
            if not self.step() and not wait(self.coordinator.state):
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
        until_ms = self._patience_ms(self.coordinator.alarm_ms())
        event = self._engine.next_event(until_ms)
        if event is not None:
            self._record(event)
        elif until_ms is not None:
            self._now_ms = max(self._now_ms, until_ms)
        return event is not None or until_ms is not None

    def _patience_ms(self, alarm_ms: int | None) -> int | None:
        """Until when to wait for the engine: to the next alarm, or until orders are looked for."""
        engine = self._engine
        if self._orders is None or not isinstance(engine, Live):
            return alarm_ms
        if alarm_ms is None and engine.is_idle():
            return None
        look_ms = max(self._now_ms, engine.now_ms()) + engine.look_ms()
        return look_ms if alarm_ms is None else min(alarm_ms, look_ms)

    def _take_over_orders(self) -> None:
        """Write down what was ordered since it was last looked for."""
        if self._orders is None:
            return
        for event in self._orders.events(self._taken_over):
            assert isinstance(event, UpgradeCommanded | UpgradeRequested), "nothing else is posted"
            if isinstance(self._engine, Live):
                self._now_ms = max(self._now_ms, self._engine.now_ms())
            self._taken_over += 1
            self._record(event.but(at_ms=self._now_ms, number=self._taken_over))

    def _record(self, *events: Event) -> None:
        self._journal.append(events)
        for event in events:
            self._now_ms = max(self._now_ms, event.at_ms)
            self.coordinator.handle(event)
            self._engine.witness(event)
            schedule = instruction(event)
            if schedule is not None:
                self._engine.perform(schedule)
