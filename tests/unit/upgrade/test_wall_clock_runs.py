"""Campaigns with windows and dates: the date of a simulation, the next morning of a real run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from equipoise.control.upgrade_loop import RunContext, UpgradeLoop
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import UpgradeCampaign, UpgradeSimulation
from equipoise.model.upgrade.event import (
    BatchStarted,
    CampaignContinued,
    CampaignStarted,
    IterationEnded,
    SetEnded,
)
from equipoise.model.upgrade.request import MaintenanceWindow
from equipoise.model.upgrade.work import TaskKind
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from upgrade_clusters import a_campaign, a_host, a_request, a_set, switches, upgrade_of

NIGHT = "22:00-06:00 Europe/Berlin"
HOUR_MS = 3_600_000


def unix_ms(text: str) -> int:
    return round(1000 * datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def campaign(starts_at: str | None, **more: Any) -> UpgradeCampaign:
    made = a_campaign(
        a_request(a_set("net", upgrade_of(["s1"]), **more)),
        hosts=[a_host(1, 1)],
        resources=switches(1),
    )
    return made.but(simulation=UpgradeSimulation(starts_at=starts_at))


def run(
    made: UpgradeCampaign, now: str | None = None, journal: MemoryJournal | None = None
) -> list[Event]:
    journal = MemoryJournal() if journal is None else journal
    at_ms = None if now is None else unix_ms(now)
    UpgradeLoop(SimulatedEngine(made), journal, made, context=RunContext(unix_ms=at_ms)).run()
    return list(journal.events())


def of_type(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def applied_at(events: list[Event]) -> list[float]:
    return [
        event.at_ms / HOUR_MS
        for event in of_type(events, BatchStarted)
        if any(task.kind is TaskKind.APPLY for task in event.batch.tasks)
    ]


@pytest.mark.parametrize(
    ("starts_at", "hours"),
    [
        ("2026-11-19 12:00 Europe/Berlin", 10),
        ("2026-11-19 23:00 Europe/Berlin", 0),
        ("2026-11-19 12:00 UTC", 9),
        ("2026-03-29 01:30 Europe/Berlin", 0),
        ("2026-03-28 12:00 Europe/Berlin", 10),
        ("2026-03-29 06:00 Europe/Berlin", 16),
        ("2026-10-24 12:00 Europe/Berlin", 10),
        ("2026-10-25 06:00 Europe/Berlin", 16),
    ],
)
def test_a_simulation_has_the_date_of_its_scenario(starts_at: str, hours: float) -> None:
    assert applied_at(run(campaign(starts_at, windows=(NIGHT,)))) == [pytest.approx(hours)]


def test_the_reason_names_the_date_of_the_next_window() -> None:
    events = run(campaign("2026-11-20 12:00 Europe/Berlin", windows=("weekends 01:00-02:00 UTC",)))
    (waits,) = [event for event in of_type(events, IterationEnded) if event.paused]
    assert waits.codes == ("outside-window",)
    assert "2026-11-21 01:00 UTC" in waits.paused


def test_a_window_with_seconds_still_counts_from_the_start() -> None:
    both = (MaintenanceWindow(opens_s=100, closes_s=500), NIGHT)
    assert applied_at(run(campaign("2026-11-19 12:00 UTC", windows=both))) == [100 / 3600]


def test_a_set_with_dates_is_refused_in_a_run_without_a_date() -> None:
    (end,) = of_type(run(campaign(None, windows=(NIGHT,))), SetEnded)
    assert (end.outcome, end.code) == ("refused", "no-start-date")
    (end,) = of_type(run(campaign(None, complete_by="2026-11-20 06:00 UTC")), SetEnded)
    assert (end.outcome, end.code) == ("refused", "no-start-date")


def test_a_set_that_is_not_complete_by_its_date_is_undone() -> None:
    late = campaign(
        "2026-11-20 05:00 UTC", complete_by="2026-11-20 06:00 UTC", windows=("07:00-09:00 UTC",)
    )
    events = run(late)
    (end,) = of_type(events, SetEnded)
    assert (end.outcome, end.code, end.at_ms) == ("undone", "deadline-missed", HOUR_MS)
    in_time = late.but(simulation=UpgradeSimulation(starts_at="2026-11-19 08:00 UTC"))
    (end,) = of_type(run(in_time), SetEnded)
    assert end.outcome == "applied"


def test_a_window_that_never_opens_again_pauses_the_campaign() -> None:
    window = "2026-11-19 22:00 to 2026-11-20 06:00 UTC"
    events = run(campaign("2026-11-21 12:00 UTC", windows=(window,)))
    assert of_type(events, IterationEnded)[-1].codes == ("outside-window",)
    assert not applied_at(events)


def until(journal: MemoryJournal, at_ms: int) -> MemoryJournal:
    """Return the journal of a run that died at this time."""
    cut = MemoryJournal()
    cut.append([event for event in journal.events() if event.at_ms <= at_ms])
    return cut


def interrupted(made: UpgradeCampaign, now: str, after_ms: int) -> MemoryJournal:
    journal = MemoryJournal()
    run(made, now, journal)
    return until(journal, after_ms)


def test_a_run_that_continues_next_morning_knows_that_it_is_morning() -> None:
    """It died in the evening while it waited for its window, and missed the night."""
    made = campaign(None, windows=("22:00-06:00 UTC",))
    journal = interrupted(made, "2026-11-19T20:00", 0)
    events = run(made, "2026-11-20T07:00", journal)
    (again,) = of_type(events, CampaignContinued)
    assert again.at_ms == 11 * HOUR_MS
    assert applied_at(events) == [26], "in the next night, and not at once"


def test_a_run_that_continues_after_the_deadline_undoes_the_set() -> None:
    made = campaign(None, completion_s_max=7200, windows=("21:00-23:00 UTC",))
    journal = interrupted(made, "2026-11-19T20:00", 0)
    (end,) = of_type(run(made, "2026-11-20T07:00", journal), SetEnded)
    assert (end.outcome, end.code) == ("undone", "deadline-missed")


def test_the_bake_time_goes_on_while_no_run_is_active() -> None:
    made = campaign(None, bake_s=6 * 3600)
    journal = interrupted(made, "2026-11-19T20:00", 60_000)
    events = run(made, "2026-11-20T07:00", journal)
    checks = [
        event.at_ms / HOUR_MS
        for event in of_type(events, BatchStarted)
        if any(task.kind is TaskKind.CHECK for task in event.batch.tasks)
    ]
    assert checks == [11], "at once: the six hours are over"


def test_a_clock_that_was_set_back_never_turns_the_journal_back() -> None:
    made = campaign(None, bake_s=3600)
    journal = interrupted(made, "2026-11-19T20:00", 60_000)
    times = [event.at_ms for event in run(made, "2026-11-19T08:00", journal)]
    assert times == sorted(times)


def test_a_complete_campaign_is_not_continued() -> None:
    made = campaign(None)
    journal = MemoryJournal()
    first = run(made, "2026-11-19T20:00", journal)
    assert run(made, "2026-11-20T07:00", journal) == first
    (started,) = of_type(first, CampaignStarted)
    assert started.began_unix_ms == unix_ms("2026-11-19T20:00")
