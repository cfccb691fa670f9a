"""Cost and benefit of a move: demand that becomes met, the migration cost and the worst case.

Plain arithmetic that can be compiled.
"""

from __future__ import annotations

from math import erf, exp, inf, pi, sqrt
from typing import Any, Final

import numpy as np

from equipoise.balance.rebalance.cluster_arrays import ClusterArrays, LoadTotals
from equipoise.capacity.waterfill import Floats

SPREAD_TOLERANCE: Final = 1e-9
"""Below this part of the capacity, demand is taken as certain."""
DEVIATIONS_MAX: Final = 6.0
"""Below the capacity by this many standard deviations, the expected shortfall is zero."""
SQRT_2: Final = sqrt(2.0)
SQRT_2_PI: Final = sqrt(2.0 * pi)


def expected_shortfall(demand: float, capacity: float, spread: float) -> float:
    """Return the expected unmet demand, for a normally distributed demand.

    ``spread`` is the standard deviation as a part of the demand.
    """
    width = spread * demand
    if width <= SPREAD_TOLERANCE * capacity or capacity == inf:
        return max(0.0, demand - capacity)
    # For demand ~ N(d, w²): E[max(0, demand - c)] = w (φ(z) + z Φ(z)) with z = (d - c) / w.
    z = (demand - capacity) / width
    # Most hosts are far below their capacity. This avoids exp and erf, the slowest part of the
    # kernel.
    if z < -DEVIATIONS_MAX:
        return 0.0
    density = exp(-0.5 * z * z) / SQRT_2_PI
    return width * (density + z * 0.5 * (1.0 + erf(z / SQRT_2)))


def source_relief(arrays: ClusterArrays, unit: int) -> Floats:
    """Return by how much unmet demand falls on the source without the unit: now, and at worst.

    In the worst case for the source, every VM has its smallest demand of the last hour, so that the
    move would not have been necessary.
    """
    unit_host, spread = arrays.unit_host[unit], arrays.cost_model.spread
    relief = np.empty((arrays.load.shape[1], 2))
    for resource in range(len(relief)):
        capacity, want = arrays.capacity[unit_host, resource], arrays.demand[unit, resource]
        on_host = arrays.host_demand[unit_host, resource]
        now = expected_shortfall(on_host, capacity, spread) - expected_shortfall(
            on_host - want, capacity, spread
        )
        least = arrays.host_demand_min[unit_host, resource]
        # No normal distribution here: the worst case is one state that was observed, not an
        # expectation.
        worst = max(0.0, least - capacity)
        worst -= max(0.0, least - arrays.demand_min[unit, resource] - capacity)
        relief[resource, 0], relief[resource, 1] = now, worst
    return relief


def target_burden(
    arrays: ClusterArrays, unit: int, host: int, resource: int
) -> tuple[float, float]:
    """Return by how much unmet demand rises on the target with the unit: now, and at worst.

    In the worst case for the target, every VM has its largest demand of the last hour.
    """
    spread, capacity = arrays.cost_model.spread, arrays.capacity[host, resource]
    on_host = arrays.host_demand[host, resource]
    now = expected_shortfall(on_host + arrays.demand[unit, resource], capacity, spread)
    now -= expected_shortfall(on_host, capacity, spread)
    most = arrays.host_demand_max[host, resource]
    worst = max(0.0, most + arrays.demand_max[unit, resource] - capacity)
    worst -= max(0.0, most - capacity)
    return now, worst


def stable_duration_s(arrays: ClusterArrays, unit: int, host: int) -> float:
    """Return how many seconds the demand of both hosts is assumed to stay as it is."""
    stable_s: float = min(arrays.stable_s[arrays.unit_host[unit]], arrays.stable_s[host])
    return min(stable_s, arrays.cost_model.horizon_s)


def migration_cost(arrays: ClusterArrays, unit: int, resource: int) -> float:
    """Return the cost of a migration in MHz-seconds: work on both hosts, and the slower VM."""
    # The paper charges a migration with CPU only; the copy of memory takes no memory from other
    # VMs.
    if resource != 0:
        return 0.0
    cost_model, move_s = arrays.cost_model, arrays.move_s[unit]
    # The migration works on the source and on the target.
    cost: float = 2.0 * cost_model.migration_cpu_mhz + arrays.demand[unit, 0] * cost_model.slowdown
    return float(cost * move_s)


def evenness_value(arrays: ClusterArrays, unit: int, host: int, gain: float) -> float:
    """Return the value of a lower imbalance in host-seconds, whatever demand follows.

    It grows with the square of the stable time, as a part of the horizon.
    """
    stable_s, cost_model = stable_duration_s(arrays, unit, host), arrays.cost_model
    lasting = stable_s / cost_model.horizon_s
    # An even load is worth little in a cluster whose demand changes soon. The square keeps moves
    # rare there.
    return cost_model.evenness * gain * stable_s * lasting * lasting


def cannot_pay_off(
    arrays: ClusterArrays, totals: LoadTotals, unit: int, gain: float, relieved: Floats
) -> bool:
    """Return whether no move of a unit with at most this gain can be worth its cost.

    This is a bound that needs no target: the burden of the target is ignored, and everything that
    depends on the target has its best value.
    """
    cost_model = arrays.cost_model
    if not cost_model.cost_benefit:
        return False
    horizon_s = cost_model.horizon_s
    stable_s = min(arrays.stable_s[arrays.unit_host[unit]], horizon_s)
    lasting = stable_s / horizon_s
    total = cost_model.evenness * gain * totals.host_count[0] * stable_s * lasting * lasting
    for resource in range(arrays.load.shape[1]):
        now, worst = relieved[resource, 0], relieved[resource, 1]
        # The stable time of the target is unknown. The value is linear in it, so one of its two
        # ends is the largest.
        net = max(now * stable_s + worst * (horizon_s - stable_s), worst * horizon_s)
        net -= migration_cost(arrays, unit, resource)
        # A gain counts most on the smallest host, a loss least on the largest.
        size = totals.capacity_min[resource] if net > 0.0 else totals.capacity_max[resource]
        total += totals.weight[resource] * net / size
    return bool(total <= 0.0)


def migration_cost_host_s(arrays: ClusterArrays, totals: LoadTotals, unit: int, host: int) -> float:
    """Return the cost of a migration as a part of the target host, in host-seconds."""
    cost = 0.0
    for resource in range(arrays.load.shape[1]):
        part = totals.weight[resource] / arrays.capacity[host, resource]
        cost += part * migration_cost(arrays, unit, resource)
    return cost


def move_worth(
    arrays: ClusterArrays, totals: LoadTotals, unit: int, host: int, gain: float, relieved: Floats
) -> tuple[float, float, float]:
    """Return what a move is worth, in host-seconds: a lower imbalance, demand met, and its cost."""
    stable_s, horizon_s = stable_duration_s(arrays, unit, host), arrays.cost_model.horizon_s
    # The imbalance is a mean over the hosts; times their number it is in hosts, like the other
    # terms.
    evenness = evenness_value(arrays, unit, host, gain * totals.host_count[0])
    demand = 0.0
    for resource in range(arrays.load.shape[1]):
        burden_now, burden_worst = target_burden(arrays, unit, host, resource)
        net = (relieved[resource, 0] - burden_now) * stable_s
        net += (relieved[resource, 1] - burden_worst) * (horizon_s - stable_s)
        demand += totals.weight[resource] * net / arrays.capacity[host, resource]
    return evenness, demand, migration_cost_host_s(arrays, totals, unit, host)


def pays_off(
    arrays: ClusterArrays, totals: LoadTotals, unit: int, host: int, gain: float, relieved: Floats
) -> bool:
    """Return whether the benefit of a move exceeds its cost.

    All resources are added, each as a part of a host. Demand is assumed to stay for as long as it
    was stable; the worst case follows until the horizon. This is the risk-adjusted benefit of the
    DRS paper.
    """
    if not arrays.cost_model.cost_benefit:
        return True
    evenness, demand, cost = move_worth(arrays, totals, unit, host, gain, relieved)
    return bool(evenness + demand - cost > 0.0)


COST_BENEFIT_FUNCTIONS: Final[tuple[Any, ...]] = (
    expected_shortfall,
    source_relief,
    target_burden,
    stable_duration_s,
    migration_cost,
    evenness_value,
    cannot_pay_off,
    migration_cost_host_s,
    move_worth,
    pays_off,
)
"""Callee before caller, for ``KernelSet``."""
