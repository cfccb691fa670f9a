"""``equipoise replay``: the cluster, or the campaign, that a journal leads to."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from equipoise.cli.answer import watched
from equipoise.model import files
from equipoise.model.change import transition
from equipoise.model.event import Event
from equipoise.model.inventory import Inventory
from equipoise.model.snapshot import Snapshot
from equipoise.model.upgrade.event import CampaignBegan
from equipoise.model.upgrade.standing import CampaignStanding
from equipoise.store import open_journal


def run(url: str, *, until: int | None, as_json: bool) -> int:
    """Print what there is at the end of the journal, or after so many events of it."""
    with open_journal(url, create=False) as journal:
        length = len(journal) if until is None else min(until, len(journal))
        events = (event for _, event in zip(range(length), journal.events(), strict=False))
        reached = replayed(watched(events, "replaying", length))
    sys.stdout.write(files.to_json(reached) if as_json else files.to_yaml(reached))
    return 0


def replayed(events: Iterable[Event]) -> Inventory | CampaignStanding:
    """What events lead to: those of an upgrade to a campaign with its cluster."""
    coming = iter(events)
    first = next(coming, None)
    if isinstance(first, CampaignBegan):
        return _campaign(first, coming)
    head = [] if first is None else [first]
    snapshot = transition.replay(Snapshot(), head)
    return transition.replay(snapshot, coming).inventory()


def _campaign(first: CampaignBegan, events: Iterable[Event]) -> CampaignStanding:
    from equipoise.upgrade import Coordinator
    from equipoise.upgrade.cluster import standing_of

    coordinator = Coordinator()
    coordinator.handle(first)
    for event in events:
        coordinator.handle(event)
    return standing_of(coordinator.state)
