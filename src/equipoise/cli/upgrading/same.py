"""Whether a journal is one of the campaign that it is to be continued with."""

from __future__ import annotations

from equipoise.errors import Conflict, InvalidInput, Problem
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.event import CampaignBegan
from equipoise.store import Journal


def beginning_of(journal: Journal) -> CampaignBegan:
    """The first event of an upgrade's journal."""
    first = next(journal.events(), None)
    if not isinstance(first, CampaignBegan):
        raise _refusal(journal.source, "is not the journal of an upgrade", "name another one")
    return first


def check_continued(journal: Journal, campaign: Campaign, name: str, engine: str) -> None:
    """Refuse to go on with another campaign, or by another engine, than it has begun with.

    An engine knows nothing of what another one has done, and least of all a simulated one.
    """
    if not len(journal):
        return
    began = beginning_of(journal)
    if began.engine not in ("", engine):
        what = f"the campaign of {journal.source} was begun with the engine {began.engine}"
        raise _refusal("--engine", what, f"give --engine {began.engine}, or begin another journal")
    different = [
        one
        for one in Campaign.__struct_fields__
        if getattr(began.campaign, one) != getattr(campaign, one)
    ]
    if different:
        what = (
            f"is not the campaign that {journal.source} began with: {', '.join(different)} differ"
        )
        cure = "go on with it as it was; what is new is asked for with --request"
        raise _refusal(name, what, cure)


def check_running(journal: Journal, campaign: Campaign, name: str) -> None:
    """Refuse orders for one campaign to the run of another."""
    if not len(journal):
        raise Conflict(f"{journal.source}: a run has just begun with it; try again")
    began = beginning_of(journal)
    if began.campaign.name != campaign.name:
        what = f"{journal.source} is the journal of the campaign {began.campaign.name}"
        raise _refusal(name, what, "name that campaign")


def _refusal(source: str, what: str, cure: str) -> InvalidInput:
    return InvalidInput(source, [Problem(key="", what=what, cure=cure)])
