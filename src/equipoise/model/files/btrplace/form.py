"""BtrPlace's files as they are written, key by key. What the keys mean is said elsewhere.

The shapes are those that BtrPlace 1.12 reads. Keys that nothing here asks for are passed over, as
they are there; but not in constraints, where a slip in a key that may be left out would be missed.
"""

from __future__ import annotations

from collections.abc import Mapping as Map
from typing import Annotated, Final

from msgspec import Meta, field

from equipoise.model.value import Value

NUMBER_MAX: Final = 2**31 - 1
AMOUNT_MAX: Final = 10**12

Number = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
"""What a VM, a node, a switch or a link is called."""
Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
Bandwidth = Annotated[int, Meta(ge=-(10**12), le=10**12)]
"""Mbit/s; below nought there is no bound."""
Ratio = Annotated[float, Meta(ge=1, le=10**9)]
Time = Annotated[int, Meta(ge=0, le=10**9 - 1)]
Lasting = Annotated[int, Meta(ge=1, le=10**9)]
Numbers = tuple[Number, ...]
Groups = tuple[Numbers, ...]


class Part(Value, forbid_unknown_fields=False):
    """A record of a file."""


class Residents(Part):
    """The VMs on a node that is online."""

    running: Numbers = field(name="runningVMs")
    sleeping: Numbers = field(name="sleepingVMs")


class Mapping(Part):
    """Who is where."""

    ready: Numbers = field(name="readyVMs")
    online: Map[Number, Residents] = field(name="onlineNodes")
    offline: Numbers = field(name="offlineNodes")


class VmAttributes(Part):
    """What is known of a VM besides: how long actions on it take, in seconds. Nought: not said."""

    template: str = ""
    clone: bool = False
    """Whether another VM made from the template may take its place."""
    mem_used: Amount | None = field(name="memUsed", default=None)
    """In MiB. How it is copied, the next four say; they count in a network only."""
    hot_dirty_size: float | None = field(name="hotDirtySize", default=None)
    hot_dirty_duration: float | None = field(name="hotDirtyDuration", default=None)
    cold_dirty_rate: float | None = field(name="coldDirtyRate", default=None)
    post_copy: bool = field(name="postCopy", default=False)
    forge: Lasting = 0
    boot: Lasting = 0
    shutdown: Lasting = 0
    migrate: Lasting = 0
    suspend: Lasting = 0
    resume: Lasting = 0
    allocate: Lasting = 0
    kill: Lasting = 0


class NodeAttributes(Part):
    """What is known of a node besides: how long it takes to switch it, in seconds."""

    boot: Lasting = 0
    shutdown: Lasting = 0


class Attributes(Part):
    """What is known of VMs and nodes besides."""

    vms: Map[Number, VmAttributes] = {}
    nodes: Map[Number, NodeAttributes] = {}


class ShareableResource(Part, tag="shareableResource", tag_field="id"):
    """What nodes have of a resource and VMs take of it."""

    name: str = field(name="rcId")
    default_capacity: Amount = field(name="defCapacity")
    default_consumption: Amount = field(name="defConsumption")
    nodes: Map[Number, Amount]
    vms: Map[Number, Amount]


class NamingService(Part, tag="ns", tag_field="id"):
    """The names of the VMs, or those of the nodes."""

    kind: str = field(name="type")
    numbers: Map[str, Number] = field(name="map")


class Switch(Part):
    """What links meet in."""

    id: Number
    capacity: Bandwidth


class LinkEnd(Part):
    """What a link leads to: a node, or another switch."""

    kind: str = field(name="type")
    id: Number


class Link(Part):
    """A cable from a switch to a node or to another switch."""

    id: Number
    capacity: Bandwidth
    switch: Number
    end: LinkEnd = field(name="physicalElement")


class Routing(Part):
    """How the way between two nodes is found."""

    kind: str = field(name="type")


class NetworkView(Part, tag="net", tag_field="id"):
    """Switches and links."""

    switches: tuple[Switch, ...]
    links: tuple[Link, ...]
    routing: Routing


View = ShareableResource | NamingService | NetworkView


class Model(Part):
    """A cluster."""

    mapping: Mapping
    attributes: Attributes
    views: tuple[View, ...]


class _Demand(Part, forbid_unknown_fields=True):
    continuous: bool = False
    """Whether it holds all along. BtrPlace passes it over where there is nothing to choose."""


class _Vm(_Demand):
    vm: Number


class _Node(_Demand):
    node: Number


class _Vms(_Demand):
    vms: Numbers


class _LastingVms(_Vms):
    continuous: bool


class _Amount(_Demand):
    nodes: Numbers
    amount: Amount


class _Places(_Vm):
    nodes: Numbers
    continuous: bool


class Running(_Vm, tag="running", tag_field="id"):
    """The VM runs."""


class Ready(_Vm, tag="ready", tag_field="id"):
    """The VM is ready."""


class Sleeping(_Vm, tag="sleeping", tag_field="id"):
    """The VM sleeps."""


class Killed(_Vm, tag="killed", tag_field="id"):
    """The VM has ended."""


class Online(_Node, tag="online", tag_field="id"):
    """The node is on."""


class Offline(_Node, tag="offline", tag_field="id"):
    """The node is off."""


class Spread(_LastingVms, tag="spread", tag_field="id"):
    """No two on one node."""


class Gather(_LastingVms, tag="gather", tag_field="id"):
    """All on one node."""


class Lonely(_LastingVms, tag="lonely", tag_field="id"):
    """Nobody else beside them."""


class Split(_Demand, tag="split", tag_field="id"):
    """Groups that share no node."""

    parts: Groups
    continuous: bool


class Among(_LastingVms, tag="among", tag_field="id"):
    """All within one group of nodes."""

    parts: Groups


class SplitAmong(_Demand, tag="splitAmong", tag_field="id"):
    """Groups of VMs, each within one group of nodes."""

    vm_parts: Groups = field(name="vParts")
    node_parts: Groups = field(name="pParts")
    continuous: bool


class Fence(_Places, tag="fence", tag_field="id"):
    """The VM on these nodes only."""


class Ban(_Places, tag="ban", tag_field="id"):
    """The VM not on these nodes."""


class Root(_Vm, tag="root", tag_field="id"):
    """The VM stays where it is."""


class Quarantine(_Node, tag="quarantine", tag_field="id"):
    """Nobody comes, nobody goes."""


class MaxOnline(_Amount, tag="maxOnline", tag_field="id"):
    """So many nodes are on at the most."""

    continuous: bool


class RunningCapacity(_Amount, tag="runningCapacity", tag_field="id"):
    """So many VMs run on the nodes at the most.

    BtrPlace no longer writes whether it is continuous, but files of before version 1.12 say it.
    """


class ResourceCapacity(_Amount, tag="resourceCapacity", tag_field="id"):
    """So much of a resource is taken on the nodes at the most."""

    resource: str = field(name="rc")
    continuous: bool


class Preserve(_Vm, tag="preserve", tag_field="id"):
    """The VM has so much of a resource at the least."""

    resource: str = field(name="rc")
    amount: Amount


class Overbook(_Node, tag="overbook", tag_field="id"):
    """A node may give so many times what it has."""

    resource: str = field(name="rc")
    ratio: Ratio


class Seq(_Vms, tag="seq", tag_field="id"):
    """One VM after the other."""


class NoDelay(_Vm, tag="noDelay", tag_field="id"):
    """At once."""


class Sync(_Vms, tag="Sync", tag_field="id"):
    """Migrations that end together."""


class Serialize(_Vms, tag="Serialize", tag_field="id"):
    """One migration at a time."""


class Precedence(_Demand, tag="Precedence", tag_field="id"):
    """One migration before another."""

    before: Number = field(name="vm1")
    after: Number = field(name="vm2")


class Deadline(_Vm, tag="Deadline", tag_field="id"):
    """A migration has ended by then."""

    timestamp: Time | str


VmWish = Running | Ready | Sleeping | Killed
HostWish = Online | Offline
Constraint = (
    VmWish | HostWish | Spread | Gather | Lonely | Split | Among | SplitAmong | Fence | Ban | Root
    | Quarantine | MaxOnline | RunningCapacity | ResourceCapacity | Preserve | Overbook | Seq
    | NoDelay | Sync | Serialize | Precedence | Deadline
)  # fmt: skip


class MinMttr(Part, tag="minimizeMTTR", tag_field="id"):
    """All is done soon."""


class MinMttrMigrations(Part, tag="minimizeMTTRMigrationScheduling", tag_field="id"):
    """The same, searched for in another way."""


class MinMttrMig(Part, tag="minimizeMTTRMig", tag_field="id"):
    """The same, as people write it."""


class MinMigrations(Part, tag="minimizeMigrations", tag_field="id"):
    """Few migrations."""


Objective = MinMttr | MinMttrMigrations | MinMttrMig | MinMigrations


class Instance(Part):
    """A cluster and what is wanted of it."""

    model: Model
    constraints: tuple[Constraint, ...]
    objective: Objective
