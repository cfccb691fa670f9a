"""The cost of a plan in BtrPlace's JSON, by one measure for all solvers.

Solvers count the cost of their plans differently. Comparisons use this count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

PlanRecord = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlanCost:
    """The cost of a plan."""

    ends_s: int
    """The sum over all VMs and hosts of the end of their last action.

    Allocations do not count: no action waits for them, and BtrPlace gives them no duration.
    """
    moves: int
    """The number of VMs that are migrated or created again on another host."""


def cost_of_plan(plan: PlanRecord) -> PlanCost:
    """Compute the cost. The shutdown of the old VM ends a VM that is created again elsewhere."""
    actions = [action for action in plan["actions"] if action["id"] != "allocate"]
    replacements = set(_replacement_vms(actions))
    ends: dict[tuple[str, int], int] = {}
    for action in actions:
        if action.get("vm") in replacements:
            continue
        kind = "node" if "node" in action else "vm"
        element = (kind, int(action[kind]))
        ends[element] = max(int(action["end"]), ends.get(element, 0))
    migrations = sum(action["id"] == "migrateVM" for action in actions)
    return PlanCost(sum(ends.values()), migrations + len(replacements))


def _replacement_vms(actions: Iterable[PlanRecord]) -> Iterator[int]:
    """The new VMs that replace old ones."""
    for action in actions:
        for events in action.get("hooks", {}).values():
            for event in events:
                if event["id"] == "substitutedVM":
                    yield int(event["newVm"])
