"""Commands of administrators during an upgrade: whether a command is valid, and what it changes."""

from __future__ import annotations

from equipoise.model.quantity import ResourceId
from equipoise.model.upgrade.request import CommandKind, UpgradeCommand, UpgradeRequest
from equipoise.model.upgrade.work import ExecutionLevel, WorkItem
from equipoise.model.value import FrozenMap
from equipoise.upgrade.graph.build import grouping
from equipoise.upgrade.reason import Reason
from equipoise.upgrade.requests.brakes import checkpoint_marks, has_too_many_failures
from equipoise.upgrade.requests.undo import rebase_levels
from equipoise.upgrade.state import UpgradeState
from equipoise.upgrade.state.requests import ChangeSetStatus, SetProgress, UpgradeRequests

ORDERS_FOR_ALL = (CommandKind.PAUSE, CommandKind.RESUME)
"""Commands that can address all sets at once."""
UNDO_COMMANDED = Reason("undo-commanded", "an administrator commanded the undo")
CANCELLED = Reason("cancelled-by-command", "an administrator cancelled it")


def command_text(command: UpgradeCommand) -> str:
    """Return a command in the form of ``--command``."""
    priority = f"={command.priority}" if command.order is CommandKind.PRIORITY else ""
    if command.order is CommandKind.REPAIRED:
        return f"{command.order}:{command.resource}"
    return f"{command.order}{f':{command.set}' if command.set is not None else ''}{priority}"


def command_objection(state: UpgradeState, command: UpgradeCommand) -> Reason | None:
    """Return the reason why a command is rejected, or None if it is valid."""
    if command.order is CommandKind.REPAIRED:
        return _objection_to_repair(state, command)
    if command.set is None:
        return _objection_to_all(state, command.order)
    status = state.requests.set_status.get(command.set)
    if status is None:
        text = f"there is no set {command.set}; the sets are: {_set_names(state)}"
        return Reason("unknown-set", text)
    if status.progress is SetProgress.ENDED:
        return Reason("set-ended", f"set {status.id} has ended: it is {status.outcome}")
    return _objection_to_one(state, status, command.order)


def is_deferred(state: UpgradeState, command: UpgradeCommand) -> bool:
    """Return whether a command addresses a set whose request is not scheduled yet."""
    waiting = (set_.id for _, request in state.requests.pending for set_ in request.sets)
    return command.set is not None and command.set in waiting


def _objection_to_all(state: UpgradeState, order: CommandKind) -> Reason | None:
    if order not in ORDERS_FOR_ALL:
        text = f"{order} needs a set: write {order}:SET, with one of {_set_names(state)}"
        return Reason("set-required", text)
    if (order is CommandKind.PAUSE) == state.requests.paused_by_command:
        paused = "already" if state.requests.paused_by_command else "not"
        return Reason("no-effect", f"the campaign is {paused} paused")
    return None


def _objection_to_repair(state: UpgradeState, command: UpgradeCommand) -> Reason | None:
    name = command.resource
    resource_state = None if name is None else state.resources.states.get(name)
    if resource_state is None:
        text = f"there is no resource {name}: write repaired:RESOURCE"
        return Reason("unknown-resource", text)
    if resource_state.operational:
        return Reason("no-effect", f"resource {name} is neither failed nor isolated")
    return None


def _objection_to_one(
    state: UpgradeState, status: ChangeSetStatus, order: CommandKind
) -> Reason | None:
    # A command that was accepted and not executed yet counts, so that a repeated one is answered at
    # once.
    undoing = status.progress is SetProgress.UNDOING or status.id in state.requests.pending_orders
    if order in (CommandKind.UNDO, CommandKind.CANCEL) and undoing:
        pending = state.requests.pending_orders.get(status.id, CommandKind.UNDO)
        how = "cancelled" if pending is CommandKind.CANCEL else "undone"
        return Reason("no-effect", f"set {status.id} is being {how}")
    is_restart = order is CommandKind.RESUME and has_too_many_failures(status)
    if order in ORDERS_FOR_ALL and (order is CommandKind.PAUSE) == status.paused and not is_restart:
        campaign_only = state.requests.paused_by_command and not status.paused
        hint = "; the whole campaign is paused" if campaign_only else ""
        paused = "already" if status.paused else "not"
        return Reason("no-effect", f"set {status.id} is {paused} paused{hint}")
    if order is CommandKind.APPROVE and status.checkpoints_approved >= len(
        checkpoint_marks(state, status)
    ):
        text = f"set {status.id} has no checkpoint that waits for approval"
        return Reason("no-checkpoint", text)
    return None


def _set_names(state: UpgradeState) -> str:
    return ", ".join(state.requests.set_status) or "none yet"


def execute_command(requests: UpgradeRequests, command: UpgradeCommand) -> None:
    """Apply a valid command."""
    set_ = command.set
    if set_ is None:
        requests.pause_all(paused=command.order is CommandKind.PAUSE)
        return
    match command.order:
        case CommandKind.PAUSE:
            requests.change_set(set_, paused=True)
        case CommandKind.RESUME:
            failures = requests.set_status[set_].failures
            requests.change_set(set_, paused=False, failures_excused=failures)
        case CommandKind.APPROVE:
            approved = requests.set_status[set_].checkpoints_approved
            requests.change_set(set_, checkpoints_approved=approved + 1)
        case CommandKind.PRIORITY:
            requests.change_set(set_, priority=command.priority)
        case CommandKind.UNDO:
            requests.order(set_, command.order, UNDO_COMMANDED)
        case CommandKind.CANCEL:
            requests.order(set_, command.order, CANCELLED)


def repair(state: UpgradeState, resource: ResourceId) -> None:
    """Let a resource, and what changes together with it, take part again.

    Its pending work of open sets continues with fresh attempts, from the version of the status.
    """
    groups = grouping(state)
    for member in groups.members[groups.group_of[resource]]:
        resource_state = state.resources.states[member]
        if resource_state.operational:
            continue
        levels = (*resource_state.levels, *resource_state.set_aside)
        kept = [level.but(works=works) for level in levels if (works := _open_works(state, level))]
        state.resources.put(
            rebase_levels(
                resource_state.but(
                    isolated=False,
                    failed=False,
                    attempts=FrozenMap(),
                    levels=tuple(kept),
                    set_aside=(),
                )
            )
        )
        state.attempts.isolated(member)


def _open_works(state: UpgradeState, level: ExecutionLevel) -> tuple[WorkItem, ...]:
    """Return the works of a level that their sets still want."""
    wanted = {False: SetProgress.SCHEDULED, True: SetProgress.UNDOING}
    return tuple(
        work
        for work in level.works
        if state.requests.set_status[work.set].progress is wanted[work.undoing]
    )


def request_objection(state: UpgradeState, request: UpgradeRequest) -> Reason | None:
    """Return the reason why a request is rejected beside the others, or None."""
    waiting = {set_.id for _, pending in state.requests.pending for set_ in pending.sets}
    names = [set_.id for set_ in request.sets]
    for index, name in enumerate(names):
        if name in state.requests.set_status or name in waiting or name in names[:index]:
            text = f"a set {name} exists: give each set an id of its own"
            return Reason("duplicate-set", text)
    for described in request.catalog.descriptions:
        known = state.catalog.get((described.component, described.version), described)
        if known != described:
            text = f"the catalog describes {described.component} {described.version} otherwise"
            return Reason("catalog-conflict", text)
    taken = [host.id for host in request.new.hosts if host.id in state.cluster.compute_hosts]
    taken += [new.id for new in request.new.resources if new.id in state.resources.states]  # type: ignore[misc]
    if taken:
        return Reason("name-taken", f"{', '.join(taken)} exist already in the campaign")
    return None
