"""What a move is worth: demand met that was not, against the cost, and the worst that may come.

Plain arithmetic that can be compiled.
"""

from __future__ import annotations

from math import erf, exp, inf, pi, sqrt
from typing import Any, Final

import numpy as np

from equipoise.balance.levelling.field import Field, Scale
from equipoise.place.water import Floats

NEXT_TO_NOTHING: Final = 1e-9
SURELY: Final = 6.0
"""So many standard deviations below what there is, nothing is ever short."""
ROOT_OF_2: Final = sqrt(2.0)
ROOT_OF_2_PI: Final = sqrt(2.0 * pi)


def shortfall(demand: float, capacity: float, spread: float) -> float:
    """How much demand is not met, on average, if it may be somewhat other than expected."""
    width = spread * demand
    if width <= NEXT_TO_NOTHING * capacity or capacity == inf:
        return max(0.0, demand - capacity)
    z = (demand - capacity) / width
    if z < -SURELY:
        return 0.0
    density = exp(-0.5 * z * z) / ROOT_OF_2_PI
    return width * (density + z * 0.5 * (1.0 + erf(z / ROOT_OF_2)))


def reliefs(field: Field, unit: int) -> Floats:
    """How much less is short on its host without a unit: as things are, and at the worst.

    At the worst means here: its host needs as little as it ever did within the last hour.
    """
    home, spread = field.home[unit], field.weighing.spread
    found = np.empty((field.room.shape[1], 2))
    for resource in range(len(found)):
        capacity, want = field.capacity[home, resource], field.want[unit, resource]
        there = field.host_want[home, resource]
        now = shortfall(there, capacity, spread) - shortfall(there - want, capacity, spread)
        least = field.host_least[home, resource]
        worst = max(0.0, least - capacity)
        worst -= max(0.0, least - field.least[unit, resource] - capacity)
        found[resource, 0], found[resource, 1] = now, worst
    return found


def burden(field: Field, unit: int, host: int, resource: int) -> tuple[float, float]:
    """How much more is short on a host with a unit: as things are, and at the worst.

    At the worst means here: all need as much as they ever did within the last hour.
    """
    spread, capacity = field.weighing.spread, field.capacity[host, resource]
    there = field.host_want[host, resource]
    now = shortfall(there + field.want[unit, resource], capacity, spread)
    now -= shortfall(there, capacity, spread)
    most = field.host_most[host, resource]
    worst = max(0.0, most + field.most[unit, resource] - capacity)
    worst -= max(0.0, most - capacity)
    return now, worst


def stable(field: Field, unit: int, host: int) -> float:
    """How long things are taken to stay as they are for a move, in seconds."""
    found: float = min(field.stable_s[field.home[unit]], field.stable_s[host])
    return min(found, field.weighing.horizon_s)


def expense(field: Field, unit: int, resource: int) -> float:
    """What a move costs by itself, in MHz-seconds: work for both hosts, and slower work inside."""
    if resource != 0:
        return 0.0
    weighing, move_s = field.weighing, field.move_s[unit]
    cost: float = 2.0 * weighing.migration_cpu_mhz + field.want[unit, 0] * weighing.slowdown
    return float(cost * move_s)


def ease(field: Field, unit: int, host: int, evened: float) -> float:
    """What it is worth that hosts are evened out by so much, for whatever comes; in host-seconds.

    Much more where demand has stayed the same for long: by the square of its part of the horizon.
    """
    stable_s, weighing = stable(field, unit, host), field.weighing
    lasting = stable_s / weighing.horizon_s
    return weighing.evenness * evened * stable_s * lasting * lasting


def is_hopeless(field: Field, scale: Scale, unit: int, gain: float, relieved: Floats) -> bool:
    """Whether no move of a unit that gains at most so much can be worth it, wherever it goes.

    What a target would suffer is left out, and what depends on it is taken at its best.
    """
    weighing = field.weighing
    if not weighing.cost_benefit:
        return False
    horizon_s = weighing.horizon_s
    stable_s = min(field.stable_s[field.home[unit]], horizon_s)
    lasting = stable_s / horizon_s
    total = weighing.evenness * gain * scale.there[0] * stable_s * lasting * lasting
    for resource in range(field.room.shape[1]):
        now, worst = relieved[resource, 0], relieved[resource, 1]
        net = max(now * stable_s + worst * (horizon_s - stable_s), worst * horizon_s)
        net -= expense(field, unit, resource)
        size = scale.small[resource] if net > 0.0 else scale.large[resource]
        total += scale.weight[resource] * net / size
    return bool(total <= 0.0)


def is_worth_it(
    field: Field, scale: Scale, unit: int, host: int, gain: float, relieved: Floats
) -> bool:
    """Whether a move gains more than it costs, all resources together, each as a part of a host.

    For as long as demand has stayed the same lately it is taken to stay; then the worst comes.
    """
    if not field.weighing.cost_benefit:
        return True
    stable_s, horizon_s = stable(field, unit, host), field.weighing.horizon_s
    total = ease(field, unit, host, gain * scale.there[0])
    for resource in range(field.room.shape[1]):
        less_now, less_worst = burden(field, unit, host, resource)
        net = (relieved[resource, 0] - less_now) * stable_s
        net += (relieved[resource, 1] - less_worst) * (horizon_s - stable_s)
        net -= expense(field, unit, resource)
        total += scale.weight[resource] * net / field.capacity[host, resource]
    return bool(total > 0.0)


FUNCTIONS: Final[tuple[Any, ...]] = (
    shortfall,
    reliefs,
    burden,
    stable,
    expense,
    ease,
    is_hopeless,
    is_worth_it,
)
"""Callee before caller, for ``Kernels``."""
