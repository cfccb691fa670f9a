"""The knobs of load balancing, with the paper's values where it gives them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from equipoise.model.quantity import CountPresent, Mhz, SecondsPresent
from equipoise.model.value import Value

Part = Annotated[float, Meta(ge=0, le=1)]
Times = Annotated[float, Meta(ge=1, le=10**6)]


class BalanceConfig(Value):
    """When to move, and what a move is worth."""

    imbalance_target: Annotated[float, Meta(ge=0, le=100)] = 0.05
    """At or below it nothing is moved."""
    moves_per_host: CountPresent = 5
    """How many moves one pass proposes at most, for each host that is on."""
    goodness: Part = 0.1
    """A move must lower the imbalance by this part of the excess, divided over the hosts ..."""
    relaxed_above: Times = 3.0
    """... or by a tenth of that, while the imbalance is so many times the target."""
    cost_benefit: bool = True
    """Whether a move must be worth its cost."""
    spread: Part = 0.2
    """How far demand may be from what was measured, as a part of it (one standard deviation)."""
    evenness: Part = 0.1
    """What it is worth that hosts are evened out by one of them, as a part of a host."""
    horizon_s: SecondsPresent = 3600
    """How long a move is to pay."""
    stable_s_min: SecondsPresent = 300
    """Demand is taken to stay for at least so long."""
    migration_cpu_mhz: Mhz = 500
    """What a migration is expected to cost on each of its two hosts."""
    slowdown: Part = 0.1
    """How much slower a VM is expected to run while it moves."""
