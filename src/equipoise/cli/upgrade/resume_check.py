"""Checks that a journal belongs to the campaign to be resumed or commanded."""

from __future__ import annotations

from equipoise.errors import Conflict, InputProblem, InvalidInput
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.event import CampaignStarted
from equipoise.store import Journal


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
    return InvalidInput(
        source, [InputProblem(key="", what=what, cure=cure, code="journal-mismatch")]
    )
