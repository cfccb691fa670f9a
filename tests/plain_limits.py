"""How much VMs on a host may have together by their size, written from the meaning alone."""

from __future__ import annotations

from fractions import Fraction
from math import floor

from equipoise.model.host import Host

ENDLESS = 10**15


def memory_for_sizes(host: Host) -> int:
    """The configured memory that fits: what the host has for VMs, times its factor."""
    factor = 1.0 if host.memory_overcommit is None else host.memory_overcommit
    return floor(Fraction(str(factor)) * (host.memory_mib - host.reserve.memory_mib))


def vcpus_for_sizes(host: Host) -> int:
    """The vCPUs that fit: the cores times the factor; endless without a factor."""
    if host.cpu_overcommit is None:
        return ENDLESS
    return floor(Fraction(str(host.cpu_overcommit)) * host.cores)
