"""Events: what has happened. Past tense, with a time; the journal is a list of them.

Facts come from the world. Decisions come from the control loop, and are facts as well once they are
written down, so that a journal alone is enough to continue after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, get_args

import msgspec

from equipoise.model.host import Host
from equipoise.model.inventory import Inventory, Settings
from equipoise.model.plan import Plan, Proposal, Rejection, Step, Violation
from equipoise.model.quantity import (
    Attempt,
    HostId,
    Milliseconds,
    PlanId,
    ProcessorKey,
    RoleKey,
    SlotKey,
    StepId,
    TeamKey,
    Version,
    VmId,
)
from equipoise.model.roles.layout import RoleLayout
from equipoise.model.upgrade.event import UpgradeEvent
from equipoise.model.value import Value
from equipoise.model.vm import Demand, Vm


class _Happening(Value, tag_field="event"):
    at_ms: Milliseconds


# Facts about the world


class ClusterLoaded(_Happening, tag="cluster_loaded"):
    """The cluster was described anew, as a whole."""

    inventory: Inventory


class SettingsChanged(_Happening, tag="settings_changed"):
    """The operator changed pools, rules, tenants, resources or limits."""

    settings: Settings


class HostJoined(_Happening, tag="host_joined"):
    """A host was added to the cluster."""

    host: Host


class HostChanged(_Happening, tag="host_changed"):
    """A host was found to be different from what was believed."""

    host: Host


class HostLeft(_Happening, tag="host_left"):
    """A host was removed; VMs that ran on it are ready to be started elsewhere."""

    host: HostId


class HostFailed(_Happening, tag="host_failed"):
    """A host died with what was running on it and every action that touched it."""

    host: HostId
    reason: str = ""


class HostRecovered(_Happening, tag="host_recovered"):
    """A failed host is back, empty but for its sleeping and agent VMs."""

    host: HostId


class VmArrived(_Happening, tag="vm_arrived"):
    """A VM was added to the cluster."""

    vm: Vm


class VmChanged(_Happening, tag="vm_changed"):
    """A VM was found to be different from what was believed."""

    vm: Vm


class VmLeft(_Happening, tag="vm_left"):
    """A VM was removed from the cluster."""

    vm: VmId


class VmCrashed(_Happening, tag="vm_crashed"):
    """A running VM died; it is ready to be started again."""

    vm: VmId
    reason: str = ""


class DemandObserved(_Happening, tag="demand_observed"):
    """Demand was measured. A VM that is not named still has its last figure."""

    demand: Mapping[VmId, Demand]


# Facts about roles


class ProcessorSuspected(_Happening, tag="processor_suspected"):
    """A processor does not answer; it may be dead, or only slow."""

    processor: ProcessorKey
    reason: str = ""


class ProcessorTrusted(_Happening, tag="processor_trusted"):
    """A processor that was suspected answers again."""

    processor: ProcessorKey


class ProcessorLocked(_Happening, tag="processor_locked"):
    """Somebody wants a processor to carry no roles: they leave it."""

    processor: ProcessorKey
    reason: str = ""


class ProcessorUnlocked(_Happening, tag="processor_unlocked"):
    """A processor may carry roles again."""

    processor: ProcessorKey


class RoleMoveAsked(_Happening, tag="role_move_asked"):
    """Somebody wants a role to be in a slot; without a slot, where the controller likes."""

    group: TeamKey
    role: RoleKey
    slot: SlotKey | None = None


class LayoutChanged(_Happening, tag="layout_changed"):
    """The operator changed roles or groups."""

    layout: RoleLayout


class RolesFound(_Happening, tag="roles_found"):
    """A processor was found to run other roles than was believed; each with its group."""

    processor: ProcessorKey
    held: tuple[tuple[TeamKey, RoleKey], ...]
    reason: str = ""


# Answers of the world to an action


class ActionFinished(_Happening, tag="action_finished"):
    """The action has had its effect."""

    step: StepId
    attempt: Attempt


class ActionFailed(_Happening, tag="action_failed"):
    """The action has had no effect."""

    step: StepId
    attempt: Attempt
    reason: str = ""


# Decisions of the control loop


class ProposalMade(_Happening, tag="proposal_made"):
    """A decider said what it wants and why."""

    proposal: Proposal


class ProposalsArbitrated(_Happening, tag="proposals_arbitrated"):
    """Of all that was wanted, this was dropped in favour of something more urgent."""

    dropped: tuple[Rejection, ...]


class ReignBegan(_Happening, tag="reign_began"):
    """A controller took over; its actions carry its epoch, those of earlier ones are refused."""

    epoch: Version


class SlotsFilled(_Happening, tag="slots_filled"):
    """Who fills which slot of a group from now on was decided."""

    group: TeamKey
    slots: Mapping[SlotKey, ProcessorKey]
    reason: str = ""


class PlanAccepted(_Happening, tag="plan_accepted"):
    """The gate verified the plan; it is carried out from here on."""

    plan: Plan


class PlanRefused(_Happening, tag="plan_refused"):
    """The gate refused the plan."""

    plan: Plan
    violations: tuple[Violation, ...]


class PlanCancelled(_Happening, tag="plan_cancelled"):
    """Somebody asked to stop: nothing new starts; with ``abort`` running actions are cancelled."""

    plan: PlanId
    abort: bool = False
    reason: str = ""


class ActionStarted(_Happening, tag="action_started"):
    """The world is being asked to carry out a step. Written down before it is asked."""

    step: Step
    attempt: Attempt


class ActionTimedOut(_Happening, tag="action_timed_out"):
    """No answer in time, or the plan was aborted: the world is asked to cancel the action."""

    step: StepId
    attempt: Attempt


class ActionLost(_Happening, tag="action_lost"):
    """Not even the cancelling was answered: the outcome is unknown until the next observation."""

    step: StepId
    attempt: Attempt


class ActionSkipped(_Happening, tag="action_skipped"):
    """The step will not be carried out."""

    step: StepId
    reason: str


class Outcome(StrEnum):
    """How a plan ended."""

    DONE = "done"
    PARTIAL = "partial"
    CANCELLED = "cancelled"


class PlanEnded(_Happening, tag="plan_ended"):
    """Every step of the plan has come to an end of some kind."""

    plan: PlanId
    outcome: Outcome
    finished: int
    failed: int
    skipped: int


Event = (
    ClusterLoaded
    | SettingsChanged
    | HostJoined
    | HostChanged
    | HostLeft
    | HostFailed
    | HostRecovered
    | VmArrived
    | VmChanged
    | VmLeft
    | VmCrashed
    | DemandObserved
    | ProcessorSuspected
    | ProcessorTrusted
    | ProcessorLocked
    | ProcessorUnlocked
    | RoleMoveAsked
    | LayoutChanged
    | RolesFound
    | ActionFinished
    | ActionFailed
    | ProposalMade
    | ProposalsArbitrated
    | ReignBegan
    | SlotsFilled
    | PlanAccepted
    | PlanRefused
    | PlanCancelled
    | ActionStarted
    | ActionTimedOut
    | ActionLost
    | ActionSkipped
    | PlanEnded
    | UpgradeEvent
)

KINDS: Final = tuple(str(one.__struct_config__.tag) for one in get_args(Event))
"""The names under which the journal files events."""

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_DECODER: Final[msgspec.json.Decoder[Event]] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """Write an event as one line of JSON, the same bytes for equal events."""
    return _ENCODER.encode(event)


def decode_event(line: bytes | str) -> Event:
    """Read back what ``encode_event`` wrote."""
    return _DECODER.decode(line)


def kind_of(event: Event) -> str:
    """Return the name under which the journal files an event."""
    tag = event.__struct_config__.tag
    assert isinstance(tag, str)
    return tag
