"""BtrPlace's JSON records, key by key, and how bytes become records.

The types are those that BtrPlace 1.12 reads. Unknown keys are ignored, as BtrPlace does; but not
in constraints, where a misspelt optional key would go unnoticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Mapping as Map
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import Meta, field

from equipoise.errors import InvalidInput
from equipoise.files.json_reader import read_json
from equipoise.files.text import FileFormat, check_size_for_format, decode_text, reject_file
from equipoise.files.type_check import check_types
from equipoise.model.diagnostics import Diagnostics, TooManyDiagnostics
from equipoise.model.value import Value

NUMBER_MAX: Final = 2**31 - 1
QUANTITY_MAX: Final = 10**12

ElementNumber = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
"""The number of a VM, a node, a switch or a link."""
ResourceQuantity = Annotated[int, Meta(ge=0, le=QUANTITY_MAX)]
Bandwidth = Annotated[int, Meta(ge=-(10**12), le=10**12)]
"""Mbit/s; a negative number means no limit."""
Ratio = Annotated[float, Meta(ge=1, le=10**9)]
TimeSeconds = Annotated[int, Meta(ge=0, le=10**9 - 1)]
DurationSeconds = Annotated[int, Meta(ge=1, le=10**9)]
ElementNumbers = tuple[ElementNumber, ...]
ElementGroups = tuple[ElementNumbers, ...]


class BtrPlaceRecord(Value, forbid_unknown_fields=False):
    """A record of a file."""


class NodeVms(BtrPlaceRecord):
    """The VMs on a node that is online."""

    running: ElementNumbers = field(name="runningVMs")
    sleeping: ElementNumbers = field(name="sleepingVMs")


class MappingRecord(BtrPlaceRecord):
    """The VMs on each node, and the VMs and nodes that are off."""

    ready: ElementNumbers = field(name="readyVMs")
    online: Map[ElementNumber, NodeVms] = field(name="onlineNodes")
    offline: ElementNumbers = field(name="offlineNodes")


class VmAttributes(BtrPlaceRecord):
    """Attributes of a VM, with the durations of actions in seconds. 0: not given."""

    template: str = ""
    clone: bool = False
    """Whether another VM made from the template may take its place."""
    mem_used: ResourceQuantity | None = field(name="memUsed", default=None)
    """In MiB. It and the next four, which tell how it is copied, count in a network only."""
    hot_dirty_size: float | None = field(name="hotDirtySize", default=None)
    hot_dirty_duration: float | None = field(name="hotDirtyDuration", default=None)
    cold_dirty_rate: float | None = field(name="coldDirtyRate", default=None)
    post_copy: bool = field(name="postCopy", default=False)
    forge: DurationSeconds = 0
    boot: DurationSeconds = 0
    shutdown: DurationSeconds = 0
    migrate: DurationSeconds = 0
    suspend: DurationSeconds = 0
    resume: DurationSeconds = 0
    allocate: DurationSeconds = 0
    kill: DurationSeconds = 0


class NodeAttributes(BtrPlaceRecord):
    """Attributes of a node: the durations of switching it, in seconds."""

    boot: DurationSeconds = 0
    shutdown: DurationSeconds = 0


class Attributes(BtrPlaceRecord):
    """Attributes of VMs and nodes."""

    vms: Map[ElementNumber, VmAttributes] = {}
    nodes: Map[ElementNumber, NodeAttributes] = {}


class ShareableResource(BtrPlaceRecord, tag="shareableResource", tag_field="id"):
    """The capacity of nodes in a resource, and its consumption by VMs."""

    name: str = field(name="rcId")
    default_capacity: ResourceQuantity = field(name="defCapacity")
    default_consumption: ResourceQuantity = field(name="defConsumption")
    nodes: Map[ElementNumber, ResourceQuantity]
    vms: Map[ElementNumber, ResourceQuantity]


class NamingService(BtrPlaceRecord, tag="ns", tag_field="id"):
    """The names of the VMs, or those of the nodes."""

    kind: str = field(name="type")
    numbers: Map[str, ElementNumber] = field(name="map")


class SwitchRecord(BtrPlaceRecord):
    """A switch of the network."""

    id: ElementNumber
    capacity: Bandwidth


class LinkEndRecord(BtrPlaceRecord):
    """The end of a link: a node, or another switch."""

    kind: str = field(name="type")
    id: ElementNumber


class LinkRecord(BtrPlaceRecord):
    """A link from a switch to a node or to another switch."""

    id: ElementNumber
    capacity: Bandwidth
    switch: ElementNumber
    end: LinkEndRecord = field(name="physicalElement")


class Routing(BtrPlaceRecord):
    """How routes between nodes are found."""

    kind: str = field(name="type")


class NetworkView(BtrPlaceRecord, tag="net", tag_field="id"):
    """Switches and links."""

    switches: tuple[SwitchRecord, ...]
    links: tuple[LinkRecord, ...]
    routing: Routing


View = ShareableResource | NamingService | NetworkView


class ModelRecord(BtrPlaceRecord):
    """A cluster."""

    mapping: MappingRecord
    attributes: Attributes
    views: tuple[View, ...]


class _Constraint(BtrPlaceRecord, forbid_unknown_fields=True):
    continuous: bool = False
    """Whether it holds at all times. BtrPlace ignores it where there is no choice."""


class _VmConstraint(_Constraint):
    vm: ElementNumber


class _NodeConstraint(_Constraint):
    node: ElementNumber


class _VmsConstraint(_Constraint):
    vms: ElementNumbers


class _ContinuousVmsConstraint(_VmsConstraint):
    continuous: bool


class _AmountConstraint(_Constraint):
    nodes: ElementNumbers
    amount: ResourceQuantity


class _PlacementConstraint(_VmConstraint):
    nodes: ElementNumbers
    continuous: bool


class RunningConstraint(_VmConstraint, tag="running", tag_field="id"):
    """The VM runs."""


class ReadyConstraint(_VmConstraint, tag="ready", tag_field="id"):
    """The VM is ready."""


class SleepingConstraint(_VmConstraint, tag="sleeping", tag_field="id"):
    """The VM sleeps."""


class KilledConstraint(_VmConstraint, tag="killed", tag_field="id"):
    """The VM is killed."""


class OnlineConstraint(_NodeConstraint, tag="online", tag_field="id"):
    """The node is on."""


class OfflineConstraint(_NodeConstraint, tag="offline", tag_field="id"):
    """The node is off."""


class SpreadConstraint(_ContinuousVmsConstraint, tag="spread", tag_field="id"):
    """No two of the VMs are on one node."""


class GatherConstraint(_ContinuousVmsConstraint, tag="gather", tag_field="id"):
    """All VMs are on one node."""


class LonelyConstraint(_ContinuousVmsConstraint, tag="lonely", tag_field="id"):
    """No other VM shares a node with them."""


class SplitConstraint(_Constraint, tag="split", tag_field="id"):
    """Groups of VMs share no node."""

    parts: ElementGroups
    continuous: bool


class AmongConstraint(_ContinuousVmsConstraint, tag="among", tag_field="id"):
    """All VMs are within one group of nodes."""

    parts: ElementGroups


class SplitAmongConstraint(_Constraint, tag="splitAmong", tag_field="id"):
    """Each group of VMs is within one group of nodes."""

    vm_parts: ElementGroups = field(name="vParts")
    node_parts: ElementGroups = field(name="pParts")
    continuous: bool


class FenceConstraint(_PlacementConstraint, tag="fence", tag_field="id"):
    """The VM is on one of these nodes."""


class BanConstraint(_PlacementConstraint, tag="ban", tag_field="id"):
    """The VM is on none of these nodes."""


class RootConstraint(_VmConstraint, tag="root", tag_field="id"):
    """The VM does not move."""


class QuarantineConstraint(_NodeConstraint, tag="quarantine", tag_field="id"):
    """No VM moves to or from the node."""


class MaxOnlineConstraint(_AmountConstraint, tag="maxOnline", tag_field="id"):
    """At most so many of the nodes are on."""

    continuous: bool


class RunningCapacityConstraint(_AmountConstraint, tag="runningCapacity", tag_field="id"):
    """So many VMs run on the nodes at the most.

    BtrPlace no longer writes whether it is continuous, but files of before version 1.12 say it.
    """


class ResourceCapacityConstraint(_AmountConstraint, tag="resourceCapacity", tag_field="id"):
    """The VMs on the nodes consume at most so much of a resource."""

    resource: str = field(name="rc")
    continuous: bool


class PreserveConstraint(_VmConstraint, tag="preserve", tag_field="id"):
    """The VM has at least so much of a resource."""

    resource: str = field(name="rc")
    amount: ResourceQuantity


class OverbookConstraint(_NodeConstraint, tag="overbook", tag_field="id"):
    """A node may give so many times its capacity."""

    resource: str = field(name="rc")
    ratio: Ratio


class SeqConstraint(_VmsConstraint, tag="seq", tag_field="id"):
    """The actions on the VMs follow each other."""


class NoDelayConstraint(_VmConstraint, tag="noDelay", tag_field="id"):
    """The action on the VM starts at once."""


class SyncConstraint(_VmsConstraint, tag="Sync", tag_field="id"):
    """The migrations end at the same time."""


class SerializeConstraint(_VmsConstraint, tag="Serialize", tag_field="id"):
    """The migrations do not overlap."""


class PrecedenceConstraint(_Constraint, tag="Precedence", tag_field="id"):
    """One migration ends before another starts."""

    before: ElementNumber = field(name="vm1")
    after: ElementNumber = field(name="vm2")


class DeadlineConstraint(_VmConstraint, tag="Deadline", tag_field="id"):
    """The migration ends before this time."""

    timestamp: TimeSeconds | str


VmStateConstraint = RunningConstraint | ReadyConstraint | SleepingConstraint | KilledConstraint
NodeStateConstraint = OnlineConstraint | OfflineConstraint
BtrPlaceConstraint = (
    VmStateConstraint
    | NodeStateConstraint
    | SpreadConstraint
    | GatherConstraint
    | LonelyConstraint
    | SplitConstraint
    | AmongConstraint
    | SplitAmongConstraint
    | FenceConstraint
    | BanConstraint
    | RootConstraint
    | QuarantineConstraint
    | MaxOnlineConstraint
    | RunningCapacityConstraint
    | ResourceCapacityConstraint
    | PreserveConstraint
    | OverbookConstraint
    | SeqConstraint
    | NoDelayConstraint
    | SyncConstraint
    | SerializeConstraint
    | PrecedenceConstraint
    | DeadlineConstraint
)


class MinMttr(BtrPlaceRecord, tag="minimizeMTTR", tag_field="id"):
    """Minimise the sum of the ends of all actions."""


class MinMttrMigrations(BtrPlaceRecord, tag="minimizeMTTRMigrationScheduling", tag_field="id"):
    """The same objective with another search strategy."""


class MinMttrMig(BtrPlaceRecord, tag="minimizeMTTRMig", tag_field="id"):
    """The same objective under another name."""


class MinMigrations(BtrPlaceRecord, tag="minimizeMigrations", tag_field="id"):
    """Minimise the number of migrations."""


ObjectiveRecord = MinMttr | MinMttrMigrations | MinMttrMig | MinMigrations


class InstanceRecord(BtrPlaceRecord):
    """An instance: a cluster, constraints and an objective."""

    model: ModelRecord
    constraints: tuple[BtrPlaceConstraint, ...]
    objective: ObjectiveRecord


class AllocateEvent(BtrPlaceRecord, tag="allocate", tag_field="id"):
    """The VM gets another amount of a resource together with the action."""

    vm: ElementNumber
    resource: str = field(name="rc")
    amount: ResourceQuantity


class SubstitutedVmEvent(BtrPlaceRecord, tag="substitutedVM", tag_field="id"):
    """Another VM replaces the VM."""

    vm: ElementNumber
    new_vm: ElementNumber = field(name="newVm")


PlanEvent = AllocateEvent | SubstitutedVmEvent


class _Timed(BtrPlaceRecord):
    start: TimeSeconds
    end: TimeSeconds
    hooks: Mapping[str, tuple[PlanEvent, ...]] = {}
    """Events before (``pre``) or after (``post``) the action."""


class _OnNode(_Timed):
    node: ElementNumber


class _OnVm(_Timed):
    vm: ElementNumber


class _OnVmAtNode(_OnVm):
    on: ElementNumber


class _FromTo(_OnVm):
    source: ElementNumber = field(name="from")
    target: ElementNumber = field(name="to")


class BootNode(_OnNode, tag="bootNode", tag_field="id"):
    """Switch a node on."""


class ShutdownNode(_OnNode, tag="shutdownNode", tag_field="id"):
    """Switch a node off."""


class ForgeVm(_OnVm, tag="forgeVM", tag_field="id"):
    """Create a VM. BtrPlace has no JSON for it; this is the form of our worker."""


class BootVm(_OnVmAtNode, tag="bootVM", tag_field="id"):
    """Start a VM."""


class ShutdownVm(_OnVmAtNode, tag="shutdownVM", tag_field="id"):
    """Stop a VM."""


class MigrateVm(_FromTo, tag="migrateVM", tag_field="id"):
    """Move a running VM."""


class SuspendVm(_FromTo, tag="suspendVM", tag_field="id"):
    """Suspend a VM."""


class ResumeVm(_FromTo, tag="resumeVM", tag_field="id"):
    """Resume a VM."""


class AllocateVm(_OnVm, tag="allocate", tag_field="id"):
    """Give a VM another amount of a resource."""

    resource: str = field(name="rc")
    amount: ResourceQuantity


class KillVm(_OnVm, tag="killVM", tag_field="id"):
    """Kill a VM."""


PlanAction = (
    BootNode | ShutdownNode | ForgeVm | BootVm | ShutdownVm | MigrateVm | SuspendVm | ResumeVm
    | AllocateVm | KillVm
)  # fmt: skip


class ReconfigurationPlan(BtrPlaceRecord):
    """The actions of a plan. The cluster in ``origin`` is ignored."""

    actions: tuple[PlanAction, ...]


RecordT = TypeVar("RecordT", bound=msgspec.Struct)

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def decode_record(content: bytes, source: str, record_type: type[RecordT]) -> RecordT:
    """Decode a file at full speed, or raise ``InvalidInput`` with all wrong types.

    Of a duplicate key the last value counts, as in BtrPlace. Programs write these files, and a
    search for duplicate keys would take several times as long as the rest.
    """
    check_size_for_format(len(content), source, FileFormat.JSON)
    decode_text(content, source)
    try:
        record: RecordT = _decoder(record_type).decode(content.removeprefix(BYTE_ORDER_MARK))
        return record
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        _explain(content, source, record_type, str(error))


def raise_if_invalid(diagnostics: Diagnostics, content: bytes, source: str) -> None:
    """Raise ``InvalidInput`` with all diagnostics. Their lines need a second read of the file."""
    if diagnostics:
        lines = read_json(decode_text(content, source), source)
        raise InvalidInput(source, diagnostics.problems(lines.line_of))


@cache
def _decoder(record_type: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(record_type)


def _explain(content: bytes, source: str, record_type: type, verdict: str) -> NoReturn:
    tree = read_json(decode_text(content, source), source)
    diagnostics = Diagnostics(tree.diagnostics)
    with suppress(TooManyDiagnostics):
        check_types(tree.root, record_type, diagnostics)
    if not diagnostics:
        # msgspec rejects what the slow reader accepts, such as NaN in an ignored key.
        what = f"this is not JSON: {verdict}"
        reject_file(source, what, "let BtrPlace write it again", code="syntax-error")
    raise InvalidInput(source, diagnostics.problems(tree.line_of))
