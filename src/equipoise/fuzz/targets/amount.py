"""What a plan in BtrPlace's JSON amounts to, by one measure, whoever made the plan.

Solvers count differently what their plans cost. Who compares them counts here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Amount:
    """The cost of a plan."""

    ends_s: int
    """For each VM and each host, when its last action ends; all of them together.

    Allocations do not count: nobody waits for one, and BtrPlace lets it last no time at all.
    """
    moves: int
    """How many VMs are moved: migrated, or made anew elsewhere."""


def amount_of(plan: Record) -> Amount:
    """Count. A VM that is made anew elsewhere ends when the old one has been shut down."""
    actions = [action for action in plan["actions"] if action["id"] != "allocate"]
    anew = set(_made_anew(actions))
    ends: dict[tuple[str, int], int] = {}
    for action in actions:
        if action.get("vm") in anew:
            continue
        kind = "node" if "node" in action else "vm"
        element = (kind, int(action[kind]))
        ends[element] = max(int(action["end"]), ends.get(element, 0))
    migrations = sum(action["id"] == "migrateVM" for action in actions)
    return Amount(sum(ends.values()), migrations + len(anew))


def _made_anew(actions: Iterable[Record]) -> Iterator[int]:
    """The new VMs that take the place of old ones."""
    for action in actions:
        for events in action.get("hooks", {}).values():
            for event in events:
                if event["id"] == "substitutedVM":
                    yield int(event["newVm"])
