"""The balance policy: when VMs are moved, and what a move must be worth."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import (
    Count,
    CountPresent,
    HostKey,
    Mhz,
    SecondsPresent,
    VmId,
    VmKey,
)
from equipoise.model.value import Value

Part = Annotated[float, Meta(ge=0, le=1)]
Times = Annotated[float, Meta(ge=1, le=10**6)]
Level = Annotated[int, Meta(ge=1, le=5)]


class Automation(StrEnum):
    """What is done without asking: nothing, only the placement of new VMs, or everything."""

    MANUAL = "manual"
    PARTIAL = "partial"
    FULL = "full"


class VmOverride(StrEnum):
    """What may be done with one VM, whatever holds for the others."""

    OFF = "off"
    """It is never moved, not even to mend a rule."""
    MANUAL = "manual"
    PARTIAL = "partial"
    FULL = "full"


class HostOverride(StrEnum):
    """What may be done with one host, whatever holds for the others."""

    OFF = "off"
    """Nobody comes and nobody goes."""
    CLOSED = "closed"
    """Nobody comes."""


class BalancePolicy(Value):
    """When VMs are moved, and what a move must be worth."""

    automation: Automation = Automation.FULL
    threshold: Level = 3
    """Moves of this priority or a more urgent one are made: 1 only mends rules, 5 makes all."""
    rules_only: bool = False
    """Whether rules are mended, with the fewest moves, and nothing else is done."""
    vms: Mapping[VmKey, VmOverride] = {}
    hosts: Mapping[HostKey, HostOverride] = {}
    imbalance_target: Annotated[float, Meta(ge=0, le=100)] = 0.05
    """At or below it nothing is moved."""
    moves_per_host: CountPresent = 5
    """How many moves one pass proposes at most, for each host that is on, ..."""
    moves_per_pass: CountPresent = 1000
    """... and in all."""
    moves_to_fill: CountPresent = 20
    """How many for each host while one that was woken is still to be filled, ..."""
    filling_s: Count = 1800
    """... which is so long after it was."""
    goodness: Part = 0.1
    """A move must lower the imbalance by this part of the excess, divided over the hosts ..."""
    relaxed_above: Times = 3.0
    """... or by a tenth of that, while the imbalance is so many times the target."""
    cost_benefit: bool = True
    """Whether a move must be worth its cost."""
    spread: Part = 0.2
    """How far demand may be from what was measured, as a part of it (one standard deviation)."""
    evenness: Part = 0.2
    """What it is worth that hosts are evened out by one of them, as a part of a host; much less
    where demand does not stay."""
    horizon_s: SecondsPresent = 3600
    """How long a move is to pay."""
    stable_s_min: SecondsPresent = 300
    """Demand is taken to stay for at least so long, and a VM that came stays as long."""
    migration_cpu_mhz: Mhz = 500
    """What a migration is expected to cost on each of its two hosts."""
    slowdown: Part = 0.1
    """How much slower a VM is expected to run while it moves."""
    sample_hosts: Count = 1000
    """With more hosts than this they are balanced in samples: groups drawn anew each round."""
    sample_size: CountPresent = 128
    """How many hosts a sample has."""
    foresight_s: Count = 0
    """How far ahead demand is foretold by the time of day; 0 looks at what is asked for now."""

    def moves_by_itself(self, vm: VmId) -> bool:
        """Whether a VM is moved without asking."""
        override = self.vms.get(vm)
        if override is not None:
            return override is VmOverride.FULL
        return self.automation is Automation.FULL
