"""Orders to a campaign: commands and new requests, posted where its run looks for them.

There is one way for all of them, whether the run is about to start, is paused, or is under way in
another process: they are put at the end of a list in the journal's database, and the run takes
them over into its journal, one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from equipoise.cli.answer import clock, console, plain, print_json
from equipoise.cli.read import read_bytes
from equipoise.errors import Conflict, InvalidInput, Problem
from equipoise.model import files
from equipoise.model.quantity import ID_PATTERN
from equipoise.model.resource import Resource
from equipoise.model.upgrade.campaign import Campaign
from equipoise.model.upgrade.event import (
    CampaignBegan,
    IterationBegan,
    OrderRefused,
    UpgradeCommanded,
    UpgradeRequested,
)
from equipoise.model.upgrade.request import Command, Order, SetId
from equipoise.store import Journal
from equipoise.upgrade import Coordinator
from equipoise.upgrade.requests.orders import SETLESS, words
from equipoise.upgrade.rules.brakes import held_back, waits_for_approval
from equipoise.upgrade.state import State

LIST: Final = "main.orders"
"""The name of the list beside the journal ``main``."""
HEARD_S: Final = 15.0
"""How long to wait for a run to take orders over before saying that it has not yet."""
BEAT_S: Final = 0.2
ATTEMPTS: Final = 50
PRIORITY_MAX: Final = 1000

Posting = UpgradeCommanded | UpgradeRequested
OpenList = Callable[[], Journal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of one order."""

    order: str
    number: int | None = None
    at_ms: int | None = None
    """When the run has taken it over; nothing if it has not yet."""
    refused: str = ""


class Desk:
    """Where orders to a campaign are given: to its journal, by the list beside it."""

    def __init__(self, journal: Journal, open_list: OpenList, campaign: Campaign) -> None:
        self._journal = journal
        self._open_list = open_list
        self._campaign = campaign

    def give(
        self, commands: Sequence[str], requests: Sequence[Path], *, wait: bool
    ) -> list[Answer]:
        """Post orders, all or none; ``wait`` for the run that is under way to take them over."""
        if not commands and not requests:
            if wait:
                what = "another run goes on with it; give it orders by --command and --request"
                raise Conflict(f"{self._journal.source}: {what}, or wait for its end")
            return []
        start = len(self._journal)
        with self._open_list() as listed:
            mind = _imagined(self._journal, listed, self._campaign)
        wanted = read_orders(commands, requests, mind.state)
        refused = refusals(mind, wanted)
        if refused:
            return refused
        posted = post(self._open_list, wanted)
        return wait_until_heard(self._journal, posted, start) if wait else posted


def read_orders(commands: Sequence[str], requests: Sequence[Path], state: State) -> list[Posting]:
    """Read what a person wants posted; files of requests are read as for this campaign."""
    known: dict[str, Resource] = {id_: part.resource for id_, part in state.parts.items()}
    waiting = [set_ for _, request in state.requests for set_ in request.sets]
    known |= {new.id: new for set_ in waiting for change in set_.changes for new in change.new}
    catalog = state.campaign.catalog
    asked = (files.parse_request(read_bytes(path), str(path), known, catalog) for path in requests)
    wanted: list[Posting] = [UpgradeRequested(at_ms=0, request=one) for one in asked]
    return [*wanted, *(UpgradeCommanded(at_ms=0, command=parse_command(one)) for one in commands)]


def _imagined(journal: Journal, orders: Journal, campaign: Campaign) -> Coordinator:
    """The campaign as it will be when all that was ordered so far is taken over."""
    mind = Coordinator()
    taken_over = 0
    for event in journal.events() if len(journal) else _beginning(campaign):
        mind.handle(event)
        if isinstance(event, UpgradeCommanded | UpgradeRequested):
            taken_over = max(taken_over, event.number)
    for event in orders.events(taken_over):
        mind.handle(event)
    mind.state.unheeded = []  # of these somebody else is told
    return mind


def _beginning(campaign: Campaign) -> list[CampaignBegan | UpgradeRequested]:
    began = CampaignBegan(at_ms=0, campaign=campaign)
    return [began, *(UpgradeRequested(at_ms=0, request=one) for one in campaign.requests)]


def refusals(mind: Coordinator, wanted: Sequence[Posting]) -> list[Answer]:
    """Those of the orders that make no sense to a campaign, or could never succeed in it."""
    found: list[Answer] = []
    for event in wanted:
        mind.handle(event)
        found += [Answer(order=one.order, refused=one.reason) for one in mind.state.unheeded]
        mind.state.unheeded = []
    state = mind.state
    if state.requests:
        mind.handle(IterationBegan(at_ms=state.at_ms, iteration=state.iteration + 1))
    for event in wanted:
        if isinstance(event, UpgradeRequested):
            for one in event.request.sets:
                if one.id in state.refused:
                    what = f"request {event.request.id}"
                    why = f"set {one.id} can never succeed: {state.refused[one.id]}"
                    found.append(Answer(order=what, refused=why))
    return found


def post(open_list: OpenList, wanted: Sequence[Posting]) -> list[Answer]:
    """Put orders at the end of the list, all or none, whoever else posts at the same time."""
    for _ in range(ATTEMPTS):
        with suppress(Conflict), open_list() as orders:
            last = orders.append(wanted)
            first = last - len(wanted) + 1
            return [
                Answer(order=_words(one), number=number) for number, one in enumerate(wanted, first)
            ]
    raise Conflict("others post orders all the time; try again")


def approve_all(state: State, orders: Journal) -> None:
    """Approve every set of which an iteration has told that it waits, as a dry run supposes."""
    waiting = [
        one
        for one in state.standings.values()
        if waits_for_approval(state, one) and held_back(state, one) in state.told
    ]
    commands = [Command(order=Order.APPROVE, set=one.id) for one in waiting]
    orders.append([UpgradeCommanded(at_ms=0, command=one) for one in commands])


def wait_until_heard(journal: Journal, posted: Sequence[Answer], start: int) -> list[Answer]:
    """Wait until a run that is under way has taken orders over, and what it says to them."""
    end = monotonic() + HEARD_S
    answers = list(posted)
    while monotonic() < end:
        answers = _answered(journal, answers, start)
        if all(one.at_ms is not None for one in answers):
            sleep(2 * BEAT_S)  # a refusal follows at once
            return _answered(journal, answers, start)
        sleep(BEAT_S)
    return answers


def _answered(journal: Journal, posted: Sequence[Answer], start: int) -> list[Answer]:
    kinds = ("upgrade_commanded", "upgrade_requested", "order_refused")
    found = {one.number: one for one in posted}
    for event in journal.events(start, kinds=kinds):
        assert isinstance(event, UpgradeCommanded | UpgradeRequested | OrderRefused)
        one = found.get(event.number)
        if one is None:
            continue
        if isinstance(event, OrderRefused):
            found[event.number] = replace(one, refused=event.reason)
        else:
            found[event.number] = replace(one, at_ms=event.at_ms)
    return list(found.values())


def tell(campaign: Campaign, answers: Sequence[Answer], *, as_json: bool) -> int:
    """Say what became of orders; 1 if one was refused."""
    if as_json:
        print_json({"campaign": campaign.name, "orders": [_document(one) for one in answers]})
    else:
        for one in answers:
            console().print(plain(_sentence(one)))
    return 1 if any(one.refused for one in answers) else 0


def _sentence(one: Answer) -> str:
    if one.refused:
        return f"{one.order}: refused: {one.refused}"
    if one.at_ms is None:
        return f"{one.order}: posted; the run takes it over at its next step"
    return f"{one.order}: taken over by the run at {clock(one.at_ms)}"


def _document(one: Answer) -> dict[str, Any]:
    at_s = None if one.at_ms is None else one.at_ms / 1000
    return {"order": one.order, "number": one.number, "at_s": at_s, "refused": one.refused}


def _words(event: Posting) -> str:
    if isinstance(event, UpgradeCommanded):
        return words(event.command)
    return f"request {event.request.id}"


def parse_command(text: str) -> Command:
    """Read a command such as ``undo:set-2``, ``pause`` or ``priority:set-1=5``."""
    name, colon, rest = text.partition(":")
    set_, equals, number = rest.partition("=")
    known = [one.value for one in Order]
    if name not in known:
        raise _no_command(text, f"ORDER or ORDER:SET, with ORDER one of {', '.join(known)}")
    order = Order(name)
    if bool(equals) != (order is Order.PRIORITY):
        raise _no_command(text, "priority:SET=NUMBER, and a number for no other order")
    if (colon or order not in SETLESS) and not re.match(ID_PATTERN, set_):
        raise _no_command(text, f"{order}:SET, with the id of a set")
    if equals and not re.fullmatch(r"[+-]?\d{1,4}", number):
        raise _no_command(text, f"a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}")
    priority = int(number or 0)
    if abs(priority) > PRIORITY_MAX:
        raise _no_command(text, f"a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}")
    return Command(order=order, set=SetId(set_) if set_ else None, priority=priority)


def _no_command(text: str, cure: str) -> InvalidInput:
    what = f"{text!r} is no command"
    return InvalidInput("--command", [Problem(key="", what=what, cure=cure)])
