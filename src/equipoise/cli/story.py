"""Events in words, as the journal tells them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from equipoise.cli.upgrading.story import UPGRADE_SENTENCES
from equipoise.model import event as happened
from equipoise.model.action import describe
from equipoise.model.event import Event
from equipoise.model.words import counted


def tell(event: Event) -> str:
    """Say what happened, in one line."""
    return _SENTENCES[type(event)](event)


def _ended(event: happened.PlanEnded) -> str:
    parts = [f"{event.finished} finished"]
    parts += [f"{event.failed} failed"] if event.failed else []
    parts += [f"{event.skipped} skipped"] if event.skipped else []
    return f"plan {event.plan} ended, {event.outcome}: {', '.join(parts)}"


def _proposal(event: happened.ProposalMade) -> str:
    proposal = event.proposal
    wanted = "; ".join(describe(intent.action) for intent in proposal.intents) or "nothing"
    reason = f", because {proposal.reason}" if proposal.reason else ""
    against = "; ".join(f"{one.subject}, {one.detail}" for one in proposal.rejected)
    rejected = f"; decided against: {against}" if against else ""
    return f"{proposal.decider} proposed {wanted}{reason}{rejected}"


def _why(reason: str) -> str:
    return f": {reason}" if reason else ""


def _again(attempt: int) -> str:
    return f" (attempt {attempt})" if attempt > 1 else ""


def _dropped(event: happened.ProposalsArbitrated) -> str:
    return "; ".join(f"dropped: {one.subject}, {one.detail}" for one in event.dropped)


def _cancelled(event: happened.PlanCancelled) -> str:
    how = "aborted" if event.abort else "cancelled"
    return f"plan {event.plan} {how}{_why(event.reason)}"


def _move_asked(event: happened.RoleMoveAsked) -> str:
    to = f"be in slot {event.slot}" if event.slot is not None else "be where the controller likes"
    return f"somebody wants {event.role} of {event.group} to {to}"


def _found(event: happened.RolesFound) -> str:
    held = ", ".join(f"{role} of {group}" for group, role in event.held) or "no role"
    return f"{event.processor} was found to run {held}{_why(event.reason)}"


_SENTENCES: Final[dict[type[Any], Callable[[Any], str]]] = {
    happened.ClusterLoaded: lambda e: (
        f"cluster {e.inventory.name} loaded: "
        f"{counted(len(e.inventory.hosts), 'host')}, {counted(len(e.inventory.vms), 'VM')}"
    ),
    happened.SettingsChanged: lambda _: "settings changed",
    happened.HostJoined: lambda e: f"host {e.host.id} joined, {e.host.state}",
    happened.HostChanged: lambda e: f"host {e.host.id} changed, {e.host.state}",
    happened.HostLeft: lambda e: f"host {e.host} left",
    happened.HostFailed: lambda e: f"host {e.host} failed{_why(e.reason)}",
    happened.HostRecovered: lambda e: f"host {e.host} recovered",
    happened.VmArrived: lambda e: f"VM {e.vm.id} arrived, {e.vm.state}",
    happened.VmChanged: lambda e: f"VM {e.vm.id} changed, {e.vm.state} on {e.vm.host}",
    happened.VmLeft: lambda e: f"VM {e.vm} left",
    happened.VmCrashed: lambda e: f"VM {e.vm} crashed{_why(e.reason)}",
    happened.DemandObserved: lambda e: f"demand observed, new for {counted(len(e.demand), 'VM')}",
    happened.ProcessorSuspected: lambda e: f"{e.processor} is suspected{_why(e.reason)}",
    happened.ProcessorTrusted: lambda e: f"{e.processor} is trusted again",
    happened.ProcessorLocked: lambda e: f"{e.processor} locked{_why(e.reason)}",
    happened.ProcessorUnlocked: lambda e: f"{e.processor} unlocked",
    happened.RoleMoveAsked: _move_asked,
    happened.LayoutChanged: lambda e: (
        f"layout changed: {counted(len(e.layout.roles), 'role')}, "
        f"{counted(len(e.layout.groups), 'group')}"
    ),
    happened.RolesFound: _found,
    happened.ReignBegan: lambda e: f"a controller took over, epoch {e.epoch}",
    happened.SlotsFilled: lambda e: (
        f"slots of {e.group}: {', '.join(f'{k} {v}' for k, v in e.slots.items()) or 'all empty'}"
        f"{_why(e.reason)}"
    ),
    happened.ActionFinished: lambda e: f"step {e.step} finished",
    happened.ActionFailed: lambda e: f"step {e.step} failed{_again(e.attempt)}{_why(e.reason)}",
    happened.ProposalMade: _proposal,
    happened.ProposalsArbitrated: _dropped,
    happened.PlanAccepted: lambda e: (
        f"plan {e.plan.id} accepted, {counted(len(e.plan.steps), 'step')}"
    ),
    happened.PlanRefused: lambda e: f"plan {e.plan.id} refused: {e.violations[0].detail}",
    happened.PlanCancelled: _cancelled,
    happened.ActionStarted: lambda e: (
        f"step {e.step.id} started: {describe(e.step.action)}{_again(e.attempt)}"
    ),
    happened.ActionTimedOut: lambda e: f"step {e.step} asked to cancel",
    happened.ActionLost: lambda e: f"step {e.step} unanswered, its outcome is unknown",
    happened.ActionSkipped: lambda e: f"step {e.step} skipped: {e.reason}",
    happened.PlanEnded: _ended,
    **UPGRADE_SENTENCES,
}
