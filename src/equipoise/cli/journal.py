"""``equipoise journal`` and ``equipoise replay``: the events of a journal, and the state they lead
to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from equipoise import files
from equipoise.cli.output import (
    console,
    format_time_ms,
    print_document,
    printable,
    with_progress_bar,
)
from equipoise.documents.cluster import journal_document
from equipoise.documents.event_text import describe_event
from equipoise.documents.simulation import JobsReplayDocument
from equipoise.errors import InputProblem, InvalidInput
from equipoise.model.event import EVENT_KINDS, Event, JobsRunStarted
from equipoise.model.inventory import Inventory
from equipoise.model.state import transition
from equipoise.model.state.snapshot import Snapshot
from equipoise.model.upgrade.event import CampaignStarted, UpgradeStatus
from equipoise.store import open_journal


def run(url: str, *, kinds: list[str], as_lines: bool, as_json: bool) -> int:
    """Print the events as text, as raw lines, or as one document."""
    unknown = [kind for kind in kinds if kind not in EVENT_KINDS]
    if unknown:
        cure = f"one of {', '.join(EVENT_KINDS)}"
        problems = [
            InputProblem(key=kind, what="is no kind of event", cure=cure, code="unknown-name")
            for kind in unknown
        ]
        raise InvalidInput("--kind", problems)
    with open_journal(url, create=False) as journal:
        if as_json:
            print_document(journal_document(journal, kinds))
            return 0
        if as_lines:
            sys.stdout.buffer.writelines(line + b"\n" for line in journal.lines(kinds=kinds))
            return 0
        out = console()
        for event in journal.events(kinds=kinds):
            out.print(f"{format_time_ms(event.at_ms):>14}  {printable(describe_event(event))}")
    return 0


def run_replay(url: str, *, until: int | None, as_json: bool) -> int:
    """Print the state after all events of a journal, or after the first ``until`` events."""
    with open_journal(url, create=False) as journal:
        length = len(journal) if until is None else min(until, len(journal))
        events = (event for _, event in zip(range(length), journal.events(), strict=False))
        state = replay_events(with_progress_bar(events, "replaying", length))
    if isinstance(state, JobsReplayDocument):
        print_document(state)
        return 0
    sys.stdout.write(files.to_json(state) if as_json else files.to_yaml(state))
    return 0


def replay_events(events: Iterable[Event]) -> Inventory | UpgradeStatus | JobsReplayDocument:
    """Return the cluster after the events; for an upgrade the campaign, for jobs the figures."""
    remaining = iter(events)
    first = next(remaining, None)
    if isinstance(first, JobsRunStarted):
        return _replay_jobs(first, remaining)
    if isinstance(first, CampaignStarted):
        return _replay_campaign(first, remaining)
    head = [] if first is None else [first]
    snapshot = transition.replay(Snapshot(), head)
    return transition.replay(snapshot, remaining).inventory()


def _replay_jobs(first: JobsRunStarted, events: Iterable[Event]) -> JobsReplayDocument:
    from equipoise.adapters.batsim.summary import summary_values
    from equipoise.sim.jobs.record.replay import JobReplay

    replay = JobReplay().replay([first])
    replay.replay(events)
    values = summary_values(replay)
    values["nb_grouped_switches"] = replay.switches
    values["nb_machine_switches"] = replay.switched_hosts
    return JobsReplayDocument(
        policy=replay.policy,
        workload=replay.source,
        complete=replay.complete,
        active=len(replay.active),
        at_s=replay.now_s,
        **values,
    )


def _replay_campaign(first: CampaignStarted, events: Iterable[Event]) -> UpgradeStatus:
    from equipoise.upgrade import Coordinator
    from equipoise.upgrade.inventory_view import campaign_status

    coordinator = Coordinator()
    coordinator.handle(first)
    for event in events:
        coordinator.handle(event)
    return campaign_status(coordinator.state)
