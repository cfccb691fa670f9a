"""Settings of a campaign: what is kept in reserve, and which readings of the thesis are literal."""

from __future__ import annotations

from enum import StrEnum

from equipoise.model.quantity import Count, CountPresent, Milliseconds, Seconds
from equipoise.model.value import Value


class Readings(Value):
    """Where the text of the thesis can be read in two ways. Literal ones reproduce its traces.

    Each is one difference between ``--paper`` and what we do by default.
    """

    reserve_whole_hosts: bool = False
    """Equations 4 to 6 count empty hosts only, with one capacity and one scaling step for all.
    By default free places on hosts in use count, each host has its own capacity, and each tenant
    its own scaling step, cut off at what it was promised."""
    sides_alone: bool = False
    """Of a divided cluster, Z looks at the old side alone, and once no VM is left there all of it
    goes. By default what tenants may ask for on the new side and does not fit there is kept free on
    the old one; without that a tenant that grows at the wrong moment can be turned away."""
    drop_last_only: bool = False
    """A VM batch that is too large loses its last VM, again and again, until it fits or is empty.
    By default VMs of tenants that need no new reservation are tried as well before giving up."""
    peer_paths: bool = False
    """Rule 6 holds back whatever depends, over any number of steps, on a peer in the batch.
    By default only the peers themselves exclude each other."""

    @property
    def any_literal(self) -> bool:
        """Whether something is read literally."""
        return self != Readings()


PAPER = Readings(reserve_whole_hosts=True, sides_alone=True, drop_last_only=True, peer_paths=True)
"""Every literal reading: what ``--paper`` sets."""


class Mixing(StrEnum):
    """Whether VMs of before and of after the change can live on each other's hosts."""

    FREE = "free"
    """Any VM runs anywhere: hosts are not divided."""
    DIVIDED = "divided"
    """Old VMs run on old hosts only and new ones on new hosts only."""


class UpgradeSettings(Value):
    """What an operator decides about a campaign as a whole."""

    readings: Readings = Readings()
    failover_hosts: Count = 1
    """How many failing hosts must be survived at any moment, on either side if it is divided."""
    vms: Mixing = Mixing.FREE
    """What a change of hypervisors means for VMs; a replaced storage divides in any case."""
    vm_move_s: Seconds = 0
    """How long one VM takes to move, and to be converted where that is necessary."""
    vm_risk_s: Seconds | None = None
    """How long the VMs of an iteration take with all recovery, for equation 3; nothing: twice that
    for every VM of the largest group."""
    calculation_ms: Milliseconds = 0
    """How long deciding one iteration takes, as far as the clock of the simulation goes."""
    vm_outage_ms: Milliseconds = 0
    """How long a VM does not answer while it moves."""
    spare_hosts: Count = 0
    """Dedicated hosts to make up for units that are kept out of service (5.1.4.2)."""
    remote_links: bool = False
    """Whether links can be switched on and off from afar."""
    iterations_max: CountPresent = 100_000
    """After so many iterations something is wrong with us, and the campaign stops."""
