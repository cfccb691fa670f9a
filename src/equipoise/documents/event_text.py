"""Every event of a cluster as one line of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from equipoise.model import event as events
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


def _hosts_switched(event: events.JobHostsSwitched) -> str:
    what = "" if event.activity is None else f", {event.activity.replace('_', ' ')}"
    return f"hosts {event.hosts}: power state {event.power_state}{what}"


def _ended(event: events.PlanEnded) -> str:
    parts = [f"{event.finished} finished"]
    parts += [f"{event.failed} failed"] if event.failed else []
    parts += [f"{event.skipped} skipped"] if event.skipped else []
    return f"plan {event.plan} ended, {event.outcome}: {', '.join(parts)}"


def _proposal(event: events.ProposalMade) -> str:
    proposal = event.proposal
    actions = "; ".join(describe(intent.action) for intent in proposal.intents) or "nothing"
    reason = f", because {proposal.reason}" if proposal.reason else ""
    # The reason of a pass may name the best of them already.
    against = "; ".join(
        f"{rejection.subject}, {rejection.detail}"
        for rejection in proposal.rejected
        if f"{rejection.subject} ({rejection.detail})" not in proposal.reason
    )
    rejected = f"; rejected: {against}" if against else ""
    return f"{proposal.decider} proposed {actions}{reason}{rejected}"


def _again(attempt: int) -> str:
    return f" (attempt {attempt})" if attempt > 1 else ""


def _dropped(event: events.ProposalsArbitrated) -> str:
    return "; ".join(
        f"dropped: {rejection.subject}, {rejection.detail}" for rejection in event.dropped
    )


def _cancelled(event: events.PlanCancelled) -> str:
    how = "aborted" if event.abort else "cancelled"
    return f"plan {event.plan} {how}{_why(event.reason)}"


def _move_requested(event: events.RoleMoveRequested) -> str:
    to = f"to slot {event.slot}" if event.slot is not None else "to any slot"
    return f"move of {event.role} of {event.group} {to} requested"


def _roles_found(event: events.RolesFound) -> str:
    held = ", ".join(f"{role} of {group}" for group, role in event.held) or "no role"
    return f"{event.processor} runs {held}{_why(event.reason)}"


# Texts are here and not in the model: events are data, and another page may need other words.
_TEXTS: Final[dict[type[Any], Callable[[Any], str]]] = {
    events.ClusterLoaded: lambda e: (
        f"cluster {e.inventory.name} loaded: "
        f"{format_count(len(e.inventory.hosts), 'host')}, "
        f"{format_count(len(e.inventory.vms), 'VM')}"
    ),
    events.SettingsChanged: lambda _: "settings changed",
    events.HostJoined: lambda e: f"host {e.host.id} joined, {e.host.state}",
    events.HostChanged: lambda e: f"host {e.host.id} changed, {e.host.state}",
    events.HostLeft: lambda e: f"host {e.host} left",
    events.HostFailed: lambda e: f"host {e.host} failed{_why(e.reason)}",
    events.HostRecovered: lambda e: f"host {e.host} recovered",
    events.VmArrived: lambda e: f"VM {e.vm.id} arrived, {e.vm.state}",
    events.VmChanged: lambda e: f"VM {e.vm.id} changed, {e.vm.state} on {e.vm.host}",
    events.VmLeft: lambda e: f"VM {e.vm} left",
    events.VmCrashed: lambda e: f"VM {e.vm} crashed{_why(e.reason)}",
    events.DemandObserved: lambda e: (
        f"demand observed, new for {format_count(len(e.demand), 'VM')}"
    ),
    events.ProcessorSuspected: lambda e: f"{e.processor} is suspected{_why(e.reason)}",
    events.ProcessorTrusted: lambda e: f"{e.processor} is trusted again",
    events.ProcessorLocked: lambda e: f"{e.processor} locked{_why(e.reason)}",
    events.ProcessorUnlocked: lambda e: f"{e.processor} unlocked",
    events.RoleMoveRequested: _move_requested,
    events.LayoutChanged: lambda e: (
        f"layout changed: {format_count(len(e.layout.roles), 'role')}, "
        f"{format_count(len(e.layout.groups), 'group')}"
    ),
    events.RolesFound: _roles_found,
    events.LeaderEpochStarted: lambda e: f"controller started leader epoch {e.epoch}",
    events.SlotsFilled: lambda e: (
        f"slots of {e.group}: {', '.join(f'{k} {v}' for k, v in e.slots.items()) or 'all empty'}"
        f"{_why(e.reason)}"
    ),
    events.ActionFinished: lambda e: f"step {e.step} finished",
    events.ActionFailed: lambda e: f"step {e.step} failed{_again(e.attempt)}{_why(e.reason)}",
    events.ProposalMade: _proposal,
    events.ProposalsArbitrated: _dropped,
    events.PlanAccepted: lambda e: (
        f"plan {e.plan.id} accepted, {format_count(len(e.plan.steps), 'step')}"
    ),
    events.PlanRefused: lambda e: f"plan {e.plan.id} refused: {e.violations[0].detail}",
    events.PlanCancelled: _cancelled,
    events.ActionStarted: lambda e: (
        f"step {e.step.id} started: {describe(e.step.action)}{_again(e.attempt)}"
    ),
    events.ActionTimedOut: lambda e: f"step {e.step} timed out, cancel requested",
    events.ActionLost: lambda e: f"step {e.step} lost, its outcome is unknown",
    events.ActionSkipped: lambda e: f"step {e.step} skipped: {e.reason}",
    events.PlanEnded: _ended,
    events.JobsRunStarted: lambda e: (
        f"{e.source} started on {format_count(len(e.hosts), 'host')}, policy {e.policy}"
    ),
    events.JobSubmitted: lambda e: (
        f"job {e.workload}!{e.job} submitted, {format_count(e.hosts_requested, 'host')} requested"
    ),
    events.JobRejected: lambda e: f"job {e.workload}!{e.job} rejected{_why(e.code)}",
    events.JobStarted: lambda e: f"job {e.workload}!{e.job} started on hosts {e.hosts}",
    events.JobEnded: lambda e: (
        f"job {e.workload}!{e.job} {e.outcome.replace('_', ' ')} after {e.run_s:g} s"
    ),
    events.JobHostsSwitched: _hosts_switched,
    events.JobHostsFailed: lambda e: f"hosts {e.hosts} failed",
    events.JobHostsReturned: lambda e: f"hosts {e.hosts} returned",
    events.JobsRunEnded: lambda e: "the run of jobs ended",
    upgrade_events.CampaignStarted: lambda e: f"campaign {e.campaign.name} started",
    upgrade_events.HostReturned: lambda e: f"the extra host {e.host} is returned",
    upgrade_events.CampaignContinued: lambda _: "another run continues the campaign",
    upgrade_events.UpgradeRequested: lambda e: (
        f"request {e.request.id}: {_names(change_set.id for change_set in e.request.sets)}"
    ),
    upgrade_events.UpgradeCommanded: lambda e: f"command: {command_text(e.command)}",
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
    upgrade_events.ResourceGivenUp: lambda e: f"{e.resource} stays as it is: {e.reason}",
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
