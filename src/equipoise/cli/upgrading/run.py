"""``equipoise upgrade``: run a campaign, or show what it would come to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import sleep
from typing import Final

from equipoise.cli.answer import patience, print_json
from equipoise.cli.read import read_bytes
from equipoise.cli.upgrading import compare, orders
from equipoise.cli.upgrading.document import document
from equipoise.cli.upgrading.extras import Extras
from equipoise.cli.upgrading.hands import hands
from equipoise.cli.upgrading.paced import PacedEngine
from equipoise.cli.upgrading.same import check_continued, check_running
from equipoise.cli.upgrading.show import show
from equipoise.control.ports import Engine
from equipoise.control.upgrading import UpgradeLoop
from equipoise.errors import InvalidInput, Problem
from equipoise.model import files
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import Campaign, UpgradeStory
from equipoise.model.upgrade.event import SIMULATED, CampaignStatus
from equipoise.model.upgrade.settings import PAPER
from equipoise.sim.upgrading.builtin import builtin_campaign
from equipoise.sim.upgrading.engine import SimulatedEngine
from equipoise.spec.rules import check_rules
from equipoise.store import Journal, MemoryJournal, open_journal
from equipoise.upgrade.account import Account, account
from equipoise.upgrade.state import State

WAIT_S: Final = 0.5
"""How often a run that waits for orders looks for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the person wants."""

    paper: bool = False
    dry_run: bool = False
    engine: str = SIMULATED
    access: Path | None = None
    journal_url: str | None = None
    commands: tuple[str, ...] = ()
    requests: tuple[Path, ...] = ()
    wait: bool = False
    pace: float | None = None
    seed: int | None = None

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.wait and (self.journal_url is None or self.dry_run):
            what = "nobody could give it orders while it waits"
            cure = "give --journal as well, and no --dry-run"
            raise InvalidInput("--wait", [Problem(key="", what=what, cure=cure)])
        if self.pace is not None and self.engine != SIMULATED:
            what = f"the engine {self.engine} has its own"
            raise InvalidInput("--pace", [Problem(key="", what=what, cure="leave it out")])


def run(name: str, wishes: Wishes, extras: Extras, *, as_json: bool) -> int:
    """Carry out a campaign, or only imagine it, and say what came of it.

    To a run that is under way in another process, only the orders are given.
    """
    wishes.check()
    campaign = as_wished(load(name), wishes)
    extras.check(campaign)
    url = None if wishes.dry_run else wishes.journal_url
    kept = MemoryJournal()  # where there is no database: the list lasts as long as the run
    with open_journal(url) if url else MemoryJournal() as journal:
        open_list = partial(open_journal, url, journal=orders.LIST) if url else lambda: kept
        is_ours = journal.hold()
        if is_ours:
            check_continued(journal, campaign, name, wishes.engine)
        else:
            check_running(journal, campaign, name)
        desk = orders.Desk(journal, open_list, campaign)
        answers = desk.give(wishes.commands, wishes.requests, wait=not is_ours)
        if not is_ours or any(one.refused for one in answers):
            return orders.tell(campaign, answers, as_json=as_json)
        events = _carried_out(campaign, name, wishes, journal, open_list)
    return _told(campaign, events, wishes, extras, as_json=as_json)


def _carried_out(
    campaign: Campaign, name: str, wishes: Wishes, journal: Journal, open_list: orders.OpenList
) -> list[Event]:
    """Run a campaign, or what is left of it, and give all that has happened."""
    made_ready = hands(wishes.engine, campaign, name, wishes.access)  # or says why it cannot be
    engine: Engine = SimulatedEngine(campaign) if wishes.dry_run else made_ready
    if wishes.pace is not None and not wishes.dry_run:
        assert isinstance(engine, SimulatedEngine)
        engine = PacedEngine(engine, wishes.pace)
    with open_list() as listed, patience(f"upgrading {campaign.name}"):
        loop = UpgradeLoop(engine, journal, campaign, listed, wishes.engine)
        if wishes.dry_run:
            loop.run(attend=lambda state: orders.approve_all(state, listed))
        else:
            loop.run(_patient if wishes.wait else _impatient)
        return list(journal.events())


def _patient(_state: State) -> bool:
    sleep(WAIT_S)
    return True


def _impatient(_state: State) -> bool:
    return False


def _told(
    campaign: Campaign, events: list[Event], wishes: Wishes, extras: Extras, *, as_json: bool
) -> int:
    made = account(events)
    lines = extras.make(campaign, events)
    if as_json:
        answer = document(campaign, made, dry_run=wishes.dry_run)
        print_json(answer | ({"comparison": compare.document(lines)} if lines else {}))
    else:
        show(campaign, made, dry_run=wishes.dry_run)
        if lines:
            compare.show(lines)
    return exit_code(made, dry_run=wishes.dry_run)


def exit_code(made: Account, *, dry_run: bool = False) -> int:
    """0 if every set was applied or undone without a broken promise, else 1.

    In a dry run nothing fails: a set that is undone even so could never succeed.
    """
    bad = ("refused", "undone") if dry_run else ("refused",)
    hopeless = any(outcome in bad for outcome, _ in made.sets.values())
    fine = made.status is CampaignStatus.COMPLETED and not hopeless and not made.violations
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
