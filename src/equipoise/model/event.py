"""Events: what has happened. The journal is a list of them.

Names are in the past tense; each event has a time. Facts come from the world, decisions from the
control loop. Both are recorded, so that the journal alone is enough to continue after a crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import Meta

from equipoise.model.host import Host
from equipoise.model.inventory import ClusterSettings, Inventory
from equipoise.model.plan import Plan, Proposal, Rejection, Step, Violation
from equipoise.model.quantity import (
    Attempt,
    HostId,
    Milliseconds,
    PlanId,
    ProcessorKey,
    RoleGroupKey,
    RoleKey,
    SlotKey,
    StepId,
    Version,
    VmId,
)
from equipoise.model.roles.layout import RoleLayout
from equipoise.model.scenario.old_keys import rename_old_keys
from equipoise.model.upgrade.event import UpgradeEvent
from equipoise.model.value import Value
from equipoise.model.vm import Demand, Vm


class _EventBase(Value, tag_field="event"):
    at_ms: Milliseconds
    """The time of the event, counted from the start of the run."""


# Facts about the world


class ClusterLoaded(_EventBase, tag="cluster_loaded"):
    """A complete description of the cluster replaced the state so far."""

    inventory: Inventory


class SettingsChanged(_EventBase, tag="settings_changed"):
    """The operator changed pools, rules, tenants, resources, limits or policies."""

    settings: ClusterSettings


class HostJoined(_EventBase, tag="host_joined"):
    """A host was added to the cluster."""

    host: Host


class HostChanged(_EventBase, tag="host_changed"):
    """An observation of a host differs from the recorded state."""

    host: Host


class HostLeft(_EventBase, tag="host_left"):
    """A host was removed. Its running VMs became ``ready`` and can boot on another host."""

    host: HostId


class HostFailed(_EventBase, tag="host_failed"):
    """A host failed. Its VMs stopped, and every action that touched the host ended."""

    host: HostId
    reason: str = ""


class HostRecovered(_EventBase, tag="host_recovered"):
    """A failed host is on again. It holds only its sleeping VMs and its agent VMs."""

    host: HostId


class VmArrived(_EventBase, tag="vm_arrived"):
    """A VM was added to the cluster."""

    vm: Vm


class VmChanged(_EventBase, tag="vm_changed"):
    """An observation of a VM differs from the recorded state in more than its demand."""

    vm: Vm


class VmLeft(_EventBase, tag="vm_left"):
    """A VM was removed from the cluster."""

    vm: VmId


class VmCrashed(_EventBase, tag="vm_crashed"):
    """A running VM crashed. It is ``ready`` and can boot again."""

    vm: VmId
    reason: str = ""


class DemandObserved(_EventBase, tag="demand_observed"):
    """The demand of VMs was measured. A VM that is not listed keeps its last demand."""

    demand: Mapping[VmId, Demand]


# Facts about roles


class ProcessorSuspected(_EventBase, tag="processor_suspected"):
    """A processor does not answer: it has failed, or it is slow."""

    processor: ProcessorKey
    reason: str = ""


class ProcessorTrusted(_EventBase, tag="processor_trusted"):
    """A suspected processor answers again."""

    processor: ProcessorKey


class ProcessorLocked(_EventBase, tag="processor_locked"):
    """The operator locked a processor: its roles move away and no role starts on it."""

    processor: ProcessorKey
    reason: str = ""


class ProcessorUnlocked(_EventBase, tag="processor_unlocked"):
    """The operator unlocked a processor: roles may start on it again."""

    processor: ProcessorKey


class RoleMoveRequested(_EventBase, tag="role_move_requested"):
    """The operator pinned a role to a slot, or, without a slot, removed its pin."""

    group: RoleGroupKey
    role: RoleKey
    slot: SlotKey | None = None


class LayoutChanged(_EventBase, tag="layout_changed"):
    """The operator changed roles or groups."""

    layout: RoleLayout


class RolesFound(_EventBase, tag="roles_found"):
    """An observation of the roles of a processor differs from the recorded state."""

    processor: ProcessorKey
    held: tuple[tuple[RoleGroupKey, RoleKey], ...]
    """The roles that the processor runs, each with its group."""
    reason: str = ""


# Answers of the world to an action


class ActionFinished(_EventBase, tag="action_finished"):
    """The action succeeded and has taken effect."""

    step: StepId
    attempt: Attempt


class ActionFailed(_EventBase, tag="action_failed"):
    """The action failed and has no effect."""

    step: StepId
    attempt: Attempt
    reason: str = ""
    code: str = ""
    """A key of ``errors.CODES``; empty in journals that older versions wrote."""


# Decisions of the control loop


class ProposalMade(_EventBase, tag="proposal_made"):
    """A decider proposed actions, with its reasons."""

    proposal: Proposal


class ProposalsArbitrated(_EventBase, tag="proposals_arbitrated"):
    """Arbitration dropped these intents in favour of more urgent ones."""

    dropped: tuple[Rejection, ...]


class LeaderEpochStarted(_EventBase, tag="leader_epoch_started"):
    """A controller became the leader.

    Its role actions carry its epoch. Processors refuse actions with a lower epoch.
    """

    epoch: Version


class SlotsFilled(_EventBase, tag="slots_filled"):
    """The controller assigned processors to the slots of a group."""

    group: RoleGroupKey
    slots: Mapping[SlotKey, ProcessorKey]
    reason: str = ""


class PlanAccepted(_EventBase, tag="plan_accepted"):
    """The gate accepted the plan. Its execution starts."""

    plan: Plan


class PlanRefused(_EventBase, tag="plan_refused"):
    """The gate refused the plan."""

    plan: Plan
    violations: tuple[Violation, ...]


class PlanCancelled(_EventBase, tag="plan_cancelled"):
    """The plan was cancelled: no further step starts. ``abort`` also cancels running actions."""

    plan: PlanId
    abort: bool = False
    reason: str = ""
    makes_room: bool = False
    """Whether the next plan may start while the running actions of this one end."""


class ActionStarted(_EventBase, tag="action_started"):
    """The loop sends a step to the world. The event is recorded before the step is sent."""

    step: Step
    attempt: Attempt


class ActionTimedOut(_EventBase, tag="action_timed_out"):
    """The loop sends a cancellation to the world: the action is late, or the plan is aborted."""

    step: StepId
    attempt: Attempt


class ActionLost(_EventBase, tag="action_lost"):
    """The cancellation got no answer: the outcome is unknown until the next observation."""

    step: StepId
    attempt: Attempt


class ActionSkipped(_EventBase, tag="action_skipped"):
    """The step will not start."""

    step: StepId
    reason: str
    code: str = ""
    """The stable code of the reason, a key of ``errors.CODES``; older journals have none."""


class PlanOutcome(StrEnum):
    """How a plan ended."""

    DONE = "done"
    PARTIAL = "partial"
    CANCELLED = "cancelled"


class PlanEnded(_EventBase, tag="plan_ended"):
    """Every step of the plan finished, failed, or was skipped."""

    plan: PlanId
    outcome: PlanOutcome
    finished: int
    failed: int
    skipped: int


# Runs of batch jobs: the events alone are enough to rebuild every job and every figure of a run.
# Jobs and hosts have the names and numbers of their files: a workload may use any characters.

HostIntervals = Annotated[str, Meta(pattern=r"^(\d+(-\d+)?( \d+(-\d+)?)*)?$(?!\n)")]
"""Numbers of hosts as ascending intervals, such as ``0-3 7``."""


class _JobEventBase(_EventBase):
    # ``at_ms`` is rounded down.
    at_s: float
    """The same time, exactly: jobs do not end on whole milliseconds."""


class _OneJobEvent(_JobEventBase):
    workload: str
    job: str
    """The name of the job, unique in its workload."""


class JobsRunStarted(_JobEventBase, tag="jobs_run_started"):
    """A workload starts on a platform. All its hosts are idle."""

    source: str
    """The file of the workload."""
    policy: str
    hosts: tuple[str, ...]
    """The names of the hosts, in the order of their numbers."""
    storages: tuple[str, ...] = ()
    """The names of the hosts that store files; their numbers follow."""


class JobSubmitted(_OneJobEvent, tag="job_submitted"):
    """A job arrived."""

    work: str
    """The name of what the job does."""
    submit_s: float
    """The time of arrival that the workload states."""
    hosts_requested: int
    walltime_s: float | None
    """The longest run time; None for a job without a limit."""


class JobRejected(_OneJobEvent, tag="job_rejected"):
    """A job will never run."""

    code: str = ""
    """A key of ``errors.CODES``; empty if the scheduler stated no reason."""
    label: str = ""


class JobStarted(_OneJobEvent, tag="job_started"):
    """A job runs on its hosts."""

    hosts: HostIntervals


class JobEnding(StrEnum):
    """How a job ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    KILLED = "killed"


class JobEnded(_OneJobEvent, tag="job_ended"):
    """A job ended, or the scheduler killed it. Its hosts are free."""

    outcome: JobEnding
    run_s: float
    return_code: int
    energy_j: float
    """Energy of its hosts while it ran; -1 if the platform measures none."""
    label: str = ""
    """What the scheduler noted about the job."""


class JobHostActivity(StrEnum):
    """What hosts that switch do from now on."""

    IDLE = "idle"
    SLEEPING = "sleeping"
    SWITCHING_ON = "switching_on"
    SWITCHING_OFF = "switching_off"


class JobHostsSwitched(_JobEventBase, tag="job_hosts_switched"):
    """Hosts begin to switch to a power state, or have reached it."""

    hosts: HostIntervals
    power_state: int
    activity: JobHostActivity | None
    """None if the power state changed only the speed of hosts."""


class JobHostsFailed(_JobEventBase, tag="job_hosts_failed"):
    """Hosts became unavailable. Their running jobs go on."""

    hosts: HostIntervals
    passing: HostIntervals = ""
    """Those of them that sleep or switch, and go on with that."""


class JobHostsReturned(_JobEventBase, tag="job_hosts_returned"):
    """Hosts that had failed are available again."""

    hosts: HostIntervals


class JobsRunEnded(_JobEventBase, tag="jobs_run_ended"):
    """The run ended. No event follows."""

    energy_j: float
    """The energy of all hosts, 0 if the platform measures none."""
    switches: int = 0
    """Requests to switch hosts."""
    switched_hosts: int = 0


JobEvent = (
    JobsRunStarted
    | JobSubmitted
    | JobRejected
    | JobStarted
    | JobEnded
    | JobHostsSwitched
    | JobHostsFailed
    | JobHostsReturned
    | JobsRunEnded
)

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
    | RoleMoveRequested
    | LayoutChanged
    | RolesFound
    | ActionFinished
    | ActionFailed
    | ProposalMade
    | ProposalsArbitrated
    | LeaderEpochStarted
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
    | JobEvent
)

EVENT_KINDS: Final = tuple(str(kind.__struct_config__.tag) for kind in get_args(Event))
"""The tags of all events, as the journal stores them."""

OLD_EVENT_KINDS: Final[Mapping[str, str]] = {
    "campaign_began": "campaign_started",
    "iteration_began": "iteration_started",
    "order_refused": "command_rejected",
    "reign_began": "leader_epoch_started",
    "role_move_asked": "role_move_requested",
    "scaling_asked": "scaling_requested",
    "set_undo_began": "set_undo_started",
}
"""Tags of events in journals of earlier versions, each with its present tag.

``old_keys.OLD_KEYS`` has their keys.
"""

# Sorted keys: the hash of a journal must not depend on the order in which a mapping was filled.
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_DECODER: Final[msgspec.json.Decoder[Event]] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """Return an event as one line of JSON. Equal events give equal bytes."""
    return _ENCODER.encode(event)


def decode_event(line: bytes | str) -> Event:
    """Return the event of a line that ``encode_event`` of this or an earlier version wrote."""
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError:
        # A line of the present version never gets here. Records forbid unknown keys, so an old
        # line always fails above and is never read with a default in place of its value.
        renamed = _with_present_names(line)
        if renamed is None:
            raise
        event: Event = msgspec.convert(renamed, Event)
        return event


def _with_present_names(line: bytes | str) -> dict[str, Any] | None:
    """Return the JSON object of an old line with its names replaced; ``None`` if none is old."""
    root = msgspec.json.decode(line)
    if not isinstance(root, dict) or not isinstance(root.get("event"), str):
        return None
    kind = OLD_EVENT_KINDS.get(root["event"], root["event"])
    named, renamed = rename_old_keys(root | {"event": kind}, kind)
    return named if renamed or kind != root["event"] else None


def event_kind(event: Event) -> str:
    """Return the tag under which the journal stores an event."""
    tag = event.__struct_config__.tag
    assert isinstance(tag, str)
    return tag
