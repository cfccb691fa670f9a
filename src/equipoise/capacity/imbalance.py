"""Imbalance: the weighted standard deviation of the host loads."""

from __future__ import annotations

from typing import Final

import numpy as np

from equipoise.capacity.waterfill import Floats

SCARCE_WEIGHT: Final = 3.0
"""The weight of a scarce resource, relative to one that is not scarce."""
MEAN_WEIGHT: Final = 2 / 3
"""The mean weight. With two resources, a scarce one weighs 1 and the other one third."""
FULL_LOAD: Final = 1 + 1e-9
"""A host that gives exactly what it has is not contended; the margin covers rounding."""


def resource_weights(loads: Floats) -> Floats:
    """Return the weight of each resource in the imbalance; ``loads`` has a column per resource.

    A resource is contended if some host would have to give more of it than it has. A contended
    resource weighs three times as much as one that is not. If all or none are contended, the
    weights are equal.
    """
    heavy = np.where((loads > FULL_LOAD).any(axis=0), SCARCE_WEIGHT, 1.0)
    weights: Floats = heavy * (MEAN_WEIGHT * len(heavy) / heavy.sum())
    return weights


def imbalance(loads: Floats, weight: Floats | None = None) -> float:
    """Return the weighted sum of the standard deviations of the host loads.

    A load is the entitlement of the VMs on a host divided by the capacity of the host: a row per
    host, a column per resource. A host without capacity of a resource (``nan``) is left out of that
    column. Without ``weight``, the weights follow from the loads.
    """
    if not len(loads):
        return 0.0
    columns = [column[~np.isnan(column)] for column in loads.T]
    spread = [column.std() if len(column) else 0.0 for column in columns]
    return float((resource_weights(loads) if weight is None else weight) @ np.array(spread))
