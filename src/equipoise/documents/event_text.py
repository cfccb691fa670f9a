"""Every event of a cluster as one line of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from equipoise.model import event as event_types
from equipoise.model.action import describe
from equipoise.model.event import Event
from equipoise.model.quantity import format_count
from equipoise.model.upgrade import event as upgrade_events
from equipoise.upgrade.requests.commands import command_text

NAMES_SHOWN: Final = 6


def _names(names: Iterable[str]) -> str:
    """Return the first names, and the number of the others."""
    all_ = list(names)
    more = f" and {len(all_) - NAMES_SHOWN} more" if len(all_) > NAMES_SHOWN else ""
    return ", ".join(all_[:NAMES_SHOWN]) + more


def _why(reason: str) -> str:
    return f": {reason}" if reason else ""


def _command(event: upgrade_events.UpgradeCommanded) -> str:
    return f"command: {command_text(event.command)}"


def _scaling(event: upgrade_events.ScalingAnswered) -> str:
    parts = [f"{vm} starts on {host}" for vm, host in event.added.items()]
    parts += [f"{vm} is removed" for vm in event.removed]
    parts += [f"{format_count(event.refused, 'VM')} have no host"] if event.refused else []
    return f"tenant {event.tenant}: {'; '.join(parts) or 'nothing changes'}"


def _restarted(event: upgrade_events.VmsRestarted) -> str:
    lost = f", no host for {_names(event.unplaced)}" if event.unplaced else ""
    return f"{format_count(len(event.placed), 'VM')} of host {event.host} restarted{lost}"


def _vm_batch(event: upgrade_events.VmBatchDecided) -> str:
    how = "" if event.wanted == event.size else f", {event.size} of {event.wanted} taken"
    return f"iteration {event.iteration}: {event.v} VMs can move{how}{_why(event.reason)}"


def _isolated(event: upgrade_events.ResourceIsolated) -> str:
    how = "isolated as failed" if event.failed else "isolated"
    return f"{event.resource} {how}{_why(event.reason)}"


UPGRADE_EVENT_TEXTS: Final[dict[type[Any], Callable[[Any], str]]] = {
    upgrade_events.CampaignStarted: lambda e: f"campaign {e.campaign.name} started",
    upgrade_events.UpgradeRequested: lambda e: (
        f"request {e.request.id}: {_names(change_set.id for change_set in e.request.sets)}"
    ),
    upgrade_events.UpgradeCommanded: _command,
    upgrade_events.CommandRejected: lambda e: f"refused: {e.command}: {e.reason}",
    upgrade_events.ScalingRequested: lambda e: f"tenant {e.tenant} requests {e.vms:+d} VMs",
    upgrade_events.TaskFinished: lambda e: f"{e.batch}: {e.kind} {e.resource} finished",
    upgrade_events.TaskFailed: lambda e: f"{e.batch}: {e.kind} {e.resource} failed{_why(e.reason)}",
    upgrade_events.VmMoved: lambda e: f"{e.batch}: VM {e.vm} moved",
    upgrade_events.VmMoveFailed: lambda e: f"{e.batch}: VM {e.vm} did not move{_why(e.reason)}",
    upgrade_events.BatchEnded: lambda e: f"{e.batch} ended",
    upgrade_events.IterationStarted: lambda e: f"iteration {e.iteration} started",
    upgrade_events.BatchDecided: lambda e: (
        f"iteration {e.iteration}: {format_count(e.z, 'host')} can leave, "
        f"batch {_names(e.batch) or 'empty'}"
    ),
    upgrade_events.BatchStarted: lambda e: (
        f"{e.batch.id} started: {_names(task.resource for task in e.batch.tasks)}"
    ),
    upgrade_events.VmBatchDecided: _vm_batch,
    upgrade_events.VmBatchStarted: lambda e: (
        f"{e.batch.id} started: {_names(f'{m.vm} to {m.target}' for m in e.batch.moves)}"
        f"{_why(e.why)}"
    ),
    upgrade_events.ScalingAnswered: _scaling,
    upgrade_events.VmsRestarted: _restarted,
    upgrade_events.ResourceIsolated: _isolated,
    upgrade_events.ResourceReleased: lambda e: f"{e.resource} released",
    upgrade_events.SetUndoStarted: lambda e: f"set {e.set} is undone{_why(e.reason)}",
    upgrade_events.SetEnded: lambda e: f"set {e.set} {e.outcome}{_why(e.reason)}",
    upgrade_events.IterationEnded: lambda e: (
        f"iteration {e.iteration} ended" + (f", the upgrade pauses: {e.paused}" if e.paused else "")
    ),
    upgrade_events.CampaignEnded: lambda e: f"campaign {e.status}{_why(e.reason)}",
}


def describe_event(event: Event) -> str:
    """Return one line of text about an event."""
    return _TEXTS[type(event)](event)


def _ended(event: event_types.PlanEnded) -> str:
    parts = [f"{event.finished} finished"]
    parts += [f"{event.failed} failed"] if event.failed else []
    parts += [f"{event.skipped} skipped"] if event.skipped else []
    return f"plan {event.plan} ended, {event.outcome}: {', '.join(parts)}"


def _proposal(event: event_types.ProposalMade) -> str:
    proposal = event.proposal
    actions = "; ".join(describe(intent.action) for intent in proposal.intents) or "nothing"
    reason = f", because {proposal.reason}" if proposal.reason else ""
    against = "; ".join(
        f"{rejection.subject}, {rejection.detail}" for rejection in proposal.rejected
    )
    rejected = f"; rejected: {against}" if against else ""
    return f"{proposal.decider} proposed {actions}{reason}{rejected}"


def _again(attempt: int) -> str:
    return f" (attempt {attempt})" if attempt > 1 else ""


def _dropped(event: event_types.ProposalsArbitrated) -> str:
    return "; ".join(
        f"dropped: {rejection.subject}, {rejection.detail}" for rejection in event.dropped
    )


def _cancelled(event: event_types.PlanCancelled) -> str:
    how = "aborted" if event.abort else "cancelled"
    return f"plan {event.plan} {how}{_why(event.reason)}"


def _move_requested(event: event_types.RoleMoveRequested) -> str:
    to = f"to slot {event.slot}" if event.slot is not None else "to any slot"
    return f"move of {event.role} of {event.group} {to} requested"


def _roles_found(event: event_types.RolesFound) -> str:
    held = ", ".join(f"{role} of {group}" for group, role in event.held) or "no role"
    return f"{event.processor} runs {held}{_why(event.reason)}"


_TEXTS: Final[dict[type[Any], Callable[[Any], str]]] = {
    event_types.ClusterLoaded: lambda e: (
        f"cluster {e.inventory.name} loaded: "
        f"{format_count(len(e.inventory.hosts), 'host')}, "
        f"{format_count(len(e.inventory.vms), 'VM')}"
    ),
    event_types.SettingsChanged: lambda _: "settings changed",
    event_types.HostJoined: lambda e: f"host {e.host.id} joined, {e.host.state}",
    event_types.HostChanged: lambda e: f"host {e.host.id} changed, {e.host.state}",
    event_types.HostLeft: lambda e: f"host {e.host} left",
    event_types.HostFailed: lambda e: f"host {e.host} failed{_why(e.reason)}",
    event_types.HostRecovered: lambda e: f"host {e.host} recovered",
    event_types.VmArrived: lambda e: f"VM {e.vm.id} arrived, {e.vm.state}",
    event_types.VmChanged: lambda e: f"VM {e.vm.id} changed, {e.vm.state} on {e.vm.host}",
    event_types.VmLeft: lambda e: f"VM {e.vm} left",
    event_types.VmCrashed: lambda e: f"VM {e.vm} crashed{_why(e.reason)}",
    event_types.DemandObserved: lambda e: (
        f"demand observed, new for {format_count(len(e.demand), 'VM')}"
    ),
    event_types.ProcessorSuspected: lambda e: f"{e.processor} is suspected{_why(e.reason)}",
    event_types.ProcessorTrusted: lambda e: f"{e.processor} is trusted again",
    event_types.ProcessorLocked: lambda e: f"{e.processor} locked{_why(e.reason)}",
    event_types.ProcessorUnlocked: lambda e: f"{e.processor} unlocked",
    event_types.RoleMoveRequested: _move_requested,
    event_types.LayoutChanged: lambda e: (
        f"layout changed: {format_count(len(e.layout.roles), 'role')}, "
        f"{format_count(len(e.layout.groups), 'group')}"
    ),
    event_types.RolesFound: _roles_found,
    event_types.LeaderEpochStarted: lambda e: f"controller started leader epoch {e.epoch}",
    event_types.SlotsFilled: lambda e: (
        f"slots of {e.group}: {', '.join(f'{k} {v}' for k, v in e.slots.items()) or 'all empty'}"
        f"{_why(e.reason)}"
    ),
    event_types.ActionFinished: lambda e: f"step {e.step} finished",
    event_types.ActionFailed: lambda e: f"step {e.step} failed{_again(e.attempt)}{_why(e.reason)}",
    event_types.ProposalMade: _proposal,
    event_types.ProposalsArbitrated: _dropped,
    event_types.PlanAccepted: lambda e: (
        f"plan {e.plan.id} accepted, {format_count(len(e.plan.steps), 'step')}"
    ),
    event_types.PlanRefused: lambda e: f"plan {e.plan.id} refused: {e.violations[0].detail}",
    event_types.PlanCancelled: _cancelled,
    event_types.ActionStarted: lambda e: (
        f"step {e.step.id} started: {describe(e.step.action)}{_again(e.attempt)}"
    ),
    event_types.ActionTimedOut: lambda e: f"step {e.step} timed out, cancel requested",
    event_types.ActionLost: lambda e: f"step {e.step} lost, its outcome is unknown",
    event_types.ActionSkipped: lambda e: f"step {e.step} skipped: {e.reason}",
    event_types.PlanEnded: _ended,
    **UPGRADE_EVENT_TEXTS,
}
