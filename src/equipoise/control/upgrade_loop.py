"""The loop of an upgrade: events to the journal and the coordinator, decisions to the engine.

A decision is in the journal before the engine receives it. A loop that starts on a journal with
events continues where the last one stopped. Commands of administrators come from a second
journal: each is recorded once, with its number and the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from equipoise.control.ports import EventLog, InventorySource, RealTimeEngine, UpgradeEngine
from equipoise.errors import WorldError
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.event import (
    SIMULATED_ENGINE,
    CampaignContinued,
    CampaignStarted,
    UpgradeCommanded,
    UpgradeRequested,
)
from equipoise.model.upgrade.wall_clock import parse_instant
from equipoise.roles.removal import check_removal
from equipoise.upgrade import Coordinator, instruction
from equipoise.upgrade.inventory_view import is_complete
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.iteration import IterationPhase
from equipoise.upgrade.vms.observed import observed_events

UpgradeListener = Callable[[Event, UpgradeState], object]
OBSERVE_EVERY_MS: Final = 30_000
"""Time between two observations of the real cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What a run knows about the outside."""

    engine_name: str = SIMULATED_ENGINE
    unix_ms: int | None = None
    """The present date; without it a simulation has the date of its scenario."""
    source: InventorySource | None = None
    """Observes the real cluster while an engine in real time works."""
    listener: UpgradeListener | None = None
    """Receives each event after it is applied."""


class UpgradeLoop:
    """One campaign with one engine and one journal."""

    def __init__(
        self,
        engine: UpgradeEngine,
        journal: EventLog,
        campaign: UpgradeCampaign,
        commands: EventLog | None = None,
        context: RunContext | None = None,
    ) -> None:
        """Start or continue a campaign.

        ``commands`` is the journal to which administrators post commands and requests.
        """
        context = context or RunContext()
        unix_ms, engine_name = context.unix_ms, context.engine_name
        self._source, self._listener = context.source, context.listener
        self._observed_ms: int | None = None
        """The time of the last observation of the real cluster."""
        self._engine = engine
        self._journal = journal
        self._commands = commands
        self._commands_recorded = 0
        """The number of posted commands that are in the journal of the run."""
        self.coordinator = Coordinator(check_removal)
        self._now_ms = 0
        if len(journal):
            self._recover(unix_ms)
        else:
            starts_at = campaign.simulation.starts_at
            if unix_ms is None and starts_at is not None:
                unix_ms = parse_instant(starts_at)
            # In one append: a crash in between would leave a campaign without requests, which is
            # complete at once.
            started = CampaignStarted(
                at_ms=0, campaign=campaign, engine=engine_name, began_unix_ms=unix_ms
            )
            requests = (UpgradeRequested(at_ms=0, request=request) for request in campaign.requests)
            self._record(started, *requests)

    def _recover(self, unix_ms: int | None) -> None:
        """Apply the recorded events, and send the open schedule to the engine again."""
        for event in self._journal.events():
            self.coordinator.handle(event)
            self._engine.on_event(event)
            self._now_ms = max(self._now_ms, event.at_ms)
            if isinstance(event, UpgradeCommanded | UpgradeRequested):
                # Requests of the campaign file have the number 0 and do not count.
                self._commands_recorded = max(self._commands_recorded, event.number)
        self._continue(unix_ms)
        schedule = self.coordinator.state.iteration.open_batch
        if schedule is not None:
            self._engine.perform(schedule.schedule)

    def _continue(self, unix_ms: int | None) -> None:
        """Record that the clock has gone on since the last run, unless the campaign is complete."""
        state = self.coordinator.state
        began_ms = state.began_unix_ms
        if unix_ms is None or began_ms is None or is_complete(state):
            return
        # The clock of this machine may be behind the journal, whose times never go back.
        self._record(CampaignContinued(at_ms=max(self._now_ms, unix_ms - began_ms)))

    def run(
        self,
        wait: Callable[[UpgradeState], bool] = lambda _state: False,
        between_iterations: Callable[[UpgradeState], None] = lambda _state: None,
    ) -> None:
        """Run until the campaign ends, or until no event will ever come.

        When nothing is left to wait for, the loop calls ``wait``, which may wait for commands and
        returns whether the run continues. ``between_iterations`` may post commands.
        """
        while True:
            if self.coordinator.state.iteration.phase is IterationPhase.IDLE:
                between_iterations(self.coordinator.state)
            self._record_new_commands()
            if self.coordinator.ended:
                return
            if not self.step() and not wait(self.coordinator.state):
                self._record(self.coordinator.end_paused(self._now_ms))

    def step(self) -> bool:
        """Record one event: of the engine, a decision, or the next one that comes.

        Return ``False`` if there is nothing to wait for.
        """
        self._observe()
        # Events come before decisions, so that each decision knows all that has happened so far.
        event = self._engine.next_event(self._now_ms) or self.coordinator.decide(self._now_ms)
        if event is not None:
            self._record(event)
            return True
        until_ms = self._wait_limit_ms(self.coordinator.alarm_ms())
        event = self._engine.next_event(until_ms)
        if event is not None:
            self._record(event)
        elif until_ms is not None:
            self._now_ms = max(self._now_ms, until_ms)
        return event is not None or until_ms is not None

    def _observe(self) -> None:
        """Record what has changed in the real cluster since the last observation."""
        engine = self._engine
        if self._source is None or not isinstance(engine, RealTimeEngine):
            return
        now_ms = max(self._now_ms, engine.now_ms())
        if self._observed_ms is not None and now_ms < self._observed_ms + OBSERVE_EVERY_MS:
            return
        is_first, self._observed_ms = self._observed_ms is None, now_ms
        try:
            inventory = self._source.observe()
        except WorldError:
            # A run does not start blind. Later the last observation holds until the next one.
            if is_first:
                raise
            return
        changes = observed_events(self.coordinator.state, inventory, now_ms)
        if changes:
            self._record(*changes)

    def _wait_limit_ms(self, alarm_ms: int | None) -> int | None:
        """Return how long to wait for the engine: to the next alarm, or to the next poll."""
        engine = self._engine
        polls = self._commands is not None or self._source is not None
        if not polls or not isinstance(engine, RealTimeEngine):
            return alarm_ms
        # Nothing runs and no alarm is set: only a new command can continue the campaign.
        if alarm_ms is None and engine.is_idle():
            return None
        poll_ms = max(self._now_ms, engine.now_ms()) + engine.poll_ms()
        return poll_ms if alarm_ms is None else min(alarm_ms, poll_ms)

    def _record_new_commands(self) -> None:
        """Record the commands and requests that were posted since the last call."""
        if self._commands is None:
            return
        for event in self._commands.events(self._commands_recorded):
            assert isinstance(event, UpgradeCommanded | UpgradeRequested), "not a command"
            if isinstance(self._engine, RealTimeEngine):
                self._now_ms = max(self._now_ms, self._engine.now_ms())
            self._commands_recorded += 1
            self._record(event.but(at_ms=self._now_ms, number=self._commands_recorded))

    def _record(self, *events: Event) -> None:
        """Append events, then apply them and send schedules to the engine: never before."""
        self._journal.append(events)
        for event in events:
            self._now_ms = max(self._now_ms, event.at_ms)
            self.coordinator.handle(event)
            self._engine.on_event(event)
            schedule = instruction(event)
            if schedule is not None:
                self._engine.perform(schedule)
            if self._listener is not None:
                self._listener(event, self.coordinator.state)
