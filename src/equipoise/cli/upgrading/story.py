"""What happened in an upgrade, in words, as the journal tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from equipoise.model.upgrade import event as happened
from equipoise.model.words import counted
from equipoise.upgrade.requests.orders import words

FEW: Final = 6


def _names(names: Iterable[str]) -> str:
    """Some names, and how many more there are."""
    all_ = list(names)
    more = f" and {len(all_) - FEW} more" if len(all_) > FEW else ""
    return ", ".join(all_[:FEW]) + more


def _why(reason: str) -> str:
    return f": {reason}" if reason else ""


def _command(event: happened.UpgradeCommanded) -> str:
    return f"commanded: {words(event.command)}"


def _scaling(event: happened.ScalingAnswered) -> str:
    parts = [f"{vm} starts on {host}" for vm, host in event.added.items()]
    parts += [f"{vm} is removed" for vm in event.removed]
    parts += [f"{counted(event.refused, 'VM')} found no place"] if event.refused else []
    return f"tenant {event.tenant}: {'; '.join(parts) or 'nothing changes'}"


def _restarted(event: happened.VmsRestarted) -> str:
    lost = f", no place for {_names(event.unplaced)}" if event.unplaced else ""
    return f"{counted(len(event.placed), 'VM')} of host {event.host} restarted{lost}"


def _vm_batch(event: happened.VmBatchDecided) -> str:
    how = "" if event.wanted == event.size else f", {event.size} of {event.wanted} taken"
    return f"iteration {event.iteration}: {event.v} VMs may move{how}{_why(event.reason)}"


def _isolated(event: happened.ResourceIsolated) -> str:
    how = "isolated as failed" if event.failed else "isolated"
    return f"{event.resource} {how}{_why(event.reason)}"


UPGRADE_SENTENCES: Final[dict[type[Any], Callable[[Any], str]]] = {
    happened.CampaignBegan: lambda e: f"campaign {e.campaign.name} began",
    happened.UpgradeRequested: lambda e: (
        f"request {e.request.id}: {_names(one.id for one in e.request.sets)}"
    ),
    happened.UpgradeCommanded: _command,
    happened.OrderRefused: lambda e: f"refused: {e.order}: {e.reason}",
    happened.ScalingAsked: lambda e: f"tenant {e.tenant} asks for {e.vms:+d} VMs",
    happened.TaskFinished: lambda e: f"{e.batch}: {e.errand} {e.resource} finished",
    happened.TaskFailed: lambda e: f"{e.batch}: {e.errand} {e.resource} failed{_why(e.reason)}",
    happened.VmMoved: lambda e: f"{e.batch}: VM {e.vm} moved",
    happened.VmMoveFailed: lambda e: f"{e.batch}: VM {e.vm} did not move{_why(e.reason)}",
    happened.BatchEnded: lambda e: f"{e.batch} ended",
    happened.IterationBegan: lambda e: f"iteration {e.iteration} began",
    happened.BatchDecided: lambda e: (
        f"iteration {e.iteration}: {counted(e.z, 'host')} may go out, "
        f"batch {_names(e.batch) or 'empty'}"
    ),
    happened.BatchStarted: lambda e: (
        f"{e.batch.id} started: {_names(one.resource for one in e.batch.tasks)}"
    ),
    happened.VmBatchDecided: _vm_batch,
    happened.VmBatchStarted: lambda e: (
        f"{e.batch.id} started: {_names(f'{m.vm} to {m.target}' for m in e.batch.moves)}"
        f"{_why(e.why)}"
    ),
    happened.ScalingAnswered: _scaling,
    happened.VmsRestarted: _restarted,
    happened.ResourceIsolated: _isolated,
    happened.ResourceReleased: lambda e: f"{e.resource} released",
    happened.SetUndoBegan: lambda e: f"set {e.set} is undone{_why(e.reason)}",
    happened.SetEnded: lambda e: f"set {e.set} {e.outcome}{_why(e.reason)}",
    happened.IterationEnded: lambda e: (
        f"iteration {e.iteration} ended" + (f", the upgrade pauses: {e.paused}" if e.paused else "")
    ),
    happened.CampaignEnded: lambda e: f"campaign {e.status}{_why(e.reason)}",
}
