"""Answers about a campaign before its first action: its units, and what lost resources cost."""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.event import CampaignStarted, IterationStarted, UpgradeRequested
from equipoise.model.upgrade.request import SetId
from equipoise.model.upgrade.wall_clock import parse_instant
from equipoise.model.upgrade.work import UpgradeUnit
from equipoise.upgrade.coordinator import Coordinator
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.review import threshold_violation
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import SetProgress


def first_events(
    campaign: UpgradeCampaign, unix_ms: int | None = None
) -> list[CampaignStarted | UpgradeRequested]:
    """Return the events with which the journal of a campaign starts at a date."""
    starts_at = campaign.simulation.starts_at
    began_ms = parse_instant(starts_at) if unix_ms is None and starts_at is not None else unix_ms
    began = CampaignStarted(at_ms=0, campaign=campaign, began_unix_ms=began_ms)
    return [began, *(UpgradeRequested(at_ms=0, request=request) for request in campaign.requests)]


def planned_state(campaign: UpgradeCampaign) -> UpgradeState:
    """Return the state in which the requests of a campaign are scheduled and nothing is done."""
    coordinator = Coordinator()
    # The date matters to no unit and no threshold.
    for event in (*first_events(campaign, 0), IterationStarted(at_ms=0, iteration=1)):
        coordinator.handle(event)
    return coordinator.state


def planned_units(campaign: UpgradeCampaign) -> tuple[UpgradeUnit, ...]:
    """Return the units into which the requests of a campaign are divided."""
    return tuple(planned_state(campaign).resources.units.values())


def sets_lost_without(campaign: UpgradeCampaign, lost: Iterable[ResourceId]) -> dict[SetId, Reason]:
    """Return the sets that would be undone if resources were lost at the start, with the reason."""
    state = planned_state(campaign)
    for id_ in lost:
        state.resources.put(state.resources.states[id_].but(isolated=True, failed=True))
    return {
        status.id: reason
        for status in state.requests.set_status.values()
        if status.progress is SetProgress.SCHEDULED
        and status.id not in state.requests.refused_sets
        and (reason := threshold_violation(state, status)) is not None
    }
