"""Makes the engine of a campaign by its name: simulated, simulated at a pace, or Ansible.

Also checks that a journal belongs to the campaign that is resumed or commanded.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from time import perf_counter, sleep
from typing import Final

from equipoise.api.loading import read_bytes
from equipoise.control.ports import UpgradeEngine
from equipoise.errors import Conflict, InvalidInput
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.event import CampaignStarted
from equipoise.model.upgrade.work import TaskBatch, VmBatch
from equipoise.sim.plugins import load_engine
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import Journal

COMMAND_POLL_S: Final = 0.2
"""Real time between two reads of the command queue."""


class PacedEngine:
    """Runs virtual time at a fixed multiple of real time; events are those of the engine."""

    def __init__(self, engine: SimulatedEngine, pace: float) -> None:
        self._engine = engine
        self._pace = pace
        self._began_s = perf_counter()
        self._ahead_ms = 0
        """Virtual time at which an earlier run ended."""

    def perform(self, schedule: TaskBatch | VmBatch) -> None:
        """Start the tasks of a batch."""
        self._engine.perform(schedule)

    def next_event(self, until_ms: int | None) -> Event | None:
        """Wait for the next event, in real time."""
        times = [at_ms for at_ms in (until_ms, self._engine.due_ms()) if at_ms is not None]
        if times:
            sleep(max(0.0, (min(times) - self._clock_ms()) / 1000 / self._pace))
        return self._engine.next_event(until_ms)

    def on_event(self, event: Event) -> None:
        """Handle an event; an event of an earlier run sets the clock forward."""
        self._ahead_ms += max(0, event.at_ms - self._clock_ms())
        self._engine.on_event(event)

    def now_ms(self) -> int:
        """Return the virtual time, never later than the next event."""
        due_ms = self._engine.due_ms()
        return self._clock_ms() if due_ms is None else min(due_ms, self._clock_ms())

    def poll_ms(self) -> int:
        """Return the virtual time between two reads of the command queue."""
        return max(1, round(1000 * COMMAND_POLL_S * self._pace))

    def is_idle(self) -> bool:
        """Return whether no event follows without a new task."""
        return self._engine.due_ms() is None

    def _clock_ms(self) -> int:
        return round(1000 * (perf_counter() - self._began_s) * self._pace) + self._ahead_ms


ANSIBLE: Final = "ansible"
"""Not an entry point, because it needs the folder of the campaign and the access file."""


def make_engine(
    name: str,
    campaign: UpgradeCampaign,
    source: str,
    access: Path | None,
    logs: Path | None = None,
) -> UpgradeEngine:
    """Return an engine by its name; ``source`` is the campaign argument of the command line."""
    if name != ANSIBLE:
        if access is not None:
            what = f"the engine {name} needs no access file"
            raise option_conflict("--access", what, f"use it with --engine {ANSIBLE}")
        if logs is not None:
            what = f"the engine {name} writes no logs of hosts"
            raise option_conflict("--logs", what, f"use it with --engine {ANSIBLE}")
        return load_engine(name, campaign, also=(ANSIBLE,))
    if access is None:
        raise option_conflict("--access", "is missing", "name the access file of the hosts")
    return _ansible_engine(campaign, source, access, logs)


def _ansible_engine(
    campaign: UpgradeCampaign, source: str, access: Path, logs: Path | None
) -> UpgradeEngine:
    from equipoise.adapters.access_file import FileContext
    from equipoise.adapters.ansible.access import parse_access
    from equipoise.adapters.ansible.preflight import engine_for

    began_ms = time.monotonic_ns() // 1_000_000
    engine = engine_for(
        campaign,
        FileContext(source=source, folder=Path(source).parent, environ=os.environ),
        parse_access(read_bytes(access), str(access)),
        FileContext(source=str(access), folder=access.parent, environ=os.environ),
        lambda: time.monotonic_ns() // 1_000_000 - began_ms,
    )
    if logs is not None:
        engine.log_to(logs)
    return engine


def option_conflict(option: str, what: str, cure: str) -> InvalidInput:
    """Return the error about options that contradict each other."""
    return InvalidInput.of(option, what, cure=cure, code="option-conflict")


def campaign_began(journal: Journal) -> CampaignStarted:
    """Return the first event of an upgrade journal."""
    first = next(journal.events(), None)
    if not isinstance(first, CampaignStarted):
        raise _refusal(journal.source, "is not the journal of an upgrade", "name another journal")
    return first


def check_resumable(journal: Journal, campaign: UpgradeCampaign, name: str, engine: str) -> None:
    """Reject another campaign or another engine than the journal started with.

    An engine does not know the actions of another one, least of all of the simulator.
    """
    if not len(journal):
        return
    began = campaign_began(journal)
    if began.engine not in ("", engine):
        what = f"the campaign of {journal.source} started with the engine {began.engine}"
        raise _refusal("--engine", what, f"use --engine {began.engine} or another journal")
    different = [
        field
        for field in UpgradeCampaign.__struct_fields__
        if getattr(began.campaign, field) != getattr(campaign, field)
    ]
    if different:
        what = f"is not the campaign of {journal.source}: {', '.join(different)} differ"
        cure = "use the original campaign; add changes with --request"
        raise _refusal(name, what, cure)


def check_same_campaign(journal: Journal, campaign: UpgradeCampaign, name: str) -> None:
    """Reject commands to the run of another campaign."""
    if not len(journal):
        raise Conflict(f"{journal.source}: another process is starting a run; try again")
    began = campaign_began(journal)
    if began.campaign.name != campaign.name:
        what = f"{journal.source} is the journal of the campaign {began.campaign.name}"
        raise _refusal(name, what, "name that campaign")


def _refusal(source: str, what: str, cure: str) -> InvalidInput:
    return InvalidInput.of(source, what, cure=cure, code="journal-mismatch")
