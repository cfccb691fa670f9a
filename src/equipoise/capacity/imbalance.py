"""Imbalance: the weighted standard deviation of the host loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from equipoise.capacity.waterfill import Floats
from equipoise.model.state.snapshot import HISTORY_MS

SCARCE_WEIGHT: Final = 3.0
"""The weight of a scarce resource, relative to one that is not scarce."""
MEAN_WEIGHT: Final = 2 / 3
"""The mean weight. With two resources, a scarce one weighs 1 and the other one third."""
FULL_LOAD: Final = 1 + 1e-9
"""A host that gives exactly what it has is not contended; the margin covers rounding."""


STILL_FULL_LOAD: Final = 0.9
"""A resource that was contended lately keeps its weight while some host is loaded above this."""


def contended_resources(loads: Floats) -> NDArray[np.bool_]:
    """Return of which resources some host would have to give more than it has."""
    return np.asarray((loads > FULL_LOAD).any(axis=0))


def contended_lately(
    seen_ms: Mapping[str, int], resources: Sequence[str], now_ms: int
) -> NDArray[np.bool_]:
    """Return which resources were contended within the last hour; ``seen_ms`` says when last."""
    since_ms = max(0, now_ms - HISTORY_MS)
    return np.array([seen_ms.get(name, -1) >= since_ms for name in resources], dtype=bool)


def resource_weights(loads: Floats, lately: NDArray[np.bool_] | None = None) -> Floats:
    """Return the weight of each resource in the imbalance; ``loads`` has a column per resource.

    A resource is contended if some host would have to give more of it than it has. A contended
    resource weighs three times as much as one that is not. If all or none are contended, the
    weights are equal.

    A resource that was contended ``lately`` keeps its weight until every host has some of it to
    spare. Otherwise the moves that end a contention would change the weights, and the next pass
    would undo them.
    """
    contended = contended_resources(loads)
    if lately is not None:
        contended = contended | (lately & (loads > STILL_FULL_LOAD).any(axis=0))
    heavy = np.where(contended, SCARCE_WEIGHT, 1.0)
    # A constant mean keeps the imbalance comparable between passes whose contention differs.
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
