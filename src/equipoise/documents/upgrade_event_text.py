"""Every event of an upgrade campaign as one line of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from equipoise.model.quantity import format_count
from equipoise.model.upgrade import event as event_types
from equipoise.upgrade.requests.commands import command_text

NAMES_SHOWN: Final = 6


def _names(names: Iterable[str]) -> str:
    """Return the first names, and the number of the others."""
    all_ = list(names)
    more = f" and {len(all_) - NAMES_SHOWN} more" if len(all_) > NAMES_SHOWN else ""
    return ", ".join(all_[:NAMES_SHOWN]) + more


def _why(reason: str) -> str:
    return f": {reason}" if reason else ""


def _command(event: event_types.UpgradeCommanded) -> str:
    return f"command: {command_text(event.command)}"


def _scaling(event: event_types.ScalingAnswered) -> str:
    parts = [f"{vm} starts on {host}" for vm, host in event.added.items()]
    parts += [f"{vm} is removed" for vm in event.removed]
    parts += [f"{format_count(event.refused, 'VM')} have no host"] if event.refused else []
    return f"tenant {event.tenant}: {'; '.join(parts) or 'nothing changes'}"


def _restarted(event: event_types.VmsRestarted) -> str:
    lost = f", no host for {_names(event.unplaced)}" if event.unplaced else ""
    return f"{format_count(len(event.placed), 'VM')} of host {event.host} restarted{lost}"


def _vm_batch(event: event_types.VmBatchDecided) -> str:
    how = "" if event.wanted == event.size else f", {event.size} of {event.wanted} taken"
    return f"iteration {event.iteration}: {event.v} VMs can move{how}{_why(event.reason)}"


def _isolated(event: event_types.ResourceIsolated) -> str:
    how = "isolated as failed" if event.failed else "isolated"
    return f"{event.resource} {how}{_why(event.reason)}"


UPGRADE_EVENT_TEXTS: Final[dict[type[Any], Callable[[Any], str]]] = {
    event_types.CampaignStarted: lambda e: f"campaign {e.campaign.name} started",
    event_types.UpgradeRequested: lambda e: (
        f"request {e.request.id}: {_names(change_set.id for change_set in e.request.sets)}"
    ),
    event_types.UpgradeCommanded: _command,
    event_types.CommandRejected: lambda e: f"refused: {e.command}: {e.reason}",
    event_types.ScalingRequested: lambda e: f"tenant {e.tenant} requests {e.vms:+d} VMs",
    event_types.TaskFinished: lambda e: f"{e.batch}: {e.errand} {e.resource} finished",
    event_types.TaskFailed: lambda e: f"{e.batch}: {e.errand} {e.resource} failed{_why(e.reason)}",
    event_types.VmMoved: lambda e: f"{e.batch}: VM {e.vm} moved",
    event_types.VmMoveFailed: lambda e: f"{e.batch}: VM {e.vm} did not move{_why(e.reason)}",
    event_types.BatchEnded: lambda e: f"{e.batch} ended",
    event_types.IterationStarted: lambda e: f"iteration {e.iteration} started",
    event_types.BatchDecided: lambda e: (
        f"iteration {e.iteration}: {format_count(e.z, 'host')} can leave, "
        f"batch {_names(e.batch) or 'empty'}"
    ),
    event_types.BatchStarted: lambda e: (
        f"{e.batch.id} started: {_names(task.resource for task in e.batch.tasks)}"
    ),
    event_types.VmBatchDecided: _vm_batch,
    event_types.VmBatchStarted: lambda e: (
        f"{e.batch.id} started: {_names(f'{m.vm} to {m.target}' for m in e.batch.moves)}"
        f"{_why(e.why)}"
    ),
    event_types.ScalingAnswered: _scaling,
    event_types.VmsRestarted: _restarted,
    event_types.ResourceIsolated: _isolated,
    event_types.ResourceReleased: lambda e: f"{e.resource} released",
    event_types.SetUndoStarted: lambda e: f"set {e.set} is undone{_why(e.reason)}",
    event_types.SetEnded: lambda e: f"set {e.set} {e.outcome}{_why(e.reason)}",
    event_types.IterationEnded: lambda e: (
        f"iteration {e.iteration} ended" + (f", the upgrade pauses: {e.paused}" if e.paused else "")
    ),
    event_types.CampaignEnded: lambda e: f"campaign {e.status}{_why(e.reason)}",
}
