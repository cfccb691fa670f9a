"""Imbalance: how unevenly what VMs deserve is spread over the hosts."""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.place.water import Floats

HEAVIER: Final = 3.0
"""How many times as much the scarcer of the two resources counts."""
FULL: Final = 1 + 1e-9
"""A host that has to give just what it has is not contended, whatever the last bits say."""


def weights(cpu: Floats, memory: Floats) -> tuple[float, float]:
    """How much the standard deviations of CPU and memory loads count.

    Contended is what some host has to give more of than it has. A contended resource counts in full
    and the other one a third of it; if both or neither are, they count the same, with the same sum.
    """
    tight_cpu, tight_memory = bool((cpu > FULL).any()), bool((memory > FULL).any())
    total = 1 + 1 / HEAVIER
    if tight_cpu == tight_memory:
        return total / 2, total / 2
    return (1.0, 1 / HEAVIER) if tight_cpu else (1 / HEAVIER, 1.0)


def imbalance(cpu: Floats, memory: Floats) -> float:
    """How far the hosts are from equally loaded: the standard deviations of their loads, weighed.

    A load is what the VMs on a host deserve, as a part of what the host has.
    """
    if not len(cpu):
        return 0.0
    of_cpu, of_memory = weights(cpu, memory)
    return float(of_cpu * np.std(cpu) + of_memory * np.std(memory))
