"""The actions of a plan in BtrPlace's JSON: one table for the reader and the writer of plans.

The cost of such a plan is counted here as well, by one measure for all solvers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import field

from equipoise.adapters.btrplace.format.records import (
    BtrPlaceRecord,
    ElementNumber,
    ResourceQuantity,
    TimeSeconds,
    tagged_record,
    union_of,
)
from equipoise.model.action import (
    Action,
    Allocate,
    Boot,
    Forge,
    Kill,
    Migrate,
    PowerOff,
    PowerOn,
    Resume,
    Shutdown,
    Suspend,
)


class ActionForm(NamedTuple):
    """How a file writes an action: its ``id``, and a field of the action for each key."""

    tag: str
    action: type[Action]
    keys: Mapping[str, str]


_FORMS: Final = (
    ActionForm("bootNode", PowerOn, {"node": "host"}),
    ActionForm("shutdownNode", PowerOff, {"node": "host"}),
    # BtrPlace has no JSON for it; this is the form of our worker.
    ActionForm("forgeVM", Forge, {"vm": "vm"}),
    ActionForm("bootVM", Boot, {"vm": "vm", "on": "target"}),
    ActionForm("shutdownVM", Shutdown, {"vm": "vm", "on": "source"}),
    ActionForm("migrateVM", Migrate, {"vm": "vm", "from": "source", "to": "target"}),
    # The two nodes of a suspension are the same one.
    ActionForm("suspendVM", Suspend, {"vm": "vm", "from": "source", "to": "source"}),
    ActionForm("resumeVM", Resume, {"vm": "vm", "from": "source", "to": "target"}),
    ActionForm("allocate", Allocate, {"vm": "vm", "rc": "resource", "amount": "amount"}),
    ActionForm("killVM", Kill, {"vm": "vm"}),
)
FORM_OF_TAG: Final = {form.tag: form for form in _FORMS}
FORM_OF_ACTION: Final = {form.action: form for form in _FORMS}
_KEY_TYPES: Final[Mapping[str, Any]] = {"rc": str, "amount": ResourceQuantity}
"""All other keys are numbers of VMs or nodes."""


class AllocateEvent(BtrPlaceRecord, tag="allocate", tag_field="id"):
    """The VM gets another amount of a resource together with the action."""

    vm: ElementNumber
    rc: str
    amount: ResourceQuantity


class SubstitutedVmEvent(BtrPlaceRecord, tag="substitutedVM", tag_field="id"):
    """Another VM replaces the VM."""

    vm: ElementNumber
    new_vm: ElementNumber = field(name="newVm")


PlanEvent = AllocateEvent | SubstitutedVmEvent


class PlanActionRecord(BtrPlaceRecord):
    """An action of a plan; its other keys are those of its form."""

    start: TimeSeconds
    end: TimeSeconds
    hooks: Mapping[str, tuple[PlanEvent, ...]] = {}
    """Events before (``pre``) or after (``post``) the action."""


if TYPE_CHECKING:
    AnyAction = Any
else:
    AnyAction = union_of(
        tagged_record(
            form.tag,
            PlanActionRecord,
            {key: _KEY_TYPES.get(key, ElementNumber) for key in form.keys},
        )
        for form in _FORMS
    )


class ReconfigurationPlan(BtrPlaceRecord):
    """The actions of a plan. The cluster in ``origin`` is ignored."""

    actions: tuple[AnyAction, ...]


@dataclass(frozen=True, slots=True)
class PlanCost:
    """The cost of a plan. Solvers count it differently, so comparisons use this count."""

    ends_s: int
    """The sum over all VMs and hosts of the end of their last action.

    Allocations do not count: no action waits for them, and BtrPlace gives them no duration.
    """
    moves: int
    """The number of VMs that are migrated or created again on another host."""


def cost_of_plan(plan: Mapping[str, Any]) -> PlanCost:
    """Compute the cost. The shutdown of the old VM ends a VM that is created again elsewhere."""
    actions = [action for action in plan["actions"] if action["id"] != "allocate"]
    replacements = {vm for action in actions for vm in _replacement_vms(action)}
    ends: dict[tuple[str, int], int] = {}
    for action in actions:
        if action.get("vm") in replacements:
            continue
        kind = "node" if "node" in action else "vm"
        element = (kind, int(action[kind]))
        ends[element] = max(int(action["end"]), ends.get(element, 0))
    migrations = sum(action["id"] == "migrateVM" for action in actions)
    return PlanCost(sum(ends.values()), migrations + len(replacements))


def _replacement_vms(action: Mapping[str, Any]) -> Iterator[int]:
    """The new VMs that replace old ones when an action starts or ends."""
    for events in action.get("hooks", {}).values():
        yield from (int(event["newVm"]) for event in events if event["id"] == "substitutedVM")
