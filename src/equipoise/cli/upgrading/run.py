"""``equipoise upgrade``: run a campaign, or show what it would come to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from equipoise.cli.answer import patience, print_json
from equipoise.cli.read import read_bytes
from equipoise.cli.upgrading import compare
from equipoise.cli.upgrading.document import document
from equipoise.cli.upgrading.extras import Extras
from equipoise.cli.upgrading.hands import hands
from equipoise.cli.upgrading.show import show
from equipoise.control.upgrading import UpgradeLoop
from equipoise.errors import InvalidInput, Problem
from equipoise.model import files
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import Campaign, UpgradeStory
from equipoise.model.upgrade.event import CampaignStatus
from equipoise.model.upgrade.request import Command, Order, SetId
from equipoise.model.upgrade.settings import PAPER
from equipoise.sim.upgrading.builtin import builtin_campaign
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.spec.rules import check_rules
from equipoise.store import MemoryJournal, open_journal
from equipoise.upgrade.account import Account, account


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the person wants."""

    paper: bool = False
    dry_run: bool = False
    engine: str = "sim"
    access: Path | None = None
    journal_url: str | None = None
    commands: tuple[str, ...] = ()
    seed: int | None = None


def run(name: str, wishes: Wishes, extras: Extras, *, as_json: bool) -> int:
    """Carry out a campaign, or only imagine it, and say what came of it."""
    campaign = as_wished(load(name), wishes)
    extras.check(campaign)
    commands = [_command(one) for one in wishes.commands]
    url = None if wishes.dry_run else wishes.journal_url
    journal = open_journal(url) if url else MemoryJournal()
    with journal, patience(f"upgrading {campaign.name}"):
        made_ready = hands(wishes.engine, campaign, name, wishes.access)  # or says why it cannot be
        engine = SimulatedEngine(campaign) if wishes.dry_run else made_ready
        loop = UpgradeLoop(engine, journal, campaign)
        for command in commands:
            loop.command(command)
        loop.run()
        events: list[Event] = list(journal.events())
    made = account(events)
    lines = extras.make(campaign, events)
    if as_json:
        answer = document(campaign, made, dry_run=wishes.dry_run)
        print_json(answer | ({"comparison": compare.document(lines)} if lines else {}))
    else:
        show(campaign, made, dry_run=wishes.dry_run)
        if lines:
            compare.show(lines)
    return exit_code(made)


def exit_code(made: Account) -> int:
    """0 if every set was applied or undone without a broken promise, else 1."""
    refused = any(outcome == "refused" for outcome, _ in made.sets.values())
    fine = made.status is CampaignStatus.COMPLETED and not refused and not made.violations
    return 0 if fine else 1


def load(name: str) -> Campaign:
    """Read a campaign from a file, or a built-in one."""
    path = Path(name)
    if path.suffix or path.exists():
        return files.parse_campaign(read_bytes(path), name, check_rules)
    return builtin_campaign(name)


def as_wished(campaign: Campaign, wishes: Wishes) -> Campaign:
    """The campaign with what the person wants different."""
    if wishes.paper:
        campaign = campaign.but(settings=campaign.settings.but(readings=PAPER))
    if wishes.seed is not None:
        campaign = campaign.but(seed=wishes.seed)
    if wishes.dry_run:  # what is to be expected: nothing fails, and nobody scales
        campaign = campaign.but(story=UpgradeStory())
    return campaign


def _command(text: str) -> Command:
    """Read a command such as ``undo:set-2``, ``pause`` or ``priority:set-1=5``."""
    order, _, rest = text.partition(":")
    set_, _, priority = rest.partition("=")
    known = [one.value for one in Order]
    if order not in known or (priority and not priority.lstrip("-").isdigit()):
        cure = f"ORDER or ORDER:SET, with ORDER one of {', '.join(known)}; priority:SET=NUMBER"
        what = f"{text!r} is no command"
        raise InvalidInput("--command", [Problem(key="", what=what, cure=cure)])
    return Command(
        order=Order(order), set=SetId(set_) if set_ else None, priority=int(priority or 0)
    )
