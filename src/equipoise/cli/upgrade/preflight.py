"""The preflight of a campaign: hosts that do not answer, and spare hosts that do not suffice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import process_time
from typing import Final

from equipoise.cli.output import printable, progress_console
from equipoise.cli.upgrade import command_queue
from equipoise.control.ports import PreflightEngine, UpgradeEngine
from equipoise.control.upgrade_loop import UpgradeLoop
from equipoise.errors import WorldError
from equipoise.model.host import Host
from equipoise.model.quantity import HostId, ResourceId
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.event import CampaignStatus, SetOutcome
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.store import MemoryJournal
from equipoise.upgrade.requests.planned import sets_lost_without
from equipoise.upgrade.summary import CampaignSummary, summarise_campaign

SPARE_HOSTS_MAX: Final = 64
"""The search for missing spare hosts ends here."""
SEARCH_S: Final = 20.0
"""CPU time after which the search starts no further prediction."""


def check_reachable(engine: UpgradeEngine, campaign: UpgradeCampaign) -> None:
    """Log in to every host of the engine; fail if a set would be undone without those missing.

    Hosts that do not answer and whose loss the sets allow are reported, and the run continues: it
    isolates them.
    """
    if not isinstance(engine, PreflightEngine):
        return
    unreachable = engine.preflight()
    if not unreachable:
        return
    for host, reason in unreachable.items():
        progress_console().print(printable(f"{host} does not answer: {reason}"))
    doomed = sets_lost_without(campaign, _lost_resources(engine, campaign, unreachable))
    if doomed:
        whys = "; ".join(f"set {set_} would be undone: {why}" for set_, why in doomed.items())
        raise WorldError(f"{', '.join(unreachable)} cannot be reached, so {whys}")


def _lost_resources(
    engine: PreflightEngine, campaign: UpgradeCampaign, hosts: Mapping[str, str]
) -> list[ResourceId]:
    changed = {
        id_
        for request in campaign.requests
        for change_set in request.sets
        for change in change_set.changes
        for id_ in change.resources
    }
    on: dict[str, str | None] = {
        resource.id: resource.host for resource in campaign.cluster.resources
    }
    return [
        ResourceId(id_) for host in hosts for id_ in engine.resources_on(host, on) if id_ in changed
    ]


def predict(campaign: UpgradeCampaign) -> CampaignSummary:
    """Run a campaign on the simulator, each checkpoint approved at once and without windows."""
    campaign = _without_dates(campaign)
    journal, orders = MemoryJournal(), MemoryJournal()
    loop = UpgradeLoop(SimulatedEngine(campaign), journal, campaign, orders)
    loop.run(between_iterations=lambda state: command_queue.approve_all(state, orders))
    return summarise_campaign(journal.events())


def _without_dates(campaign: UpgradeCampaign) -> UpgradeCampaign:
    """Return the campaign at any time: how many hosts it needs does not depend on the date."""
    requests = tuple(
        request.but(
            sets=tuple(
                change_set.but(windows=(), complete_by=None, completion_s_max=None)
                for change_set in request.sets
            )
        )
        for request in campaign.requests
    )
    return campaign.but(requests=requests)


def with_spare_hosts(campaign: UpgradeCampaign, made: CampaignSummary) -> CampaignSummary:
    """Return a prediction in which the spare hosts agree with what happened in it.

    A formula cannot tell how many hosts the whole campaign needs: VMs of one group move one after
    the other, and reserves change with each move. So if the prediction waits for capacity, it is
    repeated with more hosts until it completes.
    """
    if made.waits_for_capacity:
        missing = _missing_hosts(campaign)
        spare = [
            replace(need, needed=need.available + (missing or SPARE_HOSTS_MAX))
            for need in made.spare
        ]
    elif made.status is CampaignStatus.COMPLETED and not _was_refused(made):
        # Consolidation frees more hosts than are empty at the start.
        spare = [replace(need, needed=min(need.needed, need.available)) for need in made.spare]
    else:
        return made
    return replace(made, spare=spare)


def _was_refused(made: CampaignSummary) -> bool:
    return any(result.outcome != SetOutcome.APPLIED for result in made.sets.values())


def _missing_hosts(campaign: UpgradeCampaign) -> int | None:
    """Return how many more hosts let the prediction complete; None if not found."""
    began_s = process_time()
    low, high = 0, 1
    while not _completes(campaign, high):
        low, high = high, 2 * high
        if high > SPARE_HOSTS_MAX or process_time() - began_s > SEARCH_S:
            return None
    while high - low > 1 and process_time() - began_s <= SEARCH_S:
        middle = (low + high) // 2
        low, high = (low, middle) if _completes(campaign, middle) else (middle, high)
    return high


def _completes(campaign: UpgradeCampaign, more: int) -> bool:
    hosts = campaign.cluster.hosts
    largest = max(hosts, key=lambda host: (host.capacity.get("vms", 0), host.memory_mib))  # type: ignore[call-overload]
    added = tuple(_like(largest, number) for number in range(more))
    cluster = campaign.cluster.but(hosts=(*hosts, *added))
    return predict(campaign.but(cluster=cluster)).status is CampaignStatus.COMPLETED


def _like(host: Host, number: int) -> Host:
    """Return an empty host of the same size. It has no resource to change: it is up to date."""
    return host.but(id=HostId(f"further-host-{number}"))
