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


def imbalance(loads: Floats, weight: Floats | None = None) -> float:
    """How far hosts are from equally loaded: the standard deviations of their loads, weighed.

    A load is what the VMs on a host deserve, as a part of what the host has: a row for each host, a
    column for each resource. A host that has nothing of a resource (``nan``) is left out of it.
    The weights may be given; otherwise they follow from the loads.
    """
    if not len(loads):
        return 0.0
    columns = [column[~np.isnan(column)] for column in loads.T]
    spread = [column.std() if len(column) else 0.0 for column in columns]
    return float((weights(loads) if weight is None else weight) @ np.array(spread))
