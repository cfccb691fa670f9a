"""Campaigns: a scheduler against its specification, and an upgrade in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from equipoise.api.loading import load
from equipoise.errors import InvalidInput
from equipoise.model.upgrade.campaign import PAPER_READINGS, UpgradeCampaign

if TYPE_CHECKING:
    from equipoise.adapters.targets.scheduler import Scheduler
    from equipoise.fuzz.campaign.findings import CampaignReport
    from equipoise.upgrade.summary import CampaignSummary


def campaign(
    target: str | Scheduler,
    constraints: Sequence[str] = (),
    *,
    tests: int | None = 1_000,
    seconds: float | None = None,
    seed: int = 0,
    workers: int = 1,
) -> CampaignReport:
    """Run random trials against a scheduler, and return where it disagrees with its specification.

    :param target: a name of ``equipoise fuzz --list``, or a scheduler of your own.
    :param constraints: names of the library; all that the target supports, if none is given.
    """
    from equipoise.fuzz.campaign import CampaignLimits, FuzzCampaign
    from equipoise.fuzz.campaign.workers import open_pool
    from equipoise.fuzz.registry import find_scheduler, make_scheduler
    from equipoise.spec.library import library_constraints

    names = tuple(constraints)
    if isinstance(target, str):
        entry = find_scheduler(target)
        if entry is None:
            raise InvalidInput.of(
                "campaign",
                "there is no such target",
                key=target,
                cure="'equipoise fuzz --list' lists them",
                code="unknown-name",
            )
        # The first value of each setting is its default.
        settings = tuple(sorted((name, values[0]) for name, values in entry.settings.items()))
        names = names or tuple(entry.constraints) or tuple(library_constraints())
        limits = CampaignLimits(tests=tests, seconds=seconds)
        run = FuzzCampaign(
            target, partial(make_scheduler, target, settings), names, entry.options, seed, limits
        )
    else:
        names = names or tuple(library_constraints())
        limits = CampaignLimits(tests=tests, seconds=seconds)
        run = FuzzCampaign(type(target).__name__, target, names, seed=seed, limits=limits)
    with open_pool(str(workers)) as pool:
        return run.run(pool=pool)


def upgrade(
    campaign: UpgradeCampaign | str, *, paper: bool = False, seed: int | None = None
) -> CampaignSummary:
    """Run an upgrade campaign in the simulator, and return what each iteration did and why.

    :param paper: follow the thesis to the letter where the product does better.
    """
    from equipoise.control.upgrade_loop import UpgradeLoop
    from equipoise.sim.upgrade.engine import SimulatedEngine
    from equipoise.store import MemoryJournal
    from equipoise.upgrade.summary import summarise_campaign

    loaded = load(campaign) if isinstance(campaign, str) else campaign
    if not isinstance(loaded, UpgradeCampaign):
        what = "is no upgrade campaign: it has no requests"
        raise InvalidInput.of(str(campaign), what, key="requests", code="missing-key")
    if paper:
        loaded = loaded.but(settings=loaded.settings.but(readings=PAPER_READINGS))
    if seed is not None:
        loaded = loaded.but(seed=seed)
    journal = MemoryJournal()
    UpgradeLoop(SimulatedEngine(loaded), journal, loaded).run()
    return summarise_campaign(journal.events())
