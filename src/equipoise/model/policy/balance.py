"""The balance policy: when VMs are moved, and what a move must be worth."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import (
    Count,
    HostKey,
    Mhz,
    PositiveCount,
    PositiveSeconds,
    Seconds,
    VmId,
    VmKey,
)
from equipoise.model.value import Value

Fraction = Annotated[float, Meta(ge=0, le=1)]
Multiple = Annotated[float, Meta(ge=1, le=10**6)]
PriorityLevel = Annotated[int, Meta(ge=1, le=5)]


class Automation(StrEnum):
    """What runs without approval: nothing, only the placement of new VMs, or everything."""

    MANUAL = "manual"
    PARTIAL = "partial"
    FULL = "full"


class VmOverride(StrEnum):
    """The automation of a single VM."""

    OFF = "off"
    """The VM is never moved, not even to repair a rule."""
    MANUAL = "manual"
    PARTIAL = "partial"
    FULL = "full"


class HostOverride(StrEnum):
    """The automation of a single host."""

    OFF = "off"
    """No VM moves to or from the host."""
    CLOSED = "closed"
    """No VM moves to the host."""


class BalancePolicy(Value):
    """Settings of the balancer. Defaults are the values of the DRS paper where it gives them."""

    automation: Automation = Automation.FULL
    threshold: PriorityLevel = 3
    """Moves of this priority or a more urgent one are made: 1 only repairs rules, 5 makes all."""
    rules_only: bool = False
    """Whether a pass only repairs rules, with as few moves as possible."""
    vms: Mapping[VmKey, VmOverride] = {}
    hosts: Mapping[HostKey, HostOverride] = {}
    imbalance_target: Annotated[float, Meta(ge=0, le=100)] = 0.05
    """At or below this imbalance no VM moves."""
    moves_per_host: PositiveCount = 5
    """Most moves of one pass per host that is on."""
    moves_per_pass: PositiveCount = 1000
    """Most moves of one pass in the cluster."""
    moves_to_fill: PositiveCount = 20
    """Most moves per host while a host that was powered on fills up."""
    filling_s: Count = 1800
    """Time after a power-on during which the host counts as filling up."""
    goodness: Fraction = 0.1
    """A move must lower the imbalance by this fraction of the excess, divided by the hosts ..."""
    relaxed_above: Multiple = 3.0
    """... or by a tenth of that, while the imbalance is above this multiple of the target."""
    gain_min: Fraction = 0.005
    """A move must lower the imbalance by this fraction of a host in any case, unless the host that
    the VM leaves has too little for its VMs."""
    cost_benefit: bool = True
    """Whether the benefit of a move must exceed its cost."""
    spread: Fraction = 0.2
    """Standard deviation of the demand around its measured value, as a fraction of it."""
    evenness: Fraction = 0.2
    """Benefit of a reduced imbalance, as a fraction of a host; much smaller where demand changes.
    """
    horizon_s: PositiveSeconds = 3600
    """Time over which the benefit of a move counts."""
    stable_s_min: PositiveSeconds = 300
    """Shortest time for which demand counts as stable, and a moved VM stays on its host."""
    moves_per_day: PositiveCount = 4
    """Most moves of one VM in 24 hours, by balance and power together. Rules, maintenance and VMs
    on a host that has too little for them come first."""
    return_s: Seconds = 3600
    """Shortest time before a VM returns to the host that it left last, unless its present host has
    too little for its VMs."""
    passes_seen: PositiveCount = 1
    """How many passes in a row must recommend a move before it is made. Moves that repair a rule
    or empty a host for a request are made at once."""
    retry_s: PositiveSeconds = 300
    """Wait after a failed migration before the VM moves again, doubled with each failure in a row;
    the same for the link of a host after several failures."""
    migration_cpu_mhz: Mhz = 500
    """Expected CPU cost of a migration on each of its two hosts."""
    slowdown: Fraction = 0.1
    """Expected slowdown of a VM during a migration, as a fraction."""
    sample_hosts: Count = 1000
    """A cluster with more hosts is balanced in samples: random groups, new in every round."""
    sample_size: PositiveCount = 128
    """Number of hosts per sample."""
    foresight_s: Count = 0
    """How far ahead demand is forecast from the time of day; 0 uses the present demand only."""

    def moves_by_itself(self, vm: VmId) -> bool:
        """Whether a VM is moved without approval."""
        override = self.vms.get(vm)
        if override is not None:
            return override is VmOverride.FULL
        return self.automation is Automation.FULL
