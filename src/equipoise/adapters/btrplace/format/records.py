"""BtrPlace's JSON records, how bytes become records, and the numbers of VMs and nodes.

The types are those that BtrPlace 1.12 reads. Unknown keys are ignored, as BtrPlace does; but not
in constraints, where a misspelt optional key would go unnoticed. The VM 7 is ``vm7`` here and the
node 7 is ``node7``. Resources keep their names, except two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, reduce
from operator import or_
from types import new_class
from typing import Annotated, Any, Final, NamedTuple, NoReturn, Self, TypeVar

import msgspec
from msgspec import Meta, field

from equipoise.errors import InvalidInput
from equipoise.files.document import FileFormat, check_size_for_format, decode_text, reject_file
from equipoise.files.json_reader import read_json
from equipoise.files.type_check import check_types
from equipoise.model.diagnostics import Diagnostics, TooManyDiagnostics
from equipoise.model.problem import PlanningProblem
from equipoise.model.quantity import HostId, ResourceName, VmId
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


RecordT = TypeVar("RecordT", bound=BtrPlaceRecord)


def tagged_record(tag: str, base: type[RecordT], keys: Mapping[str, Any]) -> type[RecordT]:
    """Return the type of the records with this ``id``: those of ``base`` with more keys."""
    # Made from a table: 40 of BtrPlace's records differ in their id and two or three keys only.
    body = {"__annotations__": dict(keys), "__module__": __name__}
    return new_class(tag, (base,), {"tag": tag, "tag_field": "id"}, lambda own: own.update(body))


def union_of(types: Iterable[type]) -> Any:
    """Return the union of types as a type of its own, for a decoder."""
    return reduce(or_, types)


def tag_of(record: BtrPlaceRecord) -> str:
    """Return the ``id`` of a record, which is its kind."""
    return str(record.__struct_config__.tag)


class NodeVms(BtrPlaceRecord):
    """The VMs on a node that is online."""

    running: ElementNumbers = field(name="runningVMs")
    sleeping: ElementNumbers = field(name="sleepingVMs")


class MappingRecord(BtrPlaceRecord):
    """The VMs on each node, and the VMs and nodes that are off."""

    ready: ElementNumbers = field(name="readyVMs")
    online: Mapping[ElementNumber, NodeVms] = field(name="onlineNodes")
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

    vms: Mapping[ElementNumber, VmAttributes] = {}
    nodes: Mapping[ElementNumber, NodeAttributes] = {}


class ShareableResource(BtrPlaceRecord, tag="shareableResource", tag_field="id"):
    """The capacity of nodes in a resource, and its consumption by VMs."""

    name: str = field(name="rcId")
    default_capacity: ResourceQuantity = field(name="defCapacity")
    default_consumption: ResourceQuantity = field(name="defConsumption")
    nodes: Mapping[ElementNumber, ResourceQuantity]
    vms: Mapping[ElementNumber, ResourceQuantity]


class NamingService(BtrPlaceRecord, tag="ns", tag_field="id"):
    """The names of the VMs, or those of the nodes."""

    kind: str = field(name="type")
    numbers: Mapping[str, ElementNumber] = field(name="map")


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


RENAMED_RESOURCES: Final = {
    "cpu": ResourceName("cpu_units"),
    "memory": ResourceName("memory_units"),
    "configured_memory": ResourceName("configured_memory_units"),
    "vcpus": ResourceName("vcpus_units"),
}
"""In rules of the model these are sizes and reservations, not named resources."""
_BTRPLACE_NAMES: Final[Mapping[str, str]] = {
    model_name: btrplace_name for btrplace_name, model_name in RENAMED_RESOURCES.items()
}


def from_btrplace_resource(btrplace_name: str) -> ResourceName:
    """Return the name in the model of a resource of BtrPlace."""
    return RENAMED_RESOURCES.get(btrplace_name, ResourceName(btrplace_name))


def to_btrplace_resource(model_name: str) -> str:
    """Return the name in BtrPlace of a resource of the model."""
    return _BTRPLACE_NAMES.get(model_name, model_name)


class Numbering(NamedTuple):
    """The numbers of a problem's VMs and hosts.

    VMs that came from BtrPlace keep the number in their id. If one VM has no number in its id, all
    are numbered in the order of the problem. The same holds for hosts.
    """

    vms: dict[str, int]
    hosts: dict[str, int]

    @classmethod
    def of(cls, problem: PlanningProblem) -> Self:
        """Return the numbering of a problem."""
        cluster = problem.cluster
        return cls(
            assign_numbers([vm.id for vm in cluster.vms], "vm"),
            assign_numbers([host.id for host in cluster.hosts], "node"),
        )

    @property
    def vm_names(self) -> dict[int, VmId]:
        """The VMs by their numbers."""
        return {number: VmId(name) for name, number in self.vms.items()}

    @property
    def host_names(self) -> dict[int, HostId]:
        """The hosts by their numbers."""
        return {number: HostId(name) for name, number in self.hosts.items()}


def assign_numbers(names: Sequence[str], prefix: str) -> dict[str, int]:
    """Return a number for each name: that in the name, as in ``switch7``, if all have one."""
    own = {name: _number_in(name, prefix) for name in names}
    if all(number is not None for number in own.values()):
        return {name: number for name, number in own.items() if number is not None}
    return {name: position for position, name in enumerate(names)}


def _number_in(name: str, prefix: str) -> int | None:
    digits = name.removeprefix(prefix)
    if digits == name or not (digits.isascii() and digits.isdigit()):
        return None
    # The length first: Python takes long to parse thousands of digits. "007" is not number 7.
    number = int(digits) if len(digits) <= len(str(NUMBER_MAX)) else NUMBER_MAX + 1
    return number if str(number) == digits and number <= NUMBER_MAX else None
