"""``equipoise upgrade``: runs a campaign, or predicts it on the simulator."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import sleep, time_ns
from typing import Final

from equipoise import files
from equipoise.adapters.inventory_command import InventoryCommand
from equipoise.api.loading import read_bytes
from equipoise.cli.output import (
    print_document,
    printable,
    progress_console,
    show_spinner,
)
from equipoise.cli.upgrade import command_queue, outputs
from equipoise.cli.upgrade.engine_factory import (
    PacedEngine,
    check_resumable,
    check_same_campaign,
    make_engine,
    option_conflict,
)
from equipoise.cli.upgrade.outputs import UpgradeOutputs, show_campaign
from equipoise.cli.upgrade.preflight import check_reachable, with_spare_hosts
from equipoise.cli.upgrade.progress import UpgradeProgress
from equipoise.control.ports import RealTimeEngine, UpgradeEngine
from equipoise.control.upgrade_loop import RunContext, UpgradeLoop
from equipoise.documents.upgrade import upgrade_document
from equipoise.model.event import Event
from equipoise.model.upgrade.campaign import PAPER_READINGS, UpgradeCampaign, UpgradeSimulation
from equipoise.model.upgrade.event import SIMULATED_ENGINE, CampaignStatus, SetOutcome
from equipoise.sim.builtin import builtin_campaign
from equipoise.sim.upgrade.engine import SimulatedEngine
from equipoise.spec.rules import check_rules
from equipoise.store import Journal, MemoryJournal, open_journal
from equipoise.upgrade.requests.commands import UNDO_COMMANDED
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.summary import CampaignSummary, summarise_campaign

WAIT_S: Final = 0.5
"""Time between two reads of the command queue while a run waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeOptions:
    """Changes of the campaign, its engine, its journal and its commands."""

    paper: bool = False
    dry_run: bool = False
    engine: str = SIMULATED_ENGINE
    access: Path | None = None
    journal_url: str | None = None
    commands: tuple[str, ...] = ()
    requests: tuple[Path, ...] = ()
    wait: bool = False
    pace: float | None = None
    seed: int | None = None
    why: bool = False
    observe: str | None = None
    logs: Path | None = None

    def check(self) -> None:
        """Reject options that contradict each other."""
        if self.wait and (self.journal_url is None or self.dry_run):
            what = "a run without a journal cannot receive commands while it waits"
            cure = "add --journal and leave out --dry-run"
            raise option_conflict("--wait", what, cure)
        if self.observe is not None and (self.engine == SIMULATED_ENGINE or self.dry_run):
            what = "a simulation has no real cluster to observe"
            raise option_conflict("--observe", what, "use it with --engine ansible")
        if self.pace is not None and self.engine != SIMULATED_ENGINE:
            what = f"the engine {self.engine} runs in real time"
            raise option_conflict("--pace", what, "leave it out")


def run(name: str, options: UpgradeOptions, extra_outputs: UpgradeOutputs, *, as_json: bool) -> int:
    """Run a campaign, or predict it, and print the result.

    If another process runs the campaign, that process only receives the commands.
    """
    options.check()
    campaign = apply_options(load_campaign(name), options)
    extra_outputs.check(campaign)
    url = None if options.dry_run else options.journal_url
    own_queue = MemoryJournal()  # without a database the queue lasts as long as the run
    with open_journal(url) if url else MemoryJournal() as journal:
        open_queue = (
            partial(open_journal, url, journal=command_queue.QUEUE_JOURNAL)
            if url
            else lambda: own_queue
        )
        is_ours = journal.try_lock()
        if is_ours:
            check_resumable(journal, campaign, name, options.engine)
        else:
            check_same_campaign(journal, campaign, name)
        unix_ms = start_unix_ms(campaign, options)
        queue = command_queue.CommandQueue(journal, open_queue, campaign, unix_ms)
        replies = queue.submit(options.commands, options.requests, wait=not is_ours)
        if not is_ours or any(reply.refused for reply in replies):
            return command_queue.print_replies(campaign, replies, as_json=as_json)
        events = _run_campaign(campaign, name, options, journal, open_queue, unix_ms)
    return _print_result(campaign, events, options, extra_outputs, as_json=as_json)


def _run_campaign(
    campaign: UpgradeCampaign,
    name: str,
    options: UpgradeOptions,
    journal: Journal,
    open_queue: command_queue.OpenQueue,
    unix_ms: int | None,
) -> list[Event]:
    """Run a campaign, or the rest of it, and return all its events."""
    # A dry run makes the engine as well, because that checks access and names.
    real_engine = make_engine(options.engine, campaign, name, options.access, options.logs)
    engine: UpgradeEngine = SimulatedEngine(campaign) if options.dry_run else real_engine
    if not len(journal):  # a resumed run may have hosts that are half way
        check_reachable(real_engine, campaign)
    if options.pace is not None and not options.dry_run:
        assert isinstance(engine, SimulatedEngine)
        engine = PacedEngine(engine, options.pace)
    with open_queue() as listed, show_spinner(f"upgrading {campaign.name}"):
        # A simulation without a pace is over at once; its result has everything.
        progress = _progress() if isinstance(engine, RealTimeEngine) else None
        source = None if options.observe is None else InventoryCommand(options.observe)
        context = RunContext(
            engine_name=options.engine, unix_ms=unix_ms, source=source, listener=progress
        )
        loop = UpgradeLoop(engine, journal, campaign, listed, context)
        if options.dry_run:
            loop.run(between_iterations=lambda state: command_queue.approve_all(state, listed))
        else:
            loop.run(_wait_for_commands if options.wait else _stop_when_idle)
        return list(journal.events())


def _progress() -> UpgradeProgress | None:
    """Return the progress for a terminal; other outputs stay free of it."""
    if not sys.stderr.isatty():
        return None
    console = progress_console()
    return UpgradeProgress(lambda line: console.print(printable(line)))


def start_unix_ms(campaign: UpgradeCampaign, options: UpgradeOptions) -> int | None:
    """Return the present date for a run on real hosts, and for a prediction without a date.

    A simulation has the date of its scenario, or none.
    """
    if options.engine == SIMULATED_ENGINE and not options.dry_run:
        return None
    if options.dry_run and campaign.simulation.starts_at is not None:
        return None
    return time_ns() // 1_000_000


def _wait_for_commands(_state: UpgradeState) -> bool:
    sleep(WAIT_S)
    return True


def _stop_when_idle(_state: UpgradeState) -> bool:
    return False


def _print_result(
    campaign: UpgradeCampaign,
    events: list[Event],
    options: UpgradeOptions,
    extra_outputs: UpgradeOutputs,
    *,
    as_json: bool,
) -> int:
    made = summarise_campaign(events)
    if options.dry_run:
        made = with_spare_hosts(campaign, made)
    lines = extra_outputs.make(campaign, events, made.outage_ms)
    if as_json:
        rows = tuple(row.document for row in lines)
        print_document(upgrade_document(campaign, made, dry_run=options.dry_run, comparison=rows))
    else:
        show_campaign(campaign, made, dry_run=options.dry_run, why=options.why)
        if lines:
            outputs.show_comparison(lines)
    return exit_code(made)


def exit_code(made: CampaignSummary) -> int:
    """Return 0 if every set ended as its administrator wants and no SLA was violated, else 1.

    A set that an administrator undid by command is what the administrator wants.
    """
    failed = any(
        result.outcome == SetOutcome.REFUSED
        or (result.outcome == SetOutcome.UNDONE and result.code != UNDO_COMMANDED.code)
        for result in made.sets.values()
    )
    fine = made.status is CampaignStatus.COMPLETED and not failed and not made.violations
    return 0 if fine else 1


def load_campaign(name: str) -> UpgradeCampaign:
    """Read a campaign from a file, or a built-in one."""
    path = Path(name)
    # A name with an ending is meant as a file, so that a missing file is reported as one.
    if path.suffix or path.exists():
        return files.parse_campaign(read_bytes(path), name, check_rules)
    return builtin_campaign(name)


def apply_options(campaign: UpgradeCampaign, options: UpgradeOptions) -> UpgradeCampaign:
    """Return the campaign with the changes of the options."""
    if options.paper:
        campaign = campaign.but(settings=campaign.settings.but(readings=PAPER_READINGS))
    if options.seed is not None:
        campaign = campaign.but(seed=options.seed)
    if options.dry_run:  # the prediction: no task fails and no tenant scales
        starts_at = campaign.simulation.starts_at
        campaign = campaign.but(simulation=UpgradeSimulation(starts_at=starts_at))
    return campaign
