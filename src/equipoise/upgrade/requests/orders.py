"""What administrators order while an upgrade runs: whether it makes sense, and what it changes."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.upgrade.request import Command, Order, Request
from equipoise.upgrade.state import Progress, Standing, State

SETLESS = (Order.PAUSE, Order.RESUME)
"""What can be said to all sets at once."""


def words(command: Command) -> str:
    """A command as a person gives it."""
    priority = f"={command.priority}" if command.order is Order.PRIORITY else ""
    return f"{command.order}{f':{command.set}' if command.set is not None else ''}{priority}"


def objection(state: State, command: Command) -> str:
    """Say why a command cannot be heeded; nothing if it can."""
    if command.set is None:
        return _objection_to_all(state, command.order)
    standing = state.standings.get(command.set)
    if standing is None:
        return f"there is no set {command.set}; there are {_sets(state)}"
    if standing.progress is Progress.ENDED:
        return f"set {standing.id} is {standing.outcome} already: it comes too late"
    return _objection_to_one(state, standing, command.order)


def is_early(state: State, command: Command) -> bool:
    """Whether a command is about a set that was asked for and is not taken up yet."""
    waiting = (one.id for _, request in state.requests for one in request.sets)
    return command.set is not None and command.set in waiting


def _objection_to_all(state: State, order: Order) -> str:
    if order not in SETLESS:
        return f"{order} is about one set: say {order}:SET, with one of {_sets(state)}"
    if (order is Order.PAUSE) == state.paused_all:
        return f"the upgrade is {'' if state.paused_all else 'not '}paused"
    return ""


def _objection_to_one(state: State, standing: Standing, order: Order) -> str:
    undoing = standing.progress is Progress.UNDOING or standing.id in state.orders
    if order in (Order.UNDO, Order.CANCEL) and undoing:
        wanted = state.orders.get(standing.id, Order.UNDO)
        how = "cancelled" if wanted is Order.CANCEL else "undone"
        return f"set {standing.id} is being {how}"
    if order in SETLESS and (order is Order.PAUSE) == standing.paused:
        hint = "; the upgrade as a whole is" if state.paused_all and not standing.paused else ""
        return f"set {standing.id} is {'' if standing.paused else 'not '}paused{hint}"
    if order is Order.APPROVE and standing.approved >= len(standing.set.checkpoints_pct):
        return f"set {standing.id} has no checkpoint that is not approved"
    return ""


def _sets(state: State) -> str:
    return ", ".join(state.standings) or "none yet"


def obey(state: State, command: Command) -> None:
    """Let a command that makes sense change the state."""
    if command.set is None:
        state.paused_all = command.order is Order.PAUSE
        return
    one = state.standings[command.set]
    match command.order:
        case Order.PAUSE | Order.RESUME:
            one = replace(one, paused=command.order is Order.PAUSE)
        case Order.APPROVE:
            one = replace(one, approved=one.approved + 1)
        case Order.PRIORITY:
            one = replace(one, priority=command.priority)
        case Order.UNDO:
            one = replace(one, reason="an administrator wants it undone")
        case Order.CANCEL:
            one = replace(one, reason="an administrator cancelled it")
    state.standings[command.set] = one
    if command.order in (Order.UNDO, Order.CANCEL):
        state.orders[command.set] = command.order


def taken(state: State, request: Request) -> str:
    """Say why a request cannot be taken up beside the others; nothing if it can."""
    waiting = {one.id for _, other in state.requests for one in other.sets}
    names = [one.id for one in request.sets]
    for place, name in enumerate(names):
        if name in state.standings or name in waiting or name in names[:place]:
            return f"a set {name} was asked for before: sets have names of their own"
    return ""
