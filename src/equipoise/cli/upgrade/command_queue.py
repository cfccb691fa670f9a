"""The command queue of a campaign: commands and new requests for the run.

All runs use the same way, whether they start, are paused, or run in another process: postings are
appended to a list in the database of the journal, and the run copies them into its journal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from equipoise import files
from equipoise.api.loading import read_bytes
from equipoise.cli.output import console, format_time_ms, print_document, printable
from equipoise.documents.upgrade import OrderRow, OrdersDocument
from equipoise.errors import Conflict, InvalidInput
from equipoise.model.event import Event
from equipoise.model.quantity import ID_PATTERN, ResourceId
from equipoise.model.upgrade.campaign import UpgradeCampaign
from equipoise.model.upgrade.catalog import Catalog
from equipoise.model.upgrade.event import (
    CommandRejected,
    IterationStarted,
    UpgradeCommanded,
    UpgradeRequested,
)
from equipoise.model.upgrade.infrastructure import Resource
from equipoise.model.upgrade.request import CommandKind, SetId, UpgradeCommand
from equipoise.store import Journal
from equipoise.upgrade import Coordinator
from equipoise.upgrade.requests.brakes import waits_for_approval
from equipoise.upgrade.requests.commands import ORDERS_FOR_ALL, command_text
from equipoise.upgrade.requests.planned import first_events
from equipoise.upgrade.rules.holds import hold_reason
from equipoise.upgrade.state import UpgradeState

QUEUE_JOURNAL: Final = "main.orders"
"""The name of the list beside the journal ``main``."""
REPLY_TIMEOUT_S: Final = 15.0
"""Longest wait for a run to accept postings."""
POLL_S: Final = 0.2
ATTEMPTS: Final = 50
PRIORITY_MAX: Final = 1000

Posting = UpgradeCommanded | UpgradeRequested
OpenQueue = Callable[[], Journal]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReply:
    """The reply to one command or request."""

    order: str
    number: int | None = None
    at_ms: int | None = None
    """When the run accepted it; ``None`` until then."""
    refused: str = ""
    code: str = ""


class CommandQueue:
    """Posts commands and requests to the list beside the journal of a campaign."""

    def __init__(
        self,
        journal: Journal,
        open_queue: OpenQueue,
        campaign: UpgradeCampaign,
        unix_ms: int | None = None,
    ) -> None:
        self._unix_ms = unix_ms
        self._journal = journal
        self._open_queue = open_queue
        self._campaign = campaign

    def submit(
        self, commands: Sequence[str], requests: Sequence[Path], *, wait: bool
    ) -> list[CommandReply]:
        """Post commands and requests, all or none; ``wait`` until the active run accepts them."""
        if not commands and not requests:
            if wait:
                what = "another process runs this campaign; send --command or --request to it"
                raise Conflict(f"{self._journal.source}: {what}, or wait for its end")
            return []
        start = len(self._journal)
        with self._open_queue() as listed:
            coordinator = _expected_state(
                self._journal, listed, first_events(self._campaign, self._unix_ms)
            )
        wanted = read_postings(commands, requests, coordinator.state)
        refused = refusals(coordinator, wanted)
        if refused:
            return refused
        posted = post(self._open_queue, wanted)
        return wait_for_replies(self._journal, posted, start) if wait else posted


def read_postings(
    commands: Sequence[str], requests: Sequence[Path], state: UpgradeState
) -> list[Posting]:
    """Return the postings; files of requests are checked against this campaign."""
    known: dict[str, Resource] = {
        id_: resource_state.resource for id_, resource_state in state.resources.states.items()
    }
    waiting = [set_ for _, request in state.requests.pending for set_ in request.sets]
    known |= {new.id: new for set_ in waiting for change in set_.changes for new in change.new}
    catalog = Catalog(descriptions=tuple(state.catalog.values()))
    postings: list[Posting] = [
        UpgradeRequested(
            at_ms=0, request=files.parse_request(read_bytes(path), str(path), known, catalog)
        )
        for path in requests
    ]
    postings += [UpgradeCommanded(at_ms=0, command=parse_command(text)) for text in commands]
    return postings


def _expected_state(journal: Journal, orders: Journal, at_start: Sequence[Event]) -> Coordinator:
    """Return the campaign after all postings of the queue."""
    coordinator = Coordinator()
    taken_over = 0
    for event in journal.events() if len(journal) else at_start:
        coordinator.handle(event)
        if isinstance(event, UpgradeCommanded | UpgradeRequested):
            taken_over = max(taken_over, event.number)
    for event in orders.events(taken_over):
        coordinator.handle(event)
    coordinator.state.requests.report_rejected(None)  # replies to earlier postings
    return coordinator


def refusals(coordinator: Coordinator, wanted: Sequence[Posting]) -> list[CommandReply]:
    """Return the refusals of postings that are invalid or can never succeed."""
    found: list[CommandReply] = []
    for event in wanted:
        coordinator.handle(event)
        found += [
            CommandReply(
                order=rejected.order, refused=rejected.reason.text, code=rejected.reason.code
            )
            for rejected in coordinator.state.requests.report_rejected(None)
        ]
    state = coordinator.state
    # Requests are examined when an iteration starts, so this copy of the campaign starts one.
    if state.requests.pending:
        coordinator.handle(
            IterationStarted(at_ms=state.at_ms, iteration=state.iteration.number + 1)
        )
    for event in wanted:
        if isinstance(event, UpgradeRequested):
            for change_set in event.request.sets:
                if change_set.id in state.requests.refused_sets:
                    what = f"request {event.request.id}"
                    reason = state.requests.refused_sets[change_set.id]
                    why = f"set {change_set.id} can never succeed: {reason}"
                    found.append(CommandReply(order=what, refused=why, code=reason.code))
    return found


def post(open_queue: OpenQueue, wanted: Sequence[Posting]) -> list[CommandReply]:
    """Append postings to the queue, all or none, also while other processes post."""
    for _ in range(ATTEMPTS):
        with suppress(Conflict), open_queue() as orders:
            last = orders.append(wanted)
            first = last - len(wanted) + 1
            return [
                CommandReply(order=_posting_text(command), number=number)
                for number, command in enumerate(wanted, first)
            ]
    raise Conflict("other processes post at the same time; try again")


def approve_all(state: UpgradeState, orders: Journal) -> None:
    """Approve every set that waits at a checkpoint, as a dry run assumes."""
    waiting = [
        status
        for status in state.requests.set_status.values()
        if waits_for_approval(state, status)
        and hold_reason(state, status) in state.iteration.wait_reasons
    ]
    commands = [UpgradeCommand(order=CommandKind.APPROVE, set=status.id) for status in waiting]
    orders.append([UpgradeCommanded(at_ms=0, command=command) for command in commands])


def wait_for_replies(
    journal: Journal, posted: Sequence[CommandReply], start: int
) -> list[CommandReply]:
    """Wait until the active run accepts the postings; return its replies."""
    end = monotonic() + REPLY_TIMEOUT_S
    replies = list(posted)
    while monotonic() < end:
        replies = _with_replies(journal, replies, start)
        if all(reply.at_ms is not None for reply in replies):
            sleep(2 * POLL_S)  # a refusal follows at once
            return _with_replies(journal, replies, start)
        sleep(POLL_S)
    return replies


def _with_replies(
    journal: Journal, posted: Sequence[CommandReply], start: int
) -> list[CommandReply]:
    kinds = ("upgrade_commanded", "upgrade_requested", "command_rejected")
    found = {reply.number: reply for reply in posted}
    for event in journal.events(start, kinds=kinds):
        assert isinstance(event, UpgradeCommanded | UpgradeRequested | CommandRejected)
        one = found.get(event.number)
        if one is None:
            continue
        if isinstance(event, CommandRejected):
            found[event.number] = replace(one, refused=event.reason, code=event.code)
        else:
            found[event.number] = replace(one, at_ms=event.at_ms)
    return list(found.values())


def print_replies(
    campaign: UpgradeCampaign, replies: Sequence[CommandReply], *, as_json: bool
) -> int:
    """Print the replies; 1 if one is a refusal."""
    if as_json:
        rows = tuple(map(_order_row, replies))
        print_document(OrdersDocument(campaign=campaign.name, orders=rows))
    else:
        for reply in replies:
            console().print(printable(_reply_text(reply)))
    return 1 if any(reply.refused for reply in replies) else 0


def _reply_text(reply: CommandReply) -> str:
    if reply.refused:
        return f"{reply.order}: refused: {reply.refused}"
    if reply.at_ms is None:
        return f"{reply.order}: posted; the run accepts it at its next step"
    return f"{reply.order}: accepted by the run at {format_time_ms(reply.at_ms)}"


def _order_row(reply: CommandReply) -> OrderRow:
    return OrderRow.of(reply, at_s=None if reply.at_ms is None else reply.at_ms / 1000)


def _posting_text(event: Posting) -> str:
    if isinstance(event, UpgradeCommanded):
        return command_text(event.command)
    return f"request {event.request.id}"


def parse_command(text: str) -> UpgradeCommand:
    """Read a command such as ``undo:set-2``, ``pause`` or ``priority:set-1=5``."""
    name, colon, rest = text.partition(":")
    set_, equals, number = rest.partition("=")
    known = [kind.value for kind in CommandKind]
    if name not in known:
        raise _invalid_command(text, f"ORDER or ORDER:SET, with ORDER one of {', '.join(known)}")
    order = CommandKind(name)
    if bool(equals) != (order is CommandKind.PRIORITY):
        raise _invalid_command(text, "priority:SET=NUMBER, and a number for no other order")
    if (colon or order not in ORDERS_FOR_ALL) and not re.match(ID_PATTERN, set_):
        named = "RESOURCE, with the id of a resource"
        cure = named if order is CommandKind.REPAIRED else "SET, with the id of a set"
        raise _invalid_command(text, f"{order}:{cure}")
    if equals and not re.fullmatch(r"[+-]?\d{1,4}", number):
        raise _invalid_command(text, f"a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}")
    if order is CommandKind.REPAIRED:
        return UpgradeCommand(order=order, resource=ResourceId(set_))
    priority = int(number or 0)
    if abs(priority) > PRIORITY_MAX:
        cure = f"a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}"
        raise _invalid_command(text, cure, code="out-of-range")
    return UpgradeCommand(order=order, set=SetId(set_) if set_ else None, priority=priority)


def _invalid_command(text: str, cure: str, code: str = "syntax-error") -> InvalidInput:
    what = f"{text!r} is not a command"
    return InvalidInput.of("--command", what, cure=cure, code=code)
