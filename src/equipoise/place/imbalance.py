"""Imbalance: how unevenly what VMs deserve is spread over the hosts."""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.place.water import Floats

HEAVIER: Final = 3.0
"""How many times as much a scarce resource counts as one that is not."""
USUAL: Final = 2 / 3
"""What a resource counts on average: with two of them, a scarce one in full, the other a third."""
FULL: Final = 1 + 1e-9
"""A host that has to give just what it has is not contended, whatever the last bits say."""


def weights(loads: Floats) -> Floats:
    """How much the standard deviation of each resource counts; one column of loads for each.

    Contended is what some host has to give more of than it has. A contended resource counts three
    times as much as one that is not; if all or none are, they count the same.
    """
    heavy = np.where((loads > FULL).any(axis=0), HEAVIER, 1.0)
    found: Floats = heavy * (USUAL * len(heavy) / heavy.sum())
    return found


def imbalance(loads: Floats) -> float:
    """How far hosts are from equally loaded: the standard deviations of their loads, weighed.

    A load is what the VMs on a host deserve, as a part of what the host has: a row for each host, a
    column for each resource. A host that has nothing of a resource (``nan``) is left out of it.
    """
    if not len(loads):
        return 0.0
    there = ~np.isnan(loads)
    if there.all():
        return float(weights(loads) @ loads.std(axis=0))
    columns = zip(loads.T, there.T, strict=True)
    spread = [column[has].std() if has.any() else 0.0 for column, has in columns]
    return float(weights(np.where(there, loads, 0.0)) @ np.array(spread))
