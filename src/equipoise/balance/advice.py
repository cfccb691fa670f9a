"""Advice: what one pass recommends, with everything a person wants to know about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, sqrt
from typing import Final

from equipoise.balance.mending.fault import Fault
from equipoise.model.action import Action, EnterMaintenance, Migrate, PowerOff
from equipoise.model.host import HostWish
from equipoise.model.plan import Rejection
from equipoise.model.quantity import HostId, RuleId, VmId

MANDATORY: Final = 1
LEAST_URGENT: Final = 5


class Code(StrEnum):
    """Why something is recommended."""

    BALANCE = "balance"
    RULE = "rule"
    EVACUATE = "evacuate"
    MAKE_ROOM = "make_room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """A VM that should move."""

    vm: VmId
    source: HostId
    target: HostId
    code: Code
    priority: int
    """1 mends rules; 2 to 5 balance, the more uneven hosts are the more urgent."""
    reason: str
    gain: Mapping[str, float]
    """What is expected of it: less imbalance; demand met that was not, by resource and second."""
    cost: Mapping[str, float]
    risk: Mapping[str, float]
    """How long things are taken to stay, and what is gained if the worst comes after that."""
    considered: tuple[Rejection, ...] = ()
    after: tuple[VmId, ...] = ()
    """Those that must have moved before."""
    automatic: bool = True
    """Whether it is made without asking."""

    @property
    def action(self) -> Action:
        """What is to be done."""
        return Migrate(vm=self.vm, source=self.source, target=self.target)


@dataclass(frozen=True, slots=True)
class Switch:
    """A host that is to be switched once it is empty."""

    host: HostId
    wish: HostWish
    after: tuple[VmId, ...]
    automatic: bool = True
    """Whether it is done without asking."""

    @property
    def action(self) -> Action:
        """What is to be done."""
        if self.wish is HostWish.MAINTENANCE:
            return EnterMaintenance(host=self.host)
        return PowerOff(host=self.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What one pass has found."""

    moves: tuple[Advised, ...] = ()
    switches: tuple[Switch, ...] = ()
    faults: tuple[Fault, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    """What was wanted and given up: by the gate, or because it is not urgent enough."""
    mends: tuple[RuleId, ...] = ()
    before: float = 0.0
    after: float = 0.0
    """The imbalance, as it is and as it would be."""
    fewest: bool = True
    """Whether the rules cannot be mended with fewer moves."""
    crowded: int = 0
    """How many hosts would have to give more than they have."""
    summary: str = ""


def priority(imbalance: float, hosts: int) -> int:
    """How urgent a move is that is made while hosts are so uneven: from 2 to 5.

    As vSphere reckons it: in steps of a tenth, smaller ones the more hosts there are.
    """
    steps = ceil(imbalance / 0.1 * sqrt(max(1, hosts)))
    return min(LEAST_URGENT, max(MANDATORY + 1, 6 - steps))
